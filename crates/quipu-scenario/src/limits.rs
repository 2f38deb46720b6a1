//! How large a scenario may be.

use std::ops::RangeInclusive;

use quipu_base::{Bytes, Duration};

/// Paths that a network may have; QUIC's policies keep them in sets of 32.
pub const MOST_PATHS: usize = 32;
/// Runs that a scenario may ask for.
pub const MOST_RUNS: u32 = 10_000;
/// Pages that a session may have.
pub const MOST_SESSION: u32 = 1_000;
/// Clients that a scenario may have.
pub const MOST_CLIENTS: u32 = 1_000;
/// Origins that a page may have if each is a server of its own: more than the pages that ship have.
pub const MOST_ORIGINS: usize = 512;
/// Connections that the pages of one run may need: clients by origins.
pub const MOST_CONNECTIONS: usize = 10_000;
/// Entries of `servers`.
pub(crate) const MOST_SERVERS: usize = 256;
/// Initial congestion windows in packets.
pub(crate) const INITIAL_WINDOWS: RangeInclusive<u32> = 1..=10_000;
/// The shortest time that a run may be given.
pub(crate) const LEAST_TIME: Duration = Duration::from_millis(1);
/// The longest times that a scenario may have.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(1_000_000);
/// MTUs of links, headers included: from the smallest datagram that every QUIC path has to carry, over
/// IPv4, to the largest of IPv4. <https://www.rfc-editor.org/rfc/rfc9000#section-14>
pub(crate) const MTUS: RangeInclusive<Bytes> = Bytes(1_228)..=Bytes(65_535);
/// The greatest file of a recording, in bytes: 64 MiB. Our choice.
pub const MOST_TRACE_BYTES: u64 = 64 << 20;
