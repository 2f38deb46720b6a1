//! Datagrams that belong to no connection: they are written at once, and kept nowhere.

use std::collections::VecDeque;

use quipu_base::{PacketNumber, PathId};
use quipu_policy::PathKey;

use crate::connection::Drain;
use crate::error::ErrorCode;
use crate::outbox::{Outbox, Transmit};
use crate::route::Route;
use crate::tls::{DirectionKeys, protection, retry_tag};
use crate::wire::header::{LongHeader, LongKind, write_retry, write_version_negotiation};
use crate::wire::{ConnectionId, Frame, FrameType, TruncatedPacketNumber, Version, Writer};

/// Datagrams that wait to be sent, at most: what strangers can make grow. Our choice.
const MAX_RESPONSES: usize = 64;

/// Answers that wait to be sent.
#[derive(Default)]
pub(super) struct Responses {
    queue: VecDeque<(Route, Vec<u8>)>,
}

impl Responses {
    /// True if one more would be sent. What finds no room is not worth being made.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < MAX_RESPONSES
    }

    /// Those that wait.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Sends `datagram` as soon as possible, unless too many wait.
    pub(super) fn push(&mut self, route: Route, datagram: Vec<u8>) {
        if self.has_room() {
            self.queue.push_back((route, datagram));
        }
    }

    /// Writes all that can go now.
    pub(super) fn poll_transmit(&mut self, outbox: &mut dyn Outbox) -> Drain {
        let mut drain = Drain::Rest;
        for _ in 0..self.queue.len() {
            let path = PathKey { slot: 0, id: PathId::ZERO };
            if !outbox.has_room() {
                return Drain::Full;
            }
            let Some((route, response)) = self.queue.front() else { break };
            if outbox.is_blocked(route) {
                drain = Drain::Blocked;
                self.queue.rotate_left(1);
                continue;
            }
            let len = response.len();
            if let Some(place) = outbox.buffer(len).get_mut(..len) {
                place.copy_from_slice(response);
                outbox.send(Transmit { path, route: *route, ecn: 0, len });
            }
            self.queue.pop_front();
        }
        drain
    }
}

/// The answer to a packet of a version that we do not speak, which had these connection IDs.
/// `versions`: those that we speak; `random` fills unused bits.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-6.1>
pub(super) fn version_negotiation(
    versions: &[Version],
    random: u8,
    dcid: &[u8],
    scid: &[u8],
) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1 + 4 + 1 + scid.len() + 1 + dcid.len() + 4 * versions.len()];
    let mut writer = Writer::new(&mut buffer);
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# The server MUST include the value from the Source Connection ID field of the packet it
    //# receives in the Destination Connection ID field. The value for Source Connection ID
    //# MUST be copied from the Destination Connection ID of the received packet, which is
    //# initially randomly selected by a client.
    write_version_negotiation(&mut writer, random & 0x7f, scid, dcid, versions).ok()?;
    Some(buffer)
}

/// The Retry packet from `scid` that answers a client's packet from `dcid` to `original_dcid`, of
/// that version.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
pub(super) fn retry(
    version: Version,
    (dcid, scid): (ConnectionId, ConnectionId),
    original_dcid: &ConnectionId,
    token: &[u8],
) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1 + 4 + 1 + dcid.length() + 1 + scid.length() + token.len()];
    let mut writer = Writer::new(&mut buffer);
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
    //# This value MUST NOT be equal to the Destination Connection ID field of the packet sent by
    //# the client.
    if scid == *original_dcid {
        return None;
    }
    write_retry(&mut writer, version, dcid, scid, token).ok()?;
    let tag = retry_tag(version, original_dcid, &buffer);
    buffer.extend_from_slice(&tag);
    Some(buffer)
}

/// The Initial packet that tells a client that it is not let in. `scid`: a connection ID of ours
/// that is used nowhere else.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2>
pub(super) fn refusal(
    keys: &DirectionKeys,
    version: Version,
    (dcid, scid): (ConnectionId, ConnectionId),
    code: ErrorCode,
) -> Option<Vec<u8>> {
    let number = PacketNumber(0);
    let packet_number = TruncatedPacketNumber::new(number, None);
    let kind = LongKind::Initial { token: &[] };
    let header = LongHeader { kind, version, dcid, scid, packet_number };
    let tag = keys.packet.tag_length();
    // A close frame without a reason takes less than a header.
    let mut buffer = vec![0; 2 * header.size() + tag];
    let mut writer = Writer::new(&mut buffer);
    let layout = header.write(&mut writer).ok()?;
    let frame =
        Frame::ConnectionClose { error_code: code.0, frame_type: FrameType::PADDING, reason: b"" };
    frame.write(&mut writer).ok()?;
    let end = writer.position().max(layout.header_length() + layout.min_payload());
    buffer.truncate(end + tag);
    protection::seal(&mut buffer, &layout, PathId::ZERO, number, keys).ok()?;
    Some(buffer)
}
