//! HTTP/2 over QUIC streams, as the papers on stream scheduling map it.
//!
//! - QUIC stream 0, opened by the client, is the control stream in both directions. It carries
//!   [HTTP/2 frames](frame): SETTINGS, HEADERS with priorities, CONTINUATION, PRIORITY,
//!   PRIORITY_UPDATE and GOAWAY, with HPACK. No connection preface: the ALPN identifier [`ALPN`] says it. The transport sends
//!   it before all else.
//! - A request opens QUIC stream 4, 8, …; its HEADERS frame on the control stream carries the QUIC
//!   stream ID as HTTP/2 stream identifier. The bodies of request and response travel on that
//!   QUIC stream without frames; the end of the QUIC stream is the end of the body. A body that
//!   arrives before its HEADERS waits in the transport.
//! - A server may [push](Server::push) responses to clients [that take them](Client::with_push): a
//!   PUSH_PROMISE frame on the control stream carries the head of the request, HEADERS that of the
//!   response. Its body travels on a unidirectional QUIC stream of the server, 3, 7, …; frames have the
//!   even number below, 2, 6, ….
//! - END_STREAM in a HEADERS frame says that the body is empty. Trailers are not carried, and
//!   responses with status 1xx are dropped.
//! - Flow control, cancellation and liveness are QUIC's: RST_STREAM, WINDOW_UPDATE and PING are
//!   connection errors here, as is DATA. A cancelled request uses RESET_STREAM and
//!   STOP_SENDING with an [HTTP/2 error code](ErrorCode); a connection error closes the QUIC
//!   connection with such a code.
//! - The server [rebuilds the dependency tree](Server) from the priorities that HEADERS and PRIORITY
//!   frames carry. Odd numbers name neither requests nor pushed responses, so that a browser's odd
//!   group nodes collide with nothing.
//! - RFC 9218's [`priority` field](crate::priority) and PRIORITY_UPDATE frames give requests an urgency.
//!   An end that sets NO_RFC7540_PRIORITIES leaves the tree alone.

mod client;
mod control;
mod error;
mod event;
mod exchange;
pub mod frame;
mod server;
mod stream_id;
mod tree;

pub use crate::exchange::{Body, BodyError, Failure};
pub use client::{Client, Request, RequestError};
pub use control::{CONTROL_STREAM, ConnectionError, Limits};
pub use error::ErrorCode;
pub use event::{ClientEvent, ServerEvent};
pub use frame::StreamPriority;
pub use server::{PushError, RespondError, Server, ServerConfig};
pub use stream_id::{FrameStreamId, Numbering, StreamIdError};

/// The protocol's name in TLS; private.
pub const ALPN: &[u8] = b"quipu-h2";
