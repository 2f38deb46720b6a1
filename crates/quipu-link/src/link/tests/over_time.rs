//! Links whose delay changes, and that follow recordings.

use super::*;
use crate::{
    AtEnd, Columns, DeliveryTrace, PingSeries, Play, RateSeries, Recording, Timeline, read_losses,
};

fn time(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_datagram_has_the_delay_of_the_instant_at_which_it_leaves() {
    let delays = Timeline::of_steps(time(50), [(time(10), time(80)), (time(20), time(5))]);
    let config = LinkConfig { rate: None, delays: Some(delays), ..LinkConfig::default() };
    let arrivals = |config: &LinkConfig| {
        let mut link = link(config);
        let offers = [0, 9, 10, 19, 20, 84, 96];
        offers.map(|at| match link.offer(millis(at), Bytes(1_000), NOT_ECT) {
            Verdict::Deliver { at, .. } => (at - Instant::ZERO).as_millis(),
            other => panic!("{other:?}"),
        })
    };
    // None overtakes those at 99 ms, unless it may.
    assert_eq!(arrivals(&config), [50, 59, 90, 99, 99, 99, 101]);
    let free = LinkConfig { jitter_reorders: true, ..config };
    assert_eq!(arrivals(&free), [50, 59, 90, 99, 25, 89, 101]);
}

#[test]
fn datagrams_above_the_mtu_of_the_instant_are_dropped_before_they_take_time() {
    let config = LinkConfig::new(quipu_base::Rate::from_mbit_per_sec(10), Duration::ZERO);
    let config = config.with_mtu(Bytes(1_500)).with_mtu_from(millis(10), Bytes(1_278));
    let config = config.with_mtu_from(millis(20), Bytes(9_000));
    let mut link = link(&config);
    let too_large = Verdict::Dropped(DropReason::TooLarge);
    let offers = [(0, 1_472), (9, 1_473), (10, 1_251), (12, 1_250), (15, 1_472), (20, 8_972)];
    let verdicts = offers.map(|(at, size)| link.offer(millis(at), Bytes(size), NOT_ECT));
    let dropped = verdicts.map(|verdict| verdict == too_large);
    assert_eq!(dropped, [false, true, true, false, true, false]);
    // 1,278 B in 1,022.4 µs: nothing was before it.
    assert_eq!(verdicts[3], Verdict::deliver(nanos(13_022_400)));
    assert_eq!(link.stats().dropped_by_size.datagrams, 3);
    assert_eq!(link.stats().dropped(), link.stats().dropped_by_size);
}

#[test]
fn what_a_recording_that_stops_never_sends_is_lost_as_in_an_outage() {
    let trace = DeliveryTrace::parse("1\n2\n3\n").unwrap();
    let play = Play { from: Duration::from_millis(1), at_end: AtEnd::Stop };
    let delay = Duration::from_millis(40);
    let mut link = link(&LinkConfig::recorded(trace.played(play), delay));
    let mut offer = |at: u64| link.offer(millis(at), Bytes(1_472), NOT_ECT);
    let arrives = |at: u64| Verdict::deliver(millis(at));
    // The opportunities at 2 and 3 ms, and then no more: what left in time arrives.
    assert_eq!([offer(0), offer(0)], [arrives(41), arrives(42)]);
    let never = Verdict::Dropped(DropReason::Outage);
    assert_eq!([offer(0), offer(1), offer(500)], [never; 3]);
}

proptest! {
    #[test]
    fn any_text_makes_a_recording_or_is_refused(
        text in "(time_s,(mbps|rtt_ms|delay_ms|loss_percent)(,x)?\\n)?(([0-9.]{0,5},)?[0-9.]{0,9}(,[a-z])?\\r?\\n){0,6}.{0,3}",
        from: u64,
        kind in 0usize..3,
        offers in proptest::collection::vec((0u64..2_000_000_000, 1u64..3_000), 0..9),
    ) {
        let at_end = [AtEnd::Loop, AtEnd::Hold, AtEnd::Stop][kind];
        let play = Play { from: Duration::from_nanos(from), at_end };
        let mut config = LinkConfig::default();
        let rates = RateSeries::parse(&text, "mbps").map(Recording::Rates).ok();
        let deliveries = || DeliveryTrace::parse(&text).map(Recording::Deliveries).ok();
        if let Some(recording) = rates.or_else(deliveries) {
            recording.put_into(&mut config, play);
            prop_assert!(recording.length() > Duration::ZERO);
        }
        config.delays = PingSeries::parse(&text).map(|pings| pings.delays(play)).ok();
        config.losses = read_losses(&text, &Columns::default(), play).ok();
        let mut now = Instant::ZERO;
        if let Ok(mut link) = Link::new(&config, Seed::new(1)) {
            for (wait, size) in offers {
                now += Duration::from_nanos(wait);
                if let Verdict::Deliver { at, .. } = link.offer(now, Bytes(size), NOT_ECT) {
                    prop_assert!(at >= now);
                }
            }
        }
    }
}
