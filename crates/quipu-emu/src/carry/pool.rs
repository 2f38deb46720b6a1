//! Packets that are under way, in buffers that are used again.

use quipu_link::FlowKey;

/// A packet of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PacketId(u32);

/// A packet, and where it is on its way.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    /// As long as the longest packet.
    pub(crate) buffer: Box<[u8]>,
    pub(crate) length: usize,
    pub(crate) route: u32,
    /// Links of the route that are behind it.
    pub(crate) hop: u32,
    pub(crate) ecn: u8,
    pub(crate) flow: FlowKey,
}

/// A bounded number of packets. Memory grows with the most that were ever under way, and no further.
#[derive(Debug)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
    /// Bytes of each buffer.
    longest: usize,
    most: usize,
}

impl Packet {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.length).unwrap_or_default()
    }
}

impl Pool {
    /// Room for `most` packets of at most `longest` bytes.
    pub(crate) fn new(longest: usize, most: usize) -> Self {
        Pool { packets: Vec::new(), free: Vec::new(), longest, most }
    }

    /// A packet to be filled; `None` if as many as there may be are under way.
    pub(crate) fn take(&mut self) -> Option<PacketId> {
        if let Some(id) = self.free.pop() {
            return Some(id);
        }
        if self.packets.len() == self.most {
            return None;
        }
        let id = PacketId(u32::try_from(self.packets.len()).ok()?);
        let buffer = vec![0; self.longest].into_boxed_slice();
        self.packets.push(Packet { buffer, ..Packet::default() });
        Some(id)
    }

    /// A packet, which must have been taken here.
    pub(crate) fn get(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.0 as usize]
    }

    /// A second one with the same content, if there is room.
    pub(crate) fn copy(&mut self, of: PacketId) -> Option<PacketId> {
        let id = self.take()?;
        // The copy's buffer is kept while the original is read.
        let mut buffer = std::mem::take(&mut self.get(id).buffer);
        let Packet { length, route, hop, ecn, flow, .. } = *self.get(of);
        buffer[..length].copy_from_slice(self.get(of).bytes());
        *self.get(id) = Packet { buffer, length, route, hop, ecn, flow };
        Some(id)
    }

    /// Gives back a packet, which nobody uses any more.
    pub(crate) fn give_back(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Gives back all packets.
    pub(crate) fn give_back_all(&mut self) {
        self.free.clear();
        self.free.extend((0..self.packets.len() as u32).rev().map(PacketId));
    }

    /// Packets under way.
    pub(crate) fn used(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_bounded() {
        let mut pool = Pool::new(10, 2);
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((pool.take(), pool.used()), (None, 2));
        pool.give_back(first);
        assert_eq!(pool.take(), Some(first));
        assert_ne!(first, second);
        pool.give_back_all();
        assert_eq!(pool.used(), 0);
        assert!(pool.take().is_some() && pool.take().is_some() && pool.take().is_none());
    }

    #[test]
    fn a_copy_has_the_content_of_the_original() {
        let mut pool = Pool::new(10, 2);
        let id = pool.take().unwrap();
        let packet = pool.get(id);
        packet.buffer[..3].copy_from_slice(b"abc");
        (packet.length, packet.route, packet.ecn) = (3, 7, 2);
        let copy = pool.copy(id).unwrap();
        let copy = pool.get(copy);
        assert_eq!(
            (copy.bytes(), copy.route, copy.ecn, copy.buffer.len()),
            (&b"abc"[..], 7, 2, 10)
        );
        assert_eq!(pool.copy(id), None);
    }
}
