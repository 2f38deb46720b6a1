//! Paths: challenges, paths opened and abandoned in great number, amplification over new paths.

use std::net::SocketAddr;

use quipu_base::{Duration, Offset, PathId, Role, StreamId};
use quipu_policy::PathState;
use quipu_quic::Route;
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::Frame;
use quipu_quic::wire::frame::Stream;
use quipu_testkit::forge::{Forge, Pair, one_rtt};
use quipu_testkit::{client_address, server_address};

use crate::{assert_bounded, setup, setup_for_long_writes};

fn victim_of(address: u8) -> SocketAddr {
    SocketAddr::from(([10, 7, 7, address], 4_433))
}

/// 38 bytes ask for a datagram of 1,200.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1>
#[test]
fn a_flood_of_challenges_is_answered_within_the_window() {
    let mut forge = Forge::against(Role::Server, &setup());
    let work = forge.cost(|forge| {
        for nth in 0..20_000u64 {
            forge.say([Frame::PathChallenge { data: nth.to_be_bytes() }]);
            forge.wait(Duration::from_micros(10));
        }
    });
    println!("{work:?}");
    // The first window is ten packets; a second of probes adds a few.
    assert!(work.bytes_out < 400_000, "{work:?}");
    assert!(work.held < 64_000, "{work:?}");
}

/// One packet holds a hundred challenges.
#[test]
fn many_challenges_in_a_packet_are_answered_with_few_datagrams() {
    let mut forge = Forge::against(Role::Server, &setup());
    let work = forge.cost(|forge| {
        let challenges = (0..100u64).map(|nth| Frame::PathChallenge { data: nth.to_be_bytes() });
        forge.say(challenges);
    });
    assert!(work.datagrams_out <= 5, "{work:?}");
}

/// The forger opens a path from an address that is another's, and never answers the challenge.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.3.2>
#[test]
fn a_path_from_a_spoofed_address_gets_three_times_what_came() {
    let mut forge = Forge::against(Role::Server, &setup_for_long_writes());
    let stream = StreamId(0);
    forge.say([Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: true, data: b"?" })]);
    forge.act(|connection, now| {
        connection.write(now, stream, vec![7; 10_000_000].into()).expect("it is open");
    });
    forge.sent();
    let there = victim_of(1);
    let work = forge.cost(|forge| {
        forge.send(one_rtt().on(1).frame(Frame::Ping).sent_from(there));
        for _ in 0..20 {
            // What goes over the first path is acknowledged, so that the server has every reason.
            forge.acknowledge(0);
            forge.wait(Duration::from_millis(50));
        }
    });
    let sent = forge.sent();
    let to_victim = sent.iter().filter(|sent| sent.route.remote == there);
    let bytes: usize = to_victim.map(|sent| sent.bytes.len()).sum();
    println!("{bytes} bytes to the address, {work:?}");
    assert_eq!(forge.closed(), None);
    assert!(bytes <= 3 * 60, "{bytes}");
}

/// A packet of path 0 comes from another address.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.3.1>
#[test]
fn a_move_to_a_spoofed_address_gets_three_times_what_came() {
    let mut forge = Forge::against(Role::Server, &setup_for_long_writes());
    let stream = StreamId(0);
    forge.say([Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: true, data: b"?" })]);
    forge.act(|connection, now| {
        connection.write(now, stream, vec![7; 10_000_000].into()).expect("it is open");
    });
    let there = victim_of(2);
    forge.sent();
    let mut came = 0;
    for _ in 0..100 {
        let largest = forge.largest_heard(0).unwrap_or_default();
        let datagram = one_rtt().ack(Some(0), &[(0, largest)]).sent_from(there);
        if let Some((arrival, mut bytes)) = forge.seal(&datagram) {
            came += bytes.len();
            forge.deliver(arrival, &mut bytes);
        }
        forge.wait(Duration::from_millis(20));
    }
    let sent = forge.sent();
    let to_victim = sent.iter().filter(|sent| sent.route.remote == there);
    let bytes: usize = to_victim.map(|sent| sent.bytes.len()).sum();
    println!("{bytes} bytes to the address for {came}");
    assert!(bytes <= 3 * came, "{bytes} for {came}");
}

/// A path is opened and never acknowledged, while another lives for hours: the silent one is probed all
/// the while, and none of its packets is ever lost.
#[test]
fn a_path_that_falls_silent_holds_little_however_long_it_is_probed() {
    let mut forge = Forge::against(Role::Server, &setup()).answering();
    forge.send(one_rtt().on(1).frame(Frame::Ping));
    forge.wait(Duration::from_millis(500));
    let work = forge.cost(|forge| {
        for _ in 0..3 * 3_600 {
            forge.say([Frame::Ping]);
            forge.acknowledge(0);
            forge.wait(Duration::from_secs(1));
        }
    });
    println!("{work:?}");
    assert_eq!(forge.closed(), None);
    let silent = forge.connection().path_views().find(|view| view.key.id == PathId(1));
    assert_eq!(silent.map(|view| view.state), Some(PathState::Suspect));
    assert!(work.datagrams_out > 2 * 3_600, "{work:?}");
    assert!(work.held < 64_000, "{work:?}");
}

/// Paths are opened and abandoned at once, as often as the limit of identifiers is raised.
#[test]
fn paths_opened_and_abandoned_for_ever_hold_nothing() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    let mut next = 1;
    let work = forge.cost(|forge| {
        for _ in 0..3_000 {
            if forge.issued().iter().any(|issued| issued.path == PathId(next)) {
                if !forge.own_issued().iter().any(|issued| issued.path == PathId(next)) {
                    forge.issue(next, 0);
                }
                forge.send(one_rtt().on(next).frame(Frame::Ping).sent_from(client_address(1)));
                let maximum = PathId(next + 8);
                let path = PathId(next);
                forge.say([
                    Frame::PathAbandon { path, error_code: 0 },
                    Frame::MaxPathId { maximum },
                ]);
                next += 1;
            }
            forge.wait(Duration::from_millis(100));
        }
        forge.wait(Duration::from_secs(10));
    });
    println!("{next} paths, {:?}", forge.closed());
    assert_eq!(forge.closed(), None);
    assert_eq!(forge.victim().stuck(), None);
    assert!(next > 300, "{next}");
    assert_bounded(work, 64_000, 128_000, 10.0);
}

/// A connection that lives for months opens and abandons paths all the time; here each end gives up
/// every third, and both at once the others.
#[test]
fn ten_thousand_paths_in_turn_leave_nothing_and_cost_the_same() {
    let mut pair = Pair::connected(&setup(), Duration::from_millis(5));
    pair.forget();
    let mut opened = 0;
    let mut run = |pair: &mut Pair, count: u32| {
        let before = [Role::Client, Role::Server].map(|role| pair.end(role).work());
        let until = opened + count;
        while opened < until {
            let id = pair.act(Role::Client, |end, now| {
                let address = client_address(1 + (opened % 7) as u8);
                let route = Route::new(address, server_address());
                end.act(|connection| connection.open_path(now, route)).expect("it lives")
            });
            pair.run(Duration::from_millis(50));
            let Ok(id) = id else { continue };
            opened = id.0;
            let who = [&[Role::Client][..], &[Role::Server], &[Role::Client, Role::Server]];
            for &role in who[opened as usize % 3] {
                // Both at once: what the first says is not there yet.
                let code = ErrorCode::APPLICATION_ABANDON_PATH;
                let given_up = pair.act(role, |end, now| {
                    end.act(|connection| connection.abandon_path(now, id, code))
                });
                assert_eq!(given_up, Some(true));
            }
            pair.run(Duration::from_millis(50));
        }
        pair.run(Duration::from_secs(10));
        let after = [Role::Client, Role::Server].map(|role| pair.end(role).work());
        [after[0].since(before[0]), after[1].since(before[1])]
    };
    run(&mut pair, 100);
    let first = run(&mut pair, 1_000);
    run(&mut pair, 8_000);
    let last = run(&mut pair, 1_000);
    for (first, last) in first.into_iter().zip(last) {
        println!("first thousand {first:?}\n last thousand {last:?}");
        assert!(last.held.abs() < 8_000, "{last:?}");
        assert!(last.allocations < first.allocations * 11 / 10, "{first:?} {last:?}");
    }
    for role in [Role::Client, Role::Server] {
        assert_eq!(pair.end(role).close_reason(), None);
        let connection = pair.end(role).connection().expect("it lives");
        assert_eq!(connection.path_views().count(), 1);
        assert_eq!(connection.path_counters().len(), 65, "the last 64 and the one that lives");
    }
    assert!(opened >= 10_100);
}

/// All path identifiers that may be used are abandoned, none of them opened.
#[test]
fn unopened_paths_abandoned_in_a_flood_hold_nothing() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    let work = forge.cost(|forge| {
        for _ in 0..300 {
            let frames =
                (1..8).map(|path| Frame::PathAbandon { path: PathId(path), error_code: 0 });
            forge.say(frames.clone().chain(frames.clone()).chain(frames));
            forge.wait(Duration::from_millis(100));
        }
    });
    println!("{:?}", forge.closed());
    assert_eq!(forge.victim().stuck(), None);
    assert_bounded(work, 64_000, 128_000, 2.0);
}

/// The same response again and again, and responses to nothing.
#[test]
fn responses_to_nothing_do_nothing() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    let work = forge.cost(|forge| {
        for nth in 0..2_000u64 {
            let responses =
                (0..100).map(|of| Frame::PathResponse { data: (nth * of).to_be_bytes() });
            forge.say(responses);
            forge.wait(Duration::from_millis(1));
        }
    });
    assert_eq!(forge.closed(), None);
    assert_bounded(work, 16_000, 32_000, 0.1);
}

/// A path that was abandoned stays abandoned, whatever is sent on it.
#[test]
fn packets_of_a_path_that_is_gone_are_dropped() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging().answering();
    let first = one_rtt().on(1).frame(Frame::Ping).padded(1_200);
    forge.send(first.sent_from(client_address(1)));
    forge.wait(Duration::from_secs(1));
    let usable = |forge: &Forge| {
        let mut views = forge.connection().path_views();
        views.any(|view| view.key.id == PathId(1) && view.state == PathState::Usable)
    };
    assert!(usable(&forge), "the path is validated");
    forge.say([Frame::PathAbandon { path: PathId(1), error_code: 0 }]);
    forge.wait(Duration::from_secs(10));
    let work = forge.cost(|forge| {
        for _ in 0..1_000 {
            forge.send(one_rtt().on(1).frame(Frame::Ping).sent_from(client_address(1)));
        }
        forge.wait(Duration::from_secs(1));
    });
    assert_eq!(forge.closed(), None);
    assert!(!usable(&forge));
    // Resets of what is unknown are smaller than what came.
    assert!(work.bytes_out <= work.bytes_in && work.held < 4_000, "{work:?}");
}
