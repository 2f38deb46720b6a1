//! Datagrams of one poll, in the batches in which a host sends them.

use crate::Envelope;
use crate::pool::SlotId;

/// Bytes of a batch, at most: what fits a UDP datagram, which the kernel makes of it first. That of the
/// driver over sockets.
const MAX_BYTES: usize = 65_000;

/// Datagrams that leave together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) envelope: Envelope,
    pub(crate) slots: Vec<SlotId>,
    /// Size of each datagram but the last.
    segment: usize,
    bytes: usize,
}

/// Sorts datagrams into batches, as the driver over sockets does: those of a route that follow each
/// other, whatever is sent over other routes in between, as long as they have one size. A shorter one may
/// be the last.
#[derive(Debug)]
pub(crate) struct Batcher {
    most: usize,
    /// At most one for each route, in order of age.
    open: Vec<Batch>,
    /// Those that take no more, in the order in which they leave.
    ready: Vec<Batch>,
}

impl Batcher {
    /// Batches of at most `most` datagrams.
    pub(crate) fn new(most: u32) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        Batcher { most, open: Vec::new(), ready: Vec::new() }
    }

    /// Adds the next datagram, of `len` bytes.
    pub(crate) fn add(&mut self, slot: SlotId, envelope: Envelope, len: usize) {
        let of_route = |batch: &Batch| {
            (batch.envelope.local, batch.envelope.remote) == (envelope.local, envelope.remote)
        };
        if let Some(at) = self.open.iter().position(of_route) {
            let batch = &mut self.open[at];
            if !batch.takes(&envelope, len) {
                let batch = self.open.remove(at);
                self.ready.push(batch);
            } else {
                batch.slots.push(slot);
                batch.bytes += len;
                if len < batch.segment || batch.slots.len() >= self.most {
                    let batch = self.open.remove(at);
                    self.ready.push(batch);
                }
                return;
            }
        }
        let batch = Batch { envelope, slots: vec![slot], segment: len, bytes: len };
        let list = if self.most == 1 { &mut self.ready } else { &mut self.open };
        list.push(batch);
    }

    /// All batches, in the order in which they leave; those of a route as their datagrams came.
    pub(crate) fn finish(mut self) -> Vec<Batch> {
        self.ready.append(&mut self.open);
        self.ready
    }
}

impl Batch {
    fn takes(&self, envelope: &Envelope, len: usize) -> bool {
        // A lone datagram may be a probe that is larger than what the interface carries.
        let fits = len == self.segment || len < self.segment && self.slots.len() > 1;
        fits && self.envelope.ecn == envelope.ecn && self.bytes + len <= MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address;
    use crate::pool::DatagramPool;

    /// Batches of datagrams, each told by interface, ECN and length, as positions of those.
    fn batches(most: u32, datagrams: &[(u8, u8, usize)]) -> Vec<Vec<usize>> {
        let mut pool = DatagramPool::new(1_500);
        let mut batcher = Batcher::new(most);
        let slots: Vec<SlotId> = datagrams.iter().map(|_| pool.take()).collect();
        for (slot, &(interface, ecn, len)) in slots.iter().zip(datagrams) {
            let local = address(1, interface, 1);
            let envelope = Envelope { local, remote: address(2, 0, 2), ecn };
            batcher.add(*slot, envelope, len);
        }
        let position = |slot: &SlotId| slots.iter().position(|it| it == slot).unwrap();
        let batches = batcher.finish();
        batches.iter().map(|batch| batch.slots.iter().map(position).collect()).collect()
    }

    #[test]
    fn batches_are_those_of_the_driver_over_sockets() {
        // As its own test has them: four, then each alone, since none is followed by one of its size.
        let sizes = [1_200, 1_200, 1_200, 300, 1_200, 1_400, 1_200].map(|size| (0, 0, size));
        assert_eq!(batches(64, &sizes), [vec![0, 1, 2, 3], vec![4], vec![5], vec![6]]);
    }

    #[test]
    fn routes_in_turn_fill_a_batch_each() {
        let turns: Vec<_> = (0..6).map(|turn| (turn % 2, 0, 1_000)).collect();
        assert_eq!(batches(64, &turns), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(batches(2, &turns), [vec![0, 2], vec![1, 3], vec![4], vec![5]]);
        assert_eq!(batches(1, &turns).len(), 6);
    }

    #[test]
    fn marks_and_bytes_end_a_batch() {
        assert_eq!(batches(64, &[(0, 0, 9), (0, 1, 9), (0, 1, 9)]), [vec![0], vec![1, 2]]);
        // 43 × 1,500 B are 64,500 B.
        let large = [(0, 0, 1_500); 50];
        assert_eq!(batches(64, &large).iter().map(Vec::len).collect::<Vec<_>>(), [43, 7]);
    }
}
