use super::*;

const LEAST: Duration = Duration::from_millis(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn request(sequence: u64, threshold: u64, max_delay: Duration) -> AckFrequency {
    AckFrequency { sequence, threshold, max_delay: max_delay.as_micros(), reordering: 4 }
}

fn wish(every: u32, max_delay: Duration) -> Wish {
    Wish { every, max_delay, reordering: 3 }
}

#[test]
fn the_request_of_the_greatest_number_holds() {
    let mut terms = AckTerms::new(&TransportConfig::default());
    assert_eq!(*terms.own(), AckSettings::new(2, ms(25)));
    let settings = |every, max_delay, first_mark_only| AckSettings {
        every,
        max_delay,
        reordering: 4,
        first_mark_only,
    };
    for (sequence, threshold, delay, expected) in [
        (0, 9, 40, settings(10, ms(40), true)),
        (0, 5, 30, settings(10, ms(40), true)),
        (7, 1, 25, settings(2, ms(25), false)),
        (6, 9, 40, settings(2, ms(25), false)),
        (8, 0, 1, settings(1, ms(1), false)),
        (9, u64::MAX >> 2, 16_383, settings(u32::MAX, ms(16_383), true)),
    ] {
        terms.on_request(&request(sequence, threshold, ms(delay)), LEAST).unwrap();
        assert_eq!(*terms.own(), expected, "request {sequence}");
    }
}

#[test]
fn delays_that_were_excluded_are_violations() {
    let mut terms = AckTerms::new(&TransportConfig::default());
    for delay in [Duration::ZERO, Duration::from_micros(999), ms(1 << 14), ms(1 << 40)] {
        assert!(terms.on_request(&request(0, 1, delay), LEAST).is_err(), "{delay}");
    }
    let longest = AckFrequency { max_delay: u64::MAX >> 2, ..request(0, 1, ms(1)) };
    assert!(terms.on_request(&longest, LEAST).is_err());
    assert!(terms.on_request(&request(0, 1, LEAST), LEAST).is_ok());
    assert!(terms.on_request(&request(1, 1, ms(16_383)), LEAST).is_ok());
}

#[test]
fn only_what_changed_much_is_asked_and_one_request_at_a_time() {
    let mut asking = Asking::default();
    asking.wish(wish(10, ms(20)));
    assert_eq!(asking.request().map(|request| request.threshold), Some(9));
    asking.on_sent(ms(25));
    assert_eq!(asking.request(), None);
    // It is in flight.
    asking.wish(wish(40, ms(20)));
    assert_eq!(asking.request(), None);
    assert_eq!(asking.on_acked(0), Some(ms(20)));
    for same in [wish(10, ms(20)), wish(12, ms(20)), wish(8, ms(25)), wish(10, ms(15))] {
        asking.wish(same);
        assert_eq!(asking.request(), None, "{same:?}");
    }
    let far = [wish(13, ms(20)), wish(7, ms(20)), wish(10, ms(26)), wish(10, ms(14))];
    for (nth, other) in (1..).zip(far) {
        asking.wish(other);
        assert_eq!(asking.request().map(|request| request.sequence), Some(nth), "{other:?}");
        asking.on_sent(ms(25));
        asking.on_acked(nth);
        asking.last = Some(wish(10, ms(20)));
    }
    asking.wish(Wish { reordering: 4, ..wish(10, ms(20)) });
    assert!(asking.request().is_some());
}

#[test]
fn the_longest_delay_that_may_hold_counts_until_the_answer() {
    let mut asking = Asking::default();
    asking.wish(wish(10, ms(5)));
    assert_eq!(asking.on_sent(ms(25)), ms(25), "it may not have come yet");
    assert_eq!(asking.on_acked(0), Some(ms(5)));
    asking.wish(wish(10, ms(40)));
    assert_eq!(asking.on_sent(ms(5)), ms(40), "it may have come");
    asking.on_lost(1);
    assert_eq!(asking.request().map(|request| request.sequence), Some(2));
    asking.on_lost(1);
    // The one that was lost holds after all; nothing is known of that.
    assert_eq!(asking.on_sent(ms(40)), ms(40));
    assert_eq!(asking.on_acked(1), None);
    assert_eq!(asking.on_acked(2), Some(ms(40)));
    assert_eq!(asking.on_acked(2), None);
}
