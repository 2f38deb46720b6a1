//! Datagrams that wait in managed queues of links.

use quipu_base::Instant;
use quipu_link::Ticket;

use crate::LinkId;
use crate::pool::SlotId;

/// Where the datagrams are, and which links have an event that waits. Empty in a world without
/// managed queues.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    /// By link, up to the last one that has ever had a datagram waiting.
    links: Vec<Waiting>,
}

#[derive(Clone, Debug, Default)]
struct Waiting {
    /// By ticket; of those that nobody has, any.
    slots: Vec<SlotId>,
    /// Whether the event of the link's next departure waits.
    armed: bool,
}

impl Parked {
    /// Keeps a datagram that `link` has given a ticket.
    pub(crate) fn keep(&mut self, link: LinkId, ticket: Ticket, slot: SlotId) {
        if self.links.len() <= link.index() {
            self.links.resize(link.index() + 1, Waiting::default());
        }
        let slots = &mut self.links[link.index()].slots;
        if slots.len() <= ticket.index() {
            slots.resize(ticket.index() + 1, slot);
        }
        slots[ticket.index()] = slot;
    }

    /// The datagram of a ticket that [`Self::keep`] was told.
    pub(crate) fn slot(&self, link: LinkId, ticket: Ticket) -> SlotId {
        self.links[link.index()].slots[ticket.index()]
    }

    /// The link's next departure is at `at`. Returns when a new event must happen, if one must: a
    /// link that has one waiting needs no other, as its next departure never moves to an earlier
    /// time.
    pub(crate) fn arm(&mut self, link: LinkId, at: Option<Instant>) -> Option<Instant> {
        // Nothing lies after the end of time.
        let at = at.filter(|at| *at != Instant::FAR_FUTURE)?;
        let waiting = self.links.get_mut(link.index())?;
        (!std::mem::replace(&mut waiting.armed, true)).then_some(at)
    }

    /// The event of the link has happened.
    pub(crate) fn fired(&mut self, link: LinkId) {
        if let Some(waiting) = self.links.get_mut(link.index()) {
            waiting.armed = false;
        }
    }
}
