//! What a congestion window lets a sender send, at most.

/// The bytes of UDP payload that a sender can have sent on a path since an instant, if its window has
/// not been used before, grows by no more than what is acknowledged, and an acknowledgement takes at
/// least the round trip.
///
/// Let X(t) be what was sent within t of that instant and counts against the window. What is settled
/// by then, acknowledged or lost, left a round trip R before: at most what was in flight at first, I,
/// and X(t − R). The window is at most W and what was acknowledged since, and no more than the window
/// is in flight. So X(t) ≤ W + I + 2·X(t − R), and further the probes that go beyond the window: two
/// datagrams each time a probe timeout passes, which is no shorter than R unless it is the first.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// When the first byte may leave, in nanoseconds.
    from: u64,
    round_trip: u64,
    /// X at the start of each round trip, up to more than any page has.
    sent: Vec<u64>,
}

/// What a [`Window`] is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// When the first byte may leave, in nanoseconds.
    pub(super) from: u64,
    /// The least round trip, in nanoseconds.
    pub(super) round_trip: u64,
    /// The least time between two probe timeouts.
    pub(super) probe_timeout: u64,
    /// The window and what is in flight, at most, when the first byte leaves.
    pub(super) first: u64,
    /// The largest datagram.
    pub(super) datagram: u64,
}

/// Beyond this many bytes in a round trip a window limits nothing.
const ENDLESS: u64 = 1 << 40;

impl Window {
    /// The window of a path; `None` if it limits nothing, as its round trip may be zero.
    pub(super) fn new(opening: Opening) -> Option<Window> {
        let Opening { from, round_trip, probe_timeout, first, datagram } = opening;
        if round_trip == 0 || probe_timeout == 0 {
            return None;
        }
        let mut sent: Vec<u64> = Vec::new();
        while sent.last().is_none_or(|last| *last < ENDLESS) {
            let rounds = sent.len() as u64 + 1;
            let timeouts = rounds.saturating_mul(round_trip) / probe_timeout + 1;
            let probes = timeouts.saturating_mul(datagram).saturating_mul(2);
            let before = sent.last().map_or(0, |last| last.saturating_mul(2));
            sent.push(first.saturating_add(probes).saturating_add(before));
        }
        Some(Window { from, round_trip, sent })
    }

    /// Bytes of UDP payload that can have left by `at`.
    pub(super) fn sent_by(&self, at: u64) -> u64 {
        let Some(since) = at.checked_sub(self.from) else { return 0 };
        let round = usize::try_from(since / self.round_trip).unwrap_or(usize::MAX);
        self.sent.get(round).copied().unwrap_or(u64::MAX)
    }
}
