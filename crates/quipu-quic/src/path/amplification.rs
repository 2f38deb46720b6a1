//! The anti-amplification limit.

/// Bytes that came and went before the peer's address was validated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amplification {
    validated: bool,
    received: u64,
    sent: u64,
}

impl Amplification {
    pub(crate) const fn new(validated: bool) -> Self {
        Amplification { validated, received: 0, sent: 0 }
    }

    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// The peer proved that it is there: true if it had not before.
    pub(crate) fn validate(&mut self) -> bool {
        !std::mem::replace(&mut self.validated, true)
    }

    /// Bytes that may be sent now.
    pub(crate) fn available(&self) -> usize {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8
        //# an endpoint MUST limit the amount of data it sends to the
        //# unvalidated address to three times the amount of data received from
        //# that address.
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1
        //# Prior to validating the client address, servers MUST NOT send more than three times as
        //# many bytes as the number of bytes they have received.
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
        //# The server MUST also limit the number of bytes it sends before validating the address
        //# of the client; see Section 8.
        if self.validated {
            return usize::MAX;
        }
        let left = self.received.saturating_mul(3).saturating_sub(self.sent);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// True if `bytes` more may be sent.
    pub(crate) fn allows(&self, bytes: usize) -> bool {
        bytes <= self.available()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_what_came_may_go_until_validation() {
        let mut limit = Amplification::new(false);
        limit.on_received(1200);
        limit.on_sent(2400);
        assert!(limit.allows(1200));
        assert!(!limit.allows(1201));
        assert!(limit.validate());
        assert!(!limit.validate());
        assert!(limit.allows(100_000));
    }
}
