//! The secrets of connections, for tools that decrypt recorded packets.

use std::sync::Arc;

use rustls::{KeyLog, KeyLogFile, NoKeyLog};

/// If the environment variable `SSLKEYLOGFILE` names a file, appends secrets there; else they are kept from
/// all. <https://www.ietf.org/archive/id/draft-ietf-tls-keylogfile-05.html>
pub(super) fn key_log() -> Arc<dyn KeyLog> {
    match std::env::var_os("SSLKEYLOGFILE").is_some_and(|path| !path.is_empty()) {
        true => Arc::new(KeyLogFile::new()),
        false => Arc::new(NoKeyLog),
    }
}
