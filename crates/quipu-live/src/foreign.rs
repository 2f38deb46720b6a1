//! Stacks of other libraries: what [`load`](crate::load) needs of their clients.

use std::error::Error;
use std::pin::Pin;

use bytes::Bytes;
use http::Request;
use thiserror::Error;

/// Why another library failed, in its own words.
#[derive(Debug, Error)]
#[error("{}", with_sources(.0.as_ref()))]
pub struct ForeignFailure(#[from] Box<dyn Error + Send + Sync>);

impl ForeignFailure {
    /// The failure that `error`, an error or a sentence, is.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> ForeignFailure {
        ForeignFailure(error.into())
    }
}

/// What another library does meanwhile.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, ForeignFailure>> + Send + 'a>>;

/// A connection of another library, over which requests are made. It is closed when it is dropped.
pub trait ForeignClient: Send + Sync {
    /// Opens the exchange of a request, which says its urgency in the field `priority`, with a body of so many bytes,
    /// whatever they are. Exchanges begin in the order of calls, none of which is made before the last one is done.
    fn request(&self, head: Request<()>, body: u64) -> Doing<'_, Box<dyn ForeignExchange>>;
}

/// A request that was made, and its response. When it is dropped before the end of the response, it is abandoned.
pub trait ForeignExchange: Send {
    /// Sends what is left of the request, and waits for the head of the response; its status. Called once, first.
    fn response(&mut self) -> Doing<'_, u16>;

    /// The next octets of the response's body; `None` at its end. Dropping the future loses none.
    fn data(&mut self) -> Doing<'_, Option<Bytes>>;
}

/// The message of an error and of what caused it.
fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}
