//! How long a request and its response take between two processes that sleep.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quipu_policy::Registry;

use super::sockets::Sockets;
use crate::http3::{ALPN, Http3Client, Http3Error, Http3Request, Http3Server, http};
use crate::identity::{Pin, pinned, self_signed};
use crate::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, policies};

/// Requests that are measured.
const REQUESTS: u64 = 300;
/// Those before, which find nothing in the processor's cache.
const FIRST: usize = 20;
/// How long the server's thread may take to begin.
const BEGIN: Duration = Duration::from_secs(10);
const NAME: &str = "host.test";

type Failure = Box<dyn Error + Send + Sync>;

/// Nanoseconds from a request to the head of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wake {
    /// Median.
    pub(super) median: u64,
    /// 90th percentile.
    pub(super) p90: u64,
}

impl Wake {
    /// What is left for each of both ends to wake, median and 90th percentile, when each has sent and received a
    /// datagram, which takes it `datagrams`. A request that is late is so by one of its ends.
    pub(super) fn of_each(&self, datagrams: f64) -> (f64, f64) {
        let median = ((self.median as f64 - 2.0 * datagrams) / 2.0).max(0.0);
        (median, median + self.p90.saturating_sub(self.median) as f64)
    }
}

/// Nanoseconds that an end takes to send a datagram and to receive one, of which `protocol` are the protocol's.
pub(super) fn of_datagrams(sockets: &Sockets, protocol: f64) -> f64 {
    let Sockets { send, receive, .. } = sockets;
    send.batch + send.each + receive.batch + receive.each + protocol
}

/// Sends requests over HTTP/3 to a thread of its own, one every few milliseconds, so that both sleep before each
/// datagram. To be called outside of a runtime.
pub(super) fn measure() -> io::Result<Wake> {
    let (ready, is_ready) = mpsc::channel();
    let server = thread::spawn(move || run(serve(&ready)));
    let measured = is_ready.recv_timeout(BEGIN).map_err(io::Error::other);
    let measured = measured.and_then(|(address, pin)| run(ask(address, pin)));
    match measured {
        Ok(wake) => Ok(wake),
        // Without a server there is nobody to wait for.
        Err(error) if !server.is_finished() => Err(error),
        Err(error) => Err(server.join().ok().and_then(Result::err).unwrap_or(error)),
    }
}

fn run<R>(work: impl Future<Output = Result<R, Failure>>) -> io::Result<R> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work).map_err(io::Error::other)
}

/// Serves one connection, and says where before.
async fn serve(ready: &mpsc::Sender<(SocketAddr, Pin)>) -> Result<(), Failure> {
    let (tls, pin) = self_signed(NAME, &[ALPN])?;
    let policies = policies(&Registry::builtin(), "")?;
    let config = ServerConfig::new(Arc::new(tls), Arc::new(TransportConfig::default()), policies);
    let endpoint = Endpoint::server(config).listen("127.0.0.1:0".parse()?).bind()?;
    ready.send((endpoint.local_addresses()[0], pin))?;
    let Some(incoming) = endpoint.accept().await else { return Ok(()) };
    let server = Http3Server::new(incoming.accept().await?, Default::default())?;
    // As servers do: a task for each connection and each request.
    let serving = tokio::spawn(async move {
        while let Ok(request) = server.accept().await {
            tokio::spawn(answer(request));
        }
    });
    Ok(serving.await?)
}

async fn answer(request: Http3Request) -> Result<(), Http3Error> {
    let (_, _, mut responder) = request.into_parts();
    responder.respond(&http::Response::new(()), true)?;
    responder.send_data(Bytes::from_static(&[b' '; 100])).await?;
    responder.finish(None)
}

async fn ask(address: SocketAddr, pin: Pin) -> Result<Wake, Failure> {
    let endpoint = Endpoint::client().bind()?;
    let policies = policies(&Registry::builtin(), "")?;
    let tls = Arc::new(pinned(pin, &[ALPN])?);
    let config = ClientConfig::new(tls, Arc::new(TransportConfig::default()), policies);
    let connection: Connection = endpoint.connect(&config, address, NAME).await?;
    let client = Http3Client::new(connection, Default::default())?;
    for _ in 0..FIRST {
        request(&client).await?;
    }
    let mut took = Vec::new();
    for nth in 0..REQUESTS {
        // Times of no common measure, so that none falls in with what happens regularly.
        tokio::time::sleep(Duration::from_nanos(1_000_000 + nth * 999_983 % 3_000_000)).await;
        took.push(request(&client).await?.as_nanos() as u64);
    }
    client.close();
    endpoint.wait_idle_for(quipu_base::Duration::from_secs(1)).await;
    took.sort_unstable();
    Ok(Wake { median: took[took.len() / 2], p90: took[took.len() * 9 / 10] })
}

/// How long a request takes to the head of its response, the rest of which is read, too.
#[expect(clippy::disallowed_methods, reason = "it measures the host's time")]
async fn request(client: &Http3Client) -> Result<Duration, Failure> {
    let head = http::Request::get("https://host.test/").body(())?;
    let begun = Instant::now();
    let mut exchange = client.request(head, false).await?;
    exchange.response().await?;
    let took = begun.elapsed();
    while exchange.data(1 << 16).await?.is_some() {}
    Ok(took)
}
