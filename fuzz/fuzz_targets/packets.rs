//! A datagram's packets: no header claims more bytes than there are, and reading comes to an end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_quic::wire::header::Packet;

fuzz_target!(|input: (u8, &[u8])| {
    let (cid_length, datagram) = (usize::from(input.0 % 21), input.1);
    let mut rest = datagram;
    while !rest.is_empty() {
        let Ok(packet) = Packet::parse(rest, cid_length) else { return };
        assert!(packet.versions().count() <= rest.len() / 4);
        let Packet::Protected(header) = packet else { return };
        assert!(header.packet_number_at <= header.packet_length);
        assert!(header.token.end <= header.packet_number_at);
        assert!((1..=rest.len()).contains(&header.packet_length));
        rest = &rest[header.packet_length..];
    }
});
