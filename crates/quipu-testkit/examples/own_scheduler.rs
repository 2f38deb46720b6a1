//! A scheduler of one's own against the built-in ones: `cargo run --example own_scheduler`.
//!
//! `Reserve` is a path policy: it keeps to the path of lowest number, and uses another only while
//! more than a given number of bytes waits. Look at `select`, which is all that it takes, and at
//! the entry by which it has a name and a parameter, as in `path=reserve:above=200000`.

use std::error::Error;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Rate, Role, Seed};
use quipu_link::LinkConfig;
use quipu_policy::path::{eligible, rest_unless_stuck};
use quipu_policy::registry::{Confidence, Param};
use quipu_policy::seam::decision::Notes;
use quipu_policy::{
    BuildContext, Built, Choice, Entry, Layer, Parcel, PathPolicy, PolicySpec, Registry, View,
};
use quipu_quic::TransportConfig;
use quipu_quic::endpoint::PolicyFactory;
use quipu_testkit::{NodeConfig, Plan, QuicNode, Scenario, Tls, server_address};

struct Reserve {
    above: Bytes,
}

impl PathPolicy for Reserve {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        let much_waits = view.conn.unsent > self.above;
        let first = eligible(view.paths).next().map(|path| path.key);
        eligible(view.paths)
            .filter(|path| much_waits || Some(path.key) == first)
            .find(|path| path.is_open(view.now))
            .map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key))
    }
}

fn reserve() -> Entry {
    Entry {
        name: "reserve",
        layer: Layer::Path,
        about: "the first path; others only while much waits",
        params: vec![Param::integer("above", 100_000, (0, 1 << 40), "bytes that may wait")],
        source: "our choice",
        confidence: Confidence::High,
        build: |values, _| Ok(Built::path(Reserve { above: Bytes(values.integer("above")?) })),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::builtin();
    registry.add(reserve())?;
    let link = |mbit, millis| {
        LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(millis))
    };
    let scenario = Scenario::new(Plan::download(2_000_000), vec![link(20, 10), link(10, 25)]);

    println!("2 MB over 20 Mbit/s and 10 Mbit/s:");
    for path in ["single:id=0", "minrtt", "reserve", "reserve:above=1000000"] {
        let spec = PolicySpec::parse(&registry, &format!("path={path}"))?;
        let policies: PolicyFactory = Arc::new(move || {
            spec.build(&BuildContext::new(Seed::new(1))).expect("the choice was read above")
        });
        let node = |role| {
            Box::new(QuicNode::new(NodeConfig {
                role,
                local: scenario.addresses(role),
                server: server_address(),
                tls: Tls::Null { chain: 3_000 },
                transport: TransportConfig::default(),
                policies: Arc::clone(&policies),
                plan: scenario.plan,
                seed: scenario.peer_seed(role),
                actions: Vec::new(),
            }))
        };
        let outcome = scenario.run(node(Role::Client), node(Role::Server))?;
        let second = outcome.links.get(1).map_or(0, |(_, down)| down.offered.bytes.0);
        println!("  {path:22} {} with {second} B on the second path", outcome.finished_at);
    }
    Ok(())
}
