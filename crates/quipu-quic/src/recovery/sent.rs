//! Packets in flight in one packet number space.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant, PacketNumber, PathId};
use quipu_policy::{PathKey, Piece, SentPacket, Span, StreamKey};
use smallvec::SmallVec;

use super::AtSend;
use crate::config::RecoveryRules;

/// Most lost packets remembered for late acknowledgements; our choice.
const MAX_LOST: usize = 512;

/// So many times the loss delay after it left, a lost packet is forgotten; our choice.
const LATE: u64 = 8;

/// A control frame that a packet carried, as far as needed to send it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SentControl {
    /// An acknowledgement of packets of `path` (by slot) up to `largest`.
    Ack {
        path: PathKey,
        largest: PacketNumber,
    },
    /// Bytes of a TLS message.
    Crypto {
        span: Span,
    },
    /// Bytes of a control stream.
    Stream(SentStreamPiece),
    /// A frame of the stream layer: credit, reset and the like; its value is taken anew.
    StreamFrame(crate::stream::ControlFrame),
    HandshakeDone,
    NewConnectionId {
        path: PathId,
        sequence: u64,
    },
    RetireConnectionId {
        path: PathId,
        sequence: u64,
    },
    PathAbandon {
        path: PathId,
        /// The error code told.
        code: u64,
    },
    PathStatus {
        path: PathId,
    },
    MaxPathId,
    /// Advice on return paths, by its number: an older one is not sent again.
    ReturnPaths {
        sequence: u64,
    },
}

/// Bytes of a control stream in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentStreamPiece {
    pub(crate) stream: StreamKey,
    pub(crate) span: Span,
    pub(crate) fin: bool,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentRecord {
    pub(crate) pn: PacketNumber,
    pub(crate) sent_at: Instant,
    pub(crate) bytes: u16,
    pub(crate) ack_eliciting: bool,
    /// Its bytes are pending again although it is in flight.
    pub(crate) requeued: bool,
    /// Its stream frames are those of another packet: its own loss makes nothing of them pending.
    pub(crate) repeats: bool,
    settled: bool,
    /// Its datagram was marked ECT(0).
    pub(crate) ect: bool,
    /// Position among the ack-eliciting packets of its space.
    pub(crate) eliciting_index: u64,
    /// What the path had delivered when it left.
    pub(crate) at_send: Option<AtSend>,
    /// Bit `i`: piece `i` carried the stream's end.
    pub(crate) fins: u32,
    pub(crate) pieces: SmallVec<[Piece; 1]>,
    pub(crate) controls: Vec<SentControl>,
}

impl SentRecord {
    pub(crate) fn new(pn: PacketNumber, sent_at: Instant) -> Self {
        SentRecord {
            pn,
            sent_at,
            bytes: 0,
            ack_eliciting: false,
            requeued: false,
            repeats: false,
            settled: false,
            ect: false,
            eliciting_index: 0,
            at_send: None,
            fins: 0,
            pieces: SmallVec::new(),
            controls: Vec::new(),
        }
    }

    pub(crate) fn add_piece(&mut self, piece: Piece, fin: bool) {
        if fin {
            self.fins |= 1 << (self.pieces.len() & 31);
        }
        self.pieces.push(piece);
    }

    /// Whether piece `index` carried the stream's end.
    pub(crate) fn carries_fin(&self, index: usize) -> bool {
        index < 32 && self.fins & 1 << index != 0
    }

    /// The packet as policies see it.
    pub(crate) fn as_packet(&self, path: PathKey) -> SentPacket<'_> {
        SentPacket {
            path,
            pn: self.pn,
            bytes: Bytes(u64::from(self.bytes)),
            sent_at: self.sent_at,
            pieces: &self.pieces,
        }
    }
}

/// Packets in flight in one packet number space, in packet-number order. Packets that are not
/// ack-eliciting are not kept: nothing of theirs is ever sent again.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<SentRecord>,
    /// Declared lost, in packet-number order: both thresholds find lower numbers first.
    lost: VecDeque<SentRecord>,
    next: u64,
    largest_acked: Option<PacketNumber>,
    last_eliciting_at: Option<Instant>,
    in_flight: Bytes,
    eliciting_in_flight: usize,
    eliciting_sent: u64,
    pub(crate) loss_time: Option<Instant>,
}

impl SentPackets {
    /// The number of the next packet.
    pub(crate) fn next_pn(&self) -> PacketNumber {
        PacketNumber(self.next)
    }

    /// Uses up the next packet number.
    pub(crate) fn take_pn(&mut self) -> PacketNumber {
        let pn = PacketNumber(self.next);
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# Subsequent packets sent in the same packet number space MUST increase the packet
        //# number by at least one. A QUIC endpoint MUST NOT reuse a packet number within the same
        //# packet number space in one connection.
        self.next += 1;
        pn
    }

    /// Keeps a packet that counts as in flight.
    pub(crate) fn on_sent(&mut self, mut record: SentRecord) {
        self.in_flight += Bytes(u64::from(record.bytes));
        if record.ack_eliciting {
            self.eliciting_in_flight += 1;
            self.eliciting_sent += 1;
            record.eliciting_index = self.eliciting_sent;
            self.last_eliciting_at = Some(record.sent_at);
        }
        self.packets.push_back(record);
    }

    pub(crate) fn largest_acked(&self) -> Option<PacketNumber> {
        self.largest_acked
    }

    /// When the last ack-eliciting packet left, if any is in flight.
    pub(crate) fn last_eliciting_at(&self) -> Option<Instant> {
        self.last_eliciting_at.filter(|_| self.eliciting_in_flight > 0)
    }

    /// True if an ack-eliciting packet is in flight.
    pub(crate) fn has_eliciting(&self) -> bool {
        self.eliciting_in_flight > 0
    }

    /// How many ack-eliciting packets are in flight.
    pub(crate) fn eliciting_in_flight(&self) -> usize {
        self.eliciting_in_flight
    }

    pub(crate) fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// When the oldest packet in flight left.
    pub(crate) fn oldest_sent_at(&self) -> Option<Instant> {
        self.iter().next().map(|record| record.sent_at)
    }

    /// Packets in flight, in packet-number order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SentRecord> {
        self.packets.iter().filter(|record| !record.settled)
    }

    /// The same, to mark them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SentRecord> {
        self.packets.iter_mut().filter(|record| !record.settled)
    }

    /// The packet sent last, if it is in flight.
    pub(crate) fn last(&self) -> Option<&SentRecord> {
        self.packets.back().filter(|record| !record.settled)
    }

    /// The first ack-eliciting packet in flight after `after`.
    pub(crate) fn next_after(&self, after: Option<PacketNumber>) -> Option<&SentRecord> {
        let start = after.map_or(0, |pn| self.position(pn.0 + 1));
        self.packets.range(start..).find(|record| !record.settled && record.ack_eliciting)
    }

    /// Takes out what the inclusive ranges (highest first) acknowledge: packets in flight go to
    /// `acked`, packets declared lost before go to `late`; both in packet-number order. True if
    /// the largest acknowledged packet is newly acknowledged.
    pub(crate) fn on_ack(
        &mut self,
        ranges: impl Iterator<Item = (u64, u64)>,
        acked: &mut Vec<SentRecord>,
        late: &mut Vec<SentRecord>,
    ) -> bool {
        let mut largest_is_new = false;
        let mut largest = None;
        let first_kept = self.packets.front().map_or(u64::MAX, |record| record.pn.0);
        for (start, end) in ranges {
            if largest.is_none() {
                largest = Some(end);
                if self.largest_acked.is_none_or(|before| before.0 < end) {
                    self.largest_acked = Some(PacketNumber(end));
                }
            }
            if !self.lost.is_empty() {
                self.take_late(start, end, late);
            }
            if end < first_kept {
                if self.lost.front().is_none_or(|record| end < record.pn.0) {
                    break;
                }
                continue;
            }
            let mut at = self.position(end + 1);
            while at > 0 {
                at -= 1;
                let record = &mut self.packets[at];
                if record.pn.0 < start {
                    break;
                }
                if record.settled {
                    continue;
                }
                let kept = Self::settle(record);
                self.in_flight -= Bytes(u64::from(kept.bytes));
                self.eliciting_in_flight -= usize::from(kept.ack_eliciting);
                if Some(kept.pn.0) == largest {
                    largest_is_new = true;
                }
                acked.push(kept);
            }
        }
        acked.reverse();
        late.sort_unstable_by_key(|record| record.pn);
        self.pop_settled();
        largest_is_new
    }

    /// Takes out what is lost: sent before `lost_before`, or `threshold` packets below the largest
    /// acknowledged. Sets `loss_time` for what may yet be. `delay` is the time threshold.
    pub(crate) fn detect_lost(
        &mut self,
        now: Instant,
        delay: quipu_base::Duration,
        rules: &RecoveryRules,
        lost: &mut Vec<SentRecord>,
    ) {
        self.loss_time = None;
        let forgotten = |record: &SentRecord| record.sent_at + delay.saturating_mul(LATE) < now;
        while self.lost.front().is_some_and(forgotten) {
            self.lost.pop_front();
        }
        let Some(largest) = self.largest_acked else { return };
        for at in 0..self.packets.len() {
            let record = &mut self.packets[at];
            if record.pn > largest {
                break;
            }
            if record.settled {
                continue;
            }
            let expires_at = record.sent_at + delay;
            // https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
            //# Once a later packet within the same packet number space has been acknowledged, an
            //# endpoint SHOULD declare an earlier packet lost if it was sent a threshold amount
            //# of time in the past.
            if expires_at <= now || rules.is_overtaken(record.pn, largest) {
                let kept = Self::settle(record);
                self.in_flight -= Bytes(u64::from(kept.bytes));
                self.eliciting_in_flight -= usize::from(kept.ack_eliciting);
                lost.push(kept);
            } else {
                // https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
                //# If packets sent prior to the largest acknowledged packet cannot yet be
                //# declared lost, then a timer SHOULD be set for the remaining time.
                let loss_time = self.loss_time.map_or(expires_at, |time| time.min(expires_at));
                self.loss_time = Some(loss_time);
            }
        }
        self.pop_settled();
    }

    /// Remembers a lost packet, so that a late acknowledgement still counts.
    pub(crate) fn remember_lost(&mut self, record: SentRecord) {
        if self.lost.len() >= MAX_LOST {
            self.lost.pop_front();
        }
        self.lost.push_back(record);
    }

    /// Takes out everything in flight: the space or the path is gone.
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.3
    //# A client MUST NOT reset the packet number for any packet number space after processing a
    //# Retry packet.
    pub(crate) fn drain(&mut self) -> Vec<SentRecord> {
        self.in_flight = Bytes::ZERO;
        self.eliciting_in_flight = 0;
        self.loss_time = None;
        self.lost.clear();
        self.packets.drain(..).filter(|record| !record.settled).collect()
    }

    fn take_late(&mut self, start: u64, end: u64, late: &mut Vec<SentRecord>) {
        let at = self.lost.partition_point(|record| record.pn.0 < start);
        while self.lost.get(at).is_some_and(|record| record.pn.0 <= end) {
            late.extend(self.lost.remove(at));
        }
    }

    /// Moves the record's content out; its place stays, marked, until it is popped.
    fn settle(record: &mut SentRecord) -> SentRecord {
        record.settled = true;
        let mut kept = SentRecord {
            pieces: std::mem::take(&mut record.pieces),
            controls: std::mem::take(&mut record.controls),
            ..SentRecord::new(record.pn, record.sent_at)
        };
        kept.bytes = record.bytes;
        kept.ack_eliciting = record.ack_eliciting;
        kept.eliciting_index = record.eliciting_index;
        kept.at_send = record.at_send;
        kept.ect = record.ect;
        kept.requeued = record.requeued;
        kept.repeats = record.repeats;
        kept.fins = record.fins;
        kept
    }

    fn pop_settled(&mut self) {
        while self.packets.front().is_some_and(|record| record.settled) {
            self.packets.pop_front();
        }
    }

    /// Index of the first record with number `pn` or above.
    fn position(&self, pn: u64) -> usize {
        let Some(front) = self.packets.front() else { return 0 };
        // Numbers are dense where nearly all packets are ack-eliciting: try that place first.
        let guess = usize::try_from(pn.saturating_sub(front.pn.0)).unwrap_or(usize::MAX);
        let exact = |at: usize| self.packets.get(at).is_some_and(|record| record.pn.0 == pn);
        if exact(guess) {
            return guess;
        }
        if guess > 0 && self.packets.get(guess - 1).is_some_and(|record| record.pn.0 + 1 == pn) {
            return guess;
        }
        self.packets.partition_point(|record| record.pn.0 < pn)
    }
}

#[cfg(test)]
mod tests;
