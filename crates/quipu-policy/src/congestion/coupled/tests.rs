use proptest::collection::vec;
use proptest::prelude::*;
use quipu_base::{Instant, PathId};

use super::*;
use crate::congestion::balia::Balia;
use crate::congestion::lia::Lia;
use crate::congestion::newreno::BETA;
use crate::congestion::olia::Olia;
use crate::congestion::wvegas::Wvegas;
use crate::congestion::{AckedPacket, NewReno};
use crate::key::PathKey;

const SIZE: Bytes = Bytes(1200);

fn key(slot: u8) -> PathKey {
    PathKey { slot, id: PathId(u32::from(slot)) }
}

/// Windows in packets, round-trip times in milliseconds, thousands of bytes between losses.
type Paths<'a> = &'a [(u64, u64, u64)];

fn published(paths: Paths<'_>) -> Vec<(PathKey, Published)> {
    let entry = |(slot, &(packets, ms, thousands)): (usize, &(u64, u64, u64))| {
        let cwnd = SIZE.saturating_mul(packets);
        let srtt = Some(Duration::from_millis(ms));
        let between_losses = Some(Bytes(thousands * 1000));
        (key(slot as u8), Published { cwnd, srtt, between_losses, ..Published::default() })
    };
    paths.iter().enumerate().map(entry).collect()
}

fn with_flows<T>(paths: Paths<'_>, own: usize, ask: impl FnOnce(&Flows<'_>) -> T) -> T {
    let all = published(paths);
    let mine = &all[own].1;
    let own_flow = Flow::new(mine.cwnd, mine.srtt.unwrap(), mine.between_losses);
    ask(&Flows { own: own_flow, peers: Peers { own: key(own as u8), all: &all } })
}

/// Packets by which the window grows per packet acknowledged.
fn increase<C: Coupling>(paths: Paths<'_>, own: usize) -> f64 {
    with_flows(paths, own, |flows| C::default().share(flows)) / paths[own].0 as f64
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 2e-3, "{value} is not {expected}");
}

const TWO: [(u64, u64, u64); 2] = [(10, 20, 0), (20, 100, 0)];

#[test]
fn lia_has_the_alpha_of_the_rfc() {
    // alpha = 30 · (10/20²) / (10/20 + 20/100)² = 1.531, over a total window of 30.
    assert_near(increase::<Lia>(&TWO, 0) * 30.0, 1.531);
    // The same alpha would be 0.051 per packet; Reno has 1/20 = 0.05.
    assert_near(increase::<Lia>(&TWO, 1), 0.05);
}

#[test]
fn olia_has_the_base_terms_of_the_paper() {
    // The first path is best and the second largest: take ε = ±1/2 out.
    let paths = [(10, 20, 1000), (20, 100, 1000)];
    assert_near(increase::<Olia>(&paths, 0) - 0.5 / 10.0, 0.0510);
    assert_near(increase::<Olia>(&paths, 1) + 0.5 / 20.0, 0.00408);
    // The largest is the best: no ε.
    let paths = [(10, 20, 10), (20, 100, 1000)];
    assert_near(increase::<Olia>(&paths, 0), 0.0510);
    assert_near(increase::<Olia>(&paths, 1), 0.00408);
}

#[test]
fn olia_shares_epsilon_among_the_best_and_among_the_largest() {
    let paths = [(10, 50, 90), (10, 50, 90), (20, 50, 10), (20, 50, 10), (15, 50, 10)];
    let epsilon = |own| {
        with_flows(&paths, own, |flows| {
            let part = flows.own.rate() / flows.total_rate();
            Olia::default().share(flows) - part * part
        })
    };
    for (own, expected) in [(0, 0.1), (1, 0.1), (2, -0.1), (3, -0.1)] {
        assert_near(epsilon(own), expected);
    }
    assert!(epsilon(4).abs() < 1e-12);
}

#[test]
fn a_loss_leaves_of_olias_window_what_beta_says_and_of_balias_its_own() {
    let kept = |beta| {
        let olia = Coupled::<Olia>::new(20, SIZE, SlowStartExit::Loss, beta);
        let balia = Coupled::<Balia>::new(20, SIZE, SlowStartExit::Loss, beta);
        let all = published(&TWO);
        [
            with_srtt(olia).kept(&Peers { own: key(0), all: &all }),
            with_srtt(balia).kept(&Peers { own: key(0), all: &all }),
        ]
    };
    let [half, balia] = kept(0.5);
    assert_eq!(half, Bytes(12_000));
    let [seven_tenths, same] = kept(0.7);
    assert!(seven_tenths.0.abs_diff(16_800) <= 1, "{seven_tenths}");
    assert_eq!(balia, same);
}

fn with_srtt<C>(mut controller: Coupled<C>) -> Coupled<C> {
    controller.srtt = Some(Duration::from_millis(20));
    controller
}

#[test]
fn balia_has_increases_and_decreases_of_the_paper() {
    assert_near(increase::<Balia>(&TWO, 0), 0.0510);
    assert_near(increase::<Balia>(&TWO, 1), 0.00929);
    let decrease = |own| with_flows(&TWO, own, |flows| Balia.decrease(flows, 0.5) * flows.own.cwnd);
    assert_near(decrease(0), 5.0 * 1200.0);
    assert_near(decrease(1), 15.0 * 1200.0);
}

#[test]
fn a_path_without_round_trip_time_is_not_coupled() {
    let mut all = published(&TWO);
    all[1].1.srtt = None;
    let own = Flow::new(all[0].1.cwnd, Duration::from_millis(20), None);
    let flows = Flows { own, peers: Peers { own: key(0), all: &all } };
    assert_eq!(Lia.share(&flows), 1.0);
}

fn ack(controller: &mut dyn Controller, peers: &Peers<'_>, count: usize, ms: u64, srtt: Duration) {
    let sent_at = Instant::from_nanos(ms * 1_000_000);
    let packets = vec![AckedPacket { sent_at, bytes: SIZE }; count];
    let info = AckedInfo {
        rate: None,
        delivered: Bytes(0),
        lost: Bytes(0),
        now: sent_at,
        packets: &packets,
        prior_in_flight: Bytes(0),
        in_flight: Bytes(0),
        limited: false,
        srtt: Some(srtt),
        min_rtt: None,
        latest_rtt: None,
    };
    controller.on_acked(&info, peers);
}

fn lose(controller: &mut dyn Controller, peers: &Peers<'_>, ms: u64) {
    let at = Instant::from_nanos(ms * 1_000_000);
    let lost = LostInfo {
        packets: &[],
        lost: Bytes(0),
        now: at,
        bytes: SIZE,
        newest_sent_at: at,
        in_flight: Bytes(0),
        persistent: false,
    };
    controller.on_lost(&lost, peers);
}

#[test]
fn the_larger_window_of_olia_shrinks_to_its_minimum_and_stays_in_avoidance() {
    let all = published(&[(20, 100, 1), (1, 20, 100_000)]);
    let peers = Peers { own: key(0), all: &all };
    let mut controller = Coupled::<Olia>::new(20, SIZE, SlowStartExit::Loss, BETA);
    lose(&mut controller, &peers, 1);
    assert_eq!(controller.published().cwnd, Bytes(12_000));
    let srtt = Duration::from_millis(1_000_000);
    for round in 0..100 {
        let before = controller.published().cwnd;
        ack(&mut controller, &peers, 10, 2 + round, srtt);
        let after = controller.published();
        assert!(after.cwnd < before || before == Bytes(2_400));
        assert_eq!(after.state, "congestion avoidance");
    }
    assert_eq!(controller.published().cwnd, Bytes(2_400));
}

#[test]
fn olia_counts_the_bytes_between_losses() {
    let peers = Peers { own: key(0), all: &[] };
    let mut controller = Coupled::<Olia>::new(20, SIZE, SlowStartExit::Loss, BETA);
    let srtt = Duration::from_millis(20);
    let mut step = |packets, ms| {
        ack(&mut controller, &peers, packets, ms, srtt);
        lose(&mut controller, &peers, ms + 1);
        // A second loss of the same recovery period, and one with nothing in between.
        lose(&mut controller, &peers, ms + 1);
        lose(&mut controller, &peers, ms + 2);
        controller.published().between_losses
    };
    assert_eq!(step(7, 1), Some(Bytes(7 * 1200)));
    assert_eq!(step(3, 10), Some(Bytes(3 * 1200)));
    assert_eq!(step(4, 20), Some(Bytes(4 * 1200)));
}

/// What may happen to a controller, with numbers of any size.
#[derive(Clone, Debug)]
enum Happening {
    Acked { bytes: u64, count: usize, limited: bool, srtt: Option<u64> },
    Lost { age: u64, persistent: bool },
    Marked { age: u64 },
    Datagram(u64),
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 1200u64..2_000_000, any::<u64>()]
}

fn happening(amount: BoxedStrategy<u64>) -> impl Strategy<Value = Happening> {
    let srtt = proptest::option::of(extreme());
    let acked = (amount, 0usize..20, any::<bool>(), srtt);
    prop_oneof![
        4 => acked.prop_map(|(bytes, count, limited, srtt)| {
            Happening::Acked { bytes, count, limited, srtt }
        }),
        2 => (0u64..3, any::<bool>()).prop_map(|(age, persistent)| {
            Happening::Lost { age, persistent }
        }),
        1 => (0u64..3).prop_map(|age| Happening::Marked { age }),
        1 => (1u64..70_000).prop_map(Happening::Datagram),
    ]
}

fn tell(controller: &mut dyn Controller, happening: &Happening, step: u64, peers: &Peers<'_>) {
    let now = Instant::from_nanos(step * 10);
    let sent_at = |age: u64| Instant::from_nanos((step * 10).saturating_sub(age * 8));
    match *happening {
        Happening::Acked { bytes, count, limited, srtt } => {
            let packet = AckedPacket { sent_at: sent_at(1), bytes: Bytes(bytes) };
            let srtt = srtt.map(Duration::from_nanos);
            let info = AckedInfo {
                rate: None,
                delivered: Bytes(0),
                lost: Bytes(0),
                now,
                packets: &vec![packet; count],
                prior_in_flight: Bytes(0),
                in_flight: Bytes(0),
                limited,
                srtt,
                min_rtt: srtt,
                latest_rtt: srtt,
            };
            controller.on_acked(&info, peers);
        }
        Happening::Lost { age, persistent } => {
            let (bytes, newest_sent_at) = (SIZE, sent_at(age));
            let in_flight = Bytes(0);
            let lost = LostInfo {
                packets: &[],
                lost: Bytes(0),
                now,
                bytes,
                newest_sent_at,
                in_flight,
                persistent,
            };
            controller.on_lost(&lost, peers);
        }
        Happening::Marked { age } => {
            let change = PathChange::EcnCongestion { marks: 1, sent_at: sent_at(age), now };
            controller.on_change(change, peers);
        }
        Happening::Datagram(size) => {
            let found = size.is_multiple_of(2);
            let change = if found { PathChange::PathMtu } else { PathChange::DatagramSize };
            controller.on_change(change(Bytes(size)), peers);
        }
    }
}

fn all_three() -> [Box<dyn Controller>; 3] {
    [
        Box::new(Coupled::<Lia>::new(10, SIZE, SlowStartExit::Loss, BETA)),
        Box::new(Coupled::<Olia>::new(10, SIZE, SlowStartExit::Loss, BETA)),
        Box::new(Coupled::<Balia>::new(10, SIZE, SlowStartExit::Loss, BETA)),
    ]
}

proptest! {
    /// Whatever comes, the window keeps its minimum, and does not grow while it does not limit.
    #[test]
    fn absurd_numbers_break_nothing(
        steps in vec((happening(extreme().boxed()), vec((extreme(), extreme(), extreme()), 0..4)), 1..60),
    ) {
        let vegas: Box<dyn Controller> = Box::new(Wvegas::new(10, SIZE));
        for mut controller in all_three().into_iter().chain([vegas]) {
            let mut minimum = Bytes(2 * SIZE.0);
            for (step, (happening, others)) in (1..).zip(&steps) {
                let entry = |(slot, &(cwnd, srtt, between)): (u8, &(u64, u64, u64))| {
                    let srtt = (srtt != 7).then_some(Duration::from_nanos(srtt));
                    let between_losses = Some(Bytes(between));
                    let cwnd = Bytes(cwnd);
                    let published = Published { cwnd, srtt, between_losses, ..Published::default() };
                    (key(slot), published)
                };
                let all: Vec<_> = (0..).zip(others).map(entry).collect();
                let peers = Peers { own: key(0), all: &all };
                let before = controller.published().cwnd;
                if let Happening::Datagram(size) = happening {
                    minimum = Bytes(2 * size);
                }
                tell(&mut *controller, happening, step, &peers);
                let after = controller.published().cwnd;
                prop_assert!(after >= minimum, "{after} < {minimum} after {happening:?}");
                match happening {
                    Happening::Acked { limited: true, .. } => prop_assert_eq!(after, before),
                    Happening::Lost { .. } | Happening::Marked { .. } => {
                        prop_assert!(after <= before);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Shares are what the formulas bound them to.
    #[test]
    fn shares_are_bounded(
        paths in vec((extreme(), extreme(), extreme()), 1..5),
    ) {
        let entry = |(slot, &(cwnd, srtt, between)): (u8, &(u64, u64, u64))| {
            let (srtt, between_losses) = (Some(Duration::from_nanos(srtt)), Some(Bytes(between)));
            let cwnd = Bytes(cwnd);
            (key(slot), Published { cwnd, srtt, between_losses, ..Published::default() })
        };
        let all: Vec<_> = (0..).zip(&paths).map(entry).collect();
        for (own, published) in &all {
            let flow = Flow::new(published.cwnd, published.srtt.unwrap(), published.between_losses);
            let flows = Flows { own: flow, peers: Peers { own: *own, all: &all } };
            let slack = 1e-9;
            prop_assert!((0.0..=1.0).contains(&Lia.share(&flows)));
            prop_assert!((0.0..=1.0 + slack).contains(&Balia.share(&flows)));
            prop_assert!((0.5..=0.75).contains(&Balia.decrease(&flows, 0.5)));
            prop_assert!((-0.5..=1.5 + slack).contains(&Olia::default().share(&flows)));
        }
    }

    /// One path alone is NewReno, byte for byte.
    #[test]
    fn one_path_is_newreno(steps in vec(happening((1u64..65_536).boxed()), 1..100)) {
        for mut controller in all_three() {
            let mut reno = NewReno::new(10, SIZE);
            let peers = Peers { own: key(0), all: &[] };
            for (step, happening) in (1..).zip(&steps) {
                tell(&mut *controller, happening, step, &peers);
                tell(&mut reno, happening, step, &peers);
                let coupled = Published { between_losses: None, ..controller.published() };
                prop_assert_eq!(coupled, reno.published());
            }
        }
    }
}
