//! What each frame does.

use quipu_base::{Instant, PathId};
use quipu_policy::{Event, PathKey, PathStatus};
use smallvec::SmallVec;

use super::receive::Came;
use super::{CloseReason, Connection, EndpointEvent, Space};
use crate::error::TransportError;
use crate::recorder::{StreamSide, StreamState};
use crate::stream::StreamFault;
use crate::wire::Frame;
use crate::wire::frame::{Ack, NewConnectionId, ReturnPaths};

/// Connection IDs of the peer that wait to be retired, at most; our choice.
const MAX_RETIRED: usize = 256;

impl Connection {
    /// Applies a frame of a packet that came in `space`.
    pub(super) fn on_frame(
        &mut self,
        now: Instant,
        space: Space,
        came: Came,
        frame: Frame<'_>,
    ) -> Result<(), TransportError> {
        let streams = &mut self.shared.streams;
        match frame {
            Frame::Padding { .. } | Frame::Ping => {}
            Frame::NewToken { token } => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-19.7
                //# A server MUST treat receipt of a NEW_TOKEN frame as a connection error of type
                //# PROTOCOL_VIOLATION.
                if !self.role.is_client() {
                    return Err(TransportError::protocol_violation("a client gave a token"));
                }
                self.on_new_token(token);
            }
            Frame::Stream(stream) => {
                streams.on_stream_frame(
                    stream.stream,
                    stream.offset,
                    stream.fin,
                    stream.data,
                    now,
                )?;
            }
            Frame::Ack(ack) => self.on_ack_frame(now, space, came, &ack)?,
            Frame::Crypto { offset, data } => {
                self.handshake.on_crypto(space, offset.0, data)?;
            }
            Frame::ResetStream { stream, error_code, final_size } => {
                streams.on_reset_stream(stream, error_code, final_size, now)?;
                self.record_stream(now, stream, StreamSide::Receiving, StreamState::ResetReceived);
            }
            Frame::StopSending { stream, error_code } => {
                streams.on_stop_sending(stream, error_code, now)?;
            }
            Frame::MaxData { maximum } => streams.on_max_data(maximum.0),
            Frame::MaxStreamData { stream, maximum } => {
                streams.on_max_stream_data(stream, maximum, now)?;
            }
            Frame::MaxStreams { direction, maximum } => streams.on_max_streams(direction, maximum),
            Frame::StreamDataBlocked { stream, .. } => {
                streams.on_stream_data_blocked(stream, now)?;
            }
            Frame::DataBlocked { .. } | Frame::StreamsBlocked { .. } => {}
            Frame::NewConnectionId(new) => {
                self.on_new_connection_id(&new)?;
                // It may have waited for one.
                self.move_to_preferred(now);
            }
            Frame::RetireConnectionId { path, sequence } => {
                self.on_retire_connection_id(path, sequence)?;
            }
            // Answered where it came from, which `on_path_challenge` is told.
            Frame::PathChallenge { .. } => {}
            Frame::PathResponse { data } => self.on_path_response(now, data),
            Frame::ConnectionClose { error_code, reason, .. } => {
                let reason = String::from_utf8_lossy(reason).into_owned();
                self.on_close(now, CloseReason::PeerTransport { code: error_code, reason });
            }
            Frame::ApplicationClose { error_code, reason } => {
                let reason = String::from_utf8_lossy(reason).into_owned();
                self.on_close(now, CloseReason::PeerApplication { code: error_code, reason });
            }
            Frame::HandshakeDone => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-19.20
                //# A server MUST treat receipt of a HANDSHAKE_DONE frame as a connection error of
                //# type PROTOCOL_VIOLATION.
                if !self.role.is_client() {
                    return Err(TransportError::protocol_violation("a client confirmed"));
                }
                self.confirm(now);
            }
            Frame::AckFrequency(request) => self.on_ack_frequency(&request)?,
            // The packet is acknowledged at once.
            Frame::ImmediateAck => {
                self.require_ack_frequency()?;
            }
            Frame::Datagram { data, .. } => self.on_datagram_frame(data, frame.size())?,
            Frame::PathAbandon { path, .. } => {
                self.require_multipath()?;
                self.on_path_abandon(now, path)?;
            }
            Frame::PathStatusBackup { path, sequence } => {
                self.require_multipath()?;
                self.on_path_status(now, path, sequence, PathStatus::Backup)?;
            }
            Frame::PathStatusAvailable { path, sequence } => {
                self.require_multipath()?;
                self.on_path_status(now, path, sequence, PathStatus::Available)?;
            }
            Frame::MaxPathId { maximum } => {
                self.require_multipath()?;
                self.handshake.raise_max_path_id(maximum)?;
                self.issue_path_ids();
            }
            Frame::PathsBlocked { maximum } => {
                self.require_multipath()?;
                // https://www.rfc-editor.org/rfc/rfc10069#section-4.7
                //# Receipt of a value of Maximum Path Identifier or Path Identifier that is
                //# higher than the local maximum value MUST be treated as a connection error of
                //# type PROTOCOL_VIOLATION.
                self.plan.check(maximum, "blocked at a path ID never allowed")?;
            }
            Frame::PathCidsBlocked { path, next_sequence } => {
                self.require_multipath()?;
                self.plan.check(path, "blocked at a path ID never allowed")?;
                // https://www.rfc-editor.org/rfc/rfc10069#section-4.7
                //# Receipt of a value of Next Sequence Number that is higher than the sequence
                //# number of the next expected to be issued connection ID for this path MUST be
                //# treated as a connection error of type PROTOCOL_VIOLATION.
                if !self.plan.is_over(path) && next_sequence > self.ids.next_told(path) {
                    let wrong = "blocked at a connection ID never issued";
                    return Err(TransportError::protocol_violation(wrong));
                }
            }
            Frame::ReturnPaths(advice) => self.on_return_paths(now, &advice)?,
        }
        Ok(())
    }

    fn on_ack_frame(
        &mut self,
        now: Instant,
        space: Space,
        came: Came,
        ack: &Ack<'_>,
    ) -> Result<(), TransportError> {
        let Space::Data(_) = space else { return self.on_ack(now, space, came, ack) };
        let id = match ack.path {
            Some(id) => {
                self.require_multipath()?;
                id
            }
            // https://www.rfc-editor.org/rfc/rfc10069#section-2.3
            //# Endpoints MUST still process ACK frames that acknowledge 0-RTT packets or 1-RTT
            //# packets.
            None => PathId::ZERO,
        };
        if id == PathId::ZERO {
            self.early.check_ack(ack)?;
        }
        match self.shared.paths.slot_of(id) {
            Some(slot) => self.on_ack(now, Space::Data(slot), came, ack),
            // https://www.rfc-editor.org/rfc/rfc10069#section-4
            //# If an endpoint receives a multipath-specific frame with a path ID that it cannot
            //# process anymore (e.g., because the path might have been abandoned), it MUST
            //# silently ignore the frame.
            None if self.plan.is_over(id) => Ok(()),
            None => Err(TransportError::protocol_violation("acknowledged on a path never used")),
        }
    }

    fn on_new_connection_id(&mut self, new: &NewConnectionId) -> Result<(), TransportError> {
        let path = match new.path {
            Some(path) => {
                self.require_multipath()?;
                // https://www.rfc-editor.org/rfc/rfc10069#section-4
                //# Receipt of multipath-specific frames that use a path ID that is greater than
                //# the announced Maximum Paths value in the MAX_PATH_ID frame or in the
                //# initial_max_path_id transport parameter, if no MAX_PATH_ID frame was received
                //# yet, MUST be treated as a connection error of type PROTOCOL_VIOLATION.
                self.plan.check(path, "a connection ID for a path ID never allowed")?;
                path
            }
            None => PathId::ZERO,
        };
        if self.plan.is_over(path) {
            return Ok(());
        }
        let retired = self.ids.remote_mut().on_new(path, new)?;
        self.retire_remote_ids(path, &retired)
    }

    /// Connection IDs of the peer are used no more: it is told.
    pub(super) fn retire_remote_ids(
        &mut self,
        path: PathId,
        retired: &[u64],
    ) -> Result<(), TransportError> {
        // Bounded by the peer's need of our answers.
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
        //# An endpoint SHOULD limit the number of connection IDs it has retired
        //# locally for which RETIRE_CONNECTION_ID frames have not yet been
        //# acknowledged.
        //# An endpoint SHOULD allow for sending and tracking a number of RETIRE_CONNECTION_ID
        //# frames of at least twice the value of the active_connection_id_limit transport
        //# parameter.
        if self.control.retire_cids(path, retired) > MAX_RETIRED {
            return Err(super::cids::too_many());
        }
        Ok(())
    }

    fn on_retire_connection_id(
        &mut self,
        path: Option<PathId>,
        sequence: u64,
    ) -> Result<(), TransportError> {
        if path.is_some() {
            self.require_multipath()?;
        }
        let path = path.unwrap_or_default();
        self.plan.check(path, "retired a connection ID of a path never allowed")?;
        if self.plan.is_over(path) {
            return Ok(());
        }
        if let Some(cid) = self.ids.retire(path, sequence)? {
            self.events.tell_endpoint(EndpointEvent::Retired(cid));
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
            //# An endpoint SHOULD supply a new connection ID when the peer retires a
            //# connection ID.
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.2
            //# As such, when receiving a PATH_RETIRE_CONNECTION_ID frame, an endpoint SHOULD
            //# provide new connection IDs for that path, if still open, using
            //# PATH_NEW_CONNECTION_ID frames.
            self.fill_supply(path);
        }
        Ok(())
    }

    fn on_return_paths(
        &mut self,
        now: Instant,
        advice: &ReturnPaths<'_>,
    ) -> Result<(), TransportError> {
        if !self.config.offers_return_paths() {
            return Err(TransportError::protocol_violation(
                "the return-path extension was not negotiated",
            ));
        }
        if !self.plan.is_news(advice.sequence) {
            return Ok(());
        }
        let views = &self.shared.paths.views;
        let key = |id| views.by_id(id).map(|view| view.key);
        let pairs: SmallVec<[(PathKey, PathKey); 8]> =
            advice.pairs().filter_map(|(data, on)| key(data).zip(key(on))).collect();
        let event = Event::ReturnAdvice(&pairs);
        self.scheduler.tell_ack_policy(now, &self.shared, event);
        Ok(())
    }

    fn on_close(&mut self, now: Instant, reason: CloseReason) {
        let timeout = self.longest_probe_timeout();
        self.lifecycle.drain(now, timeout, reason);
    }

    fn require_multipath(&self) -> Result<(), TransportError> {
        // https://www.rfc-editor.org/rfc/rfc10069#section-2
        //# If either of the endpoints does not advertise the initial_max_path_id transport
        //# parameter, then both endpoints MUST NOT use any frame or mechanism defined in this
        //# document.
        match self.multipath() {
            Some(_) => Ok(()),
            None => Err(TransportError::protocol_violation("multipath was not negotiated")),
        }
    }
}

impl From<StreamFault> for TransportError {
    fn from(fault: StreamFault) -> Self {
        let code = match fault {
            StreamFault::FlowControl => crate::error::ErrorCode::FLOW_CONTROL_ERROR,
            StreamFault::FinalSize => crate::error::ErrorCode::FINAL_SIZE_ERROR,
            StreamFault::StreamLimit => crate::error::ErrorCode::STREAM_LIMIT_ERROR,
            StreamFault::StreamState => crate::error::ErrorCode::STREAM_STATE_ERROR,
            StreamFault::Cancelled => crate::error::ErrorCode::PROTOCOL_VIOLATION,
        };
        TransportError::new(code, fault.to_string())
    }
}
