//! Receive windows. <https://www.rfc-editor.org/rfc/rfc9000#section-4>

/// Credit that we give: a window of constant size over what the application consumed.
///
/// A new limit is due when half of the window was consumed since the last one was told (our
/// choice, as in most implementations: two updates per window).
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWindow {
    size: u64,
    consumed: u64,
    limit: u64,
}

impl ReceiveWindow {
    /// A window of `size` bytes that the peer knows from our transport parameters.
    pub const fn new(size: u64) -> Self {
        ReceiveWindow { size, consumed: 0, limit: size }
    }

    /// What the peer may send up to.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Notes consumption of `bytes`. True if a new limit is due.
    pub const fn consume(&mut self, bytes: u64) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        self.is_due()
    }

    /// True if half of the window was consumed since the last limit.
    pub const fn is_due(&self) -> bool {
        self.next_limit() - self.limit >= self.size.div_ceil(2) && self.size > 0
    }

    /// The limit that [`grant`](Self::grant) would set.
    pub const fn next_limit(&self) -> u64 {
        self.consumed.saturating_add(self.size)
    }

    /// Moves the limit on.
    pub const fn grant(&mut self) -> u64 {
        self.limit = self.next_limit();
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_limit_is_due_after_half_a_window() {
        let mut window = ReceiveWindow::new(100);
        assert!(!window.consume(49));
        assert!(window.consume(1));
        assert_eq!(window.limit(), 100);
        assert_eq!(window.grant(), 150);
        assert!(!window.is_due());
    }
}
