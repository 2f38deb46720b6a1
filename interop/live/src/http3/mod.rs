//! HTTP/3: the messages of each case, and what servers answer.
//!
//! Requests and responses are handled whole: a server answers once it has all of a request. It echoes
//! bodies of POST and fields that begin with `x-`, so that a client can compare what came back with what
//! it sent.

mod flow;
mod message;

pub use flow::{Client, Connector, fetch};
pub use message::{Answer, Ask, GoneAway, answer};

/// Requests after which the server of the case `h3-goaway` sends GOAWAY.
pub const GOAWAY_AFTER: usize = 8;

/// H3_REQUEST_CANCELLED. <https://www.rfc-editor.org/rfc/rfc9114#section-8.1>
pub const REQUEST_CANCELLED: u64 = 0x10c;

/// Bytes of a message's body, at most.
pub const LIMIT: usize = 1 << 30;
