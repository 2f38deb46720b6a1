//! The recorded links that ship inside the library. Sources and licences: `traces/SOURCES.md`.

use crate::{DeliveryTrace, PingSeries, RateSeries, Recording, TraceError};

/// A link as somebody recorded it, in both directions.
///
/// ```
/// use quipu_link::BuiltinTrace;
///
/// let recorded = BuiltinTrace::named("us-drive-01-att").unwrap();
/// assert_eq!(recorded.down()?.mean_rate().to_string(), "100.345 Mbit/s");
/// assert_eq!(recorded.pings()?.median().as_micros(), 31_750);
/// # Ok::<(), quipu_link::TraceError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BuiltinTrace {
    /// Short name, such as `us-drive-08-att`.
    pub name: &'static str,
    /// What was recorded together, at one place and time, has one name: `us-drive-08`.
    pub group: &'static str,
    /// One line: what was recorded, where and when.
    pub about: &'static str,
    rates: Rates,
    pings: Option<&'static str>,
}

/// Texts of the rates.
#[derive(Clone, Copy, Debug)]
enum Rates {
    None,
    /// Mahimahi's form, down and up.
    Deliveries([&'static str; 2]),
    /// CSV, down and up.
    Series([&'static str; 2]),
    /// CSV of the downlink, which the uplink shares its kind with.
    Both(&'static str),
}

macro_rules! file {
    ($($part:expr),+) => { include_str!(concat!("../traces/", $($part),+)) };
}

macro_rules! drive {
    ($number:literal, att, $about:literal) => {
        drive!($number, "att", $about, series)
    };
    ($number:literal, verizon, $about:literal) => {
        drive!($number, "verizon", $about, series)
    };
    ($number:literal, $carrier:literal, $about:literal, series) => {
        drive!(
            $number,
            $carrier,
            $about,
            Rates::Series([
                file!("us-drive-", $number, "/", $carrier, ".down.csv"),
                file!("us-drive-", $number, "/", $carrier, ".up.csv"),
            ])
        )
    };
    ($number:literal, $carrier:literal, $about:literal, $rates:expr) => {
        BuiltinTrace {
            name: concat!("us-drive-", $number, "-", $carrier),
            group: concat!("us-drive-", $number),
            about: $about,
            rates: $rates,
            pings: Some(file!("us-drive-", $number, "/", $carrier, ".rtt.csv")),
        }
    };
    ($number:literal, tmobile) => {
        drive!($number, "tmobile", "T-Mobile at the same place: round trips alone", Rates::None)
    };
}

macro_rules! wifi {
    ($name:literal, $about:literal) => {
        BuiltinTrace {
            name: $name,
            group: $name,
            about: $about,
            rates: Rates::Both(file!("wifi/", $name, ".down.csv")),
            pings: None,
        }
    };
}

/// By name.
static TRACES: [BuiltinTrace; 35] = [
    drive!("01", att, "AT&T on a drive across the USA, 2023: steady 5G"),
    drive!("01", tmobile),
    drive!("01", verizon, "Verizon at the same place and time: LTE"),
    drive!("02", att, "AT&T on a drive across the USA, 2023: 5G with handovers"),
    drive!("02", tmobile),
    drive!("02", verizon, "Verizon at the same place and time: 5G and LTE with handovers"),
    drive!("03", att, "AT&T on a drive across the USA, 2023: LTE with a poor uplink"),
    drive!("03", tmobile),
    drive!("03", verizon, "Verizon at the same place and time: 5G with a poor uplink"),
    drive!("04", att, "AT&T on a drive across the USA, 2023: 5G and LTE"),
    drive!("04", tmobile),
    drive!("04", verizon, "Verizon at the same place and time: LTE"),
    drive!("05", att, "AT&T on a drive across the USA, 2023: 5G and LTE"),
    drive!("05", tmobile),
    drive!("05", verizon, "Verizon at the same place and time: weak downlink"),
    drive!("06", att, "AT&T on a drive across the USA, 2023: 5G and LTE"),
    drive!("06", tmobile),
    drive!("06", verizon, "Verizon at the same place and time: round trips of seconds"),
    drive!("07", att, "AT&T on a drive across the USA, 2023: LTE"),
    drive!("07", tmobile),
    drive!("07", verizon, "Verizon at the same place and time: LTE"),
    drive!(
        "08",
        "att",
        "AT&T on a drive across the USA, 2023: slow LTE",
        Rates::Deliveries([file!("us-drive-08/att.down"), file!("us-drive-08/att.up")])
    ),
    drive!(
        "08",
        "verizon",
        "Verizon at the same place and time: slow LTE",
        Rates::Deliveries([file!("us-drive-08/verizon.down"), file!("us-drive-08/verizon.up")])
    ),
    drive!("09", att, "AT&T on a drive across the USA, 2023: 5G, millimetre waves"),
    drive!("09", tmobile),
    drive!("09", verizon, "Verizon at the same place and time: 5G, millimetre waves"),
    drive!("10", att, "AT&T on a drive across the USA, 2023: fast LTE"),
    drive!("10", tmobile),
    drive!("10", verizon, "Verizon at the same place and time: a nearly dead downlink"),
    drive!("11", att, "AT&T on a drive across the USA, 2023: slow LTE"),
    drive!("11", verizon, "Verizon at the same place and time: 5G and LTE"),
    wifi!("wifi-2.4ghz-weak-1", "weak Wi-Fi at 2.4 GHz, goodput of video chunks"),
    wifi!("wifi-2.4ghz-weak-2", "weak Wi-Fi at 2.4 GHz, down to 0.2 Mbit/s"),
    wifi!("wifi-2.4ghz-weak-3", "weak Wi-Fi at 2.4 GHz, the least weak of the three"),
    wifi!("wifi-5ghz-strong", "strong Wi-Fi at 5 GHz, behind a server with about 50 Mbit/s"),
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
    /// If there are round trips alone. Else none for the recordings that ship; a test reads them
    /// all.
    pub fn down(&self) -> Result<Recording, TraceError> {
        self.rates(0)
    }

    /// From the host to the network, as [`Self::down`]. Of Wi-Fi one direction was recorded alone:
    /// it stands for both.
    ///
    /// # Errors
    /// As [`Self::down`].
    pub fn up(&self) -> Result<Recording, TraceError> {
        self.rates(1)
    }

    /// The round trips. Reads the recording.
    ///
    /// # Errors
    /// If there are none. Else none, as for [`Self::down`].
    pub fn pings(&self) -> Result<PingSeries, TraceError> {
        let text = self.pings.ok_or(TraceError::Absent { what: "round trips" })?;
        Ok(PingSeries::parse(text)?)
    }

    /// True if there are rates.
    pub fn has_rates(&self) -> bool {
        !matches!(self.rates, Rates::None)
    }

    /// True if there are round trips.
    pub fn has_pings(&self) -> bool {
        self.pings.is_some()
    }

    fn rates(&self, direction: usize) -> Result<Recording, TraceError> {
        match self.rates {
            Rates::None => Err(TraceError::Absent { what: "rates" }),
            Rates::Deliveries(texts) => {
                Ok(Recording::Deliveries(DeliveryTrace::parse(texts[direction])?))
            }
            Rates::Series(texts) => {
                Ok(Recording::Rates(RateSeries::parse(texts[direction], "mbps")?))
            }
            Rates::Both(text) => Ok(Recording::Rates(RateSeries::parse(text, "mbps")?)),
        }
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
            assert_eq!(trace.down().is_ok(), trace.has_rates());
            assert_eq!(trace.up().is_ok(), trace.has_rates());
            assert_eq!(trace.pings().is_ok(), trace.has_pings());
            assert!(trace.has_rates() || trace.has_pings());
            assert!(trace.name.starts_with(trace.group));
            assert!(BuiltinTrace::named(trace.name).is_some_and(|found| found.name == trace.name));
        }
        assert!(BuiltinTrace::named("us-drive-00").is_none());
        let lines = deliveries().into_iter().map(|(_, _, trace)| trace.opportunities());
        assert_eq!(lines.collect::<Vec<_>>(), [126_035, 62_862, 61_421, 130_230]);
    }

    /// Name, text and content of the packet-delivery traces.
    fn deliveries() -> Vec<(&'static str, &'static str, DeliveryTrace)> {
        let mut found = Vec::new();
        for recorded in BuiltinTrace::all() {
            if let Rates::Deliveries(texts) = recorded.rates {
                for text in texts {
                    found.push((recorded.name, text, DeliveryTrace::parse(text).unwrap()));
                }
            }
        }
        found
    }

    /// The figures of `traces/SOURCES.md`.
    #[test]
    fn rates_and_round_trips_are_those_of_their_source() {
        let named = |name| BuiltinTrace::named(name).unwrap();
        let mbit = |read: Result<Recording, TraceError>| {
            (read.unwrap().mean_rate().bits_per_sec() as f64 / 1e5).round() / 10.0
        };
        let weak = named("wifi-2.4ghz-weak-2");
        // By time, where the table there counts chunks.
        assert_eq!((mbit(weak.down()), mbit(weak.up())), (3.4, 3.4));
        let bloat = named("us-drive-06-verizon").pings().unwrap();
        assert_eq!((bloat.median().as_millis(), bloat.pings()), (2_347, (119, 2)));
        let none = named("us-drive-01-tmobile").down().unwrap_err().to_string();
        assert_eq!(none, "there are no rates in it");
        let none = named("wifi-5ghz-strong").pings().unwrap_err().to_string();
        assert_eq!(none, "there are no round trips in it");
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
        for (name, text, trace) in deliveries() {
            let carried = carried_by_each_second(text, seconds);
            let arrived = arrived_by_each_second(trace.clone(), 1_500, seconds);
            assert_eq!(arrived, carried, "{name}");
            // A datagram under way at the end of a second counts when it is there.
            let arrived = arrived_by_each_second(trace, 1_378, seconds);
            let whole: Vec<u64> = carried.iter().map(|bytes| bytes / 1_378 * 1_378).collect();
            assert_eq!(arrived, whole, "{name}");
        }
    }
}
