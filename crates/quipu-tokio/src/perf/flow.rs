//! Flows of numbered datagrams: what is said about them, and how they are sent and counted.
//!
//! All numbers are in network order. A request has a byte that is 0 for datagrams of the server and 1 for
//! those of the client, then the size of each in two bytes, or 0 for what all paths carry; how many bytes
//! a server is to send in eight; and bits per second in eight, or 0 for as many as go. A datagram begins
//! with its number and the time at which it was sent, in nanoseconds since the first, eight bytes each.
//! How many were sent is eight bytes, and [`Received`] five times eight.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use quipu_quic::connection::SendDatagramError;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::load::Direction;
use crate::connection::Connection;
use crate::error::ConnectionError;

/// Bytes of a datagram, at least: its number and its time.
pub const LEAST_DATAGRAM: u16 = 16;

/// Datagrams between two looks at what the paths carry. Our choice.
const LOOK_AT_SIZE_EVERY: u64 = 64;

/// How long a datagram that is too large for the paths waits for probes to find that they carry more. Our
/// choice.
const SIZE_WITHIN: Duration = Duration::from_secs(1);

/// How long whoever receives waits for datagrams that have not come, at least. Our choice.
const LAST_WITHIN: Duration = Duration::from_millis(500);

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) direction: Direction,
    /// Bytes of each datagram; `None`: as many as all paths carry.
    pub(super) size: Option<u16>,
    /// Bytes that the server is to send, at most.
    pub(super) bytes: u64,
    /// Bits per second; `None`: as many as go.
    pub(super) rate: Option<u64>,
}

impl Request {
    pub(super) const LENGTH: usize = 19;

    pub(super) fn to_bytes(self) -> [u8; Request::LENGTH] {
        let mut bytes = [0; Request::LENGTH];
        bytes[0] = u8::from(self.direction == Direction::Up);
        bytes[1..3].copy_from_slice(&self.size.unwrap_or(0).to_be_bytes());
        bytes[3..11].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[11..].copy_from_slice(&self.rate.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// `None` if it makes no sense.
    pub(super) fn read(bytes: [u8; Request::LENGTH]) -> Option<Request> {
        let direction = match bytes[0] {
            0 => Direction::Down,
            1 => Direction::Up,
            _ => return None,
        };
        let size = Some(u16::from_be_bytes([bytes[1], bytes[2]])).filter(|size| *size > 0);
        if size.is_some_and(|size| size < LEAST_DATAGRAM) {
            return None;
        }
        let rate = Some(number(&bytes[11..])).filter(|rate| *rate > 0);
        Some(Request { direction, size, bytes: number(&bytes[3..]), rate })
    }
}

/// The first eight bytes; 0 if there are fewer.
fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// What an end received of a flow of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// Datagrams.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that came after one with a higher number.
    pub reordered: u64,
    /// Time from the request to the last of them.
    pub elapsed: Duration,
    /// How much the time that a datagram took differs from that of the one that came before it, on average
    /// over the last ones. <https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1>
    pub jitter: Duration,
}

impl Received {
    pub(super) const LENGTH: usize = 40;

    pub(super) fn to_bytes(self) -> [u8; Received::LENGTH] {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let Received { datagrams, bytes, reordered, elapsed, jitter } = self;
        let mut all = [0; Received::LENGTH];
        let numbers = [datagrams, bytes, reordered, nanos(elapsed), nanos(jitter)];
        for (place, number) in all.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        all
    }

    pub(super) fn read(bytes: [u8; Received::LENGTH]) -> Received {
        let at = |index: usize| number(&bytes[8 * index..]);
        Received {
            datagrams: at(0),
            bytes: at(1),
            reordered: at(2),
            elapsed: Duration::from_nanos(at(3)),
            jitter: Duration::from_nanos(at(4)),
        }
    }
}

/// Sends datagrams of a flow until all have been given to the connection, no more can be sent, or `stop` is
/// over: how many it were. `moved` counts their bytes. An error means that there was none.
///
/// Without a rate they wait for room; with one they come when they are due, and displace older ones that
/// could not leave.
pub(super) async fn send(
    connection: &Connection,
    request: &Request,
    stop: impl Future<Output = ()>,
    moved: &AtomicU64,
) -> Result<u64, SendDatagramError> {
    let sent = AtomicU64::new(0);
    let stopped = async {
        stop.await;
        Ok(())
    };
    let result = race(send_all(connection, request, &sent, moved), stopped).await;
    match (sent.into_inner(), result) {
        (0, Err(error)) => Err(error),
        (sent, _) => Ok(sent),
    }
}

async fn send_all(
    connection: &Connection,
    request: &Request,
    sent: &AtomicU64,
    moved: &AtomicU64,
) -> Result<(), SendDatagramError> {
    let begin = Instant::now();
    let (mut given, mut most) = (0, 0);
    for number in 0.. {
        if given >= request.bytes {
            break;
        }
        if number % LOOK_AT_SIZE_EVERY == 0 {
            most = most_of(connection, request)?;
        }
        let left = usize::try_from(request.bytes - given).unwrap_or(usize::MAX);
        let length = most.min(left).max(LEAST_DATAGRAM.into());
        if let Some(rate) = request.rate {
            let nanos = u128::from(given) * 8 * 1_000_000_000 / u128::from(rate);
            let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            sleep_until(begin.checked_add(due).unwrap_or(begin)).await;
        }
        let length = send_one(connection, request, number, begin, length).await?;
        given += length as u64;
        sent.fetch_add(1, Ordering::Relaxed);
        moved.fetch_add(length as u64, Ordering::Relaxed);
        // There may be room for ever.
        tokio::task::coop::consume_budget().await;
    }
    Ok(())
}

/// Bytes of each datagram from now on.
fn most_of(connection: &Connection, request: &Request) -> Result<usize, SendDatagramError> {
    match request.size {
        Some(size) => Ok(size.into()),
        None => connection.common_datagram_size().ok_or(SendDatagramError::Unsupported),
    }
}

/// Sends one datagram: its size, which is less than `length` if the paths carry less and may choose.
async fn send_one(
    connection: &Connection,
    request: &Request,
    number: u64,
    begin: Instant,
    mut length: usize,
) -> Result<usize, SendDatagramError> {
    let asked = Instant::now();
    loop {
        let data = stamped(number, begin.elapsed(), length);
        let result = match request.rate {
            Some(_) => connection.send_datagram(data),
            None => connection.send_datagram_wait(data).await,
        };
        match result {
            Ok(()) => return Ok(length),
            Err(SendDatagramError::TooLarge { most, .. })
                if request.size.is_none() && most >= LEAST_DATAGRAM.into() =>
            {
                length = most;
            }
            Err(SendDatagramError::TooLarge { .. }) if asked.elapsed() < SIZE_WITHIN => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A datagram with its number and the time since the first.
fn stamped(number: u64, at: Duration, length: usize) -> Bytes {
    let mut data = vec![0; length];
    let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
    if let Some(place) = data.first_chunk_mut::<16>() {
        place[..8].copy_from_slice(&number.to_be_bytes());
        place[8..].copy_from_slice(&nanos.to_be_bytes());
    }
    Bytes::from(data)
}

/// Takes the datagrams of a flow that was asked for at `begin`, until `announced` tells how many were sent
/// and they are there, or nothing more comes: how many were sent, and what came. `moved` counts bytes.
pub(super) async fn receive<E: From<ConnectionError>>(
    connection: &Connection,
    begin: Instant,
    announced: impl Future<Output = Result<u64, E>>,
    moved: &AtomicU64,
) -> Result<(u64, Received), E> {
    let mut count = Count::new(begin);
    let sent = race(count.take_all(connection, moved), announced).await?;
    while count.received.datagrams < sent {
        let srtts = connection.paths().into_iter().filter_map(|path| path.sample.srtt);
        let srtt = srtts.max().map_or(Duration::ZERO, |srtt| Duration::from_nanos(srtt.as_nanos()));
        match timeout(LAST_WITHIN.max(2 * srtt), connection.receive_datagram()).await {
            Ok(datagram) => count.take(&datagram?, Instant::now(), moved),
            // They are lost.
            Err(_) => break,
        }
    }
    Ok((sent, count.received))
}

/// What came so far.
struct Count {
    begin: Instant,
    received: Received,
    /// The least number that was not reached yet.
    next: u64,
    /// How long the last one took by both ends' clocks, in nanoseconds; they may differ by a constant.
    took: Option<i128>,
    /// In nanoseconds.
    jitter: f64,
}

impl Count {
    fn new(begin: Instant) -> Self {
        Count { begin, received: Received::default(), next: 0, took: None, jitter: 0.0 }
    }

    /// It ends with the connection.
    async fn take_all<E: From<ConnectionError>>(
        &mut self,
        connection: &Connection,
        moved: &AtomicU64,
    ) -> Result<u64, E> {
        loop {
            let datagram = connection.receive_datagram().await?;
            self.take(&datagram, Instant::now(), moved);
            tokio::task::coop::consume_budget().await;
        }
    }

    fn take(&mut self, datagram: &[u8], now: Instant, moved: &AtomicU64) {
        // What is too short is of no flow.
        let Some(stamp) = datagram.first_chunk::<16>() else { return };
        let (nth, sent_at) = (number(stamp), number(&stamp[8..]));
        let elapsed = now.saturating_duration_since(self.begin);
        let took = elapsed.as_nanos() as i128 - i128::from(sent_at);
        if let Some(before) = self.took.replace(took) {
            self.jitter += (took.abs_diff(before) as f64 - self.jitter) / 16.0;
        }
        let received = &mut self.received;
        received.datagrams += 1;
        received.bytes += datagram.len() as u64;
        received.reordered += u64::from(nth < self.next);
        received.elapsed = elapsed;
        received.jitter = Duration::from_nanos(self.jitter as u64);
        self.next = self.next.max(nth.saturating_add(1));
        moved.fetch_add(datagram.len() as u64, Ordering::Relaxed);
    }
}

/// What the first of both gives that is over.
pub(super) async fn race<R>(first: impl Future<Output = R>, second: impl Future<Output = R>) -> R {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(result),
        Poll::Pending => second.as_mut().poll(cx),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_reports_are_read_as_they_were_written() {
        for (direction, size, rate) in
            [(Direction::Down, None, Some(5)), (Direction::Up, Some(1_200), None)]
        {
            let request = Request { direction, size, bytes: 1 << 40, rate };
            assert_eq!(Request::read(request.to_bytes()), Some(request));
        }
        let (elapsed, jitter) = (Duration::from_secs(3), Duration::from_nanos(4));
        let received = Received { datagrams: 1, bytes: 2, reordered: 5, elapsed, jitter };
        assert_eq!(Received::read(received.to_bytes()), received);
    }

    #[test]
    fn requests_without_sense_are_refused() {
        let request = Request { direction: Direction::Up, size: None, bytes: 1, rate: None };
        let mut direction = request.to_bytes();
        direction[0] = 2;
        assert_eq!(Request::read(direction), None);
        let short = Request { size: Some(LEAST_DATAGRAM - 1), ..request };
        assert_eq!(Request::read(short.to_bytes()), None);
    }

    #[test]
    fn order_and_jitter_are_those_of_arrivals() {
        let begin = Instant::now();
        let (moved, mut count) = (AtomicU64::new(0), Count::new(begin));
        let ms = Duration::from_millis;
        // Sent every 10 ms; they take 5, 5, 21 and 3 ms.
        for (number, sent, came) in [(0, 0, 5), (1, 10, 15), (3, 30, 33), (2, 20, 41)] {
            count.take(&stamped(number, ms(sent), 100), begin + ms(came), &moved);
        }
        count.take(b"no stamp", begin + ms(50), &moved);
        let Received { datagrams, bytes, reordered, elapsed, jitter } = count.received;
        assert_eq!((datagrams, bytes, reordered, elapsed), (4, 400, 1, ms(41)));
        assert_eq!(moved.into_inner(), 400);
        // Differences of 0, 2 and 18 ms: 2/16, and a sixteenth of the way from there to 18.
        assert_eq!(jitter, Duration::from_nanos(1_242_187));
    }
}
