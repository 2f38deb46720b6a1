//! The receiving half of a request's stream: frames, fields and body.

use quipu_base::StreamId;

use super::control::Control;
use super::frame::{FrameError, FrameHeader, HeaderReader, HeaderState, kind};
use super::{ConnectionError, Failure};
use crate::field::FieldList;
use crate::message::MessageError;
use crate::qpack::Outcome;
use crate::transport::{ReadState, StreamTransport};

/// How far a message was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its head has not come.
    Head,
    /// Its head waits in the queue of events. The body is not read, so that it is not told before.
    HeadQueued,
    /// The application has the head, and gets the body as it comes.
    Body,
    /// The trailers came; only the end can follow.
    Trailers,
    /// All came, or nothing more will.
    Done,
}

/// What is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Header,
    /// A field section of which so many octets are missing.
    Section(u64),
    /// A field section that waits for QPACK's table.
    Waiting,
    /// So many octets of the body, without a header before them.
    Data(u64),
    /// So many octets of a frame that means nothing.
    Skip(u64),
}

/// What a reading led to.
#[derive(Debug)]
pub(super) enum Step {
    /// More will come, or more is there than was asked for.
    Pending,
    /// A field section.
    Section(FieldList),
    /// The message is complete.
    Finished,
    /// The message will not be complete.
    Failed(Failure),
}

#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) phase: Phase,
    /// Only DATA may follow the head, as after CONNECT.
    pub(super) tunnel: bool,
    reading: Reading,
    header: HeaderReader,
    section: Vec<u8>,
    /// Octets that the body must have.
    expected: Option<u64>,
    received: u64,
    ended: bool,
}

impl Receiving {
    pub(super) fn new() -> Self {
        Receiving {
            phase: Phase::Head,
            tunnel: false,
            reading: Reading::Header,
            header: HeaderReader::default(),
            section: Vec::new(),
            expected: None,
            received: 0,
            ended: false,
        }
    }

    /// The head came: it states `content_length`; `bodiless` messages have no body, whatever length
    /// they state. Looks whether that was all.
    pub(super) fn on_head<T: StreamTransport>(
        &mut self,
        (transport, stream): (&mut T, StreamId),
        control: &mut Control,
        content_length: Option<u64>,
        bodiless: bool,
    ) -> Result<(), ConnectionError> {
        self.expected = if bodiless { Some(0) } else { content_length };
        self.phase = Phase::HeadQueued;
        if !self.ended && self.reading == Reading::Header {
            self.read_header(transport, stream, control)?;
        }
        Ok(())
    }

    /// Whether the end was seen, and nothing before it is unread.
    pub(super) fn is_at_end(&self) -> bool {
        self.ended && self.reading == Reading::Header
    }

    /// Whether it may hold on to QPACK's table: not everything was decoded.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.is_at_end()
    }

    /// Reads until something is to be told. Octets of the body go to `sink`, `room` of them at most,
    /// which then is less by as many.
    pub(super) fn read<T: StreamTransport>(
        &mut self,
        (transport, stream): (&mut T, StreamId),
        control: &mut Control,
        room: &mut u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> Result<Step, ConnectionError> {
        loop {
            match self.reading {
                Reading::Header => {
                    if self.ended {
                        return Ok(self.finish());
                    }
                    if !self.read_header(transport, stream, control)? && !self.ended {
                        return Ok(Step::Pending);
                    }
                }
                Reading::Section(left) => {
                    let section = &mut self.section;
                    let before = section.len();
                    let state = transport.read_at_most(stream, left, &mut |octets| {
                        section.extend_from_slice(octets);
                    });
                    let left = left - (section.len() - before) as u64;
                    if !self.go_on(state, left, Reading::Section)? {
                        return Ok(Step::Pending);
                    }
                    self.reading = Reading::Waiting;
                }
                Reading::Waiting => {
                    let mut fields = FieldList::new();
                    match control.decoder.decode(stream, &self.section, &mut fields)? {
                        Outcome::Blocked => return Ok(Step::Pending),
                        Outcome::Complete => {
                            self.section = Vec::new();
                            self.reading = Reading::Header;
                            return Ok(Step::Section(fields));
                        }
                        Outcome::TooLarge => {
                            self.section = Vec::new();
                            self.reading = Reading::Header;
                            let limit = control.limits().field_list;
                            return Ok(Step::Failed(Failure::FieldsTooLarge { limit }));
                        }
                    }
                }
                Reading::Data(left) => {
                    let most = left.min(*room);
                    if most == 0 {
                        return Ok(Step::Pending);
                    }
                    let mut got = 0;
                    let allowed = self.expected.map_or(u64::MAX, |all| all - self.received);
                    let state = transport.read_at_most(stream, most, &mut |octets| {
                        got += octets.len() as u64;
                        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
                        //# Because some messages are large or unbounded, endpoints SHOULD begin
                        //# processing partial HTTP messages once enough of the message has been
                        //# received to make progress.
                        if got <= allowed {
                            sink(stream, octets);
                        }
                    });
                    if got > allowed {
                        return Ok(self.wrong_length(got));
                    }
                    self.received += got;
                    *room -= got;
                    let is_more = got == most && left > got;
                    if !self.go_on(state, left - got, Reading::Data)? && !is_more {
                        return Ok(Step::Pending);
                    }
                }
                Reading::Skip(left) => {
                    let mut got = 0;
                    let state = transport
                        .read_at_most(stream, left, &mut |octets| got += octets.len() as u64);
                    if !self.go_on(state, left - got, Reading::Skip)? {
                        return Ok(Step::Pending);
                    }
                }
            }
        }
    }

    /// Notes how much is `left` of a frame after a reading; true if nothing is.
    fn go_on(
        &mut self,
        state: Result<ReadState, crate::transport::StreamError>,
        left: u64,
        reading: fn(u64) -> Reading,
    ) -> Result<bool, ConnectionError> {
        if left == 0 {
            self.ended |= state == Ok(ReadState::Finished);
            self.reading = Reading::Header;
            return Ok(true);
        }
        self.reading = reading(left);
        match state {
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.1
            //# When a stream terminates cleanly, if the last frame on the stream was truncated,
            //# this MUST be treated as a connection error of type H3_FRAME_ERROR.
            Ok(ReadState::Finished) => Err(FrameError::Truncated.into()),
            // A reset, or the end of the connection, which the transport tells by itself.
            Ok(ReadState::Blocked) | Err(_) => Ok(false),
        }
    }

    /// Reads the header of a frame and sees what is to be done with it; false if it is not there.
    fn read_header<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        control: &mut Control,
    ) -> Result<bool, ConnectionError> {
        match self.header.frame(transport, stream) {
            Ok(HeaderState::Complete(header)) => {
                self.ended = self.header.has_ended();
                self.begin(header, control)?;
                if self.ended && header.length > 0 {
                    return Err(FrameError::Truncated.into());
                }
                Ok(true)
            }
            Ok(HeaderState::Ended { inside: true }) => Err(FrameError::Truncated.into()),
            Ok(HeaderState::Ended { inside: false }) => {
                self.ended = true;
                Ok(false)
            }
            Ok(HeaderState::Blocked) | Err(_) => Ok(false),
        }
    }

    fn begin(&mut self, header: FrameHeader, control: &mut Control) -> Result<(), ConnectionError> {
        let FrameHeader { kind, length } = header;
        let unexpected = |place| Err(FrameError::Unexpected { kind, place }.into());
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# Receipt of an invalid sequence of frames MUST be treated as a connection error of type
        //# H3_FRAME_UNEXPECTED.
        match (kind, self.phase) {
            (kind::DATA, Phase::Head) => return unexpected("before HEADERS"),
            (kind::DATA | kind::HEADERS, Phase::Trailers) => {
                return unexpected("after the trailers");
            }
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.4
            //# Receipt of any other known frame type MUST be treated as a connection error of type
            //# H3_FRAME_UNEXPECTED.
            (kind::HEADERS, Phase::HeadQueued | Phase::Body) if self.tunnel => {
                return unexpected("in a tunnel");
            }
            (kind::DATA, _) => self.reading = Reading::Data(length),
            (kind::HEADERS, _) => {
                let limit = u64::from(control.limits().field_section);
                if length > limit {
                    return Err(FrameError::TooLarge { kind, length, limit }.into());
                }
                self.reading = Reading::Section(length);
            }
            (kind::PUSH_PROMISE, _) => return control.on_push_promise(),
            // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
            //# Receiving a PRIORITY_UPDATE frame on a stream other than the client control
            //# stream MUST be treated as a connection error of type H3_FRAME_UNEXPECTED.
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
            //# Receiving a CANCEL_PUSH frame on a stream other than the control stream MUST be
            //# treated as a connection error of type H3_FRAME_UNEXPECTED.
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
            //# If an endpoint receives a SETTINGS frame on a different stream, the endpoint MUST
            //# respond with a connection error of type H3_FRAME_UNEXPECTED.
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.6
            //# A client MUST treat a GOAWAY frame on a stream other than the control stream as a
            //# connection error of type H3_FRAME_UNEXPECTED.
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
            //# Receipt of a MAX_PUSH_ID frame on any other stream MUST be treated as a connection
            //# error of type H3_FRAME_UNEXPECTED.
            (
                kind::CANCEL_PUSH
                | kind::SETTINGS
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE
                | kind::PRIORITY_UPDATE_PUSH,
                _,
            ) => return unexpected("on a request's stream"),
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
            //# These frame types MUST NOT be sent, and their receipt MUST be treated as a
            //# connection error of type H3_FRAME_UNEXPECTED.
            (kind, _) if kind::is_of_http2(kind) => return unexpected("which only HTTP/2 has"),
            _ => {
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
                //# Endpoints MUST NOT consider these frames to have any meaning upon receipt.
                control.on_grease(header)?;
                self.reading = Reading::Skip(length);
            }
        }
        // Nothing is read of a frame without a payload.
        match self.reading {
            Reading::Data(0) | Reading::Skip(0) => self.reading = Reading::Header,
            Reading::Section(0) => self.reading = Reading::Waiting,
            _ => {}
        }
        Ok(())
    }

    /// The stream is over.
    fn finish(&self) -> Step {
        match (self.phase, self.expected) {
            (Phase::Head, _) => Step::Failed(Failure::NoHead),
            (_, Some(expected)) if self.received < expected => self.wrong_length(0),
            _ => Step::Finished,
        }
    }

    fn wrong_length(&self, more: u64) -> Step {
        let expected = self.expected.unwrap_or(u64::MAX);
        let received = self.received.saturating_add(more);
        Step::Failed(MessageError::BodyLength { expected, received }.into())
    }
}
