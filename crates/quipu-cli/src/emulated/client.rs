//! The client of emulated loads: this program, once in each emulation, in the network of the client.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use quipu_emu::Host;
use quipu_record::RunRecord;

use super::asked::{Answer, Asked, Job};
use super::own_command;
use crate::args::CLIENT;
use crate::failure::Failure;
use crate::live::LOOK;

/// A process that makes loads. It ends with this, or with its host.
#[derive(Debug)]
pub(super) struct PageClient {
    process: Child,
    asked: ChildStdin,
    answers: Receiver<Answer>,
}

/// What came of a load.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What was measured, or why it failed.
    pub(super) loaded: Result<RunRecord, String>,
    /// Why its connections could not be logged.
    pub(super) unlogged: Option<String>,
}

impl PageClient {
    /// Starts it.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn start(host: &Host) -> Result<PageClient, Failure> {
        let mut command = own_command()?;
        command.arg(CLIENT).stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |reason: &str| Failure::Run(format!("the client of loads {reason}"));
        let started = host.spawn(command);
        let mut process = started.map_err(|error| failed(&format!("does not start: {error}")))?;
        let (Some(asked), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("cannot be asked"));
        };
        let (tell, answers) = mpsc::channel();
        // Ends with the process.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(answer) = serde_json::from_str(&line) else { break };
                if tell.send(answer).is_err() {
                    break;
                }
            }
        });
        Ok(PageClient { process, asked, answers })
    }

    /// Makes a load. What has to be done right before it is `begin`.
    ///
    /// # Errors
    /// If the process does not answer or `begin` fails, or `stop` is set meanwhile. The process is of no use then.
    pub(super) fn load(
        &mut self,
        job: Job,
        stop: &AtomicBool,
        begin: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        let mut begin = Some(begin);
        self.ask(&Asked::Load(Box::new(job)))?;
        loop {
            match self.answer(stop)? {
                Answer::Ready => {
                    begin.take().map_or(Ok(()), |begin| begin())?;
                    self.ask(&Asked::Begin)?;
                }
                Answer::Over { loaded, unlogged } => {
                    return Ok(Outcome { loaded: loaded.map(|record| *record), unlogged });
                }
            }
        }
    }

    fn ask(&mut self, asked: &Asked) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(asked).map_err(Failure::run)?;
        line.push(b'\n');
        self.asked.write_all(&line).map_err(|_| ended())
    }

    fn answer(&self, stop: &AtomicBool) -> Result<Answer, Failure> {
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(_) if stop.load(Ordering::Relaxed) => return Err(Failure::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }
}

fn ended() -> Failure {
    Failure::Run("the client of loads ended".to_owned())
}

impl Drop for PageClient {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
