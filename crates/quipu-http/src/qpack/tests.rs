//! Examples of the RFC, hostile peers, and exchanges in any order.

use quipu_base::StreamId;

use super::*;
use crate::field::FieldList;

mod errors;
mod exchange;
mod vectors;

const NO_LIMIT: u64 = u64::MAX;

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn list(fields: &[(&str, &str)]) -> FieldList {
    fields.iter().copied().collect()
}

fn encoded(encoder: &mut Encoder, stream: u64, fields: &FieldList) -> Vec<u8> {
    let mut section = Vec::new();
    encoder.encode(StreamId(stream), fields, &mut section);
    section
}

fn decoded(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<FieldList, DecodeError> {
    let mut fields = FieldList::new();
    let outcome = decoder.decode(StreamId(stream), section, &mut fields)?;
    assert_eq!(outcome, Outcome::Complete);
    Ok(fields)
}

fn outcome(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<Outcome, DecodeError> {
    decoder.decode(StreamId(stream), section, &mut FieldList::new())
}

/// An encoder that knows its peer's settings, and a decoder that has followed them.
fn pair(capacity: u32, blocked: u16) -> (Encoder, Decoder) {
    let mut encoder = Encoder::new(capacity);
    encoder.on_peer_settings(capacity.into(), blocked.into());
    let mut decoder = Decoder::new(capacity, blocked, NO_LIMIT);
    pass_instructions(&mut encoder, &mut decoder);
    (encoder, decoder)
}

/// Passes what the encoder stream carries.
fn pass_instructions(encoder: &mut Encoder, decoder: &mut Decoder) {
    if let Some(instructions) = encoder.take_instructions() {
        decoder.on_encoder_stream(&instructions).unwrap();
    }
}

/// Passes what the decoder stream carries.
fn pass_acknowledgments(decoder: &mut Decoder, encoder: &mut Encoder) {
    if let Some(instructions) = decoder.take_instructions() {
        encoder.on_decoder_stream(&instructions).unwrap();
    }
}

#[test]
fn nothing_dynamic_is_used_before_the_peers_settings() {
    let mut encoder = Encoder::new(4096);
    let fields = list(&[(":method", "GET"), ("x", "y")]);
    let section = encoded(&mut encoder, 0, &fields);
    assert_eq!(encoder.take_instructions(), None);
    assert_eq!(decoded(&mut Decoder::new(0, 0, NO_LIMIT), 0, &section), Ok(fields.clone()));
    // A cancellation may come before the settings.
    encoder.on_decoder_stream(&[0x40]).unwrap();
    encoder.on_peer_settings(0, 100);
    encoded(&mut encoder, 4, &fields);
    assert_eq!(encoder.take_instructions(), None);
    assert_eq!((encoder.inserted(), encoder.references()), (0, 0));
}

#[test]
fn settings_may_grow_after_early_data() {
    let mut encoder = Encoder::new(4096);
    encoder.on_peer_settings(0, 0);
    encoder.on_peer_settings(1 << 40, 16);
    assert_eq!(encoder.take_instructions().as_deref(), Some(&octets("3fe11f")[..]));
    encoder.on_peer_settings(100, 1);
    assert_eq!(encoder.take_instructions(), None);
}

#[test]
fn secrets_are_never_indexed() {
    let mut fields = FieldList::new();
    fields.push_sensitive("x-token", "secret");
    fields.push("authorization", "secret");
    fields.push("cookie", "short");
    let (mut encoder, mut decoder) = pair(4096, 16);
    let section = encoded(&mut encoder, 0, &fields);
    assert_eq!(encoder.inserted(), 0);
    let fields = decoded(&mut decoder, 0, &section).unwrap();
    assert_eq!(fields.len(), 3);
    assert!(fields.iter().all(|field| field.sensitive));
}

/// Every entry stands in the table as the RFC has it, and is found there.
#[test]
fn the_static_table_is_searched() {
    let (mut encoder, mut decoder) = pair(0, 0);
    for index in 0..99_u8 {
        let index = u64::from(index);
        let (name, value) = static_table::static_entry(index).unwrap();
        let mut fields = FieldList::new();
        fields.push(name, value);
        let section = encoded(&mut encoder, 0, &fields);
        if !matches!(name, b"authorization" | b"cookie") {
            let mut expected = vec![0, 0];
            crate::field::integer::encode(6, 0xc0, index, &mut expected);
            assert_eq!(section, expected);
        }
        let out = decoded(&mut decoder, 0, &section).unwrap();
        assert_eq!(out.get(name), Some(value));
    }
}

#[test]
fn streams_at_risk_are_limited() {
    let (mut encoder, mut decoder) = pair(4096, 1);
    let fields = list(&[("x", "y")]);
    // Stream 0 is allowed to wait for the insertion, stream 4 is not, stream 0 is again.
    let indexed = octets("028010");
    assert_eq!(encoded(&mut encoder, 0, &fields), indexed);
    assert_eq!(encoded(&mut encoder, 4, &fields)[..2], [0, 0]);
    assert_eq!(encoded(&mut encoder, 0, &fields), octets("020080"));
    assert_eq!(encoder.inserted(), 1);
    pass_instructions(&mut encoder, &mut decoder);
    pass_acknowledgments(&mut decoder, &mut encoder);
    assert_eq!(encoded(&mut encoder, 4, &fields), octets("020080"));
    assert_eq!(encoded(&mut encoder, 8, &fields), octets("020080"));
    assert_eq!(encoder.references(), 4);
}

#[test]
fn a_peer_that_lets_no_stream_block_profits_once_insertions_are_known() {
    let (mut encoder, mut decoder) = pair(4096, 0);
    let fields = list(&[("x-some-name", "some value")]);
    let literal = encoded(&mut encoder, 0, &fields);
    assert_eq!(decoded(&mut decoder, 0, &literal), Ok(fields.clone()));
    pass_instructions(&mut encoder, &mut decoder);
    // The increment is still on its way, and nothing is inserted twice.
    assert_eq!(encoded(&mut encoder, 4, &fields), literal);
    assert_eq!(encoder.take_instructions(), None);
    pass_acknowledgments(&mut decoder, &mut encoder);
    let section = encoded(&mut encoder, 8, &fields);
    assert_eq!(section, octets("020080"));
    assert_eq!(decoded(&mut decoder, 8, &section), Ok(fields));
}

/// A table for three entries: neither what is in flight nor what is referred to leaves.
#[test]
fn entries_that_are_needed_are_not_evicted() {
    let (mut encoder, mut decoder) = pair(110, 16);
    for name in ["a", "b", "c"] {
        encoded(&mut encoder, 0, &list(&[(name, "1")]));
    }
    assert_eq!(encoder.inserted(), 3);
    let literal = encoded(&mut encoder, 4, &list(&[("d", "1")]));
    assert_eq!((encoder.inserted(), &literal[..2]), (3, &[0, 0][..]));
    // All have arrived, but three sections still refer to them.
    pass_instructions(&mut encoder, &mut decoder);
    pass_acknowledgments(&mut decoder, &mut encoder);
    encoded(&mut encoder, 4, &list(&[("d", "1")]));
    assert_eq!(encoder.inserted(), 3);
    // The decoder gives up stream 0: all references are gone.
    decoder.cancel(StreamId(0));
    pass_acknowledgments(&mut decoder, &mut encoder);
    let section = encoded(&mut encoder, 4, &list(&[("d", "1")]));
    assert_eq!(encoder.inserted(), 4);
    pass_instructions(&mut encoder, &mut decoder);
    assert_eq!(decoded(&mut decoder, 4, &section), Ok(list(&[("d", "1")])));
}

/// The second field of a section must not push out the first.
#[test]
fn a_section_does_not_evict_its_own_entries() {
    let (mut encoder, mut decoder) = pair(100, 16);
    let fields = list(&[("a", "1"), ("b", "1"), ("c", "1"), ("a", "1")]);
    for stream in [0, 4, 8, 12] {
        let section = encoded(&mut encoder, stream, &fields);
        pass_instructions(&mut encoder, &mut decoder);
        assert_eq!(decoded(&mut decoder, stream, &section), Ok(fields.clone()));
        pass_acknowledgments(&mut decoder, &mut encoder);
    }
}

#[test]
fn a_peer_that_acknowledges_nothing_costs_a_bounded_number_of_records() {
    let (mut encoder, mut decoder) = pair(4096, u16::MAX);
    let fields = list(&[("x", "y")]);
    for stream in 0..3_000 {
        encoded(&mut encoder, 4 * stream, &fields);
    }
    assert_eq!(encoder.outstanding_for_test(), 1024);
    assert_eq!(encoder.references(), 1024);
    pass_instructions(&mut encoder, &mut decoder);
    decoder.cancel(StreamId(0));
    pass_acknowledgments(&mut decoder, &mut encoder);
    // The cancelled stream has no further use for the table, others have.
    encoded(&mut encoder, 0, &fields);
    assert_eq!(encoder.references(), 1024);
    encoded(&mut encoder, 12_000, &fields);
    assert_eq!(encoder.references(), 1025);
}

#[test]
fn sections_wait_for_their_insertions() {
    let (mut encoder, mut decoder) = pair(4096, 2);
    let (first, second) = (list(&[("a", "1")]), list(&[("a", "1"), ("b", "2")]));
    let first_section = encoded(&mut encoder, 0, &first);
    let first_instructions = encoder.take_instructions().unwrap();
    let second_section = encoded(&mut encoder, 4, &second);
    assert_eq!(outcome(&mut decoder, 4, &second_section), Ok(Outcome::Blocked));
    assert_eq!(outcome(&mut decoder, 0, &first_section), Ok(Outcome::Blocked));
    // The same stream again is no third.
    assert_eq!(outcome(&mut decoder, 0, &first_section), Ok(Outcome::Blocked));
    assert_eq!(decoder.poll_unblocked(), None);
    for octet in first_instructions {
        decoder.on_encoder_stream(&[octet]).unwrap();
    }
    assert_eq!(decoder.poll_unblocked(), Some(StreamId(0)));
    assert_eq!(decoder.poll_unblocked(), None);
    assert_eq!(decoded(&mut decoder, 0, &first_section), Ok(first));
    pass_instructions(&mut encoder, &mut decoder);
    assert_eq!(decoder.poll_unblocked(), Some(StreamId(4)));
    assert_eq!(decoded(&mut decoder, 4, &second_section), Ok(second));
    // Both acknowledgments, and no increment beyond them.
    assert_eq!(decoder.take_instructions().as_deref(), Some(&[0x80, 0x84][..]));
    encoder.on_decoder_stream(&[0x80, 0x84]).unwrap();
    assert_eq!(encoder.outstanding_for_test(), 0);
}

#[test]
fn a_cancelled_stream_is_not_blocked_any_more() {
    let (mut encoder, mut decoder) = pair(4096, 16);
    let section = encoded(&mut encoder, 0, &list(&[("a", "1")]));
    assert_eq!(outcome(&mut decoder, 0, &section), Ok(Outcome::Blocked));
    decoder.cancel(StreamId(0));
    pass_instructions(&mut encoder, &mut decoder);
    assert_eq!(decoder.poll_unblocked(), None);
    // Without a table there is nothing to cancel.
    let mut decoder = Decoder::new(0, 0, NO_LIMIT);
    decoder.cancel(StreamId(0));
    assert_eq!(decoder.take_instructions(), None);
}

#[test]
fn a_list_beyond_the_limit_is_cut_and_acknowledged() {
    let (mut encoder, _) = pair(4096, 16);
    let mut decoder = Decoder::new(4096, 16, 100);
    let section =
        encoded(&mut encoder, 0, &list(&[("a", "1"), ("b", &"x".repeat(200)), ("c", "3")]));
    decoder.on_encoder_stream(&octets("3fe11f")).unwrap();
    pass_instructions(&mut encoder, &mut decoder);
    let mut fields = FieldList::new();
    assert_eq!(decoder.decode(StreamId(0), &section, &mut fields), Ok(Outcome::TooLarge));
    assert_eq!(fields, list(&[("a", "1")]));
    pass_acknowledgments(&mut decoder, &mut encoder);
    assert_eq!(encoder.outstanding_for_test(), 0);
    // 32 octets for each field count: two fields of two octets fit, three do not.
    let section = encoded(&mut encoder, 4, &list(&[("a", "1"), ("c", "3"), ("c", "3")]));
    assert_eq!(outcome(&mut decoder, 4, &section), Ok(Outcome::TooLarge));
    let section = encoded(&mut encoder, 4, &list(&[("a", "1"), ("c", "3")]));
    assert_eq!(outcome(&mut decoder, 4, &section), Ok(Outcome::Complete));
}

/// A section of 16 kB could name an entry of 4 kB sixteen thousand times.
#[test]
fn expansion_is_bounded_by_the_list_limit() {
    let (mut encoder, _) = pair(4096, 16);
    let mut decoder = Decoder::new(4096, 16, 65_536);
    let mut section = encoded(&mut encoder, 0, &list(&[("a", &"x".repeat(3000))]));
    decoder.on_encoder_stream(&octets("3fe11f")).unwrap();
    pass_instructions(&mut encoder, &mut decoder);
    let mut fields = FieldList::new();
    section.extend([0x10; 16_000]);
    assert_eq!(decoder.decode(StreamId(0), &section, &mut fields), Ok(Outcome::TooLarge));
    assert!(fields.size() <= 65_536);
    // Literals that take their name from the table do no better.
    section.truncate(2);
    section.extend([0x00, 0x00].repeat(16_000));
    assert_eq!(decoder.decode(StreamId(0), &section, &mut fields), Ok(Outcome::TooLarge));
    assert!(fields.size() <= 65_536);
}
