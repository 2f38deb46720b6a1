//! Copies on the real engine: who asks for them gets them, and pays in datagrams.

use quipu_base::{Duration, Instant, Rate, Role};
use quipu_link::{LinkConfig, Outage};
use quipu_policy::Quality;
use quipu_testkit::{
    Action, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls, plain_policies, policies,
};

const OBJECT: u64 = 1_000_000;

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

/// A download whose server has these policies and does these things.
fn download(paths: Vec<LinkConfig>, text: &str, actions: Vec<(Instant, Action)>) -> Outcome {
    let scenario = Scenario::new(Plan::download(OBJECT), paths);
    let node = |role, policies, actions| {
        let config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 });
        Box::new(QuicNode::new(NodeConfig { policies, actions, ..config }))
    };
    let client = node(Role::Client, plain_policies(), Vec::new());
    let outcome = scenario.run(client, node(Role::Server, policies(text), actions));
    outcome.expect("the exchange ends")
}

/// Datagrams from the server.
fn datagrams(outcome: &Outcome) -> u64 {
    outcome.links.iter().map(|(_, down)| down.offered.datagrams).sum()
}

#[test]
fn xlink_copies_while_little_is_left_to_play_and_stops_when_told_of_plenty() {
    let paths = || vec![path(20, 10), path(5, 60)];
    let left_to_play = |seconds: u64| {
        let quality = Quality {
            cached_frames: Some(seconds * 30),
            frames_per_second: Some(30),
            ..Quality::default()
        };
        vec![(Instant::ZERO, Action::TellQuality(quality))]
    };
    let plain = datagrams(&download(paths(), "path=minrtt", Vec::new()));
    let told = |seconds| {
        datagrams(&download(paths(), "path=minrtt reinject=xlink", left_to_play(seconds)))
    };
    let (plenty, little) = (told(60), told(0));
    println!("without {plain}, plenty left {plenty}, little left {little} datagrams");
    assert_eq!(plenty, plain);
    assert!(little > plain + 20, "{little}");
}

#[test]
fn past_the_deadline_copies_save_what_a_dying_path_holds() {
    // Wide enough that round-trip times stay as they are.
    let link = || path(100, 20);
    let ended = |dying, text| download(vec![link(), dying], text, Vec::new()).finished_at;
    let whole = ended(link(), "path=minrtt");
    let (mut sooner, mut saved) = (0, 0);
    for millis in 20..70 {
        let at = whole - Duration::from_millis(millis);
        let dying = || link().with_outage(Outage::for_good(at));
        let plain = ended(dying(), "path=minrtt");
        let copied = ended(dying(), "path=minrtt reinject=xlink:mode=deadline");
        sooner += u32::from(copied < plain);
        saved += plain.as_nanos() as i64 - copied.as_nanos() as i64;
    }
    println!("of {whole}: sooner in {sooner} of 50 loads, by {} us on average", saved / 50_000);
    assert!(sooner > 40 && saved > 0, "{sooner}");
}

#[test]
fn validation_probes_every_path_so_lowrtt_has_nothing_to_copy() {
    let sent = |text| download(vec![path(20, 40), path(20, 40)], text, Vec::new()).trace;
    assert_eq!(sent("path=lowrtt"), sent("path=minrtt"));
}
