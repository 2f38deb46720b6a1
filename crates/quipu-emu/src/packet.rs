//! Headers of IP packets, as far as links need them: where to, which flow, and congestion marks.
//!
//! Nothing here panics, whatever the bytes are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use quipu_link::{FlowKey, ecn};

/// <https://www.rfc-editor.org/rfc/rfc8200#section-4.1>: each kind at most once, options twice. More are skipped
/// by nobody.
const MOST_EXTENSIONS: usize = 8;

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// What a packet's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) to: IpAddr,
    /// The two bits of [`ecn`].
    pub(crate) ecn: u8,
    /// Of the addresses, the protocol and, in packets that are no fragments, the ports. That of UDP is the
    /// simulator's for the same addresses.
    pub(crate) flow: FlowKey,
}

/// Where the payload of a packet begins, and what it is.
#[derive(Clone, Copy, Debug)]
struct Payload {
    from: IpAddr,
    to: IpAddr,
    at: usize,
    protocol: u8,
    /// One of several pieces, of which only the first has ports.
    is_fragment: bool,
}

/// The header of a packet; `None` if it is no whole IPv4 or IPv6 header.
pub(crate) fn read(packet: &[u8]) -> Option<Header> {
    let payload = Payload::of(packet)?;
    let ecn = traffic_class(packet)? & 0b11;
    let port = |at: usize| -> Option<u16> {
        let has_ports = matches!(payload.protocol, TCP | UDP) && !payload.is_fragment;
        u16_at(packet, payload.at + at).filter(|_| has_ports)
    };
    let from = SocketAddr::new(payload.from, port(0).unwrap_or(0));
    let to = SocketAddr::new(payload.to, port(2).unwrap_or(0));
    let FlowKey(key) = FlowKey::between(from, to);
    // The simulator has no other protocol than UDP.
    let other = u64::from(payload.protocol ^ UDP).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Some(Header { to: payload.to, ecn, flow: FlowKey(key ^ other) })
}

/// Sets Congestion Experienced in a packet that [`read`] could read.
pub(crate) fn mark(packet: &mut [u8]) {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => {
            let (Some(before), Some(sum)) = (u16_at(packet, 0), u16_at(packet, 10)) else { return };
            let after = before | u16::from(ecn::CE);
            put_u16(packet, 0, after);
            put_u16(packet, 10, updated_checksum(sum, before, after));
        }
        // The traffic class is the low half of the first byte and the high half of the second. The header has no
        // checksum.
        Some(6) => {
            if let Some(byte) = packet.get_mut(1) {
                *byte |= ecn::CE << 4;
            }
        }
        _ => {}
    }
}

/// Computes the checksum of a TCP or UDP packet: a kernel leaves that to network cards, and may take a packet socket
/// for one.
pub(crate) fn fill_checksum(packet: &mut [u8]) {
    let Some(payload) = Payload::of(packet) else { return };
    let place = match payload.protocol {
        TCP => 16,
        UDP => 6,
        _ => return,
    };
    // The kernel itself computes those of packets that it cuts into fragments.
    if payload.is_fragment || u16_at(packet, payload.at + place).is_none() {
        return;
    }
    put_u16(packet, payload.at + place, 0);
    let Some(bytes) = packet.get(payload.at..) else { return };
    let mut sum = u64::from(payload.protocol) + bytes.len() as u64;
    for address in [payload.from, payload.to] {
        sum += match address {
            IpAddr::V4(ip) => sum_of(&ip.octets()),
            IpAddr::V6(ip) => sum_of(&ip.octets()),
        };
    }
    let checksum = !folded(sum + sum_of(bytes));
    // In UDP, zero says that there is none.
    // https://www.rfc-editor.org/rfc/rfc768
    let checksum = if payload.protocol == UDP && checksum == 0 { !0 } else { checksum };
    put_u16(packet, payload.at + place, checksum);
}

impl Payload {
    fn of(packet: &[u8]) -> Option<Payload> {
        match packet.first()? >> 4 {
            4 => Payload::of_v4(packet),
            6 => Payload::of_v6(packet),
            _ => None,
        }
    }

    fn of_v4(packet: &[u8]) -> Option<Payload> {
        let at = usize::from(packet.first()? & 0xf) * 4;
        if at < 20 || packet.len() < at {
            return None;
        }
        let address = |at: usize| -> Option<IpAddr> {
            let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        };
        // More fragments, or not the first.
        let is_fragment = u16_at(packet, 6)? & 0x3fff != 0;
        let protocol = *packet.get(9)?;
        Some(Payload { from: address(12)?, to: address(16)?, at, protocol, is_fragment })
    }

    fn of_v6(packet: &[u8]) -> Option<Payload> {
        let address = |at: usize| -> Option<IpAddr> {
            let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).into())
        };
        let (from, to) = (address(8)?, address(24)?);
        let (mut at, mut protocol) = (40, *packet.get(6)?);
        let mut is_fragment = false;
        for _ in 0..MOST_EXTENSIONS {
            let length = match protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                    packet.get(at + 1).map(|units| (usize::from(*units) + 1) * 8)
                }
                FRAGMENT => {
                    is_fragment = true;
                    Some(8)
                }
                _ => break,
            };
            let (Some(length), Some(next)) = (length, packet.get(at)) else { break };
            protocol = *next;
            at += length;
        }
        Some(Payload { from, to, at, protocol, is_fragment })
    }
}

/// Type of service, or traffic class.
fn traffic_class(packet: &[u8]) -> Option<u8> {
    let first = u16_at(packet, 0)?;
    Some(if first >> 12 == 4 { first as u8 } else { (first >> 4) as u8 })
}

fn u16_at(packet: &[u8], at: usize) -> Option<u16> {
    let bytes = packet.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn put_u16(packet: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = packet.get_mut(at..at + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// The checksum of a header after one of its words has changed.
///
/// <https://www.rfc-editor.org/rfc/rfc1624#section-3>: HC' = ~(~HC + ~m + m')
fn updated_checksum(sum: u16, before: u16, after: u16) -> u16 {
    !folded(u64::from(!sum) + u64::from(!before) + u64::from(after))
}

/// The sum of 16-bit words, the last of which may lack a byte.
fn sum_of(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let mut sum = 0;
    for word in &mut words {
        sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    sum + words.remainder().first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// The one's complement sum in 16 bits.
fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
