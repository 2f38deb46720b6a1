//! Clients that wait for the application's decision.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use quipu_base::{Bytes, Instant};

use super::tokens::{Checked, TokenState};
use crate::connection::Arrival;
use crate::route::Route;
use crate::tls::Keys;
use crate::wire::{ConnectionId, Version};

/// Datagrams of a waiting client that are kept, at most: a long ClientHello and what comes with it.
/// Our choice.
const MAX_DATAGRAMS: usize = 8;

/// A client that wants to connect. Nothing is kept of it but its first datagrams: neither TLS nor
/// policies have begun. Decide with [`Endpoint::admit`](crate::Endpoint::admit),
/// [`retry`](crate::Endpoint::retry), [`refuse`](crate::Endpoint::refuse) or
/// [`ignore`](crate::Endpoint::ignore); without a decision it is forgotten at the end of
/// [`Admission::handshake_timeout`](super::Admission::handshake_timeout).
#[derive(Debug)]
#[must_use = "a client waits for a decision"]
pub struct Incoming {
    number: u64,
    route: Route,
    version: Version,
    dcid: ConnectionId,
    token: TokenState,
    server_name: Option<String>,
}

impl Incoming {
    /// The client's address, which may be forged unless [`Incoming::token`] is valid.
    pub fn remote_address(&self) -> SocketAddr {
        self.route.remote
    }

    /// The address that the client sent to.
    pub fn local_address(&self) -> SocketAddr {
        self.route.local
    }

    /// Both addresses, and the interface.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The version of the client's first packet: that of the connection, unless another of
    /// [`TransportConfig::versions`](crate::TransportConfig::versions) is wanted more.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The destination connection ID of the client's first packet since the last Retry.
    pub fn destination(&self) -> ConnectionId {
        self.dcid
    }

    /// What the client's token says.
    pub fn token(&self) -> TokenState {
        self.token
    }

    /// The name of the server that the client asks for; `None` if it asks for none, or if its first
    /// datagram does not hold the whole ClientHello.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// True unless the client has followed a Retry already.
    pub fn may_retry(&self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
        //# A client MUST accept and process at most one Retry packet for each connection attempt.
        self.token != TokenState::FromRetry
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

/// A client's first packet, which opened: the client made it for us, whoever the client is.
pub(super) struct FirstPacket {
    pub(super) route: Route,
    pub(super) version: Version,
    pub(super) dcid: ConnectionId,
    pub(super) scid: ConnectionId,
    pub(super) token: Checked,
    pub(super) server_name: Option<String>,
    /// When it came.
    pub(super) at: Instant,
    /// The keys of Initial packets.
    pub(super) keys: Keys,
}

/// A client that waits, with all that came from it.
pub(super) struct Waiter {
    pub(super) first: FirstPacket,
    /// In order of arrival, the first packet's first.
    pub(super) datagrams: Vec<(Arrival, Vec<u8>)>,
    until: Instant,
}

impl Waiter {
    fn bytes(&self) -> usize {
        self.datagrams.iter().map(|(_, datagram)| datagram.len()).sum()
    }
}

/// All that wait, in order of arrival.
#[derive(Default)]
pub(super) struct Waiting {
    waiters: BTreeMap<u64, Waiter>,
    by_dcid: BTreeMap<ConnectionId, u64>,
    /// Bytes of all datagrams kept.
    bytes: usize,
    next: u64,
    /// Those from here on were not handed out yet.
    unseen: u64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// A client waits until `until`, with its first datagram. `false` if there is no room: all hold
    /// `max_bytes` together at most.
    pub(super) fn insert(
        &mut self,
        until: Instant,
        first: FirstPacket,
        arrival: Arrival,
        datagram: &[u8],
        max_bytes: Bytes,
    ) -> bool {
        if (self.bytes + datagram.len()) as u64 > max_bytes.0 {
            return false;
        }
        let number = self.next;
        self.next += 1;
        self.bytes += datagram.len();
        self.by_dcid.insert(first.dcid, number);
        let datagrams = vec![(arrival, datagram.to_vec())];
        self.waiters.insert(number, Waiter { first, datagrams, until });
        true
    }

    /// Keeps a further datagram for a client that waits. `false` if `dcid` is none of theirs.
    pub(super) fn keep(
        &mut self,
        dcid: &ConnectionId,
        arrival: Arrival,
        datagram: &[u8],
        max_bytes: Bytes,
    ) -> bool {
        let Some(number) = self.by_dcid.get(dcid) else { return false };
        let Some(waiter) = self.waiters.get_mut(number) else { return false };
        let fits = (self.bytes + datagram.len()) as u64 <= max_bytes.0;
        if fits && waiter.datagrams.len() < MAX_DATAGRAMS {
            self.bytes += datagram.len();
            waiter.datagrams.push((arrival, datagram.to_vec()));
        }
        true
    }

    /// The next that was not handed out yet.
    pub(super) fn next_unseen(&mut self) -> Option<Incoming> {
        let (&number, waiter) = self.waiters.range(self.unseen..).next()?;
        self.unseen = number + 1;
        let first = &waiter.first;
        Some(Incoming {
            number,
            route: first.route,
            version: first.version,
            dcid: first.dcid,
            token: first.token.state,
            server_name: first.server_name.clone(),
        })
    }

    /// The client is decided about, or forgotten.
    pub(super) fn take(&mut self, number: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&number)?;
        self.by_dcid.remove(&waiter.first.dcid);
        self.bytes -= waiter.bytes();
        Some(waiter)
    }

    /// When the oldest is forgotten.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiters.first_key_value().map(|(_, waiter)| waiter.until)
    }

    /// Forgets those whose time has come.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some((&number, waiter)) = self.waiters.first_key_value()
            && waiter.until <= now
        {
            self.take(number);
        }
    }

    /// Bytes of all datagrams kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
