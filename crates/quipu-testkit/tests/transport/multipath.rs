//! Paths as RFC 10069 has them: identifiers, connection IDs, status, and giving up.

use quipu_base::{Bytes, Duration, PathId, Role, StreamDirection};
use quipu_policy::{PathState, PathStatus};
use quipu_quic::connection::{CloseReason, OpenPathError};
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::Frame;
use quipu_quic::{ConnectionEvent, Route, TransportConfig};
use quipu_testkit::forge::{Forge, Pair, Setup, one_rtt};
use quipu_testkit::{client_address, server_address};

const DELAY: Duration = Duration::from_millis(10);
const ABANDON: ErrorCode = ErrorCode::APPLICATION_ABANDON_PATH;

/// A route of the client from its address of that number.
fn from(nth: u8) -> Route {
    Route::new(client_address(nth), server_address())
}

fn open(pair: &mut Pair, nth: u8, status: PathStatus) -> Result<PathId, OpenPathError> {
    pair.act(Role::Client, |end, now| {
        end.connection_mut().unwrap().open_path_as(now, from(nth), status)
    })
}

/// The end of `role` sends so many bytes on a new stream.
fn send(pair: &mut Pair, role: Role, bytes: usize) {
    pair.act(role, |end, now| {
        let connection = end.connection_mut().unwrap();
        let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
        connection.write(now, stream, vec![7; bytes].into()).unwrap();
        connection.finish(now, stream).unwrap();
    });
}

/// Bytes that the server sent to each of the client's addresses since datagram `since`.
fn downloaded(pair: &Pair, since: usize) -> [usize; 3] {
    let mut bytes = [0; 3];
    for (_, flight) in &pair.log()[since..] {
        if let Some(at) = (0..3).find(|&nth| flight.route.remote == client_address(nth)) {
            bytes[usize::from(at)] += flight.bytes.len();
        }
    }
    bytes
}

/// The paths that an end has, with the status of each.
fn paths(pair: &mut Pair, role: Role) -> Vec<(u32, PathState, PathStatus)> {
    let connection = pair.end(role).connection().unwrap();
    connection.path_views().map(|view| (view.key.id.0, view.state, view.status)).collect()
}

fn at_server(setup: &Setup) -> Forge {
    Forge::against(Role::Server, setup).acknowledging()
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-2.2>
#[test]
fn a_client_obeys_a_server_that_forbids_other_addresses_beside_multipath() {
    let forbidding =
        Setup::default().declaring(Role::Server, |own| own.disable_active_migration = true);
    let mut pair = Pair::connected(&forbidding, DELAY);
    assert_eq!(open(&mut pair, 1, PathStatus::Available), Err(OpenPathError::Forbidden));
    pair.act(Role::Client, |end, now| {
        let connection = end.connection_mut().unwrap();
        assert!(connection.migrate(now, PathId::ZERO, from(1)).is_err());
        // Another address of the server is not forbidden.
        let elsewhere = Route::new(client_address(1), ([10, 2, 0, 9], 443).into());
        assert_eq!(connection.open_path(now, elsewhere), Ok(PathId(1)));
    });
    // Our own server never asks for that.
    let mut setup = Setup::default();
    setup.server.disable_active_migration = true;
    assert!(setup.server.validate().is_err());
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.2>
#[test]
fn every_path_has_a_spare_connection_id_and_gets_another_for_each_that_is_retired() {
    let mut forge = at_server(&Setup::default());
    let told = |forge: &Forge, path: u32| -> Vec<u64> {
        let issued = forge.issued().iter().filter(|issued| issued.path == PathId(path));
        issued.map(|issued| issued.sequence).collect()
    };
    // The first of path 0 is that of the handshake.
    assert_eq!(told(&forge, 0).last(), Some(&1));
    for path in 1..8 {
        assert_eq!(told(&forge, path), [0, 1], "path {path}");
    }
    for path in [0, 3] {
        for sequence in 1..20 {
            forge.say([Frame::RetireConnectionId { path: Some(PathId(path)), sequence }]);
            forge.wait(Duration::from_millis(50));
        }
        assert_eq!(told(&forge, path).last(), Some(&20), "path {path}");
    }
    assert_eq!(forge.closed(), None);
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.7>
#[test]
fn a_client_without_identifiers_or_connection_ids_says_so() {
    let mut setup = Setup::default();
    setup.client.max_paths = 8;
    setup.server.max_paths = 3;
    let mut forge = Forge::against(Role::Client, &setup).acknowledging().answering();
    let open = |forge: &mut Forge, nth: u8| forge.act(|own, now| own.open_path(now, from(nth)));
    assert_eq!(open(&mut forge, 1), Ok(PathId(1)));
    assert_eq!(open(&mut forge, 2), Ok(PathId(2)));
    forge.heard();
    assert_eq!(open(&mut forge, 3), Err(OpenPathError::Limit(PathId(3))));
    let blocked = |frame: &Frame<'_>| match frame {
        Frame::PathsBlocked { maximum } => Some(*maximum),
        _ => None,
    };
    assert_eq!(forge.heard_of(blocked), [PathId(2)]);
    // There is another identifier, but no connection ID for it.
    forge.say([Frame::MaxPathId { maximum: PathId(3) }]);
    forge.heard();
    assert_eq!(open(&mut forge, 3), Err(OpenPathError::NoConnectionId(PathId(3))));
    let blocked = |frame: &Frame<'_>| match frame {
        Frame::PathCidsBlocked { path, next_sequence } => Some((*path, *next_sequence)),
        _ => None,
    };
    assert_eq!(forge.heard_of(blocked), [(PathId(3), 0)]);
    forge.issue(3, 0);
    assert_eq!(open(&mut forge, 3), Ok(PathId(3)));
}

/// What the parameter of the handshake allowed cannot be taken back; a frame that allows no more than
/// another before it may just be late.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.6>
#[test]
fn a_maximum_path_id_below_its_initial_value_closes() {
    let mut setup = Setup::default();
    setup.client.max_paths = 4;
    setup.server.max_paths = 4;
    for role in [Role::Client, Role::Server] {
        let mut forge = Forge::against(role, &setup).acknowledging();
        for maximum in [3, 6, 5, 3] {
            forge.say([Frame::MaxPathId { maximum: PathId(maximum) }]);
            assert_eq!(forge.closed(), None, "{role:?} after {maximum}");
        }
        forge.say([Frame::MaxPathId { maximum: PathId(2) }]);
        let Some(CloseReason::PeerFault(error)) = forge.closed() else {
            unreachable!("{role:?}: {:?}", forge.closed())
        };
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION, "{role:?}");
    }
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.3>
/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.6>
#[test]
fn path_identifiers_beyond_the_limit_or_32_bits_close() {
    let setup = Setup::default();
    let beyond = PathId(setup.client.max_paths);
    // MAX_PATH_ID of 2^32, which is no frame that could be written.
    let maximum = [0x7e, 0x7a, 0xc0, 0, 0, 1, 0, 0, 0, 0];
    for role in [Role::Client, Role::Server] {
        for packet in [
            one_rtt().frame(Frame::PathStatusBackup { path: beyond, sequence: 0 }),
            one_rtt().frame(Frame::PathStatusAvailable { path: beyond, sequence: 0 }),
            one_rtt().bytes(&maximum),
        ] {
            let mut forge = Forge::against(role, &setup).acknowledging();
            let allowed = PathId(beyond.0 - 1);
            forge.say([Frame::PathStatusBackup { path: allowed, sequence: 0 }]);
            assert_eq!(forge.closed(), None, "{role:?}");
            forge.send(packet);
            let Some(CloseReason::PeerFault(error)) = forge.closed() else {
                unreachable!("{role:?}: {:?}", forge.closed())
            };
            assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION, "{role:?}: {error}");
        }
    }
}

/// A peer can lack the next connection ID or one that it has not seen yet, of a path that it may use.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.7>
#[test]
fn a_peer_blocked_at_a_connection_id_beyond_the_next_closes() {
    let setup = Setup::default();
    let each = u64::from(setup.client.connection_ids_per_path);
    for role in [Role::Client, Role::Server] {
        for (path, next_sequence, closes) in [
            (0, each, false),
            (0, each + 1, true),
            (3, 0, false),
            (3, each, false),
            (3, each + 1, true),
            (3, u64::MAX >> 2, true),
            (8, 0, true),
        ] {
            let mut forge = Forge::against(role, &setup).acknowledging();
            let path = PathId(path);
            forge.say([Frame::PathCidsBlocked { path, next_sequence }]);
            let code = match forge.closed() {
                Some(CloseReason::PeerFault(error)) => Some(error.code),
                _ => None,
            };
            let expected = closes.then_some(ErrorCode::PROTOCOL_VIOLATION);
            assert_eq!(code, expected, "{role:?}, {path:?} at {next_sequence}");
        }
    }
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1>
#[test]
fn when_all_identifiers_are_used_up_others_come_as_paths_are_abandoned() {
    let mut setup = Setup::default();
    setup.server.max_paths = 2;
    let mut pair = Pair::connected(&setup, DELAY);
    for nth in 1..=50 {
        let address = 1 + (nth % 2) as u8;
        assert_eq!(open(&mut pair, address, PathStatus::Available), Ok(PathId(nth)));
        let beyond = open(&mut pair, 3, PathStatus::Available);
        assert_eq!(beyond, Err(OpenPathError::Limit(PathId(nth + 1))));
        pair.run(Duration::from_secs(1));
        assert_eq!(paths(&mut pair, Role::Server).len(), 2);
        pair.act(Role::Client, |end, now| {
            assert!(end.connection_mut().unwrap().abandon_path(now, PathId(nth), ABANDON));
        });
        pair.run(Duration::from_secs(10));
    }
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.3>
#[test]
fn a_backup_path_is_spared_by_both_ends_from_its_first_packet_on() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    open(&mut pair, 1, PathStatus::Backup).unwrap();
    pair.run(Duration::from_secs(1));
    let expected =
        [(0, PathState::Usable, PathStatus::Available), (1, PathState::Usable, PathStatus::Backup)];
    for role in [Role::Client, Role::Server] {
        assert_eq!(paths(&mut pair, role), expected);
    }
    let since = pair.log().len();
    send(&mut pair, Role::Server, 500_000);
    pair.run(Duration::from_secs(5));
    let [first, backup, _] = downloaded(&pair, since);
    assert!(first > 500_000 && backup < 5_000, "{first} and {backup}");
    // Either end may ask for it back, but each only for itself.
    let set = |pair: &mut Pair, role, path, status| {
        pair.act(role, |end, now| {
            assert!(end.connection_mut().unwrap().set_path_status(now, PathId(path), status));
        });
    };
    set(&mut pair, Role::Server, 1, PathStatus::Available);
    pair.run(Duration::from_secs(1));
    assert_eq!(paths(&mut pair, Role::Server)[1].2, PathStatus::Backup);
    set(&mut pair, Role::Client, 1, PathStatus::Available);
    pair.run(Duration::from_secs(1));
    assert_eq!(paths(&mut pair, Role::Server)[1].2, PathStatus::Available);
    let since = pair.log().len();
    send(&mut pair, Role::Server, 500_000);
    pair.run(Duration::from_secs(5));
    let [first, second, _] = downloaded(&pair, since);
    assert!(second > 10_000, "{first} and {second}: what the window of the first does not hold");
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.3>
#[test]
fn a_backup_path_carries_all_once_no_other_does() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    open(&mut pair, 1, PathStatus::Backup).unwrap();
    pair.run(Duration::from_secs(1));
    pair.intercept(|_, delay, flight| {
        let dead = [flight.route.local, flight.route.remote].contains(&client_address(0));
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    let since = pair.log().len();
    send(&mut pair, Role::Server, 500_000);
    pair.run(Duration::from_secs(20));
    let [_, backup, _] = downloaded(&pair, since);
    assert!(backup > 500_000, "{backup}");
    // What the dead path had in flight was sent again.
    let mut views = pair.server().connection().unwrap().path_views();
    assert!(views.any(|view| view.key.id == PathId(1) && view.in_flight.is_zero()));
}

/// The path of the handshake is silent in one direction: the client cannot know it by itself.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.3>
#[test]
fn the_peer_is_asked_to_spare_a_path_whose_place_a_backup_took_until_it_answers() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    open(&mut pair, 1, PathStatus::Backup).unwrap();
    pair.run(Duration::from_secs(1));
    let told = std::rc::Rc::<std::cell::RefCell<Vec<_>>>::default();
    let list = std::rc::Rc::clone(&told);
    pair.client().serve(Box::new(move |_, _, event| {
        if let ConnectionEvent::PathStatus(path, status) = event {
            list.borrow_mut().push((*path, *status));
        }
    }));
    pair.intercept(|_, delay, flight| {
        let dead = flight.route.remote == client_address(0);
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    send(&mut pair, Role::Server, 100_000);
    pair.run(Duration::from_secs(5));
    assert_eq!(*told.borrow(), [(PathId::ZERO, PathStatus::Backup)]);
    // The server itself goes by what the application said, should the path answer.
    assert_eq!(paths(&mut pair, Role::Server)[0].2, PathStatus::Available);
    pair.intercept(|_, delay, flight| vec![(delay, flight)]);
    pair.run(Duration::from_secs(10));
    let expected = [(PathId::ZERO, PathStatus::Backup), (PathId::ZERO, PathStatus::Available)];
    assert_eq!(*told.borrow(), expected);
    for role in [Role::Client, Role::Server] {
        assert_eq!(paths(&mut pair, role)[0].1, PathState::Usable);
        assert_eq!(paths(&mut pair, role)[0].2, PathStatus::Available);
    }
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.3>
#[test]
fn a_status_told_before_a_path_opens_holds_when_it_does() {
    let mut forge = at_server(&Setup::default()).answering();
    forge.say([Frame::PathStatusBackup { path: PathId(2), sequence: 4 }]);
    forge.say([Frame::PathStatusAvailable { path: PathId(2), sequence: 3 }]);
    forge.send(one_rtt().on(2).frame(Frame::Ping).padded(1_150).sent_from(client_address(2)));
    forge.wait(Duration::from_secs(1));
    let views = forge.connection().path_views();
    let status: Vec<_> = views.map(|view| (view.key.id.0, view.status)).collect();
    assert_eq!(status, [(0, PathStatus::Available), (2, PathStatus::Backup)]);
    assert_eq!(forge.closed(), None);
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.4>
#[test]
fn both_ends_may_give_a_path_up_at_once() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    open(&mut pair, 1, PathStatus::Available).unwrap();
    pair.run(Duration::from_secs(1));
    send(&mut pair, Role::Server, 300_000);
    send(&mut pair, Role::Client, 300_000);
    let now = pair.now();
    for role in [Role::Client, Role::Server] {
        let connection = pair.end(role).connection_mut().unwrap();
        assert!(connection.abandon_path(now, PathId(1), ABANDON));
        assert!(!connection.abandon_path(now, PathId(1), ABANDON), "once is enough");
        assert!(!connection.set_path_status(now, PathId(1), PathStatus::Backup));
    }
    pair.run(Duration::from_secs(5));
    for role in [Role::Client, Role::Server] {
        assert_eq!(paths(&mut pair, role).len(), 1);
        let now = pair.now();
        let connection = pair.end(role).connection().unwrap();
        assert_eq!(connection.view(now).conn.in_flight, Bytes::ZERO, "all arrived");
        assert_eq!(pair.end(role).close_reason(), None);
    }
    assert_eq!(open(&mut pair, 1, PathStatus::Available), Ok(PathId(2)));
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.4>
#[test]
fn a_path_that_was_never_opened_can_be_abandoned_and_is_answered_once() {
    let mut forge = at_server(&Setup::default()).answering();
    forge.heard();
    for _ in 0..3 {
        forge.say([Frame::PathAbandon { path: PathId(3), error_code: 0 }]);
    }
    let answers = forge.heard_of(|frame| match frame {
        Frame::PathAbandon { path, .. } => Some(*path),
        _ => None,
    });
    assert_eq!(answers, [PathId(3)]);
    // What comes there afterwards opens nothing.
    forge.send(one_rtt().on(3).frame(Frame::Ping).padded(1_150).sent_from(client_address(3)));
    forge.wait(Duration::from_secs(1));
    assert_eq!(forge.connection().path_views().count(), 1);
    assert_eq!(forge.closed(), None);
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.4.3>
#[test]
fn late_packets_of_an_abandoned_path_are_acknowledged_on_another_for_a_while() {
    let mut forge = at_server(&Setup::default()).answering();
    let ping = || one_rtt().on(1).frame(Frame::Ping).padded(1_150).sent_from(client_address(1));
    forge.send(ping());
    forge.wait(Duration::from_secs(1));
    forge.say([Frame::PathAbandon { path: PathId(1), error_code: 0 }]);
    forge.sent();
    forge.heard();
    let late = forge.next_number(1);
    forge.send(ping());
    forge.wait(Duration::from_millis(50));
    let acked = forge.heard_of(|frame| match frame {
        Frame::Ack(ack) if ack.path == Some(PathId(1)) => Some(ack.largest().0),
        _ => None,
    });
    assert_eq!(acked.last(), Some(&late));
    let there = client_address(1);
    assert!(forge.sent().iter().all(|sent| sent.route.remote != there), "nothing goes there");
    // After three probe timeouts nothing is known of it any more.
    forge.wait(Duration::from_secs(10));
    forge.heard();
    forge.send(ping());
    forge.wait(Duration::from_secs(1));
    let acked = forge.heard_of(|frame| {
        matches!(frame, Frame::Ack(a) if a.path == Some(PathId(1))).then_some(())
    });
    assert!(acked.is_empty());
    assert_eq!(forge.closed(), None);
}

/// What a silent path carried, control frames too, goes elsewhere when its probe timeout fires.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-5.7>
#[test]
fn frames_of_a_silent_path_move_to_another_at_its_probe_timeout() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    open(&mut pair, 1, PathStatus::Available).unwrap();
    pair.run(Duration::from_secs(1));
    send(&mut pair, Role::Server, 200_000);
    pair.run(Duration::from_secs(1));
    pair.intercept(|_, delay, flight| {
        let dead = [flight.route.local, flight.route.remote].contains(&client_address(0));
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    let told = std::rc::Rc::new(std::cell::Cell::new(None));
    let seen = std::rc::Rc::clone(&told);
    pair.client().serve(Box::new(move |connection, now, event| {
        if let ConnectionEvent::Readable(stream) = event {
            let _ = connection.read(now, *stream, &mut |_| {});
            seen.set(Some(now));
        }
    }));
    let start = pair.now();
    send(&mut pair, Role::Server, 100_000);
    let done = |pair: &mut Pair| {
        let now = pair.now();
        let view = pair.server().connection().unwrap().view(now);
        view.paths.iter().any(|path| path.key.id == PathId(1) && path.in_flight.is_zero())
            && told.get().is_some_and(|at| now > at + Duration::from_millis(100))
    };
    pair.run(Duration::from_millis(20));
    assert!(pair.run_until(Duration::from_secs(5), done));
    // Round trip, four times its variation and the delay of acknowledgements, and as much again.
    let took = told.get().unwrap() - start;
    println!("all there after {took}");
    assert!(took < Duration::from_millis(400), "{took}");
}

/// What an end knows of a network outlives the path: a challenge that is lost on a path that is back is
/// repeated after a probe timeout of that network, not after the first of a connection, which takes a second.
#[test]
fn a_lost_challenge_of_a_path_that_is_back_is_soon_repeated() {
    let mut pair = Pair::connected(&Setup::default(), DELAY);
    open(&mut pair, 1, PathStatus::Available).unwrap();
    pair.run(Duration::from_secs(1));
    let now = pair.now();
    let connection = pair.client().connection_mut().unwrap();
    assert!(connection.abandon_path(now, PathId(1), ABANDON));
    pair.run(Duration::from_secs(1));
    let mut left = 1;
    pair.intercept(move |_, delay, flight| {
        let is_first = flight.route.local == client_address(1) && left > 0;
        left -= usize::from(is_first);
        if is_first { Vec::new() } else { vec![(delay, flight)] }
    });
    let start = pair.now();
    let back = open(&mut pair, 1, PathStatus::Available).unwrap();
    let is_up = |pair: &mut Pair| {
        let mut views = pair.client().connection().unwrap().path_views();
        views.any(|view| view.key.id == back && view.state == PathState::Usable)
    };
    assert!(pair.run_until(Duration::from_secs(5), is_up));
    // Thrice the round trip, before it is measured, until the challenge is repeated; and its own.
    let took = pair.now() - start;
    assert!(took <= DELAY.saturating_mul(2 * 4 + 1), "{took}");
}

/// <https://www.rfc-editor.org/rfc/rfc10069#section-2.1>
#[test]
fn multipath_is_not_offered_with_one_path() {
    let config = TransportConfig { max_paths: 1, ..TransportConfig::default() };
    let setup = Setup { client: config, ..Setup::default() };
    let mut pair = Pair::connected(&setup, DELAY);
    assert_eq!(open(&mut pair, 1, PathStatus::Available), Err(OpenPathError::NoMultipath));
    let mut forge = at_server(&setup);
    forge.say([Frame::MaxPathId { maximum: PathId(9) }]);
    assert!(forge.closed().is_some(), "frames of an extension that was not agreed on");
}
