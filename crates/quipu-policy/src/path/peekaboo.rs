//! Peekaboo: it learns whether to wait for the fast path.

use std::collections::VecDeque;

use quipu_base::{Duration, Instant, PacketNumber, Random, uniform};

use super::choose::{rest_unless_stuck, wait_for};
use super::{Choice, Ecf, IdleProbe, MinRtt, Parcel, PathPolicy};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, SentPacket, View};

mod model;

use model::{Context, DIMENSION, Model};

/// What [`Peekaboo`] is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// Standard deviations added to what an action is expected to earn.
    pub alpha: f64,
    /// How often it sends although it would rather wait.
    pub flip_wait: f64,
    /// How often it waits although it would rather send.
    pub flip_send: f64,
    /// How much less what was learned weighs with each reward; 1: not less.
    pub discount: f64,
}

impl Learning {
    /// α of the paper, flips as in the public code, no discount.
    pub const DEFAULT: Learning =
        Learning { alpha: 0.75, flip_wait: 0.3, flip_send: 0.1, discount: 1.0 };
}

/// `peekaboo`: where the fast path `f` is full and a slow path `s` is open, it waits for `f` or sends
/// on `s`, as a bandit that learns from what packets earn.
///
/// LinUCB with a model per action over six numbers: `cwnd_f/r_f`, `in_flight_s/r_s`, `B/r_f`, `B/r_s`,
/// `in_flight_f/r_f`, `cwnd_s/r_s`, with `r` the latest round-trip time and `B` the connection credit
/// left. The action of the greater upper bound is taken, sending if they are equal, and flipped with
/// a small probability. When the packet of the decision is acknowledged, the action earns
/// `mss/(t_ack − t_decision)`. Having decided to wait, it waits until `f` opens; the next packet on
/// `f` is then the decision's.
///
/// Our repairs: contexts and rewards are divided by the greatest seen, else the matrices are
/// ill-conditioned and α means nothing; a lost packet earns nothing; the wait is over if `f` does not
/// answer (a probe timeout passed). The paper derives the probability of a flip from how much the
/// paths vary, by a formula that we do not know; the public code has fixed values. The optional
/// discount is ours, for paths that change.
///
/// `f` and `s` are those of [`Ecf`], and it sends without waiting in the same cases. Random numbers are
/// drawn when a packet leaves and kept until the next one.
///
/// Source: Wu et al., "Peekaboo: Learning-based multipath scheduling for dynamic heterogeneous
/// environments", IEEE JSAC 2020; structure from the public Go port, read in code; confidence medium.
#[derive(Clone, Debug)]
pub struct Peekaboo {
    learning: Learning,
    probe: IdleProbe,
    random: Random,
    /// In 0..1: decides on the next flip.
    draw: f64,
    wait: Model,
    send: Model,
    /// Greatest value of each number of a context.
    greatest: Context,
    /// Greatest reward.
    most: f64,
    decided: Option<Decided>,
    /// Packets of decisions, by path slot, in packet-number order.
    flying: Vec<VecDeque<(PacketNumber, Decided)>>,
}

/// A decision whose packet is still to come, or under way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decided {
    waits: bool,
    /// The path that its packet takes.
    path: PathKey,
    context: Context,
    at: Instant,
}

/// Least round-trip time in a context, so that one of zero does not dwarf all others; our choice.
const LEAST_RTT: Duration = Duration::from_micros(100);

impl Peekaboo {
    /// The policy with its random stream.
    pub fn new(learning: Learning, mut random: Random, probe: IdleProbe) -> Self {
        let draw = uniform(&mut random);
        Peekaboo {
            learning,
            probe,
            random,
            draw,
            wait: Model::new(),
            send: Model::new(),
            greatest: [0.0; DIMENSION],
            most: 0.0,
            decided: None,
            flying: Vec::new(),
        }
    }

    fn context(&mut self, fast: &PathView, slow: &PathView, view: &View<'_>) -> Context {
        let rtt = |path: &PathView| {
            path.latest_rtt.or(path.srtt).unwrap_or(LEAST_RTT).max(LEAST_RTT).as_secs_f64()
        };
        let (fast_rtt, slow_rtt) = (rtt(fast), rtt(slow));
        let credit = view.conn.credit.0 as f64;
        let raw = [
            fast.cwnd.0 as f64 / fast_rtt,
            slow.in_flight.0 as f64 / slow_rtt,
            credit / fast_rtt,
            credit / slow_rtt,
            fast.in_flight.0 as f64 / fast_rtt,
            slow.cwnd.0 as f64 / slow_rtt,
        ];
        std::array::from_fn(|index| {
            let greatest = self.greatest[index].max(raw[index]);
            self.greatest[index] = greatest;
            if greatest > 0.0 { raw[index] / greatest } else { 0.0 }
        })
    }

    /// Whether to wait, by the models and the draw.
    fn waits(&self, context: &Context, notes: &mut Notes) -> bool {
        let bound = |model: &Model| model.upper_bound(context, self.learning.alpha);
        let (wait, send) = (bound(&self.wait), bound(&self.send));
        for (label, score) in [("worth of waiting", wait), ("worth of sending", send)] {
            notes.add(|| Note { label, path: None, stream: None, score });
        }
        let waits = wait > send;
        let flip = if waits { self.learning.flip_wait } else { self.learning.flip_send };
        waits != (self.draw < flip)
    }

    /// A packet left: it may be that of the last decision.
    fn sent(&mut self, packet: &SentPacket<'_>) {
        self.draw = uniform(&mut self.random);
        let Some(decided) = self.decided else { return };
        if decided.path == packet.path {
            if self.flying.len() <= packet.path.index() {
                self.flying.resize_with(packet.path.index() + 1, VecDeque::new);
            }
            if let Some(flying) = self.flying.get_mut(packet.path.index()) {
                flying.push_back((packet.pn, decided));
            }
        }
        if decided.path == packet.path || !decided.waits {
            self.decided = None;
        }
    }

    /// The packet of a decision, if it was one, arrived at `now` or was lost.
    fn settle(&mut self, packet: &SentPacket<'_>, arrived: Option<Instant>) {
        let Some(flying) = self.flying.get_mut(packet.path.index()) else { return };
        let Ok(index) = flying.binary_search_by_key(&packet.pn, |(pn, _)| *pn) else { return };
        let Some((_, decided)) = flying.remove(index) else { return };
        if decided.path != packet.path {
            return;
        }
        let reward = arrived.map_or(0.0, |now| {
            packet.bytes.0 as f64 / (now - decided.at).max(LEAST_RTT).as_secs_f64()
        });
        self.most = self.most.max(reward);
        let reward = if self.most > 0.0 { reward / self.most } else { 0.0 };
        let model = if decided.waits { &mut self.wait } else { &mut self.send };
        model.learn(&decided.context, reward, self.learning.discount);
    }
}

impl PathPolicy for Peekaboo {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(slow) = MinRtt::pick(view, notes) else { return rest_unless_stuck(parcel, view) };
        if matches!(parcel.class, Class::Lost { .. }) {
            return Choice::Now(slow.key);
        }
        let Some(fast) = Ecf::faster_than(slow, view) else {
            // Open, or no longer worth waiting for: then the decision is void.
            self.decided = self.decided.filter(|it| it.waits && it.path == slow.key);
            return Choice::Now(slow.key);
        };
        if self.decided.is_some_and(|it| it.waits && it.path == fast.key) {
            return wait_for(fast, view);
        }
        let context = self.context(fast, slow, view);
        let waits = self.waits(&context, notes);
        let path = if waits { fast.key } else { slow.key };
        self.decided = Some(Decided { waits, path, context, at: view.now });
        if waits { wait_for(fast, view) } else { Choice::Now(slow.key) }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        match event {
            Event::Sent(packet) if !packet.pieces.is_empty() => self.sent(packet),
            Event::Acked(packet) => self.settle(packet, Some(view.now)),
            Event::Lost(packet) => self.settle(packet, None),
            Event::PathGone(path) => {
                if let Some(flying) = self.flying.get_mut(path.index()) {
                    flying.clear();
                }
                self.decided = self.decided.filter(|decided| decided.path != *path);
            }
            _ => {}
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests;
