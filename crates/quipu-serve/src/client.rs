//! Who made a request.

use std::net::SocketAddr;

/// The address that a request came from, an extension of [`http::Request`]. Listeners set it; over QUIC it is
/// that of the path which the client used when the request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client(pub SocketAddr);
