//! The client of a request.

use std::net::SocketAddr;

/// The address of the client, which listeners set as an extension of [`http::Request`]. Over QUIC it is
/// that of the connection's first path, and not set once that path is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client(pub SocketAddr);
