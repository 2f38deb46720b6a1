//! Key phases against a peer that breaks their rules.

use quipu_base::{Duration, Instant, Role, StreamDirection};
use quipu_quic::Connection;
use quipu_quic::connection::CloseReason;
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::Frame;
use quipu_testkit::forge::{Forge, Number, Pair, Setup, one_rtt};

use crate::{DELAY, each};

/// Three probe timeouts and more.
const LONG: Duration = Duration::from_secs(2);

#[track_caller]
fn assert_closed_with(forge: &Forge, code: ErrorCode) {
    match forge.closed() {
        Some(CloseReason::PeerFault(error)) => assert_eq!(error.code, code),
        other => panic!("{other:?}"),
    }
}

fn each_role(test: impl Fn(Role, &Setup)) {
    each(&Setup::default(), |setup| {
        for role in [Role::Client, Role::Server] {
            test(role, setup);
        }
    });
}

/// Sends something that is to be acknowledged.
fn say_something(connection: &mut Connection, now: Instant) {
    let stream = connection.open_stream(now, StreamDirection::Unidirectional);
    let stream = stream.expect("a stream is allowed");
    connection.write(now, stream, vec![1; 100].into()).expect("it is open");
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-6.4>
#[test]
fn old_keys_after_newer_ones_close() {
    each_role(|role, setup| {
        let mut forge = Forge::against(role, setup).acknowledging();
        forge.update_keys();
        forge.say([Frame::Ping]);
        assert_eq!(forge.connection().key_updates(), 1);
        forge.send(one_rtt().frame(Frame::Ping).phase(0));
        assert_closed_with(&forge, ErrorCode::KEY_UPDATE_ERROR);
    });
}

#[test]
fn old_keys_in_packets_that_were_overtaken_are_read() {
    each_role(|role, setup| {
        let mut forge = Forge::against(role, setup).acknowledging();
        let overtaken = forge.next_number(0);
        forge.send(one_rtt().frame(Frame::Ping).numbered(Number::Skip(1)));
        forge.update_keys();
        forge.say([Frame::Ping]);
        forge.heard();
        let dropped = forge.connection().dropped_packets();
        forge.send(one_rtt().frame(Frame::Ping).phase(0).numbered(Number::Exact(overtaken)));
        assert_eq!(forge.connection().dropped_packets(), dropped);
        assert_eq!(forge.closed(), None);
        // Later, nobody has the keys any more.
        forge.wait(LONG);
        forge.send(one_rtt().frame(Frame::Ping).phase(0).numbered(Number::Exact(overtaken)));
        assert_eq!(forge.connection().dropped_packets(), dropped + 1);
        assert_eq!(forge.closed(), None);
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-6.2>
#[test]
fn two_updates_without_an_acknowledgement_between_them_close() {
    each_role(|role, setup| {
        let mut forge = Forge::against(role, setup).acknowledging();
        forge.update_keys();
        // Not ack-eliciting, so that nothing is acknowledged.
        forge.send(one_rtt().ack(None, &[(0, 0)]));
        assert_eq!(forge.connection().key_updates(), 1);
        forge.update_keys();
        forge.send(one_rtt().ack(None, &[(0, 0)]));
        assert_closed_with(&forge, ErrorCode::KEY_UPDATE_ERROR);
    });
}

#[test]
fn updates_that_wait_for_acknowledgements_are_followed() {
    each_role(|role, setup| {
        let mut forge = Forge::against(role, setup).acknowledging();
        for update in 1..6 {
            forge.update_keys();
            forge.say([Frame::Ping]);
            forge.say([Frame::Ping]);
            assert_eq!(forge.connection().key_updates(), update);
            assert_eq!(forge.closed(), None);
        }
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-6.2>
#[test]
fn a_peer_that_acknowledges_the_new_phase_in_the_old_one_closes() {
    each_role(|role, setup| {
        let mut forge = Forge::against(role, setup);
        forge.wait(LONG);
        forge.act(say_something);
        forge.acknowledge(0);
        assert_eq!(forge.closed(), None);
        forge.act(|connection, now| {
            assert!(connection.update_keys());
            say_something(connection, now);
        });
        let named = forge.speaks_multipath().then_some(0);
        let numbers = forge.heard_numbers(0);
        forge.send(one_rtt().phase(0).ack(named, &numbers));
        assert_closed_with(&forge, ErrorCode::KEY_UPDATE_ERROR);
    });
}

#[test]
fn no_update_follows_while_keys_of_the_phase_before_are_kept() {
    each(&Setup::default(), |setup| {
        let mut pair = Pair::connected(setup, DELAY);
        let update = |pair: &mut Pair| {
            pair.act(Role::Client, |end, _| end.act(|connection| connection.update_keys()))
        };
        let ping = |pair: &mut Pair, role| {
            pair.act(role, |end, now| end.act(|connection| say_something(connection, now)));
        };
        ping(&mut pair, Role::Client);
        pair.run(Duration::from_millis(50));
        assert_eq!(update(&mut pair), Some(true));
        assert_eq!(update(&mut pair), Some(false), "nothing of the phase is acknowledged");
        ping(&mut pair, Role::Client);
        ping(&mut pair, Role::Server);
        pair.run(Duration::from_millis(50));
        assert_eq!(update(&mut pair), Some(false), "the keys before are kept");
        pair.run(LONG);
        assert_eq!(update(&mut pair), Some(true));
    });
}
