//! A report of 20,000 runs stays small.

use quipu_report::page::page;

use crate::folders::{Sweep, read, sweep_folder};
use crate::specs::check;

#[test]
fn a_report_of_20_000_runs_stays_below_10_mb() {
    let folder = tempfile::tempdir().unwrap();
    // 3 x 3 x 10 x 10 cells, 900, with 23 runs each.
    let sweep = Sweep { pages: 3, browsers: 3, networks: 10, policies: 10, runs: 23, objects: 10 };
    sweep_folder(folder.path(), &sweep);
    let document = read(folder.path());
    assert!(document.subtitle.starts_with("20,700 page loads"), "{}", document.subtitle);
    check(&document);
    let html = page(&document);
    assert!(html.len() < 7_000_000, "{} bytes", html.len());
}
