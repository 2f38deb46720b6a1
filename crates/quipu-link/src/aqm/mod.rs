//! Queues that are managed: they drop or mark before they are full, by how long datagrams wait.
//!
//! - [`config`](Aqm): which management, and its parameters.
//! - `waiting`: a datagram that waits, and a queue of them.
//! - `codel`, `fq_codel`, `pie`: an algorithm each.
//!
//! [`ManagedLink`](crate::ManagedLink) puts datagrams in and takes them out; nothing here knows of rates.

mod codel;
mod config;
mod fq_codel;
mod pie;
mod waiting;

use std::net::{IpAddr, SocketAddr};

use quipu_base::{Bytes, Instant, Seed};

use crate::DropReason;
use codel::CoDelQueue;
pub use config::{Aqm, AqmLimit, CoDel, FqCoDel, Pie};
use fq_codel::FqCoDelQueue;
use pie::PieQueue;
pub(crate) use waiting::Waiting;

/// To which flow a datagram belongs: opaque to a link, the same for all datagrams of a flow.
///
/// A flow is what the driver takes for one; the simulator takes a route, which is a pair of
/// addresses and so one path of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub u64);

impl FlowKey {
    /// The same number for the same pair of addresses, most likely another for any other pair: their
    /// octets and ports, mixed word by word.
    pub fn between(from: SocketAddr, to: SocketAddr) -> FlowKey {
        let mut key = 0;
        for address in [from, to] {
            let octets = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            let octets = u128::from_be_bytes(octets);
            // The halves of the address, one after the other.
            for word in [(octets >> 64) as u64, octets as u64, u64::from(address.port())] {
                let mixed: u64 = (key ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                key = mixed ^ mixed >> 29;
            }
        }
        FlowKey(key)
    }
}

/// A managed queue of any kind.
#[derive(Debug)]
pub(crate) enum ManagedQueue {
    CoDel(CoDelQueue),
    FqCoDel(Box<FqCoDelQueue>),
    Pie(PieQueue),
}

/// The same call on whichever it is.
macro_rules! each {
    ($queue:expr, $it:ident => $call:expr) => {
        match $queue {
            ManagedQueue::CoDel($it) => $call,
            ManagedQueue::FqCoDel($it) => $call,
            ManagedQueue::Pie($it) => $call,
        }
    };
}

impl ManagedQueue {
    pub(crate) fn new(aqm: &Aqm, seed: Seed) -> Self {
        match aqm {
            Aqm::CoDel(config) => ManagedQueue::CoDel(CoDelQueue::new(config)),
            Aqm::FqCoDel(config) => ManagedQueue::FqCoDel(Box::new(FqCoDelQueue::new(
                config,
                seed.number("link.flows", 0),
            ))),
            Aqm::Pie(config) => ManagedQueue::Pie(PieQueue::new(config, seed)),
        }
    }

    /// Takes a datagram of `flow` at `now`, or says why not. Those that it drops to make room for it
    /// go to `dropped`; they were there before, or are the datagram itself.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        waiting: Waiting,
        flow: FlowKey,
        dropped: &mut Vec<Waiting>,
    ) -> Result<(), DropReason> {
        match self {
            ManagedQueue::CoDel(queue) => queue.enqueue(waiting),
            ManagedQueue::FqCoDel(queue) => {
                queue.enqueue(waiting, flow, dropped);
                Ok(())
            }
            ManagedQueue::Pie(queue) => queue.enqueue(now, waiting),
        }
    }

    /// Something was offered that never comes to the queue.
    pub(crate) fn pass(&mut self) {
        if let ManagedQueue::Pie(queue) = self {
            queue.pass();
        }
    }

    /// The datagram that is sent next, from `now` on; those that the management drops before it go
    /// to `dropped`. `None` if none is left.
    pub(crate) fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting>) -> Option<Waiting> {
        match self {
            ManagedQueue::CoDel(queue) => queue.dequeue(now, dropped),
            ManagedQueue::FqCoDel(queue) => queue.dequeue(now, dropped),
            ManagedQueue::Pie(queue) => queue.dequeue(now),
        }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> Bytes {
        each!(self, queue => queue.bytes())
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        each!(self, queue => queue.is_empty())
    }
}
