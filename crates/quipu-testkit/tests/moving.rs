//! Paths whose addresses change: translators of addresses that forget, clients that move.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use quipu_base::{Bytes, Duration, Instant, PathId, Rate, Role, Seed, StreamDirection};
use quipu_link::{LinkConfig, QueueLimit};
use quipu_policy::PathState;
use quipu_quic::connection::{MigrateError, Migration};
use quipu_quic::wire::Frame;
use quipu_quic::{ConnectionEvent, Route, TransportConfig};
use quipu_testkit::forge::{Flight, Forge, Pair, Setup};
use quipu_testkit::{
    Middlebox, NodeConfig, Outcome, Plan, QuicNode, Rebinding, Scenario, Tls, client_address,
    server_address,
};

const DELAY: Duration = Duration::from_millis(10);
const MEGABYTE: u64 = 1_000_000;

/// 20 Mbit/s, 40 ms round trip, a queue of one bandwidth-delay product.
fn path() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(20), Duration::from_millis(20))
        .with_queue(QueueLimit::bandwidth_delay(1.0))
}

/// Three probe timeouts of that path with its queue full: smoothed round trip, four times its
/// variation, and what acknowledgements may wait.
const THREE_PROBE_TIMEOUTS: Duration = Duration::from_millis(3 * (80 + 4 * 20 + 25));

/// Another port of a client's address, or another address.
fn elsewhere(path: u8, nth: u16, other_host: bool) -> SocketAddr {
    let mut address = client_address(path);
    address.set_port(address.port() + 1 + nth);
    if other_host {
        address.set_ip([10, 0, 9, 1 + path].into());
    }
    address
}

fn run(scenario: &Scenario) -> Outcome {
    let node = |role: Role| {
        let config = NodeConfig::new(scenario, role, Tls::Null { chain: 3000 });
        Box::new(QuicNode::new(config))
    };
    let outcome = scenario.run(node(Role::Client), node(Role::Server));
    outcome.unwrap_or_else(|failure| unreachable!("{:?}: {failure}", scenario.middlebox))
}

fn rebound(plan: Plan, paths: u8, path_rebound: u8, at: u64, other_host: bool) -> Scenario {
    let inside = client_address(path_rebound);
    let outside = elsewhere(path_rebound, 0, other_host);
    let at = Instant::ZERO + Duration::from_millis(at);
    let middlebox =
        Middlebox { rebindings: vec![Rebinding { at, inside, outside }], ..Middlebox::default() };
    Scenario { middlebox, ..Scenario::new(plan, (0..paths).map(|_| path()).collect()) }
}

#[test]
fn a_transfer_goes_on_when_the_clients_address_is_rebound_at_any_instant() {
    let mut longest = Duration::ZERO;
    let plans = [
        ("both ways", Plan::both_ways(5 * MEGABYTE)),
        ("up", Plan::upload(10 * MEGABYTE)),
        ("down", Plan::download(10 * MEGABYTE)),
    ];
    for (name, plan) in plans {
        for round in 0..10 {
            let at = 200 + Seed::new(7).number("rebound", round) % 1_800;
            let outcome = run(&rebound(plan, 1, 0, at, round % 2 == 1));
            let stall = outcome.longest_stalls.into_iter().max().unwrap();
            println!("{name} at {at} ms: done at {}, stall {stall}", outcome.finished_at);
            longest = longest.max(stall);
        }
    }
    assert!(longest < THREE_PROBE_TIMEOUTS, "{longest}");
}

#[test]
fn one_of_two_paths_is_rebound_and_both_go_on() {
    for round in 0..10 {
        let at = 200 + Seed::new(8).number("rebound", round) % 1_000;
        let plan = Plan::both_ways(10 * MEGABYTE);
        let outcome = run(&rebound(plan, 2, (round % 2) as u8, at, round % 4 < 2));
        println!("at {at} ms: done at {}, {:?}", outcome.finished_at, outcome.longest_stalls);
        assert_eq!(outcome.client_paths, 2);
        for (up, down) in &outcome.links {
            assert!(up.delivered.bytes > Bytes(3 * MEGABYTE), "{up:?}");
            assert!(down.delivered.bytes > Bytes(3 * MEGABYTE), "{down:?}");
        }
        assert!(outcome.longest_stalls.into_iter().max() < Some(THREE_PROBE_TIMEOUTS));
    }
}

/// A connected pair on whose wire the client's first address appears as what `seen` says.
fn translated(setup: &Setup, seen: fn(Instant) -> SocketAddr) -> Pair {
    let mut pair = Pair::connected(setup, DELAY);
    pair.intercept(move |now, delay, mut flight: Flight| {
        if flight.from.is_client() && flight.route.local == client_address(0) {
            flight.route = Route::new(seen(now), flight.route.remote);
        } else if !flight.from.is_client() && flight.route.remote != client_address(1) {
            // What arrives at an address that is not the client's any more is lost.
            if flight.route.remote != seen(now + delay) {
                return Vec::new();
            }
            flight.route = Route::new(flight.route.local, client_address(0));
        }
        vec![(delay, flight)]
    });
    pair
}

fn events(pair: &mut Pair, role: Role) -> std::rc::Rc<std::cell::RefCell<Vec<ConnectionEvent>>> {
    let events = std::rc::Rc::default();
    let list: std::rc::Rc<std::cell::RefCell<Vec<ConnectionEvent>>> = std::rc::Rc::clone(&events);
    pair.end(role).serve(Box::new(move |_, _, event| list.borrow_mut().push(event.clone())));
    events
}

/// What the client has in flight.
fn in_flight(pair: &mut Pair) -> Bytes {
    let now = pair.now();
    pair.client().connection().unwrap().view(now).conn.in_flight
}

/// The client sends a few bytes on a new stream.
fn say_something(pair: &mut Pair) {
    pair.act(Role::Client, |end, now| {
        let connection = end.connection_mut().unwrap();
        let direction = quipu_base::StreamDirection::Unidirectional;
        let stream = connection.open_stream(now, direction).unwrap();
        connection.write(now, stream, vec![7; 100].into()).unwrap();
        connection.finish(now, stream).unwrap();
    });
}

#[test]
fn the_application_is_told_of_a_move_and_of_its_proof() {
    let mut pair = translated(&Setup::default(), |_| elsewhere(0, 0, true));
    let told = events(&mut pair, Role::Server);
    say_something(&mut pair);
    pair.run(Duration::from_secs(1));
    let (old, new) = (
        Route::new(server_address(), client_address(0)),
        Route::new(server_address(), elsewhere(0, 0, true)),
    );
    let path = PathId::ZERO;
    let moves: Vec<_> = told
        .borrow()
        .iter()
        .filter(|event| {
            matches!(event, ConnectionEvent::PathMigrated(_) | ConnectionEvent::PeerAddress { .. })
        })
        .cloned()
        .collect();
    let expected = [
        ConnectionEvent::PathMigrated(Box::new(Migration { path, old, new })),
        ConnectionEvent::PeerAddress { path, remote: new.remote },
    ];
    assert_eq!(moves, expected);
}

/// Congestion control and round-trip time begin anew with another host, and go on with another port.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.4>
#[test]
fn another_port_keeps_what_was_measured_and_another_host_does_not() {
    for other_host in [false, true] {
        let seen: fn(Instant) -> SocketAddr =
            if other_host { |_| elsewhere(0, 0, true) } else { |_| elsewhere(0, 0, false) };
        let setup = Setup::default();
        let mut pair = Pair::connected(&setup, DELAY);
        // The server's window grows.
        pair.act(Role::Server, |end, now| {
            let connection = end.connection_mut().unwrap();
            let direction = quipu_base::StreamDirection::Unidirectional;
            let stream = connection.open_stream(now, direction).unwrap();
            connection.write(now, stream, vec![7; 300_000].into()).unwrap();
            connection.finish(now, stream).unwrap();
        });
        pair.run(Duration::from_secs(2));
        let window =
            |pair: &mut Pair| pair.server().connection().unwrap().path_views().next().unwrap().cwnd;
        let before = window(&mut pair);
        let mut moved = translated_from(pair, seen);
        say_something(&mut moved);
        moved.run(Duration::from_secs(1));
        let after = window(&mut moved);
        println!("window {before}, after a move {after}");
        assert!(before > Bytes(100_000));
        assert_eq!(after > Bytes(100_000), !other_host);
    }
}

fn translated_from(mut pair: Pair, seen: fn(Instant) -> SocketAddr) -> Pair {
    pair.intercept(move |now, delay, mut flight: Flight| {
        if flight.from.is_client() {
            flight.route = Route::new(seen(now), flight.route.remote);
        } else {
            if flight.route.remote != seen(now + delay) {
                return Vec::new();
            }
            flight.route = Route::new(flight.route.local, client_address(0));
        }
        vec![(delay, flight)]
    });
    pair
}

/// A translator before the server gives it another address inside: the client sees nothing of it.
#[test]
fn a_server_whose_own_address_is_rebound_answers_from_the_new_one() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    let inside: SocketAddr = ([192, 168, 0, 9], 4433).into();
    pair.intercept(move |_, delay, mut flight: Flight| {
        if flight.from.is_client() {
            flight.route = Route::new(flight.route.local, inside);
        } else {
            if flight.route.local != inside {
                return Vec::new();
            }
            flight.route = Route::new(server_address(), flight.route.remote);
        }
        vec![(delay, flight)]
    });
    for _ in 0..5 {
        say_something(&mut pair);
        pair.run(Duration::from_secs(1));
    }
    let moved = pair.log().iter().rev().find(|(_, flight)| !flight.from.is_client()).unwrap();
    assert_eq!(moved.1.route.local, inside);
    assert_eq!(in_flight(&mut pair), Bytes::ZERO);
    assert_eq!(pair.server().close_reason(), None);
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-9>
#[test]
fn a_client_does_not_read_what_comes_from_an_unknown_server() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    pair.intercept(|_, delay, mut flight: Flight| {
        if !flight.from.is_client() {
            flight.route = Route::new(([10, 9, 9, 9], 443).into(), flight.route.remote);
        }
        vec![(delay, flight)]
    });
    let before = pair.client().connection().unwrap().dropped_packets();
    say_something(&mut pair);
    pair.run(Duration::from_secs(1));
    assert!(pair.client().connection().unwrap().dropped_packets() > before);
    assert!(in_flight(&mut pair) > Bytes::ZERO);
}

/// What was said from a spoofed address does not stop what goes to the true one: the path returns
/// when the spoofed address does not answer, or earlier when the peer is heard again.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.3.2>
#[test]
fn a_path_returns_when_a_new_address_is_not_proved() {
    let spoofed: SocketAddr = ([203, 0, 113, 7], 53).into();
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    let told = events(&mut pair, Role::Server);
    let mut left = 1;
    pair.intercept(move |_, delay, mut flight: Flight| {
        if flight.route.remote == spoofed {
            return Vec::new();
        }
        if flight.from.is_client() && left > 0 {
            // This one comes from elsewhere, and nothing comes from the client for a while.
            left -= 1;
            flight.route = Route::new(spoofed, flight.route.remote);
        } else if flight.from.is_client() {
            return Vec::new();
        }
        vec![(delay, flight)]
    });
    say_something(&mut pair);
    let moved_at = pair.now() + DELAY;
    let of = |event: &ConnectionEvent| match event {
        ConnectionEvent::PathMigrated(migration) => Some(migration.new.remote),
        _ => None,
    };
    let routes = || told.borrow().iter().filter_map(of).collect::<Vec<_>>();
    assert!(pair.run_until(Duration::from_secs(10), |_| routes().len() == 2));
    assert_eq!(routes(), [spoofed, client_address(0)]);
    // Three times the probe timeout of a path that nothing is known of.
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.4
    let took = pair.now() - moved_at;
    assert!(took >= Duration::from_millis(2_990) && took <= Duration::from_millis(3_010), "{took}");
    pair.intercept(|_, delay, flight| vec![(delay, flight)]);
    say_something(&mut pair);
    // The client's probes have backed off.
    pair.run(Duration::from_secs(20));
    assert_eq!(in_flight(&mut pair), Bytes::ZERO);
}

fn migrate(pair: &mut Pair, local: SocketAddr) -> Result<(), MigrateError> {
    let route = Route::new(local, server_address());
    pair.act(Role::Client, |end, now| {
        end.connection_mut().unwrap().migrate(now, PathId::ZERO, route)
    })
}

#[test]
fn a_client_moves_with_another_connection_id_and_the_server_follows() {
    for setup in [Setup::default(), Setup::default().on_one_path()] {
        let mut pair = Pair::connected(&setup, DELAY);
        let told = events(&mut pair, Role::Client);
        let sent_to = |pair: &Pair, from: SocketAddr| -> Vec<Vec<u8>> {
            let mut ids: Vec<_> = pair
                .log()
                .iter()
                .filter(|(_, flight)| flight.route.local == from && flight.bytes[0] & 0x80 == 0)
                .map(|(_, flight)| flight.bytes[1..9].to_vec())
                .collect();
            ids.dedup();
            ids
        };
        for nth in 1..=3 {
            assert_eq!(migrate(&mut pair, client_address(nth)), Ok(()));
            pair.run(Duration::from_secs(1));
            say_something(&mut pair);
            pair.run(Duration::from_secs(1));
            let remote = pair.log().iter().rev().find(|(_, flight)| !flight.from.is_client());
            assert_eq!(remote.unwrap().1.route.remote, client_address(nth), "the server follows");
        }
        // No connection ID was used with two addresses, at either end.
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        let used: Vec<Vec<Vec<u8>>> =
            (0..=3).map(|nth| sent_to(&pair, client_address(nth))).collect();
        for (at, ids) in used.iter().enumerate() {
            assert!(!ids.is_empty());
            for other in &used[at + 1..] {
                assert!(ids.iter().all(|id| !other.contains(id)), "{used:?}");
            }
        }
        let is_move = |event: &&ConnectionEvent| matches!(event, ConnectionEvent::PathMigrated(_));
        assert_eq!(told.borrow().iter().filter(is_move).count(), 3);
        assert_eq!(pair.client().close_reason(), None);
        assert_eq!(pair.server().close_reason(), None);
    }
}

#[test]
fn a_client_stays_when_the_other_address_does_not_work() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    let told = events(&mut pair, Role::Client);
    pair.intercept(|_, delay, flight| {
        let dead = [flight.route.local, flight.route.remote].contains(&client_address(1));
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    migrate(&mut pair, client_address(1)).unwrap();
    assert_eq!(migrate(&mut pair, client_address(2)), Err(MigrateError::Busy));
    say_something(&mut pair);
    pair.run(Duration::from_secs(10));
    assert!(told.borrow().contains(&ConnectionEvent::MigrationFailed(PathId::ZERO)));
    assert!(!told.borrow().iter().any(|e| matches!(e, ConnectionEvent::PathMigrated(_))));
    assert_eq!(in_flight(&mut pair), Bytes::ZERO);
    // And can try again.
    assert_eq!(migrate(&mut pair, client_address(2)), Ok(()));
    pair.run(Duration::from_secs(1));
    assert!(told.borrow().iter().any(|e| matches!(e, ConnectionEvent::PathMigrated(_))));
}

#[test]
fn a_client_whose_address_is_gone_goes_on_at_once() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    pair.intercept(|_, delay, flight| {
        let dead = [flight.route.local, flight.route.remote].contains(&client_address(0));
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    let route = Route::new(client_address(1), server_address());
    pair.act(Role::Client, |end, now| {
        end.connection_mut().unwrap().rebind(now, PathId::ZERO, route).unwrap();
    });
    say_something(&mut pair);
    let start = pair.now();
    let arrived = pair.run_until(Duration::from_secs(5), |pair| {
        let conn = pair.client().connection().unwrap().view(start).conn.clone();
        conn.in_flight.is_zero()
    });
    assert!(arrived);
    let took = pair.now() - start;
    assert!(took < Duration::from_millis(150), "{took}");
}

#[test]
fn a_client_may_not_move_where_it_must_not() {
    let mut setup = Setup::default().on_one_path();
    setup.server.disable_active_migration = true;
    let mut pair = Pair::connected(&setup, DELAY);
    assert_eq!(migrate(&mut pair, client_address(1)), Err(MigrateError::Forbidden));
    // A translator's change is followed all the same.
    let mut pair = translated_from(pair, |_| elsewhere(0, 0, false));
    say_something(&mut pair);
    pair.run(Duration::from_secs(1));
    assert_eq!(in_flight(&mut pair), Bytes::ZERO);

    let mut pair = Pair::connected(&Setup::default(), DELAY);
    assert_eq!(migrate(&mut pair, client_address(0)), Err(MigrateError::Exists));
    let mut act = |role: Role, path: u32, route: Route| {
        pair.act(role, |end, now| end.connection_mut().unwrap().migrate(now, PathId(path), route))
    };
    let route = Route::new(client_address(1), server_address());
    assert_eq!(act(Role::Server, 0, route), Err(MigrateError::NotClient));
    assert_eq!(act(Role::Client, 1, route), Err(MigrateError::NoPath));
    let unknown = Route::new(client_address(1), ([10, 9, 9, 9], 443).into());
    assert_eq!(act(Role::Client, 0, unknown), Err(MigrateError::UnknownServer));

    let config = TransportConfig { disable_active_migration: true, ..TransportConfig::default() };
    assert_eq!(config.validate().unwrap_err().field, "disable_active_migration");
}

/// A server that validates a rebound client's address may hold its acknowledgements until it has the
/// answer, while the client's window is full of probes.
#[test]
fn a_challenge_is_answered_though_nothing_is_acknowledged() {
    let mut forge = Forge::against(Role::Client, &Setup::default());
    forge.act(|connection, now| {
        let direction = quipu_base::StreamDirection::Unidirectional;
        let stream = connection.open_stream(now, direction).unwrap();
        connection.write(now, stream, vec![7; 1_000_000].into()).unwrap();
    });
    for nth in 1..=5 {
        forge.wait(Duration::from_secs(4));
        forge.heard();
        forge.say([Frame::PathChallenge { data: [nth; 8] }]);
        let answers = forge.heard_of(|frame| match frame {
            Frame::PathResponse { data } => Some(*data),
            _ => None,
        });
        assert_eq!(answers, [[nth; 8]]);
    }
}

/// A path that is abandoned while an address of it is validated leaves no deadline that stands.
#[test]
fn a_path_abandoned_while_it_is_validated_leaves_no_deadline() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    pair.intercept(|_, delay, flight| {
        let dead = [flight.route.local, flight.route.remote].contains(&client_address(1));
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(1), server_address());
        let connection = end.connection_mut().unwrap();
        let id = connection.open_path(now, route).unwrap();
        let code = quipu_quic::error::ErrorCode::APPLICATION_ABANDON_PATH;
        assert!(connection.abandon_path(now, id, code));
    });
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.client().stuck(), None);
}

/// A move while a second path is there: it moves alone.
#[test]
fn a_second_path_moves_alone() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(1), server_address());
        end.connection_mut().unwrap().open_path(now, route).unwrap();
    });
    pair.run(Duration::from_secs(1));
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(2), server_address());
        end.connection_mut().unwrap().migrate(now, PathId(1), route).unwrap();
    });
    pair.run(Duration::from_secs(1));
    let connection = pair.server().connection().unwrap();
    assert!(connection.path_views().all(|view| view.state == PathState::Usable));
    assert_eq!(connection.path_views().count(), 2);
}

/// What an application may read of each path, at either end: addresses, proof, sizes and counters.
#[test]
fn each_path_shows_its_present_addresses_and_what_went_over_it() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(1), server_address());
        end.connection_mut().unwrap().open_path(now, route).unwrap();
    });
    pair.run(Duration::from_secs(1));
    migrate(&mut pair, client_address(2)).unwrap();
    pair.run(Duration::from_secs(1));
    say_something(&mut pair);
    pair.run(Duration::from_secs(1));
    for role in [Role::Client, Role::Server] {
        let connection = pair.end(role).connection().unwrap();
        let samples: Vec<_> = connection.path_samples().collect();
        let all = connection.path_counters();
        assert_eq!(samples.len(), 2, "{role:?}");
        for (nth, address) in [(0, client_address(2)), (1, client_address(1))] {
            let sample = &samples[nth];
            let (own, peer) = (address, server_address());
            let (own, peer) = if role.is_client() { (own, peer) } else { (peer, own) };
            assert_eq!(sample.path, PathId(nth as u32));
            assert_eq!(sample.route, Route::new(own, peer), "{role:?}, path {nth}");
            assert_eq!(connection.route(sample.path), Some(sample.route));
            assert!(sample.is_proved, "{role:?}, path {nth}");
            assert_eq!(Some(sample.datagram_size), connection.datagram_size(sample.path));
            // With another host it begins anew, and this server has not asked for an answer since.
            let measured = sample.srtt.is_some_and(|srtt| srtt >= DELAY + DELAY);
            assert_eq!(measured, role.is_client() || nth == 1, "{role:?}: {:?}", sample.srtt);
            assert!(!measured || sample.rttvar < DELAY, "{role:?}: {}", sample.rttvar);
            assert_eq!(all[nth], (sample.path, sample.counters));
            let counters = sample.counters;
            assert!(counters.packets_sent > 0 && counters.packets_received > 0, "{counters:?}");
        }
    }
}

/// A client moves to another port, from which only its small datagrams arrive, so that the address is not
/// proved. The server has a full datagram to send there, and would then probe for larger ones.
#[test]
fn probes_of_the_path_mtu_keep_to_the_anti_amplification_limit() {
    for written in (1_100..1_300).step_by(10) {
        let mut pair = Pair::connected(&Setup::default().on_one_path(), DELAY);
        let stream = pair.act(Role::Client, |end, now| {
            let connection = end.connection_mut().unwrap();
            let stream = connection.open_stream(now, StreamDirection::Bidirectional).unwrap();
            connection.write(now, stream, vec![1].into()).unwrap();
            stream
        });
        pair.run(Duration::from_millis(100));
        let moved = elsewhere(0, 0, false);
        let sent = Rc::new(Cell::new(0));
        let counted = Rc::clone(&sent);
        let mut received: Vec<(Instant, usize)> = Vec::new();
        pair.intercept(move |now, delay, flight| {
            let length = flight.bytes.len();
            if !flight.from.is_client() && flight.route.remote == moved {
                counted.set(counted.get() + length);
                let came = received.iter().filter(|(at, _)| *at <= now).map(|(_, bytes)| bytes);
                let most = 3 * came.sum::<usize>();
                assert!(counted.get() <= most, "{} of {most} at {now}", counted.get());
            } else if flight.from.is_client() && flight.route.local == moved {
                // The first is what shows the server where the client is.
                if !received.is_empty() && length >= 1_200 {
                    return Vec::new();
                }
                received.push((now + delay, length));
            }
            vec![(delay, flight)]
        });
        pair.act(Role::Client, |end, now| {
            let route = Route::new(moved, server_address());
            let connection = end.connection_mut().unwrap();
            connection.rebind(now, PathId::ZERO, route).unwrap();
            connection.write(now, stream, vec![1].into()).unwrap();
        });
        pair.run(DELAY);
        pair.act(Role::Server, |end, now| {
            end.connection_mut().unwrap().write(now, stream, vec![2; written].into()).unwrap();
        });
        for _ in 0..20 {
            pair.act(Role::Client, |end, now| {
                end.connection_mut().unwrap().write(now, stream, vec![3].into()).unwrap();
            });
            pair.run(Duration::from_millis(5));
        }
        assert!(sent.get() > 2_400, "a full datagram went");
    }
}
