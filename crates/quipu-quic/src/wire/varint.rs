//! Variable-length integers: sizes and bounds. Reading and writing are on the cursors.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-16>

/// The largest value that a variable-length integer holds: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Bytes that `value` takes in its shortest form: 1, 2, 4 or 8.
#[inline]
pub const fn size(value: u64) -> usize {
    if value < 1 << 6 {
        1
    } else if value < 1 << 14 {
        2
    } else if value < 1 << 30 {
        4
    } else {
        8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{EndedEarly, Reader, Writer};

    /// The examples of <https://www.rfc-editor.org/rfc/rfc9000#section-a.1>.
    #[test]
    fn examples_of_rfc_9000_a1_decode() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
        }
    }

    #[test]
    fn every_size_has_its_bounds() {
        for (value, expected) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            ((1 << 30) - 1, 4),
            (1 << 30, 8),
            (MAX, 8),
        ] {
            assert_eq!(size(value), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back_in_the_stated_size(bits in 0u32..=62, value in 0..=MAX) {
            let value = value & ((1 << bits) - 1);
            let mut buffer = [0u8; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.put_varint(value).unwrap();
            prop_assert_eq!(writer.position(), size(value));
            let mut reader = Reader::new(writer.written());
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.is_empty());
            let cut = &writer.written()[..size(value) - 1];
            prop_assert_eq!(Reader::new(cut).varint(), Err(EndedEarly));
        }
    }
}
