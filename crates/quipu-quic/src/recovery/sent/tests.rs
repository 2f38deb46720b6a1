use super::*;
use proptest::prelude::*;

fn send(sent: &mut SentPackets, at_ms: u64) -> u64 {
    let pn = sent.take_pn(|| 0);
    let mut record = SentRecord::new(pn, Instant::from_nanos(at_ms * 1_000_000));
    record.bytes = 1200;
    record.ack_eliciting = true;
    sent.on_sent(&mut record);
    pn.0
}

fn ack(sent: &mut SentPackets, ranges: &[(u64, u64)]) -> (Vec<u64>, Vec<u64>, bool) {
    let (mut acked, mut late) = (Vec::new(), Vec::new());
    let new = sent.on_ack(ranges.iter().copied(), &mut acked, &mut late);
    let numbers = |records: &[SentRecord]| records.iter().map(|r| r.pn.0).collect();
    (numbers(&acked), numbers(&late), new.is_some())
}

fn lost(sent: &mut SentPackets, now_ms: u64, delay_ms: u64) -> Vec<u64> {
    let mut lost = Vec::new();
    let now = Instant::from_nanos(now_ms * 1_000_000);
    let thresholds = Thresholds { delay: Duration::from_millis(delay_ms), packets: Some(3) };
    sent.detect_lost(now, &thresholds, &mut lost);
    let numbers = lost.iter().map(|record| record.pn.0).collect();
    for record in lost {
        sent.remember_lost(record);
    }
    numbers
}

#[test]
fn the_last_packet_number_is_not_used() {
    let mut sent = SentPackets { next: varint::MAX - 2, ..SentPackets::default() };
    assert!(!sent.is_used_up());
    assert_eq!(send(&mut sent, 0), varint::MAX - 2);
    assert_eq!(send(&mut sent, 0), varint::MAX - 1);
    assert!(sent.is_used_up());
}

#[test]
fn acknowledged_packets_come_out_once_in_order() {
    let mut sent = SentPackets::default();
    for at in 0..6 {
        send(&mut sent, at);
    }
    assert_eq!(ack(&mut sent, &[(4, 5), (1, 2)]), (vec![1, 2, 4, 5], vec![], true));
    assert_eq!(ack(&mut sent, &[(4, 5), (1, 3)]), (vec![3], vec![], false));
    assert_eq!(sent.in_flight(), Bytes(1200));
}

#[test]
fn three_later_packets_or_time_declare_a_packet_lost() {
    let mut sent = SentPackets::default();
    for at in 0..5 {
        send(&mut sent, at);
    }
    ack(&mut sent, &[(3, 3)]);
    assert_eq!(lost(&mut sent, 10, 100), [0]);
    assert_eq!(sent.loss_time, Some(Instant::from_nanos(101_000_000)));
    assert_eq!(lost(&mut sent, 101, 100), [1]);
    assert_eq!(lost(&mut sent, 200, 100), [2]);
    assert_eq!(sent.loss_time, None);
}

#[test]
fn a_late_acknowledgement_finds_the_lost_packet() {
    let mut sent = SentPackets::default();
    for at in 0..5 {
        send(&mut sent, at);
    }
    ack(&mut sent, &[(4, 4)]);
    assert_eq!(lost(&mut sent, 10, 100), [0, 1]);
    assert_eq!(ack(&mut sent, &[(0, 4)]), (vec![2, 3], vec![0, 1], false));
}

#[test]
fn numbers_that_were_not_kept_leave_gaps() {
    let mut sent = SentPackets::default();
    send(&mut sent, 0);
    sent.take_pn(|| 0);
    sent.take_pn(|| 0);
    send(&mut sent, 1);
    assert_eq!(sent.next_after(Some(PacketNumber(0))).map(|r| r.pn.0), Some(3));
    assert_eq!(ack(&mut sent, &[(1, 3)]), (vec![3], vec![], true));
    assert_eq!(ack(&mut sent, &[(0, 0)]), (vec![0], vec![], true));
}

#[test]
fn a_skipped_number_does_not_count_as_a_packet_in_between() {
    let mut sent = SentPackets::with_skips();
    // With this draw, 65 is the first number that is skipped.
    for at in 0..70 {
        send(&mut sent, at);
    }
    assert_eq!(sent.next_pn(), PacketNumber(71));
    ack(&mut sent, &[(67, 67), (0, 63)]);
    assert_eq!(lost(&mut sent, 80, 100), []);
    ack(&mut sent, &[(68, 68)]);
    assert_eq!(lost(&mut sent, 80, 100), [64]);
    assert!(sent.any_unused([(67, 68), (65, 65)].into_iter()));
    assert!(!sent.any_unused([(66, 68), (0, 64)].into_iter()));
}

#[test]
fn packets_that_wait_behind_a_hole_cost_nothing_at_each_acknowledgement() {
    const PACKETS: u64 = 20_000;
    crate::cost::grows_in_proportion(8, |times| {
        let mut sent = SentPackets::default();
        let packets = PACKETS * times as u64;
        for _ in 0..packets {
            send(&mut sent, 0);
        }
        let thresholds = Thresholds { delay: Duration::from_millis(100), packets: None };
        let (mut acked, mut gone) = (Vec::new(), Vec::new());
        for pn in 1..packets {
            sent.on_ack([(pn, pn)].into_iter(), &mut acked, &mut gone);
            sent.detect_lost(Instant::ZERO, &thresholds, &mut gone);
            acked.clear();
        }
        assert!(gone.is_empty());
    });
}

proptest! {
    #[test]
    fn every_packet_is_settled_exactly_once(
        kept in proptest::collection::vec(any::<bool>(), 1..60),
        acks in proptest::collection::vec((0u64..60, 0u64..8), 1..40),
    ) {
        let mut sent = SentPackets::default();
        let mut open = std::collections::BTreeSet::new();
        for keep in kept {
            if keep { open.insert(send(&mut sent, 0)); } else { sent.take_pn(|| 0); }
        }
        let last = sent.next_pn().0 - 1;
        for (start, len) in acks {
            let start = start.min(last);
            let end = (start + len).min(last);
            let (acked, _, _) = ack(&mut sent, &[(start, end)]);
            let expected: Vec<u64> = open.range(start..=end).copied().collect();
            prop_assert_eq!(&acked, &expected);
            open.retain(|pn| !expected.contains(pn));
            prop_assert_eq!(sent.in_flight(), Bytes(1200 * open.len() as u64));
        }
        let left: Vec<u64> = sent.drain().iter().map(|record| record.pn.0).collect();
        prop_assert_eq!(left, open.into_iter().collect::<Vec<_>>());
    }
}

/// On a path from which nothing returned, probes were kept for as long as the connection lived.
#[test]
fn probes_of_a_silent_path_are_forgotten_but_for_the_last() {
    let mut sent = SentPackets::default();
    let piece = Piece {
        stream: StreamKey { slot: 0, id: quipu_base::StreamId(0) },
        span: Span::new(quipu_base::Offset(0), quipu_base::Offset(100)),
        kind: quipu_policy::Kind::Fresh,
    };
    let mut in_flight = Bytes::ZERO;
    for at in 0..1_000 {
        let mut record = SentRecord::new(sent.take_pn(|| 0), Instant::from_nanos(at));
        record.add_piece(piece, false);
        record.bytes = 100;
        record.ack_eliciting = true;
        record.requeued = true;
        // The first three are what the others repeat.
        record.repeats = at >= 3;
        if record.repeats {
            in_flight -= sent.make_room_for_probe();
        }
        in_flight += Bytes(100);
        sent.on_sent(&mut record);
    }
    let kept: Vec<u64> = sent.iter().map(|record| record.pn.0).collect();
    let last = 1_000 - MAX_SPENT as u64..1_000;
    assert_eq!(kept, [0, 1, 2].into_iter().chain(last).collect::<Vec<_>>());
    assert_eq!(in_flight, Bytes(100 * kept.len() as u64));
    assert_eq!(sent.in_flight(), in_flight);
    // What is acknowledged then is found.
    assert_eq!(ack(&mut sent, &[(998, 998), (1, 500)]), (vec![1, 2, 998], vec![], true));
    assert_eq!(lost(&mut sent, 1, 1_000).first(), Some(&0));
}
