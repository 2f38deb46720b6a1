//! Packets in flight in one packet number space.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, PacketNumber, PathId};
use quipu_policy::{PathKey, Piece, SentPacket, Span, StreamKey};
use smallvec::SmallVec;

use super::AtSend;
use super::plain::PlainPackets;
use super::skips::SkippedNumbers;
use crate::wire::varint;

/// Most lost packets remembered for late acknowledgements; our choice.
const MAX_LOST: usize = 2_048;

/// So many times the loss delay after it left, a lost packet is forgotten; our choice.
const LATE: u64 = 8;

/// Most packets in flight that have nothing to send again; our choice. A silent path beside one that
/// answers gets two every two seconds.
const MAX_SPENT: usize = 32;

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
    /// A PING of the application, whose acknowledgement it is to hear of.
    Ping,
    /// What we ask of the peer's acknowledgements, by its number: the latest is asked again.
    AckFrequency {
        sequence: u64,
    },
    /// A datagram of the application, which is to hear of what becomes of it.
    Datagram(crate::datagrams::DatagramId),
    HandshakeDone,
    /// A token for a later connection of the client.
    NewToken(Arc<[u8]>),
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
    /// Which of the path's addresses it went to, counted from the first: see [`SentPackets::begin_epoch`].
    pub(crate) epoch: u32,
    /// Its datagram was marked ECT(0).
    pub(crate) ect: bool,
    /// It asks whether the path carries its size, and nothing else: no probe timeout waits for it, and
    /// its loss is no sign of congestion.
    pub(crate) mtu_probe: bool,
    /// Its number among the ack-eliciting packets of its path, whatever their space; probes of the
    /// path MTU have none.
    pub(super) eliciting_number: u64,
    /// What the path had delivered when it left.
    pub(crate) at_send: Option<AtSend>,
    /// Bit `i`: piece `i` carried the stream's end.
    pub(crate) fins: u32,
    pub(crate) pieces: SmallVec<[Piece; 1]>,
    /// Most packets of a receiver have one, their acknowledgement.
    pub(crate) controls: SmallVec<[SentControl; 1]>,
}

/// What is counted of a packet in flight.
#[derive(Clone, Copy)]
struct Counted {
    bytes: Bytes,
    epoch: u32,
    is_awaited: bool,
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
            epoch: 0,
            ect: false,
            mtu_probe: false,
            eliciting_number: 0,
            at_send: None,
            fins: 0,
            pieces: SmallVec::new(),
            controls: SmallVec::new(),
        }
    }

    /// Its content, which is taken out of `self`.
    #[inline]
    fn take(&mut self) -> Self {
        SentRecord {
            pieces: std::mem::take(&mut self.pieces),
            controls: std::mem::take(&mut self.controls),
            ..*self
        }
    }

    /// What is counted of it while it is in flight.
    #[inline]
    fn counted(&self) -> Counted {
        let bytes = Bytes(u64::from(self.bytes));
        Counted { bytes, epoch: self.epoch, is_awaited: self.is_awaited() }
    }

    /// A probe timeout waits for its acknowledgement.
    pub(super) fn is_awaited(&self) -> bool {
        self.ack_eliciting && !self.mtu_probe
    }

    /// True if it carried datagrams of the application.
    pub(crate) fn carries_datagrams(&self) -> bool {
        self.controls.iter().any(|control| matches!(control, SentControl::Datagram(_)))
    }

    /// Neither its acknowledgement nor its loss says anything of what it carried: a probe whose content
    /// is another packet's, or control frames that wait again.
    fn is_spent(&self) -> bool {
        let carries = !self.repeats && !self.pieces.is_empty() || self.carries_datagrams();
        self.requeued && !carries && !self.mtu_probe
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
/// ack-eliciting are not kept, but for when they left: nothing of theirs is ever sent again.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<SentRecord>,
    /// Declared lost, in packet-number order: both thresholds find lower numbers first.
    lost: VecDeque<SentRecord>,
    next: u64,
    skipped: SkippedNumbers,
    plain: PlainPackets,
    largest_acked: Option<PacketNumber>,
    last_eliciting_at: Option<Instant>,
    in_flight: Bytes,
    eliciting_in_flight: usize,
    epoch: u32,
    pub(crate) loss_time: Option<Instant>,
}

/// Those of `records`, in packet-number order, that belong to `epoch`, the present one.
pub(crate) fn of_epoch(records: &[SentRecord], epoch: u32) -> &[SentRecord] {
    match records.first() {
        Some(first) if first.epoch != epoch => {
            let begin = records.partition_point(|record| record.epoch != epoch);
            records.get(begin..).unwrap_or_default()
        }
        _ => records,
    }
}

/// When packets are lost of which a later one was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// So long after they were sent.
    pub(super) delay: Duration,
    /// Once a packet sent so many packets later was acknowledged; `None`: by time alone.
    pub(super) packets: Option<u64>,
}

impl SentPackets {
    /// Nothing was sent; some packet numbers, chosen at random, are never used.
    pub(super) fn with_skips() -> Self {
        SentPackets { skipped: SkippedNumbers::at_random(), ..SentPackets::default() }
    }

    /// The number of the next packet.
    pub(crate) fn next_pn(&self) -> PacketNumber {
        PacketNumber(self.next)
    }

    /// No packet number is left.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.next >= varint::MAX
    }

    /// Uses up the next packet number; now and then the one after it is skipped, chosen by `random`.
    #[inline]
    pub(crate) fn take_pn(&mut self, random: impl FnOnce() -> u64) -> PacketNumber {
        let pn = PacketNumber(self.next);
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# Subsequent packets sent in the same packet number space MUST increase the packet
        //# number by at least one. A QUIC endpoint MUST NOT reuse a packet number within the same
        //# packet number space in one connection.
        self.next = self.skipped.pass(self.next + 1, random);
        pn
    }

    /// True if one of these inclusive ranges, highest first, holds a number that no packet had.
    pub(super) fn any_unused(&self, ranges: impl Iterator<Item = (u64, u64)>) -> bool {
        self.skipped.any_in(ranges)
    }

    /// The path leads to another address from now on. What is in flight to the old one may still be
    /// acknowledged or lost, and its content settled; but of window, round-trip time and rate of the
    /// new address it says nothing, so that it no longer counts as in flight.
    pub(crate) fn begin_epoch(&mut self) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.4
        //# Packets sent on the old path MUST NOT contribute to congestion control or RTT
        //# estimation for the new path.
        self.epoch += 1;
        self.in_flight = Bytes::ZERO;
        self.plain.clear();
    }

    /// How often the path's address changed.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Keeps a packet that counts as in flight. Its content is taken out of `record`.
    pub(crate) fn on_sent(&mut self, record: &mut SentRecord) {
        record.epoch = self.epoch;
        self.in_flight += Bytes(u64::from(record.bytes));
        if record.is_awaited() {
            self.eliciting_in_flight += 1;
            self.last_eliciting_at = Some(record.sent_at);
        }
        self.packets.push_back(record.take());
    }

    /// A packet left that is neither ack-eliciting nor in flight. Its acknowledgement says something if
    /// it acknowledges another packet, too.
    #[inline]
    pub(crate) fn on_plain_sent(&mut self, pn: PacketNumber, sent_at: Instant) {
        if self.eliciting_in_flight > 0 {
            self.plain.note(pn, sent_at);
        }
    }

    /// Gives back what a transfer needed: nothing is in flight, and may not be for long.
    pub(crate) fn release(&mut self) {
        if self.packets.is_empty() && self.packets.capacity() + self.lost.capacity() > 0 {
            self.packets.shrink_to_fit();
            self.lost.shrink_to_fit();
            self.plain.release();
        }
    }

    pub(crate) fn largest_acked(&self) -> Option<PacketNumber> {
        self.largest_acked
    }

    /// When the last ack-eliciting packet left, if any is in flight. Probes of the path MTU are left out
    /// here and below: they have a timer of their own.
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
    /// `acked`, packets declared lost before go to `late`; both in packet-number order. The number
    /// of the largest acknowledged packet and when it left, if it is newly acknowledged.
    pub(crate) fn on_ack(
        &mut self,
        ranges: impl Iterator<Item = (u64, u64)>,
        acked: &mut Vec<SentRecord>,
        late: &mut Vec<SentRecord>,
    ) -> Option<(PacketNumber, Instant)> {
        let lowest = |packets: &VecDeque<SentRecord>| packets.front().map(|record| record.pn.0);
        let lowest = lowest(&self.packets).into_iter().chain(lowest(&self.lost)).min();
        // Ranges below all that is kept say nothing new.
        let mut news: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        let mut largest = None;
        for (start, end) in ranges {
            largest = largest.max(Some(PacketNumber(end)));
            if lowest.is_none_or(|lowest| end < lowest) {
                break;
            }
            news.push((start, end));
        }
        self.largest_acked = self.largest_acked.max(largest);
        for &(start, end) in news.iter().rev() {
            if !self.lost.is_empty() {
                self.take_late(start, end, late);
            }
            self.take_acked(start, end, acked);
        }
        self.pop_settled();
        let largest = largest?;
        let plain = self.plain.take(largest);
        let kept = acked.last().filter(|newest| newest.pn == largest);
        kept.map(|newest| newest.sent_at).or(plain).map(|sent_at| (largest, sent_at))
    }

    fn take_acked(&mut self, start: u64, end: u64, acked: &mut Vec<SentRecord>) {
        let mut at = self.position(start);
        if at == 0 {
            // The oldest, as nearly always: they leave the list at once.
            while let Some(record) = self.packets.front()
                && record.pn.0 <= end
            {
                if record.settled {
                    self.packets.pop_front();
                    continue;
                }
                let counted = record.counted();
                self.note_settled(counted);
                // Records are large: they are moved once.
                acked.extend(self.packets.pop_front());
            }
            return;
        }
        while let Some(record) = self.packets.get_mut(at)
            && record.pn.0 <= end
        {
            at += 1;
            if !record.settled {
                let kept = Self::settle(record);
                self.note_settled(kept.counted());
                acked.push(kept);
            }
        }
    }

    /// Takes out what is lost, in packet-number order, and sets `loss_time` for what may yet be.
    pub(super) fn detect_lost(
        &mut self,
        now: Instant,
        thresholds: &Thresholds,
        lost: &mut Vec<SentRecord>,
    ) {
        self.loss_time = None;
        let Thresholds { delay, packets } = *thresholds;
        let forgotten = |record: &SentRecord| record.sent_at + delay.saturating_mul(LATE) < now;
        while self.lost.front().is_some_and(forgotten) {
            self.lost.pop_front();
        }
        let Some(largest) = self.largest_acked else { return };
        let overtaken = self.overtaken(packets);
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
            if expires_at <= now || Some(record.pn) <= overtaken {
                let kept = Self::settle(record);
                self.note_settled(kept.counted());
                lost.push(kept);
            } else {
                // https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
                //# If packets sent prior to the largest acknowledged packet cannot yet be
                //# declared lost, then a timer SHOULD be set for the remaining time.
                self.loss_time = Some(expires_at);
                // Those that follow were sent no earlier, and are overtaken by fewer.
                break;
            }
        }
        self.pop_settled();
    }

    /// The newest packet before the largest acknowledged one with so many packets between; skipped
    /// numbers do not count.
    pub(crate) fn overtaken(&self, packets: Option<u64>) -> Option<PacketNumber> {
        self.skipped.before(self.largest_acked?.0, packets?).map(PacketNumber)
    }

    /// Takes out one packet in flight, whose time is over.
    pub(super) fn take(&mut self, pn: PacketNumber) -> Option<SentRecord> {
        let at = self.position(pn.0);
        let record =
            self.packets.get_mut(at).filter(|record| record.pn == pn && !record.settled)?;
        let kept = Self::settle(record);
        self.note_settled(kept.counted());
        self.pop_settled();
        Some(kept)
    }

    /// Forgets the oldest packets that have nothing to send again, so that there is room for a probe.
    /// On a path from which nothing returns no packet is ever lost, and probes go on. These are not
    /// declared lost either: nothing is told of them. Returns how many bytes are in flight no more.
    pub(crate) fn make_room_for_probe(&mut self) -> Bytes {
        let mut forgotten = Bytes::ZERO;
        if self.eliciting_in_flight < MAX_SPENT {
            return forgotten;
        }
        let is_spent = |record: &SentRecord| !record.settled && record.is_spent();
        let spent = self.packets.iter().filter(|record| is_spent(record)).count();
        for _ in MAX_SPENT..=spent {
            let at = self.packets.iter().position(is_spent);
            let Some(record) = at.and_then(|at| self.packets.remove(at)) else { break };
            self.note_settled(record.counted());
            if record.epoch == self.epoch {
                forgotten += Bytes(u64::from(record.bytes));
            }
        }
        self.pop_settled();
        forgotten
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

    /// A packet is in flight no more.
    fn note_settled(&mut self, Counted { bytes, epoch, is_awaited }: Counted) {
        if epoch == self.epoch {
            self.in_flight -= bytes;
        }
        self.eliciting_in_flight -= usize::from(is_awaited);
    }

    /// Moves the record's content out; its place stays, marked, until it is popped.
    fn settle(record: &mut SentRecord) -> SentRecord {
        let kept = record.take();
        record.settled = true;
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
        let Some(ahead) = pn.checked_sub(front.pn.0) else { return 0 };
        // Numbers are dense where nearly all packets are ack-eliciting: the place is this one or
        // little before it, by as many as numbers are missing.
        let mut end = usize::try_from(ahead).unwrap_or(usize::MAX).min(self.packets.len());
        let is_below = |at: usize| self.packets.get(at).is_some_and(|record| record.pn.0 < pn);
        let mut step = 1;
        while end > 0 && !is_below(end - 1) {
            let start = end.saturating_sub(step);
            if start == 0 || is_below(start - 1) {
                // It is between the two.
                return start + self.partition_point(start..end, pn);
            }
            end = start;
            step *= 2;
        }
        end
    }

    /// How many of the records in `range` have a number below `pn`; those come first.
    fn partition_point(&self, range: std::ops::Range<usize>, pn: u64) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.packets.get(middle).is_some_and(|record| record.pn.0 < pn) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low - range.start
    }
}

#[cfg(test)]
mod tests;
