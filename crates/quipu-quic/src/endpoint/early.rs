//! 0-RTT packets that overtook the Initial packet of their client.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2>

use std::collections::VecDeque;

use quipu_base::{Duration, Instant};

use crate::connection::Arrival;
use crate::wire::ConnectionId;

/// Datagrams kept at most, of all clients together. Our choice: three first flights.
const MAX_DATAGRAMS: usize = 32;

/// Bytes of a datagram that is kept, at most: our choice, more than a client sends before it knows
/// what the path carries.
const MAX_SIZE: usize = 2_048;

/// How long they are kept: our choice, more than datagrams overtake each other by.
const MAX_AGE: Duration = Duration::from_millis(500);

/// Datagrams that begin with a 0-RTT packet of a client that is not known yet. Nobody vouches for
/// them, so the oldest make room for new ones.
#[derive(Default)]
pub(super) struct EarlyDatagrams {
    kept: VecDeque<Kept>,
}

struct Kept {
    at: Instant,
    dcid: ConnectionId,
    arrival: Arrival,
    datagram: Vec<u8>,
}

impl EarlyDatagrams {
    /// Keeps a datagram until the client is known.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        dcid: ConnectionId,
        arrival: Arrival,
        datagram: &[u8],
    ) {
        self.expire(now);
        if datagram.len() > MAX_SIZE {
            return;
        }
        if self.kept.len() >= MAX_DATAGRAMS {
            self.kept.pop_front();
        }
        self.kept.push_back(Kept { at: now, dcid, arrival, datagram: datagram.to_vec() });
    }

    /// Takes out what came for a client, in order of arrival: its Initial packet is there.
    pub(super) fn take(&mut self, now: Instant, dcid: &ConnectionId) -> Vec<(Arrival, Vec<u8>)> {
        self.expire(now);
        if self.kept.is_empty() {
            return Vec::new();
        }
        let (own, others) = self.kept.drain(..).partition(|kept| kept.dcid == *dcid);
        self.kept = others;
        let own: VecDeque<Kept> = own;
        own.into_iter().map(|kept| (kept.arrival, kept.datagram)).collect()
    }

    /// Datagrams that are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    fn expire(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|kept| kept.at + MAX_AGE < now) {
            self.kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Route;

    fn arrival() -> Arrival {
        let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Arrival { route: Route::new(address(1), address(2)), ecn: 0 }
    }

    fn id(number: u8) -> ConnectionId {
        ConnectionId::new(&[number; 8]).unwrap()
    }

    fn bytes(taken: Vec<(Arrival, Vec<u8>)>) -> Vec<Vec<u8>> {
        taken.into_iter().map(|(_, datagram)| datagram).collect()
    }

    #[test]
    fn a_client_gets_its_own_in_order_and_once() {
        let mut early = EarlyDatagrams::default();
        for (client, datagram) in [(1, b"a"), (2, b"x"), (1, b"b")] {
            early.keep(Instant::ZERO, id(client), arrival(), datagram);
        }
        assert_eq!(bytes(early.take(Instant::ZERO, &id(1))), [b"a".to_vec(), b"b".to_vec()]);
        assert!(early.take(Instant::ZERO, &id(1)).is_empty());
        assert_eq!(bytes(early.take(Instant::ZERO, &id(2))), [b"x".to_vec()]);
    }

    #[test]
    fn a_flood_of_them_is_bounded_and_old_ones_go() {
        let mut early = EarlyDatagrams::default();
        for number in 0..200 {
            early.keep(Instant::ZERO, id(number), arrival(), &[number; 1_200]);
        }
        assert_eq!(early.len(), MAX_DATAGRAMS);
        assert!(early.take(Instant::ZERO, &id(0)).is_empty());
        let later = Instant::ZERO + MAX_AGE + Duration::from_nanos(1);
        assert!(early.take(later, &id(199)).is_empty());
        assert_eq!(early.len(), 0);
        early.keep(later, id(1), arrival(), &[1; MAX_SIZE + 1]);
        assert_eq!(early.len(), 0);
    }
}
