use proptest::prelude::*;

use super::super::{Motion, PhyRate, Position};
use super::*;
use crate::{Link, LinkConfig, QueueLimit, Verdict, ecn};

const FULL: Bytes = Bytes(1_500);

fn channel_36(path_loss: PathLoss, timing: Timing) -> Medium {
    Medium::new(Channel::new(36).unwrap(), path_loss, timing).unwrap()
}

/// A pair of its own number, `metres` apart.
fn pair(medium: &Medium, metres: f64, index: u64) -> [Transmitter; 2] {
    let seed = Seed::new(3);
    let station =
        Station::new(Motion::Fixed(Position::new(metres, 0.0)), seed.child("station", index));
    let ap = AccessPoint::at(Position::default());
    medium.join(&ap, &station, seed.child("pair", index)).unwrap()
}

fn micros(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// Mbit/s of UDP payload that `senders` move together in ten seconds, each with a frame ready at all times.
fn saturated(senders: &mut [Transmitter]) -> Vec<f64> {
    let mut moved = vec![0u64; senders.len()];
    'time: loop {
        for (sender, moved) in senders.iter_mut().zip(&mut moved) {
            let turn = sender.send(Instant::ZERO, FULL);
            if turn.ends_at > micros(10_000_000) {
                break 'time;
            }
            *moved += u64::from(turn.lost.is_none()) * 1_472 * 8;
        }
    }
    moved.iter().map(|&bits| bits as f64 / 10e6).collect()
}

#[test]
fn one_station_nearby_gets_thirty_megabits() {
    let medium = channel_36(PathLoss::default(), Timing::Standard);
    let [down, _] = pair(&medium, 10.0, 0);
    let rate = saturated(&mut [down])[0];
    // 1,472 B in 393.5 us on average.
    assert!((rate - 29.93).abs() < 0.15, "{rate}");
}

#[test]
fn stations_and_directions_share_the_airtime() {
    let medium = channel_36(PathLoss::default(), Timing::Standard);
    let [near_down, near_up] = pair(&medium, 10.0, 0);
    let rates = saturated(&mut [near_down, near_up]);
    assert!((rates[0] + rates[1] - 29.93).abs() < 0.15, "{rates:?}");
    assert!((rates[0] - rates[1]).abs() < 0.1);
    // Frame by frame in turn, a station at 6 Mbit/s slows the other one down to its own pace: the
    // anomaly of 802.11 (Heusse et al., 2003).
    let medium = channel_36(PathLoss::default(), Timing::Standard);
    let [near, _] = pair(&medium, 10.0, 0);
    let [_, far] = pair(&medium, 90.0, 1);
    let rates = saturated(&mut [near, far]);
    assert!(rates[0] < 5.0 && rates[0] - rates[1] < 0.5, "{rates:?}");
    assert_eq!(medium.stats().failed, 0);
    // Another channel is another medium.
    let other = Medium::new(Channel::new(40).unwrap(), PathLoss::default(), Timing::Standard);
    let [mut down, _] = pair(&other.unwrap(), 10.0, 2);
    assert!(down.send(Instant::ZERO, FULL).ends_at < micros(462));
}

#[test]
fn weak_signals_cost_attempts_and_frames() {
    let fading = |fading| PathLoss { fading, ..PathLoss::default() };
    let tried = |path_loss, metres| {
        let medium = channel_36(path_loss, Timing::Standard);
        let [mut down, _] = pair(&medium, metres, 0);
        for _ in 0..5_000 {
            down.send(Instant::ZERO, FULL);
        }
        medium.stats()
    };
    let near = tried(fading(0.0), 5.0);
    assert_eq!((near.frames, near.attempts, near.failed), (5_000, 5_000, 0));
    // Fading by 3 dB, 2.9 dB above what 54 Mbit/s need: a sixth of the attempts fail.
    let scene = tried(fading(3.0), 20.6);
    let failed = 1.0 - 5_000.0 / scene.attempts as f64;
    assert!((0.10..0.22).contains(&failed), "{failed}");
    assert!(scene.failed <= 2, "{scene:?}");
    // Where 6 Mbit/s only just reach, frames are lost.
    let edge = tried(fading(6.0), 93.0);
    assert!((6..60).contains(&edge.failed), "{edge:?}");
}

#[test]
fn out_of_reach_nothing_is_sent_and_no_time_passes() {
    let medium = channel_36(PathLoss::default(), Timing::Standard);
    let [down, _] = pair(&medium, 200.0, 0);
    let seed = Seed::new(1).child("link", 0);
    let mut link = Link::over_radio(&LinkConfig::default(), seed, down).unwrap();
    for at in 0..10 {
        let verdict = link.offer(micros(at), Bytes(1_000), ecn::NOT_ECT);
        assert_eq!(verdict, Verdict::Dropped(DropReason::Outage));
    }
    let stats = medium.stats();
    assert_eq!((stats.unreachable, stats.busy), (10, Duration::ZERO));
    assert_eq!(link.stats().dropped_by_outage.datagrams, 10);
}

#[test]
fn a_station_comes_back_into_reach() {
    let seed = Seed::new(1);
    let there = Position::new(300.0, 0.0);
    let walk = [(Position::new(0.0, 0.0), 10.0)];
    let motion = Motion::at_speeds(there, Instant::ZERO, walk).unwrap();
    let station = Station::new(motion, seed.child("station", 0));
    let medium = channel_36(PathLoss::default(), Timing::Standard);
    let ap = AccessPoint::at(Position::default());
    let [mut down, _] = medium.join(&ap, &station, seed.child("pair", 0)).unwrap();
    let times: Vec<_> = (0..30)
        .map(|second| {
            let now = micros(second * 1_000_000);
            let turn = down.send(now, FULL);
            turn.lost.is_none().then(|| (turn.ends_at - now).as_micros())
        })
        .collect();
    // 94 m at 6 Mbit/s.
    assert_eq!(times.iter().take_while(|time| time.is_none()).count(), 21);
    assert!(times[21].is_some_and(|time| time > 2_000), "{times:?}");
    assert!(times[29].is_some_and(|time| time < 462), "{times:?}");
}

#[test]
fn a_link_over_radio_has_the_queue_and_delay_of_any_link() {
    let medium = channel_36(PathLoss::default(), Timing::Wmediumd);
    let [down, up] = pair(&medium, 10.0, 0);
    let seed = Seed::new(1);
    let config = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
    let config = config.with_queue(QueueLimit::packets(2));
    let mut down = Link::over_radio(&config, seed.child("link", 0), down).unwrap();
    let mut up = Link::over_radio(&config, seed.child("link", 1), up).unwrap();
    let offers = [0; 3].map(|now| down.offer(micros(now), Bytes(1_472), ecn::NOT_ECT));
    // 282 us each.
    let expected = [
        Verdict::deliver(micros(1_282)),
        Verdict::deliver(micros(1_564)),
        Verdict::Dropped(DropReason::QueueFull),
    ];
    assert_eq!(offers, expected);
    // The other direction has a queue of its own, and the same air.
    let verdict = up.offer(micros(0), Bytes(1_472), ecn::NOT_ECT);
    assert_eq!(verdict, Verdict::deliver(micros(1_846)));
    assert_eq!(pair(&medium, 10.0, 2)[0].free_at(), micros(846));
    let paced = LinkConfig { rate: Some(quipu_base::Rate::from_mbit_per_sec(1)), ..config };
    let [down, _] = pair(&medium, 10.0, 1);
    assert_eq!(Link::over_radio(&paced, seed, down).unwrap_err().field, "rate");
}

#[test]
fn the_same_frame_has_the_same_luck_whatever_others_send() {
    let path_loss = PathLoss { fading: 5.0, ..PathLoss::default() };
    let durations = |others: usize| -> Vec<_> {
        let medium = channel_36(path_loss, Timing::Standard);
        let [mut down, mut up] = pair(&medium, 25.0, 0);
        let [mut other, _] = pair(&medium, 40.0, 1);
        let mut sent = Vec::new();
        for index in 0..300 {
            for _ in 0..others {
                up.send(Instant::ZERO, Bytes(80));
                other.send(Instant::ZERO, FULL);
            }
            let before = medium.stats().busy;
            let turn = down.send(micros(index), FULL);
            sent.push((medium.stats().busy.saturating_sub(before), turn.lost));
        }
        sent
    };
    assert_eq!(durations(0), durations(3));
    assert!(durations(0).iter().any(|(time, _)| time.as_micros() > 600), "some are repeated");
}

proptest! {
    /// The turns on a medium follow each other as a naive server of airtime would have them: each begins
    /// when it is handed over or when the one before ends, never earlier.
    #[test]
    fn no_two_frames_are_on_the_air_at_once(
        offers in proptest::collection::vec((0u64..900, 0usize..6, 1u64..1_500), 1..200),
        fading in prop_oneof![Just(0.0), 0.0..8.0],
        wmediumd: bool,
    ) {
        let timing = if wmediumd { Timing::Wmediumd } else { Timing::Standard };
        let medium = channel_36(PathLoss { fading, ..PathLoss::default() }, timing);
        let mut senders: Vec<Transmitter> = [8.0, 45.0, 150.0]
            .iter()
            .zip(0..)
            .flat_map(|(&metres, index)| pair(&medium, metres, index))
            .collect();
        let (mut now, mut free_at) = (Instant::ZERO, Instant::ZERO);
        for (wait, sender, bytes) in offers {
            now += Duration::from_micros(wait);
            let busy_before = medium.stats().busy;
            let turn = senders[sender].send(now, Bytes(bytes));
            let took = medium.stats().busy.saturating_sub(busy_before);
            prop_assert_eq!(turn.ends_at, free_at.max(now) + took);
            if sender >= 4 {
                prop_assert_eq!((took, turn.lost), (Duration::ZERO, Some(DropReason::Outage)));
            } else {
                let least = PhyRate::Mbit54.frame_time(Bytes(bytes));
                prop_assert!(took > least);
                free_at = turn.ends_at;
            }
        }
    }
}
