//! What is known of one stream, and what comes of frames on it.

use quipu_base::StreamId;

use super::window::{DEFAULT_WINDOW, ReceiveWindow};
use crate::h2::FrameStreamId;
use crate::h2::frame::FrameError;

/// What the ends of HTTP are to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Readable(StreamId),
    Stopped(StreamId, u64),
    Reset(StreamId, u64),
    Delivered(StreamId),
    Failed(FrameError),
}

/// A frame that answers what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Pong([u8; 8]),
    /// Credit for the peer; zero is the connection.
    Credit(FrameStreamId, u32),
}

/// A stream of which not both directions are over.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: FrameStreamId,
    pub(super) receiving: Receiving,
    /// Whether this end has yet to send the end. Its body is in the queue then.
    pub(super) sending: bool,
    /// Whether the head that this end sent said that no body follows.
    pub(super) bodiless: bool,
    /// Whether the peer's head came.
    pub(super) head_seen: bool,
    /// Whether that there is something to read was told and not taken up.
    pub(super) told: bool,
    pub(super) unread: Vec<u8>,
    pub(super) window: ReceiveWindow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    Open,
    /// The end came.
    Ended,
    /// And was read.
    Over,
}

/// What was read of a stream.
pub(super) struct ReadPart {
    pub(super) octets: Vec<u8>,
    pub(super) end: bool,
}

impl Entry {
    /// A stream that was opened, with credit for bodies of `window` octets.
    pub(super) fn new(id: FrameStreamId, window: u32) -> Self {
        Entry {
            id,
            receiving: Receiving::Open,
            sending: true,
            bodiless: false,
            head_seen: false,
            told: false,
            unread: Vec::new(),
            // As much as the peer may send before it has our settings.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.3
            //# However, the receiver MUST be prepared to receive data that exceeds this window
            //# size, since the sender might send data that exceeds the lower limit prior to
            //# processing the SETTINGS frame.
            window: ReceiveWindow::new(window, window.max(DEFAULT_WINDOW)),
        }
    }

    /// A stream on which this end, a server, pushes: nothing is received.
    pub(super) fn pushed(id: FrameStreamId) -> Self {
        Entry { receiving: Receiving::Over, ..Entry::new(id, 1) }
    }

    /// A stream that the peer, a server, has promised: nothing is sent.
    pub(super) fn promised(id: FrameStreamId, window: u32) -> Self {
        Entry { sending: false, ..Entry::new(id, window) }
    }

    /// Whether both directions are over.
    pub(super) fn is_over(&self) -> bool {
        self.receiving == Receiving::Over && !self.sending
    }
}
