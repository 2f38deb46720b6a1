//! The server's side.

use bytes::Bytes;

use super::datagrams::serve_flows;
use super::{PIECE, read_exactly};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::{AcceptError, ReadError, WriteError};
use crate::incoming::Incoming;
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;

/// Lets all clients in and serves them until the endpoint is closed. `told` hears of each connection
/// that was made, or was not.
pub async fn serve(
    endpoint: &Endpoint,
    told: impl Fn(Result<&Connection, &AcceptError>) + Clone + Send + Sync + 'static,
) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve_client(incoming, told.clone()));
    }
}

async fn serve_client(
    incoming: Incoming,
    told: impl Fn(Result<&Connection, &AcceptError>) + Send + Sync,
) {
    let connection = incoming.accept().await;
    told(connection.as_ref());
    let Ok(connection) = connection else { return };
    let flows = connection.clone();
    // It ends with the connection.
    tokio::spawn(async move { serve_flows(&flows).await });
    while let Ok((send, receive)) = connection.accept_bidirectional().await {
        tokio::spawn(async move {
            // A client that stops early has what it wanted.
            let _ = serve_stream(send, receive).await;
        });
    }
}

async fn serve_stream(send: SendStream, mut receive: RecvStream) -> Result<(), ReadError> {
    let Some(wanted) = read_exactly(&mut receive).await? else {
        // No request: nothing is owed.
        return Ok(());
    };
    let sending = tokio::spawn(send_bytes(send, u64::from_be_bytes(wanted)));
    let mut buffer = vec![0; PIECE];
    while receive.read(&mut buffer).await?.is_some() {}
    // The task ends with its stream.
    let _ = sending.await;
    Ok(())
}

/// Sends so many bytes and the end, and waits until the peer has them.
async fn send_bytes(mut send: SendStream, mut left: u64) -> Result<(), WriteError> {
    let piece = Bytes::from(vec![0; PIECE]);
    while left > 0 {
        let length = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        send.write_bytes(piece.slice(..length)).await?;
        left -= length as u64;
    }
    send.finish()?;
    send.delivered().await
}
