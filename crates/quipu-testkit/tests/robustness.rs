//! Exchanges in hostile networks: nothing that arrives makes the engine panic, and nothing that
//! nobody sent changes what is received.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_base::{Bytes, Duration, Instant, Offset, Rate, Role, Seed, StreamId};
use quipu_link::{Duplicate, LinkConfig, Reorder};
use quipu_policy::{Ask, Decision, Event, Joint, Notes, Policies, Refusal, Span, StreamKey, View};
use quipu_testkit::{
    Failure, Hostile, Identity, Mischief, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls,
    plain_policies,
};

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

fn run(scenario: &Scenario, tls: &Tls, mischief: Mischief) -> Result<Outcome, Failure> {
    let node = |role: Role| {
        let node = QuicNode::new(NodeConfig::new(scenario, role, tls.clone()));
        Box::new(Hostile::new(node, mischief, scenario.peer_seed(role)))
    };
    scenario.run(node(Role::Client), node(Role::Server))
}

fn rustls() -> Tls {
    Tls::Rustls(Identity::generate().expect("a certificate"))
}

#[test]
fn forged_datagrams_change_nothing() {
    let tls = rustls();
    for seed in 0..40 {
        let paths = vec![path(20, 20).with_loss(0.01), path(20, 10)];
        let plan = Plan::both_ways(300_000);
        let scenario = Scenario { seed: Seed::new(seed), ..Scenario::new(plan, paths) };
        let outcome = run(&scenario, &tls, Mischief::around(30));
        let outcome = outcome.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        assert_eq!(outcome.client_paths, 2);
    }
}

#[test]
fn damaged_datagrams_are_lost_datagrams() {
    let tls = rustls();
    for seed in 0..40 {
        let plan = Plan::both_ways(300_000);
        let scenario =
            Scenario { seed: Seed::new(seed), ..Scenario::new(plan, vec![path(20, 20)]) };
        let outcome = run(&scenario, &tls, Mischief::damage(5));
        outcome.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

#[test]
fn late_and_doubled_datagrams_change_nothing() {
    let identity = rustls();
    for tls in [Tls::Null { chain: 3000 }, identity] {
        for seed in 0..10 {
            let rough = |link: LinkConfig| LinkConfig {
                reorder: Some(Reorder { share: 0.1, extra: Duration::from_millis(30) }),
                duplicate: Some(Duplicate { share: 0.1, after: Duration::from_millis(15) }),
                ..link.with_loss(0.01).with_jitter(Duration::from_millis(5))
            };
            let paths = vec![rough(path(20, 20)), rough(path(20, 10))];
            let plan = Plan::both_ways(1_000_000);
            let scenario = Scenario { seed: Seed::new(seed), ..Scenario::new(plan, paths) };
            let outcome = run(&scenario, &tls, Mischief::around(0));
            outcome.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        }
    }
}

/// Null TLS does not protect what is in a packet, so that damaged frames reach the engine: it may
/// close the connection, but must not panic.
#[test]
fn damaged_frames_never_panic() {
    let mut closed = 0;
    for seed in 0..400 {
        let paths = vec![path(20, 20), path(20, 10)];
        let plan = Plan::both_ways(50_000);
        let limit = Duration::from_secs(60);
        let scenario = Scenario { seed: Seed::new(seed), limit, ..Scenario::new(plan, paths) };
        let outcome = run(&scenario, &Tls::Null { chain: 1000 }, Mischief::damage(10));
        closed += u32::from(matches!(outcome, Err(Failure::ConnectionLost { .. })));
    }
    println!("{closed} of 400 connections closed");
    assert!(closed > 100);
}

/// Answers the same whatever it is asked, and counts what is refused.
struct Stubborn {
    answer: fn(&View<'_>) -> Option<Decision>,
    counts: Arc<Counts>,
    /// Packets that left at this instant.
    left: (Instant, u64),
}

/// What became of the answers.
#[derive(Default)]
struct Counts {
    refused: AtomicU64,
    /// Most packets that left at one instant.
    at_once: AtomicU64,
}

impl Joint for Stubborn {
    fn decide(&mut self, _ask: Ask, view: &View<'_>, _notes: &mut Notes) -> Decision {
        (self.answer)(view).unwrap_or(Decision::Idle)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match event {
            Event::Refused(Refusal::MustNotProbe(_) | Refusal::MustNotWait) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
            }
            Event::Sent(_) => {
                let before = if self.left.0 == view.now { self.left.1 } else { 0 };
                self.left = (view.now, before + 1);
                self.counts.at_once.fetch_max(before + 1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn has_copies(&self) -> bool {
        true
    }
}

/// Answers refused at the server, datagrams that it sent, and most of them at one instant, while it
/// serves 50 kB.
fn serve_with(answer: fn(&View<'_>) -> Option<Decision>) -> (u64, u64, u64) {
    let plan = Plan::download(50_000);
    let scenario = Scenario::new(plan, vec![path(20, 20), path(20, 10)]);
    let counts = Arc::new(Counts::default());
    let node = |role, policies| {
        let config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 });
        Box::new(QuicNode::new(NodeConfig { policies, ..config }))
    };
    let stubborn = {
        let (plain, counts) = (plain_policies(), Arc::clone(&counts));
        Arc::new(move || {
            let (counts, left) = (Arc::clone(&counts), (Instant::ZERO, 0));
            let joint = Box::new(Stubborn { answer, counts, left });
            Policies { joint, ..plain() }
        })
    };
    let (client, server) = (node(Role::Client, plain_policies()), node(Role::Server, stubborn));
    let outcome = scenario.run(client, server).expect("the exchange ends");
    let datagrams = outcome.links.iter().map(|(_, down)| down.offered.datagrams).sum();
    let [refused, at_once] =
        [&counts.refused, &counts.at_once].map(|count| count.load(Ordering::Relaxed));
    println!("{refused} refused, {datagrams} datagrams, {at_once} at once");
    (refused, datagrams, at_once)
}

#[test]
fn a_server_that_probes_for_ever_serves_with_counted_refusals() {
    let (refused, datagrams, at_once) =
        serve_with(|view| Some(Decision::Probe { path: view.paths.iter().next()?.key }));
    assert!(refused > 40, "{refused}");
    // 42 of data, and a PING beside each at most.
    assert!(datagrams < 150 && at_once < 20, "{datagrams}, {at_once}");
}

/// Whatever a policy answers, no more leaves at an instant than windows let go: here one byte with
/// each packet of some thirty, from a window of ten full ones on each of two paths.
#[test]
fn a_server_that_sends_or_copies_byte_by_byte_keeps_to_its_windows() {
    let one_byte = |view: &View<'_>| {
        let stream = view.streams.get(view_of_first(view)?)?.key;
        let path = view.paths.least_srtt_open(view.now)?;
        Some(Decision::Send { path, stream, from: None, max: Bytes(1) })
    };
    let (_, _, at_once) = serve_with(one_byte);
    assert!(at_once < 1_000, "{at_once}");
    let copies = |view: &View<'_>| {
        let stream = view_of_first(view)?;
        let path = view.paths.least_srtt_open(view.now)?;
        let Some(span) = view.streams.unacked_from(stream, Offset::ZERO) else {
            return Some(Decision::Send { path, stream, from: None, max: Bytes(1_000) });
        };
        Some(Decision::Copy {
            path,
            stream,
            span: Span::new(span.start, span.start.advanced(Bytes(1))),
        })
    };
    let (_, _, at_once) = serve_with(copies);
    assert!(at_once < 1_000, "{at_once}");
}

/// The server's stream, once it can send.
fn view_of_first(view: &View<'_>) -> Option<StreamKey> {
    let stream = StreamKey { slot: 0, id: StreamId(0) };
    view.streams.get(stream).map(|view| view.key)
}

#[test]
fn a_server_that_never_sends_serves_slowly_with_counted_refusals() {
    let (refused, datagrams, _) = serve_with(|_| None);
    assert!(refused > 40 && datagrams < 150, "{refused} refused, {datagrams} datagrams");
}
