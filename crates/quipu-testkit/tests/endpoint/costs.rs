//! What a connection costs: memory while it is idle, and work while it opens, is accepted and closes.
//!
//! Memory is counted by the allocator of this program, work by how often memory is asked for and how
//! many places of connections are looked at. Times are for the bench `accept`.

use std::sync::Arc;

use quipu_base::{Duration, Role, StreamDirection};
use quipu_null_tls::NullServer;
use quipu_quic::endpoint::{Admission, Held, ServerConfig};
use quipu_quic::{ConnectionHandle, TransportConfig};
use quipu_testkit::ALPN;

use super::{Two, events, reversed};

/// No limit holds.
fn open(config: ServerConfig) -> ServerConfig {
    config.with_admission(Admission {
        max_connections: usize::MAX,
        max_per_source: usize::MAX,
        max_unvalidated: usize::MAX,
        handshake_timeout: Duration::ZERO,
        ..Admission::default()
    })
}

/// Bytes that the client's and the server's endpoint hold with so many connections that have nothing
/// more to say: what they give back when they are dropped. Each may have so many paths, and has sent
/// so many bytes.
fn held_by(connections: u16, paths: u32, bytes: usize) -> [i64; 2] {
    let transport = Arc::new(TransportConfig { max_paths: paths, ..TransportConfig::default() });
    let mut two =
        Two::new(|config| open(ServerConfig { transport: Arc::clone(&transport), ..config }));
    two.config.transport = transport;
    for port in 0..connections {
        let near = two.connect(1000 + port);
        two.settle();
        let far = two.server.accept().unwrap();
        if bytes > 0 {
            transfer(&mut two, [near, far], bytes);
        }
        // Acknowledgements, connection IDs, tokens and probes of the path MTU are over.
        two.wait(Duration::from_millis(500));
        events(&mut two.client, near);
        events(&mut two.server, far);
    }
    two.settle();
    let Two { client, server, config, .. } = two;
    assert_eq!(server.held().connections, usize::from(connections));
    let held = [client, server]
        .map(|endpoint| -allocation_counter::measure(|| drop(endpoint)).bytes_current);
    drop(config);
    held
}

/// What the null TLS holds for a connection, in bytes.
const TLS: i64 = 840;

/// What a connection may hold beyond TLS that has nothing to say, in bytes: 8 KiB with the transport's
/// default settings, which allow eight paths, so that each end has issued sixteen connection IDs; less
/// with one path.
const IDLE: [(u32, i64); 2] = [(1, 7_000), (8, 8_192)];

#[test]
fn an_idle_connection_holds_a_bounded_amount() {
    assert_eq!(TransportConfig::default().max_paths, IDLE[1].0);
    for (paths, most) in IDLE {
        let (few, many) = (held_by(8, paths, 0), held_by(40, paths, 0));
        for (nth, role) in [Role::Client, Role::Server].into_iter().enumerate() {
            let each = (many[nth] - few[nth]) / 32 - TLS;
            println!("{role:?} with {paths} paths: {each} bytes");
            assert!((2_000..most).contains(&each), "{role:?} with {paths} paths: {each} bytes");
        }
    }
}

/// What a server holds for each of some clients whose handshakes have begun, and what once they are
/// over, with a certificate chain of so many bytes.
fn held_in_and_after_the_handshake(chain: usize) -> [i64; 2] {
    let held = |is_over: bool| {
        let tls = NullServer::new(&[ALPN]).unwrap().with_certificate_chain(chain).unwrap();
        let tls = Arc::new(tls);
        let mut two = Two::new(|config| open(ServerConfig { tls, ..config }));
        for port in 0..8 {
            two.connect(port);
        }
        if is_over {
            two.wait(Duration::from_millis(500));
        } else {
            for (route, mut datagram) in two.client_sends() {
                two.server.handle_datagram(two.now, reversed(route), &mut datagram);
            }
            two.server_sends();
        }
        while let Some(handle) = two.server.accept() {
            events(&mut two.server, handle);
        }
        two.server_sends();
        let Two { client, server, .. } = two;
        drop(client);
        -allocation_counter::measure(|| drop(server)).bytes_current / 8
    };
    [held(false), held(true)]
}

/// Messages are kept until the peer has them or their keys are gone.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.9>
#[test]
fn what_the_handshake_held_is_given_back_when_its_keys_are_discarded() {
    let [in_short, after_short] = held_in_and_after_the_handshake(1_000);
    let [in_long, after_long] = held_in_and_after_the_handshake(11_000);
    println!("{in_short} and {after_short} bytes, {in_long} and {after_long}");
    assert!(in_long > in_short + 9_000, "{in_long} and {in_short}");
    assert!(after_short < in_short, "{after_short} and {in_short}");
    assert!((after_long - after_short).abs() < 100, "{after_long} and {after_short}");
}

/// Packets in flight, acknowledgements and buffers of a transfer leave little behind.
#[test]
fn a_connection_that_is_idle_again_gives_back_what_a_transfer_took() {
    let (few, many) = (held_by(2, 1, 1_000_000), held_by(10, 1, 1_000_000));
    for (nth, role) in [Role::Client, Role::Server].into_iter().enumerate() {
        let each = (many[nth] - few[nth]) / 8 - TLS;
        println!("{role:?}: {each} bytes");
        assert!((2_000..IDLE[0].1 + 4_500).contains(&each), "{role:?}: {each} bytes");
    }
}

/// The server of the connection sends so many bytes, and the client reads them.
fn transfer(two: &mut Two, [near, far]: [ConnectionHandle; 2], bytes: usize) {
    let now = two.now;
    let server = two.server.connection_mut(far).unwrap();
    let stream = server.open_stream(now, StreamDirection::Unidirectional).unwrap();
    assert_eq!(server.write(now, stream, vec![7; bytes].into()), Ok(bytes));
    server.finish(now, stream).unwrap();
    let mut read = 0;
    while read < bytes as u64 {
        two.wait(Duration::from_millis(10));
        let now = two.now;
        let client = two.client.connection_mut(near).unwrap();
        read += client.read(now, stream, &mut |_| {}).map_or(0, |read| read.bytes);
    }
}

/// Work of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    /// Places of connections that were looked at.
    looked_at: u64,
    /// How often memory was asked for.
    allocations: u64,
}

/// What both ends do while one connection more is opened, accepted, closed and dropped beside
/// `others`, which stay in their handshakes.
fn work_beside(others: u16) -> Work {
    let mut two = Two::new(open);
    for port in 0..others {
        two.connect(port);
    }
    for (route, mut datagram) in two.client_sends() {
        two.server.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    two.server_sends();
    assert_eq!(two.server.held().connections, usize::from(others));
    while two.server.accept().is_some() {}
    // The first grows what all share.
    open_and_close(&mut two);
    let looked_at = |two: &Two| two.client.held().looked_at + two.server.held().looked_at;
    let before = looked_at(&two);
    let memory = allocation_counter::measure(|| open_and_close(&mut two));
    Work { looked_at: looked_at(&two) - before, allocations: memory.count_total }
}

fn open_and_close(two: &mut Two) {
    let near = two.connect(60_000);
    two.settle();
    let far = two.server.accept().unwrap();
    let now = two.now;
    two.client.connection_mut(near).unwrap().close(now, 0, b"");
    two.settle();
    events(&mut two.server, far);
    two.server.remove(far).unwrap();
    two.client.remove(near).unwrap();
}

#[test]
fn opening_accepting_and_closing_cost_the_same_beside_10_and_16_000() {
    let few = work_beside(10);
    assert!((1..400).contains(&few.looked_at), "{few:?}");
    let many = work_beside(16_000);
    println!("{few:?}, {many:?}");
    assert_eq!(many.looked_at, few.looked_at);
    // Trees have a few nodes more.
    assert!(many.allocations <= few.allocations + 8, "{many:?} and {few:?}");
}

/// What a closed connection held is given back.
#[test]
fn closed_connections_leave_no_memory() {
    let mut two = Two::new(open);
    let round = |two: &mut Two| (0..50).for_each(|_| open_and_close(two));
    round(&mut two);
    let memory = allocation_counter::measure(|| round(&mut two));
    println!("{memory:?}");
    assert!(memory.bytes_current.abs() < 2_000, "{memory:?}");
    let held = two.server.held();
    assert_eq!(held, Held { looked_at: held.looked_at, ..Held::default() });
}
