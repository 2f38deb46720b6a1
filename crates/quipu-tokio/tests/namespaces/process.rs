//! Tests of this program that run in a process and namespaces of their own.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How such a process ended.
pub(crate) struct Ended {
    pub(crate) success: bool,
    /// What it wrote.
    pub(crate) said: String,
}

/// Runs the ignored test of that name in a user and a network namespace, as root there.
#[expect(clippy::disallowed_methods, reason = "the test ends by itself")]
pub(crate) fn in_namespace(test: &str, environment: &[(&str, String)], limit: Duration) -> Ended {
    let mut child = Command::new("unshare")
        .arg("-Urn")
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > limit => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    Ended { success: status.success() && said.contains("1 passed"), said }
}
