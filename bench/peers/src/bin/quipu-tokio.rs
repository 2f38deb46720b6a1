//! Quipu on sockets: `bulk`, `streams`, `handshake`, `idle` (tokio, loopback); `serve` and `fetch` for
//! `links.py`, whose ends have a network namespace each.
//!
//! `bulk --paths 2`: the client leaves by 127.0.0.1 and 127.0.0.2, and the transfer begins when both
//! are usable at both ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quic_bulk::*;
use quipu_policy::PathState;
use quipu_quic::TransportConfig;
use quipu_tokio::identity::{pinned, self_signed};
use quipu_tokio::perf::{self, Amount, Direction, Load};
use quipu_tokio::{Connection, Endpoint, Via};

#[path = "../ours.rs"]
mod ours;
use ours::Setup;

const NAME: &str = "localhost";

fn main() {
    let args = Args::parse();
    watchdog(args.num("limit-s", 120));
    let paths = args.num("paths", 1) as u32;
    let idle = args.cmd == "idle";
    let transport = TransportConfig {
        max_paths: paths,
        max_streams: CONCURRENT as u64,
        idle_timeout: quipu_base::Duration::from_secs(if idle { IDLE_TIMEOUT_S } else { 30 }),
        ..TransportConfig::default()
    };
    let window = args.num("window", 0);
    let mut setup = Setup::new(
        "quipu-tokio",
        transport,
        &args.str("provider", "ring"),
        window,
        &args.str("policies", "congestion=cubic"),
    );
    setup.name = windowed(&setup.name, window);
    match args.cmd.as_str() {
        "bulk" => bulk(setup, args.num("mib", 512) * MIB, paths as usize),
        "streams" => streams(setup, args.num("n", 10_000)),
        "handshake" => handshake(setup, args.num("n", 2000)),
        "serve" => rt().block_on(serve(setup)),
        "fetch" => rt().block_on(fetch(setup, &args)),
        "idle" => idle_connections(setup, args.num("n", 1000), args.num("seconds", 10)),
        other => unknown(other),
    }
}

fn rt() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn listen(setup: &Setup) -> (Endpoint, SocketAddr) {
    let mut config = setup.server.clone();
    // The limits of other libraries are wider, or there are none.
    config.admission.max_connections = 1 << 20;
    config.admission.max_per_source = 1 << 20;
    config.admission.max_unvalidated = 1 << 20;
    let server = Endpoint::server(config).listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
    let address = server.local_addresses()[0];
    (server, address)
}

/// Runs both ends, each on a runtime and a thread of its own.
fn both<S: Send + 'static, C: Send + 'static, F: Future<Output = S>, G: Future<Output = C>>(
    setup: Setup,
    server: impl FnOnce(Endpoint) -> F + Send + 'static,
    client: impl FnOnce(Setup, SocketAddr) -> G + Send + 'static,
) -> (S, C) {
    let config = Setup { name: String::new(), ..setup.clone() };
    let (tell, told) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        rt().block_on(async move {
            let (endpoint, address) = listen(&config);
            tell.send(address).unwrap();
            server(endpoint).await
        })
    });
    let address = told.recv().unwrap();
    let client = std::thread::spawn(move || rt().block_on(client(setup, address)));
    let of_client = client.join().unwrap();
    (server.join().unwrap(), of_client)
}

/// Until so many paths are usable.
async fn usable(connection: &Connection, paths: usize) {
    while connection.paths().iter().filter(|path| path.state == PathState::Usable).count() < paths {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// (datagrams sent, bytes sent, packets lost, stream bytes of each path)
fn sent(endpoint: &Endpoint, connection: &Connection) -> (u64, u64, u64, Vec<u64>) {
    let (sent, stats) = (endpoint.stats().sent, connection.stats());
    let lost = stats.as_ref().map_or(0, |stats| stats.totals.packets_lost);
    let paths = stats.iter().flat_map(|stats| &stats.paths);
    let shares = paths.map(|path| path.sample.counters.stream_bytes).collect();
    (sent.datagrams, sent.bytes, lost, shares)
}

fn bulk(setup: Setup, total: u64, paths: usize) {
    let name = setup.name.clone();
    let server = move |endpoint: Endpoint| async move {
        let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
        let (mut send, mut receive) = connection.accept_bidirectional().await.unwrap();
        usable(&connection, paths).await;
        receive.read_to_limit(16).await.unwrap();
        let data = vec![0x5a_u8; APP_BUF];
        let mut left = total;
        while left > 0 {
            let part = &data[..left.min(APP_BUF as u64) as usize];
            let mut written = 0;
            while written < part.len() {
                written += send.write(&part[written..]).await.unwrap();
            }
            left -= part.len() as u64;
        }
        send.finish().unwrap();
        send.delivered().await.unwrap();
        let sent = sent(&endpoint, &connection);
        connection.closed().await;
        sent
    };
    let client = move |setup: Setup, address: SocketAddr| async move {
        let mut builder = Endpoint::client();
        for last in (1..=paths as u8).filter(|_| paths > 1) {
            builder = builder.via(Via::Address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))));
        }
        let endpoint = builder.bind().unwrap();
        let connection = endpoint.connect(&setup.client, address, NAME).await.unwrap();
        usable(&connection, paths).await;
        let meter = Meter::start();
        let (mut send, mut receive) = connection.open_bidirectional().await.unwrap();
        send.write_bytes("go".into()).await.unwrap();
        send.finish().unwrap();
        let mut buffer = vec![0_u8; APP_BUF];
        let mut got = 0;
        while let Some(read) = receive.read(&mut buffer).await.unwrap() {
            got += read as u64;
        }
        let spent = meter.stop();
        assert_eq!(got, total);
        let back = sent(&endpoint, &connection).0;
        // The last acknowledgement leaves before the connection does.
        tokio::time::sleep(Duration::from_millis(50)).await;
        connection.close(0, b"");
        endpoint.wait_idle().await;
        (spent, back)
    };
    let ((datagrams, bytes, lost, shares), (spent, back)) = both(setup, server, client);
    let name = if paths > 1 { format!("{name}, {paths} paths") } else { name };
    let mut row = Json::new("bulk", &name, env!("CARGO_PKG_VERSION"))
        .bytes(total, &spent)
        .packets(datagrams, bytes, back, lost, &spent);
    for (nth, share) in shares.iter().enumerate() {
        row = row.f(&format!("path{nth}_mib"), *share as f64 / MIB as f64);
    }
    row.print();
}

fn streams(setup: Setup, count: u64) {
    let name = setup.name.clone();
    let server = move |endpoint: Endpoint| async move {
        let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
        while let Ok((mut send, mut receive)) = connection.accept_bidirectional().await {
            tokio::spawn(async move {
                let request = receive.read_to_limit(1000).await.unwrap();
                assert_eq!(request.len(), REQ_LEN);
                let answer = bytes::Bytes::copy_from_slice(&[7; RESP_LEN]);
                send.write_bytes(answer).await.unwrap();
                send.finish().unwrap();
            });
        }
        let sent = endpoint.stats().sent;
        (sent.datagrams, sent.bytes)
    };
    let client = move |setup: Setup, address: SocketAddr| async move {
        let endpoint = Endpoint::client().bind().unwrap();
        let connection = endpoint.connect(&setup.client, address, NAME).await.unwrap();
        let meter = Meter::start();
        // CONCURRENT workers, each with one stream at a time
        let left = Arc::new(AtomicI64::new(count as i64));
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..CONCURRENT {
            let (connection, left) = (connection.clone(), left.clone());
            workers.spawn(async move {
                let mut buffer = [0_u8; RESP_LEN];
                while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                    let (mut send, mut receive) = connection.open_bidirectional().await.unwrap();
                    let request = bytes::Bytes::copy_from_slice(&[1; REQ_LEN]);
                    send.write_bytes(request).await.unwrap();
                    send.finish().unwrap();
                    let mut got = 0;
                    while let Some(read) = receive.read(&mut buffer).await.unwrap() {
                        got += read;
                    }
                    assert_eq!(got, RESP_LEN);
                }
            });
        }
        while let Some(worker) = workers.join_next().await {
            worker.unwrap();
        }
        let spent = meter.stop();
        let back = endpoint.stats().sent.datagrams;
        connection.close(0, b"");
        endpoint.wait_idle().await;
        (spent, back)
    };
    let ((datagrams, bytes), (spent, back)) = both(setup, server, client);
    Json::new("streams", &name, env!("CARGO_PKG_VERSION"))
        .units("streams", count, &spent)
        .packets(datagrams, bytes, back, 0, &spent)
        .print();
}

/// One after another, each waited for.
fn handshake(setup: Setup, count: u64) {
    let name = setup.name.clone();
    let server = move |endpoint: Endpoint| async move {
        for _ in 0..=count {
            let incoming = endpoint.accept().await.unwrap();
            drop(incoming.accept().await.unwrap());
        }
    };
    let client = move |setup: Setup, address: SocketAddr| async move {
        let endpoint = Endpoint::client().bind().unwrap();
        drop(endpoint.connect(&setup.client, address, NAME).await.unwrap());
        let meter = Meter::start();
        for _ in 0..count {
            drop(endpoint.connect(&setup.client, address, NAME).await.unwrap());
        }
        meter.stop()
    };
    let ((), spent) = both(setup, server, client);
    Json::new("handshake", &name, env!("CARGO_PKG_VERSION"))
        .s("how", "loopback, one at a time")
        .units("handshakes", count, &spent)
        .print();
}

fn idle_connections(setup: Setup, count: u64, seconds: u64) {
    let name = setup.name.clone();
    let server = move |endpoint: Endpoint| async move {
        let mut held = Vec::new();
        for _ in 0..=count {
            held.push(endpoint.accept().await.unwrap().accept().await.unwrap());
        }
        held[0].closed().await;
    };
    let client = move |setup: Setup, address: SocketAddr| async move {
        let endpoint = Endpoint::client().bind().unwrap();
        let first = endpoint.connect(&setup.client, address, NAME).await.unwrap();
        let mut idle = Idle::begin(count);
        let mut held = Vec::new();
        for _ in 0..count {
            held.push(endpoint.connect(&setup.client, address, NAME).await.unwrap());
        }
        // Nothing of the handshakes is on its way any more.
        tokio::time::sleep(Duration::from_secs(SETTLE_S)).await;
        idle.settled();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        idle.end();
        assert!(held.iter().all(|connection| connection.close_reason().is_none()));
        drop((first, held));
        endpoint.wait_idle().await;
        idle
    };
    let ((), idle) = both(setup, server, client);
    idle.print(&name, env!("CARGO_PKG_VERSION"), "loopback");
}

/// Prints port and pin, and serves for ever.
async fn serve(mut setup: Setup) {
    let (tls, pin) = self_signed(NAME, &[perf::ALPN]).unwrap();
    setup.server.tls = Arc::new(tls);
    let endpoint = Endpoint::server(setup.server).listen("0.0.0.0:0".parse().unwrap());
    let endpoint = endpoint.bind().unwrap();
    println!("{} {pin}", endpoint.local_addresses()[0].port());
    perf::serve(&endpoint, |_| ()).await;
}

/// Downloads by `--via`, names of interfaces with commas between, from `--server` with `--pin`.
async fn fetch(mut setup: Setup, args: &Args) {
    let pin = args.str("pin", "").parse().expect("a pin");
    setup.client.tls = Arc::new(pinned(pin, &[perf::ALPN]).unwrap());
    let via = args.str("via", "");
    let mut builder = Endpoint::client();
    for name in via.split(',') {
        builder = builder.via(name.parse().unwrap());
    }
    let endpoint = builder.bind().unwrap();
    let address = args.str("server", "").parse().expect("an address");
    let connection = endpoint.connect(&setup.client, address, NAME).await.unwrap();
    usable(&connection, via.split(',').count()).await;
    let amount = Amount::Bytes(args.num("mib", 32) * MIB);
    let load = Load { direction: Direction::Down, streams: 1, amount };
    let meter = Meter::start();
    let hour = Duration::from_secs(3600);
    let outcome = perf::measure(&connection, &load, hour, |_| ()).await.unwrap();
    let mut row = Json::new("links", &setup.name, env!("CARGO_PKG_VERSION"))
        .s("via", &via)
        .bytes(outcome.bytes, &meter.stop())
        .f("goodput_mbit_s", outcome.goodput() / 1e6);
    for path in &outcome.after {
        let received = path.sample.counters.bytes_received as f64 / MIB as f64;
        row = row.f(&format!("path{}_mib", path.id.0), received);
    }
    row.print();
    connection.close(0, b"");
    endpoint.wait_idle().await;
}
