//! The servers of emulated loads: this program, once for each page.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use quipu_emu::Host;

use crate::failure::Failure;

/// `quipu serve --har PAGE --experiments` in a host. It ends with the host.
#[derive(Debug)]
pub(super) struct PageServer {
    page: String,
    address: SocketAddr,
    /// SHA-256 of its certificate.
    pub(super) pin: String,
    /// Kept, so that its standard output stays open.
    _process: Child,
}

impl PageServer {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// If it does not start, or ends, for example as it has no such page; it has told why.
    pub(super) fn start(host: &Host, page: &str, address: SocketAddr) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(Failure::run)?;
        let mut command = Command::new(program);
        command.args(["serve", "--har", page, "--no-tcp", "--experiments"]);
        // As in the simulator, what could be answered at the same time is answered in the order of requests.
        command.args(["--threads", "1", "--listen"]).arg(address.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let failed = |reason: String| Failure::Run(format!("the server of {page} {reason}"));
        let mut process =
            host.spawn(command).map_err(|error| failed(format!("does not start: {error}")))?;
        let output = process.stdout.as_mut().map(BufReader::new);
        for line in output.into_iter().flat_map(BufReader::lines) {
            let line = line.map_err(|error| failed(format!("cannot be heard: {error}")))?;
            if let Some(pin) = line.strip_prefix("pin ") {
                let page = page.to_owned();
                return Ok(PageServer { page, address, pin: pin.to_owned(), _process: process });
            }
        }
        Err(failed("ended before it was ready".to_owned()))
    }

    /// The page, as the command took it.
    pub(super) fn page(&self) -> &str {
        &self.page
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}
