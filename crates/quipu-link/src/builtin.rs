//! The recorded links that ship inside the library. Sources and licences: `traces/SOURCES.md`.

use crate::{DeliveryTrace, DeliveryTraceError};

/// A link as somebody recorded it, in both directions.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinTrace {
    /// Short name, such as `us-drive-08-att`.
    pub name: &'static str,
    /// One line: what was recorded, where and when.
    pub about: &'static str,
    down: &'static str,
    up: &'static str,
}

macro_rules! recorded {
    ($name:literal, $file:literal, $about:literal) => {
        BuiltinTrace {
            name: $name,
            about: $about,
            down: include_str!(concat!("../traces/", $file, ".down")),
            up: include_str!(concat!("../traces/", $file, ".up")),
        }
    };
}

/// By name.
static TRACES: [BuiltinTrace; 2] = [
    recorded!(
        "us-drive-08-att",
        "us-drive-08/att",
        "AT&T from a moving car, USA, 2023: 12.9 Mbit/s down, 6.4 up; 117 s"
    ),
    recorded!(
        "us-drive-08-verizon",
        "us-drive-08/verizon",
        "Verizon at the same place and time: 6.3 Mbit/s down, 13.2 up; 117 s"
    ),
];

impl BuiltinTrace {
    /// All of them, by name.
    pub fn all() -> &'static [BuiltinTrace] {
        &TRACES
    }

    /// The one of that name, if there is one.
    pub fn named(name: &str) -> Option<&'static BuiltinTrace> {
        TRACES.iter().find(|trace| trace.name == name)
    }

    /// From the network to the host. Reads the recording: keep what it returns, and clone it.
    ///
    /// # Errors
    /// None for the recordings that ship; a test reads them all.
    pub fn down(&self) -> Result<DeliveryTrace, DeliveryTraceError> {
        DeliveryTrace::parse(self.down)
    }

    /// From the host to the network, as [`Self::down`].
    ///
    /// # Errors
    /// None for the recordings that ship; a test reads them all.
    pub fn up(&self) -> Result<DeliveryTrace, DeliveryTraceError> {
        DeliveryTrace::parse(self.up)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use quipu_base::{Bytes, Duration, Instant, Seed};

    use super::*;
    use crate::{Link, LinkConfig, QueueLimit, Verdict, ecn};

    #[test]
    fn all_are_read_and_found_by_name() {
        assert!(BuiltinTrace::all().is_sorted_by_key(|trace| trace.name));
        for trace in BuiltinTrace::all() {
            assert!(trace.down().is_ok() && trace.up().is_ok());
            assert!(BuiltinTrace::named(trace.name).is_some_and(|found| found.name == trace.name));
        }
        assert!(BuiltinTrace::named("us-drive-00").is_none());
        let lines = BuiltinTrace::all()
            .iter()
            .flat_map(|trace| [trace.down(), trace.up()])
            .map(|read| read.map_or(0, |read| read.opportunities()));
        assert_eq!(lines.collect::<Vec<_>>(), [126_035, 62_862, 61_421, 130_230]);
    }

    /// Bytes that arrive by the end of each of the first `seconds` seconds over a link that
    /// follows `trace` and has 50 datagrams of `size` bytes in its queue at all times.
    fn arrived_by_each_second(trace: DeliveryTrace, size: u64, seconds: usize) -> Vec<u64> {
        let config = LinkConfig::recorded(trace, Duration::ZERO).with_queue(QueueLimit::Unlimited);
        let mut link = Link::new(&config, Seed::new(1).child("link", 0)).unwrap();
        let payload = Bytes(size).saturating_sub(config.overhead);
        let mut arrivals = VecDeque::from([Instant::ZERO; 50]);
        let mut arrived = vec![0; seconds];
        while let Some(now) = arrivals.pop_front() {
            let Verdict::Deliver { at, .. } = link.offer(now, payload, ecn::NOT_ECT) else {
                panic!("nothing is lost");
            };
            let second = at.as_nanos().div_ceil(1_000_000_000) as usize;
            if second > seconds {
                break;
            }
            arrived[second - 1] += size;
            arrivals.push_back(at);
        }
        arrived
            .iter()
            .scan(0, |sum, bytes| {
                *sum += bytes;
                Some(*sum)
            })
            .collect()
    }

    /// What the opportunities carry by the end of each second, counted from the file's lines.
    fn carried_by_each_second(text: &str, seconds: usize) -> Vec<u64> {
        let times: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
        let length = times[times.len() - 1];
        let rounds = (0..).map(|round| round * length).take_while(|start| *start < seconds * 1_000);
        let mut carried = vec![0; seconds + 1];
        for time in rounds.flat_map(|start| times.iter().map(move |time| start + time)) {
            if let Some(bytes) = carried.get_mut(time.div_ceil(1_000)) {
                *bytes += 1_500;
            }
        }
        for second in 1..=seconds {
            carried[second] += carried[second - 1];
        }
        carried.split_off(1)
    }

    #[test]
    fn a_busy_link_delivers_in_each_second_what_was_recorded() {
        // Two rounds and a part of the third.
        let seconds = 300;
        for recorded in BuiltinTrace::all() {
            for (text, trace) in [(recorded.down, recorded.down()), (recorded.up, recorded.up())] {
                let trace = trace.unwrap();
                let carried = carried_by_each_second(text, seconds);
                let arrived = arrived_by_each_second(trace.clone(), 1_500, seconds);
                assert_eq!(arrived, carried, "{}", recorded.name);
                // A datagram under way at the end of a second counts when it is there.
                let arrived = arrived_by_each_second(trace, 1_378, seconds);
                let whole: Vec<u64> = carried.iter().map(|bytes| bytes / 1_378 * 1_378).collect();
                assert_eq!(arrived, whole, "{}", recorded.name);
            }
        }
    }
}
