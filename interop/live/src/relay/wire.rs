//! What can be seen of QUIC packets without keys. <https://www.rfc-editor.org/rfc/rfc8999>,
//! <https://www.rfc-editor.org/rfc/rfc9000#section-17.2>,
//! <https://www.rfc-editor.org/rfc/rfc9369#section-3.2>

use std::collections::BTreeMap;

const V2: u32 = 0x6b33_43cf;

/// A kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Initial,
    /// An Initial with a token, of a Retry or of an earlier connection.
    InitialWithToken,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
    /// A short header: 1-RTT, or a stateless reset.
    Short,
    /// A long header of a version that the relay does not know.
    Unknown,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Initial => "initial",
            Kind::InitialWithToken => "initial_with_token",
            Kind::ZeroRtt => "zero_rtt",
            Kind::Handshake => "handshake",
            Kind::Retry => "retry",
            Kind::VersionNegotiation => "version_negotiation",
            Kind::Short => "short",
            Kind::Unknown => "unknown",
        }
    }
}

/// A packet of a datagram, with its version unless its header is short.
pub(crate) type Packet = (Kind, Option<u32>);

/// Packets of each kind, and those with long headers of each version.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kinds: BTreeMap<Kind, u64>,
    pub(crate) versions: BTreeMap<u32, u64>,
}

impl Counts {
    pub(crate) fn add(&mut self, packets: &[Packet]) {
        for (kind, version) in packets {
            *self.kinds.entry(*kind).or_default() += 1;
            if let Some(version) = version.filter(|version| *version != 0) {
                *self.versions.entry(version).or_default() += 1;
            }
        }
    }
}

/// The packets of a datagram, as far as they can be told apart.
pub(crate) fn packets(datagram: &[u8]) -> Vec<Packet> {
    let mut found = Vec::new();
    let mut rest = datagram;
    while let Some((packet, after)) = packet(rest) {
        found.push(packet);
        rest = after;
    }
    found
}

/// The first packet, and what follows it.
fn packet(bytes: &[u8]) -> Option<(Packet, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        return Some(((Kind::Short, None), &[]));
    }
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let version = u32::from_be_bytes(*version);
    let rest = prefixed(prefixed(rest)?)?;
    let kind = match (version, first >> 4 & 3) {
        (0, _) => Kind::VersionNegotiation,
        (1, 0) | (V2, 1) => Kind::Initial,
        (1, 1) | (V2, 2) => Kind::ZeroRtt,
        (1, 2) | (V2, 3) => Kind::Handshake,
        (1, 3) | (V2, 0) => Kind::Retry,
        _ => Kind::Unknown,
    };
    if matches!(kind, Kind::VersionNegotiation | Kind::Retry | Kind::Unknown) {
        return Some(((kind, Some(version)), &[]));
    }
    let (kind, rest) = match kind {
        Kind::Initial => {
            let (length, rest) = varint(rest)?;
            let has_token = length > 0;
            let kind = if has_token { Kind::InitialWithToken } else { kind };
            (kind, rest.get(length..)?)
        }
        _ => (kind, rest),
    };
    let (length, rest) = varint(rest)?;
    Some(((kind, Some(version)), rest.get(length..)?))
}

/// What follows bytes that their length precedes.
fn prefixed(bytes: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = bytes.split_first()?;
    rest.get(usize::from(length)..)
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-16>
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let high = usize::from(first & 0x3f);
    Some((number[1..].iter().fold(high, |sum, byte| sum << 8 | usize::from(*byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(first: u8, version: u32, after_ids: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        bytes.extend(version.to_be_bytes());
        bytes.extend([2, 7, 7, 1, 8]);
        bytes.extend(after_ids);
        bytes
    }

    #[test]
    fn packets_of_one_datagram_are_told_apart() {
        let mut datagram = long(0xc0, 1, &[0, 0x40, 3, 1, 2, 3]);
        datagram.extend(long(0xe0, 1, &[2, 1, 2]));
        datagram.extend([0x40, 1, 2, 3]);
        let expected = [(Kind::Initial, Some(1)), (Kind::Handshake, Some(1)), (Kind::Short, None)];
        assert_eq!(packets(&datagram), expected);
    }

    #[test]
    fn version_2_has_other_numbers_for_types() {
        assert_eq!(packets(&long(0xd0, V2, &[1, 9, 0])), [(Kind::InitialWithToken, Some(V2))]);
        assert_eq!(packets(&long(0xc0, V2, &[])), [(Kind::Retry, Some(V2))]);
        assert_eq!(packets(&long(0xf0, 1, &[])), [(Kind::Retry, Some(1))]);
        assert_eq!(packets(&long(0xaa, 0, &[])), [(Kind::VersionNegotiation, Some(0))]);
        assert_eq!(packets(&long(0xc0, 0xfaceb00c, &[])), [(Kind::Unknown, Some(0xfaceb00c))]);
    }

    #[test]
    fn what_ends_early_is_no_packet() {
        let datagram = long(0xc0, 1, &[0, 3, 1, 2, 3]);
        for cut in 0..datagram.len() {
            assert_eq!(packets(&datagram[..cut]), []);
        }
    }
}
