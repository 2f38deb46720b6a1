use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::page::{ReadOptions, ReadPage, read};

const NETLOG: &str = include_str!("../../tests/data/site.netlog.json");
const TRACE: &str = include_str!("../../tests/data/site.trace.json");

fn fault(file: &str) -> String {
    har_file(file.as_bytes()).unwrap_err().to_string()
}

fn entries(file: &str) -> Vec<Value> {
    let har = har_file(file.as_bytes()).unwrap();
    let har: Value = serde_json::from_slice(&har).unwrap();
    har["log"]["entries"].as_array().unwrap().clone()
}

fn page(file: &str) -> ReadPage {
    read("test", &har_file(file.as_bytes()).unwrap(), &ReadOptions::default()).unwrap()
}

#[test]
fn kinds_are_known_by_their_content() {
    assert_eq!(kind::detect(b"\xef\xbb\xbf{\"log\":").unwrap(), Kind::Har);
    assert_eq!(kind::detect(NETLOG.as_bytes()).unwrap(), Kind::Netlog);
    assert_eq!(kind::detect(TRACE.as_bytes()).unwrap(), Kind::Trace);
    assert_eq!(kind::detect(b"[{\"cat\":\"x\",\"ph\":\"B\"},").unwrap(), Kind::Trace);
    // What the reader of HAR files knows best.
    for text in ["", "<html>", "{\"lgo\":{}}", "{\"x\":"] {
        assert_eq!(kind::detect(text.as_bytes()).unwrap(), Kind::Har, "{text}");
    }
}

#[test]
fn json_of_another_kind_is_told_what_is_supported() {
    let supported = "; expected a HAR file (`log`), a network log of Chrome (`constants` and `events`) or a \
                     performance recording of its developer tools (`traceEvents`)";
    for (file, found) in [
        ("{}", "an empty object"),
        ("{\"name\": \"x\", \"version\": 1}", "it has `name`, `version`"),
        ("[]", "an empty list"),
        ("[{\"a\": 1}]", "a list without events of a trace"),
        ("7", "a number"),
        ("null", "null"),
    ] {
        assert_eq!(fault(file), format!("not a recording: {found}{supported}"));
    }
}

#[test]
fn logs_without_what_is_needed_are_refused() {
    let constants = json!({
        "logEventTypes": { "REQUEST_ALIVE": 2, "URL_REQUEST_START_JOB": 3 },
        "logEventPhase": { "PHASE_BEGIN": 1, "PHASE_END": 2, "PHASE_NONE": 0 },
    });
    let log = |events: Value| format!("{{\"constants\":{constants},\"events\":{events}}}");
    let event = |kind: u32, params: Value| json!({ "type": kind, "phase": 1, "time": "5", "source": { "id": 7 }, "params": params });
    assert_eq!(
        fault(&log(json!([event(9, json!({}))]))),
        "a netlog without URL_REQUEST events: none of its 1 events is of a request"
    );
    let request = json!({ "url": "https://a.test/", "request_type": "other" });
    assert_eq!(
        fault(&log(json!([event(2, json!({})), event(3, request)]))),
        "a netlog without a page load: none of its 1 requests is for the document of a main frame; start logging \
         before the page is loaded"
    );
    assert_eq!(
        fault("{\"constants\":{},\"events\":[]}"),
        "a netlog without the names of its events: expected `constants` with `logEventTypes` before `events`"
    );
    assert_eq!(
        fault("{\"constants\":{\"logEventTypes\":7}}"),
        "not a netlog: invalid type: integer `7`, expected an object of numbers at line 1, column 31"
    );
    assert_eq!(
        fault("{\"traceEvents\":[]}"),
        "a trace without ResourceSendRequest events of a page; record the category devtools.timeline"
    );
    assert!(fault(&TRACE[..TRACE.len() / 2]).starts_with("the trace ends in the middle in event "));
}

#[test]
fn a_netlog_that_stops_anywhere_tells_what_came_before() {
    let whole = entries(NETLOG).len();
    let half = entries(&NETLOG[..NETLOG.len() * 3 / 4]);
    assert!(!half.is_empty() && half.len() < whole);
    let unfinished = |entry: &&Value| entry["_unfinished"] == true;
    assert!(half.iter().any(|entry| unfinished(&entry)));
    assert_eq!(entries(NETLOG).iter().filter(unfinished).count(), 0);
}

#[test]
fn what_the_browser_asks_for_itself_is_counted_and_left_out() {
    let ReadPage { page, report } = page(NETLOG);
    assert_eq!((report.load.of_browser, report.load.of_others), (5, 0));
    assert!(page.objects().iter().all(|object| object.host().ends_with(".test:8801")
        || object.host().ends_with(".test:8802")
        || object.host().ends_with(".test")));
    let text = report.to_string();
    assert!(text.contains("\nnot read    5 requests of the browser itself, 0 of other pages\n"));
}

#[test]
fn each_load_of_a_netlog_is_one_of_the_file() {
    // The same load again, ten minutes later, with other numbers.
    let mut log: Value = serde_json::from_str(NETLOG).unwrap();
    let events = log["events"].as_array().unwrap().clone();
    let again = events.into_iter().map(|mut event| {
        let time: f64 = event["time"].as_str().unwrap().parse().unwrap();
        event["time"] = json!((time + 600_000.0).to_string());
        for path in ["/source/id", "/params/source_dependency/id"] {
            if let Some(id) = event.pointer_mut(path) {
                *id = json!(id.as_u64().unwrap() + 1_000_000);
            }
        }
        event
    });
    let again: Vec<Value> = again.collect();
    log["events"].as_array_mut().unwrap().extend(again);
    let file = har_file(log.to_string().as_bytes()).unwrap().into_owned();
    let load = |number: &str| {
        let options = ReadOptions { load: Some(number.to_owned()), ..ReadOptions::default() };
        read("test", &file, &options).unwrap().report
    };
    let (first, second) = (load("1"), load("2"));
    assert_eq!((first.load.of, first.load.entries), (2, second.load.entries));
    assert_eq!(first.body_bytes, second.body_bytes);
    assert_eq!(page(&log.to_string()).report.load.number, 1);
}

#[test]
fn a_trace_stays_with_the_requests_made_of_it() {
    let har = har_file(TRACE.as_bytes()).unwrap();
    let activity = crate::trace::read_recording(&har, None).unwrap().unwrap();
    assert!(
        activity.timers().iter().any(|timer| timer.timeout.is_some_and(|it| it.as_millis() == 120))
    );
    let report = page(TRACE).report;
    assert!(report.load.on_load.is_some());
    // Traces tell none for documents and icons.
    assert_eq!(report.initiators_known, report.load.entries - 3);
}

#[test]
fn requests_of_http3_have_their_connection() {
    let types = json!({
        "REQUEST_ALIVE": 1, "URL_REQUEST_START_JOB": 2, "HTTP_STREAM_REQUEST_BOUND_TO_JOB": 3,
        "BOUND_TO_QUIC_SESSION_POOL_JOB": 4, "QUIC_SESSION_POOL_JOB_CONNECT": 5,
        "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": 6, "HTTP_TRANSACTION_SEND_REQUEST": 7,
        "HTTP_TRANSACTION_READ_RESPONSE_HEADERS": 8, "URL_REQUEST_JOB_FILTERED_BYTES_READ": 9,
    });
    let phases = json!({ "PHASE_BEGIN": 1, "PHASE_END": 2, "PHASE_NONE": 0 });
    let event = |time: u32, source: u32, kind: u32, phase: u32, params: Value| json!({ "time": time.to_string(), "source": { "id": source }, "type": kind, "phase": phase, "params": params });
    let job = |id: u32| json!({ "source_dependency": { "id": id } });
    let log = json!({ "constants": { "logEventTypes": types, "logEventPhase": phases }, "events": [
        event(10, 1, 1, 1, json!({ "priority": "HIGHEST" })),
        event(10, 1, 2, 1, json!({ "url": "https://a.test/", "request_type": "main frame" })),
        event(11, 2, 4, 0, job(3)),
        event(12, 3, 5, 1, json!({})),
        event(52, 3, 5, 2, json!({})),
        event(52, 1, 3, 0, job(2)),
        event(53, 1, 7, 1, json!({})),
        event(53, 1, 6, 0, json!({ "headers": [":method: GET"] })),
        event(54, 1, 7, 2, json!({})),
        event(94, 1, 8, 0, json!({ "headers": ["HTTP/1.1 200", "content-type: text/html"] })),
        event(95, 1, 9, 0, json!({ "byte_count": 700 })),
        event(96, 1, 1, 2, json!({})),
    ] });
    let entry = &entries(&log.to_string())[0];
    assert_eq!(entry["connection"], "3");
    assert_eq!(entry["request"]["httpVersion"], "h3");
    let timings = &entry["timings"];
    let phases = ["blocked", "connect", "ssl", "send", "wait", "receive"]
        .map(|it| timings[it].as_f64().unwrap());
    assert_eq!(phases, [3.0, 40.0, 40.0, 1.0, 40.0, 2.0]);
    assert_eq!(
        (&entry["response"]["bodySize"], &entry["response"]["headersSize"]),
        (&json!(700), &json!(-1))
    );
}

/// A file with a part replaced, and cut.
fn damaged(file: &str, at: usize, with: &str, cut: usize) -> Vec<u8> {
    let mut bytes = file.as_bytes().to_vec();
    let at = at % bytes.len();
    let end = (at + with.len()).min(bytes.len());
    bytes.splice(at..end, with.bytes());
    bytes.truncate(cut);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_files_never_panic(
        at: usize, with in "[\\[\\]{}\",:0-9a-z-]{0,6}", cut in 0..200_000_usize, trace: bool,
    ) {
        let file = damaged(if trace { TRACE } else { NETLOG }, at, &with, cut);
        if let Ok(har) = har_file(&file) {
            let _ = read("test", &har, &ReadOptions::default());
        }
    }

    #[test]
    fn any_bytes_never_panic(file in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = har_file(&file);
    }
}
