//! What is measured.

use std::time::Duration;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server.
    Down,
    /// To the server.
    Up,
}

/// How much is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes over all streams.
    Bytes(u64),
    /// As many as go in this time.
    Time(Duration),
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Which way the bytes go.
    pub direction: Direction,
    /// Streams at a time, at least 1.
    pub streams: u32,
    /// How much is moved.
    pub amount: Amount,
}

/// A flow of datagrams that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramLoad {
    /// Who sends them.
    pub direction: Direction,
    /// Bytes of each, at least [`LEAST_DATAGRAM`](super::LEAST_DATAGRAM); `None`: as many as all paths
    /// carry, headers off.
    pub size: Option<u16>,
    /// Bits per second, whether the network carries them or not; `None`: as many as congestion control
    /// allows.
    pub rate: Option<u64>,
    /// How much is sent.
    pub amount: Amount,
}
