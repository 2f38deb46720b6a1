//! Either version of HTTP at either end, as the browser and the server drive it.
//!
//! What differs is done here: how events are passed on, which numbers requests have, and how a browser
//! says what is urgent.

mod client;
mod server;

use quipu_http::transport::quic::QuicStreams;

use super::wire::Wire;

pub(super) use client::{ClientEnd, ClientNews, Refusal};
pub(super) use server::{ServerEnd, ServerNews};

/// The streams that HTTP/3 has its requests on.
fn streams<'a, 'w>(wire: &'a mut Wire<'w>) -> Result<&'a mut QuicStreams<'w>, &'static str> {
    match wire {
        Wire::Streams(streams) => Ok(streams),
        Wire::ByteStream(_) => Err("HTTP/3 has a stream for each request"),
    }
}
