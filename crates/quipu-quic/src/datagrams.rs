//! Datagrams of the application that wait: to be sent, and to be read. Both queues are bounded, and the
//! oldest datagrams make room for new ones.
//! <https://www.rfc-editor.org/rfc/rfc9221>

use std::collections::VecDeque;

use bytes::Bytes;

use crate::config::DatagramConfig;

/// What is kept of a datagram beside its bytes, in bytes, generously.
const OVERHEAD: usize = 64;

/// Which of the datagrams that were given to a connection to send, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramId(pub u64);

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounters {
    /// Left in a packet.
    pub sent: u64,
    /// The packet was acknowledged.
    pub acked: u64,
    /// The packet was declared lost; it may be acknowledged later, and then counts there too.
    pub lost: u64,
    /// Never left: newer ones took their room, or no path carries datagrams of their size any more.
    pub dropped_unsent: u64,
    /// Came.
    pub received: u64,
    /// Came, and were not read before newer ones took their room.
    pub dropped_unread: u64,
}

/// Datagrams that wait, the oldest first.
#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<(T, Bytes)>,
    /// What they count.
    held: usize,
    limit: usize,
}

impl<T> Queue<T> {
    fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Queue { waiting: VecDeque::new(), held: 0, limit }
    }

    /// Adds a datagram, for which the oldest are dropped until there is room. It stays in any case.
    fn push(&mut self, tag: T, data: Bytes, mut dropped: impl FnMut(T)) {
        self.held += data.len() + OVERHEAD;
        self.waiting.push_back((tag, data));
        while self.held > self.limit && self.waiting.len() > 1 {
            if let Some((tag, _)) = self.pop() {
                dropped(tag);
            }
        }
    }

    /// True if that many bytes more displace nothing. What is alone has room, however large.
    fn has_room(&self, length: usize) -> bool {
        self.waiting.is_empty() || self.held + length + OVERHEAD <= self.limit
    }

    fn pop(&mut self) -> Option<(T, Bytes)> {
        let (tag, data) = self.waiting.pop_front()?;
        self.held -= data.len() + OVERHEAD;
        Some((tag, data))
    }
}

/// The datagrams of a connection.
#[derive(Debug)]
pub(crate) struct Datagrams {
    config: DatagramConfig,
    /// Boxed, since most connections never have datagrams.
    queues: Option<Box<Queues>>,
    next: u64,
    /// Packets with datagrams in a row while streams waited.
    in_row: u8,
    /// The application knows that there is something to read.
    told: bool,
    /// It waits for room to send.
    wants_room: bool,
    pub(crate) counters: DatagramCounters,
}

#[derive(Debug)]
struct Queues {
    outgoing: Queue<DatagramId>,
    incoming: Queue<()>,
}

impl Queues {
    fn new(config: &DatagramConfig) -> Box<Self> {
        Box::new(Queues {
            outgoing: Queue::new(config.send_queue.0),
            incoming: Queue::new(config.receive_queue.0),
        })
    }
}

impl Datagrams {
    pub(crate) fn new(config: DatagramConfig) -> Self {
        Datagrams {
            config,
            queues: None,
            next: 0,
            in_row: 0,
            told: false,
            wants_room: false,
            counters: DatagramCounters::default(),
        }
    }

    /// A datagram is to be sent. `dropped` is told those that made room for it.
    pub(crate) fn send(&mut self, data: Bytes, mut dropped: impl FnMut(DatagramId)) -> DatagramId {
        let id = DatagramId(self.next);
        self.next += 1;
        let count = &mut self.counters.dropped_unsent;
        let queues = self.queues.get_or_insert_with(|| Queues::new(&self.config));
        queues.outgoing.push(id, data, |id| {
            *count += 1;
            dropped(id);
        });
        id
    }

    /// True if a datagram of that length displaces none of those that wait. Otherwise the application is
    /// told of [room](Self::room_to_tell).
    pub(crate) fn has_room(&mut self, length: usize) -> bool {
        let outgoing = self.queues.as_ref().map(|queues| &queues.outgoing);
        self.wants_room = outgoing.is_some_and(|outgoing| !outgoing.has_room(length));
        !self.wants_room
    }

    /// True if the application waits for room and half of the queue is free again, so that it is woken
    /// once for many datagrams.
    pub(crate) fn room_to_tell(&mut self) -> bool {
        let outgoing = self.queues.as_ref().map(|queues| &queues.outgoing);
        let half = outgoing.is_none_or(|outgoing| outgoing.held <= outgoing.limit / 2);
        half && std::mem::take(&mut self.wants_room)
    }

    /// The datagram to send next.
    pub(crate) fn next(&self) -> Option<&Bytes> {
        self.queues.as_ref()?.outgoing.waiting.front().map(|(_, data)| data)
    }

    /// True if none waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.outgoing.waiting.is_empty())
    }

    /// The next datagram was written into a packet.
    pub(crate) fn on_written(&mut self) -> Option<DatagramId> {
        let (id, _) = self.queues.as_mut()?.outgoing.pop()?;
        self.counters.sent += 1;
        Some(id)
    }

    /// The next datagram cannot be sent.
    pub(crate) fn drop_next(&mut self) -> Option<DatagramId> {
        let (id, _) = self.queues.as_mut()?.outgoing.pop()?;
        self.counters.dropped_unsent += 1;
        Some(id)
    }

    /// True if the next packet is for streams, should they have something to send.
    pub(crate) fn gives_way(&self) -> bool {
        self.in_row >= self.config.packets_in_row
    }

    /// A packet left while streams had something to send.
    pub(crate) fn on_packet(&mut self, with_datagrams: bool) {
        self.in_row = if with_datagrams { self.in_row.saturating_add(1) } else { 0 };
    }

    /// Size of the frames that are taken, at most.
    pub(crate) fn max_frame(&self) -> usize {
        usize::from(self.config.max_frame)
    }

    /// A datagram came. True if the application is to be told.
    pub(crate) fn receive(&mut self, data: &[u8]) -> bool {
        self.counters.received += 1;
        let count = &mut self.counters.dropped_unread;
        let queues = self.queues.get_or_insert_with(|| Queues::new(&self.config));
        queues.incoming.push((), Bytes::copy_from_slice(data), |()| *count += 1);
        !std::mem::replace(&mut self.told, true)
    }

    /// The oldest datagram that came and was not read. After `None` the application is told of the next.
    pub(crate) fn read(&mut self) -> Option<Bytes> {
        let popped = self.queues.as_mut().and_then(|queues| queues.incoming.pop());
        let data = popped.map(|((), data)| data);
        self.told = data.is_some();
        data
    }
}

#[cfg(test)]
mod tests;
