//! Error codes of HTTP/2 and HTTP/3 that mean the same.
//! <https://www.rfc-editor.org/rfc/rfc9114#appendix-A.4>

use quipu_http::{h2, h3};

/// Each code of HTTP/3 that this end sends or that HTTP/2 has, with that of HTTP/2. A code of HTTP/2 that comes
/// more than once is read as the first.
const PAIRS: [(h3::ErrorCode, h2::ErrorCode); 9] = [
    (h3::ErrorCode::NO_ERROR, h2::ErrorCode::NO_ERROR),
    (h3::ErrorCode::GENERAL_PROTOCOL_ERROR, h2::ErrorCode::PROTOCOL_ERROR),
    (h3::ErrorCode::MESSAGE_ERROR, h2::ErrorCode::PROTOCOL_ERROR),
    (h3::ErrorCode::INTERNAL_ERROR, h2::ErrorCode::INTERNAL_ERROR),
    (h3::ErrorCode::REQUEST_REJECTED, h2::ErrorCode::REFUSED_STREAM),
    (h3::ErrorCode::REQUEST_CANCELLED, h2::ErrorCode::CANCEL),
    (h3::ErrorCode::CONNECT_ERROR, h2::ErrorCode::CONNECT_ERROR),
    (h3::ErrorCode::EXCESSIVE_LOAD, h2::ErrorCode::ENHANCE_YOUR_CALM),
    (h3::ErrorCode::VERSION_FALLBACK, h2::ErrorCode::HTTP_1_1_REQUIRED),
];

/// What HTTP/2 calls a code of HTTP/3; a protocol error if there is no such code.
pub(super) fn to_http2(code: h3::ErrorCode) -> h2::ErrorCode {
    let pair = PAIRS.iter().find(|(of_h3, _)| *of_h3 == code);
    pair.map_or(h2::ErrorCode::PROTOCOL_ERROR, |(_, of_h2)| *of_h2)
}

/// What HTTP/3 calls a code that came over HTTP/2; a protocol error if there is no such code.
pub(super) fn of_http2(code: u64) -> h3::ErrorCode {
    let pair = PAIRS.iter().find(|(_, of_h2)| of_h2.to_quic() == code);
    pair.map_or(h3::ErrorCode::GENERAL_PROTOCOL_ERROR, |(of_h3, _)| *of_h3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_survive_both_ways_unless_http2_has_one_for_two() {
        for (of_h3, of_h2) in PAIRS {
            assert_eq!(to_http2(of_h3), of_h2);
            if of_h3 != h3::ErrorCode::MESSAGE_ERROR {
                assert_eq!(of_http2(of_h2.to_quic()), of_h3);
            }
        }
        assert_eq!(of_http2(u64::from(u32::MAX) + 1), h3::ErrorCode::GENERAL_PROTOCOL_ERROR);
        assert_eq!(to_http2(h3::ErrorCode::ID_ERROR), h2::ErrorCode::PROTOCOL_ERROR);
    }
}
