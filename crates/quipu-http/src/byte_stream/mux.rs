//! What one end knows of the streams in its byte stream.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quipu_base::{Bytes as Amount, Instant, Role, StreamId};
use quipu_policy::StreamPolicy;

use super::Config;
use super::demux::{Demux, Piece};
use super::entry::{Answer, Entry, Notice, ReadPart, Receiving};
use super::queue::{Left, Queue};
use super::window::{DEFAULT_WINDOW, ReceiveWindow};
use crate::h2::frame::{FrameError, Settings};
use crate::h2::{CONTROL_STREAM, ErrorCode, FrameStreamId, Numbering};

/// Streams that this end reset and keeps in mind, so that DATA frames that were under way are
/// dropped and not held against the peer; our choice.
const MAX_REMEMBERED: usize = 1_024;
/// Streams that a client may open in one piece, before the server has looked at them and refused what
/// is too many; our choice.
const MAX_STREAMS: usize = 1 << 16;

/// One end of HTTP/2 over a byte stream, but for the byte stream: [`Framed`](super::Framed) puts both
/// together for [`Client`](crate::h2::Client) and [`Server`](crate::h2::Server).
#[derive(Debug)]
pub struct Mux {
    pub(super) config: Config,
    pub(super) is_client: bool,
    pub(super) queue: Queue,
    demux: Demux,
    streams: BTreeMap<StreamId, Entry>,
    /// The stream that this end, a client, opened last, or the peer.
    last: Option<StreamId>,
    /// The stream that was promised last: by this end, a server, or by the peer; even.
    last_promised: StreamId,
    /// What the peer may send on all streams.
    window: ReceiveWindow,
    /// Octets of the control stream's frames that were not read.
    pub(super) control: Vec<u8>,
    /// Whether the first frames went.
    pub(super) announced: bool,
    /// Whether the pipe ended.
    pub(super) ended: bool,
    failed: bool,
    remembered: BTreeSet<StreamId>,
    /// Streams up to here may have been reset by this end and forgotten.
    forgotten: StreamId,
    notices: VecDeque<Notice>,
    drained: VecDeque<StreamId>,
    /// Frames that answer what came.
    pub(super) answers: Vec<Answer>,
    /// Octets of RST_STREAM frames that were written since not much waited unsent.
    pub(super) resets_unsent: u64,
}

impl Mux {
    /// The end `role`, whose bodies `policy` orders. Values of `config` beyond their range are cut to
    /// it.
    pub fn new(role: Role, config: Config, policy: Box<dyn StreamPolicy>) -> Self {
        let config = Config {
            stream_window: config.stream_window.clamp(1, super::LARGEST_WINDOW),
            connection_window: config
                .connection_window
                .clamp(DEFAULT_WINDOW, super::LARGEST_WINDOW),
            // https://www.rfc-editor.org/rfc/rfc9113#section-4.1
            //# Values greater than 2^14 (16,384) MUST NOT be sent unless the receiver has set a
            //# larger value for SETTINGS_MAX_FRAME_SIZE.
            frame_size: config.frame_size.clamp(1, crate::h2::frame::DEFAULT_FRAME_SIZE),
            unsent_limit: config.unsent_limit.max(Amount(1)),
        };
        Mux {
            config,
            is_client: role.is_client(),
            queue: Queue::new(policy, config.frame_size),
            demux: Demux::new(!role.is_client()),
            streams: BTreeMap::new(),
            last: None,
            last_promised: CONTROL_STREAM,
            window: ReceiveWindow::new(config.connection_window, config.connection_window),
            control: Vec::new(),
            announced: false,
            ended: false,
            failed: false,
            remembered: BTreeSet::new(),
            forgotten: CONTROL_STREAM,
            notices: VecDeque::new(),
            drained: VecDeque::new(),
            answers: Vec::new(),
            resets_unsent: 0,
        }
    }

    /// Octets of bodies that wait for the byte stream.
    pub fn unsent(&self) -> Amount {
        self.queue.unsent()
    }

    /// Streams of which not both directions are over.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Times that the stream policy named nothing that can go although something could. A policy that
    /// keeps the rules leaves it at zero.
    pub fn overridden(&self) -> u64 {
        self.queue.overridden()
    }

    /// A stream all of whose body that was written is in the byte stream, and that has not ended: time
    /// to write more.
    pub fn poll_drained(&mut self) -> Option<StreamId> {
        self.drained.pop_front()
    }

    /// The next request's stream; a client's.
    pub(super) fn open(&mut self, now: Instant) -> Option<StreamId> {
        let numbering = Numbering::ByteStream;
        let stream = self.last.map_or(numbering.first(), |last| numbering.next(last));
        let id = FrameStreamId::try_from(stream).ok()?;
        self.insert(stream, id, now);
        Some(stream)
    }

    /// The next pushed response's stream; a server's.
    pub(super) fn open_unidirectional(&mut self, now: Instant) -> Option<StreamId> {
        let stream = StreamId(self.last_promised.0 + 2);
        let id = FrameStreamId::try_from(stream).ok().filter(|_| !self.is_client)?;
        let entry = Entry::pushed(id);
        self.streams.insert(stream, entry);
        self.last_promised = stream;
        self.queue.open(stream, now);
        Some(stream)
    }

    /// The server promises a stream. What cannot be is the control stream's to refuse.
    fn on_promise(&mut self, id: FrameStreamId) -> Result<(), FrameError> {
        let stream = id.pushed(Numbering::ByteStream).filter(|&it| it > self.last_promised);
        let Some(stream) = stream.filter(|_| self.is_client) else { return Ok(()) };
        if self.streams.len() >= MAX_STREAMS {
            return Err(FrameError::Excess { what: "promised streams at a time" });
        }
        self.last_promised = stream;
        self.streams.insert(stream, Entry::promised(id, self.config.stream_window));
        Ok(())
    }

    fn insert(&mut self, stream: StreamId, id: FrameStreamId, now: Instant) {
        self.streams.insert(stream, Entry::new(id, self.config.stream_window));
        self.last = Some(stream);
        self.queue.open(stream, now);
    }

    /// Octets came.
    pub(super) fn receive(&mut self, octets: &[u8], now: Instant) {
        if self.failed {
            return;
        }
        // The demux and what takes its pieces are two halves of this.
        let preface = Demux::new(false);
        let mut demux = std::mem::replace(&mut self.demux, preface);
        let result = demux.push(octets, &mut |piece| self.take(piece, now));
        self.demux = demux;
        if let Err(error) = result {
            self.fail(error);
        }
    }

    /// The peer broke the rules.
    pub(super) fn fail(&mut self, error: FrameError) {
        self.failed = true;
        self.notices.push_back(Notice::Failed(error));
    }

    /// Nothing more is taken from the peer.
    pub(super) fn stop(&mut self) {
        self.failed = true;
        self.control = Vec::new();
    }

    fn take(&mut self, piece: Piece<'_>, now: Instant) -> Result<(), FrameError> {
        match piece {
            Piece::Control(octets) => {
                if self.control.is_empty() {
                    self.notices.push_back(Notice::Readable(CONTROL_STREAM));
                }
                self.control.extend_from_slice(octets);
            }
            Piece::Promise { promised } => self.on_promise(promised)?,
            Piece::Head { stream, end_stream } => self.on_head(stream, end_stream, now)?,
            Piece::DataFrame { stream, length } => self.on_data_frame(stream, length)?,
            Piece::Data { stream, octets } => match self.entry(stream) {
                Some((name, entry)) => {
                    entry.unread.extend_from_slice(octets);
                    self.note_readable(name);
                }
                None => self.give_credit(None, octets.len() as u64),
            },
            Piece::Padding { stream, length } => {
                let stream = self.entry(stream).map(|(name, _)| name);
                self.give_credit(stream, length);
            }
            Piece::End { stream } => {
                if let Some((name, _)) = self.entry(stream) {
                    self.on_end(name);
                }
            }
            Piece::Reset { stream, code } => self.on_reset(stream, code, now)?,
            Piece::WindowUpdate { stream, increment } => {
                self.on_window_update(stream, increment, now)?;
            }
            Piece::Ping(octets) => self.answers.push(Answer::Pong(octets)),
        }
        Ok(())
    }

    /// The stream of that identifier, if not both its directions are over.
    fn entry(&mut self, id: FrameStreamId) -> Option<(StreamId, &mut Entry)> {
        let stream = id.stream(Numbering::ByteStream)?;
        self.streams.get_mut(&stream).map(|entry| (stream, entry))
    }

    /// Whether the stream was opened, and perhaps closed.
    fn was_opened(&self, id: FrameStreamId) -> bool {
        if let Some(pushed) = id.pushed(Numbering::ByteStream) {
            return pushed <= self.last_promised;
        }
        let request = id.request(Numbering::ByteStream);
        // A client skips the numbers below its first.
        let first = if self.is_client { Numbering::ByteStream.first() } else { CONTROL_STREAM };
        request.is_some_and(|stream| stream >= first && Some(stream) <= self.last)
    }

    /// What is wrong with the stream, whether or not the control stream's frames are.
    fn check_opened(&self, kind: &'static str, stream: FrameStreamId) -> Result<(), FrameError> {
        if self.was_opened(stream) {
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
        //# Receiving any frame other than HEADERS or PRIORITY on a stream in this state MUST be
        //# treated as a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        let code = ErrorCode::PROTOCOL_ERROR;
        Err(FrameError::State { kind, stream, problem: "which is idle", code })
    }

    fn on_head(
        &mut self,
        id: FrameStreamId,
        end_stream: bool,
        now: Instant,
    ) -> Result<(), FrameError> {
        // What cannot be is the control stream's to refuse.
        let Some(stream) = id.stream(Numbering::ByteStream) else { return Ok(()) };
        let is_request = id.request(Numbering::ByteStream).is_some();
        if is_request && !self.is_client && !self.was_opened(id) {
            if self.streams.len() >= MAX_STREAMS {
                return Err(FrameError::Excess { what: "streams at a time" });
            }
            self.insert(stream, id, now);
        }
        let Some(entry) = self.streams.get_mut(&stream) else { return Ok(()) };
        if entry.receiving != Receiving::Open {
            return Err(closed("HEADERS", id));
        }
        entry.head_seen = true;
        if end_stream {
            self.on_end(stream);
        }
        Ok(())
    }

    fn on_data_frame(&mut self, id: FrameStreamId, length: u64) -> Result<(), FrameError> {
        self.check_opened("DATA", id)?;
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9
        //# A receiver that receives a flow-controlled frame MUST always account for its
        //# contribution against the connection flow-control window, unless the receiver treats
        //# this as a connection error (Section 5.4.1).
        if !self.window.receive(length) {
            return Err(FrameError::BeyondCredit { stream: id });
        }
        let stream = StreamId(u64::from(id.value()));
        let Some((_, entry)) = self.entry(id) else {
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
            // What was under way when this end reset the stream is dropped, but counts.
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
            //# An endpoint MUST minimally process and then discard any frames it receives in this
            //# state.
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.4.2
            //# The peer that sends the RST_STREAM frame MUST be prepared to receive any frames
            //# that were sent or enqueued for sending by the remote peer.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.4
            //# However, after sending the RST_STREAM, the sending endpoint MUST be prepared to
            //# receive and process additional frames sent on the stream that might have been sent
            //# by the peer prior to the arrival of the RST_STREAM.
            let reset = self.remembered.contains(&stream) || stream <= self.forgotten;
            return if reset { Ok(()) } else { Err(closed("DATA", id)) };
        };
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
        //# If an endpoint receives additional frames, other than WINDOW_UPDATE, PRIORITY, or
        //# RST_STREAM, for a stream that is in this state, it MUST respond with a stream error
        //# (Section 5.4.2) of type STREAM_CLOSED.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.1
        //# If a DATA frame is received whose stream is not in the "open" or "half-closed (local)"
        //# state, the recipient MUST respond with a stream error (Section 5.4.2) of type
        //# STREAM_CLOSED.
        if entry.receiving != Receiving::Open {
            return Err(closed("DATA", id));
        }
        if !entry.head_seen {
            let problem = "before its HEADERS";
            let code = ErrorCode::PROTOCOL_ERROR;
            return Err(FrameError::State { kind: "DATA", stream: id, problem, code });
        }
        if !entry.window.receive(length) {
            return Err(FrameError::BeyondCredit { stream: id });
        }
        Ok(())
    }

    fn on_end(&mut self, stream: StreamId) {
        if let Some(entry) = self.streams.get_mut(&stream) {
            entry.receiving = Receiving::Ended;
            self.note_readable(stream);
        }
    }

    fn on_reset(
        &mut self,
        id: FrameStreamId,
        code: ErrorCode,
        now: Instant,
    ) -> Result<(), FrameError> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.4
        //# If a RST_STREAM frame identifying an idle stream is received, the recipient MUST treat
        //# this as a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        self.check_opened("RST_STREAM", id)?;
        let Some((stream, entry)) = self.entry(id) else { return Ok(()) };
        let receiving = entry.receiving;
        if std::mem::take(&mut entry.sending) {
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.4
            //# After receiving a RST_STREAM on a stream, the receiver MUST NOT send additional
            //# frames for that stream, except for PRIORITY.
            self.queue.close(stream, now);
            self.drained.retain(|&other| other != stream);
            self.notices.push_back(Notice::Stopped(stream, code.to_quic()));
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.1
        //# Clients MUST NOT discard responses as a result of receiving such a
        //# RST_STREAM
        if receiving == Receiving::Open {
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.4.2
            //# To avoid looping, an endpoint MUST NOT send a RST_STREAM in response to a
            //# RST_STREAM frame.
            self.forget(stream, now);
            self.notices.push_back(Notice::Reset(stream, code.to_quic()));
        }
        self.forget_if_over(stream);
        Ok(())
    }

    fn on_window_update(
        &mut self,
        id: FrameStreamId,
        increment: u32,
        now: Instant,
    ) -> Result<(), FrameError> {
        let stream = if id.is_zero() {
            None
        } else {
            self.check_opened("WINDOW_UPDATE", id)?;
            Some(StreamId(u64::from(id.value())))
        };
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.1
        //# If a sender receives a WINDOW_UPDATE that causes a flow-control window to exceed this
        //# maximum, it MUST terminate either the stream or the connection, as appropriate.
        if self.queue.grow(stream, increment, now) {
            Ok(())
        } else {
            Err(FrameError::TooMuchCredit { stream: id })
        }
    }

    /// The peer's settings, as far as they are about bodies.
    pub(super) fn on_settings(
        &mut self,
        settings: &Settings,
        now: Instant,
    ) -> Result<(), FrameError> {
        match settings.initial_window_size {
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.2
            //# An endpoint MUST treat a change to SETTINGS_INITIAL_WINDOW_SIZE that causes any
            //# flow-control window to exceed the maximum size as a connection error (Section
            //# 5.4.1) of type FLOW_CONTROL_ERROR.
            Some(octets) if !self.queue.set_initial_window(octets, now) => {
                Err(FrameError::TooMuchCredit { stream: FrameStreamId::ZERO })
            }
            _ => Ok(()),
        }
    }

    fn note_readable(&mut self, stream: StreamId) {
        if let Some(entry) = self.streams.get_mut(&stream)
            && !std::mem::replace(&mut entry.told, true)
        {
            self.notices.push_back(Notice::Readable(stream));
        }
    }

    /// Octets were read, or need not be; `None`: of a stream that is over.
    fn give_credit(&mut self, stream: Option<StreamId>, octets: u64) {
        if let Some(entry) = stream.and_then(|stream| self.streams.get_mut(&stream))
            && let Some(increment) = entry.window.consume(octets)
            && entry.receiving == Receiving::Open
        {
            self.answers.push(Answer::Credit(entry.id, increment));
        }
        if let Some(increment) = self.window.consume(octets) {
            self.answers.push(Answer::Credit(FrameStreamId::ZERO, increment));
        }
    }

    /// The octets of a body that came; `None` if its receiving direction is over.
    pub(super) fn read(&mut self, stream: StreamId) -> Option<ReadPart> {
        let entry = self.streams.get_mut(&stream)?;
        entry.told = false;
        if entry.receiving == Receiving::Over {
            return None;
        }
        let octets = std::mem::take(&mut entry.unread);
        let end = entry.receiving == Receiving::Ended;
        if end {
            entry.receiving = Receiving::Over;
        }
        self.give_credit(Some(stream), octets.len() as u64);
        self.forget_if_over(stream);
        Some(ReadPart { octets, end })
    }

    /// Gives back the memory of what was read.
    pub(super) fn recycle(&mut self, stream: StreamId, mut octets: Vec<u8>) {
        if let Some(entry) = self.streams.get_mut(&stream)
            && entry.unread.is_empty()
        {
            octets.clear();
            entry.unread = octets;
        }
    }

    /// This end sent a head.
    pub(super) fn on_head_sent(&mut self, stream: StreamId, end_stream: bool) {
        if let Some(entry) = self.streams.get_mut(&stream) {
            entry.bodiless = end_stream;
        }
    }

    /// This end has written all of a body; false if it had before.
    pub(super) fn finish(&mut self, stream: StreamId, now: Instant) -> bool {
        let Some(entry) = self.streams.get(&stream).filter(|entry| entry.sending) else {
            return false;
        };
        if !entry.bodiless {
            return self.queue.finish(stream, now);
        }
        self.queue.close(stream, now);
        self.on_end_sent(stream);
        true
    }

    /// A DATA frame of the stream went.
    pub(super) fn on_frame_sent(&mut self, stream: StreamId, left: Left) {
        match left {
            Left::More => {}
            Left::Nothing => self.drained.push_back(stream),
            Left::Ended => self.on_end_sent(stream),
        }
    }

    fn on_end_sent(&mut self, stream: StreamId) {
        if let Some(entry) = self.streams.get_mut(&stream) {
            entry.sending = false;
        }
        self.notices.push_back(Notice::Delivered(stream));
        self.forget_if_over(stream);
    }

    fn forget_if_over(&mut self, stream: StreamId) {
        if self.streams.get(&stream).is_some_and(Entry::is_over) {
            self.streams.remove(&stream);
        }
    }

    /// This end gives up a stream: its name for RST_STREAM, `None` if it is over.
    pub(super) fn abandon(&mut self, stream: StreamId, now: Instant) -> Option<FrameStreamId> {
        let entry = self.forget(stream, now)?;
        self.remembered.insert(stream);
        if self.remembered.len() > MAX_REMEMBERED
            && let Some(first) = self.remembered.pop_first()
        {
            self.forgotten = self.forgotten.max(first);
        }
        Some(entry.id)
    }

    /// Forgets a stream with all that waits of it.
    fn forget(&mut self, stream: StreamId, now: Instant) -> Option<Entry> {
        let entry = self.streams.remove(&stream)?;
        if entry.sending {
            self.queue.close(stream, now);
        }
        self.drained.retain(|&other| other != stream);
        self.give_credit(None, entry.unread.len() as u64);
        Some(entry)
    }

    pub(super) fn pop_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The pipe ended.
    pub(super) fn on_pipe_end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.notices.push_back(Notice::Readable(CONTROL_STREAM));
        }
    }
}

fn closed(kind: &'static str, stream: FrameStreamId) -> FrameError {
    let code = ErrorCode::STREAM_CLOSED;
    FrameError::State { kind, stream, problem: "which is over", code }
}
