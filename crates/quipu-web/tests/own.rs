//! The pages that we recorded ourselves: each is read with its trace, at three speeds.

use std::path::PathBuf;

use quipu_base::Duration;
use quipu_web::archive::inflate;
use quipu_web::har::Har;
use quipu_web::page::{ReadOptions, read};
use quipu_web::trace::read_recording;

/// Larger than any of them unpacked.
const LIMIT: usize = 32 << 20;

/// Names and bytes of the recordings, unpacked.
fn recordings() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pages/own");
    let mut found: Vec<(String, Vec<u8>)> = folder
        .read_dir()
        .expect("the folder")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let packed = std::fs::read(&path).expect("the file");
            (name, inflate(&packed, LIMIT).expect("gzip").into_owned())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn each_has_loads_with_traces_at_three_speeds() {
    let recordings = recordings();
    assert_eq!(recordings.len(), 8);
    for (name, file) in recordings {
        let har = Har::parse(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(har.pages.len(), 6, "{name}");
        for load in 1..=har.pages.len() {
            let load = Some(load.to_string());
            let options = ReadOptions { load: load.clone(), ..ReadOptions::default() };
            let page =
                read(&name, &file, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(page.report.objects >= 10, "{name}: {} objects", page.report.objects);
            let trace = read_recording(&file, load.as_deref())
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .unwrap_or_else(|| panic!("{name} has no trace"));
            let busy = trace.busy(Duration::ZERO, Duration::from_secs(60));
            assert!(busy > Duration::from_millis(20), "{name}: {busy:?}");
            assert!(trace.requests().len() >= 10, "{name}: requests of the trace");
        }
    }
}

#[test]
fn a_slower_network_makes_each_page_later() {
    for (name, file) in recordings() {
        let har = Har::parse(&file).expect("a recording");
        let end = |index: usize| har.pages[index].page_timings.on_load.expect("a load event");
        // The loads of each repeat are at 2 and 20 Mbit/s and without a rate.
        for repeat in [0, 3] {
            assert!(end(repeat) > end(repeat + 2), "{name}: {} ms", end(repeat));
        }
    }
}
