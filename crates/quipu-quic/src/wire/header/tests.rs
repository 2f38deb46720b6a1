use proptest::prelude::*;

use super::*;
use crate::wire::{ConnectionId, TruncatedPacketNumber, Writer};
use quipu_base::PacketNumber;

fn connection_ids() -> impl Strategy<Value = ConnectionId> {
    proptest::collection::vec(any::<u8>(), 0..=20).prop_map(|b| ConnectionId::new(&b).unwrap())
}

fn packet_numbers() -> impl Strategy<Value = TruncatedPacketNumber> {
    (any::<u32>(), 1usize..=4)
        .prop_map(|(n, length)| TruncatedPacketNumber::with_length(PacketNumber(n.into()), length))
}

fn versions() -> impl Strategy<Value = Version> {
    proptest::sample::select(Version::KNOWN.to_vec())
}

fn protected(bytes: &[u8], short_cid_length: usize) -> PartialHeader {
    match Packet::parse(bytes, short_cid_length) {
        Ok(Packet::Protected(header)) => header,
        other => panic!("{other:?}"),
    }
}

/// The header of the client's Initial in <https://www.rfc-editor.org/rfc/rfc9001#section-a.2>.
#[test]
fn the_unprotected_header_of_rfc_9001_a2_is_written() {
    let header = LongHeader {
        kind: LongKind::Initial { token: &[] },
        version: Version::V1,
        dcid: ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap(),
        scid: ConnectionId::EMPTY,
        packet_number: TruncatedPacketNumber::with_length(PacketNumber(2), 4),
    };
    let mut packet = [0u8; 1200];
    let mut writer = Writer::new(&mut packet);
    let layout = header.write(&mut writer).unwrap();
    let written = writer.position();
    assert_eq!(written, header.size());
    assert_eq!(layout.header_length(), header.size());
    write::set_length(&mut packet, &layout, 1200).unwrap();
    let expected = [
        0xc3, 0x00, 0x00, 0x00, 0x01, 0x08, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0x00,
        0x00, 0x44, 0x9e, 0x00, 0x00, 0x00, 0x02,
    ];
    assert_eq!(packet[..written], expected);
}

/// <https://www.rfc-editor.org/rfc/rfc9369#section-3.2>
#[test]
fn long_headers_of_v2_have_type_bits_of_their_own() {
    let packet_number = TruncatedPacketNumber::with_length(PacketNumber(3), 2);
    let first = |kind| {
        let mut packet = [0u8; 60];
        let (version, dcid) = (Version::V2, ConnectionId::EMPTY);
        let header = LongHeader { kind, version, dcid, scid: dcid, packet_number };
        header.write(&mut Writer::new(&mut packet)).unwrap();
        packet[0] >> 4 & 0b11
    };
    assert_eq!(first(LongKind::Initial { token: &[] }), 0b01);
    assert_eq!(first(LongKind::ZeroRtt), 0b10);
    assert_eq!(first(LongKind::Handshake), 0b11);
    let mut retry = [0u8; 60];
    let (dcid, mut writer) = (ConnectionId::EMPTY, Writer::new(&mut retry));
    write_retry(&mut writer, Version::V2, dcid, dcid, b"token").unwrap();
    assert_eq!(retry[0] >> 4 & 0b11, 0b00);
}

#[test]
fn reserved_versions_are_those_of_the_pattern() {
    for reserved in [0x0a0a_0a0a, 0xfafa_dada] {
        assert!(Version(reserved).is_reserved());
    }
    for version in Version::KNOWN {
        assert!(version.is_known() && !version.is_reserved());
    }
}

#[test]
fn a_fixed_bit_of_zero_is_told_in_both_forms() {
    assert!(!protected(&[0x00; 30], 8).fixed_bit);
    assert!(protected(&[0x40; 30], 8).fixed_bit);
    let mut long = [0u8; 30];
    long[4] = 1;
    for (first, set) in [(0x80, false), (0xc0, true)] {
        long[0] = first;
        assert_eq!(protected(&long, 8).fixed_bit, set);
    }
    long[0] = 0xb0;
    for (first, set) in [(0xb0, false), (0xf0, true)] {
        long[0] = first;
        let Ok(Packet::Retry { fixed_bit, .. }) = Packet::parse(&long, 8) else {
            panic!("a Retry packet");
        };
        assert_eq!(fixed_bit, set);
    }
}

#[test]
fn a_length_beyond_the_datagram_is_refused() {
    let bytes = [0xe0, 0, 0, 0, 1, 0, 0, 5, 1, 2, 3, 4];
    let error = HeaderError::LengthBeyondDatagram { length: 5, available: 4 };
    assert_eq!(Packet::parse(&bytes, 8), Err(error));
}

#[test]
fn a_connection_id_of_21_bytes_is_refused_in_version_1_only() {
    let mut bytes = vec![0xe0, 0, 0, 0, 1, 21];
    bytes.extend([7; 30]);
    bytes[27] = 0;
    assert_eq!(Packet::parse(&bytes, 8), Err(HeaderError::ConnectionIdTooLong(21)));
    bytes[1] = 9;
    let packet = Packet::parse(&bytes, 8).unwrap();
    let version = Version(0x0900_0001);
    assert_eq!(packet, Packet::UnknownVersion { version, dcid: &[7; 21], scid: &[] });
}

#[test]
fn version_negotiation_lists_its_versions() {
    let versions = [Version::V1, Version(0x6b33_43cf)];
    let mut buffer = [0u8; 64];
    let mut writer = Writer::new(&mut buffer);
    write_version_negotiation(&mut writer, 0x15, &[1; 30], &[2; 3], &versions).unwrap();
    let packet = Packet::parse(writer.written(), 8).unwrap();
    assert_eq!(packet.versions().collect::<Vec<_>>(), versions);
    let Packet::VersionNegotiation { dcid, scid, .. } = packet else { panic!() };
    assert_eq!((dcid, scid), (&[1; 30][..], &[2; 3][..]));
    let cut = writer.position() - 1;
    assert_eq!(Packet::parse(&writer.written()[..cut], 8), Err(HeaderError::VersionList(7)));
}

#[test]
fn coalesced_packets_are_found_one_after_the_other() {
    let dcid = ConnectionId::new(&[5; 8]).unwrap();
    let packet_number = TruncatedPacketNumber::with_length(PacketNumber(3), 2);
    let mut datagram = vec![0u8; 200];
    let (kind, version) = (LongKind::Handshake, Version::V1);
    let header = LongHeader { kind, version, dcid, scid: ConnectionId::EMPTY, packet_number };
    let layout = header.write(&mut Writer::new(&mut datagram)).unwrap();
    write::set_length(&mut datagram, &layout, 150).unwrap();
    ShortHeader { dcid, spin: false, key_phase: true, packet_number }
        .write(&mut Writer::new(&mut datagram[150..]))
        .unwrap();

    let first = protected(&datagram, 8);
    assert_eq!((first.kind, first.packet_length), (PacketKind::Handshake, 150));
    let second = protected(&datagram[first.packet_length..], 8);
    assert_eq!((second.kind, second.packet_length), (PacketKind::OneRtt, 50));
    assert_eq!(second.dcid, dcid);
}

proptest! {
    #[test]
    fn a_long_header_reads_back(
        dcid in connection_ids(), scid in connection_ids(), packet_number in packet_numbers(),
        token in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
        payload in 0usize..1000, version in versions(),
    ) {
        let kind = match &token {
            Some(token) => LongKind::Initial { token },
            None => LongKind::Handshake,
        };
        let header = LongHeader { kind, version, dcid, scid, packet_number };
        let mut datagram = vec![0u8; header.size() + payload + 10];
        let layout = header.write(&mut Writer::new(&mut datagram)).unwrap();
        prop_assert_eq!(layout.header_length(), header.size());
        let length = header.size() + payload;
        write::set_length(&mut datagram, &layout, length).unwrap();

        let read = protected(&datagram, 0);
        prop_assert_eq!((read.kind, read.version), (kind.packet_kind(), Some(version)));
        prop_assert_eq!((read.dcid, read.scid), (dcid, scid));
        prop_assert_eq!(read.packet_number_at, layout.packet_number_at);
        prop_assert_eq!(read.packet_length, length);
        prop_assert_eq!(&datagram[read.token], &token.unwrap_or_default()[..]);
        let number = &datagram[layout.packet_number_at..layout.header_length()];
        prop_assert_eq!(TruncatedPacketNumber::from_bytes(number), Some(packet_number));
    }

    #[test]
    fn a_short_header_reads_back(
        dcid in connection_ids(), packet_number in packet_numbers(),
        spin: bool, key_phase: bool,
    ) {
        let header = ShortHeader { dcid, spin, key_phase, packet_number };
        let mut datagram = vec![0u8; header.size() + 20];
        let layout = header.write(&mut Writer::new(&mut datagram)).unwrap();
        let read = protected(&datagram, dcid.length());
        prop_assert_eq!(read.kind, PacketKind::OneRtt);
        prop_assert_eq!(read.dcid, dcid);
        prop_assert_eq!(read.packet_number_at, layout.packet_number_at);
        prop_assert_eq!(datagram[0] & SPIN_BIT != 0, spin);
        prop_assert_eq!(datagram[0] & KEY_PHASE_BIT != 0, key_phase);
    }

    #[test]
    fn a_retry_reads_back(
        dcid in connection_ids(), scid in connection_ids(),
        token in proptest::collection::vec(any::<u8>(), 0..100), tag: [u8; 16],
        version in versions(),
    ) {
        let mut buffer = vec![0u8; 200];
        let mut writer = Writer::new(&mut buffer);
        write_retry(&mut writer, version, dcid, scid, &token).unwrap();
        let protected = writer.written().to_vec();
        writer.put_array(tag).unwrap();
        let token = &token[..];
        let protected = &protected[..];
        let expected = Packet::Retry { fixed_bit: true, version, dcid, scid, token, protected, tag };
        prop_assert_eq!(Packet::parse(writer.written(), 8), Ok(expected));
    }

    #[test]
    fn any_bytes_parse_without_panic_and_stay_within_the_datagram(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        version in proptest::option::of(versions()), short in 0usize..=20,
    ) {
        let mut bytes = bytes;
        if let Some(version) = version && bytes.len() > 5 {
            bytes[0] |= LONG_FORM | FIXED_BIT;
            bytes[1..5].copy_from_slice(&version.0.to_be_bytes());
            bytes[5] %= 22;
        }
        if let Ok(Packet::Protected(header)) = Packet::parse(&bytes, short) {
            prop_assert!(header.packet_length <= bytes.len());
            prop_assert!(header.packet_number_at <= header.packet_length);
            prop_assert!(header.token.end <= header.packet_number_at);
        }
    }
}
