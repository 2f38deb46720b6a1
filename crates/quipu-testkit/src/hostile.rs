//! A network that lies: forged, damaged and repeated datagrams around those that arrive.

use std::collections::VecDeque;

use quipu_base::{Instant, Random, Seed};
use quipu_sim::{Envelope, Node, Outgoing};
use rand_core::Rng;

use crate::{Exchange, ExchangeNode};

/// Datagrams kept to be repeated later.
const KEPT: usize = 64;

/// What is done to a datagram that arrives, each with this chance in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mischief {
    /// A copy with one to four bytes changed comes before it.
    pub change: u32,
    /// A copy without its end comes before it.
    pub truncate: u32,
    /// A copy with more bytes behind comes before it.
    pub extend: u32,
    /// A datagram of random bytes comes before it: none of its bytes, or all after the first,
    /// which may be that of any packet.
    pub junk: u32,
    /// A datagram that came before comes once more after it.
    pub repeat: u32,
    /// The datagram itself is damaged, instead of a copy.
    pub damage: u32,
}

impl Mischief {
    /// All of it at `percent`, but what arrives intact stays intact.
    pub const fn around(percent: u32) -> Self {
        Mischief {
            change: percent,
            truncate: percent,
            extend: percent,
            junk: percent,
            repeat: percent,
            damage: 0,
        }
    }

    /// Nothing but damage.
    pub const fn damage(percent: u32) -> Self {
        Mischief { damage: percent, ..Mischief::around(0) }
    }
}

/// A node to which some things arrive that nobody sent.
pub struct Hostile<N> {
    node: N,
    mischief: Mischief,
    random: Random,
    kept: VecDeque<(Envelope, Vec<u8>)>,
}

impl<N: ExchangeNode> Hostile<N> {
    /// `node` in such a network; the same seed does the same things.
    pub fn new(node: N, mischief: Mischief, seed: Seed) -> Self {
        let random = seed.stream("hostile", 0);
        Hostile { node, mischief, random, kept: VecDeque::new() }
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }

    fn happens(&mut self, percent: u32) -> bool {
        percent > 0 && self.below(100) < percent as usize
    }

    fn below(&mut self, end: usize) -> usize {
        // Ends here are lengths of datagrams.
        self.random.next_u32() as usize % end.max(1)
    }

    fn change(&mut self, bytes: &mut [u8]) {
        for _ in 0..1 + self.below(4) {
            // Headers and first frames are where lies matter most.
            let within = if self.happens(50) { bytes.len().min(64) } else { bytes.len() };
            let at = self.below(within);
            let mask = self.random.next_u32() as u8 | 1;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= mask;
            }
        }
    }

    fn junk(&mut self, model: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; self.below(1500)];
        self.random.fill_bytes(&mut bytes);
        if self.happens(50) {
            let header = self.below(model.len().min(40));
            let header = header.min(bytes.len());
            bytes[..header].copy_from_slice(&model[..header]);
        }
        bytes
    }
}

impl<N: ExchangeNode> Node for Hostile<N> {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        // Nothing protects Version Negotiation, and a client has to believe it.
        // https://www.rfc-editor.org/rfc/rfc9000#section-6.2
        if payload.first().is_some_and(|first| first & 0x80 != 0)
            && payload.get(1..5) == Some(&[0; 4])
        {
            return self.node.handle_datagram(now, envelope, payload);
        }
        let mischief = self.mischief;
        let mut forged = Vec::new();
        if self.happens(mischief.change) {
            let mut copy = payload.to_vec();
            self.change(&mut copy);
            forged.push(copy);
        }
        if self.happens(mischief.truncate) {
            forged.push(payload[..self.below(payload.len())].to_vec());
        }
        if self.happens(mischief.extend) {
            let mut copy = payload.to_vec();
            let more = self.junk(payload);
            copy.extend(more);
            forged.push(copy);
        }
        if self.happens(mischief.junk) {
            forged.push(self.junk(payload));
        }
        for mut datagram in forged {
            self.node.handle_datagram(now, envelope, &mut datagram);
        }
        if mischief.repeat > 0 {
            if self.kept.len() >= KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back((*envelope, payload.to_vec()));
        }
        if self.happens(mischief.damage) {
            self.change(payload);
        }
        self.node.handle_datagram(now, envelope, payload);
        if self.happens(mischief.repeat) {
            let at = self.below(self.kept.len());
            if let Some((envelope, datagram)) = self.kept.get(at) {
                self.node.handle_datagram(now, envelope, &mut datagram.clone());
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.node.poll_transmit(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node.poll_timeout()
    }
}

impl<N: ExchangeNode> ExchangeNode for Hostile<N> {
    fn exchange(&self) -> Option<&Exchange> {
        self.node.exchange()
    }

    fn failure(&self) -> Option<&str> {
        self.node.failure()
    }

    fn established_paths(&self) -> usize {
        self.node.established_paths()
    }

    fn key_updates(&self) -> u64 {
        self.node.key_updates()
    }

    fn early_data(&self) -> Option<bool> {
        self.node.early_data()
    }

    fn resumed(&self) -> Option<bool> {
        self.node.resumed()
    }

    fn datagram_size(&self) -> Option<u16> {
        self.node.datagram_size()
    }
}
