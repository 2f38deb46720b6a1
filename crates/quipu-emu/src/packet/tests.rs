use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Bytes of an IPv4 packet with that payload, from 10.0.0.1 to 10.0.255.1.
fn ipv4(protocol: u8, tos: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet =
        vec![0x45, tos, 0, 0, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 255, 1];
    let length = (packet.len() + payload.len()) as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let sum = !folded(sum_of(&packet));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// The same of IPv6, from fd00::1 to fd00::2.
fn ipv6(next: u8, class: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[..2].copy_from_slice(&(0x6000 | u16::from(class) << 4).to_be_bytes());
    packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    (packet[6], packet[7]) = (next, 64);
    (packet[8], packet[23], packet[24], packet[39]) = (0xfd, 1, 0xfd, 2);
    packet.extend(payload);
    packet
}

/// A UDP header with ports 50000 and 443 and a payload.
fn udp(payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut datagram = [50_000u16, 443, length, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    datagram
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_flow_of_udp_is_the_simulators() {
    let header = read(&ipv4(UDP, 0b10, &udp(b"x"))).unwrap();
    assert_eq!(header.to, address("10.0.255.1:0").ip());
    assert_eq!(header.ecn, ecn::ECT_0);
    let flow = FlowKey::between(address("10.0.0.1:50000"), address("10.0.255.1:443"));
    assert_eq!(header.flow, flow);
    let header = read(&ipv6(UDP, 0b01, &udp(b"x"))).unwrap();
    assert_eq!(header.ecn, ecn::ECT_1);
    assert_eq!(header.flow, FlowKey::between(address("[fd00::1]:50000"), address("[fd00::2]:443")));
    // Behind a header of options.
    let options = [&[UDP, 0, 1, 4, 0, 0, 0, 0][..], &udp(b"x")].concat();
    assert_eq!(read(&ipv6(HOP_BY_HOP, 0b01, &options)), Some(header));
}

#[test]
fn protocols_and_ports_are_flows_of_their_own() {
    let mut other_port = udp(b"x");
    other_port[1] ^= 1;
    let packets = [ipv4(UDP, 0, &udp(b"x")), ipv4(TCP, 0, &udp(b"x")), ipv4(UDP, 0, &other_port)];
    let flows = packets.map(|packet| read(&packet).unwrap().flow);
    assert!(flows[0] != flows[1] && flows[0] != flows[2] && flows[1] != flows[2], "{flows:?}");
}

#[test]
fn all_fragments_of_a_packet_are_of_one_flow() {
    let fragment = |offset: u16, payload: &[u8]| {
        let mut packet = ipv4(UDP, 0, payload);
        packet[6..8].copy_from_slice(&offset.to_be_bytes());
        read(&packet).unwrap().flow
    };
    // More follow; the last one.
    assert_eq!(fragment(0x2000, &udp(b"12345678")), fragment(2, b"87654321"));
    let of_six = |offset: u8, payload: &[u8]| {
        let payload = [&[UDP, 0, 0, offset, 0, 0, 0, 9], payload].concat();
        read(&ipv6(FRAGMENT, 0, &payload)).unwrap().flow
    };
    assert_eq!(of_six(1, &udp(b"12345678")), of_six(16, b"87654321"));
}

#[test]
fn a_mark_leaves_the_checksum_right() {
    for (tos, marked) in [(0b10, 0b11), (0b01, 0b11), (0xb8 | 0b10, 0xb8 | 0b11), (0b11, 0b11)] {
        let mut packet = ipv4(UDP, tos, &udp(b"data"));
        mark(&mut packet);
        assert_eq!(packet[1], marked);
        assert_eq!(folded(sum_of(&packet[..20])), 0xffff, "{packet:02x?}");
        let mut packet = ipv6(UDP, tos, &udp(b"data"));
        mark(&mut packet);
        assert_eq!(traffic_class(&packet), Some(marked));
    }
}

#[test]
fn a_checksum_is_that_of_the_standards() {
    // From 192.0.2.1:1 to 192.0.2.2:2 with "ab".
    let mut packet = ipv4(UDP, 0, &[0, 1, 0, 2, 0, 10, 0, 0, b'a', b'b']);
    packet[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    fill_checksum(&mut packet);
    // 0xc000 + 0x0201 + 0xc000 + 0x0202 + 17 + 10 + 1 + 2 + 10 + 0x6162 = 0x1e58d.
    assert_eq!(u16_at(&packet, 26), Some(!0xe58e));
    let mut segment = vec![0; 23];
    segment[12] = 0x50;
    let mut packet = ipv6(TCP, 0, &segment);
    fill_checksum(&mut packet);
    let pseudo = sum_of(&packet[8..40]) + 23 + u64::from(TCP);
    assert_eq!(folded(pseudo + sum_of(&packet[40..])), 0xffff);
}

#[test]
fn what_is_no_whole_header_is_none() {
    let whole = ipv4(UDP, 0, &udp(b"x"));
    assert_eq!(read(&[]), None);
    assert_eq!(read(&[0x45]), None);
    assert_eq!(read(&whole[..19]), None);
    // A header of less than 20 bytes, and one longer than the packet.
    for length in [0x44, 0x4f] {
        let mut packet = whole[..24].to_vec();
        packet[0] = length;
        assert_eq!(read(&packet), None);
    }
    assert_eq!(read(&ipv6(UDP, 0, b"")[..39]), None);
    // Neither version.
    assert_eq!(read(&[0x50; 60]), None);
    // Headers are whole and ports are not: a flow without.
    assert!(read(&whole[..22]).is_some());
    // Options that lead far behind the end, again and again.
    let options = [HOP_BY_HOP, 255].repeat(30);
    assert!(read(&ipv6(HOP_BY_HOP, 0, &options)).is_some());
}

proptest! {
    #[test]
    fn any_bytes_are_read_marked_and_summed_without_panic(mut bytes in vec(any::<u8>(), 0..200), version in 0u8..3) {
        if let (Some(first), Some(version)) = (bytes.first_mut(), [None, Some(0x45), Some(0x60)][usize::from(version)]) {
            *first = version;
        }
        let before = read(&bytes);
        fill_checksum(&mut bytes);
        mark(&mut bytes);
        let after = read(&bytes);
        prop_assert_eq!(before.is_some(), after.is_some());
        if let Some(after) = after {
            prop_assert_eq!(after.ecn, ecn::CE);
        }
    }

    #[test]
    fn an_updated_checksum_is_the_computed_one(tos in any::<u8>(), payload in vec(any::<u8>(), 0..60)) {
        let mut packet = ipv4(UDP, tos, &payload);
        mark(&mut packet);
        prop_assert_eq!(folded(sum_of(&packet[..20])), 0xffff);
    }
}
