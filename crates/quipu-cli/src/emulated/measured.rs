//! What is measured of loads with other stacks than Quipu's: packets, as the kernel counts them.

use std::collections::BTreeMap;
use std::fs;

use quipu_lab::path_record;
use quipu_record::{End, PathRecord};

/// What had come when a load began.
#[derive(Debug)]
pub(super) struct Counted<'a> {
    /// The client's, by path.
    interfaces: &'a [String],
    before: BTreeMap<String, u64>,
}

impl<'a> Counted<'a> {
    /// Counts in the network of this thread, whose `interfaces` are by path.
    pub(super) fn before(interfaces: &'a [String]) -> Counted<'a> {
        Counted { interfaces, before: received() }
    }

    /// The paths, with the IP packets that came by each since then.
    pub(super) fn after(self) -> Vec<PathRecord> {
        let after = received();
        let of = |counts: &BTreeMap<String, u64>, name| counts.get(name).copied().unwrap_or(0);
        let paths = (0..).zip(self.interfaces).map(|(path, name)| {
            let mut record = path_record(End::Client, 0, path, &Default::default());
            record.datagrams_received = of(&after, name).saturating_sub(of(&self.before, name));
            record
        });
        paths.collect()
    }
}

/// IP packets that the interfaces of this thread's network have received, as the kernel counts them.
fn received() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let interfaces = text.lines().filter_map(|line| {
        let (name, counts) = line.split_once(':')?;
        let packets = counts.split_whitespace().nth(1)?.parse().ok()?;
        Some((name.trim().to_owned(), packets))
    });
    interfaces.collect()
}
