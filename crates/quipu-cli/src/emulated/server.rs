//! The servers of emulated loads: this program, once for each page and stack.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use quipu_emu::Host;
use quipu_lab::base::Bytes;
use quipu_scenario::Stack;

use super::{kernel, own_command};
use crate::failure::Failure;

/// What stands before the fingerprint of a server's certificate in what it prints.
const PIN: &str = "pin ";

/// What stands before the hash of its key there: an option of Chromium.
const KEY: &str = "--ignore-certificate-errors-spki-list=";

/// The hash of the server's key, if it is in this line.
fn key_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(KEY)?;
    rest.split_whitespace().next()
}

/// The options of servers that browsers reach over HTTP/3: urgencies are heeded, as browsers tell them.
const HTTP3_BESIDE_BROWSERS: [&str; 5] =
    ["--no-tcp", "--stream", "rfc9218", "--congestion", "cubic"];

/// The options of servers whose policies are those of the rows. Nobody else reaches them.
const OF_ROWS: [&str; 3] = ["--no-tcp", "--experiments", "--experiments-with-files"];

/// What a server is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served<'a> {
    /// The page, as the command takes it.
    pub(super) page: &'a str,
    /// What clients load it with.
    pub(super) stack: Stack,
    /// Length of the certificate chain.
    pub(super) chain: Bytes,
}

/// The options of `quipu serve` for a stack other than Quipu's.
fn options_of(stack: Stack) -> Vec<String> {
    match stack {
        Stack::Quipu => Vec::new(),
        Stack::Kernel(stack) => kernel::options_of(stack),
        Stack::Foreign(_) => vec!["--stack".to_owned(), stack.to_string()],
        Stack::Browser(stack) => match stack.kernel {
            None => HTTP3_BESIDE_BROWSERS.map(str::to_owned).to_vec(),
            Some(stack) => kernel::options_of(stack),
        },
    }
}

/// `quipu serve --har PAGE` in a host. It ends with the host.
#[derive(Debug)]
pub(super) struct PageServer {
    page: String,
    stack: Stack,
    chain: Bytes,
    address: SocketAddr,
    /// SHA-256 of its certificate.
    pub(super) pin: String,
    /// SHA-256 of its key in Base64, by which Chromium knows it.
    pub(super) key: String,
    /// Kept, so that its standard output stays open.
    _process: Child,
}

impl PageServer {
    /// Starts it for clients that reach it at `address`, and waits until it is ready.
    ///
    /// # Errors
    /// If it does not start, or ends, for example as it has no such page; it has told why.
    pub(super) fn start(
        host: &Host,
        served: Served<'_>,
        address: SocketAddr,
    ) -> Result<Self, Failure> {
        let Served { page, stack, chain } = served;
        let mut command = own_command()?;
        // As in the simulator, what could be answered at the same time is answered in the order of requests.
        command.args(["serve", "--har", page, "--threads", "1"]);
        if !matches!(stack, Stack::Browser(_)) {
            command.arg("--bare");
        }
        command.args(["--certificate-bytes", &chain.0.to_string(), "--listen"]);
        match stack {
            Stack::Quipu => command.arg(address.to_string()).args(OF_ROWS),
            // Further subflows of Multipath TCP, and paths of other stacks, come to other addresses.
            Stack::Kernel(_) | Stack::Foreign(_) | Stack::Browser(_) => {
                let everywhere = SocketAddr::from(([0; 4], address.port()));
                command.arg(everywhere.to_string()).args(options_of(stack))
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let failed = |reason: String| Failure::Run(format!("the server of {page} {reason}"));
        let mut process =
            host.spawn(command).map_err(|error| failed(format!("does not start: {error}")))?;
        let output = process.stdout.as_mut().map(BufReader::new);
        let (mut pin, mut key) = (None, None);
        let needs_key = matches!(stack, Stack::Browser(_));
        for line in output.into_iter().flat_map(BufReader::lines) {
            let line = line.map_err(|error| failed(format!("cannot be heard: {error}")))?;
            pin = pin.or_else(|| line.strip_prefix(PIN).map(str::to_owned));
            key = key.or_else(|| key_of(&line).map(str::to_owned));
            if pin.is_some() && (key.is_some() || !needs_key) {
                break;
            }
        }
        let pin = pin.ok_or_else(|| failed("ended before it was ready".to_owned()))?;
        let (page, key) = (page.to_owned(), key.unwrap_or_default());
        Ok(PageServer { page, stack, chain, address, pin, key, _process: process })
    }

    /// Whether it was started for that.
    pub(super) fn serves(&self, served: Served<'_>) -> bool {
        Served { page: &self.page, stack: self.stack, chain: self.chain } == served
    }

    /// Where clients reach it.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}
