//! The two integers that field sections start with.
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1>

use super::decoder::DecodeError;
use crate::field::integer;

const REQUIRED_PREFIX: u32 = 8;
const SIGN: u8 = 0x80;
const BASE_PREFIX: u32 = 7;
/// Octets of the smallest entry.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1>
const SMALLEST_ENTRY: u64 = 32;

/// Most entries that a table of `capacity` octets can hold.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1>
pub(super) const fn max_entries(capacity: u64) -> u64 {
    capacity / SMALLEST_ENTRY
}

/// What a section needs of the table, and where its indexes count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// The Required Insert Count: insertions that must have happened before the section can be
    /// decoded. Zero if it refers to no entry of the dynamic table.
    pub(super) required: u64,
    /// The Base: relative indexes count down from the entry before it, post-Base indexes count up
    /// from it.
    pub(super) base: u64,
}

impl Prefix {
    /// Appends the prefix to `out`. `max_entries` is that of the largest table that the decoder
    /// allows.
    pub(super) fn encode(self, max_entries: u64, out: &mut Vec<u8>) {
        let Prefix { required, base } = self;
        if required == 0 {
            // https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
            //# A field section that was encoded without references to the dynamic table can use
            //# any value for the Base; setting Delta Base to zero is one of the most efficient
            //# encodings.
            out.extend_from_slice(&[0, 0]);
            return;
        }
        // An entry is only in a table that has room for one.
        let range = 2 * max_entries.max(1);
        integer::encode(REQUIRED_PREFIX, 0, required % range + 1, out);
        match base.checked_sub(required) {
            Some(delta) => integer::encode(BASE_PREFIX, 0, delta, out),
            None => integer::encode(BASE_PREFIX, SIGN, required - base - 1, out),
        }
    }

    /// Reads the prefix from the front of `input`, and moves `input` behind it. `max_entries` is that
    /// of the largest table that this end allows, `inserted` the number of insertions received.
    pub(super) fn decode(
        max_entries: u64,
        inserted: u64,
        input: &mut &[u8],
    ) -> Result<Prefix, DecodeError> {
        let encoded = integer::decode(REQUIRED_PREFIX, input)?;
        let negative = input.first().is_some_and(|first| first & SIGN != 0);
        let delta = integer::decode(BASE_PREFIX, input)?;
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1
        //# If the decoder encounters a value of EncodedInsertCount that
        //# could not have been produced by a conformant encoder, it MUST treat this as a
        //# connection error of type QPACK_DECOMPRESSION_FAILED.
        let required = required_insert_count(max_entries, inserted, encoded)
            .ok_or(DecodeError::RequiredInsertCount { encoded })?;
        let base = if negative {
            // https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
            //# An endpoint MUST treat a field block with a Sign bit of 1 as
            //# invalid if the value of Required Insert Count is less than or equal to the value
            //# of Delta Base.
            required
                .checked_sub(delta)
                .and_then(|base| base.checked_sub(1))
                .ok_or(DecodeError::NegativeBase { required, delta })?
        } else {
            required.saturating_add(delta)
        };
        Ok(Prefix { required, base })
    }

    /// The absolute index for a relative one.
    /// <https://www.rfc-editor.org/rfc/rfc9204#section-3.2.5>
    pub(super) fn relative(self, index: u64) -> Result<u64, DecodeError> {
        self.base
            .checked_sub(index)
            .and_then(|index| index.checked_sub(1))
            .ok_or(DecodeError::RelativeIndex { index, base: self.base })
    }

    /// The absolute index for a post-Base one.
    /// <https://www.rfc-editor.org/rfc/rfc9204#section-3.2.6>
    pub(super) fn post_base(self, index: u64) -> u64 {
        self.base.saturating_add(index)
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1>
fn required_insert_count(max_entries: u64, inserted: u64, encoded: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let range = 2 * max_entries;
    if encoded > range {
        return None;
    }
    let largest = inserted + max_entries;
    // The count is no larger than `largest`, and congruent to `encoded - 1`.
    let count = largest / range * range + encoded - 1;
    let count = if count > largest { count.checked_sub(range)? } else { count };
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// <https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1>
    #[test]
    fn insert_counts_wrap_as_in_the_rfc() {
        assert_eq!(required_insert_count(max_entries(100), 10, 4), Some(9));
        assert_eq!(required_insert_count(3, 0, 7), None);
        assert_eq!(required_insert_count(0, 0, 1), None);
        // Zero is encoded as zero, and nothing as a negative number.
        assert_eq!(required_insert_count(3, 0, 1), None);
        assert_eq!(required_insert_count(3, 0, 5), None);
    }

    /// <https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2>
    #[test]
    fn a_negative_delta_counts_down_from_the_insert_count() {
        // Required Insert Count 9, Sign 1, Delta Base 2.
        let prefix = Prefix::decode(3, 9, &mut &[4, 0x82][..]).unwrap();
        assert_eq!(prefix, Prefix { required: 9, base: 6 });
        assert_eq!(prefix.relative(1), Ok(4));
        assert_eq!(prefix.post_base(1), 7);
        let error = DecodeError::NegativeBase { required: 9, delta: 9 };
        assert_eq!(Prefix::decode(3, 9, &mut &[4, 0x89][..]), Err(error));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            max_entries in 1_u64..200,
            inserted in 0_u64..1000,
            ahead in any::<proptest::sample::Index>(),
            base in 0_u64..2000,
        ) {
            // What an encoder may require of a decoder with so many insertions.
            let smallest = (inserted + 1).saturating_sub(max_entries).max(1);
            let largest = inserted + max_entries;
            let required = smallest + ahead.index((largest - smallest + 1) as usize) as u64;
            let prefix = Prefix { required, base };
            let mut out = Vec::new();
            prefix.encode(max_entries, &mut out);
            prop_assert_eq!(Prefix::decode(max_entries, inserted, &mut &out[..]), Ok(prefix));
        }
    }
}
