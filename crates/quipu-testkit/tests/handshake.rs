//! Handshakes whose datagrams arrive in another order than they left, late, or not at all.

use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, PathId, Role, Seed, StreamDirection};
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::endpoint::{ClientConfig, ServerConfig};
use quipu_quic::{
    Arrival, ConnectionEvent, ConnectionHandle, Endpoint, Outbox, Route, Transmit, TransportConfig,
};
use quipu_testkit::{ALPN, SERVER_NAME, client_address, plain_policies, server_address};

/// Each datagram takes so long: the round trip is 20 ms.
const DELAY: Duration = Duration::from_millis(10);

/// What is sent at one instant, in order.
#[derive(Default)]
struct Flight {
    buffer: Vec<u8>,
    datagrams: Vec<Vec<u8>>,
}

impl Outbox for Flight {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.buffer.resize(size, 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        self.datagrams.push(self.buffer[..transmit.len].to_vec());
    }
}

/// One end: its endpoint and what happened there.
struct End {
    role: Role,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    connected_at: Option<Instant>,
    /// When the first bytes of a stream could be read.
    read_at: Option<Instant>,
    closed_at: Option<Instant>,
}

/// When the client was connected, and when the server had the client's first stream bytes.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    connected_at: Option<Instant>,
    read_at: Option<Instant>,
}

impl End {
    fn route(&self) -> Route {
        match self.role {
            Role::Client => Route::new(client_address(0), server_address()),
            Role::Server => Route::new(server_address(), client_address(0)),
        }
    }

    /// The client sends 5 kB on a stream as soon as it may; nobody takes them from the server.
    fn act(&mut self, now: Instant) {
        self.handle = self.handle.or_else(|| self.endpoint.accept());
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle))
        else {
            return;
        };
        while let Some(event) = connection.poll() {
            match event {
                ConnectionEvent::Connected => {
                    self.connected_at = Some(now);
                    if self.role.is_client() {
                        let stream = connection
                            .open_stream(now, StreamDirection::Bidirectional)
                            .expect("a stream is allowed");
                        connection.write(now, stream, vec![7; 5_000].into()).expect("it is open");
                    }
                }
                ConnectionEvent::Readable(_) => {
                    self.read_at.get_or_insert(now);
                }
                ConnectionEvent::Closed(_) => self.closed_at = Some(now),
                _ => {}
            }
        }
    }

    fn flight(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut flight = Flight::default();
        self.endpoint.poll_transmit(now, &mut flight);
        flight.datagrams
    }
}

/// A client and a server whose certificate chain has so many bytes.
fn ends(chain: usize) -> [End; 2] {
    ends_of(chain, TransportConfig::default())
}

fn ends_of(chain: usize, transport: TransportConfig) -> [End; 2] {
    let end = |role: Role, name: &str| End {
        role,
        endpoint: Endpoint::seeded(Seed::new(1).stream(name, 0)),
        handle: None,
        connected_at: None,
        read_at: None,
        closed_at: None,
    };
    let transport = Arc::new(transport);
    let (mut near, mut far) = (end(Role::Client, "client"), end(Role::Server, "server"));
    let tls = NullServer::new(&[ALPN]).and_then(|server| server.with_certificate_chain(chain));
    let tls = Arc::new(tls.expect("a valid chain"));
    let config = ServerConfig::new(tls, Arc::clone(&transport), plain_policies());
    far.endpoint.listen(config).expect("a valid transport");
    let tls = Arc::new(NullClient::new(&[ALPN]).expect("a valid name"));
    let config = ClientConfig::new(tls, transport, plain_policies());
    let handle = near.endpoint.connect(Instant::ZERO, &config, SERVER_NAME, near.route());
    near.handle = Some(handle.expect("a valid configuration"));
    [near, far]
}

/// Lets both ends meet for two seconds; `reorder` arranges what an end sent at one instant.
fn meet(mut ends: [End; 2], reorder: impl Fn(Role, &mut Vec<Vec<u8>>)) -> Times {
    let all_pass = |_, _, _: &[u8]| Some(Duration::ZERO);
    meet_for(&mut ends, Duration::from_secs(2), reorder, all_pass);
    Times { connected_at: ends[0].connected_at, read_at: ends[1].read_at }
}

/// Lets both ends meet for so long. `late` tells by how much a datagram that an end sends at some
/// instant is late; `None`: it is lost.
fn meet_for(
    ends: &mut [End; 2],
    time: Duration,
    reorder: impl Fn(Role, &mut Vec<Vec<u8>>),
    mut late: impl FnMut(Role, Instant, &[u8]) -> Option<Duration>,
) {
    let mut in_flight: Vec<(Instant, usize, Vec<u8>)> = Vec::new();
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + time {
        for (index, end) in ends.iter_mut().enumerate() {
            end.act(now);
            let mut datagrams = end.flight(now);
            reorder(end.role, &mut datagrams);
            for datagram in datagrams {
                if let Some(late) = late(end.role, now, &datagram) {
                    in_flight.push((now + DELAY + late, 1 - index, datagram));
                }
            }
        }
        in_flight.sort_by_key(|(at, ..)| *at);
        let arrival = in_flight.first().map(|(at, ..)| *at);
        let deadlines = ends.iter().map(|end| end.endpoint.poll_timeout());
        let Some(next) = deadlines.chain([arrival]).flatten().min() else { break };
        now = now.max(next);
        for end in &mut *ends {
            end.endpoint.handle_timeout(now);
        }
        while in_flight.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, receiver, mut datagram) = in_flight.remove(0);
            let arrival = Arrival { route: ends[receiver].route(), ecn: 0 };
            ends[receiver].endpoint.handle_datagram(now, arrival, &mut datagram);
        }
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The server's flight takes two datagrams with the first chain, three with the second.
const CHAINS: [usize; 2] = [1_000, 2_000];

/// What happens when every datagram arrives in order: the client connects after one round trip.
fn undisturbed() -> Times {
    let after = |millis| Some(Instant::ZERO + Duration::from_millis(millis));
    Times { connected_at: after(20), read_at: after(30) }
}

#[test]
fn in_order_a_client_connects_after_one_round_trip() {
    for chain in CHAINS {
        assert_eq!(meet(ends(chain), |_, _| ()), undisturbed());
    }
}

#[test]
fn handshake_packets_are_read_as_soon_as_their_keys_come() {
    for chain in CHAINS {
        let times = meet(ends(chain), |role, datagrams| {
            if role == Role::Server {
                datagrams.reverse();
            }
        });
        assert_eq!(times, undisturbed());
    }
}

#[test]
fn one_rtt_packets_are_read_as_soon_as_the_handshake_is_complete() {
    for chain in CHAINS {
        let times = meet(ends(chain), |role, datagrams| {
            if role == Role::Client {
                datagrams.reverse();
            }
        });
        assert_eq!(times, undisturbed());
    }
}

/// Only the packet number space whose timeout ran out was probed: the Handshake packets came a probe timeout
/// after the Initial packet, 60 ms by the sample that its acknowledgement gave.
#[test]
fn a_flight_that_is_lost_whole_is_repeated_whole() {
    for chain in CHAINS {
        let mut ends = ends(chain);
        let lost = |role, now, _: &[u8]| {
            let is_lost = role == Role::Server && now < Instant::ZERO + ms(500);
            (!is_lost).then_some(Duration::ZERO)
        };
        meet_for(&mut ends, ms(4_000), |_, _| (), lost);
        // The first probe timeout is three times 333 ms.
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
        let connected_at = ends[0].connected_at.expect("it connects");
        assert!(connected_at < Instant::ZERO + ms(1_050), "{chain}: {connected_at}");
    }
}

/// The client's bytes wait 50 ms at the server for the end of the handshake. The server tells so, or
/// the client would take it for a part of the round trip.
#[test]
fn what_a_packet_waits_for_its_keys_counts_as_delay_of_its_acknowledgement() {
    let mut ends = ends(CHAINS[0]);
    // Packets with a long header carry the handshake.
    let late = |role, now, datagram: &[u8]| {
        let is_late = role == Role::Client && now > Instant::ZERO && datagram[0] & 0x80 != 0;
        Some(if is_late { ms(50) } else { Duration::ZERO })
    };
    meet_for(&mut ends, ms(100), |_, _| (), late);
    assert_eq!(ends[0].connected_at, Some(Instant::ZERO + ms(20)));
    assert_eq!(ends[1].read_at, Some(Instant::ZERO + ms(80)));
    let handle = ends[0].handle.expect("it connected");
    let connection = ends[0].endpoint.connection_mut(handle).expect("it lives");
    let sample = connection.path_samples().find(|sample| sample.path == PathId(0)).expect("a path");
    assert!(sample.latest_rtt > Some(ms(50)), "{:?}", sample.latest_rtt);
    assert_eq!(sample.srtt, Some(ms(20)));
}

/// It had ended after a second: a client that waits for credit has nothing in flight.
#[test]
fn a_sender_that_waits_for_credit_keeps_the_connection() {
    let windows = |stream, connection| TransportConfig {
        idle_timeout: ms(1_000),
        stream_window: Bytes(stream),
        connection_window: Bytes(connection),
        ..TransportConfig::default()
    };
    for (config, ends_idle) in [
        (windows(1_000, 100_000), false),
        (windows(100_000, 1_000), false),
        (windows(100_000, 100_000), true),
    ] {
        let mut ends = ends_of(CHAINS[0], config);
        let mut sent = 0;
        let count = |role: Role, now, _: &[u8]| {
            sent += u32::from(role.is_client() && now > Instant::ZERO + ms(100));
            Some(Duration::ZERO)
        };
        meet_for(&mut ends, ms(10_000), |_, _| (), count);
        for end in &ends {
            assert_eq!(end.closed_at.is_some(), ends_idle, "{:?}", end.role);
        }
        // One frame every half second.
        assert!(ends_idle || (15..25).contains(&sent), "{sent}");
    }
}
