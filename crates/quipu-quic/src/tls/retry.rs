//! The integrity tag of Retry packets.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::wire::{ConnectionId, Version};

/// Key and nonce of a version.
struct RetryKey {
    key: [u8; 16],
    nonce: [u8; 12],
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-5.8>
const V1: RetryKey = RetryKey {
    key: [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ],
    nonce: [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb],
};

/// <https://www.rfc-editor.org/rfc/rfc9369#section-3.3.3>
const V2: RetryKey = RetryKey {
    key: [
        0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc,
        0x92,
    ],
    nonce: [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a],
};

/// The integrity tag of a Retry packet. `original_dcid` is the destination connection ID of the
/// packet that it answers; `packet` is the Retry packet, of `version`, without its tag.
///
/// It shows that the sender saw the client's packet; it is no secret, for the key is in the RFC.
/// The same for every implementation of the seam.
pub fn retry_tag(version: Version, original_dcid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
    let RetryKey { key, nonce } = if version == Version::V2 { &V2 } else { &V1 };
    let mut pseudo_packet = Vec::with_capacity(1 + original_dcid.length() + packet.len());
    // A connection ID has at most 20 bytes.
    pseudo_packet.push(original_dcid.length() as u8);
    pseudo_packet.extend_from_slice(original_dcid.as_bytes());
    pseudo_packet.extend_from_slice(packet);

    let key = UnboundKey::new(&AES_128_GCM, key).expect("a key has the algorithm's length");
    let sealed = LessSafeKey::new(key)
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(*nonce),
            Aad::from(pseudo_packet),
            &mut [],
        )
        .expect("a text of no bytes is not too long");
    let mut tag = [0; 16];
    tag.iter_mut().zip(sealed.as_ref()).for_each(|(to, from)| *to = *from);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, packet: &[u8]) {
        let (packet, tag) = packet.split_last_chunk::<16>().unwrap();
        let dcid = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap();
        assert_eq!(retry_tag(version, &dcid, packet), *tag);
    }

    /// <https://www.rfc-editor.org/rfc/rfc9001#section-a.4>
    #[test]
    fn the_tag_of_rfc_9001_a4_is_computed() {
        check(
            Version::V1,
            &[
                0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62,
                0xb5, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82,
                0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba,
            ],
        );
    }

    /// <https://www.rfc-editor.org/rfc/rfc9369#appendix-A.4>
    #[test]
    fn the_tag_of_rfc_9369_a4_is_computed() {
        check(
            Version::V2,
            &[
                0xcf, 0x6b, 0x33, 0x43, 0xcf, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62,
                0xb5, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0xc8, 0x64, 0x6c, 0xe8, 0xbf, 0xe3, 0x39, 0x52,
                0xd9, 0x55, 0x54, 0x36, 0x65, 0xdc, 0xc7, 0xb6,
            ],
        );
    }
}
