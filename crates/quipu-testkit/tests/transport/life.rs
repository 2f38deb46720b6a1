//! Idle connections, signs of life and farewells. <https://www.rfc-editor.org/rfc/rfc9000#section-10>

use quipu_base::{Bytes, Duration, Instant, PathId, Role, StreamDirection};
use quipu_link::Outage;
use quipu_quic::connection::{CloseReason, ConnectionEvent};
use quipu_quic::{Connection, TransportConfig};
use quipu_testkit::{ExchangeNode, Plan};

use crate::setup::{FIRST, Run, Setup, at, link, ms};

const SECOND: PathId = PathId(1);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn idle(timeout: u64, keep_alive: Option<Duration>) -> TransportConfig {
    TransportConfig { idle_timeout: secs(timeout), keep_alive, ..TransportConfig::default() }
}

/// An exchange of a few bytes over one path, and silence after that.
fn small(transport: [TransportConfig; 2]) -> Run {
    let setup = Setup::new(Plan::both_ways(100), vec![link(20, 20)], TransportConfig::default());
    Setup { transport, ..setup }.start()
}

fn events(run: &Run, role: Role) -> Vec<(Instant, ConnectionEvent)> {
    run.end(role).events().to_vec()
}

fn ended(run: &Run, role: Role) -> Option<(Instant, CloseReason)> {
    events(run, role).into_iter().find_map(|(at, event)| match event {
        ConnectionEvent::Closed(reason) => Some((at, reason)),
        _ => None,
    })
}

fn pongs(run: &Run, role: Role) -> Vec<(PathId, Duration)> {
    let pong = |(_, event)| match event {
        ConnectionEvent::Pong(path, after) => Some((path, after)),
        _ => None,
    };
    events(run, role).into_iter().filter_map(pong).collect()
}

#[test]
fn an_idle_connection_ends_after_the_shorter_of_both_timeouts() {
    let mut run = small([idle(30, None), idle(10, None)]);
    run.until_any(at(60_000));
    for role in [Role::Client, Role::Server] {
        let (when, reason) = ended(&run, role).unwrap();
        assert_eq!(reason, CloseReason::IdleTimeout);
        assert!((at(10_000)..at(10_500)).contains(&when), "{role:?}: {when}");
    }
    // None is no limit of its own.
    let mut run = small([idle(0, None), idle(0, None)]);
    run.until(at(10_000_000));
    let mut run = small([idle(0, None), idle(10, None)]);
    run.until_any(at(60_000));
    assert!(ended(&run, Role::Client).is_some() && ended(&run, Role::Server).is_some());
}

#[test]
fn a_timeout_below_three_probe_timeouts_counts_as_three() {
    let short = TransportConfig { idle_timeout: ms(100), ..TransportConfig::default() };
    let setup = Setup::new(Plan::both_ways(100), vec![link(20, 200)], short);
    let mut run = setup.start();
    run.until_any(at(60_000));
    // A round trip of 400 ms, and its variation: 3 PTO are above 1,200 ms.
    let (when, _) = ended(&run, Role::Client).unwrap();
    let heard = events(&run, Role::Client)[2].0;
    assert!(when > heard + ms(1_200) && when < heard + ms(4_000), "{when}");
}

#[test]
fn a_connection_is_kept_alive_over_an_idle_hour() {
    for keeper in [0, 1] {
        let keep = |end| idle(30, (end == keeper).then(|| secs(20)));
        let mut run = small([keep(0), keep(1)]);
        run.until(at(3_600_000));
        let sent = |role| run.connection(role).totals().packets_sent;
        let ends = [sent(Role::Client), sent(Role::Server)];
        // A PING every 20 s, and its acknowledgement.
        assert!(ends[keeper] >= 179 && ends.iter().all(|sent| *sent < 200), "{ends:?}");
        assert_eq!(pongs(&run, Role::Client), []);
    }
}

#[test]
fn keeping_alive_does_not_keep_a_dead_connection() {
    let dead = link(20, 20).with_outage(Outage::for_good(at(1_000)));
    let setup = Setup::new(Plan::both_ways(100), vec![dead], idle(30, Some(secs(5))));
    let mut run = setup.start();
    run.until_any(at(120_000));
    let (when, reason) = ended(&run, Role::Client).unwrap();
    assert_eq!(reason, CloseReason::IdleTimeout);
    assert!(when < at(1_000) + secs(5 + 30 + 5), "{when}");
}

#[test]
fn paths_that_are_not_used_are_kept_alive_too() {
    let links = vec![link(20, 20), link(20, 20)];
    let keep = TransportConfig { path_keep_alive: Some(secs(15)), ..idle(60, None) };
    let mut run = Setup::new(Plan::both_ways(100), links, keep).start();
    run.until(at(3_600_000));
    for role in [Role::Client, Role::Server] {
        for (path, counters) in run.connection(role).path_counters() {
            // At most so long without a packet of either end.
            let sent = counters.packets_sent;
            assert!((225..600).contains(&sent), "{role:?} sent {sent} on {path:?}");
        }
    }
}

#[test]
fn a_ping_is_answered_on_its_path() {
    let links = vec![link(20, 20), link(20, 70)];
    let mut run = Setup::new(Plan::both_ways(100), links, TransportConfig::default()).start();
    run.until(at(2_000));
    for (path, least) in [(FIRST, 40), (SECOND, 140)] {
        let ping = |connection: &mut Connection, now| connection.ping(now, path);
        assert!(run.act(Role::Client, ping));
        assert!(run.act(Role::Client, ping), "the same question");
        let next = run.world.now() + ms(1_000);
        run.until(next);
        let pongs = pongs(&run, Role::Client);
        let &(answered, after) = pongs.last().unwrap();
        assert_eq!(answered, path);
        // One PING alone may be acknowledged late.
        assert!(after >= ms(least) && after < ms(least + 26), "{after}");
    }
    assert_eq!(pongs(&run, Role::Client).len(), 2);
    assert!(!run.act(Role::Client, |connection, now| connection.ping(now, PathId(7))));
}

#[test]
fn a_ping_that_is_lost_is_repeated() {
    let outage = Outage::between(at(2_000), at(2_500));
    let cut = link(20, 20).with_outage(outage);
    let mut run = Setup::new(Plan::both_ways(100), vec![cut], TransportConfig::default()).start();
    run.until(at(2_100));
    assert!(run.act(Role::Client, |connection, now| connection.ping(now, FIRST)));
    run.until(at(10_000));
    assert_eq!(pongs(&run, Role::Client).len(), 1);
    assert_eq!(run.connection(Role::Client).path_views().next().unwrap().in_flight, Bytes::ZERO);
}

#[test]
fn a_farewell_waits_until_the_peer_has_everything() {
    let plan = Plan::download(2_000_000);
    let lossy = link(20, 20).with_loss(0.02);
    let mut run = Setup::new(plan, vec![lossy], TransportConfig::default()).start();
    run.until(at(300));
    run.act(Role::Server, |connection, now| {
        connection.close_when_delivered(now, secs(60), 5, b"bye");
        assert_eq!(connection.open_stream(now, StreamDirection::Bidirectional), None);
    });
    run.until_any(at(60_000));
    assert_eq!(run.end(Role::Client).exchange().unwrap().received(), Bytes(2_000_000));
    let (when, reason) = ended(&run, Role::Client).unwrap();
    let reason_told = CloseReason::PeerApplication { code: 5, reason: "bye".to_owned() };
    assert_eq!(reason, reason_told);
    let received = run.end(Role::Client).exchange().unwrap().received_all_at().unwrap();
    assert!(when >= received && when < received + ms(3_000), "{received}, {when}");
    assert_eq!(ended(&run, Role::Server).unwrap().1, CloseReason::Application { code: 5 });
}

#[test]
fn a_farewell_waits_no_longer_than_its_limit() {
    let dead = link(20, 20).with_outage(Outage::for_good(at(400)));
    let setup = Setup::new(Plan::download(2_000_000), vec![dead], TransportConfig::default());
    let mut run = setup.start();
    run.until(at(500));
    run.act(Role::Server, |connection, now| connection.close_when_delivered(now, secs(3), 5, b""));
    run.until_any(at(20_000));
    let (when, reason) = ended(&run, Role::Server).unwrap();
    assert_eq!((when, reason), (at(3_500), CloseReason::Application { code: 5 }));
    // With nothing to deliver it does not wait at all.
    let mut run = small([idle(30, None), idle(30, None)]);
    run.until(at(5_000));
    run.act(Role::Client, |connection, now| connection.close_when_delivered(now, secs(3), 6, b""));
    run.until_any(at(5_100));
    assert!(ended(&run, Role::Server).is_some());
}

#[test]
fn the_code_of_the_application_stays_out_of_the_handshake() {
    let setup = Setup::new(Plan::both_ways(100), vec![link(20, 20)], TransportConfig::default());
    let mut run = setup.start();
    run.until(at(30));
    run.act(Role::Client, |connection, now| connection.close(now, 77, b"secret"));
    run.until_any(at(5_000));
    let told = CloseReason::PeerTransport { code: 0xc, reason: String::new() };
    assert_eq!(ended(&run, Role::Server).map(|(_, reason)| reason), Some(told));
}
