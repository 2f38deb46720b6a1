//! Keys: what protects payloads and headers.

use quipu_base::{PacketNumber, PathId};
use thiserror::Error;

/// A packet could not be sealed. Only a caller's fault leads here: the buffer is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the packet is too short or too long to be sealed")]
pub struct SealError;

/// A packet did not open: other key, path, number or header, or changed on the way. It is dropped
/// and counted against [`PacketKey::integrity_limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the packet did not authenticate")]
pub struct OpenError;

/// Protects payloads in one direction with one key.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-5.3>; the nonce holds the path ID as in
/// <https://www.rfc-editor.org/rfc/rfc10069#section-2.4>, and path 0 gives the nonce of RFC 9001.
pub trait PacketKey: Send + Sync {
    /// Encrypts a payload in place. `header` is the packet's header, packet number included and
    /// not protected; `payload_and_tag` is the payload followed by [`PacketKey::tag_length`]
    /// bytes, which are overwritten.
    ///
    /// # Errors
    /// [`SealError`] if there is no room for the tag.
    fn seal(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload_and_tag: &mut [u8],
    ) -> Result<(), SealError>;

    /// Decrypts `payload`, which ends in the tag, in place and returns the length of the
    /// plaintext, which lies at its start. After an error the bytes are of no use.
    ///
    /// # Errors
    /// [`OpenError`] if the packet does not authenticate.
    fn open(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError>;

    /// Bytes of the tag; 16 for every AEAD of QUIC v1.
    fn tag_length(&self) -> usize;

    /// Packets that may be sealed with one key, over all paths together.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-6.6>
    fn confidentiality_limit(&self) -> u64;

    /// Packets that may fail to open, over all paths and keys together.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-6.6>
    fn integrity_limit(&self) -> u64;
}

/// Protects the headers in one direction; the same through all key updates.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-5.4>
pub trait HeaderKey: Send + Sync {
    /// Masks a header. `sample`: [`HeaderKey::sample_length`] bytes of ciphertext; `first`: the
    /// packet's first byte; `number`: the packet number's 1 to 4 bytes.
    ///
    /// # Errors
    /// [`SealError`] if the sample has another length.
    fn protect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), SealError>;

    /// Unmasks a header. `number`: the four bytes where the packet number begins; as many of them
    /// are unmasked as the unmasked first byte tells.
    ///
    /// # Errors
    /// [`OpenError`] if the sample has another length.
    fn unprotect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), OpenError>;

    /// Bytes of the sample; 16 for every AEAD of QUIC v1.
    fn sample_length(&self) -> usize;
}

/// The keys of one direction.
pub struct DirectionKeys {
    /// Protects headers.
    pub header: Box<dyn HeaderKey>,
    /// Protects payloads.
    pub packet: Box<dyn PacketKey>,
}

/// The keys of one encryption level.
pub struct Keys {
    /// For what we send.
    pub local: DirectionKeys,
    /// For what the peer sends.
    pub remote: DirectionKeys,
}

/// The payload keys of one key phase. Header keys do not change with the phase.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-6>
pub struct PacketKeyPair {
    /// For what we send.
    pub local: Box<dyn PacketKey>,
    /// For what the peer sends.
    pub remote: Box<dyn PacketKey>,
}
