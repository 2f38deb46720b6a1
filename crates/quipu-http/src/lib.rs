//! HTTP over QUIC streams, sans-IO.
