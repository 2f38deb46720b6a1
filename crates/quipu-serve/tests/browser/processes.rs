//! The processes of a browser.

use std::process::Child;

use rustix::process::{Pid, Signal};

/// The leader of a process group, all of which is ended when this is dropped.
pub(crate) struct Processes(pub(crate) Child);

impl Drop for Processes {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}
