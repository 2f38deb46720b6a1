//! A peer's transport parameters: what is accepted is written, and what was written is
//! read and written again as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::Role;
use quipu_quic::transport_parameters::TransportParameters;

fuzz_target!(|input: (bool, &[u8])| {
    let from = if input.0 { Role::Client } else { Role::Server };
    let Ok(parameters) = TransportParameters::read(input.1, from) else { return };
    // Not the parameters themselves: a time above what we count in is cut.
    let written = parameters.encode();
    let again = TransportParameters::read(&written, from).expect("our own are good");
    assert_eq!(again.encode(), written);
});
