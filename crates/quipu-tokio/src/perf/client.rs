//! The client's side.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::PIECE;
use super::flow::Received;
use super::load::{Amount, Direction, Load};
use crate::connection::Connection;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::path::PathInfo;
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;

/// How far a measurement is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Bytes that arrived, or, upwards, that were written.
    pub bytes: u64,
    /// The paths that live.
    pub paths: Vec<PathInfo>,
}

/// What was measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Time from the first request to the last byte: upwards, until the server had acknowledged it.
    /// That of datagrams by the clock of whoever received them.
    pub elapsed: Duration,
    /// What came of datagrams, if they were measured.
    pub datagrams: Option<DatagramFlow>,
    /// The paths when it began, and when it ended.
    pub before: Vec<PathInfo>,
    /// The paths when it ended.
    pub after: Vec<PathInfo>,
}

impl Outcome {
    /// Bits per second of the bytes that arrived.
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// What came of a flow of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramFlow {
    /// Datagrams that were given to the connection to send.
    pub sent: u64,
    /// What the other end received of them.
    pub received: Received,
}

impl DatagramFlow {
    /// Datagrams that did not come: lost by the network, or displaced by newer ones at either end.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received.datagrams)
    }
}

/// Moves bytes over streams of a connection to a server of [`serve`](super::serve). `told` hears of the progress
/// every second, or as often as `every` says.
///
/// # Errors
/// Why the connection ended.
pub async fn measure(
    connection: &Connection,
    load: &Load,
    every: Duration,
    told: impl FnMut(Progress),
) -> Result<Outcome, ConnectionError> {
    let moved = Arc::new(AtomicU64::new(0));
    let before = connection.paths();
    let begin = Instant::now();
    let streams = u64::from(load.streams.max(1));
    let mut running = JoinSet::new();
    for nth in 0..streams {
        let until = match load.amount {
            Amount::Time(time) => Until::At(begin + time),
            // The first ones take what does not divide.
            Amount::Bytes(all) => Until::Bytes(all / streams + u64::from(nth < all % streams)),
        };
        let (connection, moved) = (connection.clone(), Arc::clone(&moved));
        match load.direction {
            Direction::Down => running.spawn(download(connection, until, moved)),
            Direction::Up => running.spawn(upload(connection, until, moved)),
        };
    }
    let all = async {
        while let Some(ended) = running.join_next().await {
            // Without a result, the runtime is shutting down.
            ended.unwrap_or(Err(ConnectionError::EndpointGone))?;
        }
        Ok(())
    };
    let watch = Watch { connection, begin, moved: &moved, every };
    watch.during(all, told).await?;
    let (elapsed, bytes) = (begin.elapsed(), moved.load(Ordering::Relaxed));
    Ok(Outcome { bytes, elapsed, datagrams: None, before, after: connection.paths() })
}

/// Tells how far a measurement is.
pub(super) struct Watch<'m> {
    pub(super) connection: &'m Connection,
    pub(super) begin: Instant,
    /// Bytes so far.
    pub(super) moved: &'m AtomicU64,
    pub(super) every: Duration,
}

impl Watch<'_> {
    /// What `work` gives; meanwhile `told` hears of the progress.
    pub(super) async fn during<R>(
        &self,
        work: impl Future<Output = R>,
        mut told: impl FnMut(Progress),
    ) -> R {
        let mut work = pin!(work);
        let mut next = self.begin + self.every;
        loop {
            match timeout_at(next, work.as_mut()).await {
                Ok(result) => return result,
                Err(_) => {
                    next += self.every;
                    let (elapsed, bytes) =
                        (self.begin.elapsed(), self.moved.load(Ordering::Relaxed));
                    told(Progress { elapsed, bytes, paths: self.connection.paths() });
                }
            }
        }
    }
}

/// When a stream has moved enough.
#[derive(Clone, Copy)]
enum Until {
    At(Instant),
    Bytes(u64),
}

impl Until {
    /// What `action` gives, or `None` if its time is over first.
    async fn run<R>(self, action: impl Future<Output = R>) -> Option<R> {
        match self {
            Until::At(at) => timeout_at(at, action).await.ok(),
            Until::Bytes(_) => Some(action.await),
        }
    }
}

async fn download(
    connection: Connection,
    until: Until,
    moved: Arc<AtomicU64>,
) -> Result<(), ConnectionError> {
    let wanted = match until {
        Until::Bytes(bytes) => bytes,
        Until::At(_) => u64::MAX,
    };
    let (send, receive) = connection.open_bidirectional().await?;
    lost(ask(send, wanted).await)?;
    lost_reading(read_all(receive, until, &moved).await)
}

async fn read_all(
    mut receive: RecvStream,
    until: Until,
    moved: &AtomicU64,
) -> Result<(), ReadError> {
    let mut buffer = vec![0; PIECE];
    while let Some(read) = until.run(receive.read(&mut buffer)).await {
        let Some(read) = read? else { return Ok(()) };
        moved.fetch_add(read as u64, Ordering::Relaxed);
    }
    receive.stop(0)
}

/// Asks for so many bytes, and sends none.
async fn ask(mut send: SendStream, wanted: u64) -> Result<(), WriteError> {
    send.write_bytes(Bytes::copy_from_slice(&wanted.to_be_bytes())).await?;
    send.finish()
}

async fn upload(
    connection: Connection,
    until: Until,
    moved: Arc<AtomicU64>,
) -> Result<(), ConnectionError> {
    let (send, receive) = connection.open_bidirectional().await?;
    lost(write_all(send, until, &moved).await)?;
    drop(receive);
    Ok(())
}

async fn write_all(
    mut send: SendStream,
    until: Until,
    moved: &AtomicU64,
) -> Result<(), WriteError> {
    send.write_bytes(Bytes::from_static(&[0; 8])).await?;
    let piece = vec![0; PIECE];
    let mut left = match until {
        Until::Bytes(bytes) => bytes,
        Until::At(_) => u64::MAX,
    };
    while left > 0 {
        let length = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let Some(written) = until.run(send.write(&piece[..length])).await else { break };
        let written = written? as u64;
        moved.fetch_add(written, Ordering::Relaxed);
        left -= written;
    }
    send.finish()?;
    send.delivered().await
}

/// A server that stops a stream has enough of it; only the connection's end is an error.
fn lost(written: Result<(), WriteError>) -> Result<(), ConnectionError> {
    match written {
        Err(WriteError::Lost(error)) => Err(error),
        _ => Ok(()),
    }
}

fn lost_reading(read: Result<(), ReadError>) -> Result<(), ConnectionError> {
    match read {
        Err(ReadError::Lost(error)) => Err(error),
        _ => Ok(()),
    }
}
