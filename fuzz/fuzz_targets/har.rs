//! A HAR file, or another recording that is made into one: a page that is read can be described, and all of it comes in
//! one load, whatever is taken for computing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::Instant;
use quipu_web::import::har_file;
use quipu_web::load::{DiscoveryMode, PageLoad};
use quipu_web::page::{Compute, ReadOptions, ReadPage, read};

fuzz_target!(|file: &[u8]| {
    let Ok(file) = har_file(file) else { return };
    for compute in [Compute::AsRecorded, Compute::Low, Compute::Likely, Compute::High] {
        let options = ReadOptions { compute, join: true, ..ReadOptions::default() };
        let Ok(page) = read("fuzz", &file, &options) else { return };
        check(page);
    }
});

fn check(page: ReadPage) {
    let _ = format!("{}{:#}", page.report, page.report);
    let page = page.page.shared();
    let mut load = PageLoad::new(page.clone(), DiscoveryMode::Recorded, Instant::ZERO);
    let (mut now, mut loaded) = (Instant::ZERO, 0);
    loop {
        load.handle_timeout(now);
        while let Some(object) = load.poll_request() {
            load.on_complete(object, now);
            loaded += 1;
        }
        let Some(deadline) = load.poll_timeout() else { break };
        now = now.max(deadline);
    }
    assert!(load.is_finished());
    assert_eq!(loaded, page.objects().len());
}
