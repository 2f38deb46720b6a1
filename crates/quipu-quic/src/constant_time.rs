//! Comparison of secrets.

use std::hint::black_box;

/// True if both are the same bytes. It takes the same time wherever they differ: all bytes are looked at,
/// and the compiler does not see that it could stop before.
pub(crate) fn equal<const LENGTH: usize>(one: &[u8; LENGTH], other: &[u8; LENGTH]) -> bool {
    let differences = one.iter().zip(other);
    differences.fold(0, |sum, (one, other)| black_box(sum | (one ^ other))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8);
        assert!(equal(&bytes, &bytes));
        for bit in 0..128 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!equal(&bytes, &other), "bit {bit}");
        }
    }
}
