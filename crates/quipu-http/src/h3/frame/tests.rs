use proptest::prelude::*;

use super::*;

fn settings() -> impl Strategy<Value = Settings> {
    (
        0..=quipu_quic::wire::varint::MAX,
        0..=quipu_quic::wire::varint::MAX,
        proptest::option::of(0..=quipu_quic::wire::varint::MAX),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(table_capacity, blocked_streams, max_field_section, connect, datagrams)| Settings {
                table_capacity,
                blocked_streams,
                max_field_section,
                extended_connect: connect,
                datagrams,
            },
        )
}

/// The payload of the frame that `octets` are.
fn payload(octets: &[u8], expected: u64) -> &[u8] {
    let mut reader = quipu_quic::wire::Reader::new(octets);
    assert_eq!(reader.varint(), Ok(expected));
    let payload = reader.length_prefixed().expect("the frame is whole");
    assert!(reader.is_empty());
    payload
}

#[test]
fn numbers_that_say_nothing_are_of_their_kind() {
    for n in [0, 1, 77, u64::MAX] {
        let grease = grease(n);
        assert_eq!((grease - 0x21) % 0x1f, 0);
        assert!(grease <= quipu_quic::wire::varint::MAX);
    }
}

#[test]
fn an_identifier_is_one_number() {
    let mut out = Vec::new();
    put_id_frame(kind::GOAWAY, 16_384, &mut out);
    assert_eq!(out, [0x07, 4, 0x80, 0, 0x40, 0]);
    assert_eq!(read_id(kind::GOAWAY, &out[2..]), Ok(16_384));
    assert!(read_id(kind::GOAWAY, &out[2..5]).is_err());
    assert!(read_id(kind::GOAWAY, &[0, 0]).is_err());
}

#[test]
fn what_shrinks_is_named() {
    let before = Settings { blocked_streams: 5, max_field_section: None, ..Settings::default() };
    assert_eq!(before.reduced_from(&before), None);
    let now = Settings { max_field_section: Some(1 << 40), ..before };
    assert_eq!(now.reduced_from(&before), Some("MAX_FIELD_SECTION_SIZE"));
    assert_eq!(before.reduced_from(&now), Some("MAX_FIELD_SECTION_SIZE"), "left out");
    let larger = Settings { max_field_section: Some(1 << 41), ..before };
    assert_eq!(larger.reduced_from(&now), None);
    let more = Settings { table_capacity: 4_096, ..before };
    assert_eq!(more.reduced_from(&before), None, "a table where there was none");
    let larger = Settings { table_capacity: 8_192, ..before };
    assert_eq!(larger.reduced_from(&more), Some("QPACK_MAX_TABLE_CAPACITY"));
}

proptest! {
    #[test]
    fn settings_read_back(settings in settings(), n in proptest::option::of(any::<u64>())) {
        let mut out = Vec::new();
        settings.encode(n.map(grease), &mut out);
        prop_assert_eq!(Settings::decode(payload(&out, kind::SETTINGS)), Ok(settings));
    }

    #[test]
    fn any_octets_are_settings_or_an_error(
        octets in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = Settings::decode(&octets);
        let _ = read_id(kind::GOAWAY, &octets);
    }
}
