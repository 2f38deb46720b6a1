//! What this process may do, and how an ordinary user gets the rights that an emulation takes.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// capabilities(7): to configure networks, and to make namespaces.
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;

/// Gives this process the rights to make network namespaces, in a user namespace of its own if it has them not: it is
/// root there, and whatever it starts is. Outside it stays the user that it was.
///
/// To be called at the beginning of `main`: the system refuses it to a process with several threads. A process that has
/// the rights stays as it is. Returns whether it is in a new user namespace.
///
/// # Errors
/// If the system does not let this user make user namespaces, or there are other threads.
pub fn enter_user_namespace() -> io::Result<bool> {
    if has_rights(&fs::read_to_string("/proc/self/status")?) {
        return Ok(false);
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // user_namespaces(7): groups cannot be mapped by an ordinary user while they can be dropped.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    Ok(true)
}

/// Whether a process with that `/proc/PID/status` has the capabilities.
fn has_rights(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let wanted = 1 << NET_ADMIN | 1 << SYS_ADMIN;
    effective.is_some_and(|mask| mask & wanted == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_two_capabilities() {
        let status = |mask: &str| format!("Name:\tx\nCapPrm:\t0\nCapEff:\t{mask}\nCapBnd:\t0\n");
        assert!(has_rights(&status("000001ffffffffff")));
        assert!(has_rights(&status("0000000000201000")));
        assert!(!has_rights(&status("0000000000001000")));
        assert!(!has_rights(&status("0000000000200000")));
        assert!(!has_rights(""));
    }
}
