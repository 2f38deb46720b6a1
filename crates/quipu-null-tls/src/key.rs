//! Keys that are names: a tag says which key, path and number sealed a packet.

use quipu_base::{PacketNumber, PathId, Role};
use quipu_quic::tls::{
    DirectionKeys, HeaderKey, Keys, Level, OpenError, PacketKey, PacketKeyPair, SealError,
};
use quipu_quic::wire::Version;

/// As of every AEAD of QUIC v1.
const TAG: usize = 16;
/// As of every header protection of QUIC v1.
const SAMPLE: usize = 16;
/// As of AES-GCM: <https://www.rfc-editor.org/rfc/rfc9001#section-6.6>.
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
/// As of AES-GCM: <https://www.rfc-editor.org/rfc/rfc9001#section-6.6>.
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// What both ends of a connection know after the Hello messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Secret(u64);

impl Secret {
    /// The same for the same bytes: FNV-1a, which suffices where nobody attacks.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let hash =
            bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
        Secret(mixed(hash))
    }

    /// A secret of two.
    pub(crate) fn and(self, other: Secret) -> Self {
        Secret(mixed(self.0.rotate_left(32) ^ other.0))
    }

    /// The secret in a connection of that version: those of v1 are as they are.
    pub(crate) fn in_version(self, version: Version) -> Self {
        if version == Version::V1 { self } else { self.and(Secret(u64::from(version.0))) }
    }

    /// A secret that was sent as its bytes.
    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Self {
        Secret(u64::from_be_bytes(bytes))
    }

    /// Its eight bytes.
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// The keys of a level at the end of `role`, first phase.
    pub(crate) fn keys(self, level: Level, role: Role) -> Keys {
        let direction = |sender: Role| DirectionKeys {
            header: Box::new(NullHeaderKey::new(self.derive(level, sender, HEADER))),
            packet: Box::new(NullPacketKey(self.derive(level, sender, 0))),
        };
        Keys { local: direction(role), remote: direction(role.peer()) }
    }

    /// The payload keys of the 1-RTT level in a phase, counted from zero.
    pub(crate) fn phase(self, phase: u32, role: Role) -> PacketKeyPair {
        let key = |sender| Box::new(NullPacketKey(self.derive(Level::OneRtt, sender, phase)));
        PacketKeyPair { local: key(role), remote: key(role.peer()) }
    }

    fn derive(self, level: Level, sender: Role, use_of: u32) -> u64 {
        let level = match level {
            Level::Initial => 0,
            Level::Handshake => 1,
            Level::OneRtt => 2,
            Level::ZeroRtt => 3,
        };
        let label = u64::from(use_of) << 8 | level << 1 | u64::from(sender.is_client());
        mixed(self.0 ^ mixed(label))
    }
}

/// Stands where a phase stands, for header keys: no connection comes to that phase.
const HEADER: u32 = u32::MAX;

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// A payload key: its name.
struct NullPacketKey(u64);

impl NullPacketKey {
    /// Two words that differ whenever key, path, packet number, the header's first byte, or one of
    /// the two lengths does: for one key the first word holds path, first byte and header length in
    /// bits of their own, and for packets of one length the second differs with the number.
    #[inline]
    fn tag(&self, path: PathId, number: PacketNumber, header: &[u8], length: usize) -> [u8; TAG] {
        let first = u64::from(header.first().copied().unwrap_or_default());
        let key = self.0 ^ u64::from(path.0) ^ first << 32 ^ (header.len() as u64) << 40;
        let number = number.0 ^ (length as u64) << 46;
        let mut tag = [0; TAG];
        tag[..8].copy_from_slice(&key.to_le_bytes());
        tag[8..].copy_from_slice(&number.to_le_bytes());
        tag
    }
}

impl PacketKey for NullPacketKey {
    #[inline]
    fn seal(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload_and_tag: &mut [u8],
    ) -> Result<(), SealError> {
        let (payload, tag) = payload_and_tag.split_last_chunk_mut::<TAG>().ok_or(SealError)?;
        *tag = self.tag(path, number, header, payload.len());
        Ok(())
    }

    #[inline]
    fn open(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        let (payload, tag) = payload.split_last_chunk::<TAG>().ok_or(OpenError)?;
        if *tag == self.tag(path, number, header, payload.len()) {
            Ok(payload.len())
        } else {
            Err(OpenError)
        }
    }

    fn tag_length(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

/// A header key: the mask is its name and the sample, so that a wrong key or a sample taken at a
/// wrong place shows as with real keys.
struct NullHeaderKey([u8; 5]);

impl NullHeaderKey {
    fn new(name: u64) -> Self {
        let [a, b, c, d, e, ..] = name.to_le_bytes();
        NullHeaderKey([a, b, c, d, e])
    }

    #[inline]
    fn mask(&self, sample: &[u8]) -> Option<[u8; 5]> {
        let &[a, b, c, d, e, ..] = sample.first_chunk::<SAMPLE>()?;
        let key = self.0;
        (sample.len() == SAMPLE).then_some([
            key[0] ^ a,
            key[1] ^ b,
            key[2] ^ c,
            key[3] ^ d,
            key[4] ^ e,
        ])
    }
}

/// The bits of the first byte that are masked.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-5.4.1>
#[inline]
fn masked_bits(first: u8) -> u8 {
    if first & 0x80 != 0 { 0x0f } else { 0x1f }
}

#[inline]
fn mask_number(number: &mut [u8], mask: &[u8; 5], length_bits: u8) {
    let length = usize::from(length_bits & 0x03) + 1;
    number.iter_mut().zip(&mask[1..]).take(length).for_each(|(byte, mask)| *byte ^= mask);
}

impl HeaderKey for NullHeaderKey {
    #[inline]
    fn protect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), SealError> {
        let mask = self.mask(sample).ok_or(SealError)?;
        mask_number(number, &mask, *first);
        *first ^= mask[0] & masked_bits(*first);
        Ok(())
    }

    #[inline]
    fn unprotect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), OpenError> {
        let mask = self.mask(sample).ok_or(OpenError)?;
        *first ^= mask[0] & masked_bits(*first);
        mask_number(number, &mask, *first);
        Ok(())
    }

    fn sample_length(&self) -> usize {
        SAMPLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret(7);

    fn sealed(key: &dyn PacketKey) -> [u8; 40] {
        let mut text = [5; 40];
        key.seal(PathId(3), PacketNumber(54_321), &[0x43; 13], &mut text).unwrap();
        text
    }

    #[test]
    fn what_one_end_seals_the_other_opens_at_the_same_level_only() {
        for level in Level::ALL {
            let client = SECRET.keys(level, Role::Client);
            let text = sealed(&*client.local.packet);
            for other in Level::ALL {
                let server = SECRET.keys(other, Role::Server);
                let mut text = text;
                let header = [0x43; 13];
                let opened =
                    server.remote.packet.open(PathId(3), PacketNumber(54_321), &header, &mut text);
                assert_eq!(opened.is_ok(), level == other);
                assert!(text.starts_with(&[5; 24]));
                let opened =
                    server.local.packet.open(PathId(3), PacketNumber(54_321), &header, &mut text);
                assert_eq!(opened, Err(OpenError));
            }
        }
    }

    #[test]
    fn another_path_number_header_or_length_does_not_open() {
        let keys = SECRET.keys(Level::OneRtt, Role::Client);
        let key = &SECRET.keys(Level::OneRtt, Role::Server).remote.packet;
        let text = sealed(&*keys.local.packet);
        let header = [0x43; 13];
        let mut flipped = header;
        flipped[0] ^= 0x04;
        let opens = |path, number, header: &[u8], mut text: Vec<u8>| {
            key.open(PathId(path), PacketNumber(number), header, &mut text).is_ok()
        };
        assert!(opens(3, 54_321, &header, text.to_vec()));
        assert!(!opens(2, 54_321, &header, text.to_vec()));
        assert!(!opens(3, 54_322, &header, text.to_vec()));
        assert!(!opens(3, 54_321, &header[1..], text.to_vec()));
        assert!(!opens(3, 54_321, &flipped, text.to_vec()));
        assert!(!opens(3, 54_321, &header, text[1..].to_vec()));
        assert!(!opens(3, 54_321, &header, text[..39].to_vec()));
        assert!(!opens(3, 54_321, &header, text[..3].to_vec()));
    }

    #[test]
    fn each_phase_has_keys_of_its_own() {
        let phases: Vec<_> = (0..4).map(|phase| SECRET.phase(phase, Role::Client)).collect();
        for (sent, client) in phases.iter().enumerate() {
            let text = sealed(&*client.local);
            for received in 0..4 {
                let server = SECRET.phase(received, Role::Server);
                let opened = server.remote.open(
                    PathId(3),
                    PacketNumber(54_321),
                    &[0x43; 13],
                    &mut text.clone(),
                );
                assert_eq!(opened.is_ok(), sent == received as usize);
            }
        }
    }

    #[test]
    fn header_protection_comes_off_with_the_same_key_and_sample_only() {
        let key = NullHeaderKey::new(mixed(1));
        let sample = [9; SAMPLE];
        for (first, length) in [(0x40, 1), (0x47, 4), (0xc1, 2), (0xe2, 3)] {
            let (mut byte, mut number) = (first, [1, 2, 3, 4]);
            key.protect(&sample, &mut byte, &mut number[..length]).unwrap();
            assert_ne!((byte, number), (first, [1, 2, 3, 4]));
            let (mut other, mut other_number) = (byte, number);
            key.unprotect(&sample, &mut byte, &mut number).unwrap();
            assert_eq!((byte, number), (first, [1, 2, 3, 4]));
            key.unprotect(&[8; SAMPLE], &mut other, &mut other_number).unwrap();
            assert_ne!((other, other_number), (first, [1, 2, 3, 4]));
        }
        assert_eq!(key.protect(&[0; 15], &mut 0, &mut [0]), Err(SealError));
        assert_eq!(key.unprotect(&[0; 17], &mut 0, &mut [0; 4]), Err(OpenError));
    }

    #[test]
    fn limits_and_lengths_are_those_of_aes_gcm() {
        let keys = SECRET.keys(Level::OneRtt, Role::Client).local;
        assert_eq!((keys.packet.tag_length(), keys.header.sample_length()), (16, 16));
        assert_eq!(keys.packet.confidentiality_limit(), 1 << 23);
        assert_eq!(keys.packet.integrity_limit(), 1 << 52);
    }
}
