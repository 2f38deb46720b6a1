//! Control frames of streams that wait to be sent, as a set of what changed.
//!
//! Values are taken when a frame is written, so a frame always tells the latest.

use std::collections::VecDeque;

use quipu_base::{Offset, StreamDirection};
use quipu_policy::StreamKey;

/// A control frame about streams or credit, as written into a packet. The connection keeps it
/// beside the packet and hands it back when the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.9>
    MaxData {
        /// Bytes over all streams.
        limit: u64,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.10>
    MaxStreamData {
        /// Whose credit.
        stream: StreamKey,
        /// End of the credit.
        limit: Offset,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.11>
    MaxStreams {
        /// Of which kind.
        direction: StreamDirection,
        /// Streams over the life of the connection.
        limit: u64,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.12>
    DataBlocked {
        /// The limit that holds us back.
        limit: u64,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.13>
    StreamDataBlocked {
        /// Which stream is held back.
        stream: StreamKey,
        /// The limit that holds it back.
        limit: Offset,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.14>
    StreamsBlocked {
        /// Of which kind.
        direction: StreamDirection,
        /// The limit that holds us back.
        limit: u64,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.4>
    ResetStream {
        /// Which stream.
        stream: StreamKey,
        /// The application's error code.
        code: u64,
        /// Credit that the stream consumed.
        final_size: Offset,
    },
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.5>
    StopSending {
        /// Which stream.
        stream: StreamKey,
        /// The application's error code.
        code: u64,
    },
}

/// A set of small flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirty(u8);

impl Dirty {
    pub(crate) const MAX_DATA: Dirty = Dirty(1);
    pub(crate) const DATA_BLOCKED: Dirty = Dirty(2);
    pub(crate) const MAX_STREAMS_BIDI: Dirty = Dirty(4);
    pub(crate) const MAX_STREAMS_UNI: Dirty = Dirty(8);
    pub(crate) const STREAMS_BLOCKED_BIDI: Dirty = Dirty(16);
    pub(crate) const STREAMS_BLOCKED_UNI: Dirty = Dirty(32);

    pub(crate) const RESET: Dirty = Dirty(1);
    pub(crate) const STOP: Dirty = Dirty(2);
    pub(crate) const MAX_STREAM_DATA: Dirty = Dirty(4);
    pub(crate) const STREAM_BLOCKED: Dirty = Dirty(8);

    pub(crate) const fn max_streams(direction: StreamDirection) -> Dirty {
        match direction {
            StreamDirection::Bidirectional => Dirty::MAX_STREAMS_BIDI,
            StreamDirection::Unidirectional => Dirty::MAX_STREAMS_UNI,
        }
    }

    pub(crate) const fn streams_blocked(direction: StreamDirection) -> Dirty {
        match direction {
            StreamDirection::Bidirectional => Dirty::STREAMS_BLOCKED_BIDI,
            StreamDirection::Unidirectional => Dirty::STREAMS_BLOCKED_UNI,
        }
    }

    pub(crate) const fn add(&mut self, flag: Dirty) {
        self.0 |= flag.0;
    }

    pub(crate) const fn remove(&mut self, flag: Dirty) {
        self.0 &= !flag.0;
    }

    pub(crate) const fn has(self, flag: Dirty) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What changed: of the connection, and on which slots. The flags of a stream lie in its slot.
#[derive(Debug, Default)]
pub(crate) struct FrameQueue {
    pub(crate) connection: Dirty,
    /// Slots with flags, each once, oldest first; a slot may have lost its flags meanwhile.
    pub(crate) slots: VecDeque<u32>,
}
