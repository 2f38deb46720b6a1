//! Real recordings of every producer, against counts taken from the files by other means.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use quipu_web::page::{ReadOptions, ReadPage, read};

/// Name, folder, entries, bytes, entries with a known initiator: the table of `SOURCES.md`.
const RECORDINGS: [(&str, &str, usize, u64, usize); 18] = [
    ("www.google.com-2026-wpt", "pages", 39, 831_005, 36),
    ("www.google.com-2026-devtools", "pages", 40, 823_201, 35),
    ("www.google.com-2026-firefox", "pages", 42, 927_068, 0),
    ("www.amazon.com-2026-devtools", "pages", 15, 579_700, 13),
    ("youtube-embed-2024", "pages", 39, 1_581_201, 35),
    ("en.wikipedia.org-2018-chrome", "pages", 110, 1_368_170, 20),
    ("en.wikipedia.org-2018-firefox", "tests/data", 111, 1_355_414, 0),
    ("github.com-2015", "pages", 16, 1_635_048, 11),
    ("www.bbc.com-2015", "tests/data", 120, 3_364_401, 0),
    ("www.cnn.com-2026", "pages", 1_148, 30_336_358, 1_003),
    ("www.theverge.com-2026", "pages", 587, 6_791_975, 573),
    ("www.theverge.com-2016", "pages", 244, 2_506_117, 0),
    ("www.ilmessaggero.it-2018-push", "pages", 166, 1_625_301, 164),
    ("http2.akamai.com-demo-2018", "pages", 366, 1_192_041, 363),
    ("www.thegreenwebfoundation.org-2020", "pages", 51, 704_951, 49),
    ("www.sitespeed.io-2018", "pages", 9, 132_451, 7),
    ("www.google.com-2017", "tests/data", 15, 425_395, 8),
    ("www.masterofmalt.com-2024", "tests/data", 116, 1_313_253, 99),
];

fn recording(folder: &str, name: &str) -> ReadPage {
    let path = format!("{}/{folder}/{name}.har", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    read(name, &file, &ReadOptions::default()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn counts_and_bytes_are_those_of_the_table() {
    for (name, folder, entries, bytes, known) in RECORDINGS {
        let report = recording(folder, name).report;
        let found = (report.load.entries, report.recorded_bytes.0, report.initiators_known);
        assert_eq!(found, (entries, bytes, known), "{name}");
        assert_eq!(report.objects + report.left_out.len(), entries, "{name}");
    }
}
