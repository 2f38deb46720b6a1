//! The log writer. It has a thread of its own, so that a slow disk or pipe delays no response.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};

use super::entry::{Entry, Format};

/// Most lines that wait to be written. Our choice: one second at 10,000 requests per second.
const WAITING: usize = 10_000;

/// An access log. Clones write to the same sink.
///
/// When too many lines wait, further ones are dropped and counted: [`lost`](Self::lost).
#[derive(Clone, Debug)]
pub struct AccessLog {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
    format: Format,
}

/// The thread that writes a log: see [`AccessLog::start`].
#[derive(Debug)]
pub struct LogWriter(JoinHandle<io::Result<()>>);

impl AccessLog {
    /// Starts a thread that writes whole lines to `sink`, and flushes it when no line is waiting.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        format: Format,
        sink: impl Write + Send + 'static,
    ) -> io::Result<(AccessLog, LogWriter)> {
        let (lines, waiting) = mpsc::sync_channel(WAITING);
        let thread = thread::Builder::new().name("access-log".to_owned());
        let thread = thread.spawn(move || write(&waiting, sink))?;
        Ok((AccessLog { lines, lost: Arc::default(), format }, LogWriter(thread)))
    }

    /// Number of lines that were dropped.
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
    /// Waits until all clones of the log are dropped and all lines are written. Blocks.
    ///
    /// # Errors
    /// The first error of the sink, which ended the log.
    pub fn finish(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("the sink panicked")))
    }
}

fn write(waiting: &Receiver<String>, mut sink: impl Write) -> io::Result<()> {
    let written = write_all(waiting, &mut sink);
    if let Err(error) = &written {
        tracing::error!(target: "quipu_serve", %error, "cannot write the access log; further lines are dropped");
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
