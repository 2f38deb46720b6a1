//! A link with a managed queue: datagrams wait until they are sent, or are dropped on the way.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant, Seed};

use super::{Drawn, DropReason, Link, Verdict};
use crate::aqm::{FlowKey, ManagedQueue, Waiting};
use crate::config::invalid;
use crate::{InvalidConfig, LinkConfig, LinkStats, ecn};

/// One direction of a link whose queue is managed: as [`Link`], but what becomes of a datagram is
/// known only when it leaves the queue.
///
/// A driver keeps each datagram for which the answer was [`Offer::Queued`]. After each such answer,
/// and at each [`ManagedLink::next_departure`], it calls [`ManagedLink::depart`] until that has
/// nothing more to tell.
#[derive(Debug)]
pub struct ManagedLink {
    /// All parts but the queue, which stays empty.
    link: Link,
    queue: ManagedQueue,
    /// The datagram that was sent last, and when its last bit leaves.
    sent: Bytes,
    sent_until: Instant,
    /// When the next one starts to leave, if any waits.
    serves_at: Option<Instant>,
    /// What is decided and not told.
    decided: VecDeque<Departure>,
    tickets: Tickets,
    /// Empty between calls.
    dropped: Vec<Waiting>,
}

/// A datagram that waits in a managed queue. The numbers are small, and each is given out again once
/// its [`Departure`] has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u32);

impl Ticket {
    /// A position, from zero; below the greatest number of datagrams that ever waited at a time.
    pub const fn index(self) -> usize {
        // At least 32 bits wide on every platform that can hold a world.
        self.0 as usize
    }
}

/// What a link with a managed queue answers at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Offer {
    /// It never arrives.
    Dropped(DropReason),
    /// It waits, and a [`Departure`] will say what becomes of it.
    Queued(Ticket),
}

/// What becomes of a datagram that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The datagram.
    pub ticket: Ticket,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// Numbers that nobody has.
#[derive(Debug, Default)]
struct Tickets {
    free: Vec<Ticket>,
    given: u32,
}

impl Tickets {
    fn take(&mut self) -> Ticket {
        self.free.pop().unwrap_or_else(|| {
            // A queue holds at most a million datagrams.
            self.given += 1;
            Ticket(self.given - 1)
        })
    }
}

impl ManagedLink {
    /// A link that draws from streams derived from `seed`, which must be of this link alone, as for
    /// [`Link::new`].
    ///
    /// # Errors
    /// If a field of `config` makes no link: see [`LinkConfig::validate`]. If it has no managed queue.
    pub fn new(config: &LinkConfig, seed: Seed) -> Result<Self, InvalidConfig> {
        let aqm = config.aqm.ok_or_else(|| invalid("aqm", "none", "a managed queue"))?;
        Ok(ManagedLink {
            link: Link::without_aqm(config, seed)?,
            queue: ManagedQueue::new(&aqm, seed),
            sent: Bytes::ZERO,
            sent_until: Instant::ZERO,
            serves_at: None,
            decided: VecDeque::new(),
            tickets: Tickets::default(),
            dropped: Vec::new(),
        })
    }

    /// Hands a datagram of `flow` with `payload` bytes of UDP payload to the link at `now`. `ecn`
    /// are the two bits that it carries, 0 to 3, as in [`ecn`].
    ///
    /// `now` never goes back; an instant before that of the last offer counts as that one.
    pub fn offer(&mut self, now: Instant, payload: Bytes, ecn: u8, flow: FlowKey) -> Offer {
        let now = now.max(self.link.last_offer_at);
        // What a driver that calls late has missed.
        while let Some(at) = self.serves_at.filter(|at| *at < now) {
            self.serve(at);
        }
        self.link.last_offer_at = now;
        let bytes = payload + self.link.overhead;
        self.link.stats.offered.add(bytes);
        let offer = self.enqueue(now, bytes, ecn, flow);
        match offer {
            Offer::Dropped(reason) => self.link.stats.count_drop(reason, bytes),
            Offer::Queued(_) => {
                let stats = &mut self.link.stats;
                stats.waiting.add(bytes);
                self.tell_dropped(DropReason::QueueFull);
                let queued = self.queued(now);
                self.link.stats.max_queue = self.link.stats.max_queue.max(queued);
            }
        }
        offer
    }

    fn enqueue(&mut self, now: Instant, bytes: Bytes, ecn: u8, flow: FlowKey) -> Offer {
        let Link { loss, duplicate, propagation, outages, .. } = &mut self.link;
        // Each draws once per datagram offered, whatever becomes of it.
        let drawn =
            Drawn { lost: loss.draw(now), twice: duplicate.draw(), way: propagation.draw() };
        outages.advance(now);
        if outages.cuts_before(now) {
            self.queue.pass();
            return Offer::Dropped(DropReason::Outage);
        }
        let cut_at = outages.next_from();
        if self.link.is_too_large(now, bytes) {
            self.queue.pass();
            return Offer::Dropped(DropReason::TooLarge);
        }
        let marked = self.queued(now) > self.link.mark_above && ecn::can_be_marked(ecn);
        let ticket = self.tickets.take();
        let waiting = Waiting { ticket, bytes, enqueued_at: now, cut_at, drawn, ecn, marked };
        if let Err(reason) = self.queue.enqueue(now, waiting, flow, &mut self.dropped) {
            self.tickets.free.push(ticket);
            return Offer::Dropped(reason);
        }
        let sender = &self.link.sender;
        self.serves_at.get_or_insert_with(|| sender.starts_at(now));
        Offer::Queued(ticket)
    }

    /// When [`ManagedLink::depart`] next has something to tell. `None` if nothing waits.
    pub fn next_departure(&self) -> Option<Instant> {
        if self.decided.is_empty() { self.serves_at } else { Some(self.link.last_offer_at) }
    }

    /// What becomes of a datagram that waited, as decided by `now`: it is sent, or dropped. To be
    /// called until there is nothing more; further calls are harmless.
    ///
    /// A driver that calls late gets what it would have got in time, but for what it offered
    /// meanwhile.
    pub fn depart(&mut self, now: Instant) -> Option<Departure> {
        loop {
            if let Some(departure) = self.decided.pop_front() {
                self.tickets.free.push(departure.ticket);
                return Some(departure);
            }
            let at = self.serves_at.filter(|at| *at <= now)?;
            self.serve(at);
        }
    }

    /// What the link has seen so far.
    pub fn stats(&self) -> &LinkStats {
        &self.link.stats
    }

    /// Bytes that wait or are being sent at `now`, headers included: to be asked before
    /// [`ManagedLink::next_departure`]. An instant before that of the last offer counts as that one.
    pub fn queued(&self, now: Instant) -> Bytes {
        let is_sending = now.max(self.link.last_offer_at) < self.sent_until;
        self.queue.bytes() + if is_sending { self.sent } else { Bytes::ZERO }
    }

    /// Lets the next datagram leave from `at` on.
    fn serve(&mut self, at: Instant) {
        let next = self.queue.dequeue(at, &mut self.dropped);
        self.tell_dropped(DropReason::Managed);
        if let Some(next) = next {
            let verdict = self.send(&next);
            self.decided.push_back(Departure { ticket: next.ticket, verdict });
        }
        let waits = !self.queue.is_empty();
        self.serves_at = waits.then(|| self.link.sender.free_at().max(at));
    }

    /// Sends a datagram that has waited, and says what becomes of it.
    fn send(&mut self, next: &Waiting) -> Verdict {
        let Link { sender, propagation, stats, duplicate_after, .. } = &mut self.link;
        let Waiting { bytes, drawn, cut_at, marked, .. } = *next;
        // With the instant at which it came, so that a busy link keeps the fraction of a nanosecond,
        // or the opportunity, at which the datagram before ended.
        let (departs_at, failed) = sender.send(next.enqueued_at, bytes);
        (self.sent, self.sent_until) = (bytes, departs_at);
        stats.waiting.take(bytes);
        let arrival = propagation.arrival(departs_at, drawn.way);
        let lost = drawn.lost.then_some(DropReason::Loss);
        let cut = (cut_at <= arrival.at).then_some(DropReason::Outage);
        if let Some(reason) = failed.or(lost).or(cut) {
            stats.count_drop(reason, bytes);
            return Verdict::Dropped(reason);
        }
        let copy_at = arrival.at + *duplicate_after;
        let duplicate_at = (drawn.twice && copy_at < cut_at).then_some(copy_at);
        for (happened, count) in [
            (true, &mut stats.delivered),
            (arrival.late, &mut stats.late),
            (marked, &mut stats.marked),
            (duplicate_at.is_some(), &mut stats.duplicated),
        ] {
            if happened {
                count.add(bytes);
            }
        }
        Verdict::Deliver { at: arrival.at, duplicate_at, marked }
    }

    /// Counts those that were just dropped, to be told next.
    fn tell_dropped(&mut self, reason: DropReason) {
        for Waiting { ticket, bytes, .. } in self.dropped.drain(..) {
            self.link.stats.waiting.take(bytes);
            self.link.stats.count_drop(reason, bytes);
            self.decided.push_back(Departure { ticket, verdict: Verdict::Dropped(reason) });
        }
    }
}

#[cfg(test)]
mod tests;
