//! A recording of a link, in any form: what is read makes a link that sends what it says it can.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::{Bytes, Duration, Instant, Seed};
use quipu_link::{
    AtEnd, Capacity, Columns, DeliveryTrace, Link, LinkConfig, PingSeries, Play, RateSeries,
    Recording, ecn, read_losses,
};

fuzz_target!(|input: (&str, u64, u8)| {
    let (text, from, at_end) = input;
    let at_end = [AtEnd::Loop, AtEnd::Hold, AtEnd::Stop][usize::from(at_end % 3)];
    let play = Play { from: Duration::from_nanos(from), at_end };
    let mut config = LinkConfig::default();
    let column = RateSeries::column_of(text, true);
    let rates = RateSeries::parse(text, column).map(Recording::Rates).ok();
    let deliveries = || DeliveryTrace::parse(text).map(Recording::Deliveries).ok();
    if let Some(recording) = rates.or_else(deliveries) {
        recording.put_into(&mut config, play);
    }
    config.delays = PingSeries::parse(text).map(|pings| pings.delays(play)).ok();
    config.losses = read_losses(text, &Columns::default(), play).ok();
    let Ok(mut link) = Link::new(&config, Seed::new(1)) else { return };
    let capacity = Capacity::of(&config);
    let mut now = Instant::ZERO;
    for size in [1, 1_472, 40, 1_472] {
        let _ = link.offer(now, Bytes(size), ecn::NOT_ECT);
        let sent_at = capacity.all_sent(now, Bytes(size));
        assert!(sent_at >= now);
        assert!(
            sent_at == Instant::FAR_FUTURE
                || capacity.between(now, sent_at) >= Bytes(size)
                || sent_at == now
        );
        now += Duration::from_millis(700);
    }
});
