//! HTTP over QUIC streams, sans-IO: nothing here owns a socket, a clock or a connection.
//!
//! - [`h2`]: HTTP/2 over QUIC streams with the dependency tree of RFC 7540, the mapping of the papers.
//!   Servers may push. Start with [`h2::Client`], [`h2::Server`] and the [`transport::Transport`] they run on.
//! - [`byte_stream`]: the same ends over one byte stream with the framing of RFC 9113, as over TCP.
//! - [`h3`]: HTTP/3, with the urgencies of RFC 9218. [`exchange`]: what both versions share.
//! - [`hpack`] and [`qpack`]: field compression of HTTP/2 and of HTTP/3; [`field`]: field lists, and what
//!   both share.
//! - [`priority`]: the `priority` field of RFC 9218.
//! - [`message`]: what makes a request or a response well-formed.
//!
//! Whoever drives an end passes the transport's events on and does what the end's own events ask for.
//! A client's loop, for streams that became readable:
//!
//! ```
//! use quipu_base::StreamId;
//! use quipu_http::h2::{Client, ClientEvent};
//! use quipu_http::transport::Transport;
//!
//! fn on_readable<T: Transport>(client: &mut Client, transport: &mut T, stream: StreamId) {
//!     let mut sink = |stream: StreamId, octets: &[u8]| println!("{stream}: {} octets", octets.len());
//!     client.on_stream_readable(transport, stream, &mut sink);
//!     while let Some(event) = client.poll() {
//!         match event {
//!             ClientEvent::ResponseHead { stream, status, .. } => {
//!                 println!("{stream}: status {status}");
//!                 // The body may have come before the head.
//!                 client.on_stream_readable(transport, stream, &mut sink);
//!             }
//!             ClientEvent::ConnectionFailed(error) => println!("close with {}", error.code()),
//!             other => println!("{other:?}"),
//!         }
//!     }
//! }
//! ```
//!
//! Not here: sockets, TLS, QUIC packets, what a browser asks for and when.

mod budget;
pub mod byte_stream;
pub mod exchange;
pub mod field;
pub mod h2;
pub mod h3;
pub mod hpack;
pub mod message;
pub mod priority;
pub mod qpack;
pub mod transport;
