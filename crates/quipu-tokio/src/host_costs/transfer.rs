//! A transfer between two endpoints in one thread.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use quipu_policy::Registry;
use rustix::time::{ClockId, clock_gettime};

use super::sockets::Sockets;
use crate::identity::{pinned, self_signed};
use crate::perf::{ALPN, Amount, Direction, Load, measure as move_bytes, serve};
use crate::{ClientConfig, Endpoint, EndpointStats, ServerConfig, TransportConfig, policies};

const TIME: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// Bits per second.
    pub(super) goodput: f64,
    /// Datagrams that either end sent.
    pub(super) datagrams: u64,
    pub(super) sends: u64,
    pub(super) receives: u64,
    /// Nanoseconds of the processor.
    pub(super) processor: f64,
}

impl Transfer {
    /// Nanoseconds for each datagram that calls of the kernel do not explain.
    pub(super) fn rest(&self, sockets: &Sockets) -> f64 {
        let datagrams = self.datagrams as f64;
        let sends = self.sends as f64 * sockets.send.batch + datagrams * sockets.send.each;
        let receives =
            self.receives as f64 * sockets.receive.batch + datagrams * sockets.receive.each;
        ((self.processor - sends - receives) / datagrams).max(0.0)
    }
}

/// Downloads over loopback for some seconds. To be called in a runtime of one thread.
pub(super) async fn measure() -> Result<Transfer, Box<dyn Error + Send + Sync>> {
    let (tls, pin) = self_signed("host.test", &[ALPN])?;
    let policies = policies(&Registry::builtin(), "")?;
    let transport = Arc::new(TransportConfig::default());
    let server = ServerConfig::new(Arc::new(tls), Arc::clone(&transport), Arc::clone(&policies));
    let server = Endpoint::server(server).listen("127.0.0.1:0".parse()?).bind()?;
    let address = server.local_addresses()[0];
    let serving = server.clone();
    let task = tokio::spawn(async move { serve(&serving, |_| {}).await });
    let client = Endpoint::client().bind()?;
    let tls = Arc::new(pinned(pin, &[ALPN])?);
    let config = ClientConfig::new(tls, transport, policies);
    let connection = client.connect(&config, address, "host.test").await?;

    let counted = || {
        let stats = [server.stats(), client.stats()];
        let sum = |of: fn(&EndpointStats) -> u64| stats.iter().map(of).sum::<u64>();
        [sum(|it| it.sent.datagrams), sum(|it| it.sent.calls), sum(|it| it.receive_calls)]
    };
    let (before, begun) = (counted(), processor());
    let load = Load { direction: Direction::Down, streams: 1, amount: Amount::Time(TIME) };
    let outcome = move_bytes(&connection, &load, TIME * 2, |_| {}).await?;
    let (after, ended) = (counted(), processor());
    server.close(0, b"");
    task.await?;
    let [datagrams, sends, receives] = std::array::from_fn(|at| after[at] - before[at]);
    let goodput = outcome.goodput();
    Ok(Transfer { goodput, datagrams, sends, receives, processor: ended - begun })
}

/// Nanoseconds of the processor that this process has had.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
