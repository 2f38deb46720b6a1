//! A client that waits for the rest of a stream while nothing comes.
//!
//! A translator of addresses may have forgotten the client: what the server sends is lost then, and
//! the server learns of the new address only when the client sends something, which one that only
//! receives never does. So it asks, once in each silence.

use quipu_base::{Duration, Instant};
use quipu_policy::PathSet;

/// What a client watches for.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// The last STREAM frame did not end its stream: more is to come.
    expects_more: bool,
    /// When the last packet came, and on the path in which slot.
    heard: Option<(Instant, u8)>,
    /// The paths on which a PING is to go.
    asks: PathSet,
}

impl Silence {
    /// A packet came on the path in `slot`; `more`: whether its last STREAM frame left its stream
    /// open, if it had one.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Instant, slot: u8, more: Option<bool>) {
        self.heard = Some((now, slot));
        if let Some(more) = more {
            self.expects_more = more;
        }
    }

    /// The path on which the last packet came, if more is expected and was not asked for yet.
    pub(super) fn expected_on(&self) -> Option<u8> {
        self.heard.filter(|_| self.expects_more).map(|(_, slot)| slot)
    }

    /// When to ask: half as late again as the peer would send a probe of its own.
    pub(super) fn deadline(&self, probe_timeout: Duration) -> Option<Instant> {
        let (heard_at, _) = self.heard.filter(|_| self.expects_more)?;
        Some(heard_at + probe_timeout + probe_timeout.divided_by(2))
    }

    /// It is time: a PING goes on each of these paths. Not again before more of a stream came.
    pub(super) fn ask(&mut self, paths: PathSet) {
        self.asks = paths;
        self.expects_more = false;
    }

    /// Paths on which a PING is to go.
    pub(super) fn asks(&self) -> PathSet {
        self.asks
    }

    /// It went on `path`, or the path is gone.
    pub(super) fn on_asked(&mut self, path: quipu_policy::PathKey) {
        self.asks = self.asks.without(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::PathId;
    use quipu_policy::PathKey;

    const TIMEOUT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn only_the_rest_of_a_stream_is_asked_for_and_once_in_a_silence() {
        let mut silence = Silence::default();
        silence.on_packet(at(0), 0, None);
        assert_eq!(silence.deadline(TIMEOUT), None);
        silence.on_packet(at(10), 0, Some(true));
        silence.on_packet(at(20), 1, None);
        assert_eq!(silence.deadline(TIMEOUT), Some(at(170)));
        assert_eq!(silence.expected_on(), Some(1));
        let path = PathKey { slot: 1, id: PathId(1) };
        silence.ask(PathSet::EMPTY.with(path));
        assert_eq!((silence.deadline(TIMEOUT), silence.expected_on()), (None, None));
        silence.on_asked(path);
        assert!(silence.asks().is_empty());
        // An acknowledgement is no sign that more comes.
        silence.on_packet(at(300), 0, None);
        assert_eq!(silence.deadline(TIMEOUT), None);
        silence.on_packet(at(310), 0, Some(true));
        assert_eq!(silence.deadline(TIMEOUT), Some(at(460)));
        silence.on_packet(at(320), 0, Some(false));
        assert_eq!(silence.deadline(TIMEOUT), None);
    }
}
