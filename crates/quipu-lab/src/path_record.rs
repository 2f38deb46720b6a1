//! What is recorded of a path's counters, in virtual and in real time.

use quipu_base::Bytes;
use quipu_quic::PathCounters;
use quipu_record::{End, PathRecord};

/// The record of the path at position `path` in the network, as `end` of connection `connection`
/// counted it.
pub fn path_record(end: End, connection: u32, path: u32, counters: &PathCounters) -> PathRecord {
    PathRecord {
        connection,
        end,
        path,
        packets_sent: counters.packets_sent,
        datagrams_received: counters.packets_received,
        bytes_sent: Bytes(counters.bytes_sent),
        bytes_resent: Bytes(counters.again_bytes),
        bytes_copies: Bytes(counters.copy_bytes),
        packets_lost: counters.packets_lost,
        bytes_lost: Bytes(counters.bytes_lost),
        loss_detection: counters.loss_detection,
        bytes_spurious: Bytes(counters.bytes_spurious),
    }
}
