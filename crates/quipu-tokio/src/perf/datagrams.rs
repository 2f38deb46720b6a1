//! Both sides of flows of datagrams.

use std::future::pending;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use quipu_quic::connection::SendDatagramError;
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::client::{DatagramFlow, Outcome, Progress, Watch};
use super::flow::{Received, Request, race, receive, send};
use super::load::{Amount, DatagramLoad, Direction};
use super::read_exactly;
use crate::connection::Connection;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;

/// Why a flow of datagrams was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// The connection ended.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
    /// They cannot be sent.
    #[error(transparent)]
    Send(#[from] SendDatagramError),
    /// The server did not say what came of them.
    #[error("the server does not measure datagrams")]
    Unanswered,
    /// The server could send none.
    #[error("the server could send no datagrams, of which its paths carry at most {most} bytes")]
    NoneSent {
        /// Bytes of the largest that it could have sent, as far as this end knows.
        most: usize,
    },
}

impl From<ReadError> for DatagramError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Lost(error) => error.into(),
            _ => DatagramError::Unanswered,
        }
    }
}

impl From<WriteError> for DatagramError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Lost(error) => error.into(),
            _ => DatagramError::Unanswered,
        }
    }
}

/// Sends or receives datagrams over a connection to a server of [`serve`](super::serve), both of whose ends
/// must [take them](crate::TransportConfig::datagrams). `told` hears of the progress as often as `every`
/// says. A connection has one such flow at a time.
///
/// # Errors
/// See [`DatagramError`].
pub async fn measure_datagrams(
    connection: &Connection,
    load: &DatagramLoad,
    every: Duration,
    told: impl FnMut(Progress),
) -> Result<Outcome, DatagramError> {
    let moved = AtomicU64::new(0);
    let before = connection.paths();
    let begin = Instant::now();
    let watch = Watch { connection, begin, moved: &moved, every };
    let (sent, received) = watch.during(flow(connection, load, begin, &moved), told).await?;
    let Received { bytes, elapsed, .. } = received;
    let datagrams = Some(DatagramFlow { sent, received });
    Ok(Outcome { bytes, elapsed, datagrams, before, after: connection.paths() })
}

/// How many were sent, and what came of them.
async fn flow(
    connection: &Connection,
    load: &DatagramLoad,
    begin: Instant,
    moved: &AtomicU64,
) -> Result<(u64, Received), DatagramError> {
    let DatagramLoad { direction, size, rate, amount } = *load;
    let (bytes, end) = match amount {
        Amount::Bytes(bytes) => (bytes, None),
        Amount::Time(time) => (u64::MAX, Some(begin + time)),
    };
    let over = async {
        match end {
            Some(end) => sleep_until(end).await,
            None => pending().await,
        }
    };
    let request = Request { direction, size, bytes, rate };
    let mut asking = connection.open_unidirectional().await?;
    asking.write_bytes(Bytes::copy_from_slice(&request.to_bytes())).await?;
    match direction {
        Direction::Up => {
            let sent = send(connection, &request, over, moved).await?;
            asking.write_bytes(Bytes::copy_from_slice(&sent.to_be_bytes())).await?;
            finish(&mut asking)?;
            let mut answer = connection.accept_unidirectional().await?;
            let report = read_exactly(&mut answer).await?.ok_or(DatagramError::Unanswered)?;
            Ok((sent, Received::read(report)))
        }
        Direction::Down => {
            // The server stops when its request ends.
            let stopping = async {
                over.await;
                finish(&mut asking)?;
                pending::<Result<u64, DatagramError>>().await
            };
            let announced = async {
                let mut answer = connection.accept_unidirectional().await?;
                let sent = read_exactly(&mut answer).await?.ok_or(DatagramError::Unanswered)?;
                Ok(u64::from_be_bytes(sent))
            };
            let flow = receive(connection, begin, race(announced, stopping), moved).await?;
            let most = connection.common_datagram_size().unwrap_or(0);
            if flow.0 == 0 && bytes > 0 {
                return Err(DatagramError::NoneSent { most });
            }
            Ok(flow)
        }
    }
}

/// Ends a request. A server that has all that it wants of it may have stopped it; its answer tells why.
fn finish(asking: &mut SendStream) -> Result<(), ConnectionError> {
    match asking.finish() {
        Err(WriteError::Lost(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Serves the flows of datagrams that a client asks for, one after the other, until the connection ends.
pub(super) async fn serve_flows(connection: &Connection) -> Result<(), ConnectionError> {
    loop {
        let asking = connection.accept_unidirectional().await?;
        // A client that makes no sense, or stops early, has what it wanted.
        if let Err(DatagramError::Lost(error)) = serve_flow(connection, asking).await {
            return Err(error);
        }
    }
}

async fn serve_flow(connection: &Connection, mut asking: RecvStream) -> Result<(), DatagramError> {
    let Some(request) = read_exactly(&mut asking).await?.and_then(Request::read) else {
        return Err(DatagramError::Unanswered);
    };
    let moved = AtomicU64::new(0);
    let report = match request.direction {
        Direction::Down => {
            let stopped = async {
                // Whatever ends it.
                let _: Result<Option<[u8; 1]>, _> = read_exactly(&mut asking).await;
            };
            // None can be sent, or no more: the count says so.
            let sent = send(connection, &request, stopped, &moved).await.unwrap_or(0);
            Bytes::copy_from_slice(&sent.to_be_bytes())
        }
        Direction::Up => {
            let announced = async {
                let sent = read_exactly(&mut asking).await?.ok_or(DatagramError::Unanswered)?;
                Ok::<_, DatagramError>(u64::from_be_bytes(sent))
            };
            let (_, received) = receive(connection, Instant::now(), announced, &moved).await?;
            Bytes::copy_from_slice(&received.to_bytes())
        }
    };
    let mut answer = connection.open_unidirectional().await?;
    answer.write_bytes(report).await?;
    answer.finish()?;
    Ok(())
}
