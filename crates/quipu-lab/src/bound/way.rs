//! One direction between two hosts: all its paths together, and when so many bytes can be there.

use std::sync::Arc;

use quipu_base::Instant;

use super::capacity::Supply;
use super::window::Window;

/// How bytes of streams become bytes on a link, at best: in datagrams of the largest size with the
/// smallest headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    /// Bytes of streams in the largest datagram, above zero.
    pub(super) payload: u64,
    /// Bytes of UDP payload around them.
    pub(super) headers: u64,
    /// Bytes on a link above the UDP payload.
    pub(super) overhead: u64,
}

/// All paths in one direction, of one pair of hosts or of several.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) framing: Framing,
    pub(super) groups: Vec<Group>,
    /// Further links that several lanes lead over.
    pub(super) trunks: Vec<Trunk>,
}

/// A link that lanes of several groups may lead over.
#[derive(Clone, Debug)]
pub(super) struct Trunk {
    pub(super) supply: Arc<Supply>,
    /// Those that do: the position of each one's path, and the least times from the sender to the
    /// link's near end and from there to the receiver.
    pub(super) lanes: Vec<(usize, u64, u64)>,
}

/// A link of a path, from the sender on.
#[derive(Debug)]
pub(super) struct Part {
    /// What it lets through, if its group does not know.
    pub(super) supply: Option<Arc<Supply>>,
    /// The least time from one end to the other, in nanoseconds.
    pub(super) delay: u64,
    pub(super) place: Place,
}

/// Who else leads over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// No other path.
    Own,
    /// Those of the group.
    Shared,
    /// Those of a trunk.
    Trunk(usize),
}

/// Lanes that lead over one shared link.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) shared: Arc<Supply>,
    pub(super) lanes: Vec<Lane>,
}

/// One path in one direction. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// Position among the network's paths.
    pub(super) path: usize,
    /// From where datagrams enter to the shared link, at least.
    pub(super) to_shared: u64,
    /// From the shared link's near end to the receiver, at least.
    pub(super) from_shared: u64,
    /// The other links.
    pub(super) own: Vec<Hop>,
    /// The first instant at which the sender may use it for streams.
    pub(super) opens_at: u64,
    /// What its congestion window allows, if that is known.
    pub(super) window: Option<Window>,
}

/// A link of a lane.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) supply: Arc<Supply>,
    /// From the sender to its near end, at least.
    pub(super) before: u64,
    /// From its near end to the receiver, at least.
    pub(super) after: u64,
}

impl Framing {
    /// Link bytes are all that is counted.
    pub(super) const BARE: Framing = Framing { payload: 1 << 40, headers: 0, overhead: 0 };

    /// Bytes of streams in `bytes` on a link: whole datagrams, and a last one that is smaller.
    fn of_link(self, bytes: u64) -> u64 {
        self.within(bytes, self.headers.saturating_add(self.overhead))
    }

    /// Bytes of streams in `bytes` of UDP payload.
    fn of_udp(self, bytes: u64) -> u64 {
        self.within(bytes, self.headers)
    }

    fn within(self, bytes: u64, around: u64) -> u64 {
        let datagram = self.payload.saturating_add(around).max(1);
        let rest = bytes % datagram;
        bytes / datagram * self.payload + rest.saturating_sub(around)
    }
}

impl Lane {
    /// The least time from the sender to the receiver.
    pub(super) fn delay(&self) -> u64 {
        self.to_shared.saturating_add(self.from_shared)
    }

    /// When a byte that may leave at `from` leaves at the earliest.
    fn start(&self, from: u64) -> u64 {
        from.max(self.opens_at)
    }

    /// Bytes of streams that leave at `from` or later and have arrived by `by`, were there no shared
    /// link.
    fn carried(&self, framing: Framing, from: u64, by: u64) -> u64 {
        let start = self.start(from);
        let through = |hop: &Hop| match by.checked_sub(hop.after) {
            Some(until) => hop.supply.between(start.saturating_add(hop.before), until),
            None => 0,
        };
        let own = self.own.iter().map(through).min().map(|bytes| framing.of_link(bytes));
        let left_by = by.checked_sub(self.delay()).filter(|left| *left >= start);
        let window = match (&self.window, left_by) {
            (_, None) => 0,
            (Some(window), Some(left)) => framing.of_udp(window.sent_by(left)),
            (None, Some(_)) => u64::MAX,
        };
        own.unwrap_or(u64::MAX).min(window)
    }
}

impl Group {
    /// What its lanes carry but for those of `without`.
    fn carried(&self, framing: Framing, from: u64, by: u64, without: Option<&Trunk>) -> u64 {
        let with = |lane: &&Lane| without.is_none_or(|trunk| trunk.find(lane).is_none());
        let (mut start, mut after, mut lanes) = (u64::MAX, u64::MAX, 0_u64);
        for lane in self.lanes.iter().filter(with) {
            start = start.min(lane.start(from).saturating_add(lane.to_shared));
            after = after.min(lane.from_shared);
            lanes = lanes.saturating_add(lane.carried(framing, from, by));
        }
        match by.checked_sub(after) {
            Some(until) if lanes > 0 => {
                framing.of_link(self.shared.between(start, until)).min(lanes)
            }
            _ => 0,
        }
    }
}

impl Trunk {
    /// The least times before and behind it on a lane that leads over it.
    fn find(&self, lane: &Lane) -> Option<(u64, u64)> {
        let found = self.lanes.iter().find(|(path, ..)| *path == lane.path);
        found.map(|(_, before, after)| (*before, *after))
    }
}

impl Way {
    /// Adds path `path` to a group: a lane over `parts`.
    pub(super) fn add(&mut self, path: usize, group: usize, parts: Vec<Part>) {
        let mut lane =
            Lane { path, to_shared: 0, from_shared: 0, own: Vec::new(), opens_at: 0, window: None };
        let mut after: u64 = parts.iter().map(|part| part.delay).fold(0, u64::saturating_add);
        let mut before = 0_u64;
        for Part { supply, delay, place } in parts {
            match place {
                Place::Own => {}
                Place::Shared => (lane.to_shared, lane.from_shared) = (before, after),
                Place::Trunk(trunk) => self.trunks[trunk].lanes.push((path, before, after)),
            }
            lane.own.extend(supply.map(|supply| Hop { supply, before, after }));
            before = before.saturating_add(delay);
            after = after.saturating_sub(delay);
        }
        self.groups[group].lanes.push(lane);
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.groups.iter().flat_map(|group| &group.lanes)
    }

    pub(super) fn lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.groups.iter_mut().flat_map(|group| &mut group.lanes)
    }

    /// The least time from end to end.
    pub(super) fn delay(&self) -> u64 {
        self.lanes().map(Lane::delay).min().unwrap_or(0)
    }

    /// The way over path `path` alone, with `framing`.
    pub(super) fn only(&self, path: usize, framing: Framing) -> Way {
        let mut groups = self.groups.clone();
        for group in &mut groups {
            group.lanes.retain(|lane| lane.path == path);
        }
        groups.retain(|group| !group.lanes.is_empty());
        // Its own links know what trunks let through.
        Way { framing, groups, trunks: Vec::new() }
    }

    /// Bytes of streams, at most, that are sent at `from` or later and have arrived by `by`.
    ///
    /// A cut: nothing passes a shared link beyond what it lets through, and no lane carries more than
    /// the least of its own links, in the time that is left between the delays before and behind it.
    pub(super) fn carried(&self, from: u64, by: u64) -> u64 {
        let trunks = self.trunks.iter().filter(|trunk| trunk.lanes.len() > 1);
        let over = trunks.map(|trunk| {
            let others = self.of_groups(from, by, Some(trunk));
            others.saturating_add(self.over(trunk, from, by))
        });
        over.fold(self.of_groups(from, by, None), u64::min)
    }

    /// What the groups carry without the lanes of a trunk.
    fn of_groups(&self, from: u64, by: u64, without: Option<&Trunk>) -> u64 {
        let groups = self.groups.iter();
        let groups = groups.map(|group| group.carried(self.framing, from, by, without));
        groups.fold(0, u64::saturating_add)
    }

    /// What a trunk carries for all its lanes.
    fn over(&self, trunk: &Trunk, from: u64, by: u64) -> u64 {
        let (mut start, mut least_after, mut lanes) = (u64::MAX, u64::MAX, 0_u64);
        for lane in self.lanes() {
            if let Some((before, after)) = trunk.find(lane) {
                start = start.min(lane.start(from).saturating_add(before));
                least_after = least_after.min(after);
                lanes = lanes.saturating_add(lane.carried(self.framing, from, by));
            }
        }
        let until = by.saturating_sub(least_after);
        self.framing.of_link(trunk.supply.between(start, until)).min(lanes)
    }

    /// The earliest instant by which `bytes` of streams can have arrived that are sent at `from` or
    /// later; [`Instant::FAR_FUTURE`] if they never can. No bytes take the least delay.
    pub(super) fn earliest(&self, from: Instant, bytes: u64) -> Instant {
        let from = from.as_nanos();
        let arrive = |lane: &Lane| lane.start(from).saturating_add(lane.delay());
        let first = self.lanes().map(arrive).min().unwrap_or(u64::MAX);
        if bytes == 0 || first == u64::MAX {
            return Instant::from_nanos(first);
        }
        let at_first = (first, self.carried(from, first));
        if at_first.1 >= bytes {
            return Instant::from_nanos(first);
        }
        let found =
            self.bracket(from, at_first, bytes).map(|bracket| self.narrow(from, bytes, bracket));
        found.map_or(Instant::FAR_FUTURE, Instant::from_nanos)
    }

    /// Two instants between which `bytes` become possible: not by the first, which is not before
    /// `low`, but by the second.
    fn bracket(&self, from: u64, mut low: (u64, u64), bytes: u64) -> Option<Bracket> {
        let mut step = 1 << 20;
        loop {
            let at = low.0.saturating_add(step);
            let carried = self.carried(from, at);
            if carried >= bytes {
                return Some(Bracket { low, high: (at, carried) });
            }
            if at == u64::MAX {
                return None;
            }
            (low, step) = ((at, carried), step.saturating_mul(2));
        }
    }

    /// The earliest instant in the bracket. What is carried grows with time, mostly along a line, so a
    /// guess on the line between both ends, and one a little to the side where it was not, nearly
    /// close it; where they do not, halving does.
    fn narrow(&self, from: u64, bytes: u64, mut bracket: Bracket) -> u64 {
        for round in 0_u32.. {
            let (low, high) = (bracket.low.0, bracket.high.0);
            if high - low <= 1 {
                break;
            }
            if round >= 6 {
                self.probe(from, bytes, &mut bracket, low + (high - low) / 2);
                continue;
            }
            let missing = u128::from(bytes - bracket.low.1);
            let rise = u128::from(bracket.high.1.saturating_sub(bracket.low.1).max(1));
            let along = u128::from(high - low) * missing / rise;
            let guess = u64::try_from(along).unwrap_or(u64::MAX).saturating_add(low);
            let enough = self.probe(from, bytes, &mut bracket, guess);
            let width = bracket.high.0 - bracket.low.0;
            let aside = width / 256 + 1;
            let beside = if enough { bracket.high.0 - aside } else { bracket.low.0 + aside };
            if bracket.low.0 < beside && beside < bracket.high.0 {
                self.probe(from, bytes, &mut bracket, beside);
            }
        }
        bracket.high.0
    }

    /// Looks at an instant inside the bracket and closes it there. True if it is enough.
    fn probe(&self, from: u64, bytes: u64, bracket: &mut Bracket, at: u64) -> bool {
        let at = at.clamp(bracket.low.0 + 1, bracket.high.0 - 1);
        let carried = self.carried(from, at);
        let enough = carried >= bytes;
        *(if enough { &mut bracket.high } else { &mut bracket.low }) = (at, carried);
        enough
    }
}

/// Instants, each with what is carried by then.
struct Bracket {
    low: (u64, u64),
    high: (u64, u64),
}
