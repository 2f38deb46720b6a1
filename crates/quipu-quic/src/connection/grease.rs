//! Values without meaning, so that nothing on the way and no peer comes to rely on their absence.

use super::Connection;
use crate::config::TransportConfig;
use crate::random::{NoRandomness, Randomness};
use crate::transport_parameters::{ParameterId, ReservedParameter};

/// A reserved transport parameter, drawn at random; `None` without grease.
///
/// # Errors
/// [`NoRandomness`] if the source failed.
// https://www.rfc-editor.org/rfc/rfc9000#section-18.1
// Numbers of the form 31 * N + 27 have no meaning, and any value.
pub(crate) fn reserved_parameter(
    config: &TransportConfig,
    random: &mut dyn Randomness,
) -> Result<Option<ReservedParameter>, NoRandomness> {
    if !config.grease {
        return Ok(None);
    }
    let [a, b, c, d, length, value @ ..] = random.draw::<12>()?;
    let number = u64::from(u32::from_be_bytes([0, a, b, c]));
    Ok(Some(ReservedParameter {
        id: ParameterId(31 * number + 27),
        value,
        length: usize::from(length) % (value.len() + 1),
        version: u32::from_be_bytes([a, b, c, d]) & 0xf0f0_f0f0 | 0x0a0a_0a0a,
    }))
}

/// The QUIC bits of packets to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicBits {
    /// The lowest one is the next, the highest that is set ends them.
    left: u64,
}

impl Default for QuicBits {
    fn default() -> Self {
        QuicBits { left: 1 }
    }
}

impl QuicBits {
    /// Whether the QUIC bit of the next packet is set. `random` is drawn from once in 63 packets.
    fn next(&mut self, random: impl FnOnce() -> Option<u64>) -> bool {
        if self.left <= 1 {
            let Some(bits) = random() else { return true };
            self.left = bits | 1 << 63;
        }
        let set = self.left & 1 != 0;
        self.left >>= 1;
        set
    }
}

impl Connection {
    /// Whether the QUIC bit of the next 1-RTT packet is cleared. Packets with long headers keep it.
    // https://www.rfc-editor.org/rfc/rfc9287#section-3.1
    //# Endpoints that receive the grease_quic_bit transport parameter from a peer SHOULD set the
    //# QUIC Bit to an unpredictable value unless another extension assigns specific meaning to the
    //# value of the bit.
    #[inline]
    pub(super) fn clears_quic_bit(&mut self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9287#section-3.1
        //# A server MUST set the QUIC Bit to 0 only after processing transport parameters from a
        //# client.
        // https://www.rfc-editor.org/rfc/rfc9287#section-3.1
        //# An endpoint MUST NOT set the QUIC Bit to 0 without knowing whether the peer supports the
        //# extension.
        if !self.handshake.peer().grease_quic_bit || !self.config.grease {
            return false;
        }
        let random = &mut self.random;
        !self.quic_bits.next(|| random.draw().ok().map(u64::from_le_bytes))
    }

    /// True for a packet whose QUIC bit is zero although we did not allow that.
    // https://www.rfc-editor.org/rfc/rfc9287#section-3
    //# An endpoint that advertises the grease_quic_bit transport parameter MUST accept packets with
    //# the QUIC Bit set to a value of 0.
    pub(super) fn needs_quic_bit(&self, quic_bit: bool) -> bool {
        !quic_bit && !self.config.grease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_lasts_for_63_packets() {
        let mut bits = QuicBits::default();
        let mut draws = 0;
        let mut set = 0;
        for _ in 0..630 {
            let next = bits.next(|| {
                draws += 1;
                Some(0x5555_5555_5555_5555)
            });
            set += u32::from(next);
        }
        assert_eq!((draws, set), (10, 320));
    }

    #[test]
    fn without_randomness_the_bit_is_set() {
        let mut bits = QuicBits::default();
        assert!(bits.next(|| None));
        assert!(!bits.next(|| Some(0)));
    }
}
