//! What stands between a node and the network: a translator of addresses that forgets, a link that
//! carries shorter datagrams than before.

use std::net::SocketAddr;

use quipu_base::{Bytes, Instant};
use quipu_sim::{Envelope, Node, Outgoing};

use crate::{Exchange, ExchangeNode};

/// What a middlebox does to the datagrams of the node behind it, both ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Middlebox {
    /// When an address of the node appears as another, in order of time.
    pub rebindings: Vec<Rebinding>,
    /// What is too long to pass, in order of time.
    pub limits: Vec<SizeLimit>,
}

/// From an instant on, datagrams of one address of the node appear to come from another, and what
/// is sent to the address before is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebinding {
    /// When.
    pub at: Instant,
    /// The node's own address.
    pub inside: SocketAddr,
    /// What the network sees.
    pub outside: SocketAddr,
}

/// From an instant on, longer datagrams do not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit {
    /// When.
    pub at: Instant,
    /// The node's own address; `None`: all of them.
    pub inside: Option<SocketAddr>,
    /// The longest UDP payload that passes.
    pub most: Bytes,
}

impl Middlebox {
    /// True if it lets everything pass as it is.
    pub fn is_transparent(&self) -> bool {
        self.rebindings.is_empty() && self.limits.is_empty()
    }

    /// What the network sees of the node's address `inside`.
    pub(crate) fn outside(&self, now: Instant, inside: SocketAddr) -> SocketAddr {
        let past = self.rebindings.iter().rev().filter(|known| known.at <= now);
        past.into_iter().find(|known| known.inside == inside).map_or(inside, |known| known.outside)
    }

    /// The node's address that the network sees as `outside` now, if it does.
    pub(crate) fn inside(&self, now: Instant, outside: SocketAddr) -> Option<SocketAddr> {
        let known = self.rebindings.iter().find(|known| known.outside == outside);
        let inside = known.map_or(outside, |known| known.inside);
        (self.outside(now, inside) == outside).then_some(inside)
    }

    pub(crate) fn passes(&self, now: Instant, inside: SocketAddr, length: usize) -> bool {
        let concerns = |limit: &&SizeLimit| {
            limit.at <= now && limit.inside.is_none_or(|address| address == inside)
        };
        let limit = self.limits.iter().rev().find(concerns);
        limit.is_none_or(|limit| Bytes(length as u64) <= limit.most)
    }
}

/// A node behind a middlebox.
pub struct Behind<N> {
    node: N,
    middlebox: Middlebox,
}

impl<N> Behind<N> {
    /// `node` behind `middlebox`.
    pub fn new(node: N, middlebox: Middlebox) -> Self {
        Behind { node, middlebox }
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }
}

impl<N: Node> Node for Behind<N> {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let Some(local) = self.middlebox.inside(now, envelope.local) else { return };
        if self.middlebox.passes(now, local, payload.len()) {
            self.node.handle_datagram(now, &Envelope { local, ..*envelope }, payload);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.node.poll_transmit(now, out);
        let middlebox = &self.middlebox;
        out.filter(|envelope, payload| {
            let passes = middlebox.passes(now, envelope.local, payload.len());
            envelope.local = middlebox.outside(now, envelope.local);
            passes
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node.poll_timeout()
    }
}

impl<N: ExchangeNode> ExchangeNode for Behind<N> {
    fn exchange(&self) -> Option<&Exchange> {
        self.node.exchange()
    }

    fn failure(&self) -> Option<&str> {
        self.node.failure()
    }

    fn established_paths(&self) -> usize {
        self.node.established_paths()
    }

    fn key_updates(&self) -> u64 {
        self.node.key_updates()
    }

    fn early_data(&self) -> Option<bool> {
        self.node.early_data()
    }

    fn resumed(&self) -> Option<bool> {
        self.node.resumed()
    }

    fn datagram_size(&self) -> Option<u16> {
        self.node.datagram_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client_address, server_address};

    #[test]
    fn an_address_is_translated_until_the_next_rebinding() {
        let (inside, at) = (client_address(0), Instant::from_nanos);
        let [first, second] = [1, 2].map(|port| SocketAddr::new(inside.ip(), port));
        let rebinding = |time, outside| Rebinding { at: at(time), inside, outside };
        let rebindings = vec![rebinding(10, first), rebinding(20, second)];
        let nat = Middlebox { rebindings, ..Middlebox::default() };
        for (now, seen) in [(9, inside), (10, first), (19, first), (20, second)] {
            assert_eq!(nat.outside(at(now), inside), seen);
            for address in [inside, first, second] {
                let found = nat.inside(at(now), address);
                assert_eq!(found, (address == seen).then_some(inside), "{address} at {now}");
            }
        }
        assert_eq!(nat.inside(at(5), server_address()), Some(server_address()));
    }

    #[test]
    fn the_last_limit_of_an_address_counts() {
        let limit = |time, inside, most| SizeLimit {
            at: Instant::from_nanos(time),
            inside,
            most: Bytes(most),
        };
        let limits = vec![limit(10, None, 1300), limit(20, Some(client_address(1)), 1200)];
        let narrow = Middlebox { limits, ..Middlebox::default() };
        let passes = |now, path, length| {
            narrow.passes(Instant::from_nanos(now), client_address(path), length)
        };
        assert!(passes(9, 0, 1400) && !passes(10, 0, 1301) && passes(10, 1, 1300));
        assert!(passes(20, 0, 1300) && !passes(20, 1, 1201));
    }
}
