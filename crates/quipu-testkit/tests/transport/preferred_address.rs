//! Servers that would rather be reached at another address than that of the handshake.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-9.6>

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use quipu_base::{Bytes, Duration, PathId, Role, StreamDirection};
use quipu_quic::connection::{MigrateError, OpenPathError};
use quipu_quic::wire::Frame;
use quipu_quic::{ConnectionEvent, PreferredAddresses, Route};
use quipu_testkit::forge::{Flight, Forge, Pair, Setup, datagram, one_rtt};
use quipu_testkit::{client_address, server_address};

const DELAY: Duration = Duration::from_millis(10);

fn preferred() -> SocketAddr {
    ([10, 2, 0, 99], 8_443).into()
}

fn over_ipv6(host: u16, port: u16) -> SocketAddr {
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, host], port).into()
}

/// A server that prefers these addresses.
fn preferring(addresses: &[SocketAddr]) -> Setup {
    let mut setup = Setup::default();
    for address in addresses {
        match address {
            SocketAddr::V4(address) => setup.server.preferred_address.ipv4 = Some(*address),
            SocketAddr::V6(address) => setup.server.preferred_address.ipv6 = Some(*address),
        }
    }
    setup
}

fn say_something(pair: &mut Pair) {
    pair.act(Role::Client, |end, now| {
        let connection = end.connection_mut().unwrap();
        let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
        connection.write(now, stream, vec![7; 10_000].into()).unwrap();
        connection.finish(now, stream).unwrap();
    });
}

fn route_of(pair: &mut Pair, role: Role) -> Route {
    pair.end(role).connection().unwrap().route(PathId::ZERO).unwrap()
}

fn in_flight(pair: &mut Pair) -> Bytes {
    let now = pair.now();
    pair.client().connection().unwrap().view(now).conn.in_flight
}

fn events(pair: &mut Pair) -> Rc<RefCell<Vec<ConnectionEvent>>> {
    let events = Rc::<RefCell<Vec<ConnectionEvent>>>::default();
    let list = Rc::clone(&events);
    pair.client().serve(Box::new(move |_, _, event| list.borrow_mut().push(event.clone())));
    events
}

#[test]
fn a_client_moves_to_the_address_that_the_server_prefers() {
    for setup in [preferring(&[preferred()]), preferring(&[preferred()]).on_one_path()] {
        let mut pair = Pair::connected(&setup, DELAY);
        assert_eq!(route_of(&mut pair, Role::Client).remote, preferred());
        assert_eq!(route_of(&mut pair, Role::Server).local, preferred());
        say_something(&mut pair);
        let before = pair.log().len();
        pair.run(Duration::from_secs(1));
        assert_eq!(in_flight(&mut pair), Bytes::ZERO);
        let there =
            |flight: &Flight| [flight.route.local, flight.route.remote].contains(&preferred());
        assert!(pair.log()[before..].iter().all(|(_, flight)| there(flight)));
        // The first that went there was a challenge of full size, to a connection ID of its own.
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.5.3
        let first = pair.log().iter().find(|(_, flight)| there(flight)).unwrap();
        assert!(first.1.from.is_client());
        assert_eq!(first.1.bytes.len(), 1_200);
        let dcid = |flight: &Flight| flight.bytes[1..9].to_vec();
        let short = |flight: &Flight| flight.from.is_client() && flight.bytes[0] & 0x80 == 0;
        let used = |at_preferred: bool| {
            let flights = pair.log().iter().map(|(_, flight)| flight);
            let mut ids: Vec<_> =
                flights.filter(|f| short(f) && there(f) == at_preferred).map(dcid).collect();
            ids.dedup();
            ids
        };
        assert_eq!(used(true).len(), 1);
        assert!(!used(false).contains(&used(true)[0]));
        assert_eq!(pair.client().close_reason(), None);
        assert_eq!(pair.server().close_reason(), None);
    }
}

#[test]
fn a_client_stays_where_the_handshake_was_if_the_preferred_address_does_not_work() {
    let mut pair = Pair::new(&preferring(&[preferred()]), DELAY);
    pair.intercept(|_, delay, flight| {
        let dead = [flight.route.local, flight.route.remote].contains(&preferred());
        if dead { Vec::new() } else { vec![(delay, flight)] }
    });
    let told = events(&mut pair);
    pair.connect();
    for _ in 0..5 {
        say_something(&mut pair);
        pair.run(Duration::from_secs(2));
        assert_eq!(in_flight(&mut pair), Bytes::ZERO);
    }
    assert_eq!(route_of(&mut pair, Role::Client).remote, server_address());
    assert!(told.borrow().contains(&ConnectionEvent::MigrationFailed(PathId::ZERO)));
    let moves = |event: &&ConnectionEvent| matches!(event, ConnectionEvent::PathMigrated(_));
    assert_eq!(told.borrow().iter().filter(moves).count(), 0);
}

#[test]
fn a_client_that_does_not_want_to_stays_and_may_move_later() {
    let mut setup = preferring(&[preferred()]);
    setup.client.follows_preferred_address = false;
    let mut pair = Pair::connected(&setup, DELAY);
    say_something(&mut pair);
    pair.run(Duration::from_secs(1));
    assert_eq!(route_of(&mut pair, Role::Client).remote, server_address());
    let known = *pair.client().connection().unwrap().preferred_addresses();
    assert_eq!(known, setup.server.preferred_address);
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(0), preferred());
        end.connection_mut().unwrap().migrate(now, PathId::ZERO, route).unwrap();
    });
    pair.run(Duration::from_secs(1));
    assert_eq!(route_of(&mut pair, Role::Server).local, preferred());
}

/// Only the application knows whether it has an address of the other family.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.6.3>
#[test]
fn an_address_of_the_other_family_is_for_the_application_to_choose() {
    let (here, there) = (over_ipv6(1, 5_000), over_ipv6(2, 443));
    let mut pair = Pair::connected(&preferring(&[there]), DELAY);
    assert_eq!(route_of(&mut pair, Role::Client).remote, server_address());
    let mut migrate = |remote| {
        pair.act(Role::Client, |end, now| {
            let route = Route::new(here, remote);
            end.connection_mut().unwrap().migrate(now, PathId::ZERO, route)
        })
    };
    assert_eq!(migrate(over_ipv6(3, 443)), Err(MigrateError::UnknownServer));
    assert_eq!(migrate(there), Ok(()));
    pair.run(Duration::from_secs(1));
    assert_eq!(route_of(&mut pair, Role::Server), Route::new(there, here));
}

/// The client's own address changes while it tries the preferred one: it tries again.
#[test]
fn a_client_that_is_interrupted_tries_again() {
    let mut pair = Pair::new(&preferring(&[preferred()]), DELAY);
    while !pair.client().is_confirmed() {
        pair.run(Duration::from_millis(1));
    }
    pair.act(Role::Client, |end, now| {
        let route = Route::new(client_address(1), server_address());
        end.connection_mut().unwrap().rebind(now, PathId::ZERO, route).unwrap();
    });
    pair.run(Duration::from_secs(1));
    assert_eq!(route_of(&mut pair, Role::Client), Route::new(client_address(1), preferred()));
    assert_eq!(route_of(&mut pair, Role::Server), Route::new(preferred(), client_address(1)));
}

fn forger() -> Forge {
    let mut setup = preferring(&[preferred()]);
    setup.client.follows_preferred_address = false;
    Forge::against(Role::Server, &setup)
}

/// The addresses from which the server sent since this was last asked.
fn origins(forge: &mut Forge) -> Vec<SocketAddr> {
    let mut origins: Vec<_> = forge.sent().iter().map(|sent| sent.route.local).collect();
    origins.sort_unstable();
    origins.dedup();
    origins
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2>
#[test]
fn a_server_goes_on_where_it_was_until_the_preferred_address_is_proved() {
    let mut forge = forger().acknowledging();
    forge.sent();
    // Nothing answers the server's challenge.
    forge.send(datagram([one_rtt().frame(Frame::Ping)]).sent_to(preferred()));
    let route = |forge: &Forge| forge.connection().route(PathId::ZERO).unwrap();
    assert_eq!(route(&forge).local, server_address());
    forge.act(|connection, now| {
        let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
        connection.write(now, stream, vec![7; 50_000].into()).unwrap();
    });
    forge.wait(Duration::from_millis(100));
    assert_eq!(origins(&mut forge), [server_address(), preferred()]);
    let probes = forge.heard_of(|frame| matches!(frame, Frame::PathChallenge { .. }).then_some(()));
    assert!(!probes.is_empty());
    forge.wait(Duration::from_secs(20));
    assert_eq!(route(&forge).local, server_address());

    // Now they are answered.
    let mut forge = forger().acknowledging().answering();
    forge.send(datagram([one_rtt().frame(Frame::Ping).padded(1_150)]).sent_to(preferred()));
    forge.wait(Duration::from_secs(1));
    assert_eq!(route(&forge).local, preferred());
    // What comes to the old address moves nothing any more.
    forge.sent();
    forge.send(one_rtt().frame(Frame::Ping));
    forge.send(one_rtt().frame(Frame::Ping).sent_from(client_address(5)));
    forge.wait(Duration::from_secs(1));
    assert_eq!(route(&forge), Route::new(preferred(), client_address(0)));
    assert_eq!(origins(&mut forge), [preferred()]);
    assert_eq!(forge.closed(), None);
}

/// The server forbids other addresses for the one of the handshake, but not for another.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-2.2>
#[test]
fn further_paths_lead_to_the_preferred_address_where_the_first_forbids_them() {
    let mut setup = preferring(&[preferred()]);
    setup.server.disable_active_migration = true;
    assert_eq!(setup.server.validate(), Ok(()));
    let mut pair = Pair::connected(&setup, DELAY);
    let mut open = |remote| {
        pair.act(Role::Client, |end, now| {
            let route = Route::new(client_address(1), remote);
            end.connection_mut().unwrap().open_path(now, route)
        })
    };
    assert_eq!(open(server_address()), Err(OpenPathError::Forbidden));
    assert_eq!(open(preferred()), Ok(PathId(1)));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.server().connection().unwrap().path_views().count(), 2);
    setup.server.preferred_address = PreferredAddresses::default();
    assert_eq!(setup.server.validate().unwrap_err().field, "disable_active_migration");
}
