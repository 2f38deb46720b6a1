//! The integrity tag of Retry packets.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::wire::ConnectionId;

/// <https://www.rfc-editor.org/rfc/rfc9001#section-5.8>
const KEY: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// The integrity tag of a Retry packet. `original_dcid` is the destination connection ID of the
/// packet that it answers; `packet` is the Retry packet without its tag.
///
/// It shows that the sender saw the client's packet; it is no secret, for the key is in the RFC.
/// The same for every implementation of the seam.
pub fn retry_tag(original_dcid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
    let mut pseudo_packet = Vec::with_capacity(1 + original_dcid.length() + packet.len());
    // A connection ID has at most 20 bytes.
    pseudo_packet.push(original_dcid.length() as u8);
    pseudo_packet.extend_from_slice(original_dcid.as_bytes());
    pseudo_packet.extend_from_slice(packet);

    let key = UnboundKey::new(&AES_128_GCM, &KEY).expect("KEY has the length of the algorithm's");
    let sealed = LessSafeKey::new(key)
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(NONCE),
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

    /// <https://www.rfc-editor.org/rfc/rfc9001#section-a.4>
    #[test]
    fn the_tag_of_rfc_9001_a4_is_computed() {
        let packet = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62,
            0xb5, 0x74, 0x6f, 0x6b, 0x65, 0x6e,
        ];
        let dcid = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap();
        let expected = [
            0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24,
            0x96, 0xba,
        ];
        assert_eq!(retry_tag(&dcid, &packet), expected);
    }
}
