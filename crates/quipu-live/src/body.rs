//! Bodies of requests, whose bytes are of no meaning.

use bytes::Bytes;
use quipu_tokio::http3::{Http3Error, Http3Exchange};

/// Bytes that are read or sent at a time, at most; our choice.
pub(crate) const CHUNK: usize = 1 << 16;

/// Sends a body of so many bytes, whatever they are.
pub(crate) async fn send_body(exchange: &mut Http3Exchange, length: u64) -> Result<(), Http3Error> {
    if length == 0 {
        return Ok(());
    }
    let part = Bytes::from(vec![0; usize::try_from(length).map_or(CHUNK, |all| all.min(CHUNK))]);
    let mut left = length;
    while left > 0 {
        let next = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        match exchange.send_data(part.slice(..next)).await {
            Ok(()) => left -= next as u64,
            // It has its answer ready.
            Err(Http3Error::Stopped(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    match exchange.finish(None) {
        Ok(()) | Err(Http3Error::Stopped(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
