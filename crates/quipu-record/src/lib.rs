//! What runs measured: records, tables, files and statistics.
//!
//! - [`RunRecord`]: the load of one page, with its objects, paths, flows and links, in integer nanoseconds,
//!   bytes and counts; [`SeriesRow`]: a connection or a path at one instant.
//! - [`Tables`]: the tables of records, in CSV and Parquet, with names from [`RunNames`]; [`Output`]: the
//!   folder that a result becomes, whole or not at all.
//! - [`Metric`]: a quantity that each run gives; [`Summary`]: what the runs say together.
//! - [`Detail`]: one load in full, which [`Replays`] run again; [`verdict`]: what runs say of claims, by
//!   [`threshold`]s.
//! - [`stats`]: medians, quantiles, paired ratios and bootstrap intervals.
//!
//! Start with [`RunRecord`], [`Tables`] and [`Summary`].
//!
//! Not here: runs, plans, policies and scenarios. A record holds numbers and positions, so that whoever reads
//! results needs no engine.

mod bounded;
mod computing_range;
mod detail;
pub mod energy;
mod fairness;
mod faster_alone;
mod file;
mod loads;
mod metric;
mod names;
mod nearest;
mod network_share;
mod networks;
mod output;
mod page;
mod place;
mod provenance;
mod replay;
mod run;
mod series;
mod sharing;
mod sheets;
pub mod stats;
mod streams;
mod summary;
mod tables;
pub mod threshold;
mod traffic;
mod turned;
pub mod verdict;
mod whole_file;

pub use bounded::read_at_most;
pub use computing_range::computing_range;
pub use detail::{Carried, ConnectionSeries, Detail, Mismatch, ObjectDetail, PathSeries, Segment};
pub use fairness::{Fairness, between_clients, jain};
pub use faster_alone::{Contender, FasterAlone, faster_alone};
pub use file::{FileError, write as write_file};
pub use loads::{LoadKey, Runs, groups, pairs};
pub use metric::{BoundOf, Dimension, Entry, Metric, OfLoad, Scope, Shown};
pub use names::{CrossNames, FlowNames, ObjectNames, Place, RunNames};
pub use nearest::{nearest, suggestion};
pub use network_share::NetworkShare;
pub use networks::{NetworkPath, NetworksFile};
pub use output::{INPUTS, Output, OutputError, replace_folder};
pub use page::{DrawnNote, PageNote, QuantityNote};
pub use provenance::Provenance;
pub use replay::{LoadPlace, Replay, Replays, ResultFolder};
pub use run::{Bounds, ConnectionRecord, End, ObjectRecord, PathRecord, RunRecord, StreamRecord};
pub use series::{SeriesPart, SeriesRow, join as join_series};
pub use sharing::{CrossSummary, FlowSummary, LinkSummary, PathShare, Sharing, Spread};
pub use sheets::{
    SCENARIO, SUMMARY, Tables, column_kind, known_columns, names as file_names, table_names,
};
pub use streams::{StreamSummary, summaries as stream_summaries};
pub use summary::{Failure, Identical, MetricSummary, RowSummary, Summary};
pub use tables::{Column, Form, Kind, TableFile, Value};
pub use traffic::{
    CrossRecord, Direction, FlowPathRecord, FlowRecord, LinkRecord, TrafficRecord, per_mille,
};
pub use turned::{ComputingRange, RatioTo, Turned};
pub use whole_file::write_whole;
