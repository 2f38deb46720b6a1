//! The host's clock.

use std::time::SystemTime;

/// For the `Date` of responses, and how old files are.
#[expect(clippy::disallowed_methods, reason = "a server of files lives in the host's time")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
