//! 0-RTT: what a client sends early arrives with its first flight, or later, but once and whole.

use quipu_base::{Bytes, Duration, Instant, Role};
use quipu_quic::TransportConfig;
use quipu_quic::connection::CloseReason;
use quipu_quic::error::ErrorCode;
use quipu_quic::tls::EarlyData;
use quipu_quic::wire::{Frame, PacketKind, Version};
use quipu_testkit::forge::{Fate, Flight, Forge, Forgery, Number, Pair, Setup, one_rtt};

use crate::DELAY;
use crate::visit::{Acquaintance, REQUEST, Visit, acquaintances, after, each, early, kinds};

/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.6>
#[test]
fn what_is_sent_early_is_answered_after_one_round_trip() {
    each(&early(), |setup, _| {
        Visit::first(setup);
        let mut visit = Visit::new(setup, 3);
        visit.run();
        visit.assert_accepted();
        let (client, server) = (visit.client.borrow(), visit.server.borrow());
        assert_eq!(client.outcomes[0].0, Instant::ZERO);
        assert_eq!(server.outcomes[0].0, after(DELAY));
        assert_eq!(server.first, Some((after(DELAY), true)));
        assert_eq!(client.outcomes[1].0, after(DELAY.saturating_mul(2)));
        assert_eq!(client.connected, Some(after(DELAY.saturating_mul(2))));
        assert_eq!(client.first, Some((after(DELAY.saturating_mul(2)), false)));
        let connection = visit.pair.server().connection().expect("it is open");
        assert!(!connection.is_early());
        assert_eq!(connection.early_data(), EarlyData::Accepted);
        assert!(connection.negotiated().is_some_and(|negotiated| negotiated.resumed));
    });
}

#[test]
fn nothing_is_sent_early_unless_both_ends_want_it() {
    let switched = |client, server| {
        let transport = |early_data| TransportConfig { early_data, ..TransportConfig::default() };
        Setup { client: transport(client), server: transport(server), ..Setup::default() }
    };
    for (client, server) in [(false, false), (true, false), (false, true)] {
        each(&switched(client, server), |setup, _| {
            for resumed in [false, true] {
                let mut visit = Visit::new(setup, 2);
                visit.run();
                assert_eq!(visit.outcomes(Role::Client), []);
                assert_eq!(visit.outcomes(Role::Server), []);
                assert!(!visit.kinds().contains(&PacketKind::ZeroRtt));
                let connection = visit.pair.client().connection().expect("it is open");
                assert_eq!(connection.negotiated().map(|agreed| agreed.resumed), Some(resumed));
            }
        });
    }
}

/// The client learns of the rejection after a round trip, and does not wait for losses.
#[track_caller]
fn assert_sent_again_at_once(visit: &Visit) {
    assert_eq!(visit.server.borrow().first, Some((after(DELAY.saturating_mul(3)), false)));
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2>
#[test]
fn what_a_server_rejects_is_sent_again_on_the_same_streams() {
    each(&early(), |setup, forgetful| {
        Visit::first(setup);
        let mut visit = Visit::new(&Setup { tls: forgetful.clone(), ..setup.clone() }, 5);
        visit.run();
        visit.assert_rejected();
        assert_sent_again_at_once(&visit);
    });
    // The server knows the client, but wants nothing early any more.
    each(&early(), |setup, _| {
        Visit::first(setup);
        let mut setup = setup.clone();
        setup.server.early_data = false;
        let mut visit = Visit::new(&setup, 5);
        visit.run();
        visit.assert_rejected();
        assert_sent_again_at_once(&visit);
    });
}

/// More than the windows of the server, of a connection and of a stream, and more than its streams.
#[test]
fn a_client_keeps_to_the_limits_of_before() {
    let mut small = early();
    small.server.connection_window = Bytes(7_000);
    small.server.stream_window = Bytes(1_500);
    small.server.max_streams = 4;
    each(&small, |setup, forgetful| {
        Visit::first(setup);
        let mut visit = Visit::new(setup, 20);
        visit.run();
        visit.assert_accepted();
        let mut visit = Visit::new(&Setup { tls: forgetful.clone(), ..setup.clone() }, 20);
        visit.run();
        visit.assert_rejected();
    });
}

#[test]
fn limits_that_grew_are_taken() {
    each(&early(), |setup, _| {
        let mut small = setup.clone();
        small.server.stream_window = Bytes(1_000);
        small.server.max_streams = 1;
        Visit::first(&small);
        let mut visit = Visit::new(setup, 4);
        visit.run();
        visit.assert_accepted();
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1>
#[test]
fn a_server_whose_limits_shrank_rejects() {
    each(&early(), |setup, _| {
        let mut smaller = setup.clone();
        smaller.server.connection_window = Bytes(20_000);
        smaller.server.stream_window = Bytes(REQUEST as u64);
        smaller.server.max_streams = 3;
        Visit::first(setup);
        let mut visit = Visit::new(&smaller, 3);
        visit.run();
        visit.assert_rejected();
        // Not everything that was sent is allowed: offsets and numbers are given away.
        for requests in [3, 4] {
            Visit::first(setup);
            if requests == 3 {
                smaller.server.stream_window = Bytes(REQUEST as u64 - 1);
            } else {
                smaller.server.stream_window = Bytes(REQUEST as u64);
            }
            let mut visit = Visit::new(&smaller, requests);
            visit.pair.run(Duration::from_secs(3));
            assert_eq!(visit.close_reason(Role::Client), Some(CloseReason::EarlyDataLimits));
            let reason = visit.close_reason(Role::Server);
            assert!(
                matches!(reason, Some(CloseReason::PeerTransport { code: 0, .. })),
                "{reason:?}"
            );
        }
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1>
#[test]
fn a_server_that_accepts_and_lowers_limits_is_at_fault() {
    each(&early(), |setup, _| {
        Visit::first(setup);
        let liar = setup.clone().declaring(Role::Server, |parameters| {
            parameters.initial_max_streams_uni -= 1;
        });
        let mut visit = Visit::new(&liar, 1);
        visit.pair.run(Duration::from_secs(3));
        match visit.close_reason(Role::Client) {
            Some(CloseReason::PeerFault(error)) => {
                assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
            }
            other => panic!("{other:?}"),
        }
    });
}

/// Takes `more` longer for datagrams of the client that `delays` names.
fn later(
    more: Duration,
    delays: impl Fn(&[PacketKind]) -> bool,
) -> impl FnMut(Instant, Duration, Flight) -> Fate {
    move |_, takes, flight| {
        let late = flight.from.is_client() && delays(&kinds(&flight.bytes));
        vec![(if late { takes + more } else { takes }, flight)]
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2>
#[test]
fn what_overtakes_the_first_packet_is_kept() {
    each(&early(), |setup, _| {
        Visit::first(setup);
        let mut visit = Visit::new(setup, 2);
        let more = Duration::from_millis(7);
        visit.intercept(later(more, |kinds| kinds.contains(&PacketKind::Initial)));
        visit.run();
        visit.assert_accepted();
        assert_eq!(visit.server.borrow().first, Some((after(DELAY + more), true)));
    });
}

/// What comes early is read while it may be a copy, and after the handshake too.
#[test]
fn what_comes_early_but_late_is_read() {
    each(&early(), |setup, _| {
        Visit::first(setup);
        let mut visit = Visit::new(setup, 2);
        let more = Duration::from_millis(35);
        visit.intercept(later(more, |kinds| kinds.contains(&PacketKind::ZeroRtt)));
        visit.run();
        assert_eq!(visit.outcomes(Role::Client), [EarlyData::Offered, EarlyData::Accepted]);
        let first = visit.server.borrow().first;
        // Not sent again: the packets were not lost.
        assert_eq!(first, Some((after(DELAY + more), false)));
    });
}

#[test]
fn early_data_survive_losses() {
    each(&early(), |setup, forgetful| {
        for lost in 0..12 {
            for tls in [&setup.tls, forgetful] {
                Visit::first(setup);
                let mut visit = Visit::new(&Setup { tls: tls.clone(), ..setup.clone() }, 3);
                let mut nth = 0;
                visit.intercept(move |_, takes, flight| {
                    nth += 1;
                    if nth == lost + 1 { Vec::new() } else { vec![(takes, flight)] }
                });
                visit.run();
                let offered = visit.outcomes(Role::Client)[0];
                assert_eq!(offered, EarlyData::Offered);
            }
        }
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3>
#[test]
fn early_data_go_again_after_a_retry() {
    let setup = Setup { retries: true, ..early() };
    each(&setup, |setup, forgetful| {
        Visit::first(setup);
        let mut visit = Visit::new(setup, 5);
        visit.run();
        visit.assert_accepted();
        let retry_trip = DELAY.saturating_mul(3);
        assert_eq!(visit.server.borrow().first, Some((after(retry_trip), true)));
        let mut visit = Visit::new(&Setup { tls: forgetful.clone(), ..setup.clone() }, 5);
        visit.run();
        visit.assert_rejected();
    });
}

#[test]
fn early_data_are_not_lost_when_the_version_changes() {
    let versions = |list: &[Version]| TransportConfig {
        versions: list.to_vec(),
        early_data: true,
        ..TransportConfig::default()
    };
    let (v1, v2) = (Version::V1, Version::V2);
    // The client begins anew in another version; or the server goes on in another.
    for (first, before, now) in
        [(v2, vec![v2, v1], vec![v1]), (v1, vec![v1], vec![v2]), (v1, vec![v1], vec![v2, v1])]
    {
        let client = TransportConfig { first_version: Some(first), ..versions(&[v2, v1]) };
        let setup = Setup { client, server: versions(&before), ..Setup::default() };
        each(&setup, |setup, _| {
            Visit::first(setup);
            let mut visit = Visit::new(&Setup { server: versions(&now), ..setup.clone() }, 3);
            visit.run();
            visit.assert_rejected();
            let connection = visit.pair.client().connection().expect("it is open");
            assert_eq!(connection.version(), now[0]);
            // What a ticket says of the version holds for the next time.
            let mut visit = Visit::new(&Setup { server: versions(&now), ..setup.clone() }, 1);
            visit.run();
        });
    }
}

#[test]
fn early_data_are_accepted_in_every_version() {
    for version in Version::KNOWN {
        let mut setup = early();
        setup.client.versions = vec![version];
        setup.server.versions = vec![Version::V1, Version::V2];
        each(&setup, |setup, _| {
            Visit::first(setup);
            let mut visit = Visit::new(setup, 3);
            visit.run();
            visit.assert_accepted();
        });
    }
}

/// Nobody can make a server act twice by sending again what was recorded.
/// <https://www.rfc-editor.org/rfc/rfc8446#section-8>
#[test]
fn a_recorded_first_flight_is_not_read_twice() {
    let [_, Acquaintance { tls, .. }] = acquaintances();
    let setup = Setup { tls, ..early() };
    Visit::first(&setup);
    let mut visit = Visit::new(&setup, 2);
    visit.run();
    visit.assert_accepted();
    let sent = visit.pair.log().iter();
    let recorded = sent.filter(|(at, flight)| flight.from.is_client() && *at == Instant::ZERO);
    let recorded: Vec<Flight> = recorded.map(|(_, flight)| flight.clone()).collect();
    assert!(recorded.len() > 2);
    let mut other = Visit::new(&setup, 0);
    other.intercept(|_, _, _| Vec::new());
    for flight in &recorded {
        other.pair.inject(flight);
    }
    let seen = other.server.borrow();
    assert!(seen.received.is_empty() && seen.outcomes.is_empty());
    let connection = other.pair.server().connection().expect("it began a handshake");
    assert_eq!(connection.early_data(), EarlyData::NotOffered);
}

/// 0-RTT packets that no Initial packet follows cost a bounded amount, and are not answered.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2>
#[test]
fn early_packets_of_strangers_are_bounded_and_unanswered() {
    each(&early(), |setup, _| {
        Visit::first(setup);
        let mut visit = Visit::new(setup, 2);
        visit.run();
        let sent = visit.pair.log().iter().map(|(_, flight)| flight);
        let mut early = sent.filter(|flight| kinds(&flight.bytes) == [PacketKind::ZeroRtt]);
        let recorded = early.next().cloned().expect("early data of two datagrams");
        for (early_data, kept) in [(true, 32), (false, 0)] {
            let mut setup = setup.clone();
            setup.server.early_data = early_data;
            let mut other = Visit::new(&setup, 0);
            other.intercept(|_, _, _| Vec::new());
            for _ in 0..1_000 {
                other.pair.inject(&recorded);
            }
            assert!(other.pair.log().iter().all(|(_, flight)| flight.from.is_client()));
            assert_eq!(other.pair.server().endpoint().held().early, kept);
            assert!(other.pair.server().connection().is_none());
        }
    });
}

/// A pair whose client sent something early, and that is quiet now.
fn connected(setup: &Setup) -> Pair {
    Visit::first(setup);
    let mut visit = Visit::new(setup, 1);
    visit.run();
    visit.pair
}

fn zero_rtt(forge: &Forge, ahead: u64) -> Forgery {
    let number = forge.next_number(0) + ahead;
    Forgery::new(PacketKind::ZeroRtt).numbered(Number::Exact(number))
}

#[track_caller]
fn assert_violation(forge: &Forge) {
    match forge.closed() {
        Some(CloseReason::PeerFault(error)) => {
            assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
        }
        other => panic!("{other:?}"),
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-8.3>
#[test]
fn frames_that_do_not_belong_into_early_packets_close() {
    each(&early(), |setup, _| {
        let forged: [fn(Forgery) -> Forgery; 4] = [
            |packet| packet.frame(Frame::Crypto { offset: quipu_base::Offset::ZERO, data: b"x" }),
            |packet| packet.ack(None, &[(0, 0)]),
            |packet| packet.frame(Frame::HandshakeDone),
            |packet| packet.frame(Frame::PathResponse { data: [1; 8] }),
        ];
        for add in forged {
            let mut visit = {
                Visit::first(setup);
                Visit::new(setup, 1)
            };
            // Before the handshake is over, and the keys are gone.
            visit.pair.run(DELAY.saturating_mul(2) + Duration::from_millis(1));
            let mut forge = Forge::instead_of(Role::Client, visit.pair, setup);
            let packet = add(zero_rtt(&forge, 50));
            forge.send(packet);
            assert_violation(&forge);
        }
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.9.3>
#[test]
fn keys_of_early_data_do_not_outlive_the_handshake_for_long() {
    each(&early(), |setup, _| {
        let mut forge = Forge::instead_of(Role::Client, connected(setup), setup);
        let dropped = forge.connection().dropped_packets();
        let packet = zero_rtt(&forge, 0).frame(Frame::Ping);
        forge.send(packet);
        assert_eq!(forge.connection().dropped_packets(), dropped + 1);
        assert_eq!(forge.closed(), None);
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-5.6>
#[test]
fn a_client_reads_no_early_packets() {
    each(&early(), |setup, _| {
        let mut forge = Forge::instead_of(Role::Server, connected(setup), setup);
        let dropped = forge.connection().dropped_packets();
        let packet = zero_rtt(&forge, 0).frame(Frame::Ping);
        forge.send(packet);
        assert_eq!(forge.connection().dropped_packets(), dropped + 1);
        assert_eq!(forge.closed(), None);
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2>
#[test]
fn a_server_that_acknowledges_what_it_rejected_is_at_fault() {
    each(&early().on_one_path(), |setup, forgetful| {
        Visit::first(setup);
        let setup = Setup { tls: forgetful.clone(), ..setup.clone() };
        let mut visit = Visit::new(&setup, 1);
        visit.run();
        visit.assert_rejected();
        let mut forge = Forge::instead_of(Role::Server, visit.pair, &setup);
        forge.send(one_rtt().ack(None, &[(0, 0)]));
        assert_violation(&forge);
    });
}
