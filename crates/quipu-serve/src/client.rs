//! The client of a request.

use std::net::SocketAddr;

/// The address of the client, which listeners set as an extension of [`http::Request`]. Over QUIC, use the address of
/// the path on which the request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client(pub SocketAddr);
