//! What runs that call policies of Python share: the exception that ends them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

/// The session of the command, once it runs.
static COMMAND: OnceLock<Arc<Session>> = OnceLock::new();

thread_local! {
    /// The session of the run that this thread makes.
    static CURRENT: RefCell<Option<Arc<Session>>> = const { RefCell::new(None) };
}

/// Runs that end together.
pub(crate) struct Session {
    /// The first exception of a policy.
    raised: Mutex<Option<PyErr>>,
    has_failed: AtomicBool,
    stop: Arc<AtomicBool>,
    /// Whether an exception ends the process at once: of the command, whose runs nobody else stops.
    ends_process: bool,
}

impl Session {
    pub(crate) fn new() -> Arc<Session> {
        Session::with(false)
    }

    fn with(ends_process: bool) -> Arc<Session> {
        Arc::new(Session {
            raised: Mutex::new(None),
            has_failed: AtomicBool::new(false),
            stop: Arc::default(),
            ends_process,
        })
    }

    /// Does `work` with policies whose exceptions come here.
    pub(crate) fn enter<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let result = work();
        CURRENT.set(before);
        result
    }

    /// The session in which a policy is made now; that of the command where there is none.
    pub(crate) fn current() -> Arc<Session> {
        let current = CURRENT.with_borrow(|current| current.clone());
        current.or_else(|| COMMAND.get().cloned()).unwrap_or_else(Session::new)
    }

    /// From now on, exceptions of policies that are in no other session are printed, and end the process.
    pub(crate) fn for_command() {
        COMMAND.get_or_init(|| Session::with(true));
    }

    /// What ends the runs.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// A policy raised `error`: the first one is kept, and the runs end.
    pub(crate) fn fail(&self, error: PyErr) {
        if self.ends_process {
            Python::attach(|py| error.print(py));
            std::process::exit(1);
        }
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.has_failed.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether a policy has raised an exception, since when none is asked.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The exception, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
