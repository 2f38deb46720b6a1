use proptest::prelude::*;

use super::*;

/// Reads all that is in order.
fn read_all(receive: &mut CryptoReceive) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(bytes) = receive.next() {
        read.extend_from_slice(bytes);
        receive.advance();
    }
    read
}

fn span(start: u64, end: u64) -> Span {
    Span::new(Offset(start), Offset(end))
}

#[test]
fn messages_come_out_in_order_whatever_the_order_of_frames() {
    let mut receive = CryptoReceive::default();
    receive.on_frame(4, b"efgh").unwrap();
    assert_eq!(receive.next(), None);
    receive.on_frame(0, b"abcd").unwrap();
    assert_eq!(read_all(&mut receive), b"abcdefgh");
    receive.on_frame(2, b"cdefghij").unwrap();
    assert_eq!(read_all(&mut receive), b"ij");
}

#[test]
fn bytes_too_far_out_of_order_are_refused() {
    let mut receive = CryptoReceive::default();
    let error = receive.on_frame(MAX_BUFFERED, b"x").unwrap_err();
    assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
    assert!(receive.on_frame(u64::MAX - 1, b"xyz").is_err());
    assert_eq!(receive.bytes.capacity(), 0);
}

#[test]
fn a_byte_far_out_of_order_holds_no_memory_for_those_before_it() {
    let mut receive = CryptoReceive::default();
    receive.on_frame(MAX_BUFFERED - 1, b"x").unwrap();
    assert!(receive.bytes.capacity() <= 8);
}

#[test]
fn single_bytes_at_odd_offsets_are_refused_before_they_cost_much() {
    let mut receive = CryptoReceive::default();
    let accepted = (0..MAX_BUFFERED / 2).take_while(|n| receive.on_frame(2 * n + 1, b"x").is_ok());
    assert_eq!(accepted.count(), MAX_PIECES);
    assert!(receive.bytes.capacity() <= 4 * MAX_PIECES);
}

#[test]
fn a_flight_that_arrives_backwards_is_taken() {
    let flight: Vec<u8> = (0..MAX_BUFFERED).map(|at| at as u8).collect();
    let mut receive = CryptoReceive::default();
    let mut datagrams: Vec<_> = flight.chunks(1_100).enumerate().collect();
    datagrams.reverse();
    for (index, bytes) in datagrams {
        receive.on_frame(index as u64 * 1_100, bytes).unwrap();
    }
    assert_eq!(read_all(&mut receive), flight);
}

#[test]
fn bytes_that_were_read_are_let_go_while_others_wait() {
    let mut receive = CryptoReceive::default();
    for at in 0..1_000_u64 {
        let start = at * 1_000;
        // The last byte of the next kilobyte is always there before the rest.
        receive.on_frame(start + 1_999, b"x").unwrap();
        receive.on_frame(start, &[7; 1_000]).unwrap();
        assert!(!read_all(&mut receive).is_empty());
        assert!(receive.bytes.capacity() <= 4 * SLACK, "{} bytes", receive.bytes.capacity());
    }
    assert_eq!(receive.read, 1_000_000);
}

#[test]
fn nothing_new_is_taken_at_a_level_that_is_over() {
    let mut receive = CryptoReceive::default();
    receive.on_frame(0, b"abcd").unwrap();
    read_all(&mut receive);
    receive.close().unwrap();
    receive.on_frame(1, b"bcd").unwrap();
    let error = receive.on_frame(1, b"bcde").unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn bytes_that_tls_did_not_read_at_a_level_break_the_protocol() {
    let mut receive = CryptoReceive::default();
    receive.on_frame(2, b"cd").unwrap();
    assert_eq!(receive.close().unwrap_err().code, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn lost_bytes_are_sent_again_unless_acknowledged() {
    let mut send = CryptoSend::default();
    send.write_with(|out| out.extend(b"0123456789"));
    send.on_sent(span(0, 10));
    assert!(!send.is_pending());
    send.on_acked(span(4, 6));
    send.on_lost(span(0, 10));
    assert_eq!(send.next(100), Some((Offset(0), b"0123".as_slice())));
    send.on_sent(span(0, 4));
    assert_eq!(send.next(2), Some((Offset(6), b"67".as_slice())));
}

#[test]
fn what_the_peer_has_is_not_kept() {
    let mut send = CryptoSend::default();
    send.write_with(|out| out.extend([1; 3_000]));
    send.on_sent(span(0, 3_000));
    send.on_acked(span(1_000, 2_000));
    assert_eq!(send.data.len(), 3_000);
    send.on_acked(span(0, 1_000));
    assert_eq!(send.data.len(), 1_000);
    send.on_lost(span(0, 3_000));
    assert_eq!(send.next(1), Some((Offset(2_000), &[1][..])));
    send.on_acked(span(2_000, 3_000));
    assert_eq!(send.data.capacity(), 0);
    send.write_with(|out| out.extend(b"tickets"));
    assert_eq!(send.next(100), Some((Offset(3_000), b"tickets".as_slice())));
}

proptest! {
    #[test]
    fn any_frames_of_a_text_give_the_text(
        frames in prop::collection::vec((0u64..200, 1usize..40), 1..30),
    ) {
        let text: Vec<u8> = (0..240_u64).map(|at| (at * 7) as u8).collect();
        let mut receive = CryptoReceive::default();
        let mut came = [false; 240];
        let mut read = Vec::new();
        for (offset, length) in frames {
            let range = offset as usize..offset as usize + length;
            receive.on_frame(offset, &text[range.clone()]).unwrap();
            came[range].fill(true);
            read.extend(read_all(&mut receive));
            let in_order = came.iter().take_while(|came| **came).count();
            prop_assert_eq!(&read[..], &text[..in_order]);
            let held = came[in_order..].iter().filter(|came| **came).count();
            prop_assert_eq!(receive.held, held);
        }
    }
}
