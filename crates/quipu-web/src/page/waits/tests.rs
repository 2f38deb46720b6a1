use proptest::prelude::*;
use quipu_base::Duration;
use serde_json::{Value, json};

use crate::page::{Compute, Discovery, Object, Page, ReadOptions, read};
use crate::recording::join;

/// A request of a recording, all times in ms.
struct Request {
    path: &'static str,
    kind: &'static str,
    start: u64,
    wait: u64,
    receive: u64,
    bytes: u64,
    asked_by: Option<(&'static str, &'static str)>,
    blocks: bool,
    priority: Option<&'static str>,
}

fn request(path: &'static str, kind: &'static str, start: u64, wait: u64, receive: u64) -> Request {
    let (bytes, asked_by, blocks, priority) = (10_000, None, false, None);
    Request { path, kind, start, wait, receive, bytes, asked_by, blocks, priority }
}

impl Request {
    fn by(mut self, how: &'static str, path: &'static str) -> Request {
        self.asked_by = Some((how, path));
        self
    }

    fn of(mut self, bytes: u64) -> Request {
        self.bytes = bytes;
        self
    }

    fn blocking(mut self) -> Request {
        self.blocks = true;
        self
    }

    fn entry(&self) -> Value {
        let mut entry = json!({
            "startedDateTime": format!("2026-01-01T00:00:{:02}.{:03}Z", self.start / 1_000, self.start % 1_000),
            "time": self.wait + self.receive,
            "connection": "7",
            "request": { "url": format!("https://a.test/{}", self.path) },
            "response": { "status": 200, "bodySize": self.bytes, "content": { "size": self.bytes } },
            "timings": { "wait": self.wait, "receive": self.receive },
            "_resourceType": self.kind,
            "_priority": self.priority,
            "_renderBlocking": if self.blocks { "blocking" } else { "non_blocking" },
        });
        if let (Some((how, path)), Some(fields)) = (self.asked_by, entry.as_object_mut()) {
            fields.insert("_initiator".to_owned(), format!("https://a.test/{path}").into());
            fields.insert("_initiator_type".to_owned(), how.into());
            fields.insert("_initiator_line".to_owned(), 0.into());
        }
        entry
    }
}

fn file(requests: &[Request]) -> Vec<u8> {
    let entries: Vec<Value> = requests.iter().map(Request::entry).collect();
    json!({ "log": { "entries": entries } }).to_string().into_bytes()
}

fn inferred(file: &[u8], compute: Compute) -> Page {
    let options = ReadOptions { compute, join: true, ..ReadOptions::default() };
    read("test", file, &options).unwrap().page
}

fn object<'a>(page: &'a Page, path: &str) -> &'a Object {
    page.objects().iter().find(|object| object.path() == path).unwrap()
}

fn waits<'a>(page: &'a Page, path: &str) -> Vec<&'a str> {
    let of = object(page, path);
    let mut paths: Vec<&str> = of.needs().map(|need| page.object(need).unwrap().path()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn ms(time: Duration) -> u64 {
    time.as_millis()
}

#[test]
fn thinking_is_all_but_the_round_trip_where_nothing_else_arrives() {
    let requests = [
        request("", "document", 0, 60, 10),
        request("a", "xhr", 100, 20, 1).by("script", ""),
        request("b", "xhr", 200, 90, 1).by("script", ""),
    ];
    let page = inferred(&file(&requests), Compute::Likely);
    // The shortest wait counts as the round trip.
    let thoughts = ["/", "/a", "/b"].map(|path| ms(object(&page, path).think_time));
    assert_eq!(thoughts, [40, 0, 70]);
}

#[test]
fn thinking_that_other_responses_hide_is_what_servers_usually_take_and_has_a_range() {
    let requests = [
        request("", "document", 0, 20, 10),
        request("big", "image", 100, 20, 900).by("parser", ""),
        request("behind", "image", 101, 819, 1).by("parser", ""),
        request("alone", "image", 2_000, 30, 1).by("parser", ""),
    ];
    let think = |compute| ms(object(&inferred(&file(&requests), compute), "/behind").think_time);
    assert_eq!(think(Compute::Low), 0);
    // What the host took for its other files, in the median.
    assert_eq!(think(Compute::Likely), 0);
    assert!((799..=819).contains(&think(Compute::High)), "{}", think(Compute::High));
    assert_eq!(think(Compute::AsRecorded), 799);
}

#[test]
fn fonts_wait_for_all_that_blocks_rendering() {
    let requests = [
        request("", "document", 0, 20, 10),
        request("a.css", "stylesheet", 30, 20, 10).by("parser", "").blocking(),
        request("b.css", "stylesheet", 30, 20, 300).by("parser", "").blocking(),
        request("f.woff2", "font", 365, 20, 10).by("parser", "a.css"),
    ];
    let page = inferred(&file(&requests), Compute::Likely);
    assert_eq!(waits(&page, "/f.woff2"), ["/a.css", "/b.css"]);
    assert_eq!(ms(object(&page, "/f.woff2").gap.computing), 15);
    // At most all of it is computing, since the one that names it.
    let most = inferred(&file(&requests), Compute::High);
    assert_eq!(waits(&most, "/f.woff2"), ["/a.css"]);
    assert_eq!(ms(object(&most, "/f.woff2").gap.computing), 305);
}

#[test]
fn a_script_that_blocks_runs_behind_those_before_it() {
    let requests = [
        request("", "document", 0, 20, 10),
        request("a.css", "stylesheet", 30, 20, 400).by("parser", "").blocking(),
        request("b.js", "script", 31, 20, 10).by("parser", "").blocking(),
        request("c.json", "xhr", 460, 20, 10).by("script", "b.js"),
    ];
    // Both stand in line 0; the style sheet before the script.
    let mut entries: Vec<Value> = requests.iter().map(Request::entry).collect();
    entries[1]["_initiator_column"] = 10.into();
    entries[2]["_initiator_column"] = 90.into();
    let file = json!({ "log": { "entries": entries } }).to_string().into_bytes();
    let page = inferred(&file, Compute::Likely);
    assert_eq!(waits(&page, "/c.json"), ["/a.css", "/b.js"]);
    assert_eq!(ms(object(&page, "/c.json").gap.computing), 10);
}

#[test]
fn what_a_script_asks_for_may_have_waited_for_an_answer_to_it() {
    let requests = [
        request("", "document", 0, 20, 10),
        request("a.js", "script", 30, 20, 10).by("parser", ""),
        request("b.json", "xhr", 70, 500, 10).by("script", "a.js"),
        request("c.png", "image", 585, 20, 10).by("script", "a.js"),
    ];
    let page = inferred(&file(&requests), Compute::Likely);
    assert_eq!(waits(&page, "/c.png"), ["/b.json"]);
    assert_eq!(ms(object(&page, "/c.png").gap.computing), 5);
}

#[test]
fn the_begin_of_a_body_that_came_in_one_record_with_its_head_is_no_thinking() {
    // A link of 250 kB/s, over which nothing of a record of 16 kB is seen before all of it is there.
    let small = |path, start| request(path, "image", start, 60, 0).by("parser", "");
    let load = |receive| {
        let page = inferred(
            &file(&[
                request("", "document", 0, 20, 1).of(1_000),
                request("big", "image", 100, 86, 334).of(100_000).by("parser", ""),
                Request { receive, ..small("a", 1_000) },
                Request { receive, ..small("b", 1_200) },
                Request { receive, ..small("c", 1_400) },
            ]),
            Compute::Likely,
        );
        ["/a", "/b", "/c"].map(|path| ms(object(&page, path).think_time))
    };
    assert_eq!(load(0), [0, 0, 0]);
    // Bodies that took their time began to come with their first byte.
    assert_eq!(load(40), [40, 40, 40]);
}

#[test]
fn while_many_responses_wait_for_a_lost_packet_no_server_thinks() {
    let late = |path, wait| request(path, "image", 101, wait, 5).by("parser", "");
    let page = inferred(
        &file(&[
            request("", "document", 0, 20, 10),
            request("first", "image", 100, 20, 80).by("parser", ""),
            late("a", 500),
            late("b", 505),
            late("c", 510),
            late("d", 515),
        ]),
        Compute::Likely,
    );
    for path in ["/a", "/b", "/c", "/d"] {
        assert_eq!(ms(object(&page, path).think_time), 0, "{path}");
    }
}

#[test]
fn an_answer_that_only_less_urgent_responses_could_hide_was_thought_about() {
    let think = |urgent| {
        let requests = [
            request("", "document", 0, 20, 10),
            Request {
                priority: Some("Low"),
                ..request("big", "image", 100, 20, 500).of(500_000).by("parser", "")
            },
            Request {
                priority: Some(urgent),
                ..request("answer", "xhr", 150, 400, 5).by("script", "")
            },
        ];
        ms(object(&inferred(&file(&requests), Compute::Likely), "/answer").think_time)
    };
    // All of the wait but the round trip and 64 kB in buffers at 1 MB/s.
    assert_eq!(think("High"), 400 - 20 - 66);
    // Nothing is known of what came behind the image.
    assert_eq!(think("Low"), 48);
}

#[test]
fn a_module_waits_for_the_module_that_needs_it_although_the_loader_asks() {
    let requests = [
        request("", "document", 0, 20, 10),
        request("loader.js", "script", 30, 20, 10).by("parser", ""),
        request("a.js", "script", 70, 500, 10).by("script", "loader.js"),
        request("b.js", "script", 585, 90, 10).by("script", "loader.js"),
        // In the name of a module that the loader has run.
        request("c.js", "script", 690, 20, 10).by("script", "a.js"),
    ];
    let page = inferred(&file(&requests), Compute::Likely);
    assert_eq!(waits(&page, "/b.js"), ["/a.js"]);
    assert_eq!(waits(&page, "/c.js"), ["/b.js"]);
    assert_eq!(ms(object(&page, "/c.js").gap.computing), 5);
}

#[test]
fn a_delay_too_long_for_computing_has_a_cause_that_nobody_names() {
    let image = |late| {
        let requests = [
            request("", "document", 0, 20, 10),
            request("frame.html", "document", 40, 20, late).by("parser", ""),
            request("pixel.png", "image", 70 + late, 20, 10).by("script", ""),
        ];
        let page = inferred(&file(&requests), Compute::Likely);
        waits(&page, "/pixel.png").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(image(3_000), ["/frame.html"]);
    assert_eq!(image(300), ["/"], "the document computed, as the recording has it");
}

#[test]
fn a_file_that_was_made_up_is_taken_as_it_is() {
    let requests = [
        request("", "document", 0, 60, 500),
        request("a.css", "stylesheet", 62, 20, 798).by("parser", "").blocking(),
        request("f.woff2", "font", 900, 20, 100).by("parser", "a.css"),
    ];
    let entries: Vec<Value> = requests.iter().map(Request::entry).collect();
    let of = |creator: &str| {
        let log = json!({ "creator": { "name": creator }, "entries": entries });
        let file = json!({ "log": log }).to_string().into_bytes();
        [Compute::AsRecorded, Compute::Low, Compute::High].map(|it| inferred(&file, it).floor())
    };
    let made_up = of("written by hand");
    assert!(made_up.iter().all(|floor| *floor == made_up[0]), "{made_up:?}");
    let recorded = of("WebInspector");
    assert!(recorded[1] < recorded[2], "{recorded:?}");
}

/// A script whose answer was late, and an image that it asks for: 100 ms after the answer, or 100 ms after itself.
fn loads(slow: bool, after_answer: bool) -> Vec<u8> {
    let answer = if slow { 900 } else { 90 };
    let image = if after_answer { 70 + answer + 100 } else { 170 };
    file(&[
        request("", "document", 0, 20, 10),
        request("a.js", "script", 30, 20, 10).by("parser", ""),
        request("b.json", "xhr", 70, answer, 0).by("script", "a.js"),
        request("c.png", "image", image, 20, 10).by("script", "a.js"),
    ])
}

#[test]
fn two_recordings_tell_what_was_waited_for() {
    for after_answer in [false, true] {
        let (fast, slow) = (loads(false, after_answer), loads(true, after_answer));
        let page = inferred(&join(&[&slow, &fast]).unwrap(), Compute::Likely);
        let (named, delay) = if after_answer { ("/b.json", 100) } else { ("/a.js", 110) };
        assert_eq!(waits(&page, "/c.png"), [named]);
        let gap = object(&page, "/c.png").gap;
        // Nothing but a timer is as exact, whatever the network did.
        assert_eq!((ms(gap.computing), ms(gap.timer)), (0, delay));
    }
}

#[test]
fn an_object_that_nobody_named_while_the_document_arrived_was_found_in_what_had_come() {
    let requests = [
        request("", "document", 0, 100, 1_000),
        request("a.png", "image", 600, 20, 10),
        request("b.json", "xhr", 1_150, 20, 10),
    ];
    let page = inferred(&file(&requests), Compute::Likely);
    match object(&page, "/a.png").discovery {
        Discovery::ParserOffset { offset, .. } => assert_eq!(offset.0, 5_000),
        other => panic!("{other:?}"),
    }
    assert_eq!(waits(&page, "/b.json"), ["/"]);
}

#[test]
fn a_recording_that_tells_when_bytes_came_is_believed() {
    let requests = [request("", "document", 0, 100, 1_000), request("a.png", "image", 600, 20, 10)];
    let mut entries: Vec<Value> = requests.iter().map(Request::entry).collect();
    // Nearly all of it came at the end.
    entries[0]["_arrivals"] = json!([[100.0, 300], [590.0, 100], [1_100.0, 600]]);
    let file = json!({ "log": { "entries": entries } }).to_string().into_bytes();
    match object(&inferred(&file, Compute::Likely), "/a.png").discovery {
        Discovery::ParserOffset { offset, .. } => assert_eq!(offset.0, 4_000),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_floor_is_what_no_network_makes_faster() {
    let requests = [
        request("", "document", 0, 60, 500),
        request("a.css", "stylesheet", 62, 20, 798).by("parser", "").blocking(),
        request("f.woff2", "font", 900, 20, 100).by("parser", "a.css"),
    ];
    let page = inferred(&file(&requests), Compute::Likely);
    // The document's thinking and the computing before the font.
    assert_eq!(ms(page.floor()), 40 + 20);
    assert_eq!(ms(page.with_computing(3.0).floor()), 40 + 60);
}

const PATHS: [&str; 8] = ["", "1.js", "2.js", "3.css", "4.json", "5.woff2", "6.png", "7.html"];
const KINDS: [&str; 8] =
    ["document", "script", "script", "stylesheet", "xhr", "font", "image", "document"];

fn any_load() -> impl Strategy<Value = Vec<u8>> {
    let times = (0_u64..40, 0_u64..20, 0_u64..20, proptest::option::of(0_usize..8), any::<bool>());
    proptest::collection::vec((0_usize..8, times), 1..14).prop_map(|requests| {
        let request = |(at, (start, wait, receive, by, blocks))| {
            let at: usize = at;
            let by: Option<usize> = by;
            let kind = if at < 4 { "script" } else { "parser" };
            let asked_by = by.map(|by| (kind, PATHS[by]));
            Request { asked_by, blocks, ..request(PATHS[at], KINDS[at], start, wait, receive) }
        };
        let mut requests: Vec<Request> = requests.into_iter().map(request).collect();
        requests.sort_by_key(|request| request.start);
        file(&requests)
    })
}

proptest! {
    /// Whatever two recordings say, no object waits for itself, and a load of the page ends.
    #[test]
    fn any_two_recordings_make_a_page(one in any_load(), other in any_load()) {
        let joined = join(&[&one, &other]).unwrap();
        for compute in [Compute::AsRecorded, Compute::Low, Compute::Likely, Compute::High] {
            let options = ReadOptions { compute, join: true, ..ReadOptions::default() };
            prop_assert!(read("test", &joined, &options).is_ok(), "{:?}", compute);
        }
    }
}
