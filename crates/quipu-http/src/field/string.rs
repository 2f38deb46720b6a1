//! String literals, plain or Huffman-coded.
//! <https://www.rfc-editor.org/rfc/rfc7541#section-5.2>

use thiserror::Error;

use super::huffman::{self, HuffmanError};
use super::integer::{self, IntegerError};

/// Why no string could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StringError {
    /// The length is no valid integer.
    #[error(transparent)]
    Length(#[from] IntegerError),
    /// The input ended inside the string.
    #[error("the input ends inside a string")]
    Truncated,
    /// The octets are not Huffman code.
    #[error(transparent)]
    Huffman(#[from] HuffmanError),
}

/// A string as it lies on the wire, its text not decoded yet.
#[derive(Clone, Copy, Debug)]
pub struct Literal<'a> {
    octets: &'a [u8],
    huffman: bool,
}

impl Literal<'_> {
    /// Appends the text to `out`: at most 8/5 of the octets on the wire.
    pub fn decode(self, out: &mut Vec<u8>) -> Result<(), HuffmanError> {
        if self.huffman {
            huffman::decode(self.octets, out)
        } else {
            out.extend_from_slice(self.octets);
            Ok(())
        }
    }
}

/// Appends `text` to `out`, in the shorter form. The first octet has `prefix` (1 to 7) low bits for
/// the length, the Huffman flag above them, and the bits of `flags` above that.
pub fn encode(prefix: u32, flags: u8, text: &[u8], out: &mut Vec<u8>) {
    debug_assert!((1..=7).contains(&prefix));
    let coded_len = huffman::encoded_len(text);
    if coded_len < text.len() {
        integer::encode(prefix, flags | 1 << prefix, coded_len as u64, out);
        huffman::encode(text, out);
    } else {
        integer::encode(prefix, flags, text.len() as u64, out);
        out.extend_from_slice(text);
    }
}

/// Reads a string with a length prefix of `prefix` (1 to 7) bits from the front of `input`, appends it
/// to `out` and moves `input` behind it. At most 8/5 of the octets read are appended.
pub fn decode(prefix: u32, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), StringError> {
    Ok(split(prefix, input)?.decode(out)?)
}

/// Reads a string as [`decode`] does, but leaves its text undecoded.
pub fn split<'a>(prefix: u32, input: &mut &'a [u8]) -> Result<Literal<'a>, StringError> {
    debug_assert!((1..=7).contains(&prefix));
    let huffman = input.first().is_some_and(|first| first & 1 << prefix != 0);
    let length = integer::decode(prefix, input)?;
    let (octets, rest) = usize::try_from(length)
        .ok()
        .and_then(|length| input.split_at_checked(length))
        .ok_or(StringError::Truncated)?;
    *input = rest;
    Ok(Literal { octets, huffman })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, StringError> {
        let mut out = Vec::new();
        let mut rest = input;
        decode(7, &mut rest, &mut out)?;
        assert!(rest.is_empty());
        Ok(out)
    }

    #[test]
    fn the_shorter_form_is_chosen() {
        let mut out = Vec::new();
        encode(7, 0, b"www.example.com", &mut out);
        assert_eq!(out[0], 0x8c);
        assert_eq!(decoded(&out), Ok(b"www.example.com".to_vec()));
        out.clear();
        encode(7, 0, b"\x01\x02", &mut out);
        assert_eq!(out, [2, 1, 2]);
        assert_eq!(decoded(&out), Ok(vec![1, 2]));
    }

    #[test]
    fn the_flag_sits_above_the_prefix() {
        let mut out = Vec::new();
        encode(3, 0x20, b"aaaaaaaa", &mut out);
        assert_eq!(out[0], 0x20 | 0x08 | 5);
    }

    #[test]
    fn a_string_longer_than_the_input_is_an_error() {
        assert_eq!(decoded(&[3, b'a']), Err(StringError::Truncated));
        assert_eq!(decoded(&[0x7f]), Err(StringError::Length(IntegerError::Truncated)));
        assert_eq!(decoded(&[]), Err(StringError::Length(IntegerError::Truncated)));
    }
}
