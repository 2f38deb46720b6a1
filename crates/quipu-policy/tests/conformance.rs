//! Every registered combination of policies stands the conformance suite on the mock engine.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use quipu_base::{Instant, PathId, Seed};
use quipu_policy::conformance::{Audit, FirstCome, Manner, Script, Step, Subject, check, run};
use quipu_policy::joint::{Pair, Reinjecting, Replan};
use quipu_policy::registry::{Built, Part, Registry};
use quipu_policy::{
    BuildContext, Decision, Joint, Layer, Pack, PolicySpec, ResendRules, StreamPolicy,
};

/// What is composed: names with parameters; an empty stream is [`FirstCome`].
#[derive(Clone, Copy, Debug)]
struct Choice {
    stream: &'static str,
    path: &'static str,
    /// Instead of a stream and a path policy, if not empty.
    joint: &'static str,
    reinject: &'static str,
    pack: Pack,
    resend: ResendRules,
}

const PLAIN: ResendRules = ResendRules::RANK;

const PATHS: [&str; 35] = [
    "minrtt",
    "minrtt:probe=0s",
    "path-rr",
    "path-rr:by=packets",
    "single",
    "single:id=1",
    "ecf",
    "ecf:beta=0,backlog=linux",
    "ecf:beta=100",
    "pats",
    "pats:bind=early",
    "pats:bind=early,rebind=false",
    "pats:lookahead=0.1",
    "pats:bind=literal",
    "redundant",
    "lowrtt",
    "lowrtt:dup_unprobed=false",
    "path-wrr",
    "path-wrr:by=bandwidth",
    "blest",
    "blest:lambda=50",
    "blest:estimate=linux",
    "otias",
    "otias:rebind=true,lookahead=0.2",
    "stms",
    "dems",
    "dems:tail=1",
    "dems:tail=0",
    "backup",
    "backup:standby=open",
    "backup:standby=last",
    "rap",
    "peekaboo",
    "peekaboo:epsilon_wait=1,epsilon_send=1,discount=0.9",
    "peekaboo:alpha=0,epsilon_send=0.5",
];

const REINJECTS: [&str; 10] = [
    "redundant",
    "redundant:urgency=1",
    "xlink",
    "xlink:order=append",
    "xlink:order=frame",
    "xlink:mode=deadline",
    "xlink:mode=deadline,standby=true,original=true",
    "xlink:mode=rest,standby=true",
    "unprobed",
    "tail:most=1",
];

const RESENDS: [&str; 8] = [
    "rank",
    "rank:avoid_after=0",
    "rank:path=open,avoid_after=0",
    "first",
    "first:path=open",
    "mp-quic",
    "xquic",
    "picoquic",
];

const JOINTS: [&str; 28] = [
    "sa-ecf",
    "sa-ecf:mode=as-built",
    "sa-ecf:pin=true,beta=0.8",
    "sa-ecf:mode=as-built,pin=true",
    "sa-ecf:visits=2,beta=100",
    "srpt-ecf",
    "srpt-ecf:visits=1,beta=100",
    "pw-pats",
    "pw-pats:alpha=0,s_min=0",
    "pw-pats:pw_share=3,s_min=2",
    "pw-pats:bind=early",
    "pw-pats:bind=literal",
    "hbes",
    "hbes:order=wrr",
    "hbes:rebind=true",
    "hbes:stay=true",
    "sec",
    "sec:unknown=buffered",
    "sec:queue=paper,unknown=buffered",
    "sec:clamp=paper,unknown=buffered",
    "sec:delay_term=arrival,bandwidth=rate,unknown=buffered",
    "sec:quotas=fixed,unknown=buffered",
    "pstream",
    "pstream:bandwidth=rate",
    "fstream",
    "fstream:bandwidth=rate",
    "ms-hs",
    "ms-hs:critical=5,bandwidth=rate",
];

fn build(layer: Layer, text: &str) -> Built {
    build_with(layer, text, PLAIN)
}

fn build_with(layer: Layer, text: &str, resend: ResendRules) -> Built {
    let part = Part::read(&Registry::builtin(), layer, text).expect("a known policy");
    let mut context = BuildContext::new(Seed::new(1));
    context.resend = resend;
    part.build(&mut context).expect("it builds")
}

impl Choice {
    const fn of_path(path: &'static str) -> Self {
        Choice { stream: "", path, joint: "", reinject: "", pack: Pack::One, resend: PLAIN }
    }

    const fn of_joint(joint: &'static str) -> Self {
        Choice { joint, ..Choice::of_path("") }
    }

    fn subject(&self) -> Subject {
        if !self.joint.is_empty() {
            return self.joint_subject();
        }
        let mut resend = self.resend;
        let stream: Box<dyn StreamPolicy> = match self.stream {
            "" => Box::new(FirstCome::default()),
            name => {
                let built = build(Layer::Stream, name);
                resend.first |= built.lost_first;
                built.stream.expect("a stream policy")
            }
        };
        let path = build(Layer::Path, self.path);
        let reinject = match self.reinject {
            "" => path.reinject,
            name => build(Layer::Reinject, name).reinject,
        };
        let audit = Audit::default();
        let pair =
            Pair::new(audit.watch(stream), path.path.expect("a path policy"), resend, self.pack);
        let copies = reinject.is_some();
        let joint: Box<dyn Joint> = match reinject {
            Some(reinject) => Box::new(Reinjecting::new(Box::new(pair), reinject)),
            None => Box::new(pair),
        };
        Subject { joint, audit: Some(audit), copies }
    }

    fn joint_subject(&self) -> Subject {
        let built = build_with(Layer::Joint, self.joint, self.resend);
        let joint = built.joint.expect("a joint policy");
        match self.reinject {
            "" => Subject { joint, audit: None, copies: false },
            name => {
                let copies = build(Layer::Reinject, name).reinject.expect("a reinjection policy");
                let joint = Box::new(Reinjecting::new(joint, copies));
                Subject { joint, audit: None, copies: true }
            }
        }
    }

    /// Whether new data stay off backup paths while an available path is open. Three policies promise
    /// otherwise: `single` names its path, `backup` ranks quality before status unless a standby path
    /// is the last resort, and `rap` looks at no status.
    fn spares_backups(&self) -> bool {
        !self.path.starts_with("single")
            && !["backup", "backup:standby=open", "rap"].contains(&self.path)
    }

    /// The choice stands the script.
    fn stands(&self, script: &Script) -> Result<(), TestCaseError> {
        let report = check(&|| self.subject(), script);
        let first = &report.faults[..report.faults.len().min(8)];
        prop_assert!(first.is_empty(), "{self:?}: {first:#?}");
        prop_assert_eq!((report.refused, report.overridden), (0, 0));
        if self.spares_backups() {
            prop_assert_eq!(report.on_backup, 0, "{:?} uses a backup path", self);
        }
        Ok(())
    }

    fn stands_scripts(&self, cases: u32) {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, deterministic());
        let result = runner.run(&scripts(), |script| self.stands(&script));
        let fault = result.err().map_or_else(String::new, |error| error.to_string());
        assert!(fault.is_empty(), "{fault}");
    }
}

fn deterministic() -> TestRng {
    TestRng::deterministic_rng(RngAlgorithm::ChaCha)
}

/// A step made of numbers that shrink towards the plainest step.
fn step() -> impl Strategy<Value = Step> {
    prop::collection::vec(any::<u32>(), 6).prop_map(|numbers| {
        let mut numbers = numbers.into_iter();
        Step::draw(&mut |bound| numbers.next().unwrap_or(0) % bound)
    })
}

fn scripts() -> impl Strategy<Value = Script> {
    let paths = prop_oneof![Just(1u8), Just(2), Just(3), Just(8)];
    let credit = prop::sample::select(&Script::CREDITS);
    let backlog = prop::sample::select(&Script::BACKLOGS);
    let steps = prop::collection::vec(step(), 1..90);
    (paths, credit, backlog, steps).prop_map(|(paths, credit, backlog, steps)| Script {
        paths,
        credit,
        backlog,
        steps,
    })
}

const STREAMS: [&str; 23] = [
    "rr",
    "rr:unit=frame",
    "fifo",
    "fifo:retx_first=false",
    "pfifo",
    "pfifo:retx_first=true",
    "edf",
    "edf:retx_first=true",
    "rfc9218",
    "rfc9218:mixed=fair,starvation_guard=true",
    "strict",
    "strict:by=urgency",
    "srpt",
    "srpt:aging=true,horizon=50ms",
    "sjf",
    "fsp",
    "wrr:mode=fluid",
    "wrr:mode=quantum",
    "swrr:mode=scaled",
    "swrr:mode=as-published",
    "swrr:mode=smooth",
    "dwrr:mode=paper",
    "dwrr:mode=code",
];

#[test]
fn every_stream_policy_conforms_with_plans_and_without() {
    for stream in STREAMS {
        for (path, pack) in [("minrtt", Pack::Many), ("pats", Pack::One), ("pats", Pack::Many)] {
            let choice = Choice { stream, pack, ..Choice::of_path(path) };
            choice.stands_scripts(16);
        }
    }
}

#[test]
fn every_rule_of_sending_again_conforms() {
    for text in RESENDS {
        let resend = build(Layer::Resend, text).resend.expect("a rule of sending again");
        for path in ["minrtt", "ecf", "pats", "stms", "backup"] {
            Choice { resend, ..Choice::of_path(path) }.stands_scripts(16);
        }
        for joint in ["sa-ecf", "sec", "hbes"] {
            Choice { resend, ..Choice::of_joint(joint) }.stands_scripts(8);
        }
    }
}

#[test]
fn copies_conform_beside_any_path_policy() {
    for reinject in REINJECTS {
        for path in ["ecf", "pats", "path-rr", "single", "backup"] {
            for pack in [Pack::One, Pack::Many] {
                let choice = Choice { reinject, pack, ..Choice::of_path(path) };
                choice.stands_scripts(8);
            }
        }
        let resend = ResendRules::PICOQUIC;
        Choice { reinject, resend, ..Choice::of_path("minrtt") }.stands_scripts(16);
    }
}

#[test]
fn a_policy_with_the_rows_of_other_stacks_can_be_named() {
    for text in [
        "path=lowrtt resend=mp-quic",
        "path=backup:standby=open resend=xquic reinject=xlink:mode=deadline,standby=true",
        "path=rap resend=xquic reinject=xlink:mode=rest,original=true",
        "path=path-rr resend=picoquic",
        "path=minrtt resend=rank",
    ] {
        let spec = PolicySpec::parse(&Registry::builtin(), text).expect(text);
        assert!(spec.to_string().contains(text.split(' ').next_back().unwrap()), "{spec}");
    }
}

#[test]
fn policies_that_do_not_spare_backup_paths_use_them() {
    let script = |number| Script::random(Seed::new(number), 3, 60);
    let manner = Manner { batch: 40, twice: false };
    for path in ["single:id=1", "backup:standby=open", "rap"] {
        let choice = Choice::of_path(path);
        assert!(!choice.spares_backups());
        let on_backup = |number| run(&|| choice.subject(), &script(number), manner).on_backup;
        assert!((0..100).map(on_backup).sum::<u64>() > 0, "{path} spares them after all");
    }
}

#[test]
fn every_path_policy_conforms() {
    for path in PATHS {
        Choice::of_path(path).stands_scripts(80);
    }
}

#[test]
fn every_joint_policy_conforms() {
    for joint in JOINTS {
        Choice::of_joint(joint).stands_scripts(80);
        let resend = ResendRules { first: true, ..PLAIN };
        Choice { resend, ..Choice::of_joint(joint) }.stands_scripts(16);
        Choice { reinject: "redundant", ..Choice::of_joint(joint) }.stands_scripts(16);
    }
}

/// The walk over all pending bytes before every packet, which the kept plans stand for.
fn literal_walk(choice: Choice) -> Subject {
    let path = build(Layer::Path, choice.path).path.expect("a path policy");
    let stream = Box::new(FirstCome::default());
    let pair = Pair::new(stream, path, choice.resend, choice.pack).with_replan(Replan::Always);
    Subject { joint: Box::new(pair), audit: None, copies: false }
}

#[test]
fn a_thousand_streams_conform() {
    let open = Step::Open { urgency: 3, incremental: false, credit: 60_000 };
    let opens = std::iter::repeat_n(open, 1_000);
    let writes = (0..=255).map(|stream| Step::Write { stream, bytes: 2_000 });
    let steps = opens.chain(writes).chain([Step::Trickle { packets: 200 }]).collect();
    let script = Script { paths: 2, credit: 10_000_000, backlog: 0, steps };
    let pairs = ["minrtt", "pats"].map(|path| Choice { stream: "rr", ..Choice::of_path(path) });
    for choice in pairs.into_iter().chain(JOINTS.map(Choice::of_joint)) {
        let report = run(&|| choice.subject(), &script, Manner { batch: 40, twice: false });
        assert_eq!(report.faults, Vec::<String>::new());
    }
}

/// Packets of stream data by path, and when the last byte was delivered.
fn outcome(subject: &dyn Fn() -> Subject, script: &Script) -> ([usize; 3], Instant) {
    let report = run(subject, script, Manner { batch: 40, twice: false });
    assert_eq!(report.faults, Vec::<String>::new());
    let on = |id: u32| {
        let sends = report.decisions.iter().filter(
            |decision| matches!(decision, Decision::Send { path, .. } if path.id == PathId(id)),
        );
        sends.count()
    };
    ([0, 1, 2].map(on), report.ended_at)
}

#[test]
fn kept_plans_place_like_the_literal_walk_while_no_estimate_moves() {
    let choice = Choice::of_path("pats");
    let windows = (0..3).map(|path| Step::Window { path, packets: 200 });
    let steps = windows.chain([Step::Pass { ms: 2_000 }]).collect();
    let script = Script { paths: 3, credit: 100_000_000, backlog: 3_000_000, steps };
    let (kept, kept_end) = outcome(&|| choice.subject(), &script);
    let (walked, walked_end) = outcome(&|| literal_walk(choice), &script);
    for (kept, walked) in kept.into_iter().zip(walked) {
        assert!(kept.abs_diff(walked) <= 2, "{kept} packets, not {walked}");
    }
    assert_eq!(kept_end, walked_end);
}

#[test]
fn kept_plans_end_like_the_literal_walk_while_windows_grow() {
    let choice = Choice::of_path("pats");
    for backlog in [60_000, 300_000, 1_000_000] {
        let steps = vec![Step::Finish { stream: 0 }, Step::Finish { stream: 1 }];
        let script = Script { paths: 3, credit: 100_000_000, backlog, steps };
        let (_, kept) = outcome(&|| choice.subject(), &script);
        let (_, walked) = outcome(&|| literal_walk(choice), &script);
        let difference = kept.as_nanos().abs_diff(walked.as_nanos());
        assert!(difference <= walked.as_nanos() / 8, "{kept}, not {walked}");
    }
}

#[test]
fn the_literal_walk_conforms() {
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new_with_rng(config, deterministic()).run(&scripts(), |script| {
        let faults = check(&|| literal_walk(Choice::of_path("pats")), &script).faults;
        prop_assert_eq!(faults, Vec::<String>::new());
        Ok(())
    });
    let fault = result.err().map_or_else(String::new, |error| error.to_string());
    assert!(fault.is_empty(), "{fault}");
}

#[test]
fn every_registered_policy_is_tried() {
    for (layer, texts) in [
        (Layer::Path, &PATHS[..]),
        (Layer::Stream, &STREAMS),
        (Layer::Joint, &JOINTS),
        (Layer::Reinject, &REINJECTS),
        (Layer::Resend, &RESENDS),
    ] {
        for entry in Registry::builtin().of(layer) {
            let tried = |text: &&str| text.split(':').next() == Some(entry.name);
            assert!(texts.iter().any(tried), "{layer} policy {} is not tried", entry.name);
        }
    }
}
