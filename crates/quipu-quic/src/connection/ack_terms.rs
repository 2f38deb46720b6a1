//! Acknowledgements on request: what the peer asks of us, and what we ask of it. Requests hold for the
//! connection; packets of each path count by themselves.
//! <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency>

use quipu_base::{Bytes, Duration, Instant};

use super::Connection;
use super::packet::PacketBuilder;
use crate::config::{AckRequest, TransportConfig};
use crate::error::TransportError;
use crate::recovery::{AckSettings, SentControl};
use crate::wire::Frame;
use crate::wire::frame::AckFrequency;

/// Values of `max_ack_delay` from this on are invalid.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-18.2>
const MAX_DELAY: Duration = Duration::from_millis(1 << 14);

/// No other request is made within so long; our choice.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// By which terms this end acknowledges, and by which it asked the peer to.
#[derive(Debug)]
pub(super) struct AckTerms {
    own: AckSettings,
    /// Number of the latest request of the peer.
    heard: Option<u64>,
    asking: Asking,
}

/// What is asked of the peer.
#[derive(Debug, Default)]
struct Asking {
    /// Number of the next request.
    next: u64,
    /// What was asked last, acknowledged or not.
    last: Option<Wish>,
    /// It is to be sent.
    waits: bool,
    /// Its number, while it is in flight.
    in_flight: Option<u64>,
    /// When a change is looked for again.
    look_at: Instant,
}

/// How packets are to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    every: u32,
    max_delay: Duration,
    reordering: u64,
}

impl Wish {
    /// True if the other differs by more than a quarter in something.
    fn is_far_from(&self, other: &Wish) -> bool {
        let far = |one: u64, other: u64| one.abs_diff(other).saturating_mul(4) > other;
        self.reordering != other.reordering
            || far(self.every.into(), other.every.into())
            || far(self.max_delay.as_micros(), other.max_delay.as_micros())
    }
}

impl AckTerms {
    pub(super) fn new(config: &TransportConfig) -> Self {
        AckTerms {
            own: AckSettings::new(config.ack_every, config.max_ack_delay),
            heard: None,
            asking: Asking::default(),
        }
    }

    /// By which packets of the peer are acknowledged.
    pub(super) fn own(&self) -> &AckSettings {
        &self.own
    }

    /// The peer asks for acknowledgements. `least`: the least delay that it was told.
    fn on_request(
        &mut self,
        request: &AckFrequency,
        least: Duration,
    ) -> Result<(), TransportError> {
        // "Receipt of an invalid value MUST be treated as a connection error of type
        // PROTOCOL_VIOLATION."
        // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-4
        let max_delay = Duration::from_micros(request.max_delay.min(MAX_DELAY.as_micros()));
        if max_delay < least || max_delay >= MAX_DELAY {
            return Err(TransportError::protocol_violation("asked for an invalid max_ack_delay"));
        }
        // "A receiving endpoint MUST ignore a received ACK_FREQUENCY frame unless the Sequence Number
        // value in the frame is greater than the largest processed value."
        if self.heard.is_some_and(|heard| request.sequence <= heard) {
            return Ok(());
        }
        self.heard = Some(request.sequence);
        self.own = AckSettings {
            every: u32::try_from(request.threshold).unwrap_or(u32::MAX).saturating_add(1),
            max_delay,
            reordering: request.reordering,
            // "If the Ack-Eliciting Threshold is larger than 1"
            // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-6.3
            first_mark_only: request.threshold > 1,
        };
        Ok(())
    }
}

impl Asking {
    /// The wish of now: it is asked for if it is far from what was asked last, and that is not in
    /// flight.
    fn wish(&mut self, wish: Wish) {
        let changes = self.last.is_none_or(|last| wish.is_far_from(&last));
        if changes && self.in_flight.is_none() && !self.waits {
            self.last = Some(wish);
            self.waits = true;
        }
    }

    /// The request that is to be sent.
    fn request(&self) -> Option<AckFrequency> {
        let wish = self.last.filter(|_| self.waits)?;
        Some(AckFrequency {
            sequence: self.next,
            threshold: u64::from(wish.every) - 1,
            max_delay: wish.max_delay.as_micros(),
            reordering: wish.reordering,
        })
    }

    /// It was written. Returns how long acknowledgements may be delayed from now on; `before`: until now.
    // "Until the packet carrying the ACK_FREQUENCY frame is acknowledged, the endpoint MUST use the
    // greater of the current max_ack_delay and the value that is in flight when computing the PTO
    // period."
    // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-7
    fn on_sent(&mut self, before: Duration) -> Duration {
        self.waits = false;
        self.in_flight = Some(self.next);
        self.next += 1;
        self.last.map_or(before, |wish| before.max(wish.max_delay))
    }

    /// A request was acknowledged. How long acknowledgements may be delayed from now on.
    fn on_acked(&mut self, sequence: u64) -> Option<Duration> {
        // The answer to an older one says nothing of later ones.
        self.in_flight.take_if(|in_flight| *in_flight == sequence)?;
        Some(self.last?.max_delay)
    }

    /// A request was lost: it is made again, with another number.
    fn on_lost(&mut self, sequence: u64) {
        if self.in_flight.take_if(|in_flight| *in_flight == sequence).is_some() {
            self.waits = true;
        }
    }
}

impl Connection {
    /// ACK_FREQUENCY came.
    pub(super) fn on_ack_frequency(
        &mut self,
        request: &AckFrequency,
    ) -> Result<(), TransportError> {
        let least = self.require_ack_frequency()?;
        self.ack_terms.on_request(request, least)
    }

    /// The least delay that the peer may ask for; an error if it was told to ask for nothing.
    pub(super) fn require_ack_frequency(&self) -> Result<Duration, TransportError> {
        let Some(config) = self.config.ack_frequency else {
            let wrong = "acknowledgements on request were not negotiated";
            return Err(TransportError::protocol_violation(wrong));
        };
        // As it was told: in microseconds.
        Ok(Duration::from_micros(config.least_delay.as_micros()))
    }

    /// Whether the peer takes IMMEDIATE_ACK, and we send it.
    pub(super) fn asks_for_acks_at_once(&self) -> bool {
        self.config.ack_frequency.is_some() && self.handshake.peer().min_ack_delay.is_some()
    }

    /// Whether we ask the peer for acknowledgements.
    pub(super) fn asks_for_acks(&self) -> bool {
        self.config.ack_frequency.is_some_and(|config| config.request.is_some())
    }

    /// What we want of the peer may have changed: asked for then, once in a round trip at most.
    pub(super) fn look_at_ack_terms(&mut self, now: Instant) {
        let Some(request) = self.config.ack_frequency.and_then(|config| config.request) else {
            return;
        };
        let Some(least) = self.handshake.peer().min_ack_delay else { return };
        if now < self.ack_terms.asking.look_at {
            return;
        }
        let Some((wish, srtt)) = self.wish_for_acks(request, least) else { return };
        self.ack_terms.asking.look_at = now + srtt.max(LEAST_INTERVAL);
        self.ack_terms.asking.wish(wish);
    }

    /// How our packets should be acknowledged now, and the least round-trip time.
    fn wish_for_acks(&self, request: AckRequest, least: Duration) -> Option<(Wish, Duration)> {
        let usable = || self.shared.paths.views.usable();
        // "A data sender can set the Requested Max Ack Delay value to no more than the estimated round
        // trip time. The sender can also improve feedback [...] by setting the Ack-Eliciting Threshold
        // to a value no larger than number of maximum-sized packets that fit into the current
        // congestion window."
        // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-8.1
        let srtt = usable().filter_map(|view| view.srtt).min()?;
        let packets = usable().filter_map(|view| {
            let size = self.shared.paths.get(view.key.slot)?.datagram_bytes();
            Some(view.cwnd.0 / size.max(Bytes(1)).0.saturating_mul(2))
        });
        let packets = u32::try_from(packets.min()?).unwrap_or(u32::MAX);
        // "To ensure timely loss detection, a data sender can send a Reordering Threshold value that is
        // the same as the loss detection packet threshold."
        // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-9
        let thresholds = usable().filter_map(|view| {
            self.shared.paths.get(view.key.slot)?.recovery.packet_threshold(true)
        });
        let wish = Wish {
            every: request.every.min(packets).max(1),
            max_delay: request.max_delay.min(srtt).max(least),
            reordering: thresholds.max().unwrap_or(1),
        };
        Some((wish, srtt))
    }

    /// True if a request waits to be sent.
    pub(super) fn has_ack_request(&self) -> bool {
        self.ack_terms.asking.waits
    }

    /// Writes the request that waits, if one does and fits.
    pub(super) fn write_ack_request(&mut self, packet: &mut PacketBuilder<'_>) {
        let asking = &mut self.ack_terms.asking;
        let Some(request) = asking.request() else { return };
        let control = SentControl::AckFrequency { sequence: request.sequence };
        if packet.write_control(control, |writer| Frame::AckFrequency(request).write(writer)) {
            let delay = asking.on_sent(self.handshake.peer().max_ack_delay);
            self.handshake.set_max_ack_delay(delay);
        }
    }

    pub(super) fn on_ack_request_acked(&mut self, sequence: u64) {
        if let Some(delay) = self.ack_terms.asking.on_acked(sequence) {
            self.handshake.set_max_ack_delay(delay);
        }
    }

    pub(super) fn on_ack_request_lost(&mut self, sequence: u64) {
        self.ack_terms.asking.on_lost(sequence);
    }
}

#[cfg(test)]
mod tests;
