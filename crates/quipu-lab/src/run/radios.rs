//! What the paths that have a model of energy or a price cost a client.

use std::net::SocketAddr;

use quipu_base::{Bytes, Instant};
use quipu_record::energy::{RadioClock, RadioRecord};
use quipu_scenario::{Network, PathSpec};

use super::topology::path_of;

/// The radios of a client, one for each path that has a model or a price.
#[derive(Debug)]
pub(super) struct Radios {
    /// By position of the path.
    clocks: Vec<Option<RadioClock>>,
    /// What a datagram has above its UDP payload.
    overhead: Bytes,
}

impl Radios {
    /// Those of `network`; `None` if no path has any.
    pub(super) fn of(network: &Network, overhead: Bytes) -> Option<Radios> {
        let clock = |(path, spec): (u32, &PathSpec)| {
            let model = spec.energy.map(|model| model.power());
            let price = spec.price_millionths();
            let counts = model.is_some() || price.is_some();
            counts.then(|| RadioClock::new(path, model, price))
        };
        let clocks: Vec<Option<RadioClock>> = (0..).zip(&network.paths).map(clock).collect();
        let any = clocks.iter().any(Option::is_some);
        any.then_some(Radios { clocks, overhead })
    }

    fn clock(&mut self, local: SocketAddr) -> Option<&mut RadioClock> {
        self.clocks.get_mut(path_of(local)?)?.as_mut()
    }

    /// A datagram came to the client's address `local`.
    pub(super) fn on_received(&mut self, now: Instant, local: SocketAddr, payload: usize) {
        let bytes = self.overhead + Bytes(payload as u64);
        if let Some(clock) = self.clock(local) {
            clock.on_received(now, bytes);
        }
    }

    /// The client sends a datagram from its address `local`.
    pub(super) fn on_sent(&mut self, now: Instant, local: SocketAddr, payload: usize) {
        let bytes = self.overhead + Bytes(payload as u64);
        if let Some(clock) = self.clock(local) {
            clock.on_sent(now, bytes);
        }
    }

    /// What was counted so far.
    pub(super) fn records(&self) -> Vec<RadioRecord> {
        self.clocks.iter().flatten().map(RadioClock::record).collect()
    }
}
