//! The frames of a packet, while they are applied.

use quipu_base::{Instant, PacketNumber};
use quipu_policy::PathKey;

use crate::connection::receive::{Came, Origin, Sighting};
use crate::connection::{Connection, Space};
use crate::error::TransportError;
use crate::recovery::{AckSettings, PacketSpace};
use crate::route::Route;
use crate::wire::{Frame, FrameType, Frames, PartialHeader};

/// The frames of a packet that is authentic and new. Nothing but these is ever applied.
pub(in crate::connection) struct PacketFrames<'p> {
    space: Space,
    /// The path on which it came.
    key: PathKey,
    header: &'p PartialHeader,
    number: PacketNumber,
    /// The packet opened with the keys of the phase before.
    old_keys: bool,
    origin: &'p Origin,
    frames: Frames<'p>,
    summary: FrameSummary,
}

/// What the frames read so far came to.
#[derive(Clone, Copy, Debug, Default)]
struct FrameSummary {
    ack_eliciting: bool,
    /// Something ack-eliciting that does more than to ask for an acknowledgement.
    content: bool,
    /// TLS messages.
    crypto: bool,
    /// Something that no packet carries which only tries an address.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-9.1>
    non_probing: bool,
    /// PATH_CHALLENGE.
    challenge: bool,
    /// Whether the last STREAM frame left its stream open; `None` without one.
    more: Option<bool>,
    /// IMMEDIATE_ACK.
    at_once: bool,
}

impl FrameSummary {
    /// A frame was read.
    fn note(&mut self, frame: FrameType) {
        self.ack_eliciting |= frame.is_ack_eliciting();
        let only_asks = matches!(frame, FrameType::PING | FrameType::IMMEDIATE_ACK);
        self.content |= frame.is_ack_eliciting() && !only_asks;
        self.crypto |= frame == FrameType::CRYPTO;
        self.non_probing |= !frame.is_probing();
        self.challenge |= frame == FrameType::PATH_CHALLENGE;
        self.at_once |= frame == FrameType::IMMEDIATE_ACK;
    }
}

impl<'p> PacketFrames<'p> {
    /// The frames in `payload`, of the packet of that number in a space. `key`: the path on which it
    /// came, from `origin`; `old_keys`: it opened with those of the phase before.
    pub(super) fn new(
        (space, number): (Space, PacketNumber),
        (header, old_keys): (&'p PartialHeader, bool),
        (key, origin): (PathKey, &'p Origin),
        payload: &'p [u8],
    ) -> Self {
        let (frames, summary) = (Frames::new(payload), FrameSummary::default());
        PacketFrames { space, key, header, number, old_keys, origin, frames, summary }
    }

    /// The path on which the packet came.
    pub(in crate::connection) fn key(&self) -> PathKey {
        self.key
    }

    /// The path on which the packet came, and when.
    fn came(&self) -> Came {
        Came { on: self.key, at: self.origin.came_at }
    }

    /// By which addresses it came.
    pub(in crate::connection) fn route(&self) -> Route {
        self.origin.arrival.route
    }

    /// What the packet says of where the path leads.
    pub(in crate::connection) fn sighting(&self) -> Sighting {
        Sighting {
            route: self.origin.arrival.route,
            datagram: self.origin.datagram,
            called_by: self.header.dcid,
            number: matches!(self.space, Space::Data(_)).then_some(self.number),
            non_probing: self.summary.non_probing,
            challenge: self.summary.challenge,
        }
    }

    /// The next frame, if it may travel in such a packet.
    #[inline]
    fn next(&mut self) -> Result<Option<Frame<'p>>, TransportError> {
        let Some(frame) = self.frames.next() else { return Ok(None) };
        let frame = frame?;
        let frame_type = frame.frame_type();
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# An endpoint MUST treat receipt of a frame in a packet type that is not permitted as a
        //# connection error of type PROTOCOL_VIOLATION.
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.4
        //# Endpoints MUST treat receipt of Handshake packets with other frames as a connection
        //# error of type PROTOCOL_VIOLATION.
        if !frame_type.is_allowed_in(self.header.kind) {
            return Err(TransportError::protocol_violation("a frame in the wrong packet")
                .in_frame(frame_type));
        }
        self.summary.note(frame_type);
        Ok(Some(frame))
    }
}

impl Connection {
    /// Applies the frames of a packet, and takes note that it came.
    pub(super) fn apply(&mut self, now: Instant, mut frames: PacketFrames<'_>) {
        if self.lifecycle.is_closing() {
            return self.look_for_close(now, frames);
        }
        match self.apply_frames(now, &mut frames) {
            Ok(()) => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-13.1
                //# A packet MUST NOT be acknowledged until packet protection has been
                //# successfully removed and all frames contained in the packet have been
                //# processed.
                self.follow_peer(now, &frames);
                self.note_received(now, &frames);
                if frames.summary.crypto {
                    self.advance_tls(now);
                }
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2
            //# An endpoint MUST generate a connection error if processing the contents of these
            //# packets prior to discovering an error, or fully revert any changes made during
            //# that processing.
            Err(error) => self.fault(now, error),
        }
    }

    /// The connection is closing: of what comes, only the peer's own close still counts.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2>
    fn look_for_close(&mut self, now: Instant, mut frames: PacketFrames<'_>) {
        while let Ok(Some(frame)) = frames.next() {
            if let Frame::ConnectionClose { .. } | Frame::ApplicationClose { .. } = frame {
                // Leads to the draining state, and nothing of it can fail.
                let _ = self.on_frame(now, frames.space, frames.came(), frame);
                return;
            }
        }
    }

    fn apply_frames(
        &mut self,
        now: Instant,
        frames: &mut PacketFrames<'_>,
    ) -> Result<(), TransportError> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# An endpoint MUST treat receipt of a packet containing no frames as a
        //# connection error of type PROTOCOL_VIOLATION.
        if frames.frames.remaining() == 0 {
            return Err(TransportError::protocol_violation("a packet without frames"));
        }
        while let Some(frame) = frames.next()? {
            let frame_type = frame.frame_type();
            match &frame {
                Frame::Stream(stream) => frames.summary.more = Some(!stream.fin),
                Frame::PathChallenge { data } => {
                    self.on_path_challenge(frames.key, frames.origin, *data);
                }
                Frame::Ack(ack) if frames.old_keys => {
                    let path = ack.path.unwrap_or_default();
                    self.handshake
                        .on_acked(path, ack.largest(), true)
                        .map_err(|error| error.in_frame(frame_type))?;
                }
                _ => {}
            }
            self.on_frame(now, frames.space, frames.came(), frame)
                .map_err(|error| error.in_frame(frame_type))?;
            if !self.lifecycle.is_open() {
                break;
            }
        }
        Ok(())
    }

    fn note_received(&mut self, now: Instant, frames: &PacketFrames<'_>) {
        let PacketFrames { space, number, summary, .. } = *frames;
        let ecn = frames.origin.arrival.ecn;
        let settings = match space {
            // "An endpoint SHOULD send a packet containing an ACK frame immediately upon receiving an
            // IMMEDIATE_ACK frame."
            // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-5
            Space::Data(_) if !summary.at_once => *self.ack_terms.own(),
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# An endpoint MUST acknowledge all ack-eliciting Initial and Handshake
            //# packets immediately
            _ => AckSettings::AT_ONCE,
        };
        if let Some(PacketSpace { received, .. }) = self.packets_mut(space) {
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.5
            //# However, endpoints SHOULD include buffering delays caused by unavailability of
            //# decryption keys, since these delays can be large and are likely to be
            //# non-repeating.
            let came_at = frames.origin.came_at;
            received.on_packet(came_at, number, summary.ack_eliciting, ecn, &settings);
        }
        if let Space::Data(slot) = space
            && let Some(data) = self.shared.paths.get_mut(slot)
        {
            data.heard_at = Some(now);
            self.silence.on_packet(now, slot, summary.more);
            data.has_content |= summary.content;
            data.probed |= summary.ack_eliciting && !summary.content;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(frames: &[FrameType]) -> FrameSummary {
        let mut summary = FrameSummary::default();
        frames.iter().for_each(|frame| summary.note(*frame));
        summary
    }

    /// IMMEDIATE_ACK counted as content. So a probe was not known for one, and two ends that acknowledged
    /// each other's probes on other paths asked each other for ever whether those lived.
    #[test]
    fn a_probe_has_no_content() {
        for frames in [
            &[FrameType::PING][..],
            &[FrameType::IMMEDIATE_ACK],
            &[FrameType::PATH_ACK, FrameType::IMMEDIATE_ACK, FrameType::PING],
        ] {
            let summary = summary(frames);
            assert!(summary.ack_eliciting && !summary.content, "{frames:?}");
        }
        assert!(!summary(&[FrameType::PATH_ACK]).ack_eliciting);
        assert!(summary(&[FrameType::IMMEDIATE_ACK, FrameType::MAX_DATA]).content);
    }
}
