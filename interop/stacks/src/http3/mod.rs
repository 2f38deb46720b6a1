//! HTTP/3 of `h3`, over any transport that has its traits.

mod body;
mod client;
mod server;

pub(crate) use client::client;
pub(crate) use server::serve;

/// What HTTP/3 is called in TLS: <https://www.rfc-editor.org/rfc/rfc9114#section-3.1>.
pub(crate) const ALPN: &[u8] = b"h3";

/// The code of connections that end without an error: <https://www.rfc-editor.org/rfc/rfc9114#section-8.1>.
pub(crate) const NO_ERROR: u32 = 0x100;
