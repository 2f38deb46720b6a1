//! Datagrams of the application, in and out.
//!
//! A datagram goes on the path that the joint policy names for control frames, or, if its full
//! datagrams are too small or it is not open, on the open path of least round-trip time that carries
//! it: the seam has no question of its own for datagrams. Like the bytes of control streams, they share
//! a packet with data of streams only if the policy chose that very path.
//! <https://www.rfc-editor.org/rfc/rfc9221#section-5>

use bytes::Bytes;
use quipu_base::{Instant, PathId};
use quipu_policy::{PathKey, PathState, PathView};
use thiserror::Error;

use super::packet::{MAX_LONG_HEADER, MAX_SHORT_HEADER, PacketBuilder, TAG};
use super::{Connection, ConnectionEvent};
use crate::datagrams::{DatagramCounters, DatagramId};
use crate::error::TransportError;
use crate::path::PathRef;
use crate::recovery::{SentControl, SentRecord};
use crate::wire::{Frame, varint};

/// Datagrams in a packet, at most; our choice.
const MAX_IN_PACKET: usize = 32;

/// Why a datagram is not taken for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The handshake has not told yet what the peer takes, or the connection is closing.
    #[error("the connection is not open")]
    NotOpen,
    /// The peer takes no datagrams.
    #[error("the peer takes no datagrams")]
    Unsupported,
    /// No path carries one of that size at present, or the peer takes none so large.
    #[error("the datagram has {length} bytes, expected at most {most}")]
    TooLarge {
        /// Its size.
        length: usize,
        /// The most that can be sent now.
        most: usize,
    },
}

impl Connection {
    /// Takes a datagram for sending: it goes in the next packet that the congestion controller allows,
    /// and is never sent again. What becomes of it is told by its number:
    /// [`ConnectionEvent::DatagramAcked`], [`ConnectionEvent::DatagramLost`] or
    /// [`ConnectionEvent::DatagramDropped`]; nothing is told of it once the connection is closed.
    ///
    /// The send queue is [bounded](crate::DatagramConfig::send_queue): the oldest datagrams make room.
    ///
    /// # Errors
    /// If it cannot be sent at all at present. One that is too large for all paths now may be small
    /// enough later, when [larger datagrams](ConnectionEvent::DatagramSize) were found to arrive, for
    /// which paths are probed from the first such attempt on.
    pub fn send_datagram(
        &mut self,
        now: Instant,
        data: Bytes,
    ) -> Result<DatagramId, SendDatagramError> {
        self.check_datagram(now, data.len())?;
        Ok(self.queue_datagram(data))
    }

    /// The same for who would rather wait than lose older datagrams: `None` if there is no room in the
    /// queue. [`ConnectionEvent::DatagramRoom`] tells when half of it is free.
    ///
    /// # Errors
    /// As of [`Connection::send_datagram`].
    pub fn offer_datagram(
        &mut self,
        now: Instant,
        data: Bytes,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        self.check_datagram(now, data.len())?;
        let has_room = self.datagrams.has_room(data.len());
        Ok(has_room.then(|| self.queue_datagram(data)))
    }

    fn queue_datagram(&mut self, data: Bytes) -> DatagramId {
        self.rest.end();
        let events = &mut self.events;
        self.datagrams.send(data, |id| events.tell(ConnectionEvent::DatagramDropped(id)))
    }

    /// Whether a datagram of that length can be sent at all at present.
    fn check_datagram(&mut self, now: Instant, length: usize) -> Result<(), SendDatagramError> {
        if !self.handshake.peer().known || !self.lifecycle.is_open() {
            return Err(SendDatagramError::NotOpen);
        }
        // https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# An endpoint MUST NOT send DATAGRAM frames until it has received the
        //# max_datagram_frame_size transport parameter with a non-zero value during the handshake
        //# (or during a previous handshake if 0-RTT is used).
        let peer = self.peer_takes().ok_or(SendDatagramError::Unsupported)?;
        let most = self.shared.paths.views.iter().filter_map(|view| self.carries(view)).max();
        let most = most.unwrap_or(0).min(peer);
        if length > most {
            if length <= peer {
                self.probe_for_datagrams(now);
            }
            return Err(SendDatagramError::TooLarge { length, most });
        }
        Ok(())
    }

    /// Those who wait for room in the queue hear of it.
    fn tell_datagram_room(&mut self) {
        if self.datagrams.room_to_tell() {
            self.events.tell(ConnectionEvent::DatagramRoom);
        }
    }

    /// The oldest datagram that came and was not read.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.read()
    }

    /// Bytes of the largest datagram that a path carries at present; `None` without such a path, or if
    /// the peer takes none. It changes with the [size](ConnectionEvent::DatagramSize) of the path's full
    /// datagrams.
    pub fn datagrams_max_size(&self, path: PathId) -> Option<usize> {
        let view = self.shared.paths.views.by_id(path)?;
        Some(self.carries(view)?.min(self.peer_takes()?))
    }

    /// Whether the peer takes datagrams: known once the handshake told.
    pub fn takes_datagrams(&self) -> bool {
        self.handshake.peer().known && self.peer_takes().is_some()
    }

    /// What became of datagrams so far.
    pub fn datagram_counters(&self) -> &DatagramCounters {
        &self.datagrams.counters
    }

    /// Bytes of the largest datagram that the peer takes; `None`: it takes none.
    fn peer_takes(&self) -> Option<usize> {
        let frame = usize::try_from(self.handshake.peer().max_datagram_frame).unwrap_or(usize::MAX);
        // https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# An endpoint MUST NOT send DATAGRAM frames that are larger than the
        //# max_datagram_frame_size value it has received from its peer.
        let fields = 1 + varint::size(frame.min(1 << 16) as u64);
        frame.checked_sub(fields)
    }

    /// Bytes of the largest datagram that the path carries in a packet; `None`: it carries no data.
    fn carries(&self, view: &PathView) -> Option<usize> {
        let usable = matches!(view.state, PathState::Usable | PathState::Suspect);
        let path = self.shared.paths.at(view.key.slot).filter(|_| usable)?;
        self.most_in(path, path.data.mtu.size().into())
    }

    /// The same in a packet of that size.
    fn most_in(&self, path: PathRef<'_>, size: usize) -> Option<usize> {
        let dcid = self.ids.remote().active(path.data.key.id)?;
        let header = if self.handshake.keys().seals_early() {
            MAX_LONG_HEADER + self.ids.first_local().length()
        } else {
            MAX_SHORT_HEADER
        };
        let frame_type = 1;
        size.checked_sub(header + dcid.length() + TAG + frame_type)
    }

    /// True if a path is open for a datagram of that length.
    fn is_open_for(&self, now: Instant, length: usize, view: &PathView) -> bool {
        let path = self.shared.paths.at(view.key.slot).filter(|_| view.is_open(now));
        let most = path.and_then(|path| self.most_in(path, path.packet_size()));
        most.is_some_and(|most| length <= most)
    }

    /// A datagram was too large for every path: perhaps they carry more than they are known to.
    fn probe_for_datagrams(&mut self, now: Instant) {
        for slot in 0..self.shared.paths.slots() {
            if let Some(data) = self.shared.paths.get_mut(slot).filter(|data| data.lives()) {
                data.mtu.on_wanted(now);
                self.rest.end();
            }
        }
    }

    /// The path for the next datagram, if one waits and a path that carries it is open. Datagrams that
    /// no path carries any more are dropped.
    // https://www.rfc-editor.org/rfc/rfc9221#section-5.4
    //# The sender MUST either delay sending the frame until the controller allows it or drop the
    //# frame without sending it (at which point it MAY notify the application).
    pub(super) fn datagram_path(&mut self, now: Instant) -> Option<PathKey> {
        loop {
            let length = self.datagrams.next()?.len();
            let named = self.scheduler.control_path(now, &self.shared);
            let views = &self.shared.paths.views;
            let is_open = |view: &PathView| self.is_open_for(now, length, view);
            let named = named.filter(|key| views.get(*key).is_some_and(is_open));
            if let Some(key) = named.or_else(|| views.least_srtt_of(is_open)) {
                return Some(key);
            }
            let fits = |view: &PathView| self.carries(view).is_none_or(|most| length <= most);
            if views.is_empty() || views.iter().any(fits) {
                return None;
            }
            let dropped = self.datagrams.drop_next()?;
            self.events.tell(ConnectionEvent::DatagramDropped(dropped));
            self.tell_datagram_room();
        }
    }

    /// Writes datagrams into a packet, as many as fit.
    pub(super) fn write_datagrams(&mut self, packet: &mut PacketBuilder<'_>) {
        for _ in 0..MAX_IN_PACKET {
            let Some(data) = self.datagrams.next() else { return };
            // Without a length it takes the rest of the packet.
            let with_length = Frame::Datagram { data, has_length: true };
            let has_length = with_length.size() <= packet.space_left();
            let frame = Frame::Datagram { data, has_length };
            if !packet.write_eliciting(|writer| frame.write(writer)) {
                break;
            }
            if !has_length {
                packet.end_here();
            }
            if let Some(id) = self.datagrams.on_written() {
                packet.record.controls.push(SentControl::Datagram(id));
                self.tell_datagram_room();
            }
        }
    }

    /// A DATAGRAM frame came.
    pub(super) fn on_datagram_frame(
        &mut self,
        data: &[u8],
        size: usize,
    ) -> Result<(), TransportError> {
        // https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# An endpoint that receives a DATAGRAM frame when it has not indicated support via the
        //# transport parameter MUST terminate the connection with an error of type
        //# PROTOCOL_VIOLATION.
        if self.config.datagrams.is_none() {
            return Err(TransportError::protocol_violation("datagrams were not negotiated"));
        }
        // https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# Similarly, an endpoint that receives a DATAGRAM frame that is larger than the value it
        //# sent in its max_datagram_frame_size transport parameter MUST terminate the connection
        //# with an error of type PROTOCOL_VIOLATION.
        if size > self.datagrams.max_frame() {
            return Err(TransportError::protocol_violation("a datagram larger than allowed"));
        }
        // https://www.rfc-editor.org/rfc/rfc9221#section-5
        //# When a QUIC endpoint receives a valid DATAGRAM frame, it SHOULD deliver the data to the
        //# application immediately, as long as it is able to process the frame and can store the
        //# contents in memory.
        if self.datagrams.receive(data) {
            self.events.tell(ConnectionEvent::DatagramReceived);
        }
        Ok(())
    }

    /// A packet with a datagram was acknowledged.
    pub(super) fn on_datagram_acked(&mut self, id: DatagramId) {
        self.datagrams.counters.acked += 1;
        self.events.tell(ConnectionEvent::DatagramAcked(id));
    }

    /// A packet was lost, for good or not: the application hears of its datagrams, which are not sent
    /// again.
    pub(super) fn tell_lost_datagrams(&mut self, record: &SentRecord) {
        for control in &record.controls {
            if let SentControl::Datagram(id) = *control {
                self.datagrams.counters.lost += 1;
                self.events.tell(ConnectionEvent::DatagramLost(id));
            }
        }
    }
}
