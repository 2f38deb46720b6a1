//! Credit for bodies. <https://www.rfc-editor.org/rfc/rfc9113#section-5.2>

/// The most that a window may come to, in octets.
/// <https://www.rfc-editor.org/rfc/rfc9113#section-6.9.1>
pub const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// Octets of a window before anything is said of it.
/// <https://www.rfc-editor.org/rfc/rfc9113#section-6.9.2>
pub const DEFAULT_WINDOW: u32 = 65_535;

/// What the peer lets this end send. Below zero after the peer lowered what streams begin with.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(octets: u32) -> Self {
        SendWindow(i64::from(octets))
    }

    /// Octets that may be sent.
    pub(super) fn credit(self) -> u64 {
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.2
        //# A sender MUST track the negative flow-control window and MUST NOT send new
        //# flow-controlled frames until it receives WINDOW_UPDATE frames that cause the
        //# flow-control window to become positive.
        u64::try_from(self.0).unwrap_or(0)
    }

    /// Octets were sent.
    pub(super) fn take(&mut self, octets: u64) {
        self.0 = self.0.saturating_sub(i64::try_from(octets).unwrap_or(i64::MAX));
    }

    /// The peer gave, or by a setting took, credit; false if there would be too much, and nothing is
    /// changed.
    #[must_use]
    pub(super) fn grow(&mut self, by: i64) -> bool {
        let grown = self.0.saturating_add(by);
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.1
        //# A sender MUST NOT allow a flow-control window to exceed 2^31-1 octets.
        let fits = grown <= i64::from(LARGEST_WINDOW);
        if fits {
            self.0 = grown;
        }
        fits
    }
}

/// What this end lets the peer send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    /// What the window should come to.
    size: u32,
    /// Octets that the peer may send.
    left: u64,
    /// Octets that were read and not given back.
    used: u64,
}

impl ReceiveWindow {
    /// A window of `size`, of which the peer has `left` by now.
    pub(super) fn new(size: u32, left: u32) -> Self {
        ReceiveWindow { size, left: u64::from(left), used: 0 }
    }

    /// Octets came; false if they are more than were allowed.
    #[must_use]
    pub(super) fn receive(&mut self, octets: u64) -> bool {
        let left = self.left.checked_sub(octets);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Octets were read, or need not be: what to give back to the peer, if it is time.
    #[must_use]
    pub(super) fn consume(&mut self, octets: u64) -> Option<u32> {
        self.used = self.used.saturating_add(octets);
        if self.used <= u64::from(self.size / 2) {
            return None;
        }
        // At most what was received, which is less than a window.
        let increment = u32::try_from(self.used).unwrap_or(LARGEST_WINDOW).min(LARGEST_WINDOW);
        self.used -= u64::from(increment);
        self.left += u64::from(increment);
        Some(increment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_may_be_negative_and_never_grows_too_large() {
        let mut window = SendWindow::new(DEFAULT_WINDOW);
        window.take(60_000);
        assert!(window.grow(-60_000));
        assert_eq!((window.0, window.credit()), (-54_465, 0));
        assert!(window.grow(i64::from(LARGEST_WINDOW)));
        let credit = window.credit();
        assert!(!window.grow(i64::from(LARGEST_WINDOW)));
        assert_eq!(window.credit(), credit);
        assert!(window.grow(i64::from(LARGEST_WINDOW) - credit as i64));
        assert!(!window.grow(1));
    }

    #[test]
    fn more_than_half_a_window_is_given_back_at_once() {
        let mut window = ReceiveWindow::new(1_000, 1_000);
        assert!(window.receive(900));
        assert_eq!(window.consume(500), None);
        assert_eq!(window.consume(1), Some(501));
        assert!(window.receive(601));
        assert!(!window.receive(1));
        let mut least = ReceiveWindow::new(1, 1);
        assert!(least.receive(1));
        assert_eq!(least.consume(1), Some(1));
    }
}
