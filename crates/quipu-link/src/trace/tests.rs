use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn trace(times: &[u32]) -> DeliveryTrace {
    let lines: String = times.iter().map(|time| format!("{time}\n")).collect();
    DeliveryTrace::parse(&lines).unwrap()
}

#[test]
fn a_trace_is_read_with_any_line_ends() {
    for text in ["0\n7\n7\n20\n", "0\n7\n7\n20", "0\r\n7\r\n7\r\n20\r\n"] {
        let read = DeliveryTrace::parse(text).unwrap();
        assert_eq!(read, trace(&[0, 7, 7, 20]));
        assert_eq!((read.opportunities(), read.length()), (4, Duration::from_millis(20)));
        // 4 × 12,000 bits in 20 ms.
        assert_eq!(read.mean_rate(), Rate::from_bits_per_sec(2_400_000));
    }
}

#[test]
fn texts_that_are_no_trace_are_refused_with_their_line() {
    let error = |text: &str| DeliveryTrace::parse(text).unwrap_err().to_string();
    assert_eq!(error(""), "the trace is empty, expected a line for each 1,500 bytes");
    assert_eq!(error("0\n0"), "line 2: 0 ms at the end of the trace, expected a number above 0");
    assert_eq!(error("5\n4\n"), "line 2: 4 ms, expected not less than 5 ms, as in the line before");
    for wrong in ["", " 6", "6 ", "+6", "-6", "6.5", "# six", "4294967296", "６"] {
        let expected =
            format!("line 2: `{wrong}`, expected milliseconds, a whole number up to 4294967295");
        assert_eq!(error(&format!("5\n{wrong}\n7\n")), expected);
    }
    assert!(error(&"x".repeat(1_000)).len() < 100, "a long line is told by its start");
}

#[test]
fn more_lines_than_a_trace_may_have_are_refused() {
    let most = "1\n".repeat(DeliveryTrace::MOST_OPPORTUNITIES);
    assert!(DeliveryTrace::parse(&most).is_ok());
    let line = DeliveryTrace::MOST_OPPORTUNITIES + 1;
    let error = DeliveryTrace::parse(&(most + "1"));
    assert_eq!(error, Err(DeliveryTraceError::TooLong { line }));
}

#[test]
fn small_datagrams_share_an_opportunity_and_large_ones_take_several() {
    let mut sender = Opportunities::new(&trace(&[2, 4, 6, 8]));
    let mut send = |at, bytes| sender.send(millis(at), Bytes(bytes));
    assert_eq!([send(0, 500), send(0, 500), send(1, 500)], [millis(2); 3]);
    assert_eq!(send(1, 3_100), millis(8), "1,500 at 4, 1,500 at 6, 100 at 8");
    assert_eq!([send(1, 1_400), send(1, 1)], [millis(8), millis(10)]);
}

#[test]
fn opportunities_that_find_nothing_are_lost() {
    let mut sender = Opportunities::new(&trace(&[0, 2, 4, 4]));
    let mut send = |at| sender.send(millis(at), Bytes(1_500));
    assert_eq!(send(0), millis(2), "the one at 0 is past");
    assert_eq!([send(2), send(2), send(2)], [millis(4), millis(4), millis(4)]);
    // Rounds start at 4, 8, 12 ms; 15 ms is in the third one.
    assert_eq!([send(15), send(15), send(15)], [millis(16); 3]);
    assert_eq!(send(1_000_001), millis(1_000_002));
}

#[test]
fn huge_amounts_and_late_instants_saturate() {
    let trace = trace(&[1, u32::MAX]);
    let mut sender = Opportunities::new(&trace);
    assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
    assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
    assert_eq!(sender.send(Instant::FAR_FUTURE, Bytes(1)), Instant::FAR_FUTURE);
    assert_eq!(trace.mean_rate(), Rate::from_bits_per_sec(1), "24,000 bits in 4,294,967 s");
}

/// Departures as one finds them by looking at each opportunity in turn, with what waits in a
/// queue.
fn naive(times: &[u32], offers: &[(u64, u64)]) -> Vec<u64> {
    let (mut departures, mut waiting) = (Vec::new(), VecDeque::new());
    let mut offers = offers.iter().peekable();
    let length = u64::from(times[times.len() - 1]) * NANOS_PER_MILLISECOND;
    for round in 0.. {
        for time in times {
            let at = round * length + u64::from(*time) * NANOS_PER_MILLISECOND;
            while let Some((_, bytes)) = offers.next_if(|(offered_at, _)| *offered_at < at) {
                waiting.push_back(*bytes);
            }
            let mut room = 1_500;
            while let Some(bytes) = waiting.front_mut() {
                let carried = room.min(*bytes);
                (room, *bytes) = (room - carried, *bytes - carried);
                if *bytes > 0 {
                    break;
                }
                waiting.pop_front();
                departures.push(at);
            }
        }
        if waiting.is_empty() && offers.peek().is_none() {
            break;
        }
    }
    departures
}

proptest! {
    #[test]
    fn datagrams_leave_as_if_each_opportunity_were_looked_at(
        gaps in proptest::collection::vec(0u32..4, 0..20),
        last_gap in 1u32..6,
        offers in proptest::collection::vec(
            (prop_oneof![Just(0u64), 0u64..3_000_000, Just(1_000_000u64), 0u64..100_000_000],
             prop_oneof![1u64..200, 1_000u64..1_600, 1u64..20_000]),
            1..60),
    ) {
        let mut at = 0;
        let times: Vec<u32> = gaps.into_iter().chain([last_gap]).map(|gap| {
            at += gap;
            at
        }).collect();
        let mut at = 0;
        let offers: Vec<(u64, u64)> = offers.into_iter().map(|(wait, bytes)| {
            at += wait;
            (at, bytes)
        }).collect();
        let mut sender = Opportunities::new(&trace(&times));
        let departures: Vec<u64> = offers
            .iter()
            .map(|&(at, bytes)| sender.send(Instant::from_nanos(at), Bytes(bytes)).as_nanos())
            .collect();
        prop_assert_eq!(departures, naive(&times, &offers));
    }

    #[test]
    fn a_busy_link_delivers_every_byte_of_the_trace(
        gaps in proptest::collection::vec(0u32..40, 1..50),
        bytes in 1u64..3_000,
    ) {
        let mut at = 1;
        let times: Vec<u32> = gaps.into_iter().map(|gap| {
            at += gap;
            at
        }).collect();
        let trace = trace(&times);
        let mut sender = Opportunities::new(&trace);
        let departures: Vec<Instant> =
            (0..2_000).map(|_| sender.send(Instant::ZERO, Bytes(bytes))).collect();
        for (sent, departure) in (1..).zip(&departures) {
            // All that the opportunities up to the departure carry is enough, and what those
            // before it carry is not.
            let before = *departure - Duration::from_nanos(1);
            prop_assert!(trace.opportunities_by(*departure) * 1_500 >= sent * bytes);
            prop_assert!(trace.opportunities_by(before) * 1_500 < sent * bytes);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9\\r\\n +.x-]{0,60}|.{0,60}") {
        if let Ok(trace) = DeliveryTrace::parse(&text) {
            prop_assert_eq!(trace.opportunities(), text.lines().count());
        }
    }
}
