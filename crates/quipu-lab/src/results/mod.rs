//! Results: what each run measured, what the runs say together, and the files that keep both.
//!
//! [`RunRecord`] holds one run, [`Summary`] compares the policies of a sweep, and [`Output`] writes
//! both into a directory that appears whole or not at all.

mod fairness;
mod files;
mod networks;
mod output;
mod page_note;
mod parquet;
mod record;
mod series;
mod sharing;
mod streams;
mod summary;
mod tables;
mod traffic;
mod traffic_files;

pub use fairness::Fairness;
pub(crate) use fairness::jain;
pub use files::FileError;
pub(crate) use files::{Tables, known_columns, table_names};
pub(crate) use networks::NetworksFile;
pub use output::{Output, OutputError};
pub use page_note::{DrawnNote, PageNote, QuantityNote};
pub use record::{
    Bounds, ConnectionRecord, End, ObjectRecord, PathRecord, RunRecord, StreamRecord,
};
pub(crate) use series::SeriesPart;
pub use series::SeriesRow;
pub use sharing::{CrossSummary, FlowSummary, LinkSummary, Sharing, Spread};
pub use streams::StreamSummary;
pub use summary::{
    Failure, Identical, Metric, MetricSummary, PathShare, RowSummary, Summary, WORLD,
};
pub(crate) use tables::{Column, Form, Kind, TableFile, Value};
pub use traffic::{CrossRecord, FlowPathRecord, FlowRecord, LinkRecord, TrafficRecord};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that it was built from, or `unknown`.
pub const COMMIT: &str = env!("QUIPU_COMMIT");
