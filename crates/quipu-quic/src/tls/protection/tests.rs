use std::sync::LazyLock;

use proptest::prelude::*;
use quipu_base::Role;

use super::*;
use crate::tls::rustls::RustlsClient;
use crate::tls::{InitialSecrets, Keys};
use crate::wire::header::{LongHeader, LongKind, Packet, ShortHeader};
use crate::wire::{ConnectionId, PartialHeader, Version, Writer};

/// The keys of both ends.
static KEYS: LazyLock<(Keys, Keys)> = LazyLock::new(|| {
    let tls = RustlsClient::with_roots(::rustls::RootCertStore::empty(), &[]).unwrap();
    let dcid = ConnectionId::new(&[1; 8]).unwrap();
    let keys = |role| tls.initial_keys(Version::V1, &dcid, role);
    (keys(Role::Client), keys(Role::Server))
});

const TAG: usize = 16;

fn dcid() -> ConnectionId {
    ConnectionId::new(&[9; 8]).unwrap()
}

/// Header and payload, padded as far as the sample needs, with room for the tag.
fn unsealed(
    write: impl Fn(&mut Writer<'_>) -> HeaderLayout,
    payload: &[u8],
) -> (Vec<u8>, HeaderLayout) {
    let mut packet = vec![0; 2_000];
    let mut writer = Writer::new(&mut packet);
    let layout = write(&mut writer);
    writer.put_bytes(payload).unwrap();
    let padding = layout.min_payload().saturating_sub(payload.len());
    writer.put_zeros(padding + TAG).unwrap();
    let length = writer.position();
    packet.truncate(length);
    (packet, layout)
}

fn partial(packet: &[u8]) -> PartialHeader {
    match Packet::parse(packet, 8) {
        Ok(Packet::Protected(header)) => header,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn a_sealed_packet_opens_at_the_other_end_only(
        number in 0u64..1 << 62, length in 1usize..=4, path: u32,
        payload in proptest::collection::vec(any::<u8>(), 0..1_300),
        long: bool, spin: bool, key_phase: bool, flipped in any::<(prop::sample::Index, u8)>(),
    ) {
        let (path, number) = (PathId(path), PacketNumber(number));
        let packet_number = TruncatedPacketNumber::with_length(number, length);
        let (mut packet, layout) = unsealed(
            |writer| if long {
                let (kind, dcid) = (LongKind::Initial { token: b"token" }, dcid());
                LongHeader { kind, version: Version::V1, dcid, scid: dcid, packet_number }.write(writer).unwrap()
            } else {
                ShortHeader { dcid: dcid(), spin, key_phase, packet_number }.write(writer).unwrap()
            },
            &payload,
        );
        seal(&mut packet, &layout, path, number, &KEYS.0.local).unwrap();

        let changed = {
            let mut changed = packet.clone();
            let at = flipped.0.index(changed.len());
            changed[at] ^= flipped.1.max(1);
            changed
        };
        let header = partial(&packet);
        prop_assert_eq!(header.packet_length, packet.len());
        let key = &*KEYS.1.remote.header;
        let read = unprotect(&mut packet, header.packet_number_at, key).unwrap();
        prop_assert_eq!(read.packet_number, packet_number);
        prop_assert_eq!(read.header_length, layout.header_length());
        prop_assert_eq!(read.spin, spin && !long);
        prop_assert_eq!(read.key_phase, key_phase && !long);
        prop_assert!(read.reserved_bits_clear);
        let key = &*KEYS.1.remote.packet;
        let plain = open(&mut packet, read.header_length, path, number, key).unwrap();
        prop_assert_eq!(&plain[..payload.len()], &payload[..]);

        // One changed byte anywhere, and it does not open.
        let mut changed = changed;
        if let Ok(Packet::Protected(header)) = Packet::parse(&changed, 8) {
            let end = header.packet_length;
            let at = header.packet_number_at;
            if let Ok(read) = unprotect(&mut changed[..end], at, &*KEYS.1.remote.header) {
                let number = read.packet_number.expand(number);
                let opened = open(&mut changed[..end], read.header_length, path, number, key);
                prop_assert_eq!(opened, Err(OpenError));
            }
        }
    }

    #[test]
    fn any_bytes_neither_open_nor_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..60), at in 0usize..64,
    ) {
        let mut bytes = bytes;
        if let Ok(read) = unprotect(&mut bytes, at, &*KEYS.1.remote.header) {
            let key = &*KEYS.1.remote.packet;
            let opened = open(&mut bytes, read.header_length, PathId(0), PacketNumber(0), key);
            prop_assert_eq!(opened, Err(OpenError));
        }
    }
}

#[test]
fn reserved_bits_show_once_protection_is_removed() {
    let packet_number = TruncatedPacketNumber::with_length(PacketNumber(1), 2);
    for reserved in [0x08, 0x10] {
        let header = ShortHeader { dcid: dcid(), spin: true, key_phase: true, packet_number };
        let (mut packet, layout) = unsealed(|writer| header.write(writer).unwrap(), &[1; 40]);
        packet[0] |= reserved;
        seal(&mut packet, &layout, PathId(0), PacketNumber(1), &KEYS.0.local).unwrap();
        let at = layout.packet_number_at;
        let read = unprotect(&mut packet, at, &*KEYS.1.remote.header).unwrap();
        assert!(!read.reserved_bits_clear);
    }
}

#[test]
fn a_packet_without_room_for_a_sample_is_neither_sealed_nor_unprotected() {
    let packet_number = TruncatedPacketNumber::with_length(PacketNumber(1), 1);
    let header = ShortHeader { dcid: dcid(), spin: false, key_phase: false, packet_number };
    let (mut packet, layout) = unsealed(|writer| header.write(writer).unwrap(), &[]);
    assert_eq!(layout.min_payload(), 3);
    let short = packet.len() - 1;
    let sealed = seal(&mut packet[..short], &layout, PathId(0), PacketNumber(1), &KEYS.0.local);
    assert_eq!(sealed, Err(SealError));
    let at = layout.packet_number_at;
    let read = unprotect(&mut packet[..short], at, &*KEYS.1.remote.header);
    assert_eq!(read, Err(OpenError));
    seal(&mut packet, &layout, PathId(0), PacketNumber(1), &KEYS.0.local).unwrap();
    unprotect(&mut packet, at, &*KEYS.1.remote.header).unwrap();
}
