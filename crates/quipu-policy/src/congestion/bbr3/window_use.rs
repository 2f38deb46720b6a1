//! Whether the window was used up.

/// Whether all of the window was in use at some point in the last round trip.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.2>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    in_this_round: bool,
    in_last_round: bool,
}

impl WindowUse {
    /// A packet left; `filled`: there was no room for another one.
    pub(super) fn on_sent(&mut self, filled: bool) {
        self.in_this_round |= filled;
    }

    /// A round trip begins.
    pub(super) fn on_round(&mut self) {
        self.in_last_round = std::mem::take(&mut self.in_this_round);
    }

    pub(super) fn is_full(&self) -> bool {
        self.in_this_round || self.in_last_round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_is_remembered_for_a_round() {
        let mut usage = WindowUse::default();
        usage.on_sent(true);
        usage.on_sent(false);
        assert!(usage.is_full());
        usage.on_round();
        assert!(usage.is_full());
        usage.on_round();
        assert!(!usage.is_full());
    }
}
