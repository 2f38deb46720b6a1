//! What interfaces have counted, as the kernel lists it.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// Counts of one interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Packets that came out of the network, as the host sees it.
    pub(crate) received: u64,
    /// Packets that were lost on the way in, errors included.
    pub(crate) receive_drops: u64,
    /// Packets that were lost on the way out, errors included.
    pub(crate) send_drops: u64,
}

impl Statistics {
    /// Those of all interfaces in the namespace of the calling thread, by name.
    ///
    /// # Errors
    /// If the kernel's list cannot be read.
    pub(crate) fn read() -> io::Result<BTreeMap<String, Statistics>> {
        fs::read_to_string("/proc/thread-self/net/dev").map(|text| parse(&text))
    }
}

/// Two lines of headings, then a line for each interface: its name, eight counts of what was received (bytes, packets,
/// errors, drops, …), and eight of what was sent.
fn parse(text: &str) -> BTreeMap<String, Statistics> {
    let line = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts: Vec<u64> = counts.split_whitespace().map_while(|it| it.parse().ok()).collect();
        let &[_, received, errors, drops, ..] = counts.as_slice() else { return None };
        let &[_, _, sent_errors, sent_drops, ..] = counts.get(8..)? else { return None };
        let statistics = Statistics {
            received,
            receive_drops: errors + drops,
            send_drops: sent_errors + sent_drops,
        };
        Some((name.trim().to_owned(), statistics))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs \
            drop fifo colls carrier compressed\n    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n \
            path0:999 7 1 2 0 0 0 0 55 6 3 40 0 0 0 0\n";
        let found = parse(text);
        let path = Statistics { received: 7, receive_drops: 3, send_drops: 43 };
        assert_eq!(found["path0"], path);
        assert_eq!(found["lo"].received, 1);
        assert_eq!(found.len(), 2);
        assert_eq!(parse("path0: 1 2"), BTreeMap::new());
    }

    #[test]
    fn this_namespace_has_interfaces() {
        assert!(Statistics::read().unwrap().contains_key("lo"));
    }
}
