//! A link: its parts, and the way of a datagram through them.

use quipu_base::{Bytes, Duration, Instant, Seed};

use crate::chance::Chance;
use crate::config::invalid;
use crate::loss::LossProcess;
use crate::outage::OutageSchedule;
use crate::propagation::Propagation;
use crate::queue::DropTail;
use crate::radio;
use crate::rate::Transmitter;
use crate::timeline::Cursor;
use crate::trace::Opportunities;
use crate::{Duplicate, InvalidConfig, LinkConfig, LinkStats, ecn};

mod any;
mod managed;

pub use any::{Answer, AnyLink};
pub use managed::{Departure, ManagedLink, Offer, Ticket};

/// One direction of a link: see the [crate's description](crate) for what it does to a datagram.
#[derive(Debug)]
pub struct Link {
    overhead: Bytes,
    /// The largest datagram, headers included.
    mtu: Cursor<Bytes>,
    outages: OutageSchedule,
    queue: DropTail,
    /// Above this many bytes in the queue datagrams are marked.
    mark_above: Bytes,
    sender: Sender,
    propagation: Propagation,
    loss: LossProcess,
    duplicate: Chance,
    duplicate_after: Duration,
    last_offer_at: Instant,
    stats: LinkStats,
}

/// What says when a datagram leaves.
#[derive(Debug)]
enum Sender {
    Rate(Transmitter),
    Trace(Opportunities),
    /// Shared airtime.
    Radio(Box<radio::Transmitter>),
}

impl Sender {
    fn new(config: &LinkConfig) -> Self {
        match &config.trace {
            Some(trace) => Sender::Trace(Opportunities::new(trace)),
            None => Sender::Rate(Transmitter::new(config.rate_over_time().as_ref())),
        }
    }

    /// When the last byte leaves, and why it gets no further than the air, if it does not.
    #[inline]
    fn send(&mut self, now: Instant, bytes: Bytes) -> (Instant, Option<DropReason>) {
        match self {
            Sender::Rate(transmitter) => (transmitter.send(now, bytes), None),
            Sender::Trace(opportunities) => (opportunities.send(now, bytes), None),
            Sender::Radio(transmitter) => {
                let radio::Turn { ends_at, lost } = transmitter.send(now, bytes);
                (ends_at, lost)
            }
        }
    }

    /// When something that comes to the idle link at `now` starts to leave.
    fn starts_at(&self, now: Instant) -> Instant {
        match self {
            Sender::Rate(transmitter) => transmitter.free_at().max(now),
            Sender::Trace(opportunities) => opportunities.next_at(now),
            // No link over a radio has a managed queue.
            Sender::Radio(_) => now,
        }
    }

    /// When something that waited while the last datagram was sent starts to leave.
    fn free_at(&self) -> Instant {
        match self {
            Sender::Rate(transmitter) => transmitter.free_at(),
            Sender::Trace(opportunities) => opportunities.free_at(),
            Sender::Radio(_) => Instant::ZERO,
        }
    }
}

/// What chance says of a datagram before anything else is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) lost: bool,
    pub(crate) twice: bool,
    /// Its delay, and whether it is late.
    pub(crate) way: (Duration, bool),
}

/// What becomes of a datagram offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It arrives.
    Deliver {
        /// When it arrives at the far end.
        at: Instant,
        /// When a copy of it arrives too, if one does; not before `at`.
        duplicate_at: Option<Instant>,
        /// Whether it arrives with [`ecn::CE`] in place of the bits that it was offered with.
        marked: bool,
    },
    /// It never arrives.
    Dropped(DropReason),
}

/// Why a datagram does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// Chance took it.
    Loss,
    /// The link was down between its offer and its arrival.
    Outage,
    /// It is larger than the link's MTU.
    TooLarge,
    /// It found the queue full, or was the one to go when another did.
    QueueFull,
    /// The management of its queue dropped it, so that others wait for less time; see
    /// [`ManagedLink`].
    Managed,
}

impl Verdict {
    /// One arrival, at `at`, without a mark.
    pub const fn deliver(at: Instant) -> Self {
        Verdict::Deliver { at, duplicate_at: None, marked: false }
    }
}

impl Link {
    /// A link that draws from streams derived from `seed`, which must be of this link alone:
    /// `seed.child("link", index)`.
    ///
    /// # Errors
    /// If a field of `config` makes no link: see [`LinkConfig::validate`]. If it has a managed
    /// queue, which takes a [`ManagedLink`].
    pub fn new(config: &LinkConfig, seed: Seed) -> Result<Self, InvalidConfig> {
        if config.aqm.is_some() {
            return Err(invalid("aqm", "a managed queue", "none, or a link that is managed"));
        }
        Link::without_aqm(config, seed)
    }

    /// As [`Link::new`], whatever [`LinkConfig::aqm`] is.
    fn without_aqm(config: &LinkConfig, seed: Seed) -> Result<Self, InvalidConfig> {
        config.validate()?;
        let duplicate = config.duplicate.unwrap_or(Duplicate { share: 0.0, after: Duration::ZERO });
        Ok(Link {
            overhead: config.overhead,
            mtu: Cursor::new(&config.mtu_over_time()),
            outages: OutageSchedule::new(config.outages_and_end()),
            queue: DropTail::new(config.queue_bytes()),
            mark_above: config.mark_bytes(),
            sender: Sender::new(config),
            propagation: Propagation::new(config, seed),
            loss: LossProcess::over_time(config.losses.as_ref(), config.loss, seed),
            duplicate: Chance::new(duplicate.share, seed.stream("link.duplicate", 0)),
            duplicate_after: duplicate.after,
            last_offer_at: Instant::ZERO,
            stats: LinkStats::default(),
        })
    }

    /// A link whose datagrams are frames of `transmitter`, which takes the place of rate, steps and
    /// trace. One that the radio loses counts as lost; one of a station out of reach as one that meets
    /// an outage. A queue told in bandwidth-delay products has no limit.
    ///
    /// # Errors
    /// As [`Link::new`], and if `config` has a rate or a trace.
    pub fn over_radio(
        config: &LinkConfig,
        seed: Seed,
        transmitter: radio::Transmitter,
    ) -> Result<Self, InvalidConfig> {
        if let Some(rate) = config.rate {
            return Err(invalid("rate", rate, "none beside a radio"));
        }
        if config.trace.is_some() {
            return Err(invalid("trace", "set", "none beside a radio"));
        }
        if config.rates.is_some() {
            return Err(invalid("rates", "set", "none beside a radio"));
        }
        let sender = Sender::Radio(Box::new(transmitter));
        Ok(Link { sender, ..Link::new(config, seed)? })
    }

    /// Hands a datagram with `payload` bytes of UDP payload to the link at `now`. `ecn` are the
    /// two bits that it carries, 0 to 3, as in [`ecn`].
    ///
    /// `now` never goes back; an instant before that of the last offer counts as that one.
    #[inline]
    pub fn offer(&mut self, now: Instant, payload: Bytes, ecn: u8) -> Verdict {
        let now = now.max(self.last_offer_at);
        self.last_offer_at = now;
        let bytes = payload + self.overhead;
        self.stats.offered.add(bytes);
        let verdict = self.judge(now, bytes, ecn);
        match verdict {
            Verdict::Deliver { duplicate_at, marked, .. } => {
                self.stats.delivered.add(bytes);
                if marked {
                    self.stats.marked.add(bytes);
                }
                if duplicate_at.is_some() {
                    self.stats.duplicated.add(bytes);
                }
            }
            Verdict::Dropped(reason) => self.stats.count_drop(reason, bytes),
        }
        verdict
    }

    /// What the link has seen so far.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Bytes that wait or are being sent at `now`, headers included. An instant before that of the
    /// last offer counts as that one.
    pub fn queued(&self, now: Instant) -> Bytes {
        self.queue.occupied_at(now.max(self.last_offer_at))
    }

    /// Whether a datagram of `bytes`, headers included, that is offered at `now` exceeds the MTU.
    #[inline]
    fn is_too_large(&mut self, now: Instant, bytes: Bytes) -> bool {
        self.mtu.seek(now);
        bytes > self.mtu.value()
    }

    fn judge(&mut self, now: Instant, bytes: Bytes, ecn: u8) -> Verdict {
        // Each draws once per datagram offered, whatever becomes of it.
        let lost = self.loss.draw(now);
        let twice = self.duplicate.draw();
        let way = self.propagation.draw();

        self.outages.advance(now);
        if self.outages.cuts_before(now) {
            return Verdict::Dropped(DropReason::Outage);
        }
        if self.is_too_large(now, bytes) {
            return Verdict::Dropped(DropReason::TooLarge);
        }
        self.queue.advance(now);
        if !self.queue.admits(bytes) {
            return Verdict::Dropped(DropReason::QueueFull);
        }
        let marked = self.queue.occupied() > self.mark_above && ecn::can_be_marked(ecn);
        let (departs_at, failed) = self.sender.send(now, bytes);
        self.queue.push(bytes, departs_at);
        self.stats.max_queue = self.stats.max_queue.max(self.queue.occupied());

        let arrival = self.propagation.arrival(departs_at, way);
        if let Some(reason) = failed {
            return Verdict::Dropped(reason);
        }
        if lost {
            return Verdict::Dropped(DropReason::Loss);
        }
        if self.outages.cuts_before(arrival.at) {
            return Verdict::Dropped(DropReason::Outage);
        }
        if arrival.late {
            self.stats.late.add(bytes);
        }
        let copy_at = arrival.at + self.duplicate_after;
        let copied = twice && !self.outages.cuts_before(copy_at);
        Verdict::Deliver { at: arrival.at, duplicate_at: copied.then_some(copy_at), marked }
    }
}

#[cfg(test)]
mod tests;
