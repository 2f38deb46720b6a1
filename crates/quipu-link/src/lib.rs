//! Links: rate, delay, jitter, loss, queues, marks and outages, sans-IO, for opaque datagrams.
//!
//! A [`Link`] is one direction between two hosts. A driver offers it a datagram of some size at
//! some instant, and the answer says when the datagram arrives, or why it never does. The link
//! holds no bytes, no timer and no clock, so the same link serves the simulator and a driver in
//! real time.
//!
//! Start with [`LinkConfig`], [`Link`] and [`Verdict`]:
//!
//! ```
//! use quipu_base::{Bytes, Duration, Instant, Rate, Seed};
//! use quipu_link::{Link, LinkConfig, Verdict, ecn};
//!
//! let config = LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(15));
//! let mut link = Link::new(&config, Seed::new(1).child("link", 0))?;
//! // 1,222 B of UDP payload and 28 B of headers take 1 ms at 10 Mbit/s, then 15 ms of delay.
//! let verdict = link.offer(Instant::ZERO, Bytes(1_222), ecn::NOT_ECT);
//! assert_eq!(verdict, Verdict::deliver(Instant::from_nanos(16_000_000)));
//! # Ok::<(), quipu_link::InvalidConfig>(())
//! ```
//!
//! # What happens to a datagram
//!
//! In this order, each step in a part of its own:
//!
//! 1. It is lost at once if the link is down ([`Outage`]), or if it is larger than the link's MTU
//!    ([`LinkConfig::mtu`]).
//! 2. The queue takes it or drops it ([`QueueLimit`]). A datagram is in the queue until its last
//!    bit has left. If it is ECN-capable and finds a long queue, it may be marked
//!    ([`LinkConfig::mark`]). A managed queue decides later: see below.
//! 3. It is sent at the link's rate, after those before it; the rate may change at set times
//!    ([`RateStep`]), or as it was measured over time ([`RateSeries`]). Or it leaves as a recording
//!    of a link says ([`DeliveryTrace`]; [`BuiltinTrace`] has recordings that ship). Or it takes its
//!    turn on a channel that it shares with others ([`radio`]).
//! 4. It propagates: delay, which may change over time ([`Timeline`]; [`PingSeries`] as it was
//!    measured), jitter, and for a share of the datagrams a further delay ([`Reorder`]).
//! 5. It is lost if chance says so ([`Loss`]: each by itself or in bursts), having used its share of
//!    the link, or if an outage comes
//!    before it has arrived. A share of those that arrive do so twice ([`Duplicate`]).
//!
//! Each kind of chance draws from a random stream of its own, once per datagram offered, whatever
//! becomes of the datagram: the n-th datagram offered meets the same chance with every scheduler,
//! and switching jitter on changes no loss.
//!
//! [`Capacity`] tells what a link could carry at most between two instants.
//!
//! # Queues that are managed
//!
//! A drop-tail queue is first in, first out, so what becomes of a datagram is known when it is
//! offered. CoDel and its relatives decide when a datagram is about to be sent, by what has come in
//! the meantime. [`ManagedLink`], a link with such a queue ([`Aqm`]), therefore answers
//! [`Offer::Queued`] with a [`Ticket`], and the driver keeps the datagram; a [`Departure`] is the
//! verdict of a ticket. All else is as above.
//!
//! ```
//! use quipu_base::{Bytes, Duration, Instant, Rate, Seed};
//! use quipu_link::{Aqm, CoDel, FlowKey, LinkConfig, ManagedLink, Offer, Verdict, ecn};
//!
//! let config = LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(15))
//!     .with_aqm(Aqm::CoDel(CoDel::default()));
//! let mut link = ManagedLink::new(&config, Seed::new(1).child("link", 0))?;
//! let (now, flow) = (Instant::ZERO, FlowKey::default());
//! let first = link.offer(now, Bytes(1_222), ecn::NOT_ECT, flow);
//! let departure = link.depart(now).expect("an idle link sends at once");
//! assert_eq!(Offer::Queued(departure.ticket), first);
//! assert_eq!(departure.verdict, Verdict::deliver(Instant::from_nanos(16_000_000)));
//! // The next one waits until the first has been sent.
//! let _ = link.offer(now, Bytes(1_222), ecn::NOT_ECT, flow);
//! assert_eq!(link.depart(now), None);
//! assert_eq!(link.next_departure(), Some(Instant::from_nanos(1_000_000)));
//! # Ok::<(), quipu_link::InvalidConfig>(())
//! ```
//!
//! # Hosts
//!
//! What a host does is not part of a link. [`HostJitter`] is a random processing delay of the host that
//! receives. [`HostCosts`] says what sockets, timers and the processor of a host cost, if they are to
//! cost anything; [`HostTimer`], [`HostWake`] and [`KernelQueue`] are the parts of that which have a state of their own.
//!
//! Not here: addresses, routes and payloads (the simulator has them), and a clock.

mod aqm;
mod builtin;
mod capacity;
mod chance;
mod columns;
mod config;
pub mod convert;
mod correlated;
pub mod ecn;
mod host;
mod link;
mod loss;
mod outage;
mod pings;
mod propagation;
mod queue;
pub mod radio;
mod rate;
mod recording;
mod series;
mod stats;
mod table;
mod timeline;
mod trace;

pub use aqm::{Aqm, AqmLimit, CoDel, FlowKey, FqCoDel, Pie};
pub use builtin::BuiltinTrace;
pub use capacity::Capacity;
pub use columns::{Column, ColumnUnit, Columns, ColumnsError};
pub use config::{Duplicate, InvalidConfig, LinkConfig, Reorder};
pub use host::{HostCosts, HostJitter, HostTimer, HostWake, InvalidCosts, KernelQueue};
pub use link::{Answer, AnyLink, Departure, DropReason, Link, ManagedLink, Offer, Ticket, Verdict};
pub use loss::{GilbertElliott, Loss};
pub use outage::Outage;
pub use pings::{PingSeries, has_losses, read_losses};
pub use queue::QueueLimit;
pub use rate::RateStep;
pub use recording::{Recording, TraceError};
pub use series::RateSeries;
pub use stats::{Count, LinkStats};
pub use table::SeriesError;
pub use timeline::{AtEnd, Play, Timeline};
pub use trace::{DeliveryTrace, DeliveryTraceError};
