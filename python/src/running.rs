//! Work that leaves the interpreter to others while it lasts, and ends at Ctrl-C.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::policy::session::Session;

/// How often Python is asked for signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Does `work` on a thread of its own, and asks Python for signals meanwhile: at Ctrl-C `stop` is set, upon which the
/// work is expected to end soon.
///
/// # Errors
/// What the handler of a signal raised, `KeyboardInterrupt` as a rule, once the work has ended.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T + Send,
) -> (T, PyResult<()>) {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (running, ended) = channel::<()>();
            let worker = scope.spawn(move || {
                // Ends the wait, however the work ends.
                let _running = running;
                work()
            });
            let mut signals = Ok(());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
                let raised = Python::attach(|py| py.check_signals());
                if let (Err(error), true) = (raised, signals.is_ok()) {
                    stop.store(true, Ordering::Relaxed);
                    signals = Err(error);
                }
            }
            match worker.join() {
                Ok(result) => (result, signals),
                Err(panic) => resume_unwind(panic),
            }
        })
    })
}

/// The same for work that calls policies of Python, whose exceptions end it.
///
/// # Errors
/// The first exception of a policy, or what the handler of a signal raised.
pub(crate) fn with_policies<T: Send>(
    py: Python<'_>,
    session: &Arc<Session>,
    work: impl FnOnce() -> T + Send,
) -> (T, PyResult<()>) {
    let (result, signals) = interruptible(py, session.stop(), work);
    (result, session.take().map_or(signals, Err))
}
