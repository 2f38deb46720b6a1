//! QUIC v1 and its multipath extension (RFC 10069), sans-IO.
