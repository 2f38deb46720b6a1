//! Attackers without keys, beside the path or on it: copies that arrive first, replays, forged
//! datagrams.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use quipu_base::{Duration, PathId, Role, StreamDirection};
use quipu_policy::PathState;
use quipu_quic::Route;
use quipu_testkit::forge::{Flight, Pair, Setup};
use quipu_testkit::{client_address, server_address};

use crate::setup;

const DELAY: Duration = Duration::from_millis(10);

fn elsewhere() -> SocketAddr {
    SocketAddr::from(([10, 6, 6, 6], 6_666))
}

/// A client and a server that exchange a few bytes now and then.
fn talk(pair: &mut Pair) {
    pair.act(Role::Client, |end, now| {
        let Some(connection) = end.connection_mut() else { return };
        if let Some(stream) = connection.open_stream(now, StreamDirection::Bidirectional) {
            let _ = connection.write(now, stream, vec![7; 3_000].into());
            let _ = connection.finish(now, stream);
        }
    });
    pair.run(Duration::from_millis(200));
}

fn assert_alive(pair: &mut Pair) {
    let before = pair.server().work().bytes_in;
    talk(pair);
    for role in [Role::Client, Role::Server] {
        assert_eq!(pair.end(role).close_reason(), None, "{role:?}");
    }
    let came = pair.server().work().bytes_in - before;
    assert!(came > 3_000, "{came} bytes came");
}

/// Every datagram comes again and again, from its own address and from another.
#[test]
fn replayed_datagrams_change_nothing() {
    let mut pair = Pair::connected(&setup(), DELAY);
    talk(&mut pair);
    let log: Vec<Flight> = pair.log().iter().map(|(_, flight)| flight.clone()).collect();
    let before = pair.server().work();
    for flight in &log {
        for remote in [None, Some(elsewhere())] {
            let mut flight = flight.clone();
            if let Some(local) = remote {
                flight.route = Route { local, ..flight.route };
            }
            pair.inject(&flight);
        }
    }
    let work = pair.server().work().since(before);
    assert!(work.bytes_out <= 3 * work.bytes_in, "{work:?}");
    assert_alive(&mut pair);
}

/// Datagrams with the right connection ID and nothing else right.
#[test]
fn forged_datagrams_are_dropped_without_an_answer() {
    let mut pair = Pair::connected(&setup(), DELAY);
    let before = pair.server().work();
    let log: Vec<Flight> = pair.log().iter().map(|(_, flight)| flight.clone()).collect();
    for flight in log.iter().filter(|flight| flight.from.is_client()) {
        for round in 0..200usize {
            let mut forged = flight.clone();
            let at = 9 + round % forged.bytes.len().saturating_sub(9).max(1);
            if let Some(byte) = forged.bytes.get_mut(at) {
                *byte ^= 1 + round as u8 % 255;
            }
            pair.inject(&forged);
        }
    }
    let work = pair.server().work().since(before);
    println!("{work:?}");
    assert!(work.held < 16_000, "{work:?}");
    assert_alive(&mut pair);
}

/// A copy of the first packet of a path is faster than the packet, and comes from another address.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3>
#[test]
fn a_copy_of_a_paths_first_packet_does_not_hijack_the_path() {
    let setup = setup();
    let mut pair = Pair::connected(&setup, DELAY);
    // The attacker copies what leaves the client's second address until it got a copy through.
    let copied = Rc::new(RefCell::new(0));
    let count = Rc::clone(&copied);
    pair.intercept(move |_, delay, flight| {
        let mut fate = vec![(delay, flight.clone())];
        if flight.route.local == client_address(1) && *count.borrow() < 1 {
            *count.borrow_mut() += 1;
            let route = Route { local: elsewhere(), ..flight.route };
            fate.push((delay.divided_by(2), Flight { route, ..flight }));
        }
        if fate[0].1.route.remote == elsewhere() {
            // The attacker does not pass on what it gets.
            fate.clear();
        }
        fate
    });
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(1), server_address());
        let connection = end.connection_mut().expect("it is connected");
        connection.open_path(now, route).expect("a second path");
    });
    pair.run(Duration::from_secs(10));
    assert_eq!(*copied.borrow(), 1);
    for role in [Role::Client, Role::Server] {
        let connection = pair.end(role).connection().expect("it is connected");
        let mut views = connection.path_views();
        let usable = views.any(|view| view.key.id == PathId(1) && view.state == PathState::Usable);
        assert!(usable, "the {role:?} has no second path");
    }
}

/// The same with every packet of an established path: copies from elsewhere come first for a while.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3>
#[test]
fn copies_from_elsewhere_do_not_move_an_established_path_for_good() {
    let mut pair = Pair::connected(&setup(), DELAY);
    let until = pair.now() + Duration::from_secs(1);
    pair.intercept(move |now, delay, flight| {
        if flight.route.remote == elsewhere() {
            return Vec::new();
        }
        let mut fate = vec![(delay, flight.clone())];
        if flight.from.is_client() && now < until {
            let route = Route { local: elsewhere(), ..flight.route };
            fate.push((delay.divided_by(2), Flight { route, ..flight }));
        }
        fate
    });
    for _ in 0..20 {
        talk(&mut pair);
    }
    assert_alive(&mut pair);
}

/// The attacker answers the client's first packet before the server does.
#[test]
fn forged_answers_to_the_first_packet_do_not_stop_the_handshake() {
    let setup = setup();
    let mut pair = Pair::new(&setup, DELAY);
    let mut forged = false;
    pair.intercept(move |_, delay, flight| {
        let mut fate = vec![(delay, flight.clone())];
        if flight.from.is_client() && !forged {
            forged = true;
            // Retry with a wrong tag, a Handshake packet and a short header of rubbish.
            for first in [0xf0u8, 0xe0, 0x40] {
                let mut bytes = vec![first, 0, 0, 0, 1];
                let scid = flight.bytes[15..23].to_vec();
                bytes.push(8);
                bytes.extend(&scid);
                bytes.push(8);
                bytes.extend([5; 8]);
                bytes.resize(200, 0x77);
                let route = Route::new(flight.route.remote, flight.route.local);
                let answer = Flight { from: Role::Server, route, ecn: 0, bytes };
                fate.push((delay.divided_by(2), answer));
            }
        }
        fate
    });
    pair.connect();
    assert_alive(&mut pair);
}

/// Half of all datagrams are cut short.
#[test]
fn truncated_datagrams_are_losses() {
    let mut pair = Pair::connected(&setup(), DELAY);
    let mut count = 0;
    pair.intercept(move |_, delay, mut flight| {
        count += 1;
        if count % 2 == 0 {
            flight.bytes.truncate(flight.bytes.len() / 2);
        }
        vec![(delay, flight)]
    });
    for _ in 0..20 {
        talk(&mut pair);
    }
    pair.intercept(|_, delay, flight| vec![(delay, flight)]);
    pair.run(Duration::from_secs(20));
    assert_alive(&mut pair);
}

/// Ends whose keys allow that few packets fail to open: an attacker spends the limit.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-6.6>
#[test]
fn packets_that_do_not_open_end_an_idle_connection_at_the_limit() {
    let setup = Setup { integrity_limit: Some(1_000), ..setup() };
    let mut pair = Pair::connected(&setup, DELAY);
    let log: Vec<Flight> = pair.log().iter().map(|(_, flight)| flight.clone()).collect();
    let mut forged =
        log.iter().rfind(|flight| flight.from.is_client()).expect("the client spoke").clone();
    for round in 0..1_100u32 {
        let at = forged.bytes.len() - 4;
        forged.bytes[at..].copy_from_slice(&round.to_be_bytes());
        pair.inject(&forged);
    }
    assert!(pair.server().close_reason().is_some());
}
