//! A hostile peer that forges authentic packets, and somebody on the wire who has no keys.
//!
//! - [`Forge`]: takes the place of one end of a connection after an authentic handshake. It has all
//!   keys, and sends any frames in any packet, of any path, packet number and key phase, in
//!   datagrams of any layout from any address. What the victim answers it opens and reads.
//! - [`one_rtt`], [`initial`], [`handshake`]: packets to forge, as values: see [`Forgery`].
//!   [`datagram`] and [`raw`] make datagrams of them: see [`Datagram`].
//! - [`Pair`]: two honest ends, and an attacker on the wire who sees, delays, drops, copies and
//!   injects datagrams, but has no keys.
//! - [`End`]: one honest end, driven by hand. It measures what it received, sent and allocated
//!   ([`Work`]), and notes a deadline that does not move.
//! - [`Hostility`]: random moves of a forger, by a [seed](Draw) or by the [bytes](Octets) of a fuzzer,
//!   and [`Bounds`] that none of them may make the victim pass.
//! - [`Insider`]: forges packets of one end of a connection whose datagrams go over sockets.
//! - [`Vault`], [`Tap`]: the keys of an end, taken where TLS hands them out.
//!
//! ```
//! use quipu_base::Role;
//! use quipu_quic::wire::Frame;
//! use quipu_testkit::forge::{Forge, Setup, one_rtt};
//!
//! let mut forge = Forge::against(Role::Server, &Setup::default());
//! // A stream that only the server may open.
//! let stream = quipu_base::StreamId(1);
//! forge.send(one_rtt().frame(Frame::StopSending { stream, error_code: 0 }));
//! assert!(forge.closed().is_some());
//! ```

mod author;
mod book;
mod bounds;
pub mod catalogue;
mod draw;
mod end;
mod extensions;
pub mod http;
mod insider;
mod moves;
mod packet;
mod pair;
mod peer;
mod tap;

pub(crate) use author::Author;
pub(crate) use book::Book;
pub use book::{Heard, Issued};
pub use bounds::{Bounds, Breach};
pub use draw::{Draw, Octets};
pub use end::{Allocated, Application, End, Meter, Sent, Setup, Work, unmetered};
pub use insider::Insider;
pub use moves::{Hostility, spoofed};
pub use packet::{Datagram, Forgery, Number, datagram, handshake, initial, one_rtt, raw};
pub use pair::{Fate, Flight, OnWire, Pair};
pub use peer::Forge;
pub use tap::{EditParameters, SharedDirection, SharedKeys, Tap, Vault};
