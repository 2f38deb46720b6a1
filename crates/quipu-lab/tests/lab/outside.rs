//! The seam is enough: policies written outside the library, from what it exports, do what the
//! built-in ones do, packet by packet. None of those reaches around the seam.

use std::collections::BTreeSet;

use quipu_lab::batch::run;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::policies::Registry;
use quipu_lab::policy::joint::{Planned, Planner};
use quipu_lab::policy::path::{IdleProbe, eligible, rest_unless_stuck};
use quipu_lab::policy::registry::{Build, Confidence};
use quipu_lab::policy::{
    Built, Choice, Entry, Event, Kind, Layer, Notes, Parcel, PathKey, PathPolicy, StreamKey,
    StreamPolicy, Turn, View,
};
use quipu_record::RunRecord;
use quipu_scenario::{Scenario, find_network};

/// `pfifo`: the ready stream of least identifier.
#[derive(Default)]
struct Numbers(BTreeSet<StreamKey>);

impl Numbers {
    fn note(&mut self, event: &Event<'_>) {
        match *event {
            Event::Ready(stream) => {
                self.0.insert(stream);
            }
            Event::Stopped(stream) | Event::Closed(stream) => {
                self.0.remove(&stream);
            }
            _ => {}
        }
    }

    fn turn(&self) -> Option<Turn> {
        self.0.iter().min_by_key(|stream| stream.id).copied().map(Turn::unlimited)
    }
}

impl StreamPolicy for Numbers {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        self.turn()
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.note(event);
    }

    fn on_taken(&mut self, _turn: Turn, _kind: Kind, _view: &View<'_>) {}

    fn on_returned(&mut self, _turn: Turn, _view: &View<'_>) {}
}

/// `minrtt`: the open path of least round-trip time, idle paths probed.
#[derive(Default)]
struct Nearest(IdleProbe);

impl PathPolicy for Nearest {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        eligible(view.paths)
            .filter(|path| path.is_open(view.now))
            .min_by_key(|path| match path.srtt {
                Some(srtt) => (false, srtt.as_nanos(), path.key),
                None => (true, path.packets_sent, path.key),
            })
            .map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key))
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.0.on_event(event);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.0.due(view)
    }
}

/// Both in one.
#[derive(Default)]
struct Both(Numbers, Nearest);

impl PathPolicy for Both {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        self.1.select(parcel, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.0.note(event);
        self.1.on_event(event, view);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.1.probe(view)
    }
}

impl Planner for Both {
    fn next(&mut self, _: Option<PathKey>, _: &View<'_>, _: &mut Notes) -> Option<Turn> {
        self.0.turn()
    }
}

fn registry() -> Registry {
    let mut registry = Registry::builtin();
    let entry = |layer, build: Build| Entry {
        name: "own",
        layer,
        about: "a policy from outside",
        formula: "none: only the seam is tried",
        params: Vec::new(),
        source: "our choice",
        confidence: Confidence::High,
        build,
    };
    let own = [
        entry(Layer::Stream, &|_, _| Ok(Built::stream(Numbers::default()))),
        entry(Layer::Path, &|_, _| Ok(Built::path(Nearest::default()))),
        entry(Layer::Joint, &|_, context| {
            Ok(Built::joint(Planned::of(Both::default(), context.resend, context.pack)))
        }),
    ];
    for entry in own {
        registry.add(entry).unwrap();
    }
    registry
}

/// Asks for a PING on the first path whenever it is asked.
struct Prober;

impl PathPolicy for Prober {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        Nearest::default().select(parcel, view, notes)
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        view.paths.iter().next().map(|path| path.key)
    }
}

#[test]
fn a_policy_that_probes_for_ever_ends_its_run_with_counted_refusals() {
    let mut registry = registry();
    let about = "a policy that probes for ever";
    let entry = registry.get(Layer::Path, "own").unwrap().clone();
    registry
        .add(Entry { name: "prober", about, build: &|_, _| Ok(Built::path(Prober)), ..entry })
        .unwrap();
    let mut scenario = Scenario {
        pages: vec!["framework-youtube".to_owned()],
        networks: vec![find_network("wifi+lte-lossy").unwrap()],
        ..Scenario::default()
    };
    scenario.policies.stream = vec!["pfifo".to_owned()];
    scenario.policies.path = vec!["prober".to_owned(), "minrtt".to_owned()];
    scenario.policies.baselines = false;
    let plan = Plan::with_registry(scenario, &registry).unwrap();
    let record = |policy| run(&plan, Cell { page: 0, network: 0, policy, run: 0 }).unwrap();
    let (probing, usual) = (record(0), record(1));
    assert!(probing.refused > 100 && probing.overridden > 100, "{}", probing.refused);
    assert_eq!((usual.refused, usual.overridden), (0, 0));
    // A PING on the way of each packet, at most.
    let packets =
        |record: &RunRecord| -> u64 { record.paths.iter().map(|path| path.packets_sent).sum() };
    assert!(packets(&probing) < 4 * packets(&usual), "{} packets", packets(&probing));
}

#[test]
fn policies_from_outside_decide_like_the_built_in_ones() {
    for network in ["wifi+lte-lossy", "mobileh2-high-lossy", "pwpats-three"] {
        let mut scenario = Scenario {
            pages: vec!["framework-youtube".to_owned()],
            browser: "firefox".to_owned(),
            networks: vec![find_network(network).unwrap()],
            ..Scenario::default()
        };
        let names = |list: [&str; 2]| list.map(str::to_owned).to_vec();
        scenario.policies.stream = names(["pfifo", "own"]);
        scenario.policies.path = names(["minrtt", "own"]);
        scenario.policies.joint = vec!["own".to_owned()];
        scenario.policies.baselines = false;
        let plan = Plan::with_registry(scenario, &registry()).unwrap();
        let rows = &plan.networks[0].policies;
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["pfifo + minrtt", "own + minrtt", "pfifo + own", "own + own", "own"]);
        for number in 0..3 {
            let record = |policy| {
                let cell = Cell { page: 0, network: 0, policy, run: number };
                run(&plan, cell).unwrap()
            };
            let built_in = record(0);
            for (policy, label) in labels.iter().enumerate().skip(1) {
                assert_eq!(record(policy), built_in, "{label} over {network}");
            }
        }
    }
}
