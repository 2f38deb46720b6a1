//! What an emulation did, and whether its results count.

use quipu_base::Duration;
use quipu_link::{Count, LinkStats};
use serde::{Deserialize, Serialize};

use crate::carry::{Carried, Counts};
use crate::device::DeviceKind;
use crate::lateness::Lateness;

/// The greatest lateness of 99 % of the packets, in nanoseconds, at which a run counts: 1 ms. Our choice.
pub const MOST_LATE_NS: u64 = 1_000_000;
/// The same as a share of the smallest delay between two hosts, in percent. Our choice.
pub const MOST_LATE_PERCENT: u64 = 5;
/// That share is not less than this, in nanoseconds: 0.1 ms, which a host takes by itself until the program runs that
/// waits for a packet. Our choice.
pub const ALWAYS_ALLOWED_NS: u64 = 100_000;

/// What happened between the beginning of a run and this report, in integers, for result files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What interfaces were made of.
    pub device: DeviceKind,
    /// Nanoseconds since the links began.
    pub elapsed_ns: u64,
    /// How late packets were.
    pub lateness: Lateness,
    /// The shortest delay between two hosts that have any between them, in nanoseconds, without jitter; zero if none
    /// has.
    pub smallest_delay_ns: u64,
    /// Packets that got lost where no link was.
    pub hidden_drops: HiddenDrops,
    /// Packets that led nowhere: to addresses that no host has, or over no path.
    pub unrouted: u64,
    /// What came out of a host and was no IP packet.
    pub unreadable: u64,
    /// Packets for an interface that its host had taken down.
    pub interface_down: u64,
    /// Packets that were still on the links.
    pub under_way: u64,
    /// Nanoseconds of processor time that carrying took, waiting without sleep included.
    pub processor_ns: u64,
    /// How the kernel scheduled the thread that carries: `other`, or a real-time class such as `fifo 10`; empty if
    /// unknown.
    pub scheduling: String,
    /// How often something else took its processor.
    pub involuntary_switches: u64,
    /// Nanoseconds for which it was ready to carry and had no processor, all together; zero if the kernel does not
    /// count them. Packets that came meanwhile were offered to their links that much later.
    pub waited_ns: u64,
    /// By link, in the order in which they were added.
    pub links: Vec<LinkReport>,
    /// Why the run does not count, a sentence each; empty if it does.
    pub void: Vec<String>,
}

/// Packets that got lost outside of the links, in queues of the kernel or of the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenDrops {
    /// By interfaces of hosts, on the way out: the queue in front of the emulator was full.
    pub interface_out: u64,
    /// By interfaces of hosts, on the way in.
    pub interface_in: u64,
    /// By packet sockets, which the emulator did not read in time.
    pub unread: u64,
    /// Packets that hosts did not take, though their interfaces were up.
    pub failed_sends: u64,
    /// Packets that were longer than the interface's MTU: an offload is on.
    pub oversized: u64,
    /// Packets that came while as many as there may be were under way.
    pub no_room: u64,
    /// Interfaces that were gone before the end.
    pub lost_interfaces: u64,
}

/// What a link did: see [`LinkStats`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The name that it was added with.
    pub name: String,
    /// All packets offered.
    pub offered: Packets,
    /// Those that arrive; copies do not count.
    pub delivered: Packets,
    /// Those that found the queue full.
    pub dropped_by_queue: Packets,
    /// Those that the management of the queue dropped.
    pub dropped_by_management: Packets,
    /// Those that chance took.
    pub dropped_by_loss: Packets,
    /// Those that met an outage.
    pub dropped_by_outage: Packets,
    /// Those that were larger than the link's MTU.
    pub dropped_by_size: Packets,
    /// Those that wait in a managed queue.
    pub waiting: Packets,
    /// Copies that arrive beside their original.
    pub duplicated: Packets,
    /// Those among the delivered that were picked to be late.
    pub late: Packets,
    /// Those among the delivered that were marked with Congestion Experienced here.
    pub marked: Packets,
    /// The most bytes that were ever in the queue.
    pub max_queue_bytes: u64,
}

/// A number of packets, and their bytes from the IP header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a report is made of, apart from what the carrier did.
pub(crate) struct Frame<'a> {
    pub(crate) device: DeviceKind,
    pub(crate) smallest_delay: Duration,
    pub(crate) names: &'a [String],
    /// What interfaces of hosts lost, out and in.
    pub(crate) interface_drops: [u64; 2],
}

impl Report {
    pub(crate) fn new(frame: &Frame<'_>, carried: Carried) -> Report {
        let Counts { unrouted, unreadable, oversized, no_room, failed_sends, .. } = carried.counts;
        let Counts { interface_down, unread, lost_devices, .. } = carried.counts;
        let [interface_out, interface_in] = frame.interface_drops;
        let links = frame.names.iter().zip(&carried.links);
        let mut report = Report {
            device: frame.device,
            elapsed_ns: carried.elapsed.as_nanos(),
            lateness: carried.lateness,
            smallest_delay_ns: frame.smallest_delay.as_nanos(),
            hidden_drops: HiddenDrops {
                interface_out,
                interface_in,
                unread,
                failed_sends,
                oversized,
                no_room,
                lost_interfaces: lost_devices,
            },
            unrouted,
            unreadable,
            interface_down,
            under_way: carried.under_way as u64,
            processor_ns: carried.processor.as_nanos(),
            scheduling: carried.scheduling.class,
            involuntary_switches: carried.scheduling.involuntary_switches,
            waited_ns: carried.scheduling.waited.as_nanos(),
            links: links.map(|(name, stats)| LinkReport::new(name, stats)).collect(),
            void: Vec::new(),
        };
        report.void = report.reasons();
        report
    }

    /// Whether the results of this run do not count.
    pub fn is_void(&self) -> bool {
        !self.void.is_empty()
    }

    /// Share of one processor that carrying took, 0 to 1.
    pub fn load(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.processor_ns as f64 / self.elapsed_ns as f64 }
    }

    /// Packets that got lost outside of the links.
    pub fn hidden(&self) -> u64 {
        let HiddenDrops { interface_out, interface_in, unread, failed_sends, .. } =
            self.hidden_drops;
        let HiddenDrops { oversized, no_room, lost_interfaces, .. } = self.hidden_drops;
        interface_out + interface_in + unread + failed_sends + oversized + no_room + lost_interfaces
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let p99 = self.lateness.p99_ns;
        let micros = |nanos: u64| nanos as f64 / 1_000.0;
        let of_delay = self.smallest_delay_ns / 100 * MOST_LATE_PERCENT;
        let allowed = of_delay.max(ALWAYS_ALLOWED_NS);
        if p99 > MOST_LATE_NS {
            reasons.push(format!(
                "1 % of the packets were late by {:.0} us or more, expected at most {:.0} us",
                micros(p99),
                micros(MOST_LATE_NS)
            ));
        } else if self.smallest_delay_ns > 0 && p99 > allowed {
            let share = if allowed == of_delay {
                format!("which is {MOST_LATE_PERCENT} % of the smallest delay")
            } else {
                format!("as the smallest delay is {:.0} us", micros(self.smallest_delay_ns))
            };
            reasons.push(format!(
                "1 % of the packets were late by {:.0} us or more, expected at most {:.0} us, {share}",
                micros(p99),
                micros(allowed),
            ));
        }
        let drops = self.hidden_drops;
        for (count, what) in [
            (
                drops.interface_out,
                "packets were lost between a host and the links: their queue was full",
            ),
            (drops.interface_in, "packets were lost between the links and a host"),
            (drops.unread, "packets were lost because the emulator did not read them in time"),
            (drops.failed_sends, "packets were not taken by the host that they were for"),
            (drops.oversized, "packets were longer than the MTU: an offload of an interface is on"),
            (drops.no_room, "packets came while as many as there may be were under way"),
            (drops.lost_interfaces, "interfaces were gone before the end"),
        ] {
            if count > 0 {
                reasons.push(format!("{count} {what}"));
            }
        }
        reasons
    }
}

impl LinkReport {
    fn new(name: &str, stats: &LinkStats) -> Self {
        LinkReport {
            name: name.to_owned(),
            offered: stats.offered.into(),
            delivered: stats.delivered.into(),
            dropped_by_queue: stats.dropped_by_queue.into(),
            dropped_by_management: stats.dropped_by_management.into(),
            dropped_by_loss: stats.dropped_by_loss.into(),
            dropped_by_outage: stats.dropped_by_outage.into(),
            dropped_by_size: stats.dropped_by_size.into(),
            waiting: stats.waiting.into(),
            duplicated: stats.duplicated.into(),
            late: stats.late.into(),
            marked: stats.marked.into(),
            max_queue_bytes: stats.max_queue.0,
        }
    }
}

impl From<Count> for Packets {
    fn from(count: Count) -> Self {
        Packets { packets: count.datagrams, bytes: count.bytes.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduling::Scheduling;

    use super::*;

    fn report(
        p99_ns: u64,
        smallest: Duration,
        counts: Counts,
        interface_drops: [u64; 2],
    ) -> Report {
        let carried = Carried {
            elapsed: Duration::from_secs(2),
            processor: Duration::from_secs(1),
            scheduling: Scheduling::default(),
            lateness: Lateness { packets: 10, p99_ns, ..Lateness::default() },
            counts,
            links: vec![LinkStats::default()],
            under_way: 0,
        };
        let names = ["up".to_owned()];
        let device = DeviceKind::Tun;
        Report::new(
            &Frame { device, smallest_delay: smallest, names: &names, interface_drops },
            carried,
        )
    }

    #[test]
    fn a_punctual_run_without_hidden_drops_counts() {
        let report = report(400_000, Duration::from_millis(10), Counts::default(), [0, 0]);
        assert_eq!(report.void, Vec::<String>::new());
        assert!((report.load() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_late_run_is_void() {
        let void = |p99_ns, millis| {
            report(p99_ns, Duration::from_millis(millis), Counts::default(), [0, 0]).void
        };
        let late = "1 % of the packets were late by 1100 us or more, expected at most 1000 us";
        assert_eq!(void(1_100_000, 100), [late]);
        let late = "1 % of the packets were late by 600 us or more, expected at most 500 us, which is 5 % of the \
            smallest delay";
        assert_eq!(void(600_000, 10), [late]);
        // With a shorter delay than 2 ms hosts alone take as long.
        assert!(void(100_000, 1).is_empty());
        let late = "1 % of the packets were late by 101 us or more, expected at most 100 us, as the smallest delay is \
            1000 us";
        assert_eq!(void(101_000, 1), [late]);
        // Links without any delay have none that could be spoilt.
        assert!(void(600_000, 0).is_empty());
    }

    #[test]
    fn any_hidden_drop_makes_a_run_void() {
        let with = |counts, drops| report(0, Duration::from_millis(10), counts, drops);
        for counts in [
            Counts { oversized: 1, ..Counts::default() },
            Counts { no_room: 1, ..Counts::default() },
            Counts { failed_sends: 1, ..Counts::default() },
            Counts { unread: 1, ..Counts::default() },
            Counts { lost_devices: 1, ..Counts::default() },
        ] {
            let report = with(counts, [0, 0]);
            assert!(report.void.len() == 1 && report.hidden() == 1, "{counts:?}");
        }
        assert_eq!(with(Counts::default(), [2, 3]).void.len(), 2);
        assert_eq!(with(Counts::default(), [2, 3]).hidden(), 5);
        let harmless =
            Counts { unrouted: 1, unreadable: 1, interface_down: 1, ..Counts::default() };
        assert!(!with(harmless, [0, 0]).is_void());
    }

    #[test]
    fn a_report_survives_its_file() {
        let report = report(5, Duration::from_millis(10), Counts::default(), [1, 0]);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
