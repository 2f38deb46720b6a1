//! Path MTU discovery. <https://www.rfc-editor.org/rfc/rfc9000#section-14.3>

use quipu_base::{Bytes, Instant, Role};
use quipu_link::{LinkConfig, Loss, Outage, QueueLimit};
use quipu_quic::connection::ConnectionEvent;
use quipu_quic::{Mtu, Route, TransportConfig};
use quipu_testkit::{ExchangeNode, Plan, client_address, server_address};

use crate::setup::{FIRST, Run, Setup, at, link, ms};

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;

/// A link that carries so many bytes of UDP payload.
fn carries(payload: u64) -> LinkConfig {
    link(20, 20).with_mtu(Bytes(payload + HEADERS))
}

fn download(link: LinkConfig, transport: TransportConfig) -> Run {
    Setup::new(Plan::download(5_000_000), vec![link], transport).start()
}

/// When the server told a size of full datagrams, and which.
fn sizes(run: &Run) -> Vec<(Instant, u16)> {
    let told = run.end(Role::Server).events().iter().filter_map(|(at, event)| match event {
        ConnectionEvent::DatagramSize(FIRST, size) => Some((*at, *size)),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_path_of_1232_bytes_works_from_the_first_byte() {
    // A window that fills no queue: what is lost is lost for its size.
    let window = Bytes(60_000);
    let transport = TransportConfig { connection_window: window, ..TransportConfig::default() };
    let mut run = download(carries(1_232), transport);
    run.until_done();
    assert_eq!(run.size(Role::Server), 1_232);
    // Nothing but probes was lost for its size, and no retransmission followed.
    let lost = run.link(Role::Server, 0).dropped_by_size.datagrams;
    assert!((1..=9).contains(&lost), "{lost} datagrams were too large");
    let (_, counters) = run.connection(Role::Server).path_counters()[0];
    assert_eq!((counters.packets_lost, counters.again_bytes), (lost, 0));
    assert_eq!((counters.probe_timeouts, counters.packets_spurious), (0, 0));
}

#[test]
fn on_1472_bytes_it_is_found_within_10_round_trips() {
    for chance in [0.0, 0.02] {
        let loss = Loss::Independent(chance);
        let mut run = download(carries(1_472).with_loss(loss), TransportConfig::default());
        run.until(at(10_000));
        let connected = run.connection(Role::Server).connected_at().unwrap();
        let sizes = sizes(&run);
        let &(found_at, _) = sizes.iter().find(|(_, size)| *size == 1_472).unwrap();
        assert!(found_at <= connected + ms(10 * 40), "{connected}: {sizes:?}");
    }
}

#[test]
fn what_common_paths_carry_is_found_in_a_transfer() {
    for payload in [1_252, 1_372, 1_432, 1_452, 1_464] {
        let mut run = download(carries(payload), TransportConfig::default());
        run.until_done();
        assert_eq!(u64::from(run.size(Role::Server)), payload);
    }
}

#[test]
fn a_probe_is_no_sign_of_congestion_and_no_probe_timeout_waits_for_it() {
    // An upload that pauses: its probe is the last packet in flight, and is lost.
    let plan = Plan::both_ways(3_000);
    let mut run = Setup::new(plan, vec![carries(1_232)], TransportConfig::default()).start();
    run.until(at(30_000));
    for role in [Role::Client, Role::Server] {
        let (_, counters) = run.connection(role).path_counters()[0];
        assert_eq!(counters.probe_timeouts, 0, "{role:?}");
        let view = run.connection(role).path_views().next().unwrap();
        assert_eq!(view.ssthresh, None, "{role:?}: still in slow start");
        assert_eq!(view.in_flight, Bytes::ZERO, "{role:?}");
        assert_eq!(view.loss.0, 0);
    }
}

#[test]
fn a_black_hole_in_mid_transfer_costs_a_few_probe_timeouts() {
    for after in [1_232, 1_252, 1_400] {
        let link = carries(1_472).with_mtu_from(at(500), Bytes(after + HEADERS));
        let mut run =
            download(link.with_queue(QueueLimit::packets(60)), TransportConfig::default());
        run.until(at(490));
        assert_eq!(run.size(Role::Server), 1_472);
        let done = run.until_done();
        let sizes = sizes(&run);
        let (fell_at, size) = sizes[1];
        assert_eq!(size, 1_200, "{sizes:?}");
        // Round trip with a full queue: 40 + 36 ms. The probe timeout, the probes' way, and what the
        // watch waits for.
        assert!(fell_at < at(500) + ms(3 * 190), "{sizes:?}");
        let found = run.size(Role::Server);
        assert!(u64::from(found) <= after && u64::from(found) + 20 > after, "{sizes:?}");
        assert!(done < at(5_000), "{done}");
    }
}

#[test]
fn an_end_that_sends_little_notices_the_black_hole_too() {
    // Responses of a few datagrams, each of which ends in a small one.
    let link = carries(1_472).with_mtu_from(at(1_000), Bytes(1_300 + HEADERS));
    let mut run = download(link, TransportConfig::default());
    run.until_done();
    assert!(run.size(Role::Server) <= 1_300);
}

#[test]
fn outages_losses_and_full_queues_are_no_black_holes() {
    let outage = Outage::between(at(600), at(900));
    let lossy = carries(1_472).with_loss(0.05);
    let shallow = carries(1_472).with_queue(QueueLimit::packets(5));
    let bytes = carries(1_472).with_queue(QueueLimit::Bytes(Bytes(10_000)));
    for link in [carries(1_472).with_outage(outage), lossy, shallow, bytes] {
        let mut run = download(link, TransportConfig::default());
        run.until_done();
        let sizes = sizes(&run);
        assert!(sizes.is_sorted_by_key(|(_, size)| *size), "{sizes:?}");
        assert_eq!(run.size(Role::Server), 1_472);
    }
}

#[test]
fn fixed_sizes_are_sent_without_a_probe_and_starve_in_a_black_hole() {
    let fixed =
        TransportConfig { max_udp_payload: 1_350, mtu: Mtu::Fixed, ..TransportConfig::default() };
    let mut run = download(carries(1_350), fixed.clone());
    run.until_done();
    assert_eq!(run.link(Role::Server, 0).dropped_by_size.datagrams, 0);
    assert_eq!(run.size(Role::Server), 1_350);
    let mut run = download(carries(1_300), fixed);
    run.until(at(20_000));
    assert!(run.connection(Role::Client).is_connected());
    assert_eq!(run.end(Role::Client).exchange().unwrap().received(), Bytes::ZERO);
}

#[test]
fn what_an_end_takes_is_told_and_kept_to() {
    let small = TransportConfig { max_received_payload: 1_300, ..TransportConfig::default() };
    let setup = Setup {
        transport: [small, TransportConfig::default()],
        ..Setup::new(Plan::both_ways(1_000_000), vec![link(20, 20)], TransportConfig::default())
    };
    let mut run = setup.start();
    run.until_done();
    assert_eq!(run.size(Role::Server), 1_300);
    assert_eq!(run.size(Role::Client), 1_472);
    // Also where the handshake began with more.
    let large = TransportConfig { initial_udp_payload: 1_400, ..TransportConfig::default() };
    let small = TransportConfig { max_received_payload: 1_250, ..large.clone() };
    let setup = Setup {
        transport: [small, large.clone()],
        ..Setup::new(Plan::download(1_000_000), vec![link(20, 20)], large)
    };
    let mut run = setup.start();
    run.until_done();
    assert_eq!(run.size(Role::Server), 1_250);
}

#[test]
fn a_handshake_that_begins_too_large_goes_on_with_the_least_size() {
    let large = TransportConfig { initial_udp_payload: 1_400, ..TransportConfig::default() };
    let mut run = download(carries(1_232), large);
    run.until_done();
    assert_eq!(run.size(Role::Server), 1_232);
}

#[test]
fn each_path_has_its_own_size() {
    let links = vec![carries(1_372), carries(1_472)];
    let mut run = Setup::new(Plan::download(8_000_000), links, TransportConfig::default()).start();
    run.until_done();
    let server = run.connection(Role::Server);
    let sizes: Vec<_> =
        server.path_views().map(|view| server.datagram_size(view.key.id).unwrap()).collect();
    assert_eq!(sizes, [1_372, 1_472]);
}

#[test]
fn a_message_of_the_network_is_a_limit_if_it_answers_something_and_no_more() {
    let mut run = download(carries(1_472), TransportConfig::default());
    run.until(at(500));
    let route = |path| Route::new(server_address(), client_address(path));
    let tell = |run: &mut Run, route, size| {
        run.act(Role::Server, |connection, now| connection.on_datagram_too_big(now, route, size))
    };
    assert!(!tell(&mut run, route(1), 1_300), "another address");
    let route = route(0);
    assert!(!tell(&mut run, route, 600), "below the least size");
    assert!(!tell(&mut run, route, 1_472), "nothing larger was sent");
    assert_eq!(run.size(Role::Server), 1_472);
    assert!(tell(&mut run, route, 1_300));
    assert_eq!(run.size(Role::Server), 1_200);
    run.until(at(1_000));
    assert_eq!(run.size(Role::Server), 1_300);
}
