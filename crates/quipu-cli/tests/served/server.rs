//! A server of the command.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// What it printed when it started.
    pub(crate) lines: Vec<String>,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(folder: &Path, more: &[&str]) -> Server {
        let mut command = quipu();
        command.arg("serve").arg(folder).args(["--listen", "127.0.0.1:0"]).args(more);
        Server::run(command, |line| line.starts_with("pin "))
    }

    /// Starts it, and reads what it prints to the line that is the last.
    pub(crate) fn run(mut command: Command, is_last: fn(&str) -> bool) -> Server {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let output = child.stdout.take().expect("it is piped");
        let mut lines = Vec::new();
        for line in BufReader::new(output).lines() {
            lines.push(line.expect("UTF-8"));
            if lines.last().is_some_and(|line| is_last(line)) {
                break;
            }
        }
        let port = lines.first().and_then(|line| line.rsplit(':').next());
        let port = port.and_then(|port| port.parse().ok());
        Server { port: port.unwrap_or_else(|| panic!("{lines:?}")), child, lines }
    }

    /// Asks it to end; its exit code and what it said of errors.
    pub(crate) fn stop(&mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("there is a kill");
        assert!(sent.success());
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it ends").code();
        let mut told = String::new();
        let errors = self.child.stderr.as_mut().expect("it is piped");
        errors.read_to_string(&mut told).expect("UTF-8");
        (code, told)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn quipu() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.env_remove("QLOGDIR").env_remove("QUIPU_LOG").env_remove("SSLKEYLOGFILE");
    command
}

/// What a program printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// It ended with that code and one error, which has that part, and printed nothing else.
#[track_caller]
pub(crate) fn assert_failed(output: &Output, code: i32, part: &str) {
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(told.starts_with("error: ") && told.contains(part), "{told}");
    assert_eq!(output.stdout, b"", "nothing is printed");
}
