//! Lines are written by a thread of their own, so that a slow disk or pipe slows no response.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};

use super::entry::{Entry, Format};

/// Lines that wait, at most. Our choice: a second of 10,000 requests.
const WAITING: usize = 10_000;

/// Where entries go. Clones write to the same place.
///
/// A line that finds too many waiting is left out, and counted: [`lost`](Self::lost).
#[derive(Clone, Debug)]
pub struct AccessLog {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
    format: Format,
}

/// Ends with the log: see [`AccessLog::start`].
#[derive(Debug)]
pub struct LogWriter(JoinHandle<io::Result<()>>);

impl AccessLog {
    /// Starts the thread that writes to `sink`, in whole lines, and flushes it whenever none waits.
    ///
    /// # Errors
    /// If the host has no thread for it.
    pub fn start(
        format: Format,
        sink: impl Write + Send + 'static,
    ) -> io::Result<(AccessLog, LogWriter)> {
        let (lines, waiting) = mpsc::sync_channel(WAITING);
        let thread = thread::Builder::new().name("access-log".to_owned());
        let thread = thread.spawn(move || write(&waiting, sink))?;
        Ok((AccessLog { lines, lost: Arc::default(), format }, LogWriter(thread)))
    }

    /// How many lines were left out.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn write(&self, entry: &Entry) {
        if self.lines.try_send(entry.line(self.format)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LogWriter {
    /// Waits until all lines are written, which is once every clone of the log is dropped.
    ///
    /// # Errors
    /// The first error of the sink, after which no line was written.
    pub fn finish(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("the sink panicked")))
    }
}

fn write(waiting: &Receiver<String>, mut sink: impl Write) -> io::Result<()> {
    let written = write_all(waiting, &mut sink);
    if let Err(error) = &written {
        tracing::error!(target: "quipu_serve", %error, "the access log ends: it cannot be written");
    }
    written
}

fn write_all(waiting: &Receiver<String>, sink: &mut impl Write) -> io::Result<()> {
    loop {
        let line = match waiting.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Disconnected) => return sink.flush(),
            Err(TryRecvError::Empty) => {
                sink.flush()?;
                match waiting.recv() {
                    Ok(line) => line,
                    Err(_) => return Ok(()),
                }
            }
        };
        sink.write_all(line.as_bytes())?;
    }
}
