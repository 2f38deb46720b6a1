//! What every stream policy must stand, on random scripts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_base::{Duration, Instant};

use super::testing::Driver;
use super::*;
use crate::priority::{NodeId, Priority, PriorityEdit};
use crate::registry::{Layer, Part, Registry};
use crate::seam::view::StreamView;

/// Every stream policy in every mode.
const POLICIES: [&str; 22] = [
    "rr",
    "rr:unit=frame",
    "fifo",
    "pfifo",
    "edf",
    "edf:latency=1ms",
    "rfc9218",
    "rfc9218:mixed=fair",
    "rfc9218:starvation_guard=true",
    "strict",
    "strict:by=urgency",
    "srpt",
    "srpt:aging=true,horizon=2ms",
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

/// Those that restore a turn exactly though its round has ended.
const EXACT: [&str; 15] = [
    "rr",
    "fifo",
    "pfifo",
    "edf",
    "rfc9218",
    "rfc9218:mixed=fair",
    "rfc9218:starvation_guard=true",
    "strict",
    "srpt",
    "sjf",
    "fsp",
    "wrr:mode=fluid",
    "wrr:mode=quantum",
    "swrr:mode=smooth",
    "dwrr:mode=code",
];

fn build(text: &str) -> Box<dyn StreamPolicy> {
    let part = Part::read(&Registry::builtin(), Layer::Stream, text).unwrap();
    let mut context = crate::BuildContext::new(quipu_base::Seed::new(1));
    part.build(&mut context).unwrap().stream.unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Open {
        parent: u64,
        weight: u16,
        bytes: u64,
        size: Option<u64>,
    },
    Write {
        stream: usize,
        bytes: u64,
        fin: bool,
    },
    Block(usize),
    Unblock(usize),
    Close(usize),
    Send(usize),
    /// Takes some turns as plans and gives the newest of them back.
    Plan {
        take: usize,
        give_back: usize,
    },
    Lose(usize),
    Urgency {
        stream: usize,
        urgency: u8,
        incremental: bool,
    },
    Latency {
        stream: usize,
        micros: u64,
    },
    Size {
        stream: usize,
        size: u64,
    },
    Attach {
        stream: usize,
        to: usize,
    },
    Remove(usize),
    Node {
        node: u64,
        parent: u64,
        weight: u16,
        exclusive: bool,
    },
    Weight {
        stream: usize,
        weight: u16,
    },
    Move {
        stream: usize,
        parent: u64,
        exclusive: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let weight = || prop_oneof![Just(16u16), 1..=256u16];
    let stream = || 0..8usize;
    prop_oneof![
        6 => (0..4u64, weight(), 0..9_000u64, prop::option::of(0..20_000u64))
            .prop_map(|(parent, weight, bytes, size)| Step::Open { parent, weight, bytes, size }),
        3 => (stream(), 0..5_000u64, any::<bool>())
            .prop_map(|(stream, bytes, fin)| Step::Write { stream, bytes, fin }),
        3 => stream().prop_map(Step::Block),
        3 => stream().prop_map(Step::Unblock),
        1 => stream().prop_map(Step::Close),
        6 => (1..8usize).prop_map(Step::Send),
        3 => (1..8usize, 1..8usize).prop_map(|(take, give_back)| Step::Plan { take, give_back }),
        3 => stream().prop_map(Step::Lose),
        2 => (stream(), 0..8u8, any::<bool>()).prop_map(
            |(stream, urgency, incremental)| Step::Urgency { stream, urgency, incremental }
        ),
        1 => (stream(), 0..3_000u64).prop_map(|(stream, micros)| Step::Latency { stream, micros }),
        1 => (stream(), 0..20_000u64).prop_map(|(stream, size)| Step::Size { stream, size }),
        1 => (stream(), stream()).prop_map(|(stream, to)| Step::Attach { stream, to }),
        1 => stream().prop_map(Step::Remove),
        2 => (1..4u64, 0..4u64, weight(), any::<bool>()).prop_map(
            |(node, parent, weight, exclusive)| Step::Node { node, parent, weight, exclusive }
        ),
        2 => (stream(), weight()).prop_map(|(stream, weight)| Step::Weight { stream, weight }),
        2 => (stream(), 0..4u64, any::<bool>())
            .prop_map(|(stream, parent, exclusive)| Step::Move { stream, parent, exclusive }),
    ]
}

/// Streams by identifier, as the script knows them.
#[derive(Default)]
struct Known {
    live: BTreeMap<u64, bool>,
    opened: u64,
    /// What was written to each stream: end and deadline of each chunk, latency 1 ms by default.
    chunks: BTreeMap<u64, Vec<(u64, Instant)>>,
    /// Last span sent of each stream, which may be lost once.
    sent: BTreeMap<u64, (u64, u64)>,
}

fn known_node(driver: &Driver<Box<dyn StreamPolicy>>, node: u64) -> NodeId {
    match driver.priorities.key(NodeId(node)) {
        Some(_) => NodeId(node),
        None => NodeId::ROOT,
    }
}

impl Known {
    fn nth(&self, index: usize) -> Option<u64> {
        self.live.keys().copied().nth(index)
    }

    fn run(&mut self, driver: &mut Driver<Box<dyn StreamPolicy>>, step: &Step) {
        match *step {
            Step::Open { parent, weight, bytes, size } => {
                let id = self.opened * 4;
                self.opened += 1;
                self.live.insert(id, false);
                let key = driver.create(id, size);
                // One in four has no node of its own.
                if parent > 0 {
                    let (node, parent) = (NodeId(1_000 + id), known_node(driver, parent));
                    let insert = PriorityEdit::Insert { node, parent, weight, exclusive: false };
                    driver.edit(&insert, None);
                    driver.edit(&PriorityEdit::Attach { node, stream: key.id }, Some(key));
                }
                if bytes > 0 {
                    self.write(driver, id, bytes, false);
                }
            }
            Step::Write { stream, bytes, fin } => {
                let Some(id) = self.nth(stream).filter(|id| !self.live[id]) else { return };
                self.live.insert(id, fin);
                self.write(driver, id, bytes, fin);
            }
            Step::Block(stream) => self.nth(stream).into_iter().for_each(|id| driver.block(id)),
            Step::Unblock(stream) => self.nth(stream).into_iter().for_each(|id| driver.unblock(id)),
            Step::Close(stream) => {
                let Some(id) = self.nth(stream) else { return };
                self.live.remove(&id);
                self.sent.remove(&id);
                driver.close(id);
            }
            Step::Send(packets) => {
                for _ in 0..packets {
                    self.send(driver);
                }
            }
            Step::Plan { take, give_back } => {
                let mut plans: Vec<_> = (0..take).map_while(|_| driver.plan(1_200)).collect();
                // Lost bytes are never planned.
                let lost = plans.iter().any(|taken| taken.class != crate::Class::Fresh);
                for _ in 0..if lost { 0 } else { give_back } {
                    let Some(taken) = plans.pop() else { break };
                    driver.give_back(taken);
                }
                for taken in plans {
                    driver.place(taken);
                    self.note(taken);
                }
            }
            Step::Lose(stream) => {
                let Some(id) = self.nth(stream) else { return };
                if let Some((start, end)) = self.sent.remove(&id) {
                    driver.lose(id, start, end);
                }
            }
            Step::Urgency { stream, urgency, incremental } => {
                let Some(id) = self.nth(stream) else { return };
                let priority = driver.priority(id);
                driver.set_priority(id, Priority { urgency, incremental, ..priority });
            }
            Step::Latency { stream, micros } => {
                let Some(id) = self.nth(stream) else { return };
                let latency = Some(Duration::from_micros(micros));
                driver.set_priority(id, Priority { latency, ..driver.priority(id) });
            }
            Step::Size { stream, size } => {
                self.nth(stream).into_iter().for_each(|id| driver.set_size(id, size));
            }
            Step::Attach { stream, to } => {
                let (Some(id), Some(to)) = (self.nth(stream), self.nth(to)) else { return };
                let (node, key) = (NodeId(1_000 + to), driver.key(id));
                if driver.priorities.key(node).is_some() {
                    driver.edit(&PriorityEdit::Attach { node, stream: key.id }, Some(key));
                }
            }
            Step::Remove(stream) => {
                let Some(node) = self.nth(stream).map(|id| NodeId(1_000 + id)) else { return };
                if driver.priorities.key(node).is_some() {
                    driver.edit(&PriorityEdit::Remove { node }, None);
                }
            }
            Step::Node { node, parent, weight, exclusive } => {
                if driver.priorities.key(NodeId(node)).is_none() {
                    let (node, parent) = (NodeId(node), known_node(driver, parent));
                    driver.edit(&PriorityEdit::Insert { node, parent, weight, exclusive }, None);
                }
            }
            Step::Weight { stream, weight } => {
                let Some(node) = self.nth(stream).map(|id| NodeId(1_000 + id)) else { return };
                if driver.priorities.key(node).is_some() {
                    driver.edit(&PriorityEdit::Weight { node, weight }, None);
                }
            }
            Step::Move { stream, parent, exclusive } => {
                let Some(node) = self.nth(stream).map(|id| NodeId(1_000 + id)) else { return };
                if driver.priorities.key(node).is_some() {
                    let parent = known_node(driver, parent);
                    let edit = PriorityEdit::Move { node, parent, weight: 77, exclusive };
                    driver.edit(&edit, None);
                }
            }
        }
    }

    fn write(
        &mut self,
        driver: &mut Driver<Box<dyn StreamPolicy>>,
        id: u64,
        bytes: u64,
        fin: bool,
    ) {
        driver.write(id, bytes, fin);
        let latency = driver.priority(id).latency.unwrap_or(Duration::from_millis(1));
        let chunks = self.chunks.entry(id).or_default();
        let end = chunks.last().map_or(0, |chunk| chunk.0) + bytes;
        if bytes > 0 {
            chunks.push((end, driver.now + latency));
        }
    }

    fn send(&mut self, driver: &mut Driver<Box<dyn StreamPolicy>>) -> bool {
        let taken = driver.send(1_200);
        taken.into_iter().for_each(|taken| self.note(taken));
        taken.is_some()
    }

    fn note(&mut self, taken: super::testing::Taken) {
        if !taken.span.is_empty() {
            self.sent.insert(taken.stream.id.0, (taken.span.start.0, taken.span.end.0));
        }
    }
}

const AGING: &str = "srpt:aging=true,horizon=2ms";

const NAIVE: [&str; 8] =
    ["pfifo", "edf:latency=1ms", "rfc9218", "strict", "strict:by=urgency", "srpt", AGING, "sjf"];

/// A ready stream's rank as the policy defines it, looked up from scratch.
fn naive_rank(
    text: &str,
    stream: &StreamView,
    known: &Known,
    driver: &Driver<Box<dyn StreamPolicy>>,
) -> (u64, u64, u64) {
    let pending = driver.pending_bytes(stream.key);
    let not_sent = stream.size.map_or(0, |size| size.0.saturating_sub(stream.written.0));
    match text {
        "pfifo" => (0, 0, 0),
        "edf:latency=1ms" => {
            let head = driver.head(stream.key);
            let chunks = known.chunks.get(&stream.key.id.0).map(Vec::as_slice).unwrap_or_default();
            let chunk = chunks.iter().find(|chunk| chunk.0 > head).or(chunks.last());
            (chunk.map_or(0, |chunk| chunk.1.as_nanos()), 0, 0)
        }
        "strict" => (256 - driver.weight(stream.key), stream.priority.urgency.into(), stream.seq),
        "strict:by=urgency" => {
            (stream.priority.urgency.into(), 256 - driver.weight(stream.key), stream.seq)
        }
        "srpt" => (pending + not_sent, 0, 0),
        AGING => {
            // 64 steps in 2 ms.
            let now = driver.now.as_nanos() / 31_250 * 31_250;
            let age = now.saturating_sub(stream.opened_at.as_nanos()).min(2_000_000);
            ((pending + not_sent) * (2_000_000 - age) / 2_000_000, 0, 0)
        }
        "sjf" => (stream.written.0 + not_sent, 0, 0),
        // Among incremental streams turns decide, not identifiers.
        _ => (stream.priority.urgency.into(), stream.priority.incremental.into(), 0),
    }
}

proptest! {
    /// The turn goes to the stream that a scan over all of them finds.
    #[test]
    fn the_turn_goes_to_the_least_of_all_ready_streams(steps in prop::collection::vec(step(), 1..80)) {
        for text in NAIVE {
            let mut driver = Driver::new(build(text));
            let mut known = Known::default();
            for step in &steps {
                known.run(&mut driver, step);
                let least = driver
                    .ready()
                    .map(|stream| (naive_rank(text, stream, &known, &driver), stream.key.id.0))
                    .min();
                let turn = driver.peek().map(|turn| turn.stream);
                let view = driver.ready().find(|stream| Some(stream.key) == turn);
                let found = view.map(|view| (naive_rank(text, view, &known, &driver), view.key.id.0));
                let in_turn = text == "rfc9218" && found.is_some_and(|(rank, _)| rank.1 == 1);
                let id = |at: (_, u64)| if in_turn { (at.0, 0) } else { at };
                prop_assert_eq!(found.map(id), least.map(id), "{} after {:?}", text, step);
                driver.advance(Duration::from_micros(200));
            }
        }
    }

    /// A turn is given if and only if a stream is ready, to one that is; asking twice gives the same
    /// answer (the driver asks twice); in the end everything is sent.
    #[test]
    fn turns_go_to_ready_streams_until_all_is_sent(steps in prop::collection::vec(step(), 1..60)) {
        for text in POLICIES {
            let mut driver = Driver::new(build(text));
            let mut known = Known::default();
            for step in &steps {
                known.run(&mut driver, step);
                let turn = driver.peek();
                prop_assert_eq!(turn.is_some(), driver.any_ready(), "{} after {:?}", text, step);
                if let Some(turn) = turn {
                    prop_assert!(driver.is_ready(turn.stream), "{}: {:?}", text, turn);
                }
                driver.advance(Duration::from_micros(50));
            }
            for id in known.live.keys().copied().collect::<Vec<_>>() {
                driver.unblock(id);
            }
            for _ in 0..10_000 {
                if !known.send(&mut driver) {
                    break;
                }
            }
            prop_assert!(!driver.any_ready(), "{}: something is left", text);
        }
    }

    /// What was planned and taken back goes out as if it had not been planned, as long as nothing
    /// else happened.
    #[test]
    fn a_plan_taken_back_at_once_changes_nothing(
        weights in prop::collection::vec((1..=256u16, 1..8u64), 1..6),
        before in 0..12usize,
        planned in 1..12usize,
    ) {
        for text in EXACT {
            let start = || {
                let mut driver = Driver::new(build(text));
                for (index, &(weight, packets)) in weights.iter().enumerate() {
                    driver.open_at(index as u64 * 4, 0, weight, packets * 1_000);
                }
                driver.packets(before, 1_000);
                driver
            };
            let expected = start().packets(100, 1_000);
            let mut driver = start();
            // Only streams that stay ready: one that stops and comes back may join elsewhere.
            let mut plans = Vec::new();
            while plans.len() < planned {
                let Some(turn) = driver.peek().filter(|turn| driver.left(turn.stream) > 1_000) else {
                    break;
                };
                plans.push(driver.take(1_000));
                prop_assert_eq!(plans[plans.len() - 1].stream, turn.stream);
            }
            for taken in plans.into_iter().rev() {
                driver.give_back(taken);
            }
            prop_assert_eq!(driver.packets(100, 1_000), expected, "{}", text);
        }
    }
}
