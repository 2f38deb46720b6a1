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
//! 1. It is lost at once if the link is down ([`Outage`]).
//! 2. The queue takes it or drops it ([`QueueLimit`]). A datagram is in the queue until its last
//!    bit has left. If it is ECN-capable and finds a long queue, it may be marked
//!    ([`LinkConfig::mark`]).
//! 3. It is sent at the link's rate, after those before it; the rate may change at set times
//!    ([`RateStep`]), as it was measured over time ([`RateSeries`]). Or it leaves as a recording of
//!    a link says ([`DeliveryTrace`]; [`BuiltinTrace`] for those that ship).
//! 4. It propagates: delay, jitter, and for a share of the datagrams a further delay ([`Reorder`]).
//! 5. It is lost if chance says so ([`Loss`]: each by itself or in bursts), having used its share of
//!    the link, or if an outage comes
//!    before it has arrived. A share of those that arrive do so twice ([`Duplicate`]).
//!
//! Each kind of chance draws from a random stream of its own, once per datagram offered, whatever
//! becomes of the datagram: the n-th datagram offered meets the same chance with every scheduler,
//! and switching jitter on changes no loss.
//!
//! [`HostJitter`] is not part of a link: it is the processing delay of the host that receives.
//!
//! Not here: addresses, routes and payloads (the simulator has them), and a clock.

mod builtin;
mod chance;
mod config;
mod correlated;
pub mod ecn;
mod host;
mod link;
mod loss;
mod outage;
mod propagation;
mod queue;
mod rate;
mod series;
mod stats;
mod trace;

pub use builtin::BuiltinTrace;
pub use config::{Duplicate, InvalidConfig, LinkConfig, Reorder};
pub use host::HostJitter;
pub use link::{DropReason, Link, Verdict};
pub use loss::{GilbertElliott, Loss};
pub use outage::Outage;
pub use queue::QueueLimit;
pub use rate::RateStep;
pub use series::{AtEnd, RateSeries, RateSeriesError};
pub use stats::{Count, LinkStats};
pub use trace::{DeliveryTrace, DeliveryTraceError};
