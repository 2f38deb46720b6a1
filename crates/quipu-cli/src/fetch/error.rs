//! Why a URL was not fetched, with the exit codes of curl.
//! <https://curl.se/docs/manpage.html#EXIT>

use std::fmt;

use quipu_tokio::ConnectError;
use quipu_tokio::http3::Http3Error;

use crate::args::HttpChoice;

/// Why a URL was not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchError {
    pub(super) code: u8,
    pub(super) reason: String,
}

impl FetchError {
    pub(super) const URL: u8 = 3;
    pub(super) const HOST: u8 = 6;
    pub(super) const CONNECT: u8 = 7;
    pub(super) const PARTIAL: u8 = 18;
    pub(super) const STATUS: u8 = 22;
    pub(super) const WRITE: u8 = 23;
    pub(super) const READ: u8 = 26;
    pub(super) const LATE: u8 = 28;
    pub(super) const RANGE: u8 = 33;
    pub(super) const TLS: u8 = 35;
    pub(super) const REDIRECTS: u8 = 47;
    pub(super) const RECEIVE: u8 = 56;
    pub(super) const CERTIFICATE: u8 = 60;
    pub(super) const SIZE: u8 = 63;
    /// Ours: curl has none for it, and its own end before.
    pub(super) const CHECKSUM: u8 = 110;

    pub(super) fn new(code: u8, reason: impl fmt::Display) -> Self {
        FetchError { code, reason: reason.to_string() }
    }

    /// Not done after so many seconds.
    pub(super) fn late(seconds: u64) -> Self {
        Self::new(Self::LATE, format!("not done after {seconds} s; --max-time allows more"))
    }

    /// No connection over which that version of HTTP would go.
    pub(super) fn connect(error: &ConnectError, http: HttpChoice) -> Self {
        let code = match error {
            ConnectError::Certificate { .. } => Self::CERTIFICATE,
            ConnectError::Alpn(_) => Self::TLS,
            ConnectError::NoAnswer { .. } => Self::LATE,
            _ => Self::CONNECT,
        };
        let hint = match error {
            ConnectError::Certificate { .. } => {
                "; --ca names other authorities, --pin a certificate"
            }
            ConnectError::Alpn(_) if http == HttpChoice::H2 => "; --http h3 asks for HTTP/3",
            _ => "",
        };
        Self::new(code, format!("{error}{hint}"))
    }

    /// What happened to an exchange of which `received` octets of the body had come.
    pub(super) fn exchange(error: &Http3Error, received: u64) -> Self {
        let code = if received > 0 { Self::PARTIAL } else { Self::RECEIVE };
        let after = if received > 0 { format!(" after {received} bytes") } else { String::new() };
        Self::new(code, format!("{error}{after}"))
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
