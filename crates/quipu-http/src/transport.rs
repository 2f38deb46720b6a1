//! What HTTP needs of a transport: ordered streams of octets that know priorities.
//!
//! The transport reports through its own events; whoever drives both passes them on:
//!
//! | event of the transport | call |
//! | --- | --- |
//! | octets or the end came on a stream, after all before was read | `on_stream_readable` |
//! | the peer sent RESET_STREAM before all had come | `on_stream_reset` |
//! | the peer sent STOP_SENDING, and the transport reset the stream for it | `on_stream_stopped` |
//! | the peer has all that was written, and the end | `on_stream_delivered`, at the server |
//!
//! HTTP names a stream on the control stream, perhaps before any frame of that stream came. So an end
//! may write to, reset, stop and prioritise each stream that the peer may open by the limits in
//! force. Nothing here blocks, and no call leads to another call back.

pub mod quic;

use bytes::Bytes;
use quipu_base::{Duration, StreamId};
use quipu_policy::PriorityEdit;
use thiserror::Error;

use crate::h2::CONTROL_STREAM;
use crate::h2::frame::{FrameError, Settings};

/// Streams of one connection, as one of its ends sees them.
pub trait Transport {
    /// Opens the next bidirectional stream of this end; `None` if the peer's limit is reached.
    fn open(&mut self) -> Option<StreamId>;

    /// Opens the next stream of this end that the peer cannot write to; `None` if the peer's limit is
    /// reached.
    fn open_unidirectional(&mut self) -> Option<StreamId>;

    /// Appends `data` to what this end sends on `stream`. The transport buffers all of it.
    ///
    /// # Errors
    /// See [`StreamError`]; nothing was buffered then.
    fn write(&mut self, stream: StreamId, data: Bytes) -> Result<(), StreamError>;

    /// Appends as much of `data` as the transport has room for. Returns how many octets; if not all,
    /// the transport tells when there is room for more. One that buffers all, as by default, takes all.
    ///
    /// # Errors
    /// See [`StreamError`]; nothing was buffered then.
    fn write_some(&mut self, stream: StreamId, data: Bytes) -> Result<usize, StreamError> {
        let length = data.len();
        self.write(stream, data).map(|()| length)
    }

    /// Appends the frames of a head to what this end sends on the control stream. `end_stream`: they
    /// say that `stream` has no body, and [`finish`](Transport::finish) follows at once.
    ///
    /// # Errors
    /// See [`StreamError`]; nothing was buffered then.
    fn write_head(
        &mut self,
        stream: StreamId,
        frames: Bytes,
        end_stream: bool,
    ) -> Result<(), StreamError> {
        let _ = (stream, end_stream);
        self.write(CONTROL_STREAM, frames)
    }

    /// Ends what this end sends on `stream` after the last octet written.
    ///
    /// # Errors
    /// See [`StreamError`].
    fn finish(&mut self, stream: StreamId) -> Result<(), StreamError>;

    /// Abandons what this end sends on `stream`: RESET_STREAM. Unsent data is dropped.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.4>
    ///
    /// # Errors
    /// See [`StreamError`]; resetting a stream that has been delivered is one.
    fn reset(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError>;

    /// Asks the peer to abandon what it sends on `stream`: STOP_SENDING. Data received later is
    /// dropped and counts as read.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.5>
    ///
    /// # Errors
    /// See [`StreamError`].
    fn stop_sending(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError>;

    /// Hands all octets that are next in order on `stream` to `sink`, in slices as they lie in memory,
    /// and gives flow-control credit for them.
    ///
    /// # Errors
    /// See [`StreamError`]. After the end was told, or a reset or stop, the stream is not open.
    fn read(
        &mut self,
        stream: StreamId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError>;

    /// Declares `stream` a control stream: policies do not see it, and its data goes first.
    fn set_control(&mut self, stream: StreamId);

    /// Adds what the transport has to say itself to the settings that this end states first: nothing
    /// where bodies travel apart from frames.
    fn complete_settings(&self, settings: &mut Settings) {
        let _ = settings;
    }

    /// The peer stated settings.
    ///
    /// # Errors
    /// If they cannot be; the connection then fails.
    fn on_settings(&mut self, settings: &Settings) -> Result<(), FrameError> {
        let _ = settings;
        Ok(())
    }

    /// Tells what HTTP knows of priorities, for the data that this end sends. An edit that the tree's
    /// container refuses has no effect.
    fn edit_priority(&mut self, edit: PriorityEdit);

    /// Largest smoothed round-trip time of the usable paths; an initial guess before the first sample.
    fn round_trip_time(&self) -> Duration;
}

/// What HTTP/3 needs more than HTTP/2 does: its bodies have frames, which are read one at a time. HTTP/2
/// needs it to read no more of a body than is asked for.
pub trait StreamTransport: Transport {
    /// Reads as [`Transport::read`] does, but `max` octets at most. What is not read gives the peer no
    /// credit for more.
    ///
    /// # Errors
    /// See [`Transport::read`].
    fn read_at_most(
        &mut self,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError>;

    /// Whether the peer may open `stream`, by the limits in force: it can be named before anything of
    /// it came.
    fn may_be_open(&self, stream: StreamId) -> bool;

    /// Whether the peer takes datagrams.
    fn takes_datagrams(&self) -> bool;
}

/// What follows the octets that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// No end yet: the stream becomes readable again, unless more was there than was to be read.
    Blocked,
    /// The end of the stream.
    Finished,
}

/// Why a stream could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream cannot be open yet, or is over in this direction: ended, reset or stopped.
    #[error("{0} is not open in this direction")]
    NotOpen(StreamId),
    /// The connection is over.
    #[error("the connection is over")]
    Closed,
}
