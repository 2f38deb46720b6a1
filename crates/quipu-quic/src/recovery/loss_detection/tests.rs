use super::super::rtt::tests::view;
use super::*;
use crate::TransportConfig;
use crate::wire::frame::{AckRange, EcnCounts, write_ack};
use crate::wire::{Frame, Frames, Writer};
use quipu_base::{PacketNumber, PathId};
use quipu_policy::congestion::NewReno;

const SIZE: u16 = 1_200;
const KEY: PathKey = PathKey { slot: 0, id: PathId(0) };

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A path with one space, as a connection keeps them.
struct Path {
    sent: SentPackets,
    path: PathRecovery,
    counters: PathCounters,
    view: PathView,
    published: Vec<(PathKey, Published)>,
    settled: Settled,
    abandoned: bool,
    /// What the peer reports of marks.
    counts: Option<EcnCounts>,
}

impl Path {
    fn new() -> Path {
        Path::of(&TransportConfig::default())
    }

    fn of(config: &TransportConfig) -> Path {
        let size = Bytes(u64::from(SIZE));
        let controller = Box::new(NewReno::new(10, size));
        let path = PathRecovery::new(Instant::ZERO, KEY, controller, size, config);
        Path {
            sent: SentPackets::default(),
            published: vec![(KEY, path.published())],
            path,
            counters: PathCounters::default(),
            view: view(),
            settled: Settled::default(),
            abandoned: false,
            counts: None,
        }
    }

    fn recovery(&mut self) -> (SpaceRecovery<'_>, &mut Settled) {
        let view = (!self.abandoned).then_some(&mut self.view);
        let recovery = SpaceRecovery {
            sent: &mut self.sent,
            path: &mut self.path,
            is_one_rtt: true,
            counters: &mut self.counters,
            view,
            published: &mut self.published,
            datagram: Bytes(u64::from(SIZE)),
        };
        (recovery, &mut self.settled)
    }

    /// Ack-eliciting packets leave, so many.
    fn send(&mut self, at: u64, count: u64) {
        for _ in 0..count {
            let mut record = SentRecord::new(self.sent.take_pn(|| 0), ms(at));
            record.bytes = SIZE;
            record.ack_eliciting = true;
            record.ect = self.path.marks_next(ms(at));
            let (view, published) = (&mut self.view, &mut self.published[..]);
            self.path.on_sent(&mut record, Bytes(u64::from(SIZE)), view, published);
            self.sent.on_sent(&mut record);
        }
    }

    /// A packet with nothing but an acknowledgement leaves: it is not in flight, and not kept.
    fn send_acknowledgement(&mut self, at: u64) {
        let pn = self.sent.take_pn(|| 0);
        self.sent.on_plain_sent(pn, ms(at));
        self.path.marks_next(ms(at));
    }

    /// The peer acknowledges packets `first` to `last`.
    fn acknowledge(&mut self, at: u64, first: u64, last: u64) -> Result<(), NeverSent> {
        self.acknowledge_by(at, first, last, true)
    }

    /// The same, of a packet that came before and waited for its keys.
    fn acknowledge_late(&mut self, came: u64, at: u64, pn: u64) -> Result<(), NeverSent> {
        self.acknowledge_of((came, at), pn, pn, true)
    }

    /// The same, by a way of which the policy takes samples or refuses them.
    fn acknowledge_by(
        &mut self,
        at: u64,
        first: u64,
        last: u64,
        accepts: bool,
    ) -> Result<(), NeverSent> {
        self.acknowledge_of((at, at), first, last, accepts)
    }

    fn acknowledge_of(
        &mut self,
        (came, at): (u64, u64),
        first: u64,
        last: u64,
        accepts: bool,
    ) -> Result<(), NeverSent> {
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        let range = AckRange::new(PacketNumber(first), PacketNumber(last));
        write_ack(&mut writer, None, 0, [range], self.counts).unwrap();
        let length = writer.position();
        let Some(Ok(Frame::Ack(ack))) = Frames::new(&buffer[..length]).next() else { panic!() };
        let event = Acknowledgement {
            now: ms(at),
            ack: &ack,
            arrived_on: KEY,
            came_at: ms(came),
            delay: Duration::ZERO,
            validated: true,
            max_ack_delay: Duration::ZERO,
        };
        let (mut recovery, settled) = self.recovery();
        recovery.on_ack(&event, |_| accepts, settled)
    }

    fn numbers(records: &[SentRecord]) -> Vec<u64> {
        records.iter().map(|record| record.pn.0).collect()
    }
}

#[test]
fn an_acknowledgement_settles_what_it_names_and_what_it_overtakes() {
    let mut path = Path::new();
    path.send(0, 5);
    path.acknowledge(100, 3, 4).unwrap();
    assert_eq!(Path::numbers(path.settled.acked()), [3, 4]);
    assert_eq!(Path::numbers(path.settled.lost()), [0, 1]);
    assert_eq!(path.settled.released(), Bytes(4 * u64::from(SIZE)));
    assert_eq!(path.settled.sampled_sent_at(), Some(ms(0)));
    assert_eq!(path.view.in_flight, Bytes(u64::from(SIZE)));
    assert_eq!(path.view.srtt, Some(Duration::from_millis(100)));
    assert_eq!((path.counters.packets_acked, path.counters.packets_lost), (2, 2));
    assert_eq!(path.counters.loss_detection, Duration::from_millis(200), "100 ms each");
    assert!(path.view.ssthresh.is_some(), "the controller heard of the loss");
}

#[test]
fn a_round_trip_is_measured_by_the_largest_packet_also_if_it_asked_for_nothing() {
    let mut path = Path::new();
    path.send(0, 1);
    path.send_acknowledgement(30);
    path.acknowledge(100, 0, 1).unwrap();
    assert_eq!(path.settled.sampled_sent_at(), Some(ms(30)));
    assert_eq!(path.view.latest_rtt, Some(Duration::from_millis(70)));
    // Once only, and never by an acknowledgement of nothing else.
    path.send(100, 1);
    path.send_acknowledgement(110);
    path.settled.recycle(None);
    path.acknowledge(150, 3, 3).unwrap();
    assert_eq!(path.view.latest_rtt, Some(Duration::from_millis(70)));
    path.acknowledge(200, 2, 3).unwrap();
    assert_eq!(path.view.latest_rtt, Some(Duration::from_millis(70)));
}

#[test]
fn what_an_acknowledgement_waits_for_its_keys_is_no_part_of_the_round_trip() {
    let mut path = Path::new();
    path.send(10, 1);
    path.acknowledge_late(60, 100, 0).unwrap();
    assert_eq!(path.view.srtt, Some(Duration::from_millis(50)));
    // An optimistic one came before the packet left.
    path.send(200, 1);
    path.acknowledge_late(150, 210, 1).unwrap();
    assert_eq!(path.view.latest_rtt, Some(Duration::ZERO));
}

#[test]
fn a_lost_packet_that_is_acknowledged_was_lost_in_error() {
    let mut path = Path::new();
    path.send(0, 4);
    path.acknowledge(100, 3, 3).unwrap();
    assert_eq!(Path::numbers(path.settled.lost()), [0]);
    path.settled.recycle(Some(&mut path.sent));
    path.acknowledge(101, 0, 0).unwrap();
    assert_eq!(Path::numbers(path.settled.late()), [0]);
    assert_eq!(path.settled.released(), Bytes::ZERO);
    assert_eq!(path.counters.packets_spurious, 1);
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut path = Path::new();
    path.send(0, 2);
    assert_eq!(path.acknowledge(50, 1, 2), Err(NeverSent));
    assert!(path.settled.is_nothing_acked());
    assert_eq!(path.view.in_flight, Bytes(2 * u64::from(SIZE)));
}

#[test]
fn the_loss_timer_settles_what_is_overdue() {
    let mut path = Path::new();
    path.send(0, 2);
    path.acknowledge(100, 1, 1).unwrap();
    assert!(path.settled.lost().is_empty());
    let due = path.sent.loss_time.unwrap();
    path.settled.recycle(Some(&mut path.sent));
    let (mut recovery, settled) = path.recovery();
    recovery.on_loss_timer(due, Duration::ZERO, settled);
    assert_eq!(Path::numbers(path.settled.lost()), [0]);
    assert_eq!(path.view.in_flight, Bytes::ZERO);
}

#[test]
fn an_abandoned_path_settles_packets_but_no_window() {
    let mut path = Path::new();
    path.send(0, 2);
    path.abandoned = true;
    path.acknowledge(100, 0, 1).unwrap();
    assert_eq!(Path::numbers(path.settled.acked()), [0, 1]);
    assert_eq!(path.settled.released(), Bytes::ZERO);
    assert_eq!(path.view.in_flight, Bytes(2 * u64::from(SIZE)));
    assert_eq!(path.view.srtt, None);
}

impl Path {
    /// The same path, whose packet numbers have gaps; the first is 65.
    fn with_skips() -> Path {
        Path { sent: SentPackets::with_skips(), ..Path::new() }
    }

    fn with_rules(rules: crate::config::RecoveryRules) -> Path {
        let mut path = Path::new();
        path.path.rules = rules;
        path
    }

    /// Hands on what was settled, as a connection does.
    fn recycle(&mut self) {
        self.settled.recycle(Some(&mut self.sent));
    }
}

#[test]
fn a_skipped_number_cannot_be_acknowledged() {
    let mut path = Path::with_skips();
    path.send(0, 70);
    path.acknowledge(50, 0, 64).unwrap();
    path.recycle();
    assert_eq!(path.acknowledge(60, 63, 68), Err(NeverSent));
    assert!(path.settled.is_nothing_acked());
    assert_eq!(path.view.in_flight, Bytes(5 * u64::from(SIZE)));
    path.acknowledge(60, 66, 68).unwrap();
}

#[test]
fn persistent_congestion_is_found_across_acknowledgements() {
    let mut path = Path::new();
    path.send(0, 1);
    path.acknowledge(100, 0, 0).unwrap();
    path.recycle();
    // A probe timeout is 300 ms after this sample: congestion that lasts 900 ms is persistent.
    for at in [200, 500, 800, 1_101] {
        path.send(at, 1);
    }
    let window = |path: &Path| path.view.cwnd.0 / u64::from(SIZE);
    for (at, lost) in [(1_150, 1), (1_160, 2), (1_170, 3)] {
        path.send(at, 3);
        path.acknowledge(at + 100, path.sent.next_pn().0 - 1, path.sent.next_pn().0 - 1).unwrap();
        path.recycle();
        assert!(path.counters.packets_lost >= lost);
    }
    assert_eq!(window(&path), 2);
}

/// The losses of packets 0 and 1 turn out to be none.
fn lose_in_vain(path: &mut Path) {
    path.send(0, 5);
    path.acknowledge(100, 4, 4).unwrap();
    assert_eq!(Path::numbers(path.settled.lost()), [0, 1]);
    path.recycle();
    path.acknowledge(101, 0, 0).unwrap();
    path.recycle();
    assert!(path.view.ssthresh.is_some(), "one is missing yet");
    path.acknowledge(102, 1, 3).unwrap();
    path.recycle();
}

#[test]
fn a_window_reduced_for_packets_that_were_only_late_is_restored() {
    let mut path = Path::new();
    let before = path.view.cwnd;
    lose_in_vain(&mut path);
    assert!(path.view.cwnd >= before);
    assert_eq!(path.view.ssthresh, None);
    let rules = crate::config::RecoveryRules {
        undoes_spurious_reductions: false,
        ..crate::config::RecoveryRules::default()
    };
    let mut path = Path::with_rules(rules);
    lose_in_vain(&mut path);
    assert!(path.view.ssthresh.is_some());
}

#[test]
fn packets_that_overtake_each_other_as_before_are_not_lost_again() {
    let mut path = Path::new();
    lose_in_vain(&mut path);
    // Packet 0 was overtaken by four.
    let first = path.sent.next_pn().0;
    path.send(200, 10);
    path.acknowledge(300, first + 4, first + 4).unwrap();
    assert!(path.settled.lost().is_empty());
    path.recycle();
    path.acknowledge(300, first + 5, first + 5).unwrap();
    assert_eq!(Path::numbers(path.settled.lost()), [first]);
    let rules = crate::config::RecoveryRules {
        adapts_to_reordering: false,
        ..crate::config::RecoveryRules::default()
    };
    let mut path = Path::with_rules(rules);
    lose_in_vain(&mut path);
    path.send(200, 10);
    path.acknowledge(300, first + 3, first + 3).unwrap();
    assert_eq!(Path::numbers(path.settled.lost()), [first]);
}

/// A path was measured while a clock stood still, and then all acknowledgements came by ways of which the
/// policy takes no sample: each ended the backoff of a probe timeout that was far too short.
#[test]
fn a_refused_sample_counts_that_came_later_than_the_probe_timeout() {
    let mut path = Path::new();
    path.send(0, 1);
    path.acknowledge(0, 0, 0).unwrap();
    assert_eq!(path.view.srtt, Some(Duration::ZERO));
    let timeout =
        |path: &Path| path.path.rules().probe_timeout(&path.view, Duration::ZERO).as_micros();
    assert_eq!(timeout(&path), 1_000);
    path.settled.recycle(Some(&mut path.sent));
    path.send(100, 1);
    path.acknowledge_by(180, 1, 1, false).unwrap();
    assert!(timeout(&path) > 80_000, "{} µs", timeout(&path));
    // Otherwise it is refused.
    path.settled.recycle(Some(&mut path.sent));
    let (srtt, latest) = (path.view.srtt, path.view.latest_rtt);
    path.send(200, 1);
    path.acknowledge_by(270, 2, 2, false).unwrap();
    assert_eq!((path.view.srtt, path.view.latest_rtt), (srtt, latest));
}

/// As where the processor is slower than the path: the pacer holds back for an instant, and the host for
/// long.
#[test]
fn a_window_that_the_host_leaves_unused_does_not_grow() {
    let windows = |held_by_host: bool| {
        let mut path = Path::new();
        let mut windows = Vec::new();
        for round in 0..30 {
            path.send(round * 100, 20);
            path.path.app_limited = false;
            if held_by_host {
                path.path.on_host_full(ms(round * 100), &path.view);
            }
            path.acknowledge(round * 100 + 50, 20 * round, 20 * round + 19).unwrap();
            windows.push(path.view.cwnd.0 / u64::from(SIZE));
            path.recycle();
        }
        (windows[0], windows[9], windows[29], u64::from(path.path.burst_packets))
    };
    let (first, later, last, burst) = windows(true);
    assert!(first >= 20 && last <= 20 + burst + 20, "{first}, {later}, {last}, {burst}");
    assert_eq!(later, last);
    assert_eq!(windows(false).2, 10 + 30 * 20, "slow start");
}

#[test]
fn a_host_that_takes_more_at_once_or_until_the_window_is_full_holds_nothing_back() {
    let mut path = Path::new();
    path.path.app_limited = false;
    path.path.on_host_full(ms(0), &path.view);
    assert!(!path.path.is_held_back(ms(0)));
    assert!(path.path.is_held_back(ms(1)), "it has not taken more");
    path.send(0, 1);
    assert!(!path.path.is_held_back(ms(1)), "it has at once");
    path.path.on_host_full(ms(0), &path.view);
    path.send(1, 1);
    assert!(path.path.is_held_back(ms(1)), "it has later");
    path.send(1, 8);
    assert!(!path.path.is_held_back(ms(1)), "the window is full");
    path.path.on_host_full(ms(1), &path.view);
    assert!(!path.path.is_held_back(ms(2)), "there is no window");
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1>
#[test]
fn marks_are_confirmed_by_an_acknowledgement_whose_largest_packet_was_not_in_flight() {
    let mut path = Path::of(&TransportConfig { ecn: true, ..TransportConfig::default() });
    path.send(0, 9);
    path.send_acknowledgement(0);
    path.counts = Some(EcnCounts { ect0: 8, ect1: 0, ce: 2 });
    path.acknowledge(50, 0, 9).unwrap();
    assert_eq!(path.counters.packets_marked, 2);
    assert!(path.path.marks_next(ms(50)), "marks arrive");
}
