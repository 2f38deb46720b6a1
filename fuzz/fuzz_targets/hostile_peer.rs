//! An endpoint with a connection, against authentic packets of a hostile peer: either end is the victim,
//! with and without multipath, with HTTP/2 on top or without, with extensions or without. No panic, no
//! deadline that stands, no more memory or amplification than allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_testkit::forge::{Allocated, Bounds, Draw, Hostility, Octets};

fn counted(work: &mut dyn FnMut()) -> Allocated {
    let info = allocation_counter::measure(work);
    Allocated { held: info.bytes_current, peak: info.bytes_max, count: info.count_total }
}

fuzz_target!(|bytes: &[u8]| {
    let mut draw = Octets::new(bytes);
    let mut hostility = if draw.below(2) == 0 {
        Hostility::drawn(&mut draw, counted)
    } else {
        Hostility::drawn_extended(&mut draw, counted)
    };
    while !draw.is_empty() && !hostility.is_over() {
        hostility.step(&mut draw);
        if let Err(breach) = Bounds::default().check(hostility.forge()) {
            panic!("{breach}");
        }
    }
});
