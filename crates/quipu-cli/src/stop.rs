//! Ctrl-C and other requests to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Sets `flag` at Ctrl-C (SIGINT), SIGTERM and SIGHUP in place of ending the process, so that what was finished is
/// written and nothing half-written is left.
pub(crate) fn on_request(flag: &Arc<AtomicBool>) -> Result<(), Failure> {
    let flag = Arc::clone(flag);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("cannot listen for Ctrl-C: {error}")))
}
