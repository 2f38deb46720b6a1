//! Real recordings of every producer, against counts taken from the files by other means.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use quipu_base::Bytes;
use quipu_web::page::{Discovery, PageReport, ReadOptions, ReadPage, read};
use quipu_web::pages;

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

fn shipped(name: &str) -> ReadPage {
    let builtin = pages::find(name).unwrap_or_else(|error| panic!("{error}"));
    builtin.read().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Objects of a page by type, as text.
fn kinds(report: &PageReport) -> String {
    let kinds = report.kinds.iter().map(|total| format!("{} {}", total.objects, total.kind));
    kinds.collect::<Vec<_>>().join(", ")
}

#[test]
fn types_come_from_chrome_from_media_types_and_from_names() {
    for (page, expected) in [
        (
            shipped("cnn"),
            "188 document, 5 stylesheet, 115 script, 4 font, 150 xhr, 98 fetch, 550 image, \
             8 media, 23 preflight, 1 prefetch, 4 ping",
        ),
        // Old Chrome: everything but documents is "other".
        (recording("tests/data", "www.google.com-2017"), "3 document, 4 script, 6 image, 2 other"),
        // No types at all.
        (
            shipped("theverge-2016"),
            "35 document, 2 stylesheet, 71 script, 1 font, 5 xhr, 88 image, 42 other",
        ),
    ] {
        assert_eq!(kinds(&page.report), expected, "{}", page.report.name);
    }
}

#[test]
fn the_framework_pages_have_the_sizes_of_the_paper() {
    for (name, objects, bytes) in [
        ("framework-google", 15, 1_639_215),
        ("framework-youtube", 51, 1_609_657),
        ("framework-amazon", 25, 4_983_933),
    ] {
        let ReadPage { page, report } = shipped(name);
        assert_eq!((page.objects().len(), page.body_bytes().0), (objects, bytes), "{name}");
        assert_eq!(report.not_held, [], "{name}");
        let main = page.object(page.main_document()).map(|main| main.path());
        assert_eq!(main, Some("/index.html"), "{name}");
    }
    // In the order of the paper's client: the screenshot comes first.
    let amazon = shipped("framework-amazon").page.all_at_once();
    assert_eq!(amazon.objects()[0].path(), "/screenshot.png");
    assert_eq!(amazon.objects()[0].response_bytes.0, 2_995_453);
}

#[test]
fn the_mobileh2_stand_ins_have_the_counts_of_the_paper() {
    for (name, objects, bytes) in
        [("mobileh2-google", 14, 390_000), ("mobileh2-amazon", 256, 3_760_000)]
    {
        let page = shipped(name).page;
        assert_eq!((page.objects().len(), page.body_bytes().0), (objects, bytes), "{name}");
    }
}

#[test]
fn only_the_warm_recording_is_called_warm() {
    for (name, folder, ..) in RECORDINGS {
        let warm = recording(folder, name).report.warm_cache();
        assert_eq!(warm, name == "www.bbc.com-2015", "{name}");
    }
}

#[test]
fn pushed_objects_come_with_the_head_of_the_document() {
    for name in ["akamai", "ilmessaggero"] {
        let page = shipped(name).page;
        let pushed: Vec<_> = page.objects().iter().filter(|object| object.pushed).collect();
        assert_eq!(pushed.len(), 3, "{name}");
        for object in pushed {
            let parent = page.main_document();
            let at_head = Discovery::ParserOffset { parent, offset: Bytes(0) };
            assert_eq!(object.discovery, at_head, "{name} {}", object.id);
        }
    }
}

#[test]
fn a_recorded_http2_tree_is_kept() {
    let page = shipped("wikipedia").page;
    let logo = page.objects().iter().find(|object| object.path().ends_with("/enwiki.png"));
    let http2 =
        logo.and_then(|logo| logo.http2).map(|tree| (tree.stream, tree.parent, tree.weight));
    assert_eq!(http2, Some((11, 9, 147)));
}

#[test]
fn reports_of_four_producers() {
    insta::assert_snapshot!("web_page_test", shipped("google").report);
    insta::assert_snapshot!("framework", shipped("framework-youtube").report);
    insta::assert_snapshot!("warm_cache", recording("tests/data", "www.bbc.com-2015").report);
    insta::assert_snapshot!("firefox_in_full", format!("{:#}", shipped("google-firefox").report));
}
