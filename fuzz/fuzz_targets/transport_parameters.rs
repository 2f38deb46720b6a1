//! A peer's transport parameters: what is accepted is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::Role;
use quipu_quic::transport_parameters::TransportParameters;

fuzz_target!(|input: (bool, &[u8])| {
    let from = if input.0 { Role::Client } else { Role::Server };
    let Ok(parameters) = TransportParameters::read(input.1, from) else { return };
    let again = TransportParameters::read(&parameters.encode(), from);
    assert_eq!(again.expect("our own are good"), parameters);
});
