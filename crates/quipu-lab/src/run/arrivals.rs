//! What arrives at the end that reads a page, and on which path: for the picture of one load.
//!
//! The end's connections have a recorder, which changes nothing, and HTTP tells which stream carries
//! which object. Without it a request costs one branch.

mod frames;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_base::{Bytes, Instant, Role, StreamId};
use quipu_quic::RangeSet;
use quipu_quic::recorder::{Event, Recorder, RecorderFactory};
use quipu_quic::wire::Frame;
use quipu_web::page::ObjectId;

use self::frames::DataFrames;
use super::asked::{Asked, VisitObject};

/// Takes note of what arrives at one client's pages, in the one run of its plan.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    client: u32,
    log: Arc<Mutex<Log>>,
}

/// Bytes of an object's body that came in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Position in the page.
    pub(crate) object: u32,
    /// When the packet came.
    pub(crate) at: Instant,
    /// On which path.
    pub(crate) path: u32,
    /// Bytes that had not come before.
    pub(crate) bytes: Bytes,
    /// Bytes that had.
    pub(crate) again: Bytes,
}

/// Number of a connection of the client, and a stream of it.
type Place = (usize, StreamId);

#[derive(Debug, Default)]
struct Log {
    /// Connections by the reading end's address on their first path.
    lines: BTreeMap<SocketAddr, usize>,
    /// In the order in which they came.
    stretches: Vec<Stretch>,
    /// What each stream of the transport carries, in order of its bytes.
    parts: BTreeMap<Place, Vec<Part>>,
    /// What was asked for on the streams of HTTP that share one of the transport.
    shared: BTreeMap<Place, Asked>,
}

/// Bytes of a stream that came in one packet.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    at: Instant,
    path: u32,
    place: Place,
    start: u64,
    end: u64,
}

/// Bytes of a stream that are of one body.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    of: Asked,
}

impl Arrivals {
    /// Nothing seen yet of the pages of client `client`.
    pub(crate) fn of_client(client: u32) -> Arrivals {
        Arrivals { client, log: Arc::default() }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of the page of visit `visit`, in the order in which it came.
    pub(crate) fn of_visit(&self, visit: u32) -> Vec<Arrival> {
        let log = self.log();
        let mut seen: BTreeMap<Place, RangeSet> = BTreeMap::new();
        let mut arrivals = Vec::new();
        for stretch in &log.stretches {
            let Some(parts) = log.parts.get(&stretch.place) else { continue };
            let seen = seen.entry(stretch.place).or_default();
            let first = parts.partition_point(|part| part.end <= stretch.start);
            for part in parts.iter().skip(first).take_while(|part| part.start < stretch.end) {
                let (start, end) = (part.start.max(stretch.start), part.end.min(stretch.end));
                let new = seen.insert(start..end);
                match part.of {
                    Asked::Page(VisitObject { visit: of, object }) if of == visit => {
                        arrivals.push(Arrival {
                            object: object.0,
                            at: stretch.at,
                            path: stretch.path,
                            bytes: Bytes(new),
                            again: Bytes(end - start - new),
                        });
                    }
                    _ => {}
                }
            }
        }
        arrivals
    }
}

/// The reading end of a connection, for what knows its streams.
#[derive(Clone, Debug)]
pub(super) struct LineArrivals {
    arrivals: Arrivals,
    line: usize,
    reader: Role,
    /// Whether all of HTTP comes on one stream.
    framed: bool,
}

impl Arrivals {
    /// Connection `line` of client `client`, whose end in the role `reader` has `address` on its first
    /// path; `None` if it is another client's.
    pub(super) fn line(
        &self,
        (client, line): (u32, usize),
        reader: Role,
        address: SocketAddr,
        framed: bool,
    ) -> Option<LineArrivals> {
        if client != self.client {
            return None;
        }
        self.log().lines.insert(address, line);
        Some(LineArrivals { arrivals: self.clone(), line, reader, framed })
    }
}

impl LineArrivals {
    /// The end in this role reads.
    pub(super) fn reader(&self) -> Role {
        self.reader
    }

    /// `stream`, as HTTP numbers it, carries what `asked` names.
    pub(super) fn asked(&self, stream: StreamId, asked: Asked) {
        let place = (self.line, stream);
        let mut log = self.arrivals.log();
        if self.framed {
            log.shared.insert(place, asked);
        } else {
            log.parts.insert(place, vec![Part { start: 0, end: u64::MAX, of: asked }]);
        }
    }

    /// `stream` carried `body` bytes behind what HTTP puts before them, and is over.
    pub(super) fn ended(&self, stream: StreamId, body: Bytes) {
        if self.framed {
            return;
        }
        let place = (self.line, stream);
        let mut log = self.arrivals.log();
        let of_place = log.stretches.iter().filter(|stretch| stretch.place == place);
        let end = of_place.map(|stretch| stretch.end).max().unwrap_or(0);
        if let Some([part]) = log.parts.get_mut(&place).map(Vec::as_mut_slice) {
            part.start = end.saturating_sub(body.0);
        }
    }

    /// `stream` carries these objects of the one page, one after the other.
    pub(super) fn holds(&self, stream: StreamId, objects: impl Iterator<Item = (ObjectId, Bytes)>) {
        let mut end = 0_u64;
        let part = |(object, len): (ObjectId, Bytes)| {
            let start = end;
            end = end.saturating_add(len.0);
            Part { start, end, of: Asked::Page(VisitObject { visit: 0, object }) }
        };
        let parts = objects.map(part).collect();
        self.arrivals.log().parts.insert((self.line, stream), parts);
    }

    /// Recorders of the reading end's connections, each also telling what `others` makes.
    pub(super) fn recorders(&self, others: Option<RecorderFactory>) -> RecorderFactory {
        let LineArrivals { arrivals, framed, .. } = self.clone();
        Arc::new(move |started| {
            let line = arrivals.log().lines.get(&started.route.local).copied();
            let other = others.as_ref().and_then(|make| make(started));
            let Some(line) = line else { return other };
            let frames = framed.then(DataFrames::default);
            Some(Box::new(Reader { arrivals: arrivals.clone(), line, frames, other }))
        })
    }
}

/// Takes note of what comes over one connection.
struct Reader {
    arrivals: Arrivals,
    line: usize,
    /// What the one stream's frames hold, if all of HTTP comes on it.
    frames: Option<DataFrames>,
    other: Option<Box<dyn Recorder>>,
}

impl Recorder for Reader {
    fn record(&mut self, now: Instant, event: &Event<'_>) {
        if let Event::PacketReceived { packet, .. } = event {
            let mut log = self.arrivals.log();
            // A frame that cannot be read ends the connection, and the run with it.
            for frame in packet.frames().map_while(Result::ok) {
                let Frame::Stream(frame) = frame else { continue };
                let place = (self.line, frame.stream);
                let start = frame.offset.0;
                let end = start.saturating_add(frame.data.len() as u64);
                if let Some(frames) = &mut self.frames {
                    frames.take(start, frame.data, |stream, start, end| {
                        let of = log.shared.get(&(self.line, stream)).copied();
                        let part = of.map(|of| Part { start, end, of });
                        log.parts.entry(place).or_default().extend(part);
                    });
                }
                if start < end {
                    log.stretches.push(Stretch { at: now, path: packet.path.0, place, start, end });
                }
            }
        }
        if let Some(other) = &mut self.other {
            other.record(now, event);
        }
    }
}
