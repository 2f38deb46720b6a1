//! How much a stream still has to send.

use quipu_base::Bytes;

use crate::seam::view::StreamView;

/// What is left of the stream's total size, lost bytes included; of what was written if the
/// application told no size, which underestimates.
pub(crate) fn remaining(stream: &StreamView) -> Bytes {
    let end = total(stream).0;
    Bytes(end.saturating_sub(stream.high_sent.0)) + stream.free
}

/// The stream's total size; what was written if the application told none.
pub(crate) fn total(stream: &StreamView) -> Bytes {
    Bytes(stream.size.map_or(stream.written.0, |size| size.0.max(stream.written.0)))
}
