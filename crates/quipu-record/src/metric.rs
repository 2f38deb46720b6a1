//! The registry of metrics: every number that a run gives, under one name for tables, sorting, rules,
//! sweeps, reports and documents.

use std::fmt;

use quipu_base::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use crate::run::{Bounds, RunRecord};
use crate::traffic::FlowRecord;

/// What a number counts. Amounts are held in the unit of result files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Nothing: a ratio, a share, a count.
    #[default]
    Plain,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// Bits per second.
    Rate,
    /// Microjoules.
    Energy,
}

/// What a metric is a number of. All but loads need to be told which, or which of several numbers.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// A load of a page.
    Load(OfLoad),
    /// A load of a page: a metric of it by the bound that it has.
    OverBound(Metric),
    /// A load of a page: a number with a fraction, for rules.
    Number(fn(&RunRecord) -> Option<f64>),
    /// A path of the network, by position: a load's number of it.
    Path(fn(&RunRecord, u32) -> Option<f64>),
    /// The objects of a page under one policy beside those under another.
    Order,
    /// The objects of a page.
    Object,
    /// A raw stream.
    Stream,
    /// A flow, by itself.
    Flow(fn(&FlowRecord) -> Option<f64>),
    /// A flow among those of its direction.
    FlowAmong,
    /// The flows of one direction.
    Flows,
    /// A link.
    Link,
    /// The samples of a time series.
    Series,
    /// The pages that a model draws.
    Model,
}

/// How a load gives a metric, and where it is shown.
#[derive(Clone, Copy, Debug)]
pub struct OfLoad {
    /// The number; `None` if the load has none.
    pub of: fn(&RunRecord) -> Option<u64>,
    /// Its column of `runs.csv`, if it has one.
    pub column: Option<&'static str>,
    /// What it cannot be below, if anything is known.
    pub bound: Option<BoundOf>,
    /// Its columns in the tables of comparisons; none: only in files, for sorting and rules.
    pub shown: Option<Shown>,
}

/// A lower bound of a metric.
#[derive(Clone, Copy, Debug)]
pub struct BoundOf {
    /// The bounds; zero where there is none.
    pub of: fn(&RunRecord) -> Bounds,
    /// The tight bound's column of `runs.csv`.
    pub column: &'static str,
    /// The tight bound in words.
    pub words: &'static str,
}

/// How a metric is shown in the tables of comparisons.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Title of its medians.
    pub median: &'static str,
    /// Whether the 95th percentile stands beside them.
    pub p95: bool,
    /// Title of its ratios to the first policy, if they are shown.
    pub ratio: Option<&'static str>,
    /// Whether it stands behind the shares of paths instead of before them.
    pub behind_shares: bool,
}

/// A metric as the registry has it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in rules and on the command line.
    pub name: &'static str,
    /// In words, as sentences have it.
    pub words: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What it counts.
    pub dimension: Dimension,
    /// What it is a number of.
    pub scope: Scope,
}

/// Declares [`Metric`] and its registry from one list.
macro_rules! metrics {
    ($($(#[doc = $about:literal])+ $metric:ident = $name:literal, $words:literal, $dimension:ident, $scope:expr;)+) => {
        /// A number that a run gives. In `summary.json` its name is that of the variant, with underscores.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Metric { $($(#[doc = $about])+ $metric,)+ }

        const ENTRIES: &[Entry] = &[$(
            Entry {
                name: $name,
                words: $words,
                about: concat!($($about),+),
                dimension: Dimension::$dimension,
                scope: $scope,
            },
        )+];

        impl Metric {
            /// All metrics, in the order of the files.
            pub const ALL: &[Metric] = &[$(Metric::$metric),+];
            /// Their names in rules and on the command line, in the same order.
            pub const NAMES: &[&str] = &[$($name),+];
        }
    };
}

/// A load's metric that only files, sorting and rules have.
const fn of_load(of: fn(&RunRecord) -> Option<u64>) -> OfLoad {
    OfLoad { of, column: None, bound: None, shown: None }
}

/// A column of medians with its percentile or without, and ratios.
const fn shown(median: &'static str, p95: bool, ratio: &'static str) -> Option<Shown> {
    Some(Shown { median, p95, ratio: Some(ratio), behind_shares: false })
}

/// A time of a page; a run without a page has none.
fn of_page(record: &RunRecord, time: Duration) -> Option<u64> {
    (!record.objects.is_empty()).then_some(time.as_nanos())
}

fn above_floor(record: &RunRecord) -> Option<u64> {
    let time = of_page(record, record.page_time)?;
    let floor = record.page_floor.as_nanos();
    (floor > 0).then(|| time.saturating_sub(floor))
}

fn of_sender(record: &RunRecord, bytes: Bytes) -> Option<u64> {
    (record.sender_packets() > 0).then_some(bytes.0)
}

/// A path's part of the bytes that the sender sent.
fn share(record: &RunRecord, path: u32) -> Option<f64> {
    let all = record.sender_total(|path| path.bytes_sent).0;
    let sent: u64 = record.sender_path(path).map(|path| path.bytes_sent.0).sum();
    (all > 0).then(|| sent as f64 / all as f64)
}

/// Mean time to detect a loss among the sender's packets on a path; `None` if none was lost.
fn loss_detection(record: &RunRecord, path: u32) -> Option<f64> {
    let lost: u64 = record.sender_path(path).map(|path| path.packets_lost).sum();
    let time: u64 = record.sender_path(path).map(|path| path.loss_detection.as_nanos()).sum();
    (lost > 0).then(|| time as f64 / lost as f64)
}

fn nanos(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_nanos() as f64)
}

metrics! {
    /// From the start of the first connection to the handshake's end.
    ConnectTime = "connect", "connect time", Time, Scope::Load(OfLoad {
        column: Some("connect_time_ns"),
        shown: shown("connect", true, "connect"),
        ..of_load(|record| of_page(record, record.connect_time))
    });
    /// Page time: from the first request to the last byte of the last object that the load waits for.
    PageTime = "page", "page time", Time, Scope::Load(OfLoad {
        column: Some("page_time_ns"),
        bound: Some(BoundOf {
            of: |record| record.page_bound,
            column: "page_bound_ns",
            words: "bound of the page time",
        }),
        shown: shown("page ms", true, "page"),
        ..of_load(|record| of_page(record, record.page_time))
    });
    /// The part of the page time that a network can change: what is above the time that the page would take on an
    /// infinitely fast one. A page that takes none there has no such number, as it would be the page time.
    PageAboveFloor = "page-above-floor", "page time above the floor", Time, Scope::Load(OfLoad {
        column: Some("page_above_floor_ns"),
        shown: shown("above floor", false, "page above floor"),
        ..of_load(above_floor)
    });
    /// ObjectIndex: mean over the page's objects of the time to their completion.
    ObjectIndex = "objects", "ObjectIndex", Time, Scope::Load(OfLoad {
        column: Some("object_index_ns"),
        shown: shown("ObjectIndex", false, "ObjectIndex"),
        ..of_load(|record| of_page(record, record.object_index))
    });
    /// ByteIndex: integral over time of the share of body bytes that is missing.
    ByteIndex = "bytes", "ByteIndex", Time, Scope::Load(OfLoad {
        column: Some("byte_index_ns"),
        shown: shown("ByteIndex", false, "ByteIndex"),
        ..of_load(|record| of_page(record, record.byte_index))
    });
    /// Critical time: completion of the document, blocking style sheets and blocking scripts.
    CriticalTime = "critical", "critical time", Time, Scope::Load(OfLoad {
        column: Some("critical_time_ns"),
        bound: Some(BoundOf {
            of: |record| record.critical_bound,
            column: "critical_bound_ns",
            words: "bound of the critical time",
        }),
        shown: shown("critical", false, "critical"),
        ..of_load(|record| of_page(record, record.critical_time))
    });
    /// Stream bytes that the sender retransmitted after a loss.
    BytesResent = "resent", "retransmitted bytes", Size, Scope::Load(OfLoad {
        column: Some("bytes_resent"),
        shown: Some(Shown { median: "retransmitted", p95: false, ratio: None, behind_shares: true }),
        ..of_load(|record| of_sender(record, record.sender_total(|path| path.bytes_resent)))
    });
    /// Stream bytes that the sender sent as copies of bytes in flight.
    BytesCopies = "copies", "copied bytes", Size, Scope::Load(OfLoad {
        column: Some("bytes_copies"),
        ..of_load(|record| of_sender(record, record.sender_total(|path| path.bytes_copies)))
    });
    /// Packets of the sender per change of path; all packets if there was none.
    PathStability = "stability", "packets per path switch", Plain,
        Scope::Load(of_load(|record| Some(record.path_stability())));
    /// Energy of the client's radios, tails included, over the paths that have a model of it.
    Energy = "energy", "energy", Energy, Scope::Load(of_load(|record| {
        let all = record.radios.iter().filter_map(|radio| radio.energy);
        all.reduce(u64::saturating_add)
    }));
    /// What all bytes cost in both directions, by the prices of paths, in the unit of these.
    Cost = "cost", "cost", Plain, Scope::Number(|record| {
        let all = record.radios.iter().filter_map(|radio| radio.cost);
        Some(all.reduce(u64::saturating_add)? as f64 / 1e6)
    });
    /// Page time by the bound that no scheduler can beat.
    PageOverBound = "page-over-bound", "page time / bound", Plain,
        Scope::OverBound(Metric::PageTime);
    /// Critical time by its bound.
    CriticalOverBound = "critical-over-bound", "critical time over its bound", Plain,
        Scope::OverBound(Metric::CriticalTime);
    /// The part of the page time that is above the floor: the network's share of it.
    NetworkShare = "network-share", "the network's share of the page time", Plain, Scope::Number(|record| {
        let page = of_page(record, record.page_time).filter(|time| *time > 0)?;
        Some(page.saturating_sub(record.page_floor.as_nanos()) as f64 / page as f64)
    });
    /// A path's part of the bytes that the sender sent. Needs `path`.
    Share = "share", "share of a path", Plain, Scope::Path(share);
    /// Energy of the client's radio on a path, which has a model of it. Needs `path`.
    PathEnergy = "path-energy", "energy of a path", Energy, Scope::Path(|record, path| {
        Some(record.radio(path)?.energy? as f64)
    });
    /// Time in which a path with a model of energy or a price carried something. Needs `path`.
    ActiveTime = "active-time", "active time of a path", Time, Scope::Path(|record, path| {
        Some(record.radio(path)?.active.as_nanos() as f64)
    });
    /// Mean time from sending a packet on a path to counting it as lost. Needs `path`.
    LossDetection = "loss-detection", "time to detect a loss", Time, Scope::Path(loss_detection);
    /// Kendall's rank correlation of the order in which objects end with that under another policy in the
    /// same run: 1 for the same order, −1 for the reverse. Needs `against`.
    Order = "order", "agreement of the order of objects", Plain, Scope::Order;
    /// Completion of objects since the start of the page.
    Object = "object", "object completion time", Time, Scope::Object;
    /// Load time of a raw stream. Needs `stream`.
    Stream = "stream", "load time of a stream", Time, Scope::Stream;
    /// What a flow's receiver got per second. Needs `flow`.
    Goodput = "goodput", "goodput", Rate,
        Scope::Flow(|flow| Some(flow.goodput().bits_per_sec() as f64));
    /// A flow's part of the bytes of all flows of its direction. Needs `flow`.
    FlowShare = "flow-share", "share of a flow", Plain, Scope::FlowAmong;
    /// Mean round trip of a flow. Needs `flow`.
    RttMean = "rtt-mean", "mean round trip", Time, Scope::Flow(|flow| nanos(flow.rtt_mean));
    /// 95th percentile of a flow's round trips. Needs `flow`.
    RttP95 = "rtt-p95", "95th percentile of round trips", Time,
        Scope::Flow(|flow| nanos(flow.rtt_p95));
    /// Part of a flow's packets that counted as lost. Needs `flow`.
    Lost = "lost", "lost packets", Plain, Scope::Flow(|flow| {
        let sent = (flow.packets_sent > 0).then_some(flow.packets_sent as f64);
        sent.map(|sent| flow.packets_lost as f64 / sent)
    });
    /// Jain's index over what the flows of one direction got.
    Fairness = "fairness", "fairness", Plain, Scope::Flows;
    /// Part of a link's capacity that was used. Needs `path`.
    Utilisation = "utilisation", "utilisation", Plain, Scope::Link;
    /// A column of the time series. Needs `column`.
    Series = "series", "time series", Plain, Scope::Series;
    /// Times of a state of the congestion controller in the time series. Needs `state`.
    State = "state", "times of a state", Plain, Scope::Series;
    /// A quantity of the model that pages are drawn from, over all pages drawn. Needs `column`.
    Drawn = "drawn", "quantity of the model", Plain, Scope::Model;
}

impl Metric {
    /// What the registry says of it.
    pub fn entry(self) -> &'static Entry {
        // The enum and the registry are made from one list.
        &ENTRIES[self as usize]
    }

    /// The metric called `name` in rules and on the command line.
    pub fn named(name: &str) -> Option<Metric> {
        Metric::ALL.iter().copied().find(|metric| metric.name() == name)
    }

    /// The metrics that a load gives by itself, in the order of the files: summaries have these, and rows
    /// can be sorted by them.
    pub fn of_loads() -> impl Iterator<Item = (Metric, &'static OfLoad)> {
        Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.of_load()?)))
    }

    /// How a load gives it; `None` for those of another scope.
    pub fn of_load(self) -> Option<&'static OfLoad> {
        match &self.entry().scope {
            Scope::Load(of) => Some(of),
            _ => None,
        }
    }

    /// Its name in rules and on the command line.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What its numbers count.
    pub fn dimension(self) -> Dimension {
        self.entry().dimension
    }

    /// The metric of `record`, in nanoseconds, bytes or packets; `None` if it has none, or the metric is
    /// not one of loads.
    pub fn of(self, record: &RunRecord) -> Option<u64> {
        (self.of_load()?.of)(record)
    }

    /// What the metric of `record` cannot be below, for those that have a bound.
    pub fn bound(self, record: &RunRecord) -> Option<Bounds> {
        let bounds = (self.of_load()?.bound?.of)(record);
        (!bounds.tight.is_zero()).then_some(bounds)
    }

    /// The metric of `record` as rules take it: a number of its unit, or a ratio to a bound.
    pub fn number(self, record: &RunRecord) -> Option<f64> {
        match self.entry().scope {
            Scope::OverBound(metric) => {
                let bound = metric.bound(record)?.tight.as_nanos();
                Some(metric.of(record)? as f64 / bound as f64)
            }
            Scope::Number(of) => of(record),
            _ => self.of(record).map(|number| number as f64),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::RadioRecord;
    use crate::sheets::runs_columns;

    #[test]
    fn every_column_that_a_metric_names_is_in_the_table_of_runs() {
        let columns: Vec<&str> = runs_columns().collect();
        for (metric, of) in Metric::of_loads() {
            let named = of.column.into_iter().chain(of.bound.map(|bound| bound.column));
            for column in named {
                assert!(columns.contains(&column), "{metric}: {column}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_find_their_metric() {
        for metric in Metric::ALL {
            assert_eq!(Metric::named(metric.name()), Some(*metric));
        }
        assert_eq!(Metric::named("page time"), None);
    }

    #[test]
    fn energy_and_cost_are_sums_over_paths_that_have_them() {
        let radio = |path, energy, cost| RadioRecord {
            path,
            active: Duration::from_millis(7),
            energy,
            cost,
            ..RadioRecord::default()
        };
        let radios = vec![radio(0, Some(3), None), radio(1, Some(4), Some(2_500_000))];
        let record = RunRecord { radios, ..RunRecord::default() };
        assert_eq!(Metric::Energy.of(&record), Some(7));
        assert_eq!(Metric::Cost.number(&record), Some(2.5));
        let of_path = |metric: Metric, path| match metric.entry().scope {
            Scope::Path(of) => of(&record, path),
            _ => None,
        };
        assert_eq!(of_path(Metric::PathEnergy, 1), Some(4.0));
        assert_eq!(of_path(Metric::ActiveTime, 0), Some(7e6));
        assert_eq!(of_path(Metric::PathEnergy, 2), None);
        let record = RunRecord::default();
        assert_eq!((Metric::Energy.of(&record), Metric::Cost.number(&record)), (None, None));
    }

    #[test]
    fn a_run_without_a_page_has_no_times_of_a_page() {
        let record = RunRecord::default();
        for (metric, _) in Metric::of_loads() {
            if metric.dimension() == Dimension::Time {
                assert_eq!(metric.of(&record), None, "{metric}");
            }
        }
        assert_eq!(Metric::PageOverBound.number(&record), None);
    }
}
