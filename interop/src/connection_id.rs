//! Connection IDs that are the same in every run of a seed.

use std::time::Duration;

use quipu_base::Seed;

/// Bytes of each connection ID.
const LENGTH: usize = 8;

/// Draws connection IDs from a seed: the engines' own generators use the system's randomness.
#[derive(Clone, Debug)]
pub struct SeededConnectionIds {
    seed: Seed,
    drawn: u64,
}

impl SeededConnectionIds {
    /// A generator for one endpoint.
    pub fn new(seed: Seed) -> Self {
        SeededConnectionIds { seed, drawn: 0 }
    }

    /// The next connection ID.
    pub fn draw(&mut self) -> [u8; LENGTH] {
        self.drawn += 1;
        self.seed.number("connection-id", self.drawn).to_le_bytes()
    }
}

impl quinn_proto::ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> quinn_proto::ConnectionId {
        quinn_proto::ConnectionId::new(&self.draw())
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl noq_proto::ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> noq_proto::ConnectionId {
        noq_proto::ConnectionId::new(&self.draw())
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
