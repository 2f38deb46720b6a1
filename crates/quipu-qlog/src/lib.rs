//! qlog files of connections: what a recorder of the engine is told, as JSON text sequences.
//!
//! - [`QlogFolder`]: where files go; it makes the recorders that an
//!   [`Endpoint`](quipu_quic::Endpoint) is given.
//! - [`Form`]: the current drafts' form, or that of version 0.3 for tools of today.
//!
//! Events have the names and fields of draft-ietf-quic-qlog-quic-events-13 ([`QUIC_SCHEMA`]). What
//! that draft has no word for, paths and the frames of RFC 10069 ([`MULTIPATH_SCHEMA`]) and
//! scheduling ([`QUIPU_SCHEMA`]), follows schemas of ours; `docs/qlog.md` explains them, and the
//! folder `schemas` of this crate holds all of them as JSON Schema.
//!
//! Records are written field by field into a buffer, by our own few lines: an engine that sends a
//! million packets per second leaves no time for value trees, and the published crate `qlog` (0.18)
//! knows a closed set of events and frames of the draft before, none of them of multipath.
//!
//! The same run gives the same bytes: times count from its start, and nothing of the machine is
//! told. Not here: the engine's own events ([`quipu_quic::recorder`]), reading of files.

#[macro_use]
mod json;

mod event;
mod file;
mod folder;
mod form;
mod frame;
mod header;
mod recorder;

pub use folder::{QlogError, QlogFolder};
pub use form::{Form, UnknownForm};
pub use header::{MULTIPATH_SCHEMA, QUIC_SCHEMA, QUIPU_SCHEMA};
