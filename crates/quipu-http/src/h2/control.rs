//! The control stream of either end: frames, settings and field compression.

use bytes::Bytes;
use quipu_base::StreamId;
use thiserror::Error;

use super::frame::{
    self, DEFAULT_FRAME_SIZE, Frame, FrameDecoder, FrameError, Settings, StreamPriority,
};
use super::{ErrorCode, FrameStreamId};
use crate::field::FieldList;
use crate::hpack::{self, DecodeError, Outcome};
use crate::transport::{ReadState, StreamError, Transport};

/// The control stream: the first that the client opens.
pub const CONTROL_STREAM: StreamId = StreamId(0);

/// SETTINGS frames that a peer may send in all. Each must be answered; one is usual. Our choice.
const MAX_SETTINGS: u32 = 100;

/// What an end is ready to spend on the peer's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of the table for decoding fields; 4,096 is the default of RFC 7541.
    pub decoding_table: u32,
    /// Octets of the table for encoding fields, if the peer allows as many; 4,096 by default.
    pub encoding_table: u32,
    /// Octets of one message's fields, counted as [`FieldList::size`] does; 64 kB by default, what
    /// large sites' cookies fit in with room to spare.
    pub field_list: u32,
    /// Octets of one compressed header block; 64 kB by default, as no block is larger than its list
    /// with an encoder that does well.
    pub header_block: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            decoding_table: hpack::DEFAULT_TABLE_SIZE,
            encoding_table: hpack::DEFAULT_TABLE_SIZE,
            field_list: 65_536,
            header_block: 65_536,
        }
    }
}

/// Why a connection cannot go on. The connection closes with its [code](ConnectionError::code).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// A frame breaks the rules.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A header block does not decode.
    #[error("header block: {0}")]
    Compression(#[from] DecodeError),
    /// The peer ended or abandoned the control stream.
    #[error("the peer ended the control stream")]
    ControlEnded,
    /// This end cannot write to the control stream, or not read it.
    #[error("control stream: {0}")]
    Control(#[from] StreamError),
    /// The peer sent more SETTINGS frames than anyone needs.
    #[error("more than {limit} SETTINGS frames")]
    TooManySettings {
        /// How many are allowed in all.
        limit: u32,
    },
    /// The client cancelled more streams whose HEADERS have not come than anyone needs.
    #[error("more than {limit} streams cancelled before their HEADERS")]
    TooManyCancelled {
        /// How many are allowed at a time.
        limit: usize,
    },
    /// The client cancelled more requests than anyone needs, or made the server cancel them: see
    /// CVE-2023-44487 and CVE-2025-8671.
    #[error("more than {burst} requests cancelled or malformed at once")]
    TooManyResets {
        /// How many may be cancelled or malformed at once.
        burst: u32,
    },
    /// The server promised more responses than this client takes, again and again.
    #[error("more than {limit} promises that were refused, or reset before they came")]
    TooManyPromises {
        /// How many are allowed.
        limit: usize,
    },
    /// A PUSH_PROMISE that cannot be. <https://www.rfc-editor.org/rfc/rfc9113#section-6.6>
    #[error("PUSH_PROMISE of stream {promised} on stream {stream}: {problem}")]
    WrongPromise {
        /// The stream that it came on.
        stream: FrameStreamId,
        /// The stream that it promises.
        promised: FrameStreamId,
        /// What is wrong.
        problem: &'static str,
    },
    /// The server enabled push, which only a client may.
    #[error("the server set ENABLE_PUSH")]
    PushEnabled,
    /// HEADERS for a stream that cannot be.
    #[error("HEADERS on stream {stream}, which {problem}")]
    WrongStream {
        /// The stream.
        stream: FrameStreamId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// HEADERS for a stream that is over.
    #[error("HEADERS on stream {stream}, which is over")]
    StreamClosed {
        /// The stream.
        stream: FrameStreamId,
    },
    /// The peer changed its mind about the dependency tree.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
    #[error("NO_RFC7540_PRIORITIES changed after the first SETTINGS frame")]
    PrioritiesChanged,
    /// A PRIORITY_UPDATE frame that cannot be: from a server, or for what the client cannot request.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-7.1>
    #[error("PRIORITY_UPDATE for stream {stream}, {problem}")]
    WrongUpdate {
        /// The stream that is prioritised.
        stream: FrameStreamId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A PRIORITY frame lets a node depend on itself that has no stream to reset.
    #[error("stream {stream} depends on itself")]
    SelfDependency {
        /// The node.
        stream: FrameStreamId,
    },
}

impl ConnectionError {
    /// The code that closes the connection.
    pub const fn code(&self) -> ErrorCode {
        match self {
            ConnectionError::Frame(error) => error.code(),
            // https://www.rfc-editor.org/rfc/rfc9113#section-4.3
            //# A decoding error in a field block MUST be treated as a connection error (Section
            //# 5.4.1) of type COMPRESSION_ERROR.
            ConnectionError::Compression(_) => ErrorCode::COMPRESSION_ERROR,
            ConnectionError::ControlEnded
            | ConnectionError::PushEnabled
            | ConnectionError::WrongStream { .. }
            | ConnectionError::WrongPromise { .. }
            | ConnectionError::PrioritiesChanged
            | ConnectionError::WrongUpdate { .. }
            | ConnectionError::SelfDependency { .. } => ErrorCode::PROTOCOL_ERROR,
            ConnectionError::Control(_) => ErrorCode::INTERNAL_ERROR,
            ConnectionError::TooManySettings { .. }
            | ConnectionError::TooManyCancelled { .. }
            | ConnectionError::TooManyResets { .. }
            | ConnectionError::TooManyPromises { .. } => ErrorCode::ENHANCE_YOUR_CALM,
            ConnectionError::StreamClosed { .. } => ErrorCode::STREAM_CLOSED,
        }
    }
}

/// What the control stream carries beside settings.
#[derive(Debug)]
pub(super) enum Incoming {
    Headers {
        stream: FrameStreamId,
        priority: Option<StreamPriority>,
        end_stream: bool,
        fields: FieldList,
        outcome: Outcome,
    },
    Promise {
        stream: FrameStreamId,
        promised: FrameStreamId,
        fields: FieldList,
        outcome: Outcome,
    },
    Priority {
        stream: FrameStreamId,
        priority: StreamPriority,
    },
    PriorityUpdate {
        stream: FrameStreamId,
        value: Bytes,
    },
    GoAway {
        last_stream: FrameStreamId,
        code: ErrorCode,
    },
}

#[derive(Debug)]
pub(super) struct Control {
    frames: FrameDecoder,
    decoder: hpack::Decoder,
    encoder: hpack::Encoder,
    limits: Limits,
    /// Whether the peer has yet to acknowledge our settings.
    acknowledgement_due: bool,
    /// SETTINGS frames received.
    settings_received: u32,
    peer_frame_size: u32,
    peer_field_list: Option<u32>,
    peer_concurrency: Option<u32>,
    /// What the peer said of ENABLE_PUSH.
    peer_push: Option<bool>,
    /// Whether the peer leaves the dependency tree alone; `None` before its settings came.
    peer_no_tree: Option<bool>,
    ended: bool,
    /// Reused between header blocks.
    block: Vec<u8>,
}

impl Control {
    pub(super) fn new(limits: Limits) -> Self {
        Control {
            // A block that does not fit into memory cannot come.
            frames: FrameDecoder::new(usize::try_from(limits.header_block).unwrap_or(usize::MAX)),
            decoder: hpack::Decoder::new(u64::from(limits.field_list)),
            encoder: hpack::Encoder::new(limits.encoding_table),
            limits,
            acknowledgement_due: false,
            settings_received: 0,
            peer_frame_size: DEFAULT_FRAME_SIZE,
            peer_field_list: None,
            peer_concurrency: None,
            peer_push: None,
            peer_no_tree: None,
            ended: false,
            block: Vec::new(),
        }
    }

    /// The same, at a client that takes pushed responses.
    pub(super) fn with_promises(self) -> Self {
        Control { frames: self.frames.with_promises(), ..self }
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Octets of a field list that the peer takes, if it said.
    pub(super) const fn peer_field_list(&self) -> Option<u32> {
        self.peer_field_list
    }

    /// Requests, or pushed responses, at a time that the peer takes, if it said.
    pub(super) const fn peer_concurrency(&self) -> Option<u32> {
        self.peer_concurrency
    }

    /// What the peer said of ENABLE_PUSH last, if anything.
    pub(super) const fn peer_push(&self) -> Option<bool> {
        self.peer_push
    }

    /// Whether the peer set NO_RFC7540_PRIORITIES; `None` if its settings have not come.
    pub(super) const fn peer_no_tree(&self) -> Option<bool> {
        self.peer_no_tree
    }

    /// Appends the first SETTINGS frame: `settings` and those that limits and transport ask for.
    pub(super) fn announce<T: Transport>(
        &mut self,
        transport: &T,
        settings: Settings,
        out: &mut Vec<u8>,
    ) {
        let table = self.limits.decoding_table;
        let mut settings = Settings {
            header_table_size: (table != hpack::DEFAULT_TABLE_SIZE).then_some(table),
            max_header_list_size: Some(self.limits.field_list),
            ..settings
        };
        transport.complete_settings(&mut settings);
        frame::encode_settings(&settings, out);
        self.acknowledgement_due = true;
    }

    /// Takes what came from the transport.
    pub(super) fn receive<T: Transport>(
        &mut self,
        transport: &mut T,
    ) -> Result<(), ConnectionError> {
        let frames = &mut self.frames;
        match transport.read(CONTROL_STREAM, &mut |octets| frames.push(octets))? {
            ReadState::Blocked => {}
            ReadState::Finished => self.ended = true,
        }
        Ok(())
    }

    /// The next frame that is more than settings. Settings are applied and acknowledged on the way.
    pub(super) fn next<T: Transport>(
        &mut self,
        transport: &mut T,
    ) -> Result<Option<Incoming>, ConnectionError> {
        while let Some(frame) = self.frames.next_frame()? {
            match frame {
                // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.3
                //# In order to provide such synchronization timepoints, the recipient of a
                //# SETTINGS frame in which the ACK flag is not set MUST apply the updated
                //# settings as soon as possible upon receipt.
                Frame::Settings(settings) => self.apply(transport, &settings)?,
                Frame::SettingsAck => self.on_acknowledgement(),
                Frame::Headers { stream, priority, end_stream, block } => {
                    let mut fields = FieldList::new();
                    // https://www.rfc-editor.org/rfc/rfc9113#section-4.3
                    //# A receiver MUST terminate the connection with a connection error (Section
                    //# 5.4.1) of type COMPRESSION_ERROR if it does not decompress a field block.
                    // https://www.rfc-editor.org/rfc/rfc9113#section-6.8
                    //# For instance, HEADERS, PUSH_PROMISE, and CONTINUATION frames MUST be
                    //# minimally processed to ensure that the state maintained for field section
                    //# compression is consistent (see Section 4.3); similarly, DATA frames MUST
                    //# be counted toward the connection flow-control window.
                    let outcome = self.decoder.decode(&block, &mut fields)?;
                    return Ok(Some(Incoming::Headers {
                        stream,
                        priority,
                        end_stream,
                        fields,
                        outcome,
                    }));
                }
                Frame::PushPromise { stream, promised, block } => {
                    let mut fields = FieldList::new();
                    let outcome = self.decoder.decode(&block, &mut fields)?;
                    return Ok(Some(Incoming::Promise { stream, promised, fields, outcome }));
                }
                Frame::Priority { stream, priority } => {
                    return Ok(Some(Incoming::Priority { stream, priority }));
                }
                Frame::PriorityUpdate { stream, value } => {
                    return Ok(Some(Incoming::PriorityUpdate { stream, value }));
                }
                Frame::GoAway { last_stream, code } => {
                    return Ok(Some(Incoming::GoAway { last_stream, code }));
                }
            }
        }
        // The control stream lives as long as the connection.
        if self.ended { Err(ConnectionError::ControlEnded) } else { Ok(None) }
    }

    /// Sends the head of `stream`, `id` in frames, which must fit the peer's limit.
    pub(super) fn send_headers<T: Transport>(
        &mut self,
        transport: &mut T,
        (id, stream): (FrameStreamId, StreamId),
        fields: &FieldList,
        priority: Option<StreamPriority>,
        end_stream: bool,
    ) -> Result<(), StreamError> {
        self.block.clear();
        self.encoder.encode(fields, &mut self.block);
        // Header and priority take 14 octets; blocks of more than one frame grow the buffer.
        let mut out = Vec::with_capacity(self.block.len() + 16);
        let frame_size = self.peer_frame_size;
        frame::encode_headers(id, priority, end_stream, &self.block, frame_size, &mut out);
        transport.write_head(stream, Bytes::from(out), end_stream)
    }

    /// Promises a response on `promised`, with the head of its request, which must fit the peer's limit.
    pub(super) fn send_promise<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: FrameStreamId,
        promised: FrameStreamId,
        fields: &FieldList,
    ) -> Result<(), StreamError> {
        self.block.clear();
        self.encoder.encode(fields, &mut self.block);
        let mut out = Vec::with_capacity(self.block.len() + 16);
        let frame_size = self.peer_frame_size;
        frame::encode_push_promise(stream, promised, &self.block, frame_size, &mut out);
        transport.write(CONTROL_STREAM, Bytes::from(out))
    }

    /// <https://www.rfc-editor.org/rfc/rfc7540#section-6.5.3>
    fn apply<T: Transport>(
        &mut self,
        transport: &mut T,
        settings: &Settings,
    ) -> Result<(), ConnectionError> {
        self.settings_received += 1;
        // https://www.rfc-editor.org/rfc/rfc9113#section-10.5
        //# Implementations SHOULD track the use of these features and set limits on their use.
        if self.settings_received > MAX_SETTINGS {
            return Err(ConnectionError::TooManySettings { limit: MAX_SETTINGS });
        }
        if let Some(size) = settings.header_table_size {
            self.encoder.set_peer_limit(size);
        }
        if let Some(size) = settings.max_frame_size {
            self.peer_frame_size = size;
        }
        self.peer_push = settings.enable_push.or(self.peer_push);
        // https://www.rfc-editor.org/rfc/rfc9218#section-2.1
        //# Receivers that detect a change MAY treat it as a connection error of type
        //# PROTOCOL_ERROR.
        let first = *self.peer_no_tree.get_or_insert(settings.no_rfc7540_priorities == Some(true));
        if settings.no_rfc7540_priorities.is_some_and(|now| now != first) {
            return Err(ConnectionError::PrioritiesChanged);
        }
        transport.on_settings(settings)?;
        self.peer_field_list = settings.max_header_list_size.or(self.peer_field_list);
        self.peer_concurrency = settings.max_concurrent_streams.or(self.peer_concurrency);
        let mut out = Vec::new();
        // https://www.rfc-editor.org/rfc/rfc9113#section-3.4
        //# The SETTINGS frames received from a peer as part of the connection preface MUST be
        //# acknowledged (see Section 6.5.3) after sending the connection preface.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.3
        //# Once all values have been processed, the recipient MUST immediately emit a SETTINGS
        //# frame with the ACK flag set.
        frame::encode_settings_ack(&mut out);
        transport.write(CONTROL_STREAM, Bytes::from(out))?;
        Ok(())
    }

    fn on_acknowledgement(&mut self) {
        if std::mem::take(&mut self.acknowledgement_due) {
            self.decoder.set_table_limit(self.limits.decoding_table);
        }
    }
}
