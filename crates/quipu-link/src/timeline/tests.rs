use proptest::prelude::*;

use super::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(time: u64) -> Instant {
    Instant::ZERO + millis(time)
}

/// 1 from the start, 2 from 10 ms, 3 from 30 ms, over at 40 ms.
fn recording() -> Timeline<u32> {
    Timeline::recorded(1, [(millis(10), 2), (millis(30), 3)], millis(40))
}

#[test]
fn steps_hold_and_the_last_of_one_time_counts() {
    let steps = Timeline::of_steps(1, [(millis(10), 2), (millis(10), 3), (millis(5), 4)]);
    assert_eq!(steps.values().collect::<Vec<_>>(), [(millis(0), 1), (millis(10), 4)]);
    assert_eq!([0, 9, 10, 1_000_000].map(|time| steps.value_at(at(time))), [1, 1, 4, 4]);
    let at_once = Timeline::of_steps(1, [(millis(0), 2)]);
    assert_eq!((at_once.value_at(at(0)), at_once.ends_at()), (2, None));
}

#[test]
fn a_recording_begins_anywhere_and_ends_as_told() {
    let played = |from, at_end| recording().played(Play { from: millis(from), at_end });
    let values =
        |timeline: Timeline<u32>| [0, 5, 15, 25, 35, 45].map(|time| timeline.value_at(at(time)));
    assert_eq!(values(played(0, AtEnd::Loop)), [1, 1, 2, 2, 3, 1]);
    assert_eq!(values(played(25, AtEnd::Loop)), [2, 3, 1, 2, 2, 3]);
    // Two rounds later is the same.
    assert_eq!(values(played(105, AtEnd::Loop)), [2, 3, 1, 2, 2, 3]);
    assert_eq!(values(played(25, AtEnd::Hold)), [2, 3, 3, 3, 3, 3]);
    assert_eq!(values(played(25, AtEnd::Stop)), [2, 3, 3, 3, 3, 3]);
    assert_eq!(played(25, AtEnd::Stop).ends_at(), Some(at(15)));
    assert_eq!(played(99, AtEnd::Stop).ends_at(), Some(at(0)));
    assert_eq!(played(25, AtEnd::Loop).ends_at(), None);
}

#[test]
fn a_value_that_never_changes_has_no_next_one() {
    let alone = Timeline::recorded(7, [], millis(10));
    let mut cursor = Cursor::new(&alone);
    assert_eq!(cursor.next_at(), Instant::FAR_FUTURE);
    assert!(!cursor.seek(Instant::FAR_FUTURE));
    assert_eq!(cursor.value(), 7);
}

#[test]
fn the_far_future_is_no_change() {
    let mut cursor = Cursor::new(&recording());
    cursor.skip_rounds(u64::MAX / 2);
    assert_eq!(cursor.next_at(), Instant::FAR_FUTURE);
    assert!(!cursor.seek(Instant::FAR_FUTURE));
    let late = Play { from: Duration::from_nanos(u64::MAX), at_end: AtEnd::Loop };
    let _ = recording().played(late).value_at(Instant::FAR_FUTURE);
}

proptest! {
    #[test]
    fn a_cursor_that_steps_or_seeks_tells_the_value_of_each_instant(
        gaps in proptest::collection::vec((1u64..5, 0u32..4), 0..6),
        rest in 1u64..4,
        from in 0u64..40,
        looping: bool,
        jumps in proptest::collection::vec(0u64..9, 1..30),
    ) {
        let mut time = 0;
        let changes: Vec<(Duration, u32)> = gaps.iter().map(|(gap, value)| {
            time += gap;
            (millis(time), *value)
        }).collect();
        let at_end = if looping { AtEnd::Loop } else { AtEnd::Hold };
        let timeline = Timeline::recorded(9, changes.clone(), millis(time + rest))
            .played(Play { from: millis(from), at_end });
        let naive = |now: u64| {
            let place = if looping { (now + from) % (time + rest) } else { now + from };
            changes.iter().rev().find(|(at, _)| *at <= millis(place)).map_or(9, |(_, value)| *value)
        };
        let (mut seeking, mut stepping, mut now) = (Cursor::new(&timeline), Cursor::new(&timeline), 0);
        for jump in jumps {
            now += jump;
            seeking.seek(at(now));
            while stepping.next_at() <= at(now) {
                stepping.advance();
            }
            prop_assert_eq!(seeking.value(), naive(now));
            prop_assert_eq!(stepping.value(), naive(now));
            prop_assert_eq!(seeking.next_at(), stepping.next_at());
            prop_assert_eq!(seeking.number(), stepping.number());
            prop_assert_eq!(timeline.value_at(at(now)), naive(now));
        }
    }
}
