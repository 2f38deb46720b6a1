//! What a browser leaves behind when it ends: helpers, whose parent it was. On Linux they become ours, and are waited
//! for, so that none stays as a zombie where the first process of a container waits for nobody.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpgid, waitpid};

/// How long helpers may take to end after their browser.
const END: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(10);

/// Name of the helpers that leave the browser's process group, as far as the system keeps names.
const CRASH_HANDLER: &str = "chrome_crashpad";

/// Makes orphans of the processes that are started from now on ours.
pub(crate) fn adopt() {
    // An old system refuses; then they are its own business.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Waits for all that is left of a browser, whose process group was `group`.
pub(crate) fn wait(group: Pid) {
    let deadline = Instant::now() + END;
    loop {
        let mut waits = false;
        while let Ok(ended) = waitpgid(group, WaitOptions::NOHANG) {
            waits = ended.is_none();
            if waits {
                break;
            }
        }
        for helper in crash_handlers() {
            waits |= matches!(waitpid(Some(helper), WaitOptions::NOHANG), Ok(None));
        }
        if !waits || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(TICK);
    }
}

/// Crash handlers that are children of ours.
fn crash_handlers() -> Vec<Pid> {
    let ours = getpid().as_raw_nonzero().get();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(process.path().join("stat")).ok()?;
            (parent_of(&stat, CRASH_HANDLER)? == ours).then(|| Pid::from_raw(pid))?
        })
        .collect()
}

/// The parent of a process whose name is `name`, by what the system tells of it: `PID (NAME) STATE PARENT …`.
fn parent_of(stat: &str, name: &str) -> Option<i32> {
    let (_, rest) = stat.split_once('(')?;
    let (found, rest) = rest.rsplit_once(')')?;
    if found != name {
        return None;
    }
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_whatever_the_name_is() {
        assert_eq!(parent_of("12 (a) b (c) S 7 12 12", "a) b (c"), Some(7));
        assert_eq!(parent_of("12 (a) S 7", "b"), None);
        assert_eq!(parent_of("12 a S 7", "a"), None);
    }
}
