use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SETTINGS: AckSettings = AckSettings::new(2, Duration::from_millis(25));

fn receive(received: &mut Received, pn: u64) {
    received.on_packet(Instant::ZERO, PacketNumber(pn), true, 0, &SETTINGS);
}

#[test]
fn every_second_packet_makes_an_acknowledgement_due() {
    let mut received = Received::default();
    receive(&mut received, 0);
    assert!(!received.is_due(Instant::ZERO));
    assert!(received.is_due(Instant::ZERO + Duration::from_millis(25)));
    receive(&mut received, 1);
    assert!(received.is_due(Instant::ZERO));
    received.on_ack_written();
    assert!(!received.wants_ack());
}

#[test]
fn a_gap_or_a_late_packet_makes_it_due_at_once() {
    let mut received = Received::default();
    receive(&mut received, 0);
    receive(&mut received, 1);
    received.on_ack_written();
    receive(&mut received, 3);
    assert!(received.is_due(Instant::ZERO));
    received.on_ack_written();
    receive(&mut received, 2);
    assert!(received.is_due(Instant::ZERO));
}

/// What is acknowledged at once of packets that come in this order, when nothing but reordering asks
/// for it.
fn at_once(threshold: u64, packets: &[u64]) -> Vec<u64> {
    let patient = AckSettings {
        every: 1_000,
        max_delay: Duration::from_secs(1),
        reordering: threshold,
        first_mark_only: true,
    };
    let mut received = Received::default();
    let mut acknowledged = Vec::new();
    for &pn in packets {
        received.on_packet(Instant::ZERO, PacketNumber(pn), true, 0, &patient);
        if received.is_due(Instant::ZERO) {
            received.on_ack_written();
            acknowledged.push(pn);
        }
    }
    acknowledged
}

/// The examples of
/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-6.2.1>, and more.
#[test]
fn a_threshold_of_reordering_is_waited_for() {
    assert_eq!(at_once(3, &[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    assert_eq!(at_once(5, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    assert_eq!(at_once(1, &[0, 1, 3, 4, 5, 8]), [3, 8]);
    assert_eq!(at_once(0, &[0, 1, 3, 4, 90, 8, 2]), []);
    // A gap that closes in time asks for nothing; what comes too late does.
    assert_eq!(at_once(3, &[0, 2, 1, 4, 3, 5, 6]), []);
    assert_eq!(at_once(3, &[0, 2, 3, 4, 5, 1]), [4, 1]);
    // The first packets are missing too.
    assert_eq!(at_once(3, &[2, 3]), [3]);
}

#[test]
fn ranges_are_told_before_they_are_too_many() {
    let gaps: Vec<u64> = (0..40).map(|nth| nth * 2).collect();
    let first = at_once(0, &gaps)[0];
    assert!(first / 2 < MAX_RANGES as u64 / 2, "{first}");
}

#[test]
fn of_marks_in_a_row_the_first_is_acknowledged_at_once() {
    let patient = AckSettings { every: 100, first_mark_only: true, ..SETTINGS };
    let mut received = Received::default();
    let mut due = Vec::new();
    for (pn, ecn) in [0, 2, 3, 3, 3, 2, 3, 0].into_iter().enumerate() {
        received.on_packet(Instant::ZERO, PacketNumber(pn as u64), true, ecn, &patient);
        if received.is_due(Instant::ZERO) {
            received.on_ack_written();
            due.push(pn);
        }
    }
    assert_eq!(due, [2, 6]);
}

#[test]
fn packets_below_what_was_settled_count_as_duplicates() {
    let mut received = Received::default();
    for pn in [0, 1, 5, 6, 9] {
        receive(&mut received, pn);
    }
    received.on_ack_of_ack(PacketNumber(6));
    assert!(received.is_duplicate(PacketNumber(3).min(PacketNumber(1))));
    assert!(!received.is_duplicate(PacketNumber(3)));
    assert_eq!(received.ranges().collect::<Vec<_>>(), [(9, 9), (5, 6)]);
}

/// A peer that leaves a gap before each packet, in whatever order.
#[test]
fn the_list_of_ranges_is_bounded_and_its_newest_part_stays() {
    for order in [|nth: u64| nth, |nth| 20_000 - nth, |nth| nth * 7_919 % 20_011] {
        let mut received = Received::default();
        for nth in 0..10_000 {
            let pn = 2 * order(nth);
            if !received.is_duplicate(PacketNumber(pn)) {
                receive(&mut received, pn);
            }
            assert!(received.range_count() <= MAX_RANGES);
        }
        assert!(received.ranges.capacity() <= 2 * MAX_RANGES);
    }
}

proptest! {
    #[test]
    fn no_packet_is_taken_twice_however_many_gaps_there_are(
        packets in proptest::collection::vec(0u64..2_000, 1..600),
        acked in proptest::collection::vec((0usize..600, 0u64..2_000), 0..4),
    ) {
        let mut received = Received::default();
        let mut model = BTreeSet::new();
        for (nth, pn) in packets.into_iter().enumerate() {
            if model.contains(&pn) {
                prop_assert!(received.is_duplicate(PacketNumber(pn)));
            }
            if !received.is_duplicate(PacketNumber(pn)) {
                model.insert(pn);
                receive(&mut received, pn);
            }
            for &(_, largest) in acked.iter().filter(|(when, _)| *when == nth) {
                received.on_ack_of_ack(PacketNumber(largest));
            }
            // What is told came, and the newest is told.
            let told: Vec<u64> =
                received.ranges().flat_map(|(start, end)| start..=end).collect();
            prop_assert!(told.iter().all(|pn| model.contains(pn)));
            prop_assert_eq!(told.iter().max(), model.last());
        }
    }

    #[test]
    fn the_first_missing_packet_is_found(
        packets in proptest::collection::vec(0u64..40, 1..30), from in 0u64..45,
    ) {
        let mut received = Received::default();
        packets.iter().for_each(|&pn| receive(&mut received, pn));
        let expected = (from..).find(|pn| !packets.contains(pn));
        prop_assert_eq!(Some(received.first_missing(from)), expected);
    }

    #[test]
    fn ranges_equal_a_set(packets in proptest::collection::vec(0u64..60, 1..80)) {
        let mut received = Received::default();
        let mut model = BTreeSet::new();
        for pn in packets {
            prop_assert_eq!(received.is_duplicate(PacketNumber(pn)), model.contains(&pn));
            if model.insert(pn) {
                receive(&mut received, pn);
            }
        }
        let listed: BTreeSet<u64> =
            received.ranges().flat_map(|(start, end)| start..=end).collect();
        prop_assert_eq!(listed, model);
        let ranges: Vec<_> = received.ranges().collect();
        prop_assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
    }
}
