//! Random trials keep every rule.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use quipu_base::Role;
use quipu_policy::registry::Layer;
use quipu_policy::{PolicySpec, Registry};
use quipu_testkit::forge::Allocated;
use quipu_testkit::trial::{Direction, Edit, Op, PathSetup, Trial};

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::builtin);

fn end() -> impl Strategy<Value = Role> {
    select(vec![Role::Client, Role::Server])
}

/// A policy of a layer by name, or the layer's default.
fn policy(layer: Layer) -> impl Strategy<Value = Option<String>> {
    let names: Vec<String> =
        REGISTRY.of(layer).map(|entry| format!("{layer}={}", entry.name)).collect();
    if names.is_empty() { Just(None).boxed() } else { proptest::option::of(select(names)).boxed() }
}

/// Any choice of policies that go together.
fn policies() -> impl Strategy<Value = String> {
    let layers = [
        Layer::Stream,
        Layer::Path,
        Layer::Pack,
        Layer::Resend,
        Layer::Reinject,
        Layer::Ack,
        Layer::Congestion,
    ];
    let pair = layers.map(policy).prop_filter_map("policies that go together", |parts| {
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        PolicySpec::parse(&REGISTRY, &text).ok().map(|_| text)
    });
    let joint = policy(Layer::Joint).prop_map(Option::unwrap_or_default);
    prop_oneof![4 => pair, 1 => joint]
}

fn path() -> impl Strategy<Value = PathSetup> {
    let rate = select(vec![10, 2, 50]);
    let delay = select(vec![10, 1, 40, 100]);
    let up = select(vec![0, 0, 50]);
    let loss = select(vec![0, 0, 10, 50, 100]);
    (rate, delay, up, loss, any::<bool>()).prop_map(|(mbit, delay, up, loss, disorder)| PathSetup {
        mbit,
        delay,
        up,
        loss,
        disorder,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let node = 0u64..6;
    let weight = select(vec![16, 1, 256, 100]);
    let back = 0usize..4;
    prop_oneof![
        (1u64..6, node.clone(), weight.clone(), any::<bool>())
            .prop_map(|(node, parent, weight, alone)| Edit::Insert(node, parent, weight, alone)),
        (1u64..6, node.clone(), weight.clone(), any::<bool>())
            .prop_map(|(node, parent, weight, alone)| Edit::Move(node, parent, weight, alone)),
        (1u64..6, weight).prop_map(|(node, weight)| Edit::Weight(node, weight)),
        (1u64..6).prop_map(Edit::Remove),
        (node, back.clone()).prop_map(|(node, back)| Edit::Attach(node, back)),
        (back.clone(), 0u8..8, any::<bool>())
            .prop_map(|(back, urgency, whole)| Edit::Urgency(back, urgency, whole)),
        (back.clone(), 0u64..500).prop_map(|(back, millis)| Edit::Deadline(back, millis)),
        (back, 0u64..200_000).prop_map(|(back, size)| Edit::Size(back, size)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let back = 0usize..4;
    let link = 0usize..4;
    let direction = select(vec![Direction::Both, Direction::Up, Direction::Down]);
    prop_oneof![
        8 => (end(), any::<bool>()).prop_map(|(end, one_way)| Op::Open(end, one_way)),
        14 => (end(), back.clone(), select(vec![0, 1, 1000, 10_000, 100_000]))
            .prop_map(|(end, back, len)| Op::Write(end, back, len)),
        3 => (end(), back.clone()).prop_map(|(end, back)| Op::Finish(end, back)),
        2 => (end(), back.clone()).prop_map(|(end, back)| Op::Reset(end, back)),
        2 => (end(), back.clone()).prop_map(|(end, back)| Op::Stop(end, back)),
        2 => (end(), back.clone()).prop_map(|(end, back)| Op::Pause(end, back)),
        2 => (end(), back.clone()).prop_map(|(end, back)| Op::Resume(end, back)),
        1 => (end(), back).prop_map(|(end, back)| Op::Control(end, back)),
        2 => (end(), 1u64..40, select(vec![0, 100, 1000, 1140, 1400]))
            .prop_map(|(end, count, length)| Op::Datagrams(end, count, length)),
        6 => (end(), edit()).prop_map(|(end, edit)| Op::Priority(end, edit)),
        2 => link.clone().prop_map(Op::OpenPath),
        1 => (end(), link.clone()).prop_map(|(end, nth)| Op::Abandon(end, nth)),
        1 => (end(), link.clone(), any::<bool>())
            .prop_map(|(end, nth, spared)| Op::Backup(end, nth, spared)),
        3 => (link, direction, select(vec![0, 10, 200]), select(vec![100, 10, 1000, 3000]))
            .prop_map(|(link, way, wait, millis)| Op::Outage(link, way, wait, Some(millis))),
        1 => end().prop_map(Op::UpdateKeys),
        2 => (end(), 0usize..4, select(vec![100, 10, 1000]))
            .prop_map(|(end, link, millis)| Op::Block(end, link, millis)),
        1 => (end(), select(vec![10, 300, 5000])).prop_map(|(end, millis)| Op::Leap(end, millis)),
        1 => (end(), select(vec![10, 300, 2000])).prop_map(|(end, millis)| Op::Stand(end, millis)),
        2 => (end(), policies()).prop_map(|(end, text)| Op::Policies(end, text)),
        12 => select(vec![10, 1, 100, 700]).prop_map(Op::Advance),
    ]
}

fn trial() -> impl Strategy<Value = Trial> {
    let ops =
        (vec(op(), 0..50), proptest::option::weighted(0.1, end())).prop_map(|(mut ops, close)| {
            ops.extend(close.map(Op::Close));
            ops
        });
    (
        vec(path(), 1..=4),
        select(vec![6_000, 20, 3]),
        select(vec![15_000, 50, 4]),
        select(vec![100, 2]),
        [policies(), policies()],
        (select(vec![usize::MAX, 1]), any::<bool>()),
        select(vec![400, 0, 50]),
        ops,
    )
        .prop_map(|(paths, stream, connection, streams, policies, outbox, begin, ops)| Trial {
            stream_window: stream,
            connection_window: connection,
            max_streams: streams,
            policies,
            batch: outbox.0,
            ack_requests: outbox.1,
            begin,
            ..Trial::new(paths).with_ops(ops)
        })
}

proptest! {
    #[test]
    fn whatever_happens_streams_arrive_books_balance_and_all_comes_to_rest(trial in trial()) {
        if let Err(violation) = trial.run() {
            return Err(TestCaseError::fail(format!("{violation}\n{trial:?}")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_size_of_batches_changes_no_datagram(trial in trial()) {
        let whole = Trial { batch: usize::MAX, ..trial.clone() }.run();
        let single = Trial { batch: 1, ..trial.clone() }.run();
        let traces = [whole, single].map(|run| run.map(|report| report.trace));
        prop_assert_eq!(&traces[0], &traces[1], "{:?}", trial);
    }
}

fn counted(work: &mut dyn FnMut()) -> Allocated {
    let info = allocation_counter::measure(work);
    Allocated { held: info.bytes_current, peak: info.bytes_max, count: info.count_total }
}

/// Seeds that once broke a rule.
const FOUND: [u64; 28] = [
    1_080, 2_762, 82_279, 95_197, 115_236, 117_771, 131_565, 133_065, 150_586, 151_734, 153_674,
    157_428, 165_608, 175_569, 178_268, 182_552, 185_895, 240_547, 254_542, 273_582, 314_648,
    353_705, 383_433, 412_524, 424_348, 476_529, 523_673, 542_664,
];

/// A slice of what the example `scripts` runs for long.
#[test]
fn scripts_of_seeds_keep_every_rule() {
    for seed in (0..150).chain(FOUND) {
        let trial = Trial::of_seed(seed);
        if let Err(broken) = trial.try_run_metered(counted) {
            panic!("seed {seed}: {broken}\n{:#?}", trial.shrunken(&broken));
        }
    }
}
