//! The Huffman code for strings.
//! <https://www.rfc-editor.org/rfc/rfc7541#section-5.2>
//!
//! The code is canonical: codes of one length ascend with their symbols, and shorter codes come
//! first. So the list of lengths is all that is written down; codes and decoding tables are computed
//! from it when the program is compiled.

use thiserror::Error;

/// Symbols of the code: 256 octets and the end of string.
const SYMBOLS: usize = 257;
/// The symbol that ends a string. Its leading bits serve as padding; itself it is never sent.
const END_OF_STRING: u16 = 256;
const MAX_LENGTH: usize = 30;
/// Bits that one look into [`SHORT`] resolves.
const SHORT_BITS: u32 = 8;

/// Length of each symbol's code in bits.
/// <https://www.rfc-editor.org/rfc/rfc7541#appendix-B>
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The code in the forms that coding needs.
struct Code {
    /// Code of each symbol, in its low bits.
    codes: [u32; SYMBOLS],
    /// All symbols, shorter codes first: the canonical order.
    ordered: [u16; SYMBOLS],
    /// By length: the first code of that length.
    first: [u32; MAX_LENGTH + 1],
    /// By length: position of the first code's symbol in `ordered`.
    start: [u16; MAX_LENGTH + 1],
    /// By length: the first 32-bit string, taken as a number, that belongs to a longer code.
    limit: [u64; MAX_LENGTH + 1],
}

static CODE: Code = Code::canonical();
/// By the next eight bits: symbol and length of a code of at most eight bits, else length 0.
static SHORT: [(u8, u8); 1 << SHORT_BITS] = short_codes();

/// Why a string could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HuffmanError {
    /// The string contains the end-of-string symbol.
    #[error("a Huffman-coded string contains the end-of-string symbol")]
    EndOfString,
    /// The bits after the last symbol are not fewer than eight ones.
    #[error("the padding of a Huffman-coded string is not at most seven ones")]
    Padding,
}

impl Code {
    const fn canonical() -> Code {
        let mut code = Code {
            codes: [0; SYMBOLS],
            ordered: [0; SYMBOLS],
            first: [0; MAX_LENGTH + 1],
            start: [0; MAX_LENGTH + 1],
            limit: [0; MAX_LENGTH + 1],
        };
        let mut next = 0_u32;
        let mut position = 0;
        let mut length = 1;
        while length <= MAX_LENGTH {
            next <<= 1;
            code.first[length] = next;
            code.start[length] = position as u16;
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if LENGTHS[symbol] as usize == length {
                    code.codes[symbol] = next;
                    code.ordered[position] = symbol as u16;
                    next += 1;
                    position += 1;
                }
                symbol += 1;
            }
            code.limit[length] = (next as u64) << (32 - length);
            length += 1;
        }
        // The code is complete: every bit string starts with a code.
        assert!(next == 1 << MAX_LENGTH);
        code
    }
}

const fn short_codes() -> [(u8, u8); 1 << SHORT_BITS] {
    let code = Code::canonical();
    let mut table = [(0, 0); 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol] as u32;
        if length <= SHORT_BITS {
            let spare = SHORT_BITS - length;
            let mut entry = code.codes[symbol] << spare;
            let end = entry + (1 << spare);
            while entry < end {
                table[entry as usize] = (symbol as u8, length as u8);
                entry += 1;
            }
        }
        symbol += 1;
    }
    table
}

/// Octets that `text` takes when encoded.
pub fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&octet| usize::from(LENGTHS[usize::from(octet)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded `text` to `out`.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The low `held` bits of `bits` wait to be written; fewer than eight between symbols.
    let mut bits = 0_u64;
    let mut held = 0_u32;
    for &octet in text {
        let length = u32::from(LENGTHS[usize::from(octet)]);
        bits = bits << length | u64::from(CODE.codes[usize::from(octet)]);
        held += length;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    if held > 0 {
        // https://www.rfc-editor.org/rfc/rfc7541#section-5.2
        //# To prevent this padding from being misinterpreted as part of the string literal, the
        //# most significant bits of the code corresponding to the EOS (end-of-string) symbol are
        //# used.
        let padding = 8 - held;
        out.push((((bits << padding) | ((1 << padding) - 1)) & 0xff) as u8);
    }
}

/// Appends the text that `input` encodes to `out`: at most 8/5 of its length. After an error, `out`
/// ends with the symbols before it.
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    out.reserve(input.len());
    // The upper `held` bits of `bits` are unread; those below are zero.
    let mut bits = 0_u64;
    let mut held = 0_u32;
    let mut octets = input.iter();
    loop {
        while held <= 56 {
            let Some(&octet) = octets.next() else { break };
            bits |= u64::from(octet) << (56 - held);
            held += 8;
        }
        let (symbol, length) = SHORT[(bits >> 56) as usize];
        let length = if length > 0 {
            let length = u32::from(length);
            if length > held {
                break;
            }
            out.push(symbol);
            length
        } else {
            let (symbol, length) = long_code((bits >> 32) as u32);
            if length > held {
                break;
            }
            // https://www.rfc-editor.org/rfc/rfc7541#section-5.2
            //# A Huffman-encoded string literal containing the EOS symbol MUST be
            //# treated as a decoding error.
            if symbol == END_OF_STRING {
                return Err(HuffmanError::EndOfString);
            }
            out.push((symbol & 0xff) as u8);
            length
        };
        bits <<= length;
        held -= length;
    }
    // https://www.rfc-editor.org/rfc/rfc7541#section-5.2
    //# A padding strictly longer than 7 bits MUST be treated as a decoding
    //# error. A padding not corresponding to the most significant bits of
    //# the code for the EOS symbol MUST be treated as a decoding error.
    let ones = bits.leading_ones();
    if held > 7 || ones < held { Err(HuffmanError::Padding) } else { Ok(()) }
}

/// Symbol and length of the code of more than eight bits that `bits` starts with.
fn long_code(bits: u32) -> (u16, u32) {
    let mut length = SHORT_BITS as usize + 1;
    while length < MAX_LENGTH && u64::from(bits) >= CODE.limit[length] {
        length += 1;
    }
    let offset = (bits >> (32 - length)) - CODE.first[length];
    let symbol = CODE.ordered[usize::from(CODE.start[length]) + offset as usize];
    (symbol, length as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    /// <https://www.rfc-editor.org/rfc/rfc7541#appendix-B>
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, code) in [
            (0, 0x1ff8),
            (10, 0x3fff_fffc),
            (48, 0x0),
            (97, 0x3),
            (123, 0x7ffe),
            (199, 0x1ff_ffec),
            (255, 0x3ff_ffee),
            (256, 0x3fff_ffff),
        ] {
            assert_eq!(CODE.codes[symbol], code, "symbol {symbol}");
        }
    }

    #[test]
    fn every_octet_returns() {
        let all: Vec<u8> = (0..=255).collect();
        let mut out = Vec::new();
        encode(&all, &mut out);
        assert_eq!(out.len(), encoded_len(&all));
        assert_eq!(decoded(&out), Ok(all));
    }

    #[test]
    fn end_of_string_is_an_error() {
        assert_eq!(decoded(&[0xff; 4]), Err(HuffmanError::EndOfString));
    }

    #[test]
    fn padding_is_checked() {
        // '0' is five zero bits.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(HuffmanError::Padding));
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(HuffmanError::Padding));
        assert_eq!(decoded(&[0xff]), Err(HuffmanError::Padding));
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&text, &mut out);
            prop_assert_eq!(out.len(), encoded_len(&text));
            prop_assert_eq!(decoded(&out), Ok(text));
        }

        #[test]
        fn any_octets_decode_to_what_encodes_to_them(input in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(text) = decoded(&input) {
                let mut out = Vec::new();
                encode(&text, &mut out);
                prop_assert_eq!(out, input);
            }
        }
    }
}
