//! Ends a browser whose recorder was killed before it could: a shell that waits for the end of a pipe.
//!
//! Only this process has the writing end of the pipe, so the system closes it however the process ends, also by SIGKILL.
//! The shell then kills the browser's process group and removes its profile.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first line is the process group; there is no second one. Processes that are about to end may still write into the
/// profile.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
read -r group
read -r end
[ -z "$group" ] || kill -s KILL -- "-$group"
for attempt in 1 2 3; do
    rm -rf -- "$1" && break
    sleep 1
done
"#;

/// The shell. It ends without doing anything when this is dropped.
pub(crate) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Starts it for a browser whose profile is in `profile`.
    pub(crate) fn start(profile: &Path) -> io::Result<Watchdog> {
        let mut command = Command::new("/bin/sh");
        // A group of its own: Ctrl-C comes to us alone.
        command.arg("-c").arg(SCRIPT).arg("sh").arg(profile).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Watchdog { shell: command.spawn()? })
    }

    /// Names the process group of the browser.
    pub(crate) fn guard(&mut self, group: u32) {
        if let Some(pipe) = &mut self.shell.stdin {
            // Without a shell there is nothing to tell.
            let _ = writeln!(pipe, "{group}");
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").process_group(0).spawn().unwrap()
    }

    #[test]
    fn the_end_of_the_pipe_ends_the_group_and_removes_the_profile() {
        let profile = tempfile::tempdir().unwrap();
        std::fs::write(profile.path().join("a file"), "").unwrap();
        let mut browser = sleeper();
        let mut watchdog = Watchdog::start(profile.path()).unwrap();
        watchdog.guard(browser.id());
        // What the system does when the process is killed.
        drop(watchdog.shell.stdin.take());
        assert!(watchdog.shell.wait().unwrap().success());
        assert!(!browser.wait().unwrap().success());
        assert!(!profile.path().exists());
    }

    #[test]
    fn a_watchdog_that_is_dropped_does_nothing() {
        let profile = tempfile::tempdir().unwrap();
        let mut browser = sleeper();
        let mut watchdog = Watchdog::start(profile.path()).unwrap();
        watchdog.guard(browser.id());
        drop(watchdog);
        assert!(profile.path().exists());
        assert_eq!(browser.try_wait().unwrap(), None);
        browser.kill().unwrap();
        browser.wait().unwrap();
    }
}
