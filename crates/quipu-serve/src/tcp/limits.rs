//! Limits of connections.

use std::time::Duration;

use quipu_base::Bytes;
use thiserror::Error;

/// Limits on what clients may use of a server over TCP. All defaults are our choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent connections, at least 1; further ones wait in the kernel's queue. Default: 512, half of the usual
    /// limit of open files, so that files can still be opened to be served.
    pub connections: usize,
    /// Time for the TLS handshake. Default: 10 s.
    pub handshake: Duration,
    /// Time to receive the headers of an HTTP/1.1 request, counted from when the connection is ready for it. It is
    /// therefore also how long an HTTP/1.1 connection may be idle between requests. Default: 20 s.
    pub header: Duration,
    /// Size of the headers of a request, 1 KiB to 256 KiB. Larger ones are answered with 431, or reset the stream in
    /// HTTP/2. Default: 16 KiB.
    pub header_size: Bytes,
    /// Number of header fields of an HTTP/1.1 request, at least 1. Default: 100.
    pub header_count: usize,
    /// Concurrent requests on an HTTP/2 connection, at least 1. Default: 100, the least that RFC 9113 recommends.
    /// <https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2>
    pub streams: u32,
    /// Time without a byte in either direction after which a connection is shut down gracefully, and cut after the
    /// same time again. A service that takes longer to answer needs a larger value. Default: 60 s.
    pub idle: Duration,
    /// Time that connections have to end when the server stops, before they are cut; zero cuts at once. Default: 10 s.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 512,
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(20),
            header_size: Bytes(16 << 10),
            header_count: 100,
            streams: 100,
            idle: Duration::from_secs(60),
            stop: Duration::from_secs(10),
        }
    }
}

/// A limit that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name} is {value}; expected {expected}")]
#[non_exhaustive]
pub struct LimitsError {
    /// Name of the limit.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The expected range.
    pub expected: &'static str,
}

impl Limits {
    /// Checks all of them.
    ///
    /// # Errors
    /// [`LimitsError`] for the first limit that is out of range.
    pub fn validate(&self) -> Result<(), LimitsError> {
        let at_least_1 = "at least 1";
        let size = self.header_size.0;
        let wrong = [
            ("connections", self.connections == 0, self.connections.to_string(), at_least_1),
            ("handshake", self.handshake.is_zero(), "0".to_owned(), "some time"),
            ("header", self.header.is_zero(), "0".to_owned(), "some time"),
            (
                "header_size",
                !(1 << 10..=256 << 10).contains(&size),
                size.to_string(),
                "1 KiB to 256 KiB, in bytes",
            ),
            ("header_count", self.header_count == 0, "0".to_owned(), at_least_1),
            ("streams", self.streams == 0, "0".to_owned(), at_least_1),
            ("idle", self.idle.is_zero(), "0".to_owned(), "some time"),
        ];
        for (name, is_wrong, value, expected) in wrong {
            if is_wrong {
                return Err(LimitsError { name, value, expected });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_nothing_is_not() {
        assert_eq!(Limits::default().validate(), Ok(()));
        let none = Limits { streams: 0, ..Limits::default() };
        assert_eq!(none.validate().unwrap_err().to_string(), "streams is 0; expected at least 1");
        let small = Limits { header_size: Bytes(1_023), ..Limits::default() };
        let error = small.validate().unwrap_err().to_string();
        assert_eq!(error, "header_size is 1023; expected 1 KiB to 256 KiB, in bytes");
    }
}
