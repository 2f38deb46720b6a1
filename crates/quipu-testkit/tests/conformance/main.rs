//! Every registered combination of policies keeps the rules of the seam on the real engine, and the
//! engine keeps them towards the policies.
#![expect(clippy::unwrap_used, reason = "tests")]

mod peer;

use quipu_base::{Bytes, Duration, Instant, Rate, Role, Seed};
use quipu_link::{LinkConfig, Outage};
use quipu_policy::registry::{Domain, Entry, SpecError};
use quipu_policy::{Event, Layer, Registry};
use quipu_sim::{Interface, NodeId, RunEnd, World, WorldConfig};
use quipu_testkit::{Account, Watch, client_address, server_address};

use peer::{GIVEN_UP, Peer, SIZES, number};

/// Paths with what happens to them, and receive windows.
struct Network {
    paths: Vec<LinkConfig>,
    connection_window: u64,
    stream_window: u64,
    /// The server abandons the first path once the third is up.
    abandons: bool,
}

fn link(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
        .with_loss(0.02)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn networks() -> [Network; 7] {
    let wide = |paths| Network {
        paths,
        connection_window: 15 << 20,
        stream_window: 6 << 20,
        abandons: false,
    };
    let cut = Outage::for_good(at(200));
    let pause = Outage::between(at(160), at(900));
    [
        wide(vec![link(20, 10)]),
        wide(vec![link(20, 10), link(5, 40)]),
        wide(vec![link(20, 10), link(5, 40), link(10, 20)]),
        // The handshake's path stays: it may take a second if its first packets are lost.
        wide(vec![link(5, 30), link(20, 10).with_outage(cut)]),
        Network {
            paths: vec![link(20, 10), link(5, 30).with_outage(pause), link(10, 20)],
            connection_window: 50_000,
            stream_window: 20_000,
            abandons: false,
        },
        Network { abandons: true, ..wide(vec![link(20, 10), link(5, 40), link(10, 20)]) },
        wide((1..=8).map(|nth| link(3 * nth, 5 * (9 - nth))).collect()),
    ]
}

/// All that a run came to, of client and server.
type Outcome = Vec<Account>;

/// Both ends over a network, and which is client and which server.
fn meet(
    watch: &Watch,
    network: &Network,
    seed: u64,
    batch: usize,
    successors: &[String],
) -> (World<Peer>, [NodeId; 2]) {
    let mut world = World::new(WorldConfig::new(Seed::new(seed)));
    let [client, server] = [Role::Client, Role::Server]
        .map(|role| world.add_node(Peer::new(role, watch, network, batch, successors)));
    for (index, link) in network.paths.iter().enumerate() {
        let address = client_address(u8::try_from(index).unwrap());
        let here = Interface { node: client, address };
        let there = Interface { node: server, address: server_address() };
        world.add_path(here, there, link, link).unwrap();
    }
    (world, [client, server])
}

/// Loads all streams with policies chosen by `text`; panics if anything is against the rules.
fn run(text: &str, network: &Network, seed: u64, batch: usize) -> Result<Outcome, SpecError> {
    run_with(text, network, seed, batch, &[])
}

/// The same, with other policies that take over in mid-run.
fn run_with(
    text: &str,
    network: &Network,
    seed: u64,
    batch: usize,
    successors: &[String],
) -> Result<Outcome, SpecError> {
    let watch = Watch::new(text)?;
    let (mut world, [client, server]) = meet(&watch, network, seed, batch, successors);
    let end = world
        .run_while(at(60_000), |world| {
            !(world.node(client).is_done() && world.node(server).is_done())
        })
        .unwrap();
    let accounts = watch.accounts();
    for account in &accounts {
        assert_eq!((&account.findings[..], account.more_findings), (&[][..], 0), "{text}");
    }
    assert_eq!(end, RunEnd::Condition, "{text}: unfinished at {}", world.now());
    // What was declared lost may be on its way again though it has arrived.
    world.run_until(world.now() + Duration::from_secs(1)).unwrap();
    let accounts = watch.accounts();
    for account in &accounts {
        assert_eq!(account.findings, Vec::<String>::new(), "{text}");
        assert_eq!((account.committed, account.open_streams), (Bytes::ZERO, 0), "{text}");
        assert!(account.at_rest, "{text}: events came after the last rest");
        assert!(account.decisions > 0, "{text}");
    }
    for id in [client, server] {
        let peer = world.node(id);
        let connection = peer.endpoint.connection(peer.handle.unwrap()).unwrap();
        let counters = connection.scheduler_counters();
        assert_eq!((counters.refused, counters.overridden), (0, 0), "{text}");
        assert!(!peer.wrong, "{text}: other bytes arrived than were sent");
        assert!(peer.successors.is_empty(), "{text}: {:?} never took over", peer.successors);
    }
    for (&stream, &(read, _)) in &world.node(client).read {
        let expected = SIZES[number(stream)];
        let complete = read == expected || (number(stream) == GIVEN_UP && read < expected);
        assert!(complete, "{text}: {read} bytes of {expected} on {stream}");
    }
    Ok(accounts)
}

/// The policy with its defaults, and with every other value of its switches and modes.
fn variants(entry: &Entry) -> Vec<String> {
    let mut texts = vec![entry.name.to_owned()];
    for param in &entry.params {
        let values: Vec<String> = match param.domain {
            Domain::Flag => vec!["true".to_owned(), "false".to_owned()],
            Domain::Choice(names) => names[1..].iter().map(|&name| name.to_owned()).collect(),
            _ => continue,
        };
        let variant = |value| format!("{}:{}={value}", entry.name, param.name);
        texts.extend(values.iter().map(variant));
    }
    texts
}

fn registered(layer: Layer) -> Vec<String> {
    let registry = Registry::builtin();
    registry.of(layer).flat_map(variants).collect()
}

/// Runs `text` over `networks` and returns whether it is a choice; parts may exclude each other.
fn is_choice<'n>(text: &str, seed: u64, networks: impl IntoIterator<Item = &'n Network>) -> bool {
    networks.into_iter().all(|network| match run(text, network, seed, 40) {
        Ok(_) => true,
        Err(SpecError::Conflict { .. }) => false,
        Err(error) => unreachable!("{text}: {error}"),
    })
}

#[test]
fn every_pair_conforms_with_lost_bytes_at_their_rank() {
    every_pair_conforms("rank");
}

#[test]
fn every_pair_conforms_with_lost_bytes_first() {
    every_pair_conforms("first");
}

/// Each pair over one network; each policy meets all of them.
fn every_pair_conforms(resend: &str) {
    let networks = networks();
    let (mut tried, mut choices) = (0, 0);
    for (row, stream) in registered(Layer::Stream).iter().enumerate() {
        for (column, path) in registered(Layer::Path).iter().enumerate() {
            let text = format!("stream={stream} path={path} resend={resend}");
            let network = &networks[(row + column) % networks.len()];
            choices += u64::from(is_choice(&text, tried, [network]));
            tried += 1;
        }
    }
    assert!(choices * 10 >= tried * 7, "{choices} of {tried} pairs");
}

/// Every variant of every policy, each in a choice that lets it show.
fn choices() -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (layer, rest) in [
        (Layer::Stream, "path=pats pack=many"),
        (Layer::Path, "stream=wrr"),
        (Layer::Joint, ""),
        (Layer::Resend, "stream=wrr path=ecf"),
        (Layer::Reinject, "path=ecf"),
        (Layer::Ack, "path=path-rr"),
        (Layer::Congestion, "path=pats"),
    ] {
        texts.extend(registered(layer).iter().map(|text| format!("{layer}={text} {rest}")));
    }
    texts
}

#[test]
fn every_policy_conforms_over_every_network() {
    let (texts, networks) = (choices(), networks());
    let tried = (0..).zip(&texts).filter(|(seed, text)| is_choice(text, *seed, &networks));
    assert!(tried.count() * 10 >= texts.len() * 7);
}

#[test]
fn every_policy_can_take_over_in_mid_run() {
    let texts: Vec<String> =
        choices().into_iter().filter(|text| Watch::new(text).is_ok()).collect();
    let others = ["stream=fifo path=redundant", "", "stream=wrr path=pats"];
    for (seed, text) in (0..).zip(&texts) {
        let other = others[seed as usize % others.len()];
        let successors = [text.clone(), other.to_owned(), text.clone()];
        for network in [2, 4, 5] {
            let accounts = run_with(other, &networks()[network], seed, 40, &successors).unwrap();
            assert_eq!(accounts.len(), 2, "the watch goes on from one policy to the next");
        }
    }
}

/// Names the events that a mock misses.
type Deaf = fn(&Event<'_>) -> bool;

/// What the mock is not told it cannot show, and then the policies decide something else.
#[test]
fn a_mock_that_misses_events_is_found_out() {
    let deaf: [(&str, Deaf, bool); 7] = [
        ("Opened", |event| matches!(event, Event::Opened(_)), true),
        ("Placed", |event| matches!(event, Event::Placed { .. }), true),
        ("Lost", |event| matches!(event, Event::Lost(_)), true),
        ("PathSuspect", |event| matches!(event, Event::PathSuspect(_)), true),
        // These policies ask the view for nothing of the rest.
        ("Acked", |event| matches!(event, Event::Acked(_)), false),
        ("Sent", |event| matches!(event, Event::Sent(_)), false),
        ("Tree", |event| matches!(event, Event::Tree(_)), false),
    ];
    for (name, deaf, decides) in deaf {
        let watch = Watch::new("stream=wrr path=pats").unwrap().with_deaf_mock(deaf);
        let (mut world, _) = meet(&watch, &networks()[4], 1, 40, &[]);
        world.run_until(at(10_000)).unwrap();
        let findings = watch.accounts().into_iter().flat_map(|account| account.findings);
        let findings: Vec<String> = findings.collect();
        let found = |sign: &str| findings.iter().any(|what| what.contains(sign));
        assert!(found("the mock"), "{name}: {findings:?}");
        assert!(!decides || found("decides"), "{name}: {findings:?}");
    }
}

#[test]
fn the_networks_bring_losses_suspicions_and_waits() {
    for (index, network) in networks().iter().enumerate() {
        let servers = (0..10).map(|seed| run("path=ecf", network, seed, 40).unwrap()[1].clone());
        let [mut requeued, mut waits, mut suspicions] = [0; 3];
        for server in servers {
            requeued += server.requeued;
            waits += server.waits;
            suspicions += server.suspicions;
        }
        assert!(requeued > 0, "network {index}");
        assert!(!(1..3).contains(&index) || waits > 0, "network {index}");
        assert!(!(3..5).contains(&index) || suspicions > 2, "network {index}: {suspicions}");
    }
}

#[test]
fn copies_come_from_those_that_declare_them() {
    let network = &networks()[2];
    let copies = |text| run(text, network, 5, 40).unwrap()[1].copies;
    assert_eq!(copies("path=minrtt"), 0);
    assert!(copies("path=redundant") > 0);
    assert!(copies("path=pats reinject=redundant") > 0);
}

#[test]
fn the_same_seed_gives_the_same_decisions() {
    let network = &networks()[4];
    for path in registered(Layer::Path) {
        let text = format!("stream=wrr path={path}");
        let accounts = run(&text, network, 5, 40).unwrap();
        assert_eq!(run(&text, network, 5, 40).unwrap(), accounts, "{text}");
        assert_ne!(run(&text, network, 6, 40).unwrap()[1].hash, accounts[1].hash, "{text}");
    }
}

#[test]
fn the_size_of_batches_never_changes_the_decisions() {
    let paths = registered(Layer::Path).into_iter().map(|path| format!("stream=dwrr path={path}"));
    let acks = registered(Layer::Ack).into_iter().map(|ack| format!("path=path-rr ack={ack}"));
    let texts: Vec<String> = paths.chain(acks).collect();
    for (index, network) in networks().iter().enumerate() {
        for text in &texts {
            let seed = index as u64;
            let hashes = [1, 40].map(|batch| {
                let accounts = run(text, network, seed, batch).unwrap();
                accounts.iter().map(|it| (it.hash, it.decisions)).collect::<Vec<_>>()
            });
            assert_eq!(hashes[0], hashes[1], "{text} over network {index}");
        }
    }
}
