//! What the paths of a connection carried.

use quipu_base::Bytes;
use quipu_record::{End, PathRecord};
use quipu_tokio::PathInfo;

/// The client's end of each path, by position.
pub(crate) fn records(paths: &[PathInfo]) -> Vec<PathRecord> {
    let record = |(path, info): (u32, &PathInfo)| {
        let counters = info.sample.counters;
        PathRecord {
            connection: 0,
            end: End::Client,
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
    };
    (0..).zip(paths).map(record).collect()
}
