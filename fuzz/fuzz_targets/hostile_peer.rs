//! An endpoint with a connection, against authentic packets of a hostile peer: either end is the victim,
//! with and without multipath, with HTTP/2 on top or without. No panic, no deadline that stands, no
//! amplification.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_testkit::forge::{Bounds, Hostility, Octets, unmetered};

fuzz_target!(|bytes: &[u8]| {
    let mut draw = Octets::new(bytes);
    let mut hostility = Hostility::drawn(&mut draw, unmetered);
    while !draw.is_empty() && !hostility.is_over() {
        hostility.step(&mut draw);
        if let Err(breach) = Bounds::default().check(hostility.forge()) {
            panic!("{breach}");
        }
    }
});
