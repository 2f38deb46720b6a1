//! Acknowledgements on request.
//! <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency>

use quipu_base::{Duration, Role};
use quipu_link::{LinkConfig, Loss, Reorder};
use quipu_quic::connection::ConnectionEvent;
use quipu_quic::{AckFrequencyConfig, AckRequest, TransportConfig};
use quipu_testkit::Plan;

use crate::setup::{FIRST, Run, Setup, at, link, ms};

fn asking(request: Option<AckRequest>) -> TransportConfig {
    let ack_frequency = Some(AckFrequencyConfig { request, ..AckFrequencyConfig::default() });
    TransportConfig { ack_frequency, ..TransportConfig::default() }
}

/// A download whose server asks for acknowledgements, or not.
fn download(links: Vec<LinkConfig>, request: Option<AckRequest>) -> (Run, Duration) {
    let mut run = Setup::new(Plan::download(5_000_000), links, asking(request)).start();
    let done = run.until_done();
    (run, done - at(0))
}

/// Packets of the client for each hundred of the server, on a path.
fn answers(run: &Run, path: usize) -> u64 {
    let sent = |role| run.link(role, path).offered.datagrams;
    sent(Role::Client) * 100 / sent(Role::Server)
}

#[test]
fn every_tenth_packet_is_acknowledged_if_that_is_asked() {
    let (plain, usual) = download(vec![link(50, 20)], None);
    let (asked, done) = download(vec![link(50, 20)], Some(AckRequest::default()));
    assert!((40..65).contains(&answers(&plain, 0)), "{}", answers(&plain, 0));
    assert!((9..20).contains(&answers(&asked, 0)), "{}", answers(&asked, 0));
    assert!(done < usual + usual.divided_by(10), "{done} instead of {usual}");
}

#[test]
fn each_path_counts_by_itself() {
    let links = || vec![link(20, 20), link(20, 40)];
    let (asked, _) = download(links(), Some(AckRequest::default()));
    let (plain, _) = download(links(), None);
    let sum = |run: &Run| answers(run, 0) + answers(run, 1);
    assert!(sum(&asked) * 2 < sum(&plain), "{} and {}", sum(&asked), sum(&plain));
}

#[test]
fn losses_are_found_as_soon_as_they_can_be() {
    let lossy = || vec![link(20, 20).with_loss(Loss::Independent(0.01))];
    let (plain, usual) = download(lossy(), None);
    let (asked, done) = download(lossy(), Some(AckRequest::default()));
    let timeouts = |run: &Run| run.connection(Role::Server).path_counters()[0].1.probe_timeouts;
    assert!(timeouts(&asked) <= timeouts(&plain) + 2, "{}", timeouts(&asked));
    assert!(done < usual + usual.divided_by(4), "{done} instead of {usual}");
}

#[test]
fn reordering_that_is_no_loss_asks_for_nothing() {
    let disordered = || {
        let mut link = link(20, 20);
        link.reorder = Some(Reorder { share: 0.05, extra: ms(2) });
        vec![link]
    };
    let (plain, _) = download(disordered(), None);
    let (asked, _) = download(disordered(), Some(AckRequest::default()));
    assert!(answers(&asked, 0) * 2 < answers(&plain, 0));
    let spurious = |run: &Run| run.connection(Role::Server).path_counters()[0].1.packets_spurious;
    assert!(spurious(&asked) < 40, "{}", spurious(&asked));
}

#[test]
fn nothing_is_asked_of_a_peer_that_takes_no_requests() {
    let setup =
        Setup::new(Plan::download(1_000_000), vec![link(50, 20)], TransportConfig::default());
    let deaf = TransportConfig { ack_frequency: None, ..TransportConfig::default() };
    let mut run = Setup { transport: [deaf, asking(Some(AckRequest::default()))], ..setup }.start();
    run.until_done();
    assert!(answers(&run, 0) > 40);
    assert!(run.act(Role::Server, |connection, now| connection.ping(now, FIRST)));
    let next = run.world.now() + ms(1_000);
    run.until(next);
}

#[test]
fn a_ping_is_answered_at_once() {
    for takes in [true, false] {
        let setup = Setup::new(Plan::both_ways(100), vec![link(20, 20)], asking(None));
        let mut run = setup.start();
        if !takes {
            let deaf = TransportConfig { ack_frequency: None, ..TransportConfig::default() };
            run = Setup::new(Plan::both_ways(100), vec![link(20, 20)], deaf).start();
        }
        run.until(at(2_000));
        assert!(run.act(Role::Client, |connection, now| connection.ping(now, FIRST)));
        run.until(at(3_000));
        let events = run.end(Role::Client).events().iter();
        let mut after = events.filter_map(|(_, event)| match event {
            ConnectionEvent::Pong(FIRST, after) => Some(*after),
            _ => None,
        });
        let after = after.next_back().unwrap();
        assert_eq!(after < ms(42), takes, "{after}");
        assert!(after < ms(40 + 26), "{after}");
    }
}
