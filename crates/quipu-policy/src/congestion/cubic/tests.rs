use proptest::prelude::*;
use quipu_base::PathId;

use super::*;
use crate::congestion::AckedPacket;
use crate::key::PathKey;

const SIZE: Bytes = Bytes(1_000);
const EXITS: [SlowStartExit; 3] =
    [SlowStartExit::Loss, SlowStartExit::HyStart, SlowStartExit::Hybrid];

/// A path on which `rtt_ms` pass between sending a window and its acknowledgement.
struct Flow {
    cubic: Cubic,
    now: Instant,
    /// When the packets were sent that are acknowledged next.
    sent_at: Instant,
    rtt: Duration,
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn peers() -> Peers<'static> {
    Peers { own: PathKey { slot: 0, id: PathId(0) }, all: &[] }
}

impl Flow {
    fn new(packets: u32, rtt_ms: u64, exit: SlowStartExit) -> Self {
        let cubic = Cubic::new(packets, SIZE, exit);
        Flow { cubic, now: Instant::ZERO, sent_at: Instant::ZERO, rtt: ms(rtt_ms) }
    }

    /// A flow that just lost a packet of a window of so many, and has left recovery.
    fn reduced(packets: u32, rtt_ms: u64) -> Self {
        let mut flow = Flow::new(packets, rtt_ms, SlowStartExit::Loss);
        flow.now += ms(1_000);
        flow.lose(false);
        flow
    }

    fn cwnd(&self) -> u64 {
        self.cubic.published().cwnd.0
    }

    fn state(&self) -> &'static str {
        self.cubic.published().state
    }

    fn ack(&mut self, packets: usize, limited: bool) {
        let packets = vec![AckedPacket { sent_at: self.sent_at, bytes: SIZE }; packets];
        let acked = AckedInfo {
            rate: None,
            delivered: Bytes(0),
            lost: Bytes(0),
            now: self.now,
            packets: &packets,
            prior_in_flight: self.cubic.published().cwnd,
            in_flight: Bytes(0),
            limited,
            srtt: Some(self.rtt),
            min_rtt: Some(self.rtt),
            latest_rtt: Some(self.rtt),
        };
        self.cubic.on_acked(&acked, &peers());
    }

    fn send(&mut self, in_flight: Bytes) {
        self.sent_at = self.now;
        let sent = SentInfo { limited: false, now: self.now, bytes: SIZE, in_flight };
        self.cubic.on_sent(&sent, &peers());
    }

    /// A window of packets leaves and is acknowledged in `acks` frames, spread over a round trip.
    fn round(&mut self, acks: u64) {
        self.send(self.cubic.published().cwnd);
        let packets = self.cwnd() / SIZE.0;
        for ack in 0..acks {
            self.now += Duration::from_nanos(self.rtt.as_nanos() / acks);
            let share = packets * (ack + 1) / acks - packets * ack / acks;
            self.ack(share as usize, false);
        }
    }

    /// A packet is lost that was sent a moment ago; recovery is over after.
    fn lose(&mut self, persistent: bool) {
        let lost = LostInfo {
            packets: &[],
            lost: Bytes(0),
            now: self.now,
            bytes: SIZE,
            newest_sent_at: self.now,
            in_flight: Bytes(0),
            persistent,
        };
        self.cubic.on_lost(&lost, &peers());
        self.now += self.rtt;
    }
}

#[test]
fn a_loss_leaves_seven_tenths_once_per_round_trip() {
    let mut flow = Flow::reduced(100, 100);
    assert_eq!(flow.cwnd(), 70_000);
    let late = LostInfo {
        packets: &[],
        lost: Bytes(0),
        now: flow.now,
        bytes: SIZE,
        newest_sent_at: flow.now - flow.rtt,
        in_flight: Bytes(0),
        persistent: false,
    };
    flow.cubic.on_lost(&late, &peers());
    assert_eq!(flow.cwnd(), 70_000);
}

/// The window before the loss, 100 packets, is back after K = cbrt(30 / 0.4) = 4.217 s; the
/// function is flat there, and at 2 K it has risen by as much again.
#[test]
fn the_window_follows_the_cubic_function() {
    let mut flow = Flow::reduced(100, 200);
    let k = 4.217_163;
    let stage = Stage::new(Instant::ZERO, Some(100_000.0), 70_000.0, 1_000.0);
    assert!((stage.k - k).abs() < 1e-6, "{}", stage.k);
    for (time, window) in [(0.0, 70_000.0), (k, 100_000.0), (2.0 * k, 130_000.0)] {
        assert!((stage.at(time, 1_000.0) - window).abs() < 0.1);
    }
    for round in 1..=42 {
        flow.round(10);
        // The first acknowledgement, a tenth of a round trip in, begins the stage.
        let time = 0.2 * f64::from(round) - 0.02;
        // The function a round trip ahead is the target, reached a round trip later.
        let expected = stage.at(time, 1_000.0);
        let off = flow.cwnd() as f64 / expected - 1.0;
        assert!(off.abs() < 0.01, "round {round}: {} for {expected}", flow.cwnd());
    }
}

/// Where round trips are short the cubic function is slower than Reno: 9 packets / 17 per round
/// trip up to the window before the loss, then one.
#[test]
fn with_short_round_trips_it_grows_as_reno_does() {
    let mut flow = Flow::reduced(40, 5);
    assert_eq!(flow.cwnd(), 28_000);
    let mut growth = Vec::new();
    for _ in 0..40 {
        let before = flow.cwnd();
        flow.round(4);
        growth.push((before, flow.cwnd() - before));
    }
    for (before, by) in growth {
        match before {
            ..39_000 => assert!((490..=530).contains(&by), "{before}: {by}"),
            40_000.. => assert!((900..=1_000).contains(&by), "{before}: {by}"),
            _ => {}
        }
    }
    assert!(flow.cwnd() > 50_000, "{}", flow.cwnd());
}

/// The model of section 5.1: with one loss in 1/p packets the mean window is
/// (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4), 1.054 times the last two. The model
/// has no fast convergence. The flow starts at the model's plateau, 1 / 0.925 of the mean, as losses
/// near it move it by little.
#[test]
fn the_mean_window_is_what_the_models_table_says() {
    // Round trips of 0.1 s; table 3 of section 5.1.
    for (loss, expected, plateau) in [(1e-4, 187.0, 202), (1e-5, 1_054.0, 1_139)] {
        let mut flow = Flow::reduced(plateau, 100);
        let (mut owed, mut losses) = (0.0, 0);
        let (mut windows, mut rounds) = (0.0, 0.0);
        while losses < 50 {
            flow.round(4);
            let packets = flow.cwnd() as f64 / 1_000.0;
            windows += packets;
            rounds += 1.0;
            owed += packets * loss;
            if owed >= 1.0 {
                owed -= 1.0;
                losses += 1;
                flow.cubic.curve.w_max = None;
                flow.lose(false);
            }
        }
        let off = windows / rounds / expected - 1.0;
        assert!(off.abs() < 0.05, "{loss}: {} packets for {expected}", windows / rounds);
    }
}

#[test]
fn a_flow_that_lost_below_its_last_plateau_gives_way() {
    let mut flow = Flow::reduced(100, 100);
    flow.lose(false);
    assert_eq!(flow.cwnd(), 49_000);
    // 0.85 of 70,000.
    assert!((flow.cubic.curve.w_max.unwrap() - 59_500.0).abs() < 1e-6);
}

#[test]
fn idle_time_does_not_count() {
    let (mut idle, mut busy) = (Flow::reduced(100, 100), Flow::reduced(100, 100));
    for _ in 0..5 {
        idle.round(10);
        busy.round(10);
    }
    idle.now += Duration::from_secs(3_600);
    idle.send(SIZE);
    for _ in 0..10 {
        idle.round(10);
        busy.round(10);
    }
    assert_eq!(idle.cwnd(), busy.cwnd());
}

#[test]
fn limited_time_neither_counts_nor_grows() {
    let (mut held, mut busy) = (Flow::reduced(100, 100), Flow::reduced(100, 100));
    held.round(10);
    busy.round(10);
    let before = held.cwnd();
    for _ in 0..1_000 {
        held.now += held.rtt;
        held.ack(3, true);
    }
    assert_eq!(held.cwnd(), before);
    for _ in 0..10 {
        held.round(10);
        busy.round(10);
    }
    assert_eq!(held.cwnd(), busy.cwnd());
}

#[test]
fn after_a_timeout_the_function_rises_from_where_avoidance_begins() {
    let mut flow = Flow::new(100, 100, SlowStartExit::Loss);
    flow.now += ms(1_000);
    flow.lose(true);
    assert_eq!((flow.cwnd(), flow.state()), (2_000, "slow start"));
    while flow.state() == "slow start" {
        flow.round(1);
    }
    flow.round(1);
    let stage = flow.cubic.curve.stage.unwrap();
    assert_eq!(stage.k, 0.0);
    assert!((70_000.0..141_000.0).contains(&stage.w_max), "{}", stage.w_max);
}

#[test]
fn hystart_ends_slow_start_before_a_loss() {
    let mut flow = Flow::new(32, 50, SlowStartExit::HyStart);
    flow.round(16);
    assert_eq!(flow.cwnd(), 64_000);
    flow.rtt = ms(80);
    flow.round(16);
    // Eight samples show the rise: the rest of the round grows the window by a quarter.
    assert_eq!(flow.state(), "conservative slow start");
    assert_eq!(flow.cwnd(), 64_000 + 32_000 + 8_000);
    for _ in 0..4 {
        assert_eq!(flow.state(), "conservative slow start");
        let before = flow.cwnd();
        flow.round(16);
        assert!((flow.cwnd() - before).abs_diff(before / 4) <= 1_000);
    }
    flow.round(16);
    assert_eq!(flow.state(), "congestion avoidance");
    assert_eq!(flow.cubic.curve.stage.unwrap().k, 0.0);

    let mut without = Flow::new(32, 50, SlowStartExit::Loss);
    without.round(16);
    without.rtt = ms(80);
    without.round(16);
    assert_eq!((without.cwnd(), without.state()), (128_000, "slow start"));
}

#[test]
fn another_datagram_size_begins_the_function_anew() {
    let mut flow = Flow::reduced(100, 100);
    flow.round(10);
    let before = flow.cwnd();
    flow.cubic.on_change(PathChange::DatagramSize(Bytes(1_400)), &peers());
    assert_eq!(flow.cwnd(), before);
    flow.round(1);
    let stage = flow.cubic.curve.stage.unwrap();
    let k = libm::cbrt((100_000.0 - before as f64) / (0.4 * 1_400.0));
    assert!((stage.k - k).abs() < 1e-9);
}

/// What may come, in any order and size.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Sent { bytes: u64, in_flight: u64 },
    Acked { ago: u64, bytes: Vec<u64>, limited: bool, rtt: Option<u64> },
    Lost { ago: u64, persistent: bool },
    Ecn { ago: u64 },
    Size(u64),
    Route,
}

/// Small ones and any.
fn amount(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..usual, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    let second = 1_000_000_000;
    prop_oneof![
        2 => amount(second).prop_map(Step::Wait),
        1 => (amount(2_000), amount(100_000))
            .prop_map(|(bytes, in_flight)| Step::Sent { bytes, in_flight }),
        6 => (
            amount(second),
            proptest::collection::vec(amount(2_000), 0..12),
            any::<bool>(),
            proptest::option::of(amount(second)),
        )
            .prop_map(|(ago, bytes, limited, rtt)| Step::Acked { ago, bytes, limited, rtt }),
        1 => (amount(second), any::<bool>())
            .prop_map(|(ago, persistent)| Step::Lost { ago, persistent }),
        1 => amount(second).prop_map(|ago| Step::Ecn { ago }),
        1 => amount(2_000).prop_map(Step::Size),
        1 => Just(Step::Route),
    ]
}

proptest! {
    /// The window stays at or above its minimum, grows by acknowledgements alone, by no more than a
    /// half (or, in slow start, what was acknowledged; or Reno's packet), and not while limited.
    #[test]
    fn absurd_input_breaks_no_bound(
        steps in proptest::collection::vec(step(), 1..80),
        exit in proptest::sample::select(EXITS.to_vec()),
        packets in 0u32..100,
    ) {
        let mut cubic = Cubic::new(packets, SIZE, exit);
        let (mut now, mut size) = (Instant::from_nanos(1_000_000_000_000), SIZE);
        for step in steps {
            let before = cubic.published();
            let ago = |nanos| now - Duration::from_nanos(nanos);
            let mut most = Some(before.cwnd);
            match step {
                Step::Wait(nanos) => now += Duration::from_nanos(nanos),
                Step::Sent { bytes, in_flight } => {
                    let sent = SentInfo { limited: false, now, bytes: Bytes(bytes), in_flight: Bytes(in_flight) };
                    cubic.on_sent(&sent, &peers());
                }
                Step::Acked { ago: nanos, bytes, limited, rtt } => {
                    let sent_at = ago(nanos);
                    let packets: Vec<AckedPacket> = bytes
                        .into_iter()
                        .map(|bytes| AckedPacket { sent_at, bytes: Bytes(bytes) })
                        .collect();
                    let rtt = rtt.map(Duration::from_nanos);
                    let acked = AckedInfo {
 rate: None, delivered: Bytes(0), lost: Bytes(0),
                        now,
                        packets: &packets,
                        prior_in_flight: Bytes(0),
                        in_flight: Bytes(0),
                        limited,
                        srtt: rtt,
                        min_rtt: rtt,
                        latest_rtt: rtt,
                    };
                    cubic.on_acked(&acked, &peers());
                    if !limited {
                        most = packets.iter().try_fold(before.cwnd, |most, packet| {
                            let half = Bytes(most.0 / 2).max(size).max(packet.bytes);
                            most.0.checked_add(half.0)?.checked_add(1).map(Bytes)
                        });
                    }
                }
                Step::Lost { ago: nanos, persistent } => {
                    let lost = LostInfo {
 packets: &[], lost: Bytes(0),
                        now,
                        bytes: SIZE,
                        newest_sent_at: ago(nanos),
                        in_flight: Bytes(0),
                        persistent,
                    };
                    cubic.on_lost(&lost, &peers());
                }
                Step::Ecn { ago: nanos } => {
                    let change = PathChange::EcnCongestion { marks: 1, sent_at: ago(nanos), now };
                    cubic.on_change(change, &peers());
                }
                Step::Size(bytes) => {
                    size = Bytes(bytes);
                    let found = bytes.is_multiple_of(2);
                    let change = if found { PathChange::PathMtu } else { PathChange::DatagramSize };
                    cubic.on_change(change(size), &peers());
                    most = None;
                }
                Step::Route => cubic.on_change(PathChange::ReturnRoute, &peers()),
            }
            let after = cubic.published();
            prop_assert!(after.cwnd >= size.saturating_mul(2), "{after:?}");
            if let Some(most) = most {
                prop_assert!(after.cwnd <= most, "{before:?} {after:?} {most:?}");
            }
            if let Some(stage) = cubic.curve.stage {
                for value in [stage.k, stage.w_max, stage.w_est, stage.at(1e10, 1e19)] {
                    prop_assert!(value.is_finite(), "{stage:?}");
                }
            }
        }
    }
}

#[test]
fn a_reduction_for_nothing_leaves_no_trace_in_window_and_function() {
    let mut flow = Flow::reduced(100, 50);
    for _ in 0..40 {
        flow.round(10);
    }
    let (cwnd, w_max, stage) = (flow.cwnd(), flow.cubic.curve.w_max, flow.cubic.curve.stage);
    let k = stage.unwrap().k;
    let since = flow.now;
    flow.lose(false);
    assert!(flow.cwnd() < cwnd);
    let change = PathChange::SpuriousLoss { since, now: flow.now };
    flow.cubic.on_change(change, &peers());
    assert_eq!((flow.cwnd(), flow.cubic.curve.w_max), (cwnd, w_max));
    let after = flow.cubic.curve.stage.unwrap();
    assert_eq!((after.k, after.elapsed), (k, stage.unwrap().elapsed));
    assert_eq!(after.counted_until, flow.now, "the time between does not count");
}
