//! Wi-Fi: stations that move, the signal that reaches them, and the airtime that they share.
//!
//! A [`Medium`] is one channel of 802.11a. Whatever is sent on it, to or from any station, by any
//! access point, takes turns: it is one server of airtime. [`Medium::join`] gives a pair of an
//! access point and a station a [`Transmitter`] in each direction, and [`Link::over_radio`] makes a
//! link of it, with the queue, delay, loss and outages that every link has.
//!
//! [`Link::over_radio`]: crate::Link::over_radio
//!
//! ```
//! use quipu_base::{Bytes, Instant, Seed};
//! use quipu_link::radio::{AccessPoint, Channel, Medium, Motion, PathLoss, Position, Station, Timing};
//! use quipu_link::{Link, LinkConfig, Verdict, ecn};
//!
//! let seed = Seed::new(1);
//! let medium = Medium::new(Channel::new(36).ok_or("no channel")?, PathLoss::default(), Timing::Standard)?;
//! let ap = AccessPoint::at(Position::new(45.0, 50.0));
//! let station = Station::new(Motion::Fixed(Position::new(50.0, 70.0)), seed.child("station", 0));
//! let [down, up] = medium.join(&ap, &station, seed.child("pair", 0))?;
//! let mut down = Link::over_radio(&LinkConfig::default(), seed.child("link", 0), down)?;
//! let mut up = Link::over_radio(&LinkConfig::default(), seed.child("link", 1), up)?;
//! // 1,500 B of IP at 54 Mbit/s: 326 us and a backoff of up to 15 slots of 9 us.
//! let Verdict::Deliver { at: first, .. } = down.offer(Instant::ZERO, Bytes(1_472), ecn::NOT_ECT)
//! else { return Err("lost".into()) };
//! assert!((326_000..=461_000).contains(&first.as_nanos()));
//! // The other direction waits for it.
//! let Verdict::Deliver { at: second, .. } = up.offer(Instant::ZERO, Bytes(52), ecn::NOT_ECT)
//! else { return Err("lost".into()) };
//! assert!(second > first);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is modelled
//!
//! - Motion: [`Motion`], piecewise linear, or random waypoints.
//! - Signal: [`PathLoss`], log-distance with the loss at 1 m from Friis' equation, shadowing that
//!   changes slowly along the way ([`Shadowing`]), and fading that is drawn for each attempt.
//! - Rate: [`PhyRate`], the highest whose sensitivity is met with a margin. Without the lowest there
//!   is no association: what is to be sent then is lost, as in an outage.
//! - Frames: a chance of error by signal and length, up to seven attempts, each of which takes its
//!   airtime: DIFS, backoff, preamble, symbols, SIFS, acknowledgement ([`Timing`]).
//! - Sharing: frames are sent one after the other in the order in which they were handed over.
//!
//! The signal depends on the seed and the time alone, so that every policy meets the same radio;
//! errors and backoff are drawn per frame, in the order of service.
//!
//! # What is not
//!
//! Collisions: whoever is to send next is known, as if a coordinator told it. With two stations that
//! always have something to send, about one attempt in ten would collide (Bianchi, "Performance
//! Analysis of the IEEE 802.11 Distributed Coordination Function", 2000), while their shorter wait
//! for the smaller of two backoffs makes up for a part of it. Turns: DCF lets each station send a
//! frame in turn, however long the queues; here a short queue waits behind a long one. wmediumd, with
//! which Mininet-WiFi emulates a channel, does the same. Neither are there beacons, scans,
//! hand-overs, rate chains, aggregation, hidden stations, spatial reuse, interference between
//! channels, or the time of flight.

mod medium;
mod motion;
mod path_loss;
mod phy;
mod reach;

pub use medium::{AirStats, Medium, Transmitter};
pub use motion::{Area, Motion, Position, Waypoint};
pub use path_loss::{Channel, PathLoss, Shadowing};
pub use phy::{MOST_ATTEMPTS, PhyRate, Timing};
pub use reach::{AccessPoint, Reach, Station, Way};

pub(crate) use medium::Turn;
