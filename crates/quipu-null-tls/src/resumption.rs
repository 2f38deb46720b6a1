//! Sessions to resume: what a ticket says, and where a client keeps it.
//!
//! A ticket is all that a server knows of a session, so it is good as often as it is shown. That of
//! `rustls` is good once; a client of this crate shows each once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_quic::tls::ServerStart;
use quipu_quic::transport_parameters::RememberedLimits;
use quipu_quic::wire::{EndedEarly, Reader, Version};

use crate::key::Secret;

/// Bytes of a ticket by which the application protocol is known.
const ALPN: usize = 4;

fn short(alpn: Option<&[u8]>) -> [u8; ALPN] {
    let [a, b, c, d, ..] = Secret::of(alpn.unwrap_or_default()).to_bytes();
    [a, b, c, d]
}

/// What a server tells itself by way of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Of the server's key, the name that the client asked for, and the version.
    pub(crate) issuer: Secret,
    /// The first bytes of the hash of the application protocol.
    alpn: [u8; ALPN],
    pub(crate) limits: RememberedLimits,
    pub(crate) early_data: bool,
}

impl Ticket {
    /// That of a connection.
    pub(crate) fn new(issuer: Secret, alpn: Option<&[u8]>, start: &Terms) -> Self {
        let Terms { limits, early_data } = *start;
        Ticket { issuer, alpn: short(alpn), limits, early_data }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.issuer.to_bytes());
        out.extend(self.alpn);
        out.extend(self.limits.to_bytes());
        out.push(u8::from(self.early_data));
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, EndedEarly> {
        Ok(Ticket {
            issuer: Secret::from_bytes(reader.array()?),
            alpn: reader.array()?,
            limits: RememberedLimits::from_bytes(&reader.array()?),
            early_data: reader.u8()? != 0,
        })
    }

    /// True if the application protocol is the same.
    pub(crate) fn fits(&self, alpn: Option<&[u8]>) -> bool {
        self.alpn == short(alpn)
    }

    /// True if a server goes on with the session: it made it itself, and its limits are no lower now.
    pub(crate) fn resumes(&self, issuer: Secret, now: &Terms) -> bool {
        self.issuer == issuer && now.limits.cover(&self.limits)
    }
}

/// What a server's sessions are made under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: RememberedLimits,
    pub(crate) early_data: bool,
}

impl Terms {
    pub(crate) fn of(start: &ServerStart<'_>) -> Self {
        let ServerStart { limits, early_data, .. } = *start;
        Terms { limits, early_data }
    }
}

/// A session that a client may resume.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) server_name: String,
    pub(crate) version: Version,
    pub(crate) ticket: Ticket,
    /// The server's transport parameters, encoded.
    pub(crate) parameters: Vec<u8>,
}

/// Sessions that a client keeps at most, of all servers together.
const MAX_KEPT: usize = 256;

/// Where a client keeps sessions: all its connections together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store(Arc<Mutex<VecDeque<Kept>>>);

impl Store {
    pub(crate) fn put(&self, kept: Kept) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KEPT {
            all.pop_front();
        }
        all.push_back(kept);
    }

    /// Takes out the newest session with a server in that version.
    pub(crate) fn take(&self, server_name: &str, version: Version) -> Option<Kept> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |kept: &Kept| kept.server_name == server_name && kept.version == version;
        let newest = all.iter().rposition(fits)?;
        all.remove(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight;

    fn ticket() -> Ticket {
        let limits = RememberedLimits { streams_bidi: 7, ..RememberedLimits::default() };
        let terms = Terms { limits, early_data: true };
        Ticket::new(Secret::of(b"server"), Some(b"h3"), &terms)
    }

    #[test]
    fn a_ticket_is_read_as_it_was_put_and_has_room_in_its_message() {
        let bytes = ticket().to_bytes();
        assert_eq!(Ticket::read(&mut Reader::new(&bytes)), Ok(ticket()));
        assert!(bytes.len() + 4 <= flight::SESSION_TICKET);
        assert!(bytes.len() + 3 <= flight::resumption(false));
    }

    #[test]
    fn a_client_shows_the_newest_ticket_of_a_server_and_version_once() {
        let store = Store::default();
        let keep = |server_name: &str, version, nth| {
            let (server_name, parameters) = (server_name.to_owned(), vec![nth]);
            store.put(Kept { server_name, version, ticket: ticket(), parameters });
        };
        keep("a", Version::V1, 1);
        keep("a", Version::V1, 2);
        keep("a", Version::V2, 3);
        keep("b", Version::V1, 4);
        let take = |name, version| Some(store.take(name, version)?.parameters);
        assert_eq!(take("a", Version::V1), Some(vec![2]));
        assert_eq!(take("a", Version::V1), Some(vec![1]));
        assert_eq!(take("a", Version::V1), None);
        assert_eq!(take("a", Version::V2), Some(vec![3]));
        for nth in 0..=255 {
            keep("c", Version::V1, nth);
        }
        assert_eq!(take("b", Version::V1), None);
    }
}
