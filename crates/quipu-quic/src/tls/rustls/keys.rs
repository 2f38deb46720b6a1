//! Keys of `rustls` behind the seam.

use ::rustls as tls;
use quipu_base::{PacketNumber, PathId};
use tls::quic;

use crate::tls::{DirectionKeys, HeaderKey, Keys, OpenError, PacketKey, PacketKeyPair, SealError};

pub(super) fn keys(from: quic::Keys) -> Keys {
    Keys { local: direction(from.local), remote: direction(from.remote) }
}

pub(super) fn direction(from: quic::DirectionalKeys) -> DirectionKeys {
    DirectionKeys {
        header: Box::new(RustlsHeaderKey(from.header)),
        packet: Box::new(RustlsPacketKey(from.packet)),
    }
}

pub(super) fn pair(from: quic::PacketKeySet) -> PacketKeyPair {
    PacketKeyPair {
        local: Box::new(RustlsPacketKey(from.local)),
        remote: Box::new(RustlsPacketKey(from.remote)),
    }
}

pub(super) struct RustlsPacketKey(pub(super) Box<dyn quic::PacketKey>);

impl PacketKey for RustlsPacketKey {
    fn seal(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload_and_tag: &mut [u8],
    ) -> Result<(), SealError> {
        let length = payload_and_tag.len().checked_sub(self.tag_length()).ok_or(SealError)?;
        let (payload, tag) = payload_and_tag.split_at_mut_checked(length).ok_or(SealError)?;
        let sealed = self
            .0
            .encrypt_in_place_for_path(path.0, number.0, header, payload)
            .map_err(|_| SealError)?;
        tag.copy_from_slice(sealed.as_ref());
        Ok(())
    }

    fn open(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        self.0
            .decrypt_in_place_for_path(path.0, number.0, header, payload)
            .map(<[u8]>::len)
            .map_err(|_| OpenError)
    }

    fn tag_length(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

struct RustlsHeaderKey(Box<dyn quic::HeaderProtectionKey>);

impl HeaderKey for RustlsHeaderKey {
    fn protect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), SealError> {
        self.0.encrypt_in_place(sample, first, number).map_err(|_| SealError)
    }

    fn unprotect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), OpenError> {
        self.0.decrypt_in_place(sample, first, number).map_err(|_| OpenError)
    }

    fn sample_length(&self) -> usize {
        self.0.sample_len()
    }
}
