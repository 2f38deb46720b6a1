//! What every application over connections has in common: input, then work, then output.

use quipu_base::Instant;
use quipu_quic::Connection;
use quipu_sim::{Envelope, Outgoing};

use super::error::RunError;
use super::party::Party;

/// One end of connections and what it does with them. Drive it as a node of the world; after a failure
/// it does no more, but its connections go on.
pub(super) trait Application {
    fn party(&self) -> &Party;

    fn party_mut(&mut self) -> &mut Party;

    /// Does everything that can be done now: after each input.
    fn act(&mut self, now: Instant) -> Result<(), RunError>;

    /// When it wants to act on its own.
    fn next_at(&self) -> Option<Instant>;

    /// Sends all that can be sent now.
    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.party_mut().poll_transmit(now, out);
    }

    /// A datagram came, in the first `length` bytes of a buffer that may be exchanged.
    fn handle_buffer(
        &mut self,
        now: Instant,
        from: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        self.party_mut().handle_buffer(now, from, buffer, length);
        self.drive(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.party_mut().handle_timeout(now);
        self.drive(now);
    }

    /// A socket that was full takes datagrams again. Nothing has come, so that there is nothing to do but
    /// to send.
    fn handle_unblocked(&mut self) {
        self.party_mut().handle_unblocked();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Instant::earlier(self.party().poll_timeout(), self.next_at())
    }

    /// Acts, unless it has failed.
    fn drive(&mut self, now: Instant) {
        if !self.has_failed()
            && let Err(error) = self.act(now)
        {
            self.party_mut().fail(error);
        }
    }

    /// True if it cannot go on.
    fn has_failed(&self) -> bool {
        self.party().has_failed()
    }

    /// Why it failed, if it did.
    fn take_error(&mut self) -> Option<RunError> {
        self.party_mut().take_error()
    }

    /// Connection `line` of its own, once there is one; mostly there is only number 0.
    fn connection(&self, line: usize) -> Option<&Connection> {
        self.party().connection(line)
    }
}
