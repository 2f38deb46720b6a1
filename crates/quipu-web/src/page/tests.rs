use proptest::prelude::*;
use quipu_base::{Bytes, Duration};

use super::*;

fn read_text(text: &str) -> ReadPage {
    // What the recording says, before anything is taken out of it.
    let options = ReadOptions { compute: Compute::AsRecorded, ..ReadOptions::default() };
    read("test", text.as_bytes(), &options).unwrap()
}

const ALL: [Compute; 4] = [Compute::AsRecorded, Compute::Low, Compute::Likely, Compute::High];

/// An entry that starts `start` ms into the load and takes `time` ms.
fn entry(path: &str, kind: &str, start: u64, time: u64, more: &str) -> String {
    format!(
        r#"{{"startedDateTime":"2026-01-01T00:00:{:02}.{:03}Z","time":{time},
        "request":{{"url":"https://a.test/{path}"}},
        "response":{{"status":200,"bodySize":1000,"headersSize":100,"content":{{"size":1000}}}},
        "_resourceType":"{kind}"{more}}}"#,
        start / 1000,
        start % 1000
    )
}

fn file(entries: &[String]) -> String {
    format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))
}

fn from(path: &str, line: u64) -> String {
    format!(
        r#","_initiator":"https://a.test/{path}","_initiator_type":"parser","_initiator_line":{line}"#
    )
}

fn by_script(path: &str) -> String {
    format!(r#","_initiator":"https://a.test/{path}","_initiator_type":"script""#)
}

fn offset(page: &Page, id: u32) -> u64 {
    match page.objects()[id as usize].discovery {
        Discovery::ParserOffset { offset, .. } => offset.0,
        other => panic!("#{id} is {other:?}"),
    }
}

#[test]
fn html_children_stand_at_the_byte_of_their_line() {
    let mut entries = vec![entry("", "document", 0, 500, "")];
    for (line, start) in [(10, 90), (20, 80), (50, 70), (99, 60)] {
        entries.push(entry(&format!("{line}.png"), "image", start, 10, &from("", line)));
    }
    let page = read_text(&file(&entries)).page;
    // Objects are in order of start: the last line first.
    let offsets: Vec<u64> = (1..5).map(|id| offset(&page, id)).collect();
    assert_eq!(offsets, [990, 500, 200, 100]);
}

#[test]
fn children_without_a_line_are_spread_evenly_in_document_order() {
    let asked = r#","_initiator":"https://a.test/","_initiator_type":"parser""#;
    let mut entries = vec![entry("", "document", 0, 500, "")];
    for start in [10, 20, 30] {
        entries.push(entry(&format!("{start}.png"), "image", start, 10, asked));
    }
    let read = read_text(&file(&entries));
    let offsets: Vec<u64> = (1..4).map(|id| offset(&read.page, id)).collect();
    assert_eq!(offsets, [250, 500, 750]);
    assert_eq!(read.report.guessed(GuessKind::OffsetSpread), 3);
}

#[test]
fn children_of_scripts_and_style_sheets_keep_the_recorded_gap() {
    let entries = [
        entry("", "document", 0, 100, ""),
        entry("a.css", "stylesheet", 50, 100, &from("", 1)),
        entry("f.woff", "font", 170, 10, &from("a.css", 1)),
        entry("a.js", "script", 60, 100, &from("", 2)),
        // Before the recorded end of its parent: no gap.
        entry("b.js", "script", 90, 10, &by_script("a.js")),
    ];
    let page = read_text(&file(&entries)).page;
    let found = |path: &str| {
        let url = format!("https://a.test/{path}");
        page.objects().iter().find(|object| object.url == url).unwrap()
    };
    let after = |parent: &str| Discovery::AfterCompletion { parent: found(parent).id };
    let gap = |path: &str| found(path).gap.computing.as_millis();
    assert_eq!((found("f.woff").discovery, gap("f.woff")), (after("a.css"), 20));
    assert_eq!((found("b.js").discovery, gap("b.js")), (after("a.js"), 0));
    assert_eq!(found("f.woff").evidence, Evidence::Recorded);
}

#[test]
fn the_stack_names_the_latest_ended_script_and_never_a_later_one() {
    let stack = r#","_initiator":{"type":"script","stack":{"callFrames":[{"url":"https://a.test/late.js"},
        {"url":"https://a.test/one.js"}],"parent":{"callFrames":[{"url":"https://a.test/two.js"}]}}}"#;
    let entries = [
        entry("", "document", 0, 100, ""),
        entry("one.js", "script", 10, 50, &from("", 1)),
        entry("two.js", "script", 11, 80, &from("", 2)),
        entry("x.png", "image", 200, 50, stack),
        entry("late.js", "script", 300, 50, &from("", 3)),
    ];
    let page = read_text(&file(&entries)).page;
    let image = &page.objects()[3];
    assert_eq!(image.discovery, Discovery::AfterCompletion { parent: ObjectId(2) });
    assert_eq!(image.gap.computing, Duration::from_millis(109));
}

#[test]
fn redirects_are_a_line_in_front_of_the_document() {
    let hop = |url: &str, to: &str, start: u64| {
        format!(
            r#"{{"startedDateTime":"2026-01-01T00:00:00.{start:03}Z","time":10,
            "request":{{"url":"{url}"}},"_resourceType":"document",
            "response":{{"status":301,"redirectURL":"{to}","bodySize":20,"headersSize":300}}}}"#
        )
    };
    let entries = [
        hop("https://x.test/", "https://y.test/", 0),
        hop("https://y.test/", "https://a.test/", 15),
        entry("", "document", 30, 50, ""),
        entry("a.css", "stylesheet", 50, 50, &from("", 1)),
    ];
    let page = read_text(&file(&entries)).page;
    assert_eq!(page.main_document(), ObjectId(2));
    assert_eq!(page.objects()[0].discovery, Discovery::Root);
    for (hop, parent) in [(1, 0), (2, 1)] {
        let hop = &page.objects()[hop];
        assert_eq!(hop.discovery, Discovery::AfterCompletion { parent: ObjectId(parent) });
        assert_eq!(hop.gap.computing, Duration::from_millis(5));
    }
    assert_eq!(page.objects()[3].discovery.parent(), Some(ObjectId(2)));
    assert_eq!(page.depth(), 3);
}

#[test]
fn circles_of_initiators_are_cut_and_reported() {
    let entries = [
        entry("", "document", 0, 100, ""),
        entry("a.js", "script", 50, 10, &by_script("b.js")),
        entry("b.js", "script", 50, 10, &by_script("a.js")),
    ];
    let read = read_text(&file(&entries));
    assert_eq!(read.report.guessed(GuessKind::CyclicInitiator), 1);
    assert_eq!(read.page.objects()[1].discovery.parent(), Some(ObjectId(2)));
    assert_eq!(read.page.objects()[2].discovery.parent(), Some(ObjectId(0)));
}

#[test]
fn without_initiators_parents_come_from_types_and_times() {
    let entries = [
        entry("", "document", 0, 100, ""),
        entry("a.css", "stylesheet", 50, 100, ""),
        entry("a.js", "script", 60, 20, ""),
        entry("f.woff", "font", 170, 10, ""),
        entry("x.png", "image", 95, 10, ""),
    ];
    let read = read_text(&file(&entries));
    let parents: Vec<_> =
        read.page.objects().iter().map(|object| object.discovery.parent()).collect();
    // In order of start: document, a.css, a.js, x.png, f.woff.
    let expected = [None, Some(0), Some(0), Some(2), Some(1)];
    assert_eq!(parents, expected.map(|parent| parent.map(ObjectId)));
    assert_eq!(read.report.guessed(GuessKind::Parent), 4);
    assert!(read.page.objects()[1..].iter().all(|object| object.evidence == Evidence::Inferred));
}

#[test]
fn think_time_is_the_wait_without_the_round_trip() {
    let timed = |path: &str, start, timings: &str| {
        entry(path, "image", start, 100, &format!(r#","timings":{{{timings}}}"#))
    };
    let entries = [
        entry("", "document", 0, 90, r#","timings":{"connect":70,"ssl":50,"wait":60}"#),
        timed("a.png", 100, r#""connect":-1,"wait":25"#),
        timed("b.png", 100, r#""wait":20.5"#),
        timed("c.png", 100, r#""wait":-1"#),
    ];
    let page = read_text(&file(&entries)).page;
    let thinks: Vec<u64> =
        page.objects().iter().map(|object| object.think_time.as_micros()).collect();
    assert_eq!(thinks, [40_000, 5_000, 500, 0]);
}

#[test]
fn several_loads_in_a_file_are_told_apart() {
    let of =
        |load: &str, path: &str| entry(path, "document", 0, 10, &format!(r#","pageref":"{load}""#));
    let text = file(&[of("one", "1"), of("two", "2"), of("two", "3")]);
    let read_load = |load: Option<&str>| {
        read(
            "test",
            text.as_bytes(),
            &ReadOptions { load: load.map(str::to_owned), ..ReadOptions::default() },
        )
    };
    assert_eq!(read_load(None).unwrap().page.objects().len(), 1);
    for two in ["two", "2"] {
        let report = read_load(Some(two)).unwrap().report;
        assert_eq!((report.objects, report.load.number, report.load.of), (2, 2, 2));
    }
    assert_eq!(
        read_load(Some("3")).unwrap_err().to_string(),
        "no load `3` in the file; it has: one, two"
    );
}

#[test]
fn what_never_was_on_the_network_is_left_out_and_named() {
    let other = |url: &str, status: u32| {
        format!(r#"{{"request":{{"url":"{url}"}},"response":{{"status":{status}}}}}"#)
    };
    let entries = [
        other("data:image/gif;base64,", 200),
        entry("", "document", 0, 10, ""),
        other("wss://a.test/", 101),
        other("https://a.test/blocked", 0),
    ];
    let report = read_text(&file(&entries)).report;
    let reasons: Vec<_> = report.left_out.iter().map(|entry| entry.reason).collect();
    assert_eq!(reasons, [Skipped::NotHttp, Skipped::NotHttp, Skipped::Failed]);
    let nothing = file(&[other("about:blank", 200)]);
    assert_eq!(
        read("test", nothing.as_bytes(), &ReadOptions::default()).unwrap_err(),
        PageError::NothingToLoad { entries: 1 }
    );
}

#[test]
fn all_at_once_changes_discovery_alone() {
    let entries = [entry("", "document", 0, 100, ""), entry("a.js", "script", 5, 9, &from("", 3))];
    let page = read_text(&file(&entries)).page;
    let flat = page.all_at_once();
    assert_eq!(flat.depth(), 0);
    assert_eq!(flat.main_document(), page.main_document());
    assert_eq!(flat.body_bytes(), Bytes(2000));
}

#[test]
fn pages_by_hand_are_checked() {
    let object = |id, parent: Option<u32>| {
        let object = Object::new(ObjectId(id), "https://a.test/", ObjectKind::Image, Bytes(1));
        match parent {
            None => object,
            Some(parent) => object
                .discovered(Discovery::ParserOffset { parent: ObjectId(parent), offset: Bytes(0) }),
        }
    };
    let make = |objects| Page::new("test", objects).map(|page| page.depth());
    assert_eq!(make(vec![]), Err(PageError::NoObjects));
    assert_eq!(make(vec![object(1, None)]), Err(PageError::WrongId { position: 0, id: 1 }));
    assert_eq!(
        make(vec![object(0, Some(1))]),
        Err(PageError::UnknownParent { object: 0, parent: 1 })
    );
    assert_eq!(
        make(vec![object(0, None), object(1, Some(2)), object(2, Some(1))]),
        Err(PageError::Cycle { object: 1 })
    );
    assert_eq!(make(vec![object(0, Some(1)), object(1, Some(2)), object(2, None)]), Ok(2));
}

/// A small file with every form of initiator, for mutations.
fn seed_file() -> String {
    let stack = r#","_initiator":{"type":"script","stack":{"callFrames":[{"url":"https://a.test/a.js"}]}},
        "timings":{"connect":5,"ssl":2,"wait":9},"_priority":"High","_was_pushed":0"#;
    let text = file(&[
        entry("", "document", 0, 100, r#","_final_base_page":true"#),
        entry("a.js", "script", 10, 50, &from("", 7)),
        entry("b.png", "image", 80, 50, stack),
        entry("c.woff", "font", 90, 50, r#","pageref":"x","_http2_stream_id":3"#),
    ]);
    text.replacen(r#""log":{"#, r#""log":{"pages":[{"id":"x","pageTimings":{"onLoad":300}}],"#, 1)
}

proptest! {
    #[test]
    fn damaged_files_give_a_page_or_an_error(
        cut in 0_usize..2_500,
        changes in proptest::collection::vec((0_usize..2_500, any::<u8>()), 0..8),
    ) {
        let mut bytes = seed_file().into_bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if cut % 3 == 0 {
            bytes.truncate(cut);
        }
        for compute in ALL {
            let options = ReadOptions { compute, join: true, ..ReadOptions::default() };
            if let Err(error) = read("test", &bytes, &options) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn any_values_in_place_of_values_give_a_page_or_an_error(
        which in 0_usize..80,
        value in prop_oneof![
            Just("null"), Just("-1"), Just("-1e300"), Just("1e9"), Just("[]"), Just("{}"),
            Just("true"), Just(r#""x""#), Just(r#""9999-12-31T23:59:59Z""#), Just("1e18"),
            Just(r#""-009999-01-01T00:00:00Z""#), Just(r#""https://a.test/c.woff""#),
        ],
    ) {
        // Replaces the value after the which-th colon that follows a quoted name.
        let text = seed_file();
        let names: Vec<usize> = text.match_indices("\":").map(|(at, _)| at + 2).collect();
        let start = names[which % names.len()];
        let end = text[start..].find([',', '}']).map_or(text.len(), |end| start + end);
        let changed = format!("{}{value}{}", &text[..start], &text[end..]);
        for compute in ALL {
            let options = ReadOptions { compute, join: true, ..ReadOptions::default() };
            if let Ok(read) = read("test", changed.as_bytes(), &options) {
                prop_assert!(!read.report.to_string().is_empty());
            }
        }
    }

    #[test]
    fn random_initiators_give_a_tree(
        links in proptest::collection::vec((0_u64..3, 0_u64..4, 0_usize..12), 1..12),
    ) {
        let mut entries = vec![entry("", "document", 0, 5, "")];
        for (index, (start, time, to)) in links.iter().enumerate() {
            let path = format!("{index}.js");
            entries.push(entry(&path, "script", *start, *time, &by_script(&format!("{to}.js"))));
        }
        let text = file(&entries);
        for compute in ALL {
            let options = ReadOptions { compute, ..ReadOptions::default() };
            prop_assert!(read("test", text.as_bytes(), &options).is_ok(), "{:?}", compute);
        }
        let page = read_text(&text).page;
        prop_assert_eq!(page.objects().len(), entries.len());
        let roots = page.objects().iter().filter(|object| object.discovery.parent().is_none());
        prop_assert_eq!(roots.count(), 1);
    }
}
