//! What connections may cost.

use std::time::Duration;

use quipu_base::Bytes;
use thiserror::Error;

/// What clients may use of a server over TCP. All defaults are our choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time, at least 1; further ones wait in the kernel. 512 unless set: half of the
    /// files that a process may usually open, so that there are some left for what is served.
    pub connections: usize,
    /// From the connection to the end of the TLS handshake. 10 s unless set.
    pub handshake: Duration,
    /// From the first moment that a request of HTTP/1.1 can come to the end of its headers, which is also how
    /// long a connection of HTTP/1.1 may rest between requests. 20 s unless set.
    pub header: Duration,
    /// Headers of a request, 1 KiB to 256 KiB; beyond, HTTP/1.1 answers with 431, and HTTP/2 refuses the stream. 16 KiB
    /// unless set.
    pub header_size: Bytes,
    /// Header fields of a request of HTTP/1.1, at least 1. 100 unless set.
    pub header_count: usize,
    /// Requests of one HTTP/2 connection at the same time, at least 1. 100 unless set, the least that RFC 9113
    /// recommends.
    pub streams: u32,
    /// How long nothing may arrive and nothing leave on a connection; then it is told to end, and cut after the
    /// same time again. 60 s unless set.
    pub idle: Duration,
    /// How long connections may take to end when the server stops, before they are cut. 10 s unless set.
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

/// A limit with which no server works.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name} is {value}; expected {expected}")]
#[non_exhaustive]
pub struct LimitsError {
    /// Which.
    pub name: &'static str,
    /// What it is.
    pub value: String,
    /// What it should be.
    pub expected: &'static str,
}

impl Limits {
    /// Checks all of them.
    ///
    /// # Errors
    /// [`LimitsError`] for the first that is out of its range.
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
