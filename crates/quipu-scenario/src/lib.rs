//! Scenario files: every value that decides a result, with its default, check, schema and reference.
//!
//! - [`Scenario`]: one plain struct of fields with documented defaults, read from TOML, changed by
//!   overrides ([`Scenario::with_field`]), checked by [`Scenario::validate`] and written out whole beside
//!   every result.
//! - [`Document`]: the text of a file, and all [`Findings`] in it, each with its place.
//! - [`Network`] and its [`PathSpec`]: links, queues, losses, recordings and radio; those that come with the
//!   program are [`builtin_networks`].
//! - [`experiment`]: the format of `[experiment]`, the claims that are made of results; [`SweepSpec`]: that
//!   of `[sweep]`.
//! - [`schema`] and [`reference`](reference()): the form of a file, for editors and for readers.
//!
//! Start with [`Scenario`], [`Document`] and [`Network`].
//!
//! Not here: the pages, browsers and policies that a scenario names, and runs.

mod cases;
mod checks;
mod choice;
mod convert;
mod document;
mod error;
pub mod experiment;
mod field_path;
mod finding;
mod form;
mod host;
mod hosts;
mod http;
mod input;
mod limits;
mod link;
mod loss;
mod network;
mod network_name;
mod networks;
mod origin;
mod overrides;
mod page_name;
mod partial;
mod path;
mod policies;
mod policy_layer;
mod profile;
#[cfg(test)]
mod published;
mod queue;
mod radio;
mod raw;
mod reading;
mod recorded;
mod reference;
mod scenario;
mod schema;
mod series;
mod stack;
mod steps;
mod sweep;
mod template;
mod traffic;
mod transport;
pub mod units;
pub mod wildcard;

pub use checks::check_origins;
pub use choice::{
    Certificate, Compute, CrossKind, Direction, Discovery, EnergyModel, HttpVersion, KeyExchange,
    LossDetection, Origins, Priorities, Push, RadioTiming, Reprioritise, ReturnPaths, Sender,
    SeriesEnds, Tls, TraceEnd, WriteOrder,
};
pub use convert::{
    ConvertFileError, ConvertNote, Selection, TraceDirection, TraceForm, TraceFormat, convert_trace,
};
pub use document::{Document, read_text};
pub use error::{LinkError, PolicyError, ScenarioError, distinct};
pub use finding::{Finding, Findings, Place, Spot, findings_json};
pub use host::{HostSpec, Hosts};
pub use hosts::{Clients, ServerSpec};
pub use http::HttpVersions;
pub use input::{
    Input, Inputs, changed, content_hash, count_from, pin, split_hash, with_hash, without_folders,
};
pub use limits::{
    MOST_CLIENTS, MOST_CONNECTIONS, MOST_ORIGINS, MOST_PATHS, MOST_RUNS, MOST_SESSION,
    MOST_TRACE_BYTES,
};
pub use link::{DuplicateSpec, LinkSpec, OutageSpec, ReorderSpec};
pub use loss::LossSpec;
pub use network::{Network, SharedLinks};
pub use networks::{builtin as builtin_networks, find as find_network, is_file as is_network_file};
pub use origin::Origin;
pub use overrides::{PROFILE, put_at, resolve as resolve_field, split_list};
pub use page_name::{PRIES, PageName};
pub use path::{LinksSpec, OwnLinks, PathSpec};
pub use policies::Policies;
pub use policy_layer::PolicyLayer;
pub use profile::{Profile, ProfileValue};
pub use queue::QueueSpec;
pub use quipu_link::{Columns, ColumnsError};
pub use radio::{
    AccessPointSpec, LegSpec, PropagationSpec, RadioSpec, ShadowingSpec, StationSpec, WanderSpec,
    WaypointSpec,
};
pub use raw::{MOST_RAW_OBJECTS, MOST_RAW_STREAMS, Raw, RawStream, Sizes};
pub use reading::Readable;
pub use recorded::{TraceNote, TraceSpec, TraceStart, builtin_traces};
pub use reference::reference;
pub use scenario::{ExperimentTable, Scenario, SweepTable};
pub use schema::{schema, schema_text};
pub use series::Series;
pub use stack::{
    BrowserStack, ForeignChoice, KernelStack, QuicCongestion, Stack, StackName, Stacks,
    TcpCongestion,
};
pub use steps::StepSpec;
pub use sweep::{Amount, PointValues, SweepSpec, SweptField};
pub use template::Template;
pub use traffic::{CrossSpec, FlowSpec, MOST_FLOWS, MOST_STREAMS, Measure, PathName};
pub use transport::{Start, Transport};
