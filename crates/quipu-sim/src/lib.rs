//! A discrete-event simulator: it moves opaque datagrams between nodes over links, in virtual time.
//!
//! - [`Node`]: a sans-IO host, such as a protocol engine with its application. It gets datagrams
//!   and the time, and gives datagrams and a deadline.
//! - [`World`]: nodes, [links](quipu_link), routes between their addresses over one or more links,
//!   and the loop that runs them. A node's host costs nothing unless it is added by
//!   [`World::add_host`], with timers, batches, a processor and sockets that do.
//! - [`Observer`]: sees each datagram sent, between two links, leaving a managed queue, and received; [`EventHash`] condenses a whole run into
//!   one number.
//!
//! Nothing here knows what the datagrams mean, reads a clock or starts a thread. Events happen in
//! order of (time, order of creation), so the same seed gives the same run, to the nanosecond.
//!
//! # Example
//!
//! A client sends a datagram, the server sends it back, and the round trip is what the links say:
//!
//! ```
//! use quipu_base::{Duration, Instant, Rate, Seed};
//! use quipu_link::LinkConfig;
//! use quipu_sim::{Envelope, Interface, Node, Outgoing, World, WorldConfig, address};
//!
//! /// Sends what it has; a server has what it received.
//! #[derive(Default)]
//! struct Echo {
//!     is_server: bool,
//!     to_send: Option<Envelope>,
//!     received_at: Option<Instant>,
//! }
//!
//! impl Node for Echo {
//!     fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, _payload: &mut [u8]) {
//!         self.received_at = Some(now);
//!         // An envelope shows a node its own address as local, both coming and going.
//!         self.to_send = self.is_server.then_some(*envelope);
//!     }
//!     fn handle_timeout(&mut self, _now: Instant) {}
//!     fn poll_transmit(&mut self, _now: Instant, out: &mut Outgoing<'_>) {
//!         if let Some(envelope) = self.to_send.take() {
//!             out.buffer()[..1_222].fill(0);
//!             out.send(&envelope, 1_222);
//!         }
//!     }
//!     fn poll_timeout(&self) -> Option<Instant> {
//!         None
//!     }
//! }
//!
//! let config = WorldConfig { host_jitter: Duration::ZERO, ..WorldConfig::new(Seed::new(1)) };
//! let mut world = World::new(config);
//! let (here, there) = (address(1, 0, 50_000), address(2, 0, 443));
//! let to_send = Some(Envelope { local: here, remote: there, ecn: 0 });
//! let client = world.add_node(Echo { to_send, ..Echo::default() });
//! let server = world.add_node(Echo { is_server: true, ..Echo::default() });
//! let link = LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(15));
//! world.add_path(
//!     Interface { node: client, address: here },
//!     Interface { node: server, address: there },
//!     &link,
//!     &link,
//! )?;
//! world.run_until(Instant::ZERO + Duration::from_secs(1))?;
//! // 1,250 B at 10 Mbit/s take 1 ms, and the delay is 15 ms, each way.
//! assert_eq!(world.node(client).received_at, Some(Instant::from_nanos(32_000_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event;
mod hosted;
mod network;
mod node;
mod observer;
mod outgoing;
mod parked;
mod pool;
mod run;
mod sockets;
mod wake;
mod world;

pub use event::EventQueue;
pub use network::{Interface, LinkId, PathLinks, TopologyError, WiredRoute, Wiring, address};
pub use node::{Envelope, Node, NodeId};
pub use observer::{Departed, EventHash, Fate, Hop, Observer, Received, Sent};
pub use outgoing::Outgoing;
pub use run::{RunEnd, RunError};
pub use world::{World, WorldConfig, WorldStats};
