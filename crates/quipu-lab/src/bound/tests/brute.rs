//! Every schedule of a page in a world of whole units: in each slot of time each path sends one unit of
//! any object that is released, or none.

use std::collections::BTreeMap;

use super::super::chain::{Asked, Load};

/// A world of units.
pub(super) struct World {
    /// Of the requests.
    pub(super) up_delay: u8,
    /// Per path: its delay, and the slots in which it rests.
    pub(super) paths: Vec<(u8, Vec<u8>)>,
}

/// Units left to send and arrivals of those sent, by object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    slot: u8,
    left: Vec<u8>,
    /// In order of time.
    arrivals: Vec<Vec<u8>>,
}

/// Looks for the least time at which all targets are complete.
pub(super) struct Search<'a> {
    pub(super) world: &'a World,
    pub(super) load: &'a Load,
    pub(super) targets: Vec<usize>,
    /// Slots after which nothing is looked for.
    horizon: u8,
    /// By object: whether another one waits for it.
    is_parent: Vec<bool>,
    known: BTreeMap<State, u8>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        world: &'a World,
        load: &'a Load,
        targets: Vec<usize>,
        horizon: u64,
    ) -> Search<'a> {
        let parents: Vec<_> = load.items.iter().filter_map(|item| item.asked.parent()).collect();
        let is_parent = (0..load.items.len()).map(|index| parents.contains(&index)).collect();
        let horizon = u8::try_from(horizon).unwrap();
        Search { world, load, targets, horizon, is_parent, known: BTreeMap::new() }
    }

    /// In slots from the start of the page; the horizon if there is none before it.
    pub(super) fn optimum(&mut self) -> u8 {
        let left: Vec<u8> = self.load.items.iter().map(|item| item.body as u8).collect();
        let arrivals = vec![Vec::new(); left.len()];
        self.best(&State { slot: 0, left, arrivals })
    }

    fn best(&mut self, state: &State) -> u8 {
        if self.targets.iter().all(|target| state.left[*target] == 0) {
            let ends = self.targets.iter().filter_map(|target| state.arrivals[*target].last());
            return ends.max().copied().unwrap_or(0);
        }
        if state.slot >= self.horizon {
            return self.horizon;
        }
        if let Some(best) = self.known.get(state) {
            return *best;
        }
        let best = self.send(state, 0);
        self.known.insert(state.clone(), best);
        best
    }

    /// The best of all that path `path` and those after it can do in this slot.
    fn send(&mut self, state: &State, path: usize) -> u8 {
        let Some((delay, rests)) = self.world.paths.get(path) else {
            return self.best(&State { slot: state.slot + 1, ..state.clone() });
        };
        let mut best = self.send(state, path + 1);
        if rests.contains(&state.slot) {
            return best;
        }
        let arrival = state.slot + 1 + delay;
        for object in 0..state.left.len() {
            let released = self.released(state, object).is_some_and(|at| at <= state.slot);
            if state.left[object] > 0 && released {
                let mut next = state.clone();
                next.left[object] -= 1;
                next.arrivals[object].push(arrival);
                next.arrivals[object].sort_unstable();
                if !self.is_parent[object] {
                    // Nobody asks for any but the last.
                    let all = next.arrivals[object].len();
                    next.arrivals[object].drain(..all - 1);
                }
                best = best.min(self.send(&next, path + 1));
            }
        }
        best
    }

    /// When the server may send an object, if that is known by now.
    fn released(&self, state: &State, object: usize) -> Option<u8> {
        let item = &self.load.items[object];
        let nth = |parent: usize, count: u64| match count {
            // With the head, which is no unit and is sent at once over the shortest path.
            0 => {
                let head = self.released(state, parent)?;
                self.world.paths.iter().map(|(delay, _)| head + delay).min()
            }
            count => state.arrivals[parent].get(count as usize - 1).copied(),
        };
        let asked = match item.asked {
            Asked::AtStart => 0,
            Asked::On { parent, bytes } => nth(parent, bytes)?,
            // With the request of the other, which it need not wait for.
            Asked::With { parent } => {
                let think = self.load.items[parent].think.as_millis() as u8;
                self.released(state, parent)? - think
            }
            Asked::After { parent } => nth(parent, self.load.items[parent].body)?,
        };
        let mut asked = asked;
        for &need in &item.waits_for {
            asked = asked.max(nth(need, self.load.items[need].body)?);
        }
        let asked = asked + item.gap.as_millis() as u8;
        let up_delay = if item.request.is_some() { self.world.up_delay } else { 0 };
        // What has not arrived yet may still be overtaken, but then it is later than now.
        Some(asked + up_delay + item.think.as_millis() as u8).filter(|_| asked <= state.slot)
    }
}
