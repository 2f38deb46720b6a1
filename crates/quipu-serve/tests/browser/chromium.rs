//! Chromium.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::processes::Processes;
use crate::served::Served;

/// A browser without a window, which is ended with all its processes.
pub(crate) struct Browser {
    // Ended before its profile is removed.
    _processes: Processes,
    profile: TempDir,
}

impl Browser {
    /// Opens the page; HTTP/3 is used at once if it is forced, or as soon as the browser has found it.
    pub(crate) fn open(served: &Served, force: bool, more: &[&str]) -> Option<Browser> {
        use std::os::unix::process::CommandExt;
        let profile = TempDir::new().unwrap();
        let mut command = Command::new("chromium");
        command
            .args(["--headless=new", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-default-apps"])
            .args(["--disable-extensions", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--metrics-recording-only", "--remote-debugging-port=0", "--mute-audio"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--enable-quic")
            .arg(format!("--host-resolver-rules=MAP * 127.0.0.1:{}", served.port))
            .arg(format!("--ignore-certificate-errors-spki-list={}", served.key));
        if force {
            let origins = served.replay.origins().join(",");
            command.arg(format!("--origin-to-force-quic-on={origins}"));
        }
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        command.args(more).arg(served.replay.start());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        match command.spawn() {
            Ok(child) => Some(Browser { _processes: Processes(child), profile }),
            Err(error) => {
                let required = std::env::var_os("QUIPU_CHROMIUM_REQUIRED").is_some();
                assert!(!required, "no Chromium, and QUIPU_CHROMIUM_REQUIRED is set: {error}");
                eprintln!("skipped: no Chromium is installed");
                None
            }
        }
    }
}

impl Browser {
    /// Opens another tab, by the DevTools' interface.
    pub(crate) fn open_tab(&self, url: &str) {
        let file = self.profile.path().join("DevToolsActivePort");
        let port: u16 =
            std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!("PUT /json/new?{url} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}
