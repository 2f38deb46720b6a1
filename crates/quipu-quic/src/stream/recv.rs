//! The receiving half of a stream: reassembly, final size, credit.

use std::collections::VecDeque;

use quipu_base::Offset;

use crate::stream::block::{BLOCK, Block, BlockPool};
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
}

/// The receiving half of a stream.
///
/// Memory is bounded by stream credit, whatever the peer does: bytes lie in blocks at their place,
/// and a bit tells of each byte whether it is there.
#[derive(Debug)]
pub struct RecvHalf {
    /// From the block that holds `read` on; `None` where nothing arrived.
    blocks: VecDeque<Option<Box<Block>>>,
    first_block: u64,
    /// All below was read.
    read: u64,
    /// All below arrived.
    contiguous: u64,
    /// End of the highest byte that arrived.
    data_end: u64,
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
            blocks: VecDeque::new(),
            first_block: 0,
            read: 0,
            contiguous: 0,
            data_end: 0,
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
        pool: &mut BlockPool,
    ) -> Result<Received, StreamFault> {
        let growth = self.growth(offset, data.len() as u64, fin)?;
        let end = offset.0 + data.len() as u64;
        self.highest += growth;
        let news_of_end = fin && self.final_size.is_none();
        if fin {
            self.final_size = Some(end);
        }
        if self.stopped {
            return Ok(Received { growth, discarded: growth, readable: false });
        }
        let before = self.contiguous;
        self.insert(offset.0, data, pool);
        let readable =
            self.contiguous > before || (news_of_end && self.final_size == Some(self.contiguous));
        Ok(Received { growth, discarded: 0, readable })
    }

    fn insert(&mut self, offset: u64, data: &[u8], pool: &mut BlockPool) {
        let end = offset + data.len() as u64;
        let mut at = offset.max(self.contiguous);
        if at >= end {
            return;
        }
        if self.blocks.is_empty() {
            self.first_block = self.read / BLOCK;
        }
        let in_order = at == self.contiguous;
        while at < end {
            // Credit bounds how far a block lies ahead; a block's length fits any `usize`.
            let index = (at / BLOCK - self.first_block) as usize;
            if index >= self.blocks.len() {
                self.blocks.resize_with(index + 1, || None);
            }
            let stop = end.min((at / BLOCK + 1) * BLOCK);
            let block = self.blocks[index].get_or_insert_with(|| pool.take());
            let from = (at % BLOCK) as usize;
            let part = &data[(at - offset) as usize..(stop - offset) as usize];
            block.put(from, part);
            if !in_order {
                block.mark(from, from + part.len());
            }
            at = stop;
        }
        self.data_end = self.data_end.max(end);
        if in_order {
            self.contiguous = end;
            self.join();
        }
    }

    /// Moves `contiguous` over bytes that came before their turn.
    fn join(&mut self) {
        while self.contiguous < self.data_end {
            let index = (self.contiguous / BLOCK - self.first_block) as usize;
            let Some(Some(block)) = self.blocks.get(index) else { break };
            let from = (self.contiguous % BLOCK) as usize;
            let reached = block.marked_end(from);
            self.contiguous += (reached - from) as u64;
            if (reached as u64) < BLOCK {
                break;
            }
        }
    }

    /// Takes a RESET_STREAM frame: what was buffered is dropped, unless all of it is there
    /// already. The half is over then.
    ///
    /// # Errors
    /// As [`growth`](Self::growth); nothing is changed then.
    pub fn on_reset(
        &mut self,
        final_size: Offset,
        pool: &mut BlockPool,
    ) -> Result<Received, StreamFault> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.5
        //# The receiver MUST use the final size of the stream to account for all bytes sent on
        //# the stream in its connection-level flow controller.
        let growth = self.growth(final_size, 0, true)?;
        self.highest += growth;
        self.final_size = Some(final_size.0);
        let discarded = if self.stopped { growth } else { self.discard(pool) };
        Ok(Received { growth, discarded, readable: false })
    }

    /// Wants no more bytes: what is buffered and what comes is dropped. Returns how many bytes
    /// count as consumed by that.
    pub fn stop(&mut self, pool: &mut BlockPool) -> u64 {
        if std::mem::replace(&mut self.stopped, true) {
            return 0;
        }
        self.discard(pool)
    }

    fn discard(&mut self, pool: &mut BlockPool) -> u64 {
        let unread = self.highest - self.read;
        self.release(self.blocks.len(), pool);
        self.read = self.highest;
        self.contiguous = self.highest;
        self.data_end = self.highest;
        unread
    }

    /// Gives up to `max` bytes that are in order to `sink`, in a few pieces. Returns how many.
    pub fn read(&mut self, max: u64, pool: &mut BlockPool, sink: &mut dyn FnMut(&[u8])) -> u64 {
        let start = self.read;
        // https://www.rfc-editor.org/rfc/rfc9000#section-2.2
        //# Endpoints MUST be able to deliver stream data to an application as an ordered byte
        //# stream.
        let end = self.contiguous.min(start.saturating_add(max));
        let mut passed = 0;
        while self.read < end {
            let index = (self.read / BLOCK - self.first_block) as usize;
            let stop = end.min((self.read / BLOCK + 1) * BLOCK);
            let Some(Some(block)) = self.blocks.get(index) else { break };
            let from = (self.read % BLOCK) as usize;
            sink(block.bytes(from, from + (stop - self.read) as usize));
            self.read = stop;
            passed = if stop.is_multiple_of(BLOCK) { index + 1 } else { index };
        }
        if self.read == self.data_end {
            passed = self.blocks.len();
        }
        self.release(passed, pool);
        self.window.consume(self.read - start);
        self.read - start
    }

    /// Gives the first `count` blocks back.
    fn release(&mut self, count: usize, pool: &mut BlockPool) {
        for block in self.blocks.drain(..count).flatten() {
            pool.give(block);
        }
        self.first_block += count as u64;
    }

    /// Bytes in order that were not read yet.
    pub const fn readable(&self) -> u64 {
        self.contiguous - self.read
    }

    /// True if the end was read.
    pub fn is_all_read(&self) -> bool {
        self.final_size == Some(self.read)
    }

    /// True if every byte and the end arrived.
    pub fn is_all_received(&self) -> bool {
        self.final_size == Some(self.contiguous)
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
}

#[cfg(test)]
mod tests;
