//! The receiving half of a stream: reassembly, final size, credit.

use quipu_base::Offset;

use crate::stream::assembler::Assembler;
use crate::stream::buffers::{Buffers, Spares};
use crate::stream::fault::StreamFault;
use crate::stream::flow::ReceiveWindow;
use crate::stream::send::MAX_OFFSET;

/// What a frame of the peer brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Growth of the highest offset: what it costs of connection credit.
    pub growth: u64,
    /// Bytes that count as consumed at once, because nobody will read them.
    pub discarded: u64,
    /// True if the application has something new to read, be it only the end.
    pub readable: bool,
    /// True if the stream waits for the buffer of the datagram: [`RecvHalf::keep`] must follow before
    /// anything is read.
    pub waits: bool,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct RecvHalf {
    assembler: Assembler,
    /// Highest offset that the peer named; counts for credit.
    highest: u64,
    final_size: Option<u64>,
    stopped: bool,
    window: ReceiveWindow,
}

impl RecvHalf {
    /// An empty half with a window of `window` bytes.
    pub const fn new(window: u64) -> Self {
        RecvHalf {
            assembler: Assembler::new(),
            highest: 0,
            final_size: None,
            stopped: false,
            window: ReceiveWindow::new(window),
        }
    }

    /// How much a frame that reaches to `offset + len` adds to the highest offset.
    ///
    /// # Errors
    /// [`StreamFault::FlowControl`] beyond the credit given
    /// (<https://www.rfc-editor.org/rfc/rfc9000#section-4.1>); [`StreamFault::FinalSize`] if the
    /// end moves or bytes lie behind it (<https://www.rfc-editor.org/rfc/rfc9000#section-4.5>).
    pub fn growth(&self, offset: Offset, len: u64, fin: bool) -> Result<u64, StreamFault> {
        let end = offset.0.checked_add(len).filter(|&end| end <= MAX_OFFSET);
        let end = end.ok_or(StreamFault::FlowControl)?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.5
        //# If a RESET_STREAM or STREAM frame is received indicating a change in the final size
        //# for the stream, an endpoint SHOULD respond with an error of type FINAL_SIZE_ERROR; see
        //# Section 11 for details on error handling.
        match self.final_size {
            Some(size) if end > size || (fin && end != size) => return Err(StreamFault::FinalSize),
            None if fin && end < self.highest => return Err(StreamFault::FinalSize),
            _ => {}
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A receiver MUST close the connection with an error of type FLOW_CONTROL_ERROR if the
        //# sender violates the advertised connection or stream data limits; see Section 11 for
        //# details on error handling.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.10
        //# An endpoint MUST terminate a connection with an error of type FLOW_CONTROL_ERROR if it
        //# receives more data than the largest maximum stream data that it has sent for the
        //# affected stream.
        if end > self.window.limit() {
            return Err(StreamFault::FlowControl);
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Takes the data of a STREAM frame. Bytes that arrived before are ignored.
    ///
    /// # Errors
    /// As [`growth`](Self::growth); nothing is changed then.
    pub fn on_data(
        &mut self,
        offset: Offset,
        data: &[u8],
        fin: bool,
        buffers: &mut Buffers,
    ) -> Result<Received, StreamFault> {
        let growth = self.growth(offset, data.len() as u64, fin)?;
        let end = offset.0 + data.len() as u64;
        self.highest += growth;
        let news_of_end = fin && self.final_size.is_none();
        if fin {
            self.final_size = Some(end);
        }
        if self.stopped {
            return Ok(Received { growth, discarded: growth, ..Received::default() });
        }
        let before = self.assembler.contiguous();
        let waits = self.assembler.insert(offset.0, data, buffers);
        let after = self.assembler.contiguous();
        let readable = after > before || (news_of_end && self.final_size == Some(after));
        Ok(Received { growth, discarded: 0, readable, waits })
    }

    /// The datagram was read in whose buffer bytes of the stream are that wait for it: it is exchanged
    /// for another one of the same length.
    pub fn keep(&mut self, buffer: &mut Box<[u8]>, buffers: &mut Buffers, spares: &mut Spares) {
        self.assembler.keep(buffer, buffers, spares);
    }

    /// Takes a RESET_STREAM frame: what was buffered is dropped, unless all of it is there
    /// already. The half is over then.
    ///
    /// # Errors
    /// As [`growth`](Self::growth); nothing is changed then.
    pub fn on_reset(
        &mut self,
        final_size: Offset,
        buffers: &mut Buffers,
    ) -> Result<Received, StreamFault> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.5
        //# The receiver MUST use the final size of the stream to account for all bytes sent on
        //# the stream in its connection-level flow controller.
        let growth = self.growth(final_size, 0, true)?;
        self.highest += growth;
        self.final_size = Some(final_size.0);
        let discarded = if self.stopped { growth } else { self.discard(buffers) };
        Ok(Received { growth, discarded, ..Received::default() })
    }

    /// Wants no more bytes: what is buffered and what comes is dropped. Returns how many bytes
    /// count as consumed by that.
    pub fn stop(&mut self, buffers: &mut Buffers) -> u64 {
        if std::mem::replace(&mut self.stopped, true) {
            return 0;
        }
        self.discard(buffers)
    }

    fn discard(&mut self, buffers: &mut Buffers) -> u64 {
        let unread = self.highest - self.assembler.read_end();
        self.assembler.skip_to(self.highest, buffers);
        unread
    }

    /// Gives up to `max` bytes that are in order to `sink`, in pieces. Returns how many.
    pub fn read(&mut self, max: u64, buffers: &mut Buffers, sink: &mut dyn FnMut(&[u8])) -> u64 {
        // https://www.rfc-editor.org/rfc/rfc9000#section-2.2
        //# Endpoints MUST be able to deliver stream data to an application as an ordered byte
        //# stream.
        let read = self.assembler.read(max, buffers, sink);
        self.window.consume(read);
        read
    }

    /// Bytes in order that were not read yet.
    pub const fn readable(&self) -> u64 {
        self.assembler.contiguous() - self.assembler.read_end()
    }

    /// True if the end was read.
    pub fn is_all_read(&self) -> bool {
        self.final_size == Some(self.assembler.read_end())
    }

    /// True if every byte and the end arrived.
    pub fn is_all_received(&self) -> bool {
        self.final_size == Some(self.assembler.contiguous())
    }

    /// The total size, once the peer told it.
    pub fn final_size(&self) -> Option<Offset> {
        self.final_size.map(Offset)
    }

    /// True after [`stop`](Self::stop).
    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// True if the peer should be told a new limit.
    pub const fn is_credit_due(&self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
        //# An endpoint SHOULD stop sending MAX_STREAM_DATA frames when the receiving part of the
        //# stream enters a "Size Known" or "Reset Recvd" state.
        self.final_size.is_none() && !self.stopped && self.window.is_due()
    }

    /// The limit last told.
    pub const fn credit_end(&self) -> Offset {
        Offset(self.window.limit())
    }

    /// The limit that [`grant`](Self::grant) would set.
    pub const fn next_credit_end(&self) -> Offset {
        Offset(self.window.next_limit())
    }

    /// Raises the limit to a full window over what was read.
    pub const fn grant(&mut self) {
        self.window.grant();
    }

    /// Memory that buffered bytes take, about.
    pub fn memory(&self) -> usize {
        self.assembler.memory()
    }
}

#[cfg(test)]
mod tests;
