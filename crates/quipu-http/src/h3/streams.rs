//! Unidirectional streams: what they are for. <https://www.rfc-editor.org/rfc/rfc9114#section-6.2>

use std::collections::BTreeMap;

use quipu_base::{Role, StreamId};

use super::ConnectionError;
use super::frame::{HeaderReader, HeaderState};
use crate::transport::StreamTransport;

/// What a unidirectional stream begins with.
pub(super) mod kind {
    pub(in crate::h3) const CONTROL: u64 = 0x00;
    pub(in crate::h3) const PUSH: u64 = 0x01;
    pub(in crate::h3) const ENCODER: u64 = 0x02;
    pub(in crate::h3) const DECODER: u64 = 0x03;
}

/// A stream that lives as long as the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Critical {
    Control,
    Encoder,
    Decoder,
}

impl Critical {
    pub(super) const ALL: [Critical; 3] = [Critical::Control, Critical::Encoder, Critical::Decoder];

    pub(super) const fn kind(self) -> u64 {
        match self {
            Critical::Control => kind::CONTROL,
            Critical::Encoder => kind::ENCODER,
            Critical::Decoder => kind::DECODER,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Critical::Control => "control",
            Critical::Encoder => "encoder",
            Critical::Decoder => "decoder",
        }
    }

    pub(super) const fn closed(self, stream: StreamId) -> ConnectionError {
        ConnectionError::CriticalStreamClosed { stream, name: self.name() }
    }
}

/// The critical streams of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CriticalStreams([Option<StreamId>; 3]);

impl CriticalStreams {
    pub(super) fn get(&self, which: Critical) -> Option<StreamId> {
        self.0[which as usize]
    }

    pub(super) fn set(&mut self, which: Critical, stream: StreamId) {
        self.0[which as usize] = Some(stream);
    }

    pub(super) fn find(&self, stream: StreamId) -> Option<Critical> {
        Critical::ALL.into_iter().find(|&which| self.get(which) == Some(stream))
    }
}

/// The unidirectional streams of the peer.
#[derive(Debug)]
pub(super) struct PeerStreams {
    role: Role,
    /// Those whose purpose is not known yet; the transport limits how many.
    untold: BTreeMap<StreamId, HeaderReader>,
    critical: CriticalStreams,
}

impl PeerStreams {
    /// Of the peer of the end in `role`.
    pub(super) fn new(role: Role) -> Self {
        PeerStreams { role, untold: BTreeMap::new(), critical: CriticalStreams::default() }
    }

    /// What a stream is for, if that is known and anything that is taken.
    pub(super) fn find(&self, stream: StreamId) -> Option<Critical> {
        self.critical.find(stream)
    }

    /// Reads what a stream is for: what critical one it is, if it is one. Others are not read: the peer
    /// is told so.
    pub(super) fn identify<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
    ) -> Result<Option<Critical>, ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.2
        //# As certain stream types can affect connection state, a recipient SHOULD NOT discard data
        //# from incoming unidirectional streams prior to reading the stream type.
        let reader = self.untold.entry(stream).or_default();
        let kind = match reader.integer(transport, stream) {
            Ok(HeaderState::Complete(kind)) => kind,
            Ok(HeaderState::Blocked) => return Ok(None),
            // https://www.rfc-editor.org/rfc/rfc9114#section-6.2
            //# A receiver MUST tolerate unidirectional streams being closed or reset prior to the
            //# reception of the unidirectional stream header.
            Ok(HeaderState::Ended { .. }) | Err(_) => {
                self.untold.remove(&stream);
                return Ok(None);
            }
        };
        let ended = reader.has_ended();
        self.untold.remove(&stream);
        let which = match kind {
            kind::CONTROL => Critical::Control,
            kind::ENCODER => Critical::Encoder,
            kind::DECODER => Critical::Decoder,
            // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.2
            //# Only servers can push; if a server receives a client-initiated push stream, this
            //# MUST be treated as a connection error of type H3_STREAM_CREATION_ERROR.
            kind::PUSH if self.role == Role::Server => {
                let problem = "a stream for a pushed response, as a client";
                return Err(ConnectionError::StreamCreation { stream, problem });
            }
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.6
            //# A client MUST treat receipt of a push stream as a connection error of type
            //# H3_ID_ERROR when no MAX_PUSH_ID frame has been sent or when the stream references a
            //# push ID that is greater than the maximum push ID.
            kind::PUSH => {
                let problem = "nothing may be pushed";
                return Err(ConnectionError::Id { frame: "a push stream", id: stream.0, problem });
            }
            // https://www.rfc-editor.org/rfc/rfc9114#section-6.2
            //# Recipients of unknown stream types MUST either abort reading of the stream or
            //# discard incoming data without further processing. If reading is aborted, the
            //# recipient SHOULD use the H3_STREAM_CREATION_ERROR error code or a reserved error
            //# code (Section 8.1). The recipient MUST NOT consider unknown stream types to be a
            //# connection error of any kind.
            // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.3
            //# Endpoints MUST NOT consider these streams to have any meaning upon receipt.
            // https://www.rfc-editor.org/rfc/rfc9114#section-9
            //# Implementations MUST discard data or abort reading on unidirectional streams that
            //# have unknown or unsupported types.
            _ => {
                if !ended {
                    let code = super::ErrorCode::STREAM_CREATION_ERROR.0;
                    // One that is over needs nothing.
                    let _ = transport.stop_sending(stream, code);
                }
                return Ok(None);
            }
        };
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.2
        //# Receipt of a second instance of either stream type MUST be treated as a connection
        //# error of type H3_STREAM_CREATION_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        //# If either control stream is closed at any point, this MUST be treated as a connection
        //# error of type H3_CLOSED_CRITICAL_STREAM.
        //# Only one control stream per peer is permitted; receipt of a second stream claiming to be
        //# a control stream MUST be treated as a connection error of type H3_STREAM_CREATION_ERROR.
        if self.critical.get(which).is_some() {
            let problem = "a second one of its kind";
            return Err(ConnectionError::StreamCreation { stream, problem });
        }
        self.critical.set(which, stream);
        if ended { Err(which.closed(stream)) } else { Ok(Some(which)) }
    }

    /// The peer reset a stream.
    pub(super) fn on_reset(&mut self, stream: StreamId) -> Result<(), ConnectionError> {
        self.untold.remove(&stream);
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.2
        //# Closure of either unidirectional stream type MUST be treated as a connection error of
        //# type H3_CLOSED_CRITICAL_STREAM.
        self.find(stream).map_or(Ok(()), |which| Err(which.closed(stream)))
    }
}
