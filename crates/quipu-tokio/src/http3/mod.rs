//! HTTP/3 on connections: requests and responses as the `http` crate has them.
//!
//! [`Http3Client::new`] and [`Http3Server::new`] take a connection over: all its streams are HTTP's from
//! then on. [`Http3Client::http2`] and [`Http3Server::http2`] do the same for HTTP/2 over QUIC streams:
//! requests and responses are of the same types, whichever version carries them. A body is read as the
//! application asks for it; what it leaves gives the peer no credit. Requests state their urgency in their
//! `priority` field, and the policies of the server's connection go by it.
//!
//! ```no_run
//! # async fn example(connection: quipu_tokio::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! use quipu_tokio::http3::{Http3Client, http};
//!
//! let client = Http3Client::new(connection, Default::default())?;
//! let request = http::Request::get("https://example.org/").body(())?;
//! let mut exchange = client.request(request, false).await?;
//! let response = exchange.response().await?;
//! println!("{}", response.status());
//! while let Some(octets) = exchange.data(65_536).await? {
//!     println!("{} octets", octets.len());
//! }
//! # Ok(())
//! # }
//! ```

mod body;
mod client;
mod convert;
mod end;
mod error;
mod server;
mod session;

pub use http;
pub use quipu_http::h2::{
    FrameStreamId, Limits as Http2Limits, ServerConfig as Http2ServerConfig, StreamPriority,
};
pub use quipu_http::h3::{
    BodyError, ClientConfig, ErrorCode, Failure, Limits, RequestError, RespondError, ServerConfig,
    Settings, TableUse,
};

pub use quipu_http::priority::PriorityField;

pub use client::{Http2ClientConfig, Http3Client, Http3Exchange};
pub use convert::ConvertError;
pub use error::Http3Error;
pub use server::{Http3Request, Http3RequestBody, Http3Responder, Http3Server};

/// The protocol's name in TLS.
pub const ALPN: &[u8] = quipu_http::h3::ALPN;

/// The name in TLS of HTTP/2 over QUIC streams; a private one, as there is no standard of it.
pub const HTTP2_ALPN: &[u8] = quipu_http::h2::ALPN;
