//! One deadline for each node, re-armed without an event for each move.

use quipu_base::Instant;

/// The wake-up events of one node that wait in the event queue.
///
/// A deadline that moves later leaves its event where it is: when that fires, the node is asked
/// again. Only a deadline earlier than all events that wait needs a new one. So a deadline that
/// moves with each packet makes one event per expiry, not one per packet.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    /// Times of the events, latest first, all different.
    pending: Vec<Instant>,
}

impl WakeUps {
    /// The node wants to be woken at `deadline`. Returns when a new event must happen, if one must.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, deadline: Option<Instant>) -> Option<Instant> {
        let at = deadline?.max(now);
        // Nothing lies after the end of time, and no event needs to wait for it.
        if at == Instant::FAR_FUTURE || self.pending.last().is_some_and(|&next| next <= at) {
            return None;
        }
        self.pending.push(at);
        Some(at)
    }

    /// The next of the events has fired.
    #[inline]
    pub(crate) fn fired(&mut self) {
        self.pending.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Instant> {
        Some(Instant::from_nanos(nanos))
    }

    #[test]
    fn only_an_earlier_deadline_makes_an_event() {
        let mut wake_ups = WakeUps::default();
        assert_eq!(wake_ups.arm(Instant::ZERO, at(100)), at(100));
        assert_eq!(wake_ups.arm(Instant::ZERO, at(100)), None);
        assert_eq!(wake_ups.arm(Instant::ZERO, at(150)), None);
        assert_eq!(wake_ups.arm(Instant::ZERO, None), None);
        assert_eq!(wake_ups.arm(Instant::ZERO, at(50)), at(50));
        wake_ups.fired();
        // The event at 100 is still there.
        assert_eq!(wake_ups.arm(Instant::from_nanos(50), at(150)), None);
        wake_ups.fired();
        assert_eq!(wake_ups.arm(Instant::from_nanos(100), at(150)), at(150));
    }

    #[test]
    fn a_deadline_in_the_past_is_due_now() {
        let mut wake_ups = WakeUps::default();
        assert_eq!(wake_ups.arm(Instant::from_nanos(70), at(10)), at(70));
    }

    #[test]
    fn the_end_of_time_needs_no_event() {
        assert_eq!(WakeUps::default().arm(Instant::ZERO, Some(Instant::FAR_FUTURE)), None);
    }
}
