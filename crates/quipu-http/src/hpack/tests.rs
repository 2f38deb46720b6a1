//! Vectors of the RFC, foreign implementations as judges, and properties.

use proptest::prelude::*;

use super::*;
use crate::field::FieldList;
use crate::field::example::browser_request;
use crate::field::integer::IntegerError;
use crate::field::string::StringError;

const NO_LIMIT: u64 = u64::MAX;

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<FieldList, DecodeError> {
    let mut fields = FieldList::new();
    assert_eq!(decoder.decode(block, &mut fields)?, Outcome::Complete);
    Ok(fields)
}

fn encoded(encoder: &mut Encoder, fields: &FieldList) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.encode(fields, &mut block);
    block
}

fn list(fields: &[(&str, &str)]) -> FieldList {
    fields.iter().copied().collect()
}

const C3_1: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const C3_2: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "www.example.com"),
    ("cache-control", "no-cache"),
];
const C3_3: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
];
const C5_1: &[(&str, &str)] = &[
    (":status", "302"),
    ("cache-control", "private"),
    ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ("location", "https://www.example.com"),
];
const C5_2: &[(&str, &str)] = &[
    (":status", "307"),
    ("cache-control", "private"),
    ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ("location", "https://www.example.com"),
];
const C5_3: &[(&str, &str)] = &[
    (":status", "200"),
    ("cache-control", "private"),
    ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
    ("location", "https://www.example.com"),
    ("content-encoding", "gzip"),
    ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
];

/// <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.2>
#[test]
fn single_fields_of_the_rfc() {
    for (hex, name, value) in [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key", "custom-header"),
        ("040c2f73616d706c652f70617468", ":path", "/sample/path"),
        ("100870617373776f726406736563726574", "password", "secret"),
        ("82", ":method", "GET"),
    ] {
        let fields = decoded(&mut Decoder::new(NO_LIMIT), &octets(hex)).unwrap();
        let field = fields.iter().next().unwrap();
        assert_eq!((field.name, field.value), (name.as_bytes(), value.as_bytes()));
        assert_eq!(field.sensitive, name == "password");
    }
}

/// <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.3> and C.4, without and with Huffman code.
#[test]
fn requests_of_the_rfc() {
    for [first, second, third] in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ] {
        let mut decoder = Decoder::new(NO_LIMIT);
        assert_eq!(decoded(&mut decoder, &octets(first)), Ok(list(C3_1)));
        assert_eq!(decoded(&mut decoder, &octets(second)), Ok(list(C3_2)));
        assert_eq!(decoded(&mut decoder, &octets(third)), Ok(list(C3_3)));
    }
}

/// <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.4>: the choices of the RFC are those of our
/// encoder.
#[test]
fn requests_are_encoded_as_in_the_rfc() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let first = octets("828684418cf1e3c2e5f23a6ba0ab90f4ff");
    assert_eq!(encoded(&mut encoder, &list(C3_1)), first);
    assert_eq!(encoded(&mut encoder, &list(C3_2)), octets("828684be5886a8eb10649cbf"));
    let third = octets("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf");
    assert_eq!(encoded(&mut encoder, &list(C3_3)), third);
}

/// <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.5> and C.6, where a table of 256 octets evicts.
#[test]
fn responses_of_the_rfc() {
    for [first, second, third] in [
        [
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54\
             6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            "4803333037c1c0bf",
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f\
             3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076\
             657273696f6e3d31",
        ],
        [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad17186\
             3c78f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335df\
             dfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ],
    ] {
        let mut decoder = Decoder::new(NO_LIMIT);
        decoder.table_capacity_for_test(256);
        assert_eq!(decoded(&mut decoder, &octets(first)), Ok(list(C5_1)));
        assert_eq!(decoded(&mut decoder, &octets(second)), Ok(list(C5_2)));
        assert_eq!(decoded(&mut decoder, &octets(third)), Ok(list(C5_3)));
    }
}

#[test]
fn malformed_blocks_are_errors() {
    let truncated = StringError::Length(IntegerError::Truncated);
    for (block, error) in [
        (&[0x80][..], DecodeError::IndexOutOfRange { index: 0, last: 61 }),
        (&[0xbe], DecodeError::IndexOutOfRange { index: 62, last: 61 }),
        (&[0x7f, 0x00], DecodeError::IndexOutOfRange { index: 63, last: 61 }),
        (&[0xff], DecodeError::Integer(IntegerError::Truncated)),
        (&[0x41], DecodeError::String(truncated)),
        (&[0x40, 0x01], DecodeError::String(StringError::Truncated)),
        (&[0x3f, 0xe2, 0x1f], DecodeError::TableSizeTooLarge { size: 4097, limit: 4096 }),
        (&[0x82, 0x20], DecodeError::TableSizeMisplaced),
    ] {
        assert_eq!(decoded(&mut Decoder::new(NO_LIMIT), block), Err(error), "{block:02x?}");
    }
}

#[test]
fn a_lowered_limit_must_be_answered_by_the_next_block() {
    let mut decoder = Decoder::new(NO_LIMIT);
    decoder.set_table_limit(100);
    let missing = DecodeError::TableSizeMissing { limit: 100 };
    assert_eq!(decoded(&mut decoder, &[0x82]), Err(missing));
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    encoder.set_peer_limit(100);
    let block = encoded(&mut encoder, &list(C3_1));
    assert_eq!(decoded(&mut decoder, &block), Ok(list(C3_1)));
}

#[test]
fn the_smallest_and_the_last_table_size_are_told() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    encoder.set_peer_limit(0);
    encoder.set_peer_limit(1 << 20);
    assert_eq!(encoded(&mut encoder, &FieldList::new()), octets("203fe11f"));
    assert_eq!(encoded(&mut encoder, &FieldList::new()), []);
    encoder.set_peer_limit(DEFAULT_TABLE_SIZE);
    assert_eq!(encoded(&mut encoder, &FieldList::new()), []);
}

#[test]
fn an_encoder_with_a_small_table_of_its_own_says_so_at_once() {
    let mut encoder = Encoder::new(0);
    assert_eq!(encoded(&mut encoder, &FieldList::new()), octets("20"));
    encoder.set_peer_limit(u32::MAX);
    assert_eq!(encoded(&mut encoder, &FieldList::new()), []);
}

#[test]
fn secrets_are_never_indexed() {
    let mut fields = FieldList::new();
    fields.push_sensitive("x-token", "secret");
    fields.push("authorization", "secret");
    fields.push("cookie", "short");
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let first = encoded(&mut encoder, &fields);
    assert_eq!(encoded(&mut encoder, &fields), first);
    let fields = decoded(&mut Decoder::new(NO_LIMIT), &first).unwrap();
    assert!(fields.iter().all(|field| field.sensitive));
}

#[test]
fn a_list_beyond_the_limit_is_cut_and_the_table_follows() {
    let big = "x".repeat(200);
    let fields = list(&[("a", "1"), ("b", &big), ("c", "3")]);
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let mut decoder = Decoder::new(100);
    let mut out = FieldList::new();
    let block = encoded(&mut encoder, &fields);
    assert_eq!(decoder.decode(&block, &mut out), Ok(Outcome::TooLarge));
    assert_eq!(out, list(&[("a", "1")]));
    let block = encoded(&mut encoder, &list(&[("c", "3"), ("a", "1")]));
    assert_eq!(block.len(), 2);
    assert_eq!(decoder.decode(&block, &mut out), Ok(Outcome::Complete));
    assert_eq!(out, list(&[("c", "3"), ("a", "1")]));
}

/// A block of 16 kB could name a field of 4 kB sixteen thousand times.
#[test]
fn expansion_is_bounded_by_the_list_limit() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let mut block = encoded(&mut encoder, &list(&[("a", &"x".repeat(3000))]));
    block.extend([0xbe; 16_000]);
    let mut out = FieldList::new();
    assert_eq!(Decoder::new(65_536).decode(&block, &mut out), Ok(Outcome::TooLarge));
    assert!(out.size() <= 65_536);
}

#[test]
fn a_browsers_requests_take_no_more_octets_than_httlib_needs() {
    let mut ours = Encoder::new(DEFAULT_TABLE_SIZE);
    let mut theirs = httlib_hpack::Encoder::with_dynamic_size(DEFAULT_TABLE_SIZE);
    let (mut our_len, mut their_len, mut raw) = (0, 0, 0);
    for index in 0..110 {
        let fields = browser_request(index);
        our_len += encoded(&mut ours, &fields).len();
        let mut block = Vec::new();
        for field in fields.iter() {
            let flags = 0x1 | 0x2 | 0x4 | 0x10;
            theirs.encode((field.name.to_vec(), field.value.to_vec(), flags), &mut block).unwrap();
            raw += field.name.len() + field.value.len();
        }
        their_len += block.len();
    }
    assert!(our_len <= their_len, "ours {our_len}, theirs {their_len}, raw {raw}");
    assert!(our_len * 4 < raw, "ours {our_len}, raw {raw}");
}

#[test]
fn loona_decodes_what_we_encode() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let mut oracle = loona_hpack::Decoder::new();
    for index in 0..200 {
        let fields = browser_request(index);
        let theirs = oracle.decode(&encoded(&mut encoder, &fields)).unwrap();
        assert_eq!(theirs.into_iter().collect::<FieldList>(), fields);
    }
}

#[test]
fn we_decode_what_httlib_and_loona_encode() {
    let mut httlib = httlib_hpack::Encoder::with_dynamic_size(DEFAULT_TABLE_SIZE);
    let mut loona = loona_hpack::Encoder::new();
    let (mut from_httlib, mut from_loona) = (Decoder::new(NO_LIMIT), Decoder::new(NO_LIMIT));
    for index in 0..200 {
        let fields = browser_request(index);
        let mut block = Vec::new();
        for field in fields.iter() {
            let input = (field.name.to_vec(), field.value.to_vec(), 0x1 | 0x2 | 0x4 | 0x10);
            httlib.encode(input, &mut block).unwrap();
        }
        assert_eq!(decoded(&mut from_httlib, &block), Ok(fields.clone()));
        let block = loona.encode(fields.iter().map(|field| (field.name, field.value)));
        assert_eq!(decoded(&mut from_loona, &block), Ok(fields));
    }
}

/// Names and values from a small set, so that tables are hit, and some random ones.
fn field_lists() -> impl Strategy<Value = Vec<Vec<(Vec<u8>, Vec<u8>)>>> {
    let name = prop_oneof![
        Just(b":path".to_vec()),
        Just(b"cookie".to_vec()),
        Just(b"x".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let value = prop_oneof![
        Just(b"/".to_vec()),
        Just(b"1".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..300),
    ];
    // The oracle refuses a block of nothing but table sizes, so that no list is empty.
    proptest::collection::vec(proptest::collection::vec((name, value), 1..12), 1..8)
}

/// A name of the table's size, and then literals that name it by its index: two octets each, and four
/// thousand once they are unpacked.
#[test]
fn a_block_of_literals_that_unpacks_to_megabytes_is_refused() {
    let mut decoder = Decoder::new(65_536);
    let mut fields = FieldList::new();
    // A literal with indexing and a name of 4,000 octets, whose length takes 7 bits and 2 octets.
    let mut block = vec![0x40, 0x7f];
    let left = 4_000 - 127;
    block.extend([(left % 128) as u8 | 0x80, (left / 128) as u8]);
    block.extend([b'x'; 4_000]);
    block.push(0);
    assert_eq!(decoder.decode(&block, &mut fields), Ok(Outcome::Complete));
    // A literal without indexing, the name at index 62, an empty value.
    let bomb = [0x0f, 62 - 15, 0].repeat(20_000);
    let expected = DecodeError::Bomb { limit: 65_536 + (1 << 20) };
    assert_eq!(decoder.decode(&bomb, &mut fields), Err(expected));
    // Three hundred of them are too many for a list, but no bomb.
    let mut decoder = Decoder::new(65_536);
    assert_eq!(decoder.decode(&block, &mut fields), Ok(Outcome::Complete));
    let large = [0x0f, 62 - 15, 0].repeat(250);
    assert_eq!(decoder.decode(&large, &mut fields), Ok(Outcome::TooLarge));
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(lists in field_lists(), sizes in proptest::collection::vec(0_u32..600, 8)) {
        let mut encoder = Encoder::new(500);
        let mut decoder = Decoder::new(NO_LIMIT);
        let mut oracle = loona_hpack::Decoder::new();
        for (fields, size) in lists.into_iter().zip(sizes) {
            let fields: FieldList = fields.into_iter().collect();
            encoder.set_peer_limit(size);
            decoder.set_table_limit(size);
            let block = encoded(&mut encoder, &fields);
            let ours = decoded(&mut decoder, &block).unwrap();
            let values = |list: &FieldList| -> Vec<(Vec<u8>, Vec<u8>)> {
                list.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
            };
            prop_assert_eq!(values(&ours), values(&fields));
            prop_assert_eq!(oracle.decode(&block).unwrap(), values(&fields));
        }
    }

    #[test]
    fn any_octets_decode_or_fail_within_the_limit(blocks in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..300), 1..4)
    ) {
        let mut decoder = Decoder::new(1000);
        let mut fields = FieldList::new();
        for block in blocks {
            let outcome = decoder.decode(&block, &mut fields);
            prop_assert!(fields.size() <= 1000);
            if outcome.is_err() {
                break;
            }
        }
    }

    #[test]
    fn a_damaged_block_decodes_or_fails(index in 0_usize..50, at in any::<proptest::sample::Index>(), bit in 0_u8..8) {
        let mut block = encoded(&mut Encoder::new(DEFAULT_TABLE_SIZE), &browser_request(index));
        let at = at.index(block.len());
        block[at] ^= 1 << bit;
        let mut fields = FieldList::new();
        let _ = Decoder::new(10_000).decode(&block, &mut fields);
    }
}
