//! A link of either kind.

use quipu_base::{Bytes, Instant, Seed};

use super::{Departure, Link, ManagedLink, Offer, Ticket, Verdict};
use crate::radio;
use crate::{FlowKey, InvalidConfig, LinkConfig, LinkStats};

/// One direction of a link, whose answers are verdicts, or which has a managed queue.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most links are of the large kind, and it is asked most"
)]
pub enum AnyLink {
    /// With a drop-tail queue.
    Plain(Link),
    /// With a managed queue.
    Managed(Box<ManagedLink>),
}

/// What a link of either kind answers at once to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// This becomes of it.
    Decided(Verdict),
    /// It waits in a managed queue: see [`AnyLink::depart`].
    Waits(Ticket),
}

impl AnyLink {
    /// The link that `config` describes, as [`Link::new`] and [`ManagedLink::new`] make it.
    ///
    /// # Errors
    /// If a field of `config` makes no link.
    pub fn new(config: &LinkConfig, seed: Seed) -> Result<AnyLink, InvalidConfig> {
        Ok(match config.aqm {
            None => AnyLink::Plain(Link::new(config, seed)?),
            Some(_) => AnyLink::Managed(Box::new(ManagedLink::new(config, seed)?)),
        })
    }

    /// A link over the radio: see [`Link::over_radio`].
    ///
    /// # Errors
    /// As of that.
    pub fn over_radio(
        config: &LinkConfig,
        seed: Seed,
        transmitter: radio::Transmitter,
    ) -> Result<AnyLink, InvalidConfig> {
        Ok(AnyLink::Plain(Link::over_radio(config, seed, transmitter)?))
    }

    /// Hands a datagram to the link at `now`, as [`Link::offer`] and [`ManagedLink::offer`] do.
    pub fn offer(&mut self, now: Instant, payload: Bytes, ecn: u8, flow: FlowKey) -> Answer {
        match self {
            AnyLink::Plain(link) => Answer::Decided(link.offer(now, payload, ecn)),
            AnyLink::Managed(link) => match link.offer(now, payload, ecn, flow) {
                Offer::Dropped(reason) => Answer::Decided(Verdict::Dropped(reason)),
                Offer::Queued(ticket) => Answer::Waits(ticket),
            },
        }
    }

    /// What has been decided by `now` about a datagram that waits: see [`ManagedLink::depart`].
    pub fn depart(&mut self, now: Instant) -> Option<Departure> {
        match self {
            AnyLink::Plain(_) => None,
            AnyLink::Managed(link) => link.depart(now),
        }
    }

    /// When [`AnyLink::depart`] next has something to tell.
    pub fn next_departure(&self) -> Option<Instant> {
        match self {
            AnyLink::Plain(_) => None,
            AnyLink::Managed(link) => link.next_departure(),
        }
    }

    /// What the link has seen so far.
    pub fn stats(&self) -> &LinkStats {
        match self {
            AnyLink::Plain(link) => link.stats(),
            AnyLink::Managed(link) => link.stats(),
        }
    }

    /// Bytes that wait or are being sent at `now`, headers included.
    pub fn queued(&self, now: Instant) -> Bytes {
        match self {
            AnyLink::Plain(link) => link.queued(now),
            AnyLink::Managed(link) => link.queued(now),
        }
    }
}
