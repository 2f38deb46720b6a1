//! What a hostile peer may send.

use proptest::prelude::*;

use super::*;
use crate::field::example::browser_request;
use crate::field::huffman::HuffmanError;
use crate::field::integer::IntegerError;
use crate::field::string::StringError;

/// A decoder whose table of 128 octets has lost the first of four entries: "b", "c" and "d" are left.
fn decoder() -> Decoder {
    let mut decoder = Decoder::new(128, 16, NO_LIMIT);
    decoder.on_encoder_stream(&octets("3f61 416101 30 416201 30 416301 30 416401 30")).unwrap();
    assert_eq!((decoder.table_for_test().len(), decoder.inserted()), (3, 4));
    decoder
}

#[test]
fn malformed_sections_are_errors() {
    let truncated = DecodeError::Integer(IntegerError::Truncated);
    for (hex, error) in [
        ("", truncated),
        ("00", truncated),
        ("ff", truncated),
        ("00ff", truncated),
        ("0000ff", truncated),
        ("000051", DecodeError::String(StringError::Length(IntegerError::Truncated))),
        ("00005101", DecodeError::String(StringError::Truncated)),
        ("000021", DecodeError::String(StringError::Truncated)),
        ("00005181ff", DecodeError::String(StringError::Huffman(HuffmanError::Padding))),
        // Four entries at most, so that counts up to eight can be encoded.
        ("0900", DecodeError::RequiredInsertCount { encoded: 9 }),
        ("ff80ffffffffffffff7f00", DecodeError::Integer(IntegerError::TooLarge)),
        // The Base of four insertions minus four minus one.
        ("0584", DecodeError::NegativeBase { required: 4, delta: 4 }),
        ("0080", DecodeError::NegativeBase { required: 0, delta: 0 }),
        // The static table ends at 98.
        ("0000ff24", DecodeError::StaticIndex { index: 99 }),
        ("00005f5400", DecodeError::StaticIndex { index: 99 }),
        // No entry before the first.
        ("050084", DecodeError::RelativeIndex { index: 4, base: 4 }),
        ("05004400", DecodeError::RelativeIndex { index: 4, base: 4 }),
        // Entry 0 is gone.
        ("050083", DecodeError::Evicted { index: 0 }),
        ("05004300", DecodeError::Evicted { index: 0 }),
        ("058310", DecodeError::Evicted { index: 0 }),
        ("05830000", DecodeError::Evicted { index: 0 }),
        // Entry 3 is there, but the section promised not to need it.
        ("040180", DecodeError::BeyondRequired { index: 3, required: 3 }),
        ("04014000", DecodeError::BeyondRequired { index: 3, required: 3 }),
        ("040010", DecodeError::BeyondRequired { index: 3, required: 3 }),
        ("04000000", DecodeError::BeyondRequired { index: 3, required: 3 }),
        ("000080", DecodeError::RelativeIndex { index: 0, base: 0 }),
        ("000010", DecodeError::BeyondRequired { index: 0, required: 0 }),
    ] {
        let mut decoder = decoder();
        assert_eq!(decoded(&mut decoder, 0, &octets(hex)), Err(error), "{hex}");
    }
}

#[test]
fn all_representations_are_decoded() {
    let expected = list(&[("d", "0"), ("d", "1"), ("c", "0"), ("c", "1"), ("x", "2")]);
    // Base 3: entry 3 after it, entry 2 before it.
    let section = octets("0580 10 000131 80 400131 217801 32");
    assert_eq!(decoded(&mut decoder(), 0, &section), Ok(expected));
    let section = octets("0580 10 080131 80 600131 317801 32");
    let fields = decoded(&mut decoder(), 0, &section).unwrap();
    let sensitive: Vec<bool> = fields.iter().map(|field| field.sensitive).collect();
    assert_eq!(sensitive, [false, true, false, true, true]);
}

/// <https://www.rfc-editor.org/rfc/rfc9204#section-2.2.1>: too large a count may be an error, but is
/// none here.
#[test]
fn a_required_insert_count_larger_than_needed_is_accepted() {
    let mut decoder = decoder();
    assert_eq!(decoded(&mut decoder, 0, &octets("0500c1")), Ok(list(&[(":path", "/")])));
    assert_eq!(decoder.take_instructions().as_deref(), Some(&[0x80][..]));
}

#[test]
fn more_blocked_streams_than_allowed_are_an_error() {
    let mut decoder = Decoder::new(4096, 2, NO_LIMIT);
    for stream in [0, 4, 0] {
        assert_eq!(outcome(&mut decoder, stream, &octets("020080")), Ok(Outcome::Blocked));
    }
    let error = DecodeError::TooManyBlocked { limit: 2 };
    assert_eq!(outcome(&mut decoder, 8, &octets("020080")), Err(error));
    let mut decoder = Decoder::new(4096, 0, NO_LIMIT);
    let error = DecodeError::TooManyBlocked { limit: 0 };
    assert_eq!(outcome(&mut decoder, 0, &octets("020080")), Err(error));
}

#[test]
fn malformed_encoder_instructions_are_errors() {
    let entries = 3;
    for (hex, error) in [
        ("3f62", EncoderStreamError::CapacityTooLarge { capacity: 129, limit: 128 }),
        ("3fffffffffffffffff7f", EncoderStreamError::Integer(IntegerError::TooLarge)),
        ("ff2400", EncoderStreamError::StaticIndex { index: 99 }),
        ("8300", EncoderStreamError::DynamicIndex { index: 3, entries }),
        ("03", EncoderStreamError::DynamicIndex { index: 3, entries }),
        ("61ff00", EncoderStreamError::Huffman(HuffmanError::Padding)),
        ("c081ff", EncoderStreamError::Huffman(HuffmanError::Padding)),
        // A capacity of 33: no entry of one octet and one octet.
        ("3f02 41610130", EncoderStreamError::EntryTooLarge { size: 34, capacity: 33 }),
        ("3f01 41610131", EncoderStreamError::EntryTooLarge { size: 34, capacity: 32 }),
    ] {
        assert_eq!(decoder().on_encoder_stream(&octets(hex)), Err(error), "{hex}");
    }
}

#[test]
fn an_insertion_into_no_table_is_an_error() {
    let error = EncoderStreamError::EntryTooLarge { size: 32, capacity: 0 };
    assert_eq!(Decoder::new(4096, 0, NO_LIMIT).on_encoder_stream(&octets("4000")), Err(error));
    assert_eq!(Decoder::new(0, 0, NO_LIMIT).on_encoder_stream(&octets("4000")), Err(error));
    assert_eq!(Decoder::new(0, 0, NO_LIMIT).on_encoder_stream(&octets("20")), Ok(()));
    let error = EncoderStreamError::CapacityTooLarge { capacity: 1, limit: 0 };
    assert_eq!(Decoder::new(0, 0, NO_LIMIT).on_encoder_stream(&octets("21")), Err(error));
}

#[test]
fn an_unfinished_instruction_is_bounded() {
    let mut decoder = decoder();
    // A value of a megabyte is announced.
    decoder.on_encoder_stream(&octets("c07fc18040")).unwrap();
    let error = EncoderStreamError::InstructionTooLong { limit: 4 * 128 + 32 };
    let fed = (0..1000).find_map(|_| decoder.on_encoder_stream(b"x").err());
    assert_eq!(fed, Some(error));
}

#[test]
fn malformed_decoder_instructions_are_errors() {
    let nothing = |stream| DecoderStreamError::NothingOutstanding { stream: StreamId(stream) };
    for (hex, error) in [
        ("00", DecoderStreamError::IncrementZero),
        ("84", nothing(4)),
        // Stream 0 has one section.
        ("8080", nothing(0)),
        ("4080", nothing(0)),
        ("02", DecoderStreamError::IncrementTooLarge { increment: 2, known: 0, inserted: 1 }),
        ("8001", DecoderStreamError::IncrementTooLarge { increment: 1, known: 1, inserted: 1 }),
        ("0101", DecoderStreamError::IncrementTooLarge { increment: 1, known: 1, inserted: 1 }),
        ("ffffffffffffffffffff", DecoderStreamError::Integer(IntegerError::TooLarge)),
    ] {
        let (mut encoder, _) = pair(4096, 16);
        encoded(&mut encoder, 0, &list(&[("x", "y")]));
        assert_eq!(encoder.on_decoder_stream(&octets(hex)), Err(error), "{hex}");
    }
    // A section without references is never acknowledged.
    let (mut encoder, _) = pair(4096, 16);
    encoded(&mut encoder, 0, &list(&[(":path", "/")]));
    assert_eq!(encoder.on_decoder_stream(&[0x80]), Err(nothing(0)));
}

#[test]
fn decoder_instructions_may_be_cut_anywhere() {
    let (mut encoder, _) = pair(4096, 16);
    encoded(&mut encoder, 1000, &list(&[("x", "y")]));
    let instruction = octets("ffe906");
    for octet in instruction {
        assert_eq!(encoder.outstanding_for_test(), 1);
        encoder.on_decoder_stream(&[octet]).unwrap();
    }
    assert_eq!(encoder.outstanding_for_test(), 0);
}

fn any_octets() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #[test]
    fn any_octets_decode_or_fail_within_the_limit(
        inputs in proptest::collection::vec((any::<bool>(), any_octets()), 1..6),
    ) {
        let mut decoder = Decoder::new(1000, 2, 1000);
        decoder.on_encoder_stream(&octets("3fc907")).unwrap();
        let mut fields = FieldList::new();
        for (stream, (is_section, input)) in inputs.into_iter().enumerate() {
            if is_section {
                let outcome = decoder.decode(StreamId(stream as u64), &input, &mut fields);
                prop_assert!(fields.size() <= 1000);
                if outcome.is_err() {
                    break;
                }
            } else if decoder.on_encoder_stream(&input).is_err() {
                break;
            }
            prop_assert!(decoder.table_for_test().size() <= 1000);
        }
    }

    #[test]
    fn any_decoder_instructions_are_followed_or_fail(inputs in proptest::collection::vec(any_octets(), 1..4)) {
        let (mut encoder, _) = pair(4096, 16);
        for (index, input) in inputs.iter().enumerate() {
            encoded(&mut encoder, index as u64, &browser_request(index));
            if encoder.on_decoder_stream(input).is_err() {
                break;
            }
            prop_assert!(encoder.has_what_it_must_for_test());
        }
    }

    #[test]
    fn damaged_octets_decode_or_fail(
        index in 0_usize..50,
        is_section in any::<bool>(),
        at in any::<proptest::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let (mut encoder, mut decoder) = pair(4096, 16);
        let mut section = encoded(&mut encoder, 0, &browser_request(index));
        let mut instructions = encoder.take_instructions().unwrap().to_vec();
        let damaged = if is_section { &mut section } else { &mut instructions };
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        if decoder.on_encoder_stream(&instructions).is_ok() {
            let _ = outcome(&mut decoder, 0, &section);
        }
    }
}
