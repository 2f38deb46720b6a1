//! What the two sides do: each sends a pattern on one bidirectional stream and hashes what comes.

use bytes::Buf;
use quipu_base::{Bytes, Duration, Instant, Role};
use quipu_sim::Node;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that the application offers to the engine at a time.
const CHUNK: usize = 64 * 1024;
/// A chunk of an unchecked plan.
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// How much each side sends on the stream that the client opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// From the client to the server.
    pub upload: Bytes,
    /// From the server to the client.
    pub download: Bytes,
    /// Whether what is sent depends on its position and is hashed where it arrives. If not, zeros are
    /// sent, and only their number is compared: for measurements of the engine alone.
    pub checked: bool,
}

/// A bidirectional stream of any engine.
pub trait ByteStream {
    /// Takes bytes from the front of `data` and returns how many; zero if it can take none now.
    fn write(&mut self, data: &bytes::Bytes) -> usize;

    /// Ends the stream after what was written.
    fn finish(&mut self);

    /// Passes all bytes that have arrived in order to `sink`. Returns true once the stream has
    /// ended and every byte was passed.
    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> bool;
}

/// One side of an exchange over one stream.
pub struct Exchange {
    role: Role,
    checked: bool,
    /// What is left of the next bytes to send.
    chunk: bytes::Bytes,
    sent: u64,
    to_send: u64,
    finished: bool,
    received: u64,
    hash: Xxh3,
    received_all_at: Option<Instant>,
    /// When bytes last came.
    heard_at: Option<Instant>,
    longest_stall: Duration,
}

/// A node that runs an [`Exchange`].
pub trait ExchangeNode: Node {
    /// This side of the exchange; `None` while there is no connection.
    fn exchange(&self) -> Option<&Exchange>;

    /// Why the connection was lost, if it was.
    fn failure(&self) -> Option<&str>;

    /// Paths that are established, that of the handshake included.
    fn established_paths(&self) -> usize {
        1
    }

    /// How often the next key phase began; zero if the engine does not tell.
    fn key_updates(&self) -> u64 {
        0
    }

    /// Whether the server took the early data that this client sent; `None` if it sent none, or the
    /// engine does not tell.
    fn early_data(&self) -> Option<bool> {
        None
    }

    /// Whether the connection resumed a session of an earlier one; `None` before that is known, or if
    /// the engine does not tell.
    fn resumed(&self) -> Option<bool> {
        None
    }

    /// Size of full datagrams on the first path, in bytes of UDP payload; `None` without such a path,
    /// or if the engine does not tell.
    fn datagram_size(&self) -> Option<u16> {
        None
    }
}

impl Plan {
    /// Only the server sends.
    pub const fn download(bytes: u64) -> Self {
        Plan { upload: Bytes::ZERO, download: Bytes(bytes), checked: true }
    }

    /// Only the client sends.
    pub const fn upload(bytes: u64) -> Self {
        Plan { upload: Bytes(bytes), download: Bytes::ZERO, checked: true }
    }

    /// Both sides send the same amount.
    pub const fn both_ways(bytes: u64) -> Self {
        Plan { upload: Bytes(bytes), download: Bytes(bytes), checked: true }
    }

    /// The same amounts, of zeros that nobody hashes.
    #[must_use]
    pub const fn unchecked(self) -> Self {
        Plan { checked: false, ..self }
    }

    /// What `sender` sends.
    pub const fn sent_by(&self, sender: Role) -> Bytes {
        match sender {
            Role::Client => self.upload,
            Role::Server => self.download,
        }
    }

    /// The XXH3 (64 bits) of what `sender` sends; that of nothing if the plan is unchecked.
    pub fn hash_of(&self, sender: Role) -> u64 {
        if !self.checked {
            return Xxh3::new().digest();
        }
        let (mut hash, mut chunk) = (Xxh3::new(), Vec::new());
        let mut offset = 0;
        while fill(sender, offset, self.sent_by(sender).0, &mut chunk) {
            hash.update(&chunk);
            offset += chunk.len() as u64;
        }
        hash.digest()
    }
}

impl Exchange {
    /// The side of `role`.
    pub fn new(plan: Plan, role: Role) -> Self {
        Exchange {
            role,
            checked: plan.checked,
            chunk: bytes::Bytes::new(),
            sent: 0,
            to_send: plan.sent_by(role).0,
            finished: false,
            received: 0,
            hash: Xxh3::new(),
            received_all_at: None,
            heard_at: None,
            longest_stall: Duration::ZERO,
        }
    }

    /// Writes what the stream takes and reads what it has. To be called when the stream is open
    /// and after each input of the engine; calls without effect are harmless.
    pub fn drive(&mut self, now: Instant, stream: &mut impl ByteStream) {
        if self.received_all_at.is_none() {
            let before = self.received;
            let ended = stream.read(&mut |bytes| {
                if self.checked {
                    self.hash.update(bytes);
                }
                self.received += bytes.len() as u64;
            });
            self.received_all_at = ended.then_some(now);
            if self.received > before {
                let stall = now.saturating_since(self.heard_at.unwrap_or(now));
                self.longest_stall = self.longest_stall.max(stall);
                self.heard_at = Some(now);
            }
        }
        while !self.finished {
            if self.chunk.is_empty() {
                self.chunk = self.next_chunk();
                if self.chunk.is_empty() {
                    stream.finish();
                    self.finished = true;
                    return;
                }
            }
            let taken = stream.write(&self.chunk);
            if taken == 0 {
                return;
            }
            self.chunk.advance(taken);
            self.sent += taken as u64;
        }
    }

    /// The next bytes to send; none at the end.
    fn next_chunk(&self) -> bytes::Bytes {
        if !self.checked {
            return bytes::Bytes::from_static(&ZEROS[..length_of_chunk(self.sent, self.to_send)]);
        }
        let mut chunk = Vec::new();
        fill(self.role, self.sent, self.to_send, &mut chunk);
        chunk.into()
    }

    /// When the last byte came, the stream's end included.
    pub fn received_all_at(&self) -> Option<Instant> {
        self.received_all_at
    }

    /// The longest time between two arrivals of bytes.
    pub fn longest_stall(&self) -> Duration {
        self.longest_stall
    }

    /// Bytes received so far.
    pub fn received(&self) -> Bytes {
        Bytes(self.received)
    }

    /// The XXH3 (64 bits) of what was received so far; that of nothing if the plan is unchecked.
    pub fn received_hash(&self) -> u64 {
        self.hash.digest()
    }
}

/// Bytes of the chunk at `offset` of a stream that ends at `end`.
fn length_of_chunk(offset: u64, end: u64) -> usize {
    usize::try_from(end.saturating_sub(offset)).map_or(CHUNK, |left| left.min(CHUNK))
}

/// Puts the next chunk of what `sender` sends into `chunk`, from `offset` on and at most to
/// `end`; false if there is nothing more.
///
/// A byte depends on its position and its sender, so that bytes lost, doubled, moved or of the
/// wrong stream change the hash.
fn fill(sender: Role, offset: u64, end: u64, chunk: &mut Vec<u8>) -> bool {
    chunk.clear();
    let len = length_of_chunk(offset, end);
    let sender_bit = u64::from(sender.is_client()) << 63;
    // Chunks begin at multiples of eight: only the last may end within a word.
    let first = offset / 8;
    for word in first..first + len.div_ceil(8) as u64 {
        chunk.extend_from_slice(&mixed(sender_bit | word).to_le_bytes());
    }
    chunk.truncate(len);
    len > 0
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
fn mixed(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes some bytes at a time and gives back what the other side sent.
    #[derive(Default)]
    struct Loop {
        takes: usize,
        written: Vec<u8>,
        finished: bool,
        given: usize,
    }

    impl ByteStream for Loop {
        fn write(&mut self, data: &bytes::Bytes) -> usize {
            let taken = data.len().min(self.takes);
            self.takes -= taken;
            self.written.extend_from_slice(&data[..taken]);
            taken
        }

        fn finish(&mut self) {
            assert!(!self.finished, "finished once only");
            self.finished = true;
        }

        fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> bool {
            sink(&self.written[self.given..]);
            self.given = self.written.len();
            self.finished
        }
    }

    #[test]
    fn the_hash_of_what_was_sent_is_the_one_announced() {
        let plan = Plan::both_ways(150_001);
        let mut exchange = Exchange::new(plan, Role::Client);
        let mut stream = Loop::default();
        for round in 0..400 {
            stream.takes = 1_003;
            exchange.drive(Instant::from_nanos(round), &mut stream);
        }
        assert_eq!(exchange.received(), Bytes(150_001));
        assert_eq!(exchange.received_hash(), plan.hash_of(Role::Client));
        assert_ne!(exchange.received_hash(), plan.hash_of(Role::Server));
        // 150 writes, and the end is seen at the next read.
        assert_eq!(exchange.received_all_at(), Some(Instant::from_nanos(150)));
    }

    #[test]
    fn an_unchecked_exchange_counts_alone() {
        let plan = Plan::both_ways(150_001).unchecked();
        let mut exchange = Exchange::new(plan, Role::Server);
        let mut stream = Loop { takes: usize::MAX, ..Loop::default() };
        exchange.drive(Instant::ZERO, &mut stream);
        exchange.drive(Instant::ZERO, &mut stream);
        assert_eq!((exchange.received(), stream.finished), (Bytes(150_001), true));
        assert_eq!(exchange.received_hash(), plan.hash_of(Role::Server));
    }

    #[test]
    fn a_side_with_nothing_to_send_ends_the_stream() {
        let mut exchange = Exchange::new(Plan::download(10), Role::Client);
        let mut stream = Loop::default();
        exchange.drive(Instant::ZERO, &mut stream);
        assert!(stream.finished && stream.written.is_empty());
    }
}
