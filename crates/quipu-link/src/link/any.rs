//! A link of either kind.

use quipu_base::{Bytes, Instant, Seed};

use super::{Link, ManagedLink};
use crate::radio;
use crate::{InvalidConfig, LinkConfig, LinkStats};

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
