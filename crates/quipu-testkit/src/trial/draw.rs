//! Random trials by seed.

use std::sync::LazyLock;

use quipu_base::{Role, Seed};
use quipu_policy::registry::Layer;
use quipu_policy::{PolicySpec, Registry};

use super::{Direction, Edit, Op, PathSetup, Trial};
use crate::forge::Draw;

/// The most operations of a trial.
const MOST_OPS: u64 = 50;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::builtin);

fn pick<T: Copy>(draw: &mut impl Draw, values: &[T]) -> T {
    values[draw.below(values.len() as u64) as usize]
}

fn end(draw: &mut impl Draw) -> Role {
    pick(draw, &[Role::Client, Role::Server])
}

fn index(draw: &mut impl Draw, end: u64) -> usize {
    draw.below(end) as usize
}

/// A policy of a layer by name, or nothing for the layer's default.
fn policy(draw: &mut impl Draw, layer: Layer) -> Option<String> {
    let names: Vec<&str> = REGISTRY.of(layer).map(|entry| entry.name).collect();
    if names.is_empty() || draw.happens(50) {
        return None;
    }
    Some(format!("{layer}={}", pick(draw, &names)))
}

/// Any choice of policies that go together.
fn policies(draw: &mut impl Draw) -> String {
    const LAYERS: [Layer; 7] = [
        Layer::Stream,
        Layer::Path,
        Layer::Pack,
        Layer::Resend,
        Layer::Reinject,
        Layer::Ack,
        Layer::Congestion,
    ];
    if draw.happens(20) {
        return policy(draw, Layer::Joint).unwrap_or_default();
    }
    let parts: Vec<String> = LAYERS.iter().filter_map(|&layer| policy(draw, layer)).collect();
    let text = parts.join(" ");
    if PolicySpec::parse(&REGISTRY, &text).is_ok() { text } else { String::new() }
}

fn path(draw: &mut impl Draw) -> PathSetup {
    PathSetup {
        mbit: pick(draw, &[10, 2, 50]),
        delay: pick(draw, &[10, 1, 40, 100]),
        up: pick(draw, &[0, 0, 50]),
        loss: pick(draw, &[0, 0, 10, 50, 100]),
        disorder: draw.happens(50),
    }
}

fn edit(draw: &mut impl Draw) -> Edit {
    let (node, parent) = (1 + draw.below(5), draw.below(6));
    let (weight, alone) = (pick(draw, &[16, 1, 256, 100]), draw.happens(50));
    let back = index(draw, 4);
    match draw.below(8) {
        0 => Edit::Insert(node, parent, weight, alone),
        1 => Edit::Move(node, parent, weight, alone),
        2 => Edit::Weight(node, weight),
        3 => Edit::Remove(node),
        4 => Edit::Attach(parent, back),
        5 => Edit::Urgency(back, draw.below(8) as u8, alone),
        6 => Edit::Deadline(back, draw.below(500)),
        _ => Edit::Size(back, draw.below(200_000)),
    }
}

fn op(draw: &mut impl Draw) -> Op {
    let (end, back, link) = (end(draw), index(draw, 4), index(draw, 4));
    let millis = pick(draw, &[100, 10, 1_000, 3_000]);
    match draw.below(81) {
        0..=7 => Op::Open(end, draw.happens(50)),
        8..=21 => Op::Write(end, back, pick(draw, &[0, 1, 1_000, 10_000, 100_000])),
        22..=24 => Op::Finish(end, back),
        25 | 26 => Op::Reset(end, back),
        27 | 28 => Op::Stop(end, back),
        29 | 30 => Op::Pause(end, back),
        31 | 32 => Op::Resume(end, back),
        33 => Op::Control(end, back),
        34..=39 => Op::Priority(end, edit(draw)),
        40 | 41 => Op::OpenPath(link),
        42 => Op::Abandon(end, link),
        43 => Op::Backup(end, link, draw.happens(50)),
        44..=46 => {
            let way = pick(draw, &[Direction::Both, Direction::Up, Direction::Down]);
            Op::Outage(link, way, pick(draw, &[0, 10, 200]), Some(millis))
        }
        47 => Op::UpdateKeys(end),
        48 | 49 => Op::Policies(end, policies(draw)),
        50..=52 => Op::Block(end, link, millis),
        53 => Op::Leap(end, pick(draw, &[10, 1, 300, 5_000])),
        55 | 56 => Op::Narrow(link, pick(draw, &[1_200, 1_232, 1_280, 1_349])),
        57 => Op::Ping(end, link),
        58 | 59 => {
            Op::Datagrams(end, 1 + draw.below(40), pick(draw, &[0, 100, 1_000, 1_140, 1_400]))
        }
        60..=62 => Op::Rebind(link, draw.happens(50)),
        63 | 64 => Op::Move(back, link, draw.happens(50)),
        54 => Op::Stand(end, pick(draw, &[10, 1, 300, 2_000])),
        _ => Op::Advance(pick(draw, &[10, 1, 100, 700])),
    }
}

impl Trial {
    /// The random trial of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Trial::drawn(&mut Seed::new(seed).stream("trial", 0))
    }

    /// A random trial.
    pub fn drawn(draw: &mut impl Draw) -> Self {
        let paths = (0..=draw.below(4)).map(|_| path(draw)).collect();
        let mut ops: Vec<Op> = (0..draw.below(MOST_OPS)).map(|_| op(draw)).collect();
        if draw.happens(10) {
            ops.push(Op::Close(end(draw)));
        }
        // These leave little to check afterwards.
        if draw.happens(5) {
            let at = index(draw, ops.len() as u64 + 1);
            ops.insert(at, Op::Restart(end(draw)));
        }
        if draw.happens(10) {
            let forger = end(draw);
            for _ in 0..=draw.below(4) {
                let at = index(draw, ops.len() as u64 + 1);
                ops.insert(at, Op::Forge(forger, 1 + draw.below(30), draw.below(1 << 32)));
            }
        }
        Trial {
            stream_window: pick(draw, &[6_000, 20, 3]),
            connection_window: pick(draw, &[15_000, 50, 4]),
            max_streams: pick(draw, &[100, 2]),
            policies: [policies(draw), policies(draw)],
            batch: pick(draw, &[usize::MAX, 1]),
            begin: pick(draw, &[400, 0, 50]),
            ack_requests: draw.happens(33),
            early: pick(draw, &[None, None, Some(true), Some(false)]),
            drops: draw.happens(10),
            ..Trial::new(paths).with_ops(ops)
        }
    }
}
