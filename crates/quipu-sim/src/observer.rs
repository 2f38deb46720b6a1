//! Looking at a run from outside.

use quipu_base::Instant;
use quipu_link::Verdict;

use crate::{Envelope, LinkId, NodeId};

/// Sees what happens on the links. `()` sees nothing and costs nothing.
///
/// An observer changes nothing: the same run follows with and without it.
pub trait Observer {
    /// A node has sent a datagram.
    fn on_sent(&mut self, _now: Instant, _sent: &Sent<'_>) {}

    /// A datagram has come through a link of its route and is offered to the next. Never called
    /// for routes of one link.
    fn on_hop(&mut self, _now: Instant, _hop: &Hop<'_>) {}

    /// A datagram has left a managed queue, in which it has waited since it was sent or came to the
    /// link: it goes on, or was dropped.
    fn on_departed(&mut self, _now: Instant, _departed: &Departed<'_>) {}

    /// A datagram has reached a node, which is about to handle it.
    fn on_received(&mut self, _now: Instant, _received: &Received<'_>) {}

    /// A node's deadline has come.
    fn on_timeout(&mut self, _now: Instant, _node: NodeId) {}
}

/// A datagram that a node has sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The sender.
    pub node: NodeId,
    /// As the sender sees it.
    pub envelope: Envelope,
    /// The UDP payload.
    pub payload: &'a [u8],
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No route leads from the local to the remote address; it is dropped.
    NoRoute,
    /// It is offered to the first link of its route.
    Offered {
        /// The link.
        link: LinkId,
        /// The link's answer. At the instant told the datagram comes to the next link, if the
        /// route has one; if not, the node sees it up to the host's jitter later.
        verdict: Verdict,
    },
    /// It waits in the managed queue of the first link of its route.
    Queued {
        /// The link.
        link: LinkId,
    },
}

/// A datagram between two links of its route.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// As the sender would see it, with the ECN bits that it has by now.
    pub envelope: Envelope,
    /// The UDP payload.
    pub payload: &'a [u8],
    /// The link to which it is offered now.
    pub link: LinkId,
    /// The link's answer, as in [`Fate::Offered`]; `None` if it waits in the link's managed queue.
    pub verdict: Option<Verdict>,
}

/// A datagram that has left a managed queue.
#[derive(Clone, Copy, Debug)]
pub struct Departed<'a> {
    /// As the sender would see it, with the ECN bits that it had when it was offered.
    pub envelope: Envelope,
    /// The UDP payload.
    pub payload: &'a [u8],
    /// The link whose queue it was.
    pub link: LinkId,
    /// What becomes of it, as in [`Fate::Offered`].
    pub verdict: Verdict,
}

/// A datagram that has reached a node.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The receiver.
    pub node: NodeId,
    /// As the receiver sees it.
    pub envelope: Envelope,
    /// The UDP payload.
    pub payload: &'a [u8],
    /// The link that brought it, the last of its route.
    pub link: LinkId,
}

impl Observer for () {}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn on_sent(&mut self, now: Instant, sent: &Sent<'_>) {
        (**self).on_sent(now, sent);
    }

    fn on_hop(&mut self, now: Instant, hop: &Hop<'_>) {
        (**self).on_hop(now, hop);
    }

    fn on_departed(&mut self, now: Instant, departed: &Departed<'_>) {
        (**self).on_departed(now, departed);
    }

    fn on_received(&mut self, now: Instant, received: &Received<'_>) {
        (**self).on_received(now, received);
    }

    fn on_timeout(&mut self, now: Instant, node: NodeId) {
        (**self).on_timeout(now, node);
    }
}

/// Two observers that both see all.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_sent(&mut self, now: Instant, sent: &Sent<'_>) {
        self.0.on_sent(now, sent);
        self.1.on_sent(now, sent);
    }

    fn on_hop(&mut self, now: Instant, hop: &Hop<'_>) {
        self.0.on_hop(now, hop);
        self.1.on_hop(now, hop);
    }

    fn on_departed(&mut self, now: Instant, departed: &Departed<'_>) {
        self.0.on_departed(now, departed);
        self.1.on_departed(now, departed);
    }

    fn on_received(&mut self, now: Instant, received: &Received<'_>) {
        self.0.on_received(now, received);
        self.1.on_received(now, received);
    }

    fn on_timeout(&mut self, now: Instant, node: NodeId) {
        self.0.on_timeout(now, node);
        self.1.on_timeout(now, node);
    }
}

/// Condenses a run into one number: two runs with the same number had the same datagrams and
/// timeouts at the same times.
///
/// A non-cryptographic hash of our own choice, the same on every machine.
#[derive(Clone, Debug)]
pub struct EventHash {
    hash: u64,
    with_payload: bool,
}

impl EventHash {
    /// Sees times, nodes, lengths, ECN and fates, but not payloads: for runs with random keys.
    pub const fn without_payload() -> Self {
        EventHash { hash: 0x5175_6970_7521, with_payload: false }
    }

    /// Sees every byte.
    pub const fn with_payload() -> Self {
        EventHash { with_payload: true, ..Self::without_payload() }
    }

    /// The number of all that was seen so far.
    pub const fn value(&self) -> u64 {
        self.hash
    }

    fn word(&mut self, word: u64) {
        let mixed = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = mixed ^ mixed >> 29;
    }

    fn datagram(&mut self, now: Instant, node: u32, envelope: &Envelope, payload: &[u8]) {
        self.word(now.as_nanos());
        self.word(u64::from(node) << 32 | u64::from(envelope.ecn));
        self.word(payload.len() as u64);
        if self.with_payload {
            let (words, rest) = payload.as_chunks::<8>();
            for word in words {
                self.word(u64::from_le_bytes(*word));
            }
            for &byte in rest {
                self.word(u64::from(byte));
            }
        }
    }

    fn offered(&mut self, link: LinkId, verdict: Option<Verdict>) {
        match verdict {
            None => {
                self.word(5);
                self.word(u64::from(link.0));
            }
            Some(Verdict::Dropped(reason)) => {
                self.word(2);
                self.word(u64::from(link.0));
                self.word(reason as u64);
            }
            Some(Verdict::Deliver { at, duplicate_at, marked }) => {
                self.word(if marked { 4 } else { 3 });
                self.word(u64::from(link.0));
                self.word(at.as_nanos());
                self.word(duplicate_at.map_or(0, Instant::as_nanos));
            }
        }
    }
}

impl Observer for EventHash {
    fn on_sent(&mut self, now: Instant, sent: &Sent<'_>) {
        self.word(1);
        self.datagram(now, sent.node.0, &sent.envelope, sent.payload);
        match sent.fate {
            Fate::NoRoute => self.word(1),
            Fate::Offered { link, verdict } => self.offered(link, Some(verdict)),
            Fate::Queued { link } => self.offered(link, None),
        }
    }

    fn on_hop(&mut self, now: Instant, hop: &Hop<'_>) {
        self.word(4);
        // Between two links a datagram is at no node.
        self.datagram(now, u32::MAX, &hop.envelope, hop.payload);
        self.offered(hop.link, hop.verdict);
    }

    fn on_departed(&mut self, now: Instant, departed: &Departed<'_>) {
        self.word(5);
        self.datagram(now, u32::MAX, &departed.envelope, departed.payload);
        self.offered(departed.link, Some(departed.verdict));
    }

    fn on_received(&mut self, now: Instant, received: &Received<'_>) {
        self.word(2);
        self.datagram(now, received.node.0, &received.envelope, received.payload);
        self.word(u64::from(received.link.0));
    }

    fn on_timeout(&mut self, now: Instant, node: NodeId) {
        self.word(3);
        self.word(now.as_nanos());
        self.word(u64::from(node.0));
    }
}
