//! Acknowledgements of what was not received, or not even sent.

use quipu_base::{Duration, Offset, Role, StreamId};
use quipu_quic::wire::Frame;
use quipu_quic::wire::frame::{EcnCounts, Stream};
use quipu_testkit::forge::{Forge, one_rtt};

use crate::{assert_bounded, setup, setup_for_long_writes};

/// A server that sends ten megabytes to the forger.
fn download() -> Forge {
    let mut forge = Forge::against(Role::Server, &setup_for_long_writes());
    let stream = StreamId(0);
    forge.say([Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: true, data: b"?" })]);
    forge.act(|connection, now| {
        connection.write(now, stream, vec![7; 10_000_000].into()).expect("the stream is open");
    });
    forge
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-13.1>
#[test]
fn an_acknowledgement_of_what_was_never_sent_closes() {
    let mut forge = download();
    let largest = forge.largest_heard(0).expect("something was sent");
    forge.send(one_rtt().ack(Some(0), &[(largest + 1_000, largest + 1_000)]));
    assert!(forge.closed().is_some());
}

/// The forger acknowledges packets that it did not receive, ahead of their arrival, to make the
/// window grow: it knows only that packet numbers are dense.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-21.4>
#[test]
fn optimistic_acknowledgements_are_found_out() {
    let mut forge = download();
    let mut sent = 0;
    let work = forge.cost(|forge| {
        for _ in 0..600 {
            // What is on its way is not looked at: one number after the other is guessed.
            sent = forge.largest_heard(0).expect("something was sent");
            forge.send(one_rtt().ack(Some(0), &[(0, sent)]));
            forge.wait(Duration::from_millis(1));
            if forge.closed().is_some() {
                break;
            }
        }
    });
    assert!(forge.closed().is_some(), "{} bytes were sent", work.bytes_out);
    assert!(work.bytes_out < 5_000_000, "{} bytes were sent", work.bytes_out);
}

/// A packet number that was skipped proves that an acknowledgement is a guess.
#[test]
fn packet_numbers_are_skipped_now_and_then() {
    let mut forge = download().acknowledging();
    forge.wait(Duration::from_secs(10));
    let packets = forge.work().datagrams_out;
    let numbers = forge.largest_heard(0).expect("something was sent");
    assert!(numbers > packets, "{numbers} packet numbers for {packets} packets");
}

/// Each acknowledgement has as many ranges as fit.
#[test]
fn acknowledgements_with_many_ranges_hold_nothing() {
    let mut forge = download();
    let work = forge.cost(|forge| {
        for _ in 0..500 {
            let largest = forge.largest_heard(0).unwrap_or_default();
            let ranges: Vec<(u64, u64)> =
                (0..=largest / 2).rev().take(500).map(|nth| (2 * nth, 2 * nth)).collect();
            forge.send(one_rtt().ack(Some(0), &ranges));
            forge.wait(Duration::from_millis(1));
        }
    });
    println!("{work:?}");
    assert_eq!(forge.victim().stuck(), None);
    assert!(work.held < 2_000_000, "{} bytes held", work.held);
}

/// Delays that no clock can show must not make round-trip times negative or endless.
#[test]
fn absurd_delays_change_no_deadline() {
    for delay in [1, 1 << 20, (1 << 62) - 1] {
        let mut forge = download();
        for _ in 0..50 {
            forge.wait(Duration::from_millis(10));
            let largest = forge.largest_heard(0).unwrap_or_default();
            forge.send(one_rtt().ack_with(Some(0), delay, &[(0, largest)], None));
        }
        assert_eq!(forge.victim().stuck(), None);
        if forge.closed().is_none() {
            let deadline = forge.victim().deadline().expect("packets are in flight");
            assert!(deadline <= forge.now() + Duration::from_secs(30), "{deadline}");
        }
    }
}

/// ECN counts that fall, or count more than was sent, switch marking off and do no more.
#[test]
fn forged_ecn_counts_do_no_harm() {
    let mut setup = setup();
    setup.server.ecn = true;
    let mut forge = Forge::against(Role::Server, &setup);
    let stream = StreamId(0);
    forge.say([Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: true, data: b"?" })]);
    forge.act(|connection, now| {
        connection.write(now, stream, vec![7; 1_000_000].into()).expect("the stream is open");
    });
    for round in 0..200u64 {
        let heard = forge.heard_numbers(0);
        let ce = [0, 1 << 40, 3][(round % 3) as usize];
        let counts = EcnCounts { ect0: 200 - round, ect1: round, ce };
        forge.send(one_rtt().ack_with(Some(0), 0, &heard, Some(counts)));
        forge.wait(Duration::from_millis(5));
    }
    assert_eq!(forge.closed(), None);
    assert_eq!(forge.victim().stuck(), None);
}

/// Packets that skip many numbers make ranges to acknowledge: their list is bounded, and so is what
/// each acknowledgement takes.
#[test]
fn packet_numbers_with_gaps_make_a_bounded_list() {
    let mut forge = Forge::against(Role::Server, &setup());
    let work = forge.cost(|forge| {
        for _ in 0..5_000 {
            let number = quipu_testkit::forge::Number::Skip(1);
            forge.send(one_rtt().numbered(number).frame(Frame::Ping));
        }
        forge.wait(Duration::from_secs(1));
    });
    assert_bounded(work, 32_000, 64_000, 40.0);
}
