//! Two ends of a connection without packets: what one end sends on a stream reaches the other in
//! order, in pieces and at times that the test chooses.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quipu_base::{Duration, Role, StreamDirection, StreamId};
use quipu_http::transport::{ReadState, StreamError, StreamTransport, Transport};
use quipu_policy::{NodeId, Priorities, PriorityEdit};

/// What the transport tells its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Readable(StreamId),
    Stopped(StreamId, u64),
    Reset(StreamId, u64),
    Delivered(StreamId),
}

/// One end.
pub(crate) struct End {
    role: Role,
    /// Streams that this end may open.
    pub(crate) stream_limit: u64,
    opened: u64,
    pushed: u64,
    sending: BTreeMap<StreamId, Sending>,
    receiving: BTreeMap<StreamId, Receiving>,
    /// STOP_SENDING frames under way.
    stops: VecDeque<(StreamId, u64)>,
    pub(crate) control: Option<StreamId>,
    /// Whether the peer takes datagrams.
    pub(crate) takes_datagrams: bool,
    pub(crate) tree: Priorities,
    pub(crate) sizes: Vec<(StreamId, u64)>,
    /// Urgencies as they were told.
    pub(crate) urgencies: Vec<(StreamId, u8, bool)>,
}

#[derive(Default)]
struct Sending {
    unsent: VecDeque<u8>,
    finished: bool,
    reset: Option<u64>,
    /// The end or the reset reached the peer.
    delivered: bool,
}

#[derive(Default)]
struct Receiving {
    unread: Vec<Vec<u8>>,
    finished: bool,
    stopped: bool,
    /// The end was read, or a reset came.
    over: bool,
}

/// Both ends.
pub(crate) struct Loopback {
    pub(crate) client: End,
    pub(crate) server: End,
}

impl Loopback {
    pub(crate) fn new() -> Self {
        Loopback { client: End::new(Role::Client), server: End::new(Role::Server) }
    }

    pub(crate) fn end(&mut self, role: Role) -> &mut End {
        match role {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }

    /// Brings something from one end to the other: what, and how much, by `choice`. Returns who learns
    /// of it and what; nothing if all was delivered.
    pub(crate) fn deliver(&mut self, choice: u64) -> Option<Vec<(Role, Notice)>> {
        let mut ready: Vec<(Role, Option<StreamId>)> = Vec::new();
        for role in [Role::Client, Role::Server] {
            let end = self.end(role);
            ready.extend(
                end.sending
                    .iter()
                    .filter(|(_, half)| half.is_ready())
                    .map(|(&id, _)| (role, Some(id))),
            );
            if !end.stops.is_empty() {
                ready.push((role, None));
            }
        }
        let (from, what) = *ready.get((choice >> 32) as usize % ready.len().max(1))?;
        let to = from.peer();
        let notices: Vec<(Role, Notice)> = match what {
            None => {
                let (stream, code) = self.end(from).stops.pop_front()?;
                let end = self.end(to);
                let over = end.sending.get(&stream).is_some_and(|half| half.delivered);
                if over || end.reset(stream, code).is_err() {
                    Vec::new()
                } else {
                    vec![(to, Notice::Stopped(stream, code))]
                }
            }
            Some(stream) => {
                let amount = 1 + (choice & 0xffff_ffff) as usize % 3000;
                let half = self.end(from).sending.get_mut(&stream)?;
                let piece: Vec<u8> = half.unsent.drain(..amount.min(half.unsent.len())).collect();
                let reset = half.reset;
                let finished = reset.is_none() && half.finished && half.unsent.is_empty();
                half.delivered = reset.is_some() || finished;
                let mut notices = Vec::new();
                if finished {
                    notices.push((from, Notice::Delivered(stream)));
                }
                let half = self.end(to).receiving.entry(stream).or_default();
                if let Some(code) = reset {
                    half.unread.clear();
                    half.over = true;
                    if !half.stopped {
                        notices.push((to, Notice::Reset(stream, code)));
                    }
                } else if half.stopped {
                    half.over |= finished;
                } else {
                    half.unread.push(piece);
                    half.finished = finished;
                    notices.push((to, Notice::Readable(stream)));
                }
                notices
            }
        };
        Some(notices)
    }

    /// Octets that one end sent and the other did not get, whatever the stream.
    pub(crate) fn is_idle(&self) -> bool {
        [&self.client, &self.server]
            .into_iter()
            .all(|end| end.stops.is_empty() && end.sending.values().all(|half| !half.is_ready()))
    }
}

impl End {
    fn new(role: Role) -> Self {
        End {
            role,
            stream_limit: 1000,
            opened: 0,
            pushed: 0,
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            stops: VecDeque::new(),
            control: None,
            takes_datagrams: false,
            tree: Priorities::new(),
            sizes: Vec::new(),
            urgencies: Vec::new(),
        }
    }

    fn half(&mut self, stream: StreamId) -> Result<&mut Sending, StreamError> {
        let half = self.sending.entry(stream).or_default();
        if half.finished || half.reset.is_some() {
            return Err(StreamError::NotOpen(stream));
        }
        Ok(half)
    }

    /// Whether the end in that role alone sends on `stream`.
    fn only(&self, role: Role, stream: StreamId) -> bool {
        stream.direction() == StreamDirection::Unidirectional && stream.initiator() == role
    }

    /// The parent's name and the weight of a node.
    pub(crate) fn place(&self, node: NodeId) -> Option<(NodeId, u16)> {
        let node = self.tree.node(self.tree.key(node)?)?;
        Some((self.tree.node(node.parent)?.id, node.weight))
    }

    /// Streams with octets or an end that were not read.
    pub(crate) fn unread(&self) -> Vec<StreamId> {
        let unread = |half: &&Receiving| {
            !half.unread.is_empty() || half.finished && !half.over && !half.stopped
        };
        self.receiving.iter().filter(|(_, half)| unread(half)).map(|(&stream, _)| stream).collect()
    }
}

impl Sending {
    fn is_ready(&self) -> bool {
        !self.delivered && (!self.unsent.is_empty() || self.finished || self.reset.is_some())
    }
}

impl Transport for End {
    fn open(&mut self) -> Option<StreamId> {
        if self.opened == self.stream_limit {
            return None;
        }
        let stream = StreamId::new(self.role, StreamDirection::Bidirectional, self.opened);
        self.opened += 1;
        self.sending.insert(stream, Sending::default());
        Some(stream)
    }

    fn open_unidirectional(&mut self) -> Option<StreamId> {
        if self.pushed == self.stream_limit {
            return None;
        }
        let stream = StreamId::new(self.role, StreamDirection::Unidirectional, self.pushed);
        self.pushed += 1;
        self.sending.insert(stream, Sending::default());
        Some(stream)
    }

    fn write(&mut self, stream: StreamId, data: Bytes) -> Result<(), StreamError> {
        self.half(stream)?.unsent.extend(data);
        Ok(())
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.half(stream)?.finished = true;
        Ok(())
    }

    fn reset(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        if self.only(self.role.peer(), stream) {
            return Err(StreamError::NotOpen(stream));
        }
        let half = self.sending.entry(stream).or_default();
        if half.delivered || half.reset.is_some() {
            return Err(StreamError::NotOpen(stream));
        }
        half.reset = Some(code);
        half.unsent.clear();
        Ok(())
    }

    fn stop_sending(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        if self.only(self.role, stream) {
            return Err(StreamError::NotOpen(stream));
        }
        let half = self.receiving.entry(stream).or_default();
        if half.over || half.stopped {
            return Err(StreamError::NotOpen(stream));
        }
        half.stopped = true;
        half.unread.clear();
        half.over = half.finished;
        self.stops.push_back((stream, code));
        Ok(())
    }

    fn read(
        &mut self,
        stream: StreamId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError> {
        self.read_at_most(stream, u64::MAX, sink)
    }

    fn set_control(&mut self, stream: StreamId) {
        self.control = Some(stream);
    }

    fn edit_priority(&mut self, edit: PriorityEdit) {
        if let PriorityEdit::Size { stream, size } = edit {
            self.sizes.push((stream, size.0));
        }
        if let PriorityEdit::Urgency { stream, urgency, incremental } = edit {
            self.urgencies.push((stream, urgency, incremental));
        }
        self.tree.apply(&edit, None).unwrap();
    }

    fn round_trip_time(&self) -> Duration {
        Duration::from_millis(50)
    }
}

impl StreamTransport for End {
    fn read_at_most(
        &mut self,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError> {
        let half = self.receiving.get_mut(&stream).ok_or(StreamError::NotOpen(stream))?;
        if half.over || half.stopped {
            return Err(StreamError::NotOpen(stream));
        }
        let mut left = usize::try_from(max).unwrap_or(usize::MAX);
        while left > 0
            && let Some(piece) = half.unread.first_mut()
        {
            let part: Vec<u8> = piece.drain(..left.min(piece.len())).collect();
            if piece.is_empty() {
                half.unread.remove(0);
            }
            left -= part.len();
            sink(&part);
        }
        half.over = half.finished && half.unread.iter().all(Vec::is_empty);
        Ok(if half.over { ReadState::Finished } else { ReadState::Blocked })
    }

    fn may_be_open(&self, stream: StreamId) -> bool {
        stream.index() < self.stream_limit
    }

    fn takes_datagrams(&self) -> bool {
        self.takes_datagrams
    }
}
