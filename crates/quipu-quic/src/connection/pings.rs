//! Signs of life: PINGs for the application, and those that keep a connection and its paths alive.

use quipu_base::{Duration, Instant, PathId};
use quipu_policy::{PathState, PathView};

use super::transmit::Full;
use super::{Connection, ConnectionEvent};
use crate::outbox::Outbox;
use crate::path::PathMut;
use crate::recovery::SentControl;
use crate::wire::Frame;

/// Size of a datagram with a PING, and acknowledgements if there are any; our choice.
const PING_DATAGRAM: u64 = 400;

impl Connection {
    /// Asks the peer for a sign of life on a path. The answer is [`ConnectionEvent::Pong`]; a PING
    /// that is lost is sent again until there is one, or the path is gone. Questions on one path that
    /// overlap have one answer.
    ///
    /// Returns whether there is such a path, validated and not abandoned.
    pub fn ping(&mut self, _now: Instant, path: PathId) -> bool {
        let Some(slot) = self.shared.paths.slot_of(path) else { return false };
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return false };
        if !can_ping(view) || !self.lifecycle.is_established() {
            return false;
        }
        data.pings.ask();
        self.rest.end();
        true
    }

    /// Nothing was sent on the connection for so long that its peer may think it dead.
    pub(super) fn keep_alive(&mut self, now: Instant) {
        // Also if there is no path for it: the next try has its time.
        self.lifecycle.on_kept_alive(now);
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# To keep the connection from closing, a sender that is flow control limited SHOULD
        //# periodically send a STREAM_DATA_BLOCKED or DATA_BLOCKED frame when it has no
        //# ack-eliciting packets in flight.
        // Half of the idle timeout is our choice.
        if self.shared.streams.is_blocked() {
            return self.shared.streams.repeat_blocked();
        }
        let path = self.scheduler.control_path(now, &self.shared);
        let path = path.or_else(|| self.shared.paths.views.least_srtt_usable());
        if let Some(data) = path.and_then(|key| self.shared.paths.get_mut(key.slot)) {
            data.pings.keep_alive();
        }
    }

    /// When the path in `slot` needs a sign of life.
    pub(super) fn path_keep_alive_at(&self, slot: u8) -> Option<Instant> {
        let interval = self.config.path_keep_alive?;
        let data = self.shared.paths.get(slot).filter(|data| !data.pings.keeps_alive())?;
        let view = self.shared.paths.views.get(data.key).filter(|view| can_ping(view))?;
        Some(view.last_sent_at? + interval)
    }

    /// Nothing was sent on the path in `slot` for so long that what lies on it may forget it.
    pub(super) fn keep_path_alive(&mut self, slot: u8) {
        if let Some(data) = self.shared.paths.get_mut(slot) {
            data.pings.keep_alive();
        }
    }

    /// Sends a PING on the path in `slot`, if one is to go and can.
    pub(super) fn send_pings(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let Some(PathMut { data, view: Some(view), .. }) = self.shared.paths.at_mut(slot) else {
            return Ok(());
        };
        let goes = data.pings.are_due()
            && can_ping(view)
            && !view.blocked
            && view.room().0 >= PING_DATAGRAM
            && data.addresses.active().amplification.allows(PING_DATAGRAM as usize);
        if !goes {
            return Ok(());
        }
        self.send_one_rtt(now, outbox, slot, PING_DATAGRAM as usize, |connection, packet| {
            connection.write_acks(now, packet);
            let pings = connection.shared.paths.get_mut(slot).map(|data| &mut data.pings);
            let frame = |writer: &mut crate::wire::Writer<'_>| Frame::Ping.write(writer);
            if pings.is_some_and(|pings| pings.on_sent()) {
                // The application is told how long the answer took.
                if connection.asks_for_acks_at_once() {
                    packet.write_eliciting(|writer| Frame::ImmediateAck.write(writer));
                }
                packet.write_control(SentControl::Ping, frame);
            } else {
                packet.write_eliciting(frame);
            }
        })?;
        Ok(())
    }

    /// The packet with a PING of the application, which left `ago`, was acknowledged on its path.
    pub(super) fn on_ping_acked(&mut self, slot: u8, ago: Duration) {
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        let path = data.key.id;
        if data.pings.on_acked() {
            self.events.tell(ConnectionEvent::Pong(path, ago));
        }
    }
}

fn can_ping(view: &PathView) -> bool {
    matches!(view.state, PathState::Usable | PathState::Suspect)
}
