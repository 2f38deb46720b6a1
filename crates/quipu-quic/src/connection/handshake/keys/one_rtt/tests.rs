use super::*;
use crate::error::ErrorCode;
use crate::tls::{HeaderKey, KeyChange, Level, OpenError, SealError, TlsError};
use crate::wire::{TruncatedPacketNumber, Version};

/// Packets that may be sealed with one key.
const LIMIT: u64 = 6_400;

/// A key whose packets end in its name.
struct NamedKey(u8);

impl PacketKey for NamedKey {
    fn seal(
        &self,
        _: PathId,
        _: PacketNumber,
        _: &[u8],
        payload_and_tag: &mut [u8],
    ) -> Result<(), SealError> {
        *payload_and_tag.last_mut().ok_or(SealError)? = self.0;
        Ok(())
    }

    fn open(
        &self,
        _: PathId,
        _: PacketNumber,
        _: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        let opens = payload.last() == Some(&self.0);
        if !opens {
            // As an AEAD does.
            payload.fill(0);
        }
        if opens { Ok(payload.len() - 1) } else { Err(OpenError) }
    }

    fn tag_length(&self) -> usize {
        1
    }

    fn confidentiality_limit(&self) -> u64 {
        LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        LIMIT
    }
}

struct NoHeaderKey;

impl HeaderKey for NoHeaderKey {
    fn protect(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), SealError> {
        Ok(())
    }

    fn unprotect(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), OpenError> {
        Ok(())
    }

    fn sample_length(&self) -> usize {
        0
    }
}

/// A session whose next phase has that number.
struct Phased(u8);

impl Session for Phased {
    fn read(&mut self, _: Level, _: &[u8]) -> Result<(), TlsError> {
        Ok(())
    }

    fn write(&mut self, _: &mut Vec<u8>) -> Option<KeyChange> {
        None
    }

    fn is_handshaking(&self) -> bool {
        false
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        None
    }

    fn alpn(&self) -> Option<&[u8]> {
        None
    }

    fn next_packet_keys(&mut self) -> Option<PacketKeyPair> {
        let pair =
            PacketKeyPair { local: Box::new(NamedKey(self.0)), remote: Box::new(NamedKey(self.0)) };
        self.0 += 1;
        Some(pair)
    }

    fn change_version(&mut self, _: Version) -> Result<(), TlsError> {
        Ok(())
    }
}

/// The keys of an end and its session.
fn end() -> (OneRtt, Phased) {
    let direction =
        || DirectionKeys { header: Box::new(NoHeaderKey), packet: Box::new(NamedKey(0)) };
    let mut session = Phased(1);
    let keys = Keys { local: direction(), remote: direction() };
    (OneRtt::new(keys, &mut session), session)
}

/// What opening a packet of that number and phase came to.
fn open(end: &mut (OneRtt, Phased), number: u64, phase: u8) -> Result<bool, Option<ErrorCode>> {
    let number = PacketNumber(number);
    let header = UnprotectedHeader {
        packet_number: TruncatedPacketNumber::with_length(number, 1),
        header_length: 2,
        key_phase: phase & 1 == 1,
        spin: false,
        reserved_bits_clear: true,
    };
    let mut packet = [1, 2, 3, 4, phase];
    match end.0.open((PathId::ZERO, number), &header, &mut packet, &mut end.1) {
        Ok(opened) => {
            assert_eq!(opened.payload, [3, 4]);
            Ok(opened.old_keys)
        }
        Err(Unopened::Unreadable) => Err(None),
        Err(Unopened::Fault(error)) => Err(Some(error.code)),
    }
}

#[test]
fn a_packet_of_the_next_phase_moves_both_directions() {
    let mut end = end();
    assert_eq!(open(&mut end, 0, 0), Ok(false));
    assert_eq!(open(&mut end, 2, 1), Ok(false));
    assert!(end.0.phase_bit() && end.0.discards());
    let mut text = [0];
    end.0
        .sealing(PathId::ZERO, PacketNumber(5))
        .packet
        .seal(PathId::ZERO, PacketNumber(5), &[], &mut text)
        .unwrap();
    assert_eq!(text, [1]);
    assert_eq!(open(&mut end, 1, 0), Ok(true), "it was overtaken");
    end.0.discard_previous();
    assert_eq!(open(&mut end, 1, 0), Err(None));
}

#[test]
fn a_packet_that_the_first_key_spoilt_is_still_opened_by_the_second() {
    // The peer begins a phase, and one more, before the keys of the first are gone.
    let mut end = end();
    assert_eq!(open(&mut end, 1, 1), Ok(false));
    end.0.on_ack_sent(PathId::ZERO, PacketNumber(1));
    assert_eq!(open(&mut end, 2, 2), Ok(false));
    assert_eq!(end.0.updates(), 2);
    // Old keys after newer ones: the next phase's are tried before them.
    assert_eq!(open(&mut end, 3, 1), Err(Some(ErrorCode::KEY_UPDATE_ERROR)));
}

#[test]
fn a_packet_of_no_phase_is_dropped_and_changes_nothing() {
    let mut end = end();
    for phase in [3, 4, 9] {
        assert_eq!(open(&mut end, 1, phase), Err(None));
    }
    assert_eq!(end.0.updates(), 0);
    assert_eq!(open(&mut end, 1, 1), Ok(false));
}

#[test]
fn keys_are_renewed_before_they_wear_out() {
    let (mut keys, mut session) = end();
    keys.on_acked(PathId::ZERO, PacketNumber(0), false).unwrap();
    for number in 0..=LIMIT / 2 {
        assert!(!keys.wants_update());
        keys.sealing(PathId::ZERO, PacketNumber(number));
    }
    assert!(keys.wants_update());
    assert!(keys.update(&mut session));
    assert!(!keys.wants_update());
}

#[test]
fn keys_that_cannot_be_renewed_wear_out_below_the_limit() {
    let (mut keys, mut session) = end();
    let mut sealed = 0;
    while !keys.is_worn_out() {
        keys.sealing(PathId::ZERO, PacketNumber(sealed));
        sealed += 1;
    }
    assert_eq!(sealed, LIMIT - LIMIT / 64);
    assert!(!keys.update(&mut session), "nothing was acknowledged");
}
