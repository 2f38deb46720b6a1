//! How well two worlds agree: the same loads over emulated links and in the simulator, paired by the seed of links.
//!
//! - [`Variant`]: which costs of hosts a simulated world has; all together, kind by kind, so that each says what it
//!   explains, and with hosts that take another time to wake.
//! - [`Agreement`]: the differences of page and critical time, where they come from, and pairs of policies whose order
//!   differs.

mod table;

use std::collections::BTreeMap;

use quipu_lab::base::{Duration, Seed};
use quipu_lab::plan::{Cell, Plan};
use quipu_record::stats::{Comparison, median, median_of_numbers};
use quipu_record::{Metric, RunRecord};
use quipu_scenario::HostSpec;
use serde::Serialize;

pub use table::{causes, differences};

/// Relative differences up to which worlds agree, of page and critical time. From the project's conventions.
pub const WITHIN: [(Metric, f64); 2] = [(Metric::PageTime, 0.02), (Metric::CriticalTime, 0.05)];

/// A simulated world, by the costs of its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Hosts cost nothing.
    Ideal,
    /// Hosts have all costs.
    Whole,
    /// Timers alone are late.
    Timers,
    /// Hosts that sleep alone take time to wake.
    Waking,
    /// Datagrams alone are sent and taken in batches, each of which costs.
    Batches,
    /// Each datagram alone costs: the protocol's work, its cryptography included, and the kernel's.
    Datagrams,
    /// Hosts have all costs, but take so many microseconds to wake at the median: how sensitive the loads are.
    Wakes(u32),
}

impl Variant {
    /// All, the first of which others are compared with.
    pub const ALL: [Variant; 12] = [
        Variant::Ideal,
        Variant::Whole,
        Variant::Timers,
        Variant::Waking,
        Variant::Batches,
        Variant::Datagrams,
        Variant::Wakes(100),
        Variant::Wakes(200),
        Variant::Wakes(300),
        Variant::Wakes(500),
        Variant::Wakes(750),
        Variant::Wakes(1_000),
    ];

    /// What files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Ideal => "ideal",
            Variant::Whole => "costs",
            Variant::Timers => "timers",
            Variant::Waking => "waking",
            Variant::Batches => "batches",
            Variant::Datagrams => "datagrams",
            Variant::Wakes(_) => "wakes",
        }
    }

    /// What is left of `costs` in it.
    pub fn of(self, costs: HostSpec) -> HostSpec {
        let HostSpec(all) = costs;
        let mut left = HostSpec::IDEAL;
        if self == Variant::Whole {
            left = costs;
        }
        if let Variant::Wakes(micros) = self {
            left = costs;
            let wake = Duration::from_micros(micros.into());
            left.0.wake = wake;
            left.0.wake_p99 = wake + all.wake_p99.saturating_sub(all.wake);
        }
        if self == Variant::Timers {
            left.0.timer_tick = all.timer_tick;
            left.0.timer_late = all.timer_late;
            left.0.timer_late_p99 = all.timer_late_p99;
        }
        if self == Variant::Waking {
            left.0.wake = all.wake;
            left.0.wake_p99 = all.wake_p99;
        }
        if self == Variant::Batches {
            left.0.send_batch = all.send_batch;
            left.0.send_batch_cost = all.send_batch_cost;
            left.0.receive_batch = all.receive_batch;
            left.0.receive_batch_cost = all.receive_batch_cost;
        }
        if self == Variant::Datagrams {
            left.0.send_cost = all.send_cost;
            left.0.receive_cost = all.receive_cost;
            left.0.socket_buffer = all.socket_buffer;
            left.0.interface_rate = all.interface_rate;
        }
        left
    }
}

/// The runs of a world that ended well.
pub type World = [(Cell, RunRecord)];

/// What two worlds say of the same loads.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// By page, network, policy and metric.
    pub differences: Vec<Difference>,
    /// By page, network and policy.
    pub causes: Vec<Causes>,
    /// Pairs of policies that the simulator separates.
    pub orders: Vec<Order>,
}

/// A metric of the loads of a page over a network with a policy.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// What is compared.
    pub metric: Metric,
    /// Loads that both worlds have.
    pub pairs: usize,
    /// Median over emulated links, in ns.
    pub emulated: u64,
    /// Median in the simulator with ideal hosts, in ns.
    pub simulated: u64,
    /// Median in the simulator with costs, in ns.
    pub with_costs: u64,
    /// Median of the pairs' relative differences, emulated against ideal.
    pub difference: f64,
    /// The interval that holds it with 95 % confidence; `None` of one pair.
    pub interval: Option<(f64, f64)>,
    /// The same against the simulator with costs.
    pub difference_with_costs: f64,
    /// The difference up to which worlds agree.
    pub within: f64,
    /// The nearest simulated world whose hosts take another time to wake, whatever its difference; `None` where there is none.
    pub nearest: Option<Nearest>,
    /// Simulated loads, with ideal hosts, with costs and with other times to wake.
    pub loads: usize,
    /// Those of them that do not differ from the emulated median by more than `within`: where a near tie decides how
    /// long a load takes, single ones are as long though the median is not.
    pub alike: usize,
}

/// A simulated world with hosts that take another time to wake than they did when they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// What they take, in ns.
    pub wake: u64,
    /// Median there, in ns.
    pub simulated: u64,
    /// Median of the pairs' relative differences, emulated against that world.
    pub difference: f64,
}

impl Difference {
    /// Whether worlds agree, with ideal hosts or with costs.
    pub fn agrees(&self) -> bool {
        self.difference.abs() <= self.within || self.difference_with_costs.abs() <= self.within
    }

    /// Whether the simulator says the same of hosts that take another time to wake.
    pub fn agrees_nearest(&self) -> bool {
        self.nearest.is_some_and(|nearest| nearest.difference.abs() <= self.within)
    }
}

/// Where the difference of page times comes from: medians of pairs, in ns.
#[derive(Clone, Debug, Serialize)]
pub struct Causes {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// The page time, emulated against ideal.
    pub difference: i64,
    /// What the handshake took more: cryptography, and waking processes.
    pub connect: i64,
    /// What late timers add to the simulated page time.
    pub timers: i64,
    /// What hosts add that sleep and have to wake.
    pub waking: i64,
    /// What batches add.
    pub batches: i64,
    /// What the processor's time for each datagram adds.
    pub datagrams: i64,
    /// Packets that the client sent more than the simulated one.
    pub packets: i64,
    /// Packets of the client that were lost more.
    pub lost: i64,
}

/// Two policies whose order the simulator knows: the interval of their ratio does not hold 1.
#[derive(Clone, Debug, Serialize)]
pub struct Order {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// What is compared.
    pub metric: Metric,
    /// The policy that is faster in the simulator.
    pub faster: String,
    /// The other one.
    pub slower: String,
    /// The mean ratio of the first to the second in the simulator.
    pub simulated: f64,
    /// In the simulator with costs.
    pub with_costs: f64,
    /// Over emulated links.
    pub emulated: f64,
    /// What simulated hosts take to wake, in ns, with which the order turns as it does over emulated links: the least of the
    /// [`Variant`]s; `None` if it turns with none, or does not over emulated links.
    pub turns_at: Option<u64>,
}

impl Order {
    /// Whether both worlds have the same order.
    pub fn agrees(&self) -> bool {
        self.emulated < 1.0
    }
}

impl Agreement {
    /// Compares the runs of `plan` over emulated links with those of all [`Variant`]s, in their order.
    pub fn new(plan: &Plan, emulated: &World, simulated: &[Vec<(Cell, RunRecord)>]) -> Agreement {
        let emulated = by_cell(emulated);
        let simulated: Vec<ByCell<'_>> = simulated.iter().map(|world| by_cell(world)).collect();
        let seed = Seed::new(plan.scenario.seed);
        let worlds = Worlds { plan, emulated, simulated, comparison: Comparison::new(seed, true) };
        let places: Vec<Cell> = plan.cells().filter(|cell| cell.run == 0).collect();
        let of_place = |cell: &Cell| {
            WITHIN.into_iter().filter_map(|it| worlds.difference(*cell, it)).collect::<Vec<_>>()
        };
        Agreement {
            differences: places.iter().flat_map(of_place).collect(),
            causes: places.iter().filter_map(|cell| worlds.causes(*cell)).collect(),
            orders: places.iter().flat_map(|cell| worlds.orders(*cell)).collect(),
        }
    }

    /// Whether nothing differs by more than it may, and all orders are the same.
    pub fn is_whole(&self) -> bool {
        self.differences.iter().all(Difference::agrees) && self.orders.iter().all(Order::agrees)
    }
}

/// Runs by their place in the plan.
type ByCell<'a> = BTreeMap<Cell, &'a RunRecord>;

fn by_cell(world: &World) -> ByCell<'_> {
    world.iter().map(|(cell, record)| (*cell, record)).collect()
}

struct Worlds<'a> {
    plan: &'a Plan,
    emulated: ByCell<'a>,
    simulated: Vec<ByCell<'a>>,
    comparison: Comparison,
}

/// The records of a pair: the second is simulated.
type Pair<'a> = (&'a RunRecord, &'a RunRecord);

impl<'a> Worlds<'a> {
    /// The loads of the place of `cell` that `world` and emulated links both have.
    fn pairs(&self, cell: Cell, world: usize) -> Vec<Pair<'a>> {
        let Some(simulated) = self.simulated.get(world) else { return Vec::new() };
        let of_place =
            self.emulated.range(Cell { run: 0, ..cell }..=Cell { run: u32::MAX, ..cell });
        // Where chance decides nothing, there is one simulated run.
        let one = Cell { run: 0, ..cell };
        let other = |cell: &Cell| simulated.get(cell).or_else(|| simulated.get(&one)).copied();
        of_place.filter_map(|(cell, record)| Some((*record, other(cell)?))).collect()
    }

    fn names(&self, cell: Cell) -> [String; 3] {
        let network = &self.plan.networks[cell.network];
        let policy = &network.policies[cell.policy].label;
        [self.plan.page_name(cell.page).to_owned(), network.network.name.clone(), policy.clone()]
    }

    fn difference(&self, cell: Cell, (metric, within): (Metric, f64)) -> Option<Difference> {
        let of = |world: usize| -> Vec<(u64, u64)> {
            let both = |(one, other): Pair<'_>| Some((metric.of(one)?, metric.of(other)?));
            self.pairs(cell, world).into_iter().filter_map(both).collect()
        };
        let (ideal, costs) = (of(0), of(1));
        let relative = |pairs: &[(u64, u64)]| -> Vec<f64> {
            let ratio = |&(one, other): &(u64, u64)| one as f64 / other.max(1) as f64 - 1.0;
            pairs.iter().map(ratio).collect()
        };
        let middle = |pairs: &[(u64, u64)], value: fn(&(u64, u64)) -> u64| {
            median(&pairs.iter().map(value).collect::<Vec<u64>>())
        };
        let others = (0..).zip(Variant::ALL).filter_map(|(world, variant)| {
            let Variant::Wakes(micros) = variant else { return None };
            let pairs = of(world);
            let simulated = middle(&pairs, |pair| pair.1)?;
            let difference = median_of_numbers(&relative(&pairs))?;
            Some(Nearest { wake: u64::from(micros) * 1_000, simulated, difference })
        });
        let nearest =
            others.min_by(|one, other| one.difference.abs().total_cmp(&other.difference.abs()));
        let emulated = middle(&ideal, |pair| pair.0)?;
        let loads = self.simulated_loads(cell, metric);
        let is_alike =
            |load: &&u64| (emulated as f64 / (**load).max(1) as f64 - 1.0).abs() <= within;
        let alike = loads.iter().filter(is_alike).count();
        let all = relative(&ideal);
        let drawn = |positions: &[usize]| {
            let drawn: Vec<f64> = positions.iter().map(|position| all[*position]).collect();
            median_of_numbers(&drawn)
        };
        let interval = self.comparison.interval(all.len(), INTERVALS, drawn);
        let [page, network, policy] = self.names(cell);
        Some(Difference {
            page,
            network,
            policy,
            metric,
            pairs: ideal.len(),
            emulated,
            simulated: middle(&ideal, |pair| pair.1)?,
            with_costs: middle(&costs, |pair| pair.1)?,
            difference: median_of_numbers(&all)?,
            interval,
            difference_with_costs: median_of_numbers(&relative(&costs))?,
            within,
            nearest,
            loads: loads.len(),
            alike,
        })
    }

    /// That metric of all simulated loads of the place of `cell`, but those with a single kind of costs.
    fn simulated_loads(&self, cell: Cell, metric: Metric) -> Vec<u64> {
        let is_whole = |variant: &Variant| {
            matches!(variant, Variant::Ideal | Variant::Whole | Variant::Wakes(_))
        };
        let worlds = Variant::ALL.iter().zip(&self.simulated);
        let worlds = worlds.filter(|(variant, _)| is_whole(variant));
        let runs = Cell { run: 0, ..cell }..=Cell { run: u32::MAX, ..cell };
        let of = |(_, world): (&Variant, &ByCell<'a>)| {
            let records = world.range(runs.clone()).filter_map(|(_, record)| metric.of(record));
            records.collect::<Vec<u64>>()
        };
        worlds.flat_map(of).collect()
    }

    fn causes(&self, cell: Cell) -> Option<Causes> {
        let ideal = self.pairs(cell, 0);
        let middle = |pairs: &[Pair<'_>], of: &dyn Fn(&RunRecord) -> u64| {
            let change = |(one, other): &Pair<'_>| of(one) as f64 - of(other) as f64;
            let changes: Vec<f64> = pairs.iter().map(change).collect();
            // Of nanoseconds and packets.
            median_of_numbers(&changes).map(|change| change as i64)
        };
        let page = |record: &RunRecord| record.page_time.as_nanos();
        let added = |variant: Variant| -> Option<i64> {
            let world = Variant::ALL.iter().position(|it| *it == variant)?;
            let both = self.pairs(cell, world).into_iter().zip(&ideal);
            let pairs: Vec<Pair<'_>> =
                both.map(|((_, with), (_, without))| (with, *without)).collect();
            middle(&pairs, &page)
        };
        let sum = |of: fn(&quipu_record::PathRecord) -> u64| {
            move |record: &RunRecord| record.paths_of(quipu_record::End::Client).map(of).sum()
        };
        let [page_name, network, policy] = self.names(cell);
        Some(Causes {
            page: page_name,
            network,
            policy,
            difference: middle(&ideal, &page)?,
            connect: middle(&ideal, &|record| record.connect_time.as_nanos())?,
            timers: added(Variant::Timers)?,
            waking: added(Variant::Waking)?,
            batches: added(Variant::Batches)?,
            datagrams: added(Variant::Datagrams)?,
            packets: middle(&ideal, &sum(|path| path.packets_sent))?,
            lost: middle(&ideal, &sum(|path| path.packets_lost))?,
        })
    }

    /// The policies that the simulator separates from that of `cell`, which is before them.
    fn orders(&self, cell: Cell) -> Vec<Order> {
        let later = cell.policy + 1..self.plan.networks[cell.network].policies.len();
        let pairs = later.flat_map(|policy| WITHIN.map(|(metric, _)| (policy, metric)));
        pairs.filter_map(|(policy, metric)| self.order(cell, policy, metric)).collect()
    }

    fn order(&self, cell: Cell, policy: usize, metric: Metric) -> Option<Order> {
        let other = Cell { policy, ..cell };
        let ratio = |world: usize, of: &dyn Fn(Pair<'_>) -> Option<u64>| {
            let values =
                |cell| self.pairs(cell, world).into_iter().filter_map(of).collect::<Vec<u64>>();
            let pairs: Vec<(u64, u64)> = values(cell).into_iter().zip(values(other)).collect();
            self.comparison.ratio(&pairs)
        };
        let in_simulator = |world| ratio(world, &|(_, record)| metric.of(record));
        let simulated = in_simulator(0)?;
        let emulated = ratio(0, &|(record, _)| metric.of(record))?;
        let (low, high) = simulated.interval?;
        if low <= 1.0 && high >= 1.0 {
            return None;
        }
        let [page, network, one] = self.names(cell);
        let [_, _, two] = self.names(other);
        let is_faster = high < 1.0;
        let turned = |ratio: f64| if is_faster { ratio } else { 1.0 / ratio };
        let (faster, slower) = if is_faster { (one, two) } else { (two, one) };
        let with_costs = turned(in_simulator(1)?.mean);
        let (simulated, emulated) = (turned(simulated.mean), turned(emulated.mean));
        let turns_at = (0..).zip(Variant::ALL).find_map(|(world, variant)| {
            let Variant::Wakes(micros) = variant else { return None };
            let is_turned = emulated >= 1.0 && turned(in_simulator(world)?.mean) >= 1.0;
            is_turned.then_some(u64::from(micros) * 1_000)
        });
        Some(Order {
            page,
            network,
            metric,
            faster,
            slower,
            simulated,
            with_costs,
            emulated,
            turns_at,
        })
    }
}

/// Draws of an interval; our choice, fewer than of results, as there is one for each line.
const INTERVALS: usize = 2_000;

#[cfg(test)]
mod tests;
