//! HTTP/3: RFC 9114, with QPACK (RFC 9204), priorities (RFC 9218), datagrams (RFC 9297) and extended
//! CONNECT (RFC 9220).
//!
//! - Each end opens three unidirectional streams that live as long as the connection: for control
//!   frames, and for QPACK's encoder and decoder. They are [control
//!   streams](crate::transport::Transport::set_control) of the transport: policies do not see them.
//! - A request has a bidirectional stream of its own, with HEADERS, DATA and perhaps trailers in both
//!   directions. A body of known length is one DATA frame.
//! - Urgencies come in the [`priority` field](crate::priority) and in PRIORITY_UPDATE frames, and go to
//!   the policies of the server's transport.
//! - Bodies are read as the application takes them, if it says how much: what it leaves gives no credit.
//! - Nothing is pushed: this client allows none, and this server promises none.
//!
//! The crate [root](crate) shows how an end is driven.

mod client;
mod code;
mod control;
mod datagram;
mod error;
mod event;
pub mod frame;
mod receiving;
mod sending;
mod server;
mod streams;

pub use client::{Client, ClientConfig, Request, RequestError};
pub use code::ErrorCode;
pub use control::{Limits, TableUse};
pub use error::ConnectionError;
pub use event::{ClientEvent, ServerEvent};
pub use frame::Settings;
pub use server::{RespondError, Server, ServerConfig};

pub use crate::exchange::{Body, BodyError, Failure};

/// The protocol's name in TLS. <https://www.rfc-editor.org/rfc/rfc9114#section-3.1>
pub const ALPN: &[u8] = b"h3";
