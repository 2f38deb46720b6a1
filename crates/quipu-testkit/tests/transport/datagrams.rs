//! Datagrams of the application. <https://www.rfc-editor.org/rfc/rfc9221>

use std::collections::BTreeSet;

use quipu_base::{Bytes, Duration, PathId, Role};
use quipu_link::{LinkConfig, Loss};
use quipu_quic::connection::{ConnectionEvent, SendDatagramError};
use quipu_quic::error::ErrorCode;
use quipu_quic::{Connection, DatagramConfig, DatagramCounters, DatagramId, TransportConfig};
use quipu_testkit::{ExchangeNode, Plan};

use crate::setup::{FIRST, Run, Setup, at, link, ms};

const SECOND: PathId = PathId(1);
/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;

fn datagrams(config: DatagramConfig) -> TransportConfig {
    TransportConfig { datagrams: Some(config), ..TransportConfig::default() }
}

fn run_over(plan: Plan, links: Vec<LinkConfig>, config: DatagramConfig) -> Run {
    let mut run = Setup::new(plan, links, datagrams(config)).start();
    run.until(at(1_000));
    run
}

/// A connection that is idle from the beginning on.
fn idle(link: LinkConfig) -> Run {
    run_over(Plan::both_ways(100), vec![link], DatagramConfig::default())
}

/// A datagram that begins with a number.
fn numbered(number: u64, length: usize) -> bytes::Bytes {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(length, 7);
    data.into()
}

fn send(run: &mut Run, role: Role, data: bytes::Bytes) -> Result<DatagramId, SendDatagramError> {
    run.act(role, |connection, now| connection.send_datagram(now, data))
}

/// Sends a datagram every so often until `end`, and reads what comes at the other end: the numbers.
fn stream_of(run: &mut Run, from: Role, every: Duration, length: usize, end: u64) -> Vec<u64> {
    let mut came = Vec::new();
    let mut number = 0;
    while run.world.now() < at(end) {
        send(run, from, numbered(number, length)).unwrap();
        number += 1;
        let next = run.world.now() + every;
        run.until(next);
        came.extend(read(run, from.peer()));
    }
    let next = run.world.now() + ms(2_000);
    run.until(next);
    came.extend(read(run, from.peer()));
    came
}

fn read(run: &mut Run, role: Role) -> Vec<u64> {
    let next = |connection: &mut Connection, _| connection.read_datagram();
    let data = std::iter::from_fn(|| run.act(role, next));
    data.map(|data| u64::from_be_bytes(*data.first_chunk().unwrap())).collect()
}

fn counters(run: &Run, role: Role) -> DatagramCounters {
    *run.connection(role).datagram_counters()
}

/// What an end was told of its datagrams.
fn told(run: &Run, role: Role, which: fn(&ConnectionEvent) -> Option<DatagramId>) -> Vec<u64> {
    let events = run.end(role).events().iter();
    events.filter_map(|(_, event)| which(event)).map(|id| id.0).collect()
}

fn acked(event: &ConnectionEvent) -> Option<DatagramId> {
    if let ConnectionEvent::DatagramAcked(id) = event { Some(*id) } else { None }
}

fn lost(event: &ConnectionEvent) -> Option<DatagramId> {
    if let ConnectionEvent::DatagramLost(id) = event { Some(*id) } else { None }
}

fn dropped(event: &ConnectionEvent) -> Option<DatagramId> {
    if let ConnectionEvent::DatagramDropped(id) = event { Some(*id) } else { None }
}

#[test]
fn datagrams_go_both_ways_and_are_acknowledged() {
    for from in [Role::Client, Role::Server] {
        let mut run = idle(link(20, 20));
        let came = stream_of(&mut run, from, ms(10), 100, 2_000);
        assert_eq!(came, (0..100).collect::<Vec<_>>());
        assert_eq!(told(&run, from, acked), came);
        assert_eq!((told(&run, from, lost), told(&run, from, dropped)), (vec![], vec![]));
        let counters = counters(&run, from);
        assert_eq!((counters.sent, counters.acked), (100, 100));
    }
}

#[test]
fn offered_datagrams_displace_none_and_room_is_told() {
    let mut run = idle(link(20, 20));
    let room = |run: &Run| {
        let events = run.end(Role::Client).events().iter();
        events.filter(|(_, event)| *event == ConnectionEvent::DatagramRoom).count()
    };
    let (mut next, mut waits, mut came) = (0, 0, Vec::new());
    while next < 3_000 {
        let data = numbered(next, 1_000);
        let offered = run.act(Role::Client, |connection, now| connection.offer_datagram(now, data));
        match offered.unwrap() {
            Some(id) => {
                assert_eq!(id, DatagramId(next));
                next += 1;
            }
            None => {
                assert_eq!(room(&run), waits, "not told before it was asked for");
                waits += 1;
                while room(&run) < waits {
                    let later = run.world.now() + ms(1);
                    run.until(later);
                    came.extend(read(&mut run, Role::Server));
                }
            }
        }
    }
    let later = run.world.now() + ms(3_000);
    run.until(later);
    came.extend(read(&mut run, Role::Server));
    let counters = counters(&run, Role::Client);
    assert_eq!((counters.sent, counters.dropped_unsent), (3_000, 0));
    // A queue of 1 MiB holds 985 of them at first, and half as many each time later.
    assert!((3..8).contains(&waits), "{waits}");
    let lost = told(&run, Role::Client, lost);
    assert_eq!(came.len() + lost.len(), 3_000, "all left, and those that came were read");
}

#[test]
fn a_lost_datagram_is_told_by_its_number_and_not_sent_again() {
    let lossy = link(20, 20).with_loss(Loss::Independent(0.1));
    let mut run = idle(lossy);
    let came = stream_of(&mut run, Role::Client, ms(10), 300, 11_000);
    let counters = counters(&run, Role::Client);
    assert_eq!((counters.sent, counters.dropped_unsent), (1_000, 0));
    let all: BTreeSet<u64> = came.iter().copied().collect();
    assert_eq!(all.len(), came.len(), "none came twice");
    let lost = told(&run, Role::Client, lost);
    assert!((70..200).contains(&lost.len()), "{} lost", lost.len());
    // Acknowledgements are lost too: what is told as lost may have come, never the other way.
    let acked = told(&run, Role::Client, acked);
    assert!(acked.iter().all(|id| all.contains(id)));
    let known: BTreeSet<u64> = acked.into_iter().chain(lost).collect();
    assert_eq!(known, (0..1_000).collect());
}

#[test]
fn nothing_is_sent_before_the_peer_says_that_it_takes_datagrams() {
    let with = datagrams(DatagramConfig::default());
    let setup = Setup::new(Plan::both_ways(100), vec![link(20, 20)], with);
    let transport = [setup.transport[0].clone(), TransportConfig::default()];
    let mut run = Setup { transport, ..setup }.start();
    run.until(at(10));
    let early = send(&mut run, Role::Client, numbered(0, 20));
    assert_eq!(early, Err(SendDatagramError::NotOpen));
    run.until(at(1_000));
    let never = send(&mut run, Role::Client, numbered(0, 20));
    assert_eq!(never, Err(SendDatagramError::Unsupported));
    assert_eq!(run.connection(Role::Client).datagrams_max_size(FIRST), None);
    // One direction is enough.
    assert_eq!(send(&mut run, Role::Server, numbered(5, 20)), Ok(DatagramId(0)));
    run.until(at(1_100));
    assert_eq!(read(&mut run, Role::Client), [5]);
    run.act(Role::Server, |connection, now| connection.close(now, 0, b""));
    let late = send(&mut run, Role::Server, numbered(6, 20));
    assert_eq!(late, Err(SendDatagramError::NotOpen));
}

#[test]
fn a_peer_is_sent_none_larger_than_it_takes() {
    for max_frame in [2, 3, 66, 67, 500] {
        let small = DatagramConfig { max_frame, ..DatagramConfig::default() };
        let mut run = run_over(Plan::both_ways(100), vec![link(20, 20)], small);
        let most = run.connection(Role::Client).datagrams_max_size(FIRST).unwrap();
        let frame = 1 + if most < 64 { 1 } else { 2 } + most;
        assert!(frame <= max_frame.into() && frame + 2 > max_frame.into(), "{most}");
        let data = |length| bytes::Bytes::from(vec![0; length]);
        let length = most + 1;
        let error = SendDatagramError::TooLarge { length, most };
        assert_eq!(send(&mut run, Role::Client, data(length)), Err(error));
        assert!(send(&mut run, Role::Client, data(most)).is_ok());
        run.until(at(1_500));
        let got = run.act(Role::Server, |connection, _| connection.read_datagram());
        assert_eq!(got, Some(data(most)));
    }
}

#[test]
fn the_largest_datagram_fits_and_asks_for_larger_ones() {
    let mut run = idle(link(20, 20).with_mtu(Bytes(1_400 + HEADERS)));
    let most = |run: &Run| run.connection(Role::Client).datagrams_max_size(FIRST).unwrap();
    let small = most(&run);
    assert!((1_150..1_200).contains(&small), "{small}");
    assert!(send(&mut run, Role::Client, numbered(1, small)).is_ok());
    run.until(at(3_000));
    let large = most(&run);
    assert!(large > small + 180, "{large}");
    for number in 0..5 {
        send(&mut run, Role::Client, numbered(number, large)).unwrap();
    }
    run.until(at(4_000));
    assert_eq!(read(&mut run, Role::Server), [1, 0, 1, 2, 3, 4]);
    assert_eq!(counters(&run, Role::Client).acked, 6);
}

#[test]
fn a_datagram_that_is_too_large_starts_the_search() {
    let mut run = idle(link(20, 20));
    let large = numbered(3, 1_400);
    let refused = send(&mut run, Role::Client, large.clone()).unwrap_err();
    assert!(matches!(refused, SendDatagramError::TooLarge { length: 1_400, .. }), "{refused}");
    run.until(at(1_500));
    assert_eq!(run.size(Role::Client), 1_472);
    assert!(send(&mut run, Role::Client, large).is_ok());
    run.until(at(1_600));
    assert_eq!(read(&mut run, Role::Server), [3]);
}

#[test]
fn both_queues_are_bounded_and_drop_the_oldest() {
    let queue = Bytes(100 * (1_000 + 64));
    let config =
        DatagramConfig { send_queue: queue, receive_queue: queue, ..DatagramConfig::default() };
    let mut run = run_over(Plan::both_ways(100), vec![link(20, 20)], config);
    for number in 0..500 {
        send(&mut run, Role::Client, numbered(number, 1_000)).unwrap();
    }
    run.until(at(3_000));
    // A window of ten packets left at once; what waited made room for what came later.
    let sent = counters(&run, Role::Client);
    assert_eq!(sent.dropped_unsent, 400 - (sent.sent - 100), "{sent:?}");
    let dropped = told(&run, Role::Client, dropped);
    assert_eq!(dropped.len() as u64, sent.dropped_unsent);
    assert!(dropped.is_sorted());
    for number in 500..600 {
        send(&mut run, Role::Client, numbered(number, 1_000)).unwrap();
    }
    run.until(at(6_000));
    let received = counters(&run, Role::Server);
    assert_eq!(received.received, counters(&run, Role::Client).sent);
    let read = read(&mut run, Role::Server);
    assert_eq!(read.len(), 100);
    assert_eq!(read.last(), Some(&599));
    assert_eq!(received.dropped_unread, received.received - 100);
    let events = run.end(Role::Server).events().iter();
    let told = events.filter(|(_, event)| *event == ConnectionEvent::DatagramReceived).count();
    assert_eq!(told, 1, "until it is read");
}

#[test]
fn datagrams_go_first_and_leave_streams_their_share() {
    for (in_row, share) in [(3, 0.25), (1, 0.5), (255, 0.01)] {
        let config = DatagramConfig { packets_in_row: in_row, ..DatagramConfig::default() };
        let plan = Plan::download(20_000_000);
        let mut run = run_over(plan, vec![link(20, 20)], config);
        let received = |run: &Run| run.end(Role::Client).exchange().unwrap().received().0;
        let before = received(&run);
        let mut sent = 0;
        // More datagrams than the link carries.
        while run.world.now() < at(3_000) {
            for _ in 0..10 {
                send(&mut run, Role::Server, numbered(sent, 1_430)).unwrap();
                sent += 1;
            }
            let next = run.world.now() + ms(3);
            run.until(next);
            read(&mut run, Role::Client);
        }
        let streams = (received(&run) - before) as f64;
        let datagrams = counters(&run, Role::Client).received as f64 * 1_430.0;
        let got = streams / (streams + datagrams);
        assert!((got - share).abs() < 0.1 * share + 0.04, "{in_row}: {got}");
    }
}

#[test]
fn few_datagrams_do_not_wait_for_a_download() {
    let plan = Plan::download(20_000_000);
    let link = link(20, 20).with_queue(quipu_link::QueueLimit::packets(30));
    let mut run = run_over(plan, vec![link], DatagramConfig::default());
    for number in 0..400 {
        send(&mut run, Role::Server, numbered(number, 200)).unwrap();
        let next = run.world.now() + ms(7);
        run.until(next);
        // Acknowledgements open the window many times in that time.
        let waiting = number + 1 - counters(&run, Role::Server).sent;
        assert!(waiting <= 8, "{waiting} wait at {next}");
        read(&mut run, Role::Client);
    }
    let counters = counters(&run, Role::Server);
    assert!(counters.acked + counters.lost >= 380, "{counters:?}");
    assert_eq!(counters.dropped_unsent, 0);
}

#[test]
fn a_path_that_carries_it_is_chosen() {
    // The first path is faster, but only the second carries full datagrams.
    let links = vec![link(20, 10).with_mtu(Bytes(1_232 + HEADERS)), link(20, 40)];
    let mut run = run_over(Plan::download(3_000_000), links, DatagramConfig::default());
    run.until_done();
    let now = run.world.now() + ms(1_000);
    run.until(now);
    let sizes = [FIRST, SECOND].map(|path| run.connection(Role::Server).datagram_size(path));
    assert_eq!(sizes, [Some(1_232), Some(1_472)]);
    let sent = |run: &Run, path| run.link(Role::Server, path).delivered.datagrams;
    for (length, path) in [(1_400, 1), (1_000, 0)] {
        let before = [sent(&run, 0), sent(&run, 1)];
        for number in 0..5 {
            send(&mut run, Role::Server, numbered(number, length)).unwrap();
        }
        let next = run.world.now() + ms(500);
        run.until(next);
        assert_eq!(read(&mut run, Role::Client).len(), 5);
        let more = [0, 1].map(|path| sent(&run, path) - before[path]);
        assert!(more[path] >= 5 && more[1 - path] <= 1, "{length}: {more:?}");
    }
}

#[test]
fn what_no_path_carries_any_more_is_dropped_and_told() {
    let link = link(2, 20).with_mtu_from(at(2_000), Bytes(1_300 + HEADERS));
    let mut run = idle(link);
    send(&mut run, Role::Client, numbered(0, 1_400)).unwrap_err();
    run.until(at(1_990));
    assert_eq!(run.size(Role::Client), 1_472);
    // Seconds of data at 2 Mbit/s.
    for number in 1..=600 {
        let length = if number % 2 == 0 { 1_400 } else { 1_000 };
        send(&mut run, Role::Client, numbered(number, length)).unwrap();
    }
    run.until(at(15_000));
    assert!(run.size(Role::Client) <= 1_300);
    let counters = counters(&run, Role::Client);
    assert!(counters.lost > 0 && counters.dropped_unsent > 100, "{counters:?}");
    assert_eq!(counters.sent + counters.dropped_unsent, 600);
    let ends = [acked, lost, dropped].map(|which| told(&run, Role::Client, which));
    let known: BTreeSet<u64> = ends.concat().into_iter().collect();
    assert_eq!(known, (0..600).collect(), "each has an end");
    let came = read(&mut run, Role::Server);
    assert!(came.len() > 300 - 20, "{}", came.len());
    // But for those of the first window, which were on their way already.
    assert!(came.iter().filter(|number| *number % 2 == 0).count() <= 5);
}

#[test]
fn datagrams_of_an_abandoned_path_are_lost_in_the_end() {
    let dead = quipu_link::Outage::for_good(at(1_500));
    let links = vec![link(20, 60), link(20, 20).with_outage(dead)];
    let mut run = run_over(Plan::both_ways(100), links, DatagramConfig::default());
    run.until(at(1_499));
    send(&mut run, Role::Client, numbered(0, 100)).unwrap();
    let code = ErrorCode::APPLICATION_ABANDON_PATH;
    assert!(run.act(Role::Client, |connection, now| connection.abandon_path(now, SECOND, code)));
    run.until(at(10_000));
    assert_eq!(told(&run, Role::Client, lost), [0]);
    assert_eq!(read(&mut run, Role::Server), []);
}

#[test]
fn a_farewell_waits_until_datagrams_left() {
    let mut run = idle(link(2, 20));
    for number in 0..50 {
        send(&mut run, Role::Client, numbered(number, 1_000)).unwrap();
    }
    run.act(Role::Client, |connection, now| {
        connection.close_when_delivered(now, Duration::from_secs(10), 0, b"");
    });
    run.until_any(at(5_000));
    assert_eq!(read(&mut run, Role::Server), (0..50).collect::<Vec<_>>());
}
