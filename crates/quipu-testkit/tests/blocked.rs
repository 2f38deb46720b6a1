//! Sockets that take nothing for a while: only their path waits.

use quipu_base::{Duration, Instant, Rate, Role};
use quipu_link::LinkConfig;
use quipu_quic::TransportConfig;
use quipu_testkit::{
    Action, Failure, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls, policies, server_address,
};

const OBJECT: u64 = 5_000_000;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// An exchange over so many paths of 20 Mbit/s and 20 ms, and what the two ends do meanwhile.
fn run(
    plan: Plan,
    paths: usize,
    stack: &str,
    client: &[(Instant, Action)],
    server: &[(Instant, Action)],
) -> Result<Outcome, Failure> {
    let link = LinkConfig::new(Rate::from_mbit_per_sec(20), Duration::from_millis(10));
    let scenario = Scenario::new(plan, vec![link; paths]);
    let node = |role, actions: &[(Instant, Action)]| {
        Box::new(QuicNode::new(NodeConfig {
            role,
            local: scenario.addresses(role),
            server: server_address(),
            tls: Tls::Null { chain: 3000 },
            transport: TransportConfig::default(),
            policies: policies(stack),
            plan: scenario.plan,
            seed: scenario.peer_seed(role),
            actions: actions.to_vec(),
            retry: false,
            tokens: None,
            resets: false,
        }))
    };
    scenario.run(node(Role::Client, client), node(Role::Server, server))
}

#[test]
fn a_blocked_socket_stops_its_path_alone() {
    let plan = Plan::download(OBJECT);
    let alone = run(plan, 1, "", &[], &[]).unwrap().finished_at;
    let both = run(plan, 2, "", &[], &[]).unwrap().finished_at;
    for path in [0, 1] {
        for stack in ["", "path=ecf", "path=blest", "path=pats", "path=redundant", "path=path-rr"] {
            // The sender's socket of one path takes nothing for ten seconds.
            let actions = [(ms(300), Action::Block(path)), (ms(10_300), Action::Unblock(path))];
            let blocked = run(plan, 2, stack, &[], &actions).unwrap().finished_at;
            assert!(blocked < alone + Duration::from_millis(300), "{stack} {path}: {blocked}");
            assert!(blocked > both, "{stack} {path}: {blocked}");
        }
    }
}

#[test]
fn a_path_is_used_again_once_its_socket_takes_datagrams() {
    let plan = Plan::download(OBJECT);
    let both = run(plan, 2, "", &[], &[]).unwrap().finished_at;
    let actions = [(ms(300), Action::Block(1)), (ms(400), Action::Unblock(1))];
    let blocked = run(plan, 2, "", &[], &actions).unwrap().finished_at;
    assert!(blocked < both + Duration::from_millis(150), "{blocked}, and never blocked {both}");
}

#[test]
fn acknowledgements_of_a_blocked_path_take_another() {
    let plan = Plan::download(OBJECT);
    let both = run(plan, 2, "", &[], &[]).unwrap().finished_at;
    // The receiver's socket of the second path takes nothing any more.
    let blocked = run(plan, 2, "", &[(ms(300), Action::Block(1))], &[]).unwrap().finished_at;
    assert!(blocked < both + Duration::from_millis(300), "{blocked}, and never blocked {both}");
}

#[test]
fn when_every_socket_is_blocked_all_waits_and_goes_on() {
    for begin in [0, 5, 12, 25, 40, 200, 450] {
        for (client, server) in [(true, false), (false, true), (true, true)] {
            let blocks = |on: bool| match on {
                true => vec![
                    (ms(begin), Action::Block(0)),
                    (ms(begin), Action::Block(1)),
                    (ms(begin + 400), Action::Unblock(0)),
                    (ms(begin + 450), Action::Unblock(1)),
                ],
                false => Vec::new(),
            };
            let plan = Plan::download(1_000_000);
            let whole = run(plan, 2, "", &[], &[]).unwrap().finished_at;
            let ended = run(plan, 2, "", &blocks(client), &blocks(server)).unwrap().finished_at;
            let latest = whole + Duration::from_millis(1_200);
            assert!(ended < latest, "blocked at {begin} ms: {ended}, and never {whole}");
        }
    }
}
