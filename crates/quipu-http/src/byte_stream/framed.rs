//! A mux and its pipe, as HTTP's ends want a transport.

use bytes::Bytes;
use quipu_base::{Duration, Instant, StreamId};
use quipu_policy::PriorityEdit;

use super::Pipe;
use super::demux::PREFACE;
use super::entry::{Answer, Notice};
use super::mux::Mux;
use super::window::DEFAULT_WINDOW;
use crate::h2::frame::{FrameError, Settings, encode_ping_ack, encode_reset, encode_window_update};
use crate::h2::{CONTROL_STREAM, ErrorCode, FrameStreamId};
use crate::transport::{ReadState, StreamError, Transport};

/// Octets that may wait unsent when a PING asks to be answered; our choice. A peer that only asks
/// would else let answers grow.
const MOST_UNSENT_FOR_PINGS: u64 = 1 << 20;

/// Octets of RST_STREAM frames that may be written while more than half of [`MOST_UNSENT_FOR_PINGS`] waits
/// unsent; our choice, some thousand frames. A peer that has its requests reset and takes nothing would
/// else let them grow.
const MOST_RESETS_UNSENT: u64 = 64 << 10;

/// A mux at one moment, with its pipe.
///
/// The control stream is the pipe itself, and its [`finish`](Transport::finish) and
/// [`reset`](Transport::reset) do nothing: the pipe ends with its connection. As HTTP/2 has one frame
/// for both directions, [`reset`](Transport::reset) and [`stop_sending`](Transport::stop_sending) of
/// a request's stream are the same.
#[derive(Debug)]
pub struct Framed<'a, P> {
    /// The mux.
    pub mux: &'a mut Mux,
    /// The byte stream.
    pub pipe: P,
    /// The time now.
    pub now: Instant,
}

impl<P: Pipe> Framed<'_, P> {
    /// Lets DATA frames go while the pipe wants some. To be called after whatever may have made room
    /// or brought something to send; true if a frame went.
    pub fn fill(&mut self) -> bool {
        let Framed { mux, pipe, now } = self;
        let mut went = false;
        while pipe.unsent() < mux.config.unsent_limit && pipe.has_room() {
            let mut result = Ok(());
            let frame = mux.queue.next_frame(*now, &mut |part| {
                // A pipe that is closed says so by itself, and what it gets is lost with it.
                if result.is_ok() {
                    result = pipe.write(part);
                }
            });
            let Some((stream, left)) = frame else { break };
            went = true;
            mux.on_frame_sent(stream, left);
            if result.is_err() {
                break;
            }
        }
        mux.queue.rest(*now);
        went
    }

    /// Takes what came through the pipe.
    pub(super) fn receive(&mut self) {
        let Framed { mux, pipe, now } = self;
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.2.2
        //# Endpoints MUST read and process HTTP/2 frames from the TCP receive buffer as soon as
        //# data is available.
        let state = pipe.read(&mut |octets| mux.receive(octets, *now));
        if state == Ok(ReadState::Finished) {
            mux.on_pipe_end();
        }
        self.answer();
    }

    pub(super) fn pop_notice(&mut self) -> Option<Notice> {
        self.mux.pop_notice()
    }

    /// Sends the frames that answer what came.
    fn answer(&mut self) {
        let mut out = Vec::new();
        let is_full = self.pipe.unsent().0 > MOST_UNSENT_FOR_PINGS;
        for answer in std::mem::take(&mut self.mux.answers) {
            match answer {
                Answer::Pong(_) if is_full => {
                    self.mux.fail(FrameError::Excess { what: "PING frames" });
                    return;
                }
                // https://www.rfc-editor.org/rfc/rfc9113#section-6.7
                //# Receivers of a PING frame that does not include an ACK flag MUST send a PING
                //# frame with the ACK flag set in response, with an identical frame payload.
                Answer::Pong(octets) => encode_ping_ack(octets, &mut out),
                Answer::Credit(stream, increment) => {
                    encode_window_update(stream, increment, &mut out);
                }
            }
        }
        if !out.is_empty() {
            // A pipe that is closed says so by itself.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.7
            //# PING responses SHOULD be given higher priority than any other frame.
            let _ = self.pipe.write(Bytes::from(out));
        }
    }

    fn abandon(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        if stream == CONTROL_STREAM {
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.4.2
        //# Normally, an endpoint SHOULD NOT send more than one RST_STREAM frame for any stream.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.4
        //# RST_STREAM frames MUST be associated with a stream. RST_STREAM frames MUST NOT be sent
        //# for a stream in the "idle" state.
        let id = self.mux.abandon(stream, self.now).ok_or(StreamError::NotOpen(stream))?;
        let code = ErrorCode(u32::try_from(code).unwrap_or(ErrorCode::INTERNAL_ERROR.0));
        let mut out = Vec::new();
        encode_reset(id, code, &mut out);
        if self.pipe.unsent().0 <= MOST_UNSENT_FOR_PINGS / 2 {
            self.mux.resets_unsent = 0;
        }
        self.mux.resets_unsent += out.len() as u64;
        if self.mux.resets_unsent > MOST_RESETS_UNSENT {
            self.mux.fail(FrameError::Excess { what: "requests that are reset" });
            return Ok(());
        }
        self.pipe.write(Bytes::from(out))?;
        self.answer();
        Ok(())
    }

    /// The connection's credit, which no setting states: right behind the first SETTINGS frame.
    fn announce(&mut self) -> Result<(), StreamError> {
        if std::mem::replace(&mut self.mux.announced, true) {
            return Ok(());
        }
        let more = self.mux.config.connection_window - DEFAULT_WINDOW;
        if more == 0 {
            return Ok(());
        }
        let mut out = Vec::new();
        encode_window_update(FrameStreamId::ZERO, more, &mut out);
        self.pipe.write(Bytes::from(out))
    }
}

impl<P: Pipe> Transport for Framed<'_, P> {
    /// First the control stream, then those of requests.
    fn open(&mut self) -> Option<StreamId> {
        if self.mux.is_client && !self.mux.announced {
            self.pipe.open().ok()?;
            // https://www.rfc-editor.org/rfc/rfc9113#section-3.2
            //# Once TLS negotiation is complete, both the client and the server MUST send a
            //# connection preface (Section 3.4).
            self.pipe.write(Bytes::from_static(PREFACE)).ok()?;
            return Some(CONTROL_STREAM);
        }
        self.mux.open(self.now)
    }

    fn open_unidirectional(&mut self) -> Option<StreamId> {
        self.mux.open_unidirectional(self.now)
    }

    fn write(&mut self, stream: StreamId, data: Bytes) -> Result<(), StreamError> {
        if stream == CONTROL_STREAM {
            self.pipe.write(data)?;
            return self.announce();
        }
        if self.mux.queue.write(stream, data, self.now) {
            Ok(())
        } else {
            Err(StreamError::NotOpen(stream))
        }
    }

    fn write_head(
        &mut self,
        stream: StreamId,
        frames: Bytes,
        end_stream: bool,
    ) -> Result<(), StreamError> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
        //# An endpoint MUST NOT send frames other than PRIORITY on a closed stream.
        if !self.mux.queue.is_open(stream) {
            return Err(StreamError::NotOpen(stream));
        }
        self.pipe.write(frames)?;
        self.mux.on_head_sent(stream, end_stream);
        Ok(())
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), StreamError> {
        if stream == CONTROL_STREAM || self.mux.finish(stream, self.now) {
            Ok(())
        } else {
            Err(StreamError::NotOpen(stream))
        }
    }

    fn reset(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.abandon(stream, code)
    }

    fn stop_sending(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.abandon(stream, code)
    }

    fn read(
        &mut self,
        stream: StreamId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError> {
        let end = if stream == CONTROL_STREAM {
            sink(&self.mux.control);
            self.mux.control.clear();
            self.mux.ended
        } else {
            let part = self.mux.read(stream).ok_or(StreamError::NotOpen(stream))?;
            if !part.octets.is_empty() {
                sink(&part.octets);
            }
            self.mux.recycle(stream, part.octets);
            self.answer();
            part.end
        };
        Ok(if end { ReadState::Finished } else { ReadState::Blocked })
    }

    /// Nothing to declare: the pipe carries bodies too.
    fn set_control(&mut self, _stream: StreamId) {}

    fn complete_settings(&self, settings: &mut Settings) {
        settings.initial_window_size = Some(self.mux.config.stream_window);
    }

    fn on_settings(&mut self, settings: &Settings) -> Result<(), FrameError> {
        self.mux.on_settings(settings, self.now)
    }

    fn edit_priority(&mut self, edit: PriorityEdit) {
        self.mux.queue.edit(&edit, self.now);
    }

    fn round_trip_time(&self) -> Duration {
        self.pipe.round_trip_time()
    }
}
