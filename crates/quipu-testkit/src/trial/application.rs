//! What an end's application does with its streams, and what it has seen.

use std::collections::{BTreeMap, BTreeSet};

use quipu_base::{Bytes, Duration, Instant, Role, StreamDirection, StreamId};
use quipu_policy::{NodeId, PathStatus, PriorityEdit};
use quipu_quic::{Connection, ConnectionEvent, DatagramId};

use super::{Edit, Op};

/// The code with which senders give up and receivers refuse.
pub(crate) const STREAM_CODE: u64 = 7;

/// What an end knows of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) written: u64,
    pub(crate) finished: bool,
    /// We gave up sending.
    pub(crate) reset: bool,
    /// The peer wanted no more.
    pub(crate) refused: bool,
    /// The peer has everything.
    pub(crate) acknowledged: bool,
    pub(crate) received: u64,
    /// Everything was read.
    pub(crate) ended: bool,
    /// The peer gave up sending.
    pub(crate) given_up: bool,
    /// We wanted no more.
    pub(crate) stopped: bool,
    paused: bool,
    readable: bool,
}

/// The application of one end.
#[derive(Debug)]
pub(crate) struct Application {
    role: Role,
    /// In the order in which they were heard of.
    order: Vec<StreamId>,
    pub(crate) streams: BTreeMap<StreamId, Side>,
    /// Somebody else uses the peer's keys.
    trusts_nobody: bool,
    /// Every stream is ended as soon as it is known.
    winding_up: bool,
    /// Datagrams given to the connection, taken or not.
    sent: u64,
    /// Datagrams of which nothing was told yet.
    pub(crate) datagrams: BTreeSet<DatagramId>,
    /// Numbers of the datagrams that came.
    came: BTreeSet<u64>,
    /// First byte that was wrong.
    pub(crate) wrong: Option<(StreamId, u64)>,
}

impl Application {
    pub(crate) fn new(role: Role, trusts_nobody: bool) -> Self {
        Application {
            role,
            trusts_nobody,
            order: Vec::new(),
            streams: BTreeMap::new(),
            winding_up: false,
            sent: 0,
            datagrams: BTreeSet::new(),
            came: BTreeSet::new(),
            wrong: None,
        }
    }

    /// Bytes that were written to streams of which the peer is not known to have everything, and which
    /// nobody gave up: they are kept to be sent again.
    pub(crate) fn kept(&self) -> u64 {
        let is_over = |side: &&Side| side.acknowledged || side.reset || side.refused;
        self.streams.values().filter(|side| !is_over(side)).map(|side| side.written).sum()
    }

    /// Ends every stream and reads all, now or when there is a connection.
    pub(crate) fn wind_up(&mut self, connection: Option<&mut Connection>, now: Instant) {
        self.winding_up = true;
        let Some(connection) = connection else { return };
        for stream in self.order.clone() {
            self.finish(connection, now, stream);
            self.resume(connection, now, stream);
        }
    }

    pub(crate) fn on_event(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        event: &ConnectionEvent,
    ) {
        match *event {
            ConnectionEvent::StreamOpened(stream) => self.learn(connection, now, stream),
            ConnectionEvent::Readable(stream) => {
                self.side(stream).readable = true;
                self.read(connection, now, stream);
            }
            ConnectionEvent::Finished(stream) => self.side(stream).acknowledged = true,
            ConnectionEvent::Stopped(stream, code) => {
                let is_right = code == STREAM_CODE || self.trusts_nobody;
                assert!(is_right, "the code {code} that the peer gave");
                self.side(stream).refused = true;
            }
            ConnectionEvent::Reset(stream, code) => {
                let is_right = code == STREAM_CODE || self.trusts_nobody;
                assert!(is_right, "the code {code} that the peer gave");
                self.side(stream).given_up = true;
            }
            ConnectionEvent::DatagramReceived => self.read_datagrams(connection),
            ConnectionEvent::DatagramAcked(id)
            | ConnectionEvent::DatagramLost(id)
            | ConnectionEvent::DatagramDropped(id) => {
                self.datagrams.remove(&id);
            }
            _ => {}
        }
    }

    /// Does an operation that concerns streams.
    pub(crate) fn apply(&mut self, connection: &mut Connection, now: Instant, op: &Op) {
        let stream = |back: usize| -> Option<StreamId> {
            self.order.get(self.order.len().checked_sub(back + 1)?).copied()
        };
        match *op {
            Op::Open(_, unidirectional) => {
                let direction = if unidirectional {
                    StreamDirection::Unidirectional
                } else {
                    StreamDirection::Bidirectional
                };
                if let Some(stream) = connection.open_stream(now, direction) {
                    self.learn(connection, now, stream);
                }
            }
            Op::Write(_, back, len) => {
                if let Some(stream) = stream(back) {
                    self.write(connection, now, stream, u64::from(len));
                }
            }
            Op::Finish(_, back) => {
                if let Some(stream) = stream(back) {
                    self.finish(connection, now, stream);
                }
            }
            Op::Reset(_, back) => {
                if let Some(stream) = stream(back)
                    && connection.reset(now, stream, STREAM_CODE).is_ok()
                {
                    self.side(stream).reset = true;
                }
            }
            Op::Stop(_, back) => {
                if let Some(stream) = stream(back)
                    && connection.stop_sending(now, stream, STREAM_CODE).is_ok()
                {
                    self.side(stream).stopped = true;
                }
            }
            Op::Pause(_, back) => {
                if let Some(stream) = stream(back) {
                    self.side(stream).paused = true;
                }
            }
            Op::Resume(_, back) => {
                if let Some(stream) = stream(back) {
                    self.resume(connection, now, stream);
                }
            }
            Op::Control(_, back) => {
                if let Some(stream) = stream(back) {
                    // Fails for a stream that only receives.
                    let _ = connection.set_control(now, stream);
                }
            }
            Op::Datagrams(_, count, length) => {
                for _ in 0..count {
                    self.send_datagram(connection, now, length);
                }
            }
            Op::Priority(_, edit) => {
                if let Some(edit) = as_edit(edit, stream) {
                    // Fails where the tree has no such node.
                    let _ = connection.edit_priority(now, edit);
                }
            }
            Op::Backup(_, nth, spared) => {
                let path = connection.path_views().nth(nth).map(|view| view.key.id);
                let status = if spared { PathStatus::Backup } else { PathStatus::Available };
                if let Some(path) = path {
                    assert!(connection.set_path_status(now, path, status), "{path:?} is there");
                }
            }
            _ => {}
        }
    }

    fn side(&mut self, stream: StreamId) -> &mut Side {
        self.streams.entry(stream).or_default()
    }

    fn learn(&mut self, connection: &mut Connection, now: Instant, stream: StreamId) {
        assert!(!self.order.contains(&stream), "{stream} is announced once");
        self.order.push(stream);
        self.side(stream);
        if self.winding_up {
            self.finish(connection, now, stream);
        }
    }

    fn write(&mut self, connection: &mut Connection, now: Instant, stream: StreamId, len: u64) {
        let start = self.side(stream).written;
        let data: bytes::Bytes =
            (start..start + len).map(|at| pattern(stream, self.role, at)).collect();
        if let Ok(taken) = connection.write(now, stream, data) {
            self.side(stream).written += taken as u64;
        }
    }

    /// Each has its number, as far as there is room for it.
    fn send_datagram(&mut self, connection: &mut Connection, now: Instant, length: usize) {
        let mut data = self.sent.to_be_bytes().to_vec();
        data.resize(length, 0);
        self.sent += 1;
        // Fails before the handshake, and if it is too large.
        if let Ok(id) = connection.send_datagram(now, data.into()) {
            self.datagrams.insert(id);
        }
    }

    fn read_datagrams(&mut self, connection: &mut Connection) {
        while let Some(data) = connection.read_datagram() {
            if let Some(number) = data.first_chunk() {
                let number = u64::from_be_bytes(*number);
                let is_new = self.came.insert(number) || self.trusts_nobody;
                assert!(is_new, "datagram {number} came twice");
            }
        }
    }

    fn finish(&mut self, connection: &mut Connection, now: Instant, stream: StreamId) {
        if connection.finish(now, stream).is_ok() {
            self.side(stream).finished = true;
        }
    }

    fn resume(&mut self, connection: &mut Connection, now: Instant, stream: StreamId) {
        self.side(stream).paused = false;
        self.read(connection, now, stream);
    }

    /// Reads only what was announced, so that a missing announcement shows.
    fn read(&mut self, connection: &mut Connection, now: Instant, stream: StreamId) {
        let sender = self.role.peer();
        let side = self.streams.entry(stream).or_default();
        if side.paused || !std::mem::take(&mut side.readable) {
            return;
        }
        let wrong = &mut self.wrong;
        let received = &mut side.received;
        let read = connection.read(now, stream, &mut |bytes| {
            for &byte in bytes {
                if byte != pattern(stream, sender, *received) {
                    wrong.get_or_insert((stream, *received));
                }
                *received += 1;
            }
        });
        side.ended |= read.is_ok_and(|read| read.end);
    }
}

/// The byte at `at` of what `sender` sends on a stream.
fn pattern(stream: StreamId, sender: Role, at: u64) -> u8 {
    let salt = stream.0 * 31 + u64::from(sender.is_client()) * 101;
    // Neither period divides a packet's length.
    (salt + at * 7 + at / 251) as u8
}

fn as_edit(edit: Edit, stream: impl Fn(usize) -> Option<StreamId>) -> Option<PriorityEdit> {
    let node = |number: u64| if number == 0 { NodeId::ROOT } else { NodeId(number) };
    Some(match edit {
        Edit::Insert(at, parent, weight, exclusive) => {
            PriorityEdit::Insert { node: node(at), parent: node(parent), weight, exclusive }
        }
        Edit::Move(at, parent, weight, exclusive) => {
            PriorityEdit::Move { node: node(at), parent: node(parent), weight, exclusive }
        }
        Edit::Weight(at, weight) => PriorityEdit::Weight { node: node(at), weight },
        Edit::Remove(at) => PriorityEdit::Remove { node: node(at) },
        Edit::Attach(at, back) => PriorityEdit::Attach { node: node(at), stream: stream(back)? },
        Edit::Urgency(back, urgency, incremental) => {
            PriorityEdit::Urgency { stream: stream(back)?, urgency, incremental }
        }
        Edit::Deadline(back, millis) => {
            PriorityEdit::Deadline { stream: stream(back)?, latency: Duration::from_millis(millis) }
        }
        Edit::Size(back, size) => PriorityEdit::Size { stream: stream(back)?, size: Bytes(size) },
    })
}
