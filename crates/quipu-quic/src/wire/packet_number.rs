//! Packet numbers on the wire: one to four low bytes, expanded by what was received before.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-17.1>

use quipu_base::PacketNumber;

use super::varint;

/// The low bytes of a packet number, as a header carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedPacketNumber {
    bits: u32,
    length: u8,
}

impl TruncatedPacketNumber {
    /// The longest form in bytes.
    pub const MAX_LENGTH: usize = 4;

    /// The shortest form of `number` that a receiver expands without doubt, given the largest
    /// packet number that it acknowledged in this space.
    ///
    /// A number more than 2^31 beyond what was acknowledged gets the longest form; no sender has
    /// so much in flight.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-a.2>
    pub const fn new(number: PacketNumber, largest_acknowledged: Option<PacketNumber>) -> Self {
        let unacknowledged = match largest_acknowledged {
            Some(largest) => number.0.saturating_sub(largest.0),
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.1
            //# Prior to receiving an acknowledgment for a packet number space, the full packet
            //# number MUST be included; it is not to be truncated, as described below.
            None => number.0.saturating_add(1),
        };
        // One bit more than the distance takes.
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.1
        //# After an acknowledgment is received for a packet number space, the sender MUST use a
        //# packet number size able to represent more than twice as large a range as the
        //# difference between the largest acknowledged packet number and the packet number being
        //# sent. An endpoint SHOULD use a large enough packet number encoding to allow the packet
        //# number to be recovered even if the packet arrives after packets that are sent
        //# afterwards.
        let length = if unacknowledged <= 1 << 7 {
            1
        } else if unacknowledged <= 1 << 15 {
            2
        } else if unacknowledged <= 1 << 23 {
            3
        } else {
            4
        };
        Self::with_length(number, length)
    }

    /// The low `length` bytes of `number`; `length` is taken as between 1 and 4.
    pub const fn with_length(number: PacketNumber, length: usize) -> Self {
        let length = match length {
            0 | 1 => 1,
            2 => 2,
            3 => 3,
            _ => 4,
        };
        let mask = u32::MAX >> (32 - 8 * length as u32);
        TruncatedPacketNumber { bits: number.0 as u32 & mask, length }
    }

    /// From received bytes, most significant first: the first four at most.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let length = u8::try_from(bytes.len()).ok().filter(|length| (1..=4).contains(length))?;
        let bits = bytes.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        Some(TruncatedPacketNumber { bits, length })
    }

    /// Number of bytes, 1 to 4.
    pub const fn length(self) -> usize {
        self.length as usize
    }

    /// The two low bits of the first byte of a header that carries this.
    pub const fn length_bits(self) -> u8 {
        self.length - 1
    }

    /// The value of the bytes alone.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The packet number closest to `expected` that ends in these bytes.
    ///
    /// `expected` is the largest packet number that was received in this space, plus one; zero if
    /// none was.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-a.3>
    pub const fn expand(self, expected: PacketNumber) -> PacketNumber {
        let expected = expected.0;
        let window = 1u64 << (8 * self.length as u32);
        let half = window / 2;
        let candidate = (expected & !(window - 1)) | self.bits as u64;
        let number = if candidate + half <= expected && candidate < varint::MAX + 1 - window {
            candidate + window
        } else if candidate > expected + half && candidate >= window {
            candidate - window
        } else {
            candidate
        };
        PacketNumber(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// <https://www.rfc-editor.org/rfc/rfc9000#section-a.2>
    #[test]
    fn examples_of_rfc_9000_a2_truncate() {
        let acknowledged = Some(PacketNumber(0xab_e8b3));
        let short = TruncatedPacketNumber::new(PacketNumber(0xac_5c02), acknowledged);
        assert_eq!((short.length(), short.bits()), (2, 0x5c02));
        let long = TruncatedPacketNumber::new(PacketNumber(0xac_e8fe), acknowledged);
        assert_eq!((long.length(), long.bits()), (3, 0xac_e8fe));
    }

    /// <https://www.rfc-editor.org/rfc/rfc9000#section-a.3>
    #[test]
    fn example_of_rfc_9000_a3_expands() {
        let truncated = TruncatedPacketNumber::from_bytes(&[0x9b, 0x32]).unwrap();
        let expected = PacketNumber(0xa82f_30ea + 1);
        assert_eq!(truncated.expand(expected), PacketNumber(0xa82f_9b32));
    }

    #[test]
    fn the_first_packets_take_one_byte() {
        assert_eq!(TruncatedPacketNumber::new(PacketNumber(0), None).length(), 1);
        assert_eq!(TruncatedPacketNumber::new(PacketNumber(127), None).length(), 1);
        assert_eq!(TruncatedPacketNumber::new(PacketNumber(128), None).length(), 2);
    }

    #[test]
    fn only_one_to_four_bytes_are_a_packet_number() {
        assert_eq!(TruncatedPacketNumber::from_bytes(&[]), None);
        assert_eq!(TruncatedPacketNumber::from_bytes(&[0; 5]), None);
    }

    proptest! {
        #[test]
        fn a_receiver_that_got_the_acknowledged_packet_expands_to_the_same_number(
            acknowledged in proptest::option::of(0u64..1 << 61),
            ahead in 1u64..1 << 30,
            received in 0.0f64..=1.0,
        ) {
            let first_unknown = acknowledged.map_or(0, |largest| largest + 1);
            let number = PacketNumber(first_unknown + ahead - 1);
            let truncated =
                TruncatedPacketNumber::new(number, acknowledged.map(PacketNumber));
            // The receiver has at least the acknowledged packet and at most all before this one.
            let expected = first_unknown + ((ahead - 1) as f64 * received) as u64;
            prop_assert_eq!(truncated.expand(PacketNumber(expected)), number);
        }

        #[test]
        fn any_bytes_expand_to_a_number_below_2_to_the_62(
            bits in any::<u32>(), length in 1usize..=4, expected in 0..=varint::MAX,
        ) {
            let bytes = bits.to_be_bytes();
            let truncated = TruncatedPacketNumber::from_bytes(&bytes[4 - length..]).unwrap();
            prop_assert!(truncated.expand(PacketNumber(expected)).0 <= varint::MAX);
        }
    }
}
