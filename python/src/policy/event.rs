//! Events of the engine as calls of methods. Only those that a class has are made: events are several per packet.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quipu_policy::{Event, Kind, PathKey, Piece, SentPacket, StreamKey, TreeEdit};

/// The methods of events.
const NAMES: [&str; 24] = [
    "on_opened",
    "on_sized",
    "on_written",
    "on_reprioritised",
    "on_tree",
    "on_requeued",
    "on_ready",
    "on_stopped",
    "on_closed",
    "on_placed",
    "on_sent",
    "on_acked",
    "on_lost",
    "on_path_up",
    "on_path_measured",
    "on_path_suspect",
    "on_path_revived",
    "on_path_status",
    "on_path_gone",
    "on_pto",
    "on_ack_seen",
    "on_ack_sent",
    "on_drained",
    "on_woken",
];

/// Where the method for `event` is in [`NAMES`]; `None`: there is none.
fn index(event: &Event<'_>) -> Option<usize> {
    Some(match event {
        Event::Opened(_) => 0,
        Event::Sized(_) => 1,
        Event::Written(_) => 2,
        Event::Reprioritised(_) => 3,
        Event::Tree(_) => 4,
        Event::Requeued { .. } => 5,
        Event::Ready(_) => 6,
        Event::Stopped(_) => 7,
        Event::Closed(_) => 8,
        Event::Placed { .. } => 9,
        Event::Sent(_) => 10,
        Event::Acked(_) => 11,
        Event::Lost(_) => 12,
        Event::PathUp(_) => 13,
        Event::PathMeasured(_) => 14,
        Event::PathSuspect(_) => 15,
        Event::PathRevived(_) => 16,
        Event::PathStatus(_) => 17,
        Event::PathGone(_) => 18,
        Event::Pto(_) => 19,
        Event::AckSeen { .. } => 20,
        Event::AckSent(_) => 21,
        Event::Drained => 22,
        Event::Woken => 23,
        _ => return None,
    })
}

/// The methods that a policy has for events.
pub(crate) struct Handlers([Option<Py<PyAny>>; NAMES.len()]);

impl Handlers {
    /// Those of `object`.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Handlers> {
        let mut handlers = [const { None }; NAMES.len()];
        for (name, handler) in NAMES.iter().zip(&mut handlers) {
            *handler = object.getattr_opt(name)?.map(Bound::unbind);
        }
        Ok(Handlers(handlers))
    }

    /// The method for `event`, if it has one.
    pub(crate) fn handler(&self, event: &Event<'_>) -> Option<&Py<PyAny>> {
        self.0[index(event)?].as_ref()
    }
}

/// A packet that was sent: numbers that may be kept.
#[pyclass(frozen, module = "quipu", name = "Packet", get_all)]
pub(crate) struct PacketObject {
    /// Identifier of its path.
    path: u32,
    /// Its number in the path's packet number space.
    number: u64,
    /// Size of the UDP payload.
    bytes: u64,
    /// When it was sent, in nanoseconds since the start of the run.
    sent_at_ns: u64,
    /// Its frames: (stream, first byte, byte behind the last, `fresh`, `again` or `copy`).
    pieces: Vec<(u64, u64, u64, &'static str)>,
}

fn piece(piece: &Piece) -> (u64, u64, u64, &'static str) {
    (piece.stream.id.0, piece.span.start.0, piece.span.end.0, kind(piece.kind))
}

/// How Python calls why a frame was sent.
pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Fresh => "fresh",
        Kind::Again => "again",
        Kind::Copy => "copy",
    }
}

fn packet(sent: &SentPacket<'_>) -> PacketObject {
    PacketObject {
        path: sent.path.id.0,
        number: sent.pn.0,
        bytes: sent.bytes.0,
        sent_at_ns: sent.sent_at.as_nanos(),
        pieces: sent.pieces.iter().map(piece).collect(),
    }
}

/// Calls `handler` with what `event` tells, and the view as its last argument.
pub(crate) fn call(
    py: Python<'_>,
    handler: &Py<PyAny>,
    event: &Event<'_>,
    view: Bound<'_, PyAny>,
) -> PyResult<()> {
    let stream = |stream: &StreamKey| stream.id.0;
    let path = |path: &PathKey| path.id.0;
    match event {
        Event::Opened(key)
        | Event::Sized(key)
        | Event::Written(key)
        | Event::Reprioritised(key)
        | Event::Ready(key)
        | Event::Stopped(key)
        | Event::Closed(key) => handler.call1(py, (stream(key), view)),
        Event::Tree(edit) => handler.call1(py, (tree(py, edit)?, view)),
        Event::Requeued { stream: key, span, origin } => {
            handler.call1(py, (stream(key), span.start.0, span.end.0, path(origin), view))
        }
        Event::Placed { path: on, piece: it } => handler.call1(py, (path(on), piece(it), view)),
        Event::Sent(it) | Event::Acked(it) | Event::Lost(it) => {
            handler.call1(py, (packet(it), view))
        }
        Event::PathUp(key)
        | Event::PathMeasured(key)
        | Event::PathSuspect(key)
        | Event::PathRevived(key)
        | Event::PathStatus(key)
        | Event::PathGone(key)
        | Event::Pto(key)
        | Event::AckSent(key) => handler.call1(py, (path(key), view)),
        Event::AckSeen { data, arrived_on, since_sent, advances, .. } => handler
            .call1(py, (path(data), path(arrived_on), since_sent.as_nanos(), *advances, view)),
        _ => handler.call1(py, (view,)),
    }
    .map(drop)
}

/// An edit of the dependency tree: a dictionary with `edit`, `node` and what else it has.
fn tree<'py>(py: Python<'py>, edit: &TreeEdit) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    let (name, node) = match *edit {
        TreeEdit::Inserted { node, parent, weight } => {
            told.set_item("parent", parent.0)?;
            told.set_item("weight", weight)?;
            ("inserted", node)
        }
        TreeEdit::Moved { node, parent } => {
            told.set_item("parent", parent.0)?;
            ("moved", node)
        }
        TreeEdit::Weighted { node, weight } => {
            told.set_item("weight", weight)?;
            ("weighted", node)
        }
        TreeEdit::Removed { node } => ("removed", node),
        TreeEdit::Attached { node, stream } => {
            told.set_item("stream", stream.id.0)?;
            ("attached", node)
        }
    };
    told.set_item("edit", name)?;
    told.set_item("node", node.0)?;
    Ok(told)
}
