//! Quantities that each run gives.

use std::fmt;

use serde::Serialize;

use crate::run::{Bounds, RunRecord};

/// A quantity measured once per run, or for each page of its session and each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Until the handshake's end.
    ConnectTime,
    /// Until the page is complete.
    PageTime,
    /// Mean completion of objects.
    ObjectIndex,
    /// Mean arrival of bytes.
    ByteIndex,
    /// Until all that blocks is complete.
    CriticalTime,
    /// Bytes that were sent again after a loss.
    BytesResent,
    /// Bytes that were sent as copies.
    BytesCopies,
    /// Packets per change of path.
    PathStability,
}

impl Metric {
    /// All metrics, in the order of the files.
    pub const ALL: [Metric; 8] = [
        Metric::ConnectTime,
        Metric::PageTime,
        Metric::ObjectIndex,
        Metric::ByteIndex,
        Metric::CriticalTime,
        Metric::BytesResent,
        Metric::BytesCopies,
        Metric::PathStability,
    ];

    /// The metric of `record`, in nanoseconds, bytes or packets.
    pub fn of(self, record: &RunRecord) -> u64 {
        match self {
            Metric::ConnectTime => record.connect_time.as_nanos(),
            Metric::PageTime => record.page_time.as_nanos(),
            Metric::ObjectIndex => record.object_index.as_nanos(),
            Metric::ByteIndex => record.byte_index.as_nanos(),
            Metric::CriticalTime => record.critical_time.as_nanos(),
            Metric::BytesResent => record.sender_total(|path| path.bytes_resent).0,
            Metric::BytesCopies => record.sender_total(|path| path.bytes_copies).0,
            Metric::PathStability => record.path_stability(),
        }
    }

    /// What the metric of `record` cannot be below, for those that have a bound.
    pub fn bound(self, record: &RunRecord) -> Option<Bounds> {
        let bounds = match self {
            Metric::PageTime => record.page_bound,
            Metric::CriticalTime => record.critical_bound,
            _ => return None,
        };
        (!bounds.tight.is_zero()).then_some(bounds)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Metric::ConnectTime => "connect time",
            Metric::PageTime => "page time",
            Metric::ObjectIndex => "ObjectIndex",
            Metric::ByteIndex => "ByteIndex",
            Metric::CriticalTime => "critical time",
            Metric::BytesResent => "resent bytes",
            Metric::BytesCopies => "copied bytes",
            Metric::PathStability => "packets per path switch",
        })
    }
}
