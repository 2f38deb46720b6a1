//! The programs in the hosts of an emulation.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quipu_emu::{Emulation, HostId, Topology};
use rustix::process::{Pid, Signal, kill_process};

use crate::args::EmulateOptions;
use crate::failure::Failure;

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a program has that was asked to end. Our choice.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// How the client's program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    WithCode(u8),
    /// The user wanted it to.
    OnRequest,
}

/// Starts programs, and ends them.
pub(super) struct Programs<'a> {
    topology: &'a Topology,
    emulation: &'a Emulation,
}

impl<'a> Programs<'a> {
    pub(super) fn new(topology: &'a Topology, emulation: &'a Emulation) -> Programs<'a> {
        Programs { topology, emulation }
    }

    /// Starts those of the servers, and runs that of the first client until it ends or `stopped` is set.
    pub(super) fn run(
        &self,
        options: &EmulateOptions,
        stopped: &AtomicBool,
    ) -> Result<Ended, Failure> {
        let mut serving = Vec::new();
        for (text, server) in options.server.iter().zip(self.topology.servers()) {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            serving.push(self.start(*server, command, "sh".as_ref())?);
        }
        let Some(client) = self.topology.clients().first() else { return Ok(Ended::WithCode(0)) };
        let program = options.command.first().cloned().unwrap_or_else(shell);
        let mut command = Command::new(&program);
        command.args(options.command.iter().skip(1));
        let child = self.start(*client, command, &program)?;
        let ended = wait(child, stopped);
        for child in &mut serving {
            end(child);
        }
        ended
    }

    /// Starts a program in a host. It knows its own addresses and those of the other side.
    fn start(&self, host: HostId, mut command: Command, program: &OsStr) -> Result<Child, Failure> {
        let name = self.topology.name(host);
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::Run(format!("{} does not start in {name}: {reason}", program.display()))
        };
        let there = self.emulation.host(host).ok_or_else(|| failed(&"there is no such host"))?;
        let addresses = |host| {
            let paths = there.paths().map(|path| self.topology.addresses(host, path).0.to_string());
            paths.collect::<Vec<String>>().join(" ")
        };
        let [client, server] = [self.topology.clients(), self.topology.servers()].map(|hosts| {
            hosts
                .iter()
                .find(|other| **other == host)
                .or(hosts.first())
                .map(|host| addresses(*host))
        });
        let interfaces: Vec<String> = there.paths().map(|path| format!("path{path}")).collect();
        command.env("QUIPU_HOST", &name);
        command.env("QUIPU_CLIENT", client.unwrap_or_default());
        command.env("QUIPU_SERVER", server.unwrap_or_default());
        command.env("QUIPU_INTERFACES", interfaces.join(" "));
        there.spawn(command).map_err(|error| failed(&error))
    }
}

/// Waits until the program has ended.
fn wait(mut child: Child, stopped: &AtomicBool) -> Result<Ended, Failure> {
    let mut asked_at = None;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::run)? {
            return Ok(match asked_at {
                Some(_) => Ended::OnRequest,
                None => Ended::WithCode(code(status)),
            });
        }
        if stopped.load(Ordering::Relaxed) {
            // What came from the keyboard the program has got, too.
            let since: &mut Instant = asked_at.get_or_insert_with(now);
            if since.elapsed() > ENDS_WITHIN {
                return Ok(Ended::OnRequest);
            }
        }
        pause();
    }
}

/// Asks a server's program to end, and waits for that for a while; what is left of it ends with its host.
fn end(child: &mut Child) {
    let process = Pid::from_child(child);
    // It may have ended.
    let _ = kill_process(process, Signal::TERM);
    let asked_at = now();
    while asked_at.elapsed() < ENDS_WITHIN && matches!(child.try_wait(), Ok(None)) {
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "no runtime waits for programs")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

#[expect(clippy::disallowed_methods, reason = "a program runs in real time")]
fn now() -> Instant {
    Instant::now()
}

/// The code of a program that ended; of one that a signal ended 128 more than its number, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The user's shell.
fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "sh".into())
}
