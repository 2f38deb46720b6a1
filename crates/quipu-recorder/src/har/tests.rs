use proptest::prelude::*;
use quipu_base::{Bytes, Duration};
use quipu_web::har::Har;
use quipu_web::page::{ReadOptions, read};
use quipu_web::trace;

use super::*;
use crate::observed::Observed;
use crate::{Exchange, Network};

/// A load of which `events` were told.
fn load(events: &[(&str, Value)]) -> Load {
    let mut observed = Observed::default();
    for (method, params) in events {
        observed.take(method, params);
    }
    observed.end();
    Load {
        network: Network::default(),
        repeat: 2,
        url: "https://a.test/".to_owned(),
        browser: "Chrome/156.0".to_owned(),
        viewport: (1280, 900),
        shaped: true,
        observed,
    }
}

/// The pages and the entries of its file.
fn written(load: Load) -> (Value, Vec<Value>) {
    let bytes = file(&[load], "1.0", false);
    Har::parse(&bytes).unwrap();
    let mut file: Value = serde_json::from_slice(&bytes).unwrap();
    let entries = file["log"]["entries"].as_array().unwrap().clone();
    (file["log"]["pages"][0].take(), entries)
}

/// A request that is asked for at `at` seconds.
fn asked(id: &str, url: &str, at: f64, kind: &str) -> (&'static str, Value) {
    let params = json!({
        "requestId": id, "loaderId": "L", "timestamp": at, "wallTime": 1_600_000_000.0 + at,
        "request": { "url": url, "method": "GET", "headers": { "A": "b" }, "initialPriority": "High" },
        "initiator": { "type": "other" }, "type": kind,
    });
    ("Network.requestWillBeSent", params)
}

/// A response whose network time began at `start`.
fn answered(id: &str, at: f64, start: f64) -> (&'static str, Value) {
    let timing = json!({
        "requestTime": start, "dnsStart": 1.0, "dnsEnd": 3.0, "connectStart": 3.0, "connectEnd": 9.0,
        "sslStart": 5.0, "sslEnd": 9.0, "sendStart": 10.0, "sendEnd": 10.5, "receiveHeadersEnd": 30.5,
    });
    let params = json!({
        "requestId": id, "timestamp": at, "type": "Document", "hasExtraInfo": true,
        "response": { "status": 200, "statusText": "OK", "mimeType": "text/html", "protocol": "h2",
            "headers": { "content-encoding": "br", "set-cookie": "a=1\nb=2" },
            "encodedDataLength": 100, "connectionId": 7, "remoteIPAddress": "[::1]", "timing": timing },
    });
    ("Network.responseReceived", params)
}

fn data(id: &str, at: f64, decoded: u32, encoded: u32) -> (&'static str, Value) {
    let lengths = json!({
        "requestId": id, "timestamp": at, "dataLength": decoded, "encodedDataLength": encoded,
    });
    ("Network.dataReceived", lengths)
}

fn finished(id: &str, at: f64, encoded: u32) -> (&'static str, Value) {
    let params = json!({ "requestId": id, "timestamp": at, "encodedDataLength": encoded });
    ("Network.loadingFinished", params)
}

#[test]
fn programs_get_the_times_of_exchanges_from_when_the_page_was_asked_for() {
    let load = load(&[
        asked("D", "https://a.test/", 100.0, "Document"),
        answered("D", 100.05, 100.01),
        data("D", 100.06, 3_000, 0),
        data("D", 100.08, 1_000, 0),
        finished("D", 100.08, 2_100),
        asked("E", "data:text/plain,x", 100.06, "Image"),
        asked("F", "https://a.test/f", 100.065, "Script"),
    ]);
    let exchanges: Vec<Exchange<'_>> = load.exchanges().collect();
    let [document, script] = &exchanges[..] else { panic!("{exchanges:?}") };
    let millis = Duration::from_millis;
    assert_eq!((document.url, document.protocol, document.status), ("https://a.test/", "h2", 200));
    assert_eq!((document.asked, document.connect), (Duration::ZERO, Some(millis(6))));
    assert_eq!((document.answered, document.finished), (Some(millis(50)), Some(millis(80))));
    assert_eq!(document.arrivals, [(millis(60), Bytes(1_500)), (millis(80), Bytes(500))]);
    assert_eq!((script.asked, script.status, script.finished), (millis(65), 0, None));
}

#[test]
fn an_entry_has_the_fields_of_chrome_har() {
    let (page, entries) = written(load(&[
        asked("D", "https://a.test/?x=1&y", 100.0, "Document"),
        ("Network.resourceChangedPriority", json!({ "requestId": "D", "newPriority": "VeryHigh" })),
        answered("D", 100.05, 100.01),
        data("D", 100.06, 3_000, 0),
        data("D", 100.09, 1_000, 0),
        finished("D", 100.08, 1_100),
        ("Page.domContentEventFired", json!({ "timestamp": 100.1 })),
        ("Page.loadEventFired", json!({ "timestamp": 100.2 })),
        (
            "Page.lifecycleEvent",
            json!({ "loaderId": "L", "name": "firstContentfulPaint", "timestamp": 100.15 }),
        ),
        ("Page.lifecycleEvent", json!({ "loaderId": "X", "name": "firstPaint", "timestamp": 9.0 })),
    ]));
    assert_eq!(page["startedDateTime"], "2020-09-13T12:28:20.000000Z");
    let timings =
        json!({ "onContentLoad": 100.0, "onLoad": 200.0, "_firstContentfulPaint": 150.0 });
    assert_eq!(page["pageTimings"], timings);
    assert_eq!((&page["_repeat"], &page["_network"]), (&json!(2), &json!("unlimited")));
    assert_eq!(page["_shaped"], true);
    assert_eq!(page["_traceOffset"], 100_000.0);

    let [entry] = entries.as_slice() else { panic!("one entry") };
    // The network began 10 ms after the page had asked.
    assert_eq!(entry["startedDateTime"], "2020-09-13T12:28:20.010000Z");
    assert_eq!(entry["time"], 70.0);
    let timings = json!({
        "_queued": 10.0, "blocked": 2.0, "dns": 2.0, "connect": 6.0, "ssl": 4.0, "send": 0.5,
        "wait": 20.0, "receive": 39.5,
    });
    assert_eq!(entry["timings"], timings);
    assert_eq!(entry["request"]["queryString"].as_array().unwrap().len(), 2);
    let response = &entry["response"];
    assert_eq!((&response["_transferSize"], &response["bodySize"]), (&json!(1_100), &json!(1_000)));
    assert_eq!(response["content"]["size"], 4_000);
    assert_eq!(response["content"]["compression"], 3_000);
    assert_eq!(response["headers"].as_array().unwrap().len(), 3, "two cookies are two lines");
    assert_eq!(entry["_arrivals"], json!([[50.0, 750], [70.0, 250]]));
    for (name, value) in [
        ("_requestId", "D"),
        ("_resourceType", "document"),
        ("_initialPriority", "High"),
        ("_priority", "VeryHigh"),
        ("_initiator_type", "other"),
        ("connection", "7"),
        ("serverIPAddress", "::1"),
    ] {
        assert_eq!(entry[name], value, "{name}");
    }
}

#[test]
fn hops_of_a_redirect_are_entries_with_their_own_headers() {
    let (_, mut hop) = asked("D", "https://a.test/b", 2.0, "Document");
    hop["redirectResponse"] = answered("D", 0.0, 1.0).1["response"].take();
    hop["redirectResponse"]["status"] = json!(302);
    hop["redirectHasExtraInfo"] = json!(true);
    let extra = |url: &str| {
        ("Network.requestWillBeSentExtraInfo", json!({ "requestId": "D", "headers": { "p": url } }))
    };
    let again = asked("D", "https://a.test/b", 2.1, "Document");
    let (_, entries) = written(load(&[
        extra("first"),
        asked("D", "https://a.test/", 1.0, "Document"),
        extra("second"),
        ("Network.requestWillBeSent", hop),
        again,
        answered("D", 2.4, 2.2),
        finished("D", 2.5, 300),
    ]));
    let [first, second] = entries.as_slice() else { panic!("two hops, none twice") };
    assert_eq!(first["response"]["status"], 302);
    assert_eq!(first["response"]["redirectURL"], "https://a.test/b");
    assert_eq!(first["request"]["headers"][0]["value"], "first");
    assert_eq!(second["request"]["headers"][0]["value"], "second");
    assert_eq!((&first["_requestId"], &second["_requestId"]), (&json!("D"), &json!("D")));
    assert_eq!(first["time"], 1_000.0);
}

#[test]
fn what_failed_or_did_not_end_is_marked() {
    let (told, entries) = written(load(&[
        asked("D", "https://a.test/", 1.0, "Document"),
        answered("D", 1.1, 1.0),
        data("D", 1.2, 500, 0),
        data("D", 1.3, 0, 300),
        ("Tracing.tracingComplete", json!({ "dataLossOccurred": true })),
        asked("1", "https://a.test/a", 2.0, "Fetch"),
        asked("2", "https://a.test/b", 3.0, "Script"),
        (
            "Network.loadingFailed",
            json!({ "requestId": "2", "timestamp": 3.5, "errorText": "net::ERR_FAILED" }),
        ),
        asked("3", "data:text/plain,x", 3.0, "Image"),
        ("Network.requestServedFromCache", json!({ "requestId": "D" })),
    ]));
    let [page, waits, failed] = entries.as_slice() else { panic!("data: is no entry") };
    assert_eq!((&page["_unfinished"], &page["response"]["bodySize"]), (&json!(true), &json!(300)));
    assert_eq!(told["_traceIncomplete"], true);
    assert_eq!(page["_fromCache"], "memory");
    assert_eq!(waits["response"]["_error"], "no response before the time was up");
    assert_eq!((&waits["time"], &waits["_unfinished"]), (&json!(1_500.0), &json!(true)));
    assert_eq!(failed["response"]["_error"], "net::ERR_FAILED");
    assert_eq!(failed["response"]["status"], 0);
}

#[test]
fn initiators_are_told_in_both_forms() {
    let frame = |url: &str| json!({ "url": url, "lineNumber": 3, "columnNumber": 4 });
    let fields = |value: &Value| Value::Object(initiator(value));
    let parser = json!({ "type": "parser", "url": "u", "lineNumber": 1 });
    assert_eq!(
        fields(&parser),
        json!({ "_initiator": "u", "_initiator_line": 1, "_initiator_type": "parser",
                "_initiator_detail": parser.to_string() })
    );
    let script = json!({ "type": "script", "stack": { "callFrames": [frame("")],
        "parent": { "callFrames": [frame(""), frame("s"), frame("t")] } } });
    let told = fields(&script);
    assert_eq!(told["_initiator"], "s");
    assert_eq!((&told["_initiator_line"], &told["_initiator_column"]), (&json!(3), &json!(4)));
    assert_eq!(fields(&Value::Null), json!({}));
}

#[test]
fn render_blocking_is_that_of_the_trace_or_of_the_request() {
    let mut first = asked("1", "https://a.test/a", 1.0, "Script");
    first.1["renderBlockingBehavior"] = json!("InBodyParserBlocking");
    let traced = json!([{ "name": "ResourceSendRequest", "ph": "I", "ts": 1, "pid": 1, "tid": 1,
        "args": { "data": { "requestId": "2", "url": "u", "renderBlocking": "blocking" } } }]);
    let (_, entries) = written(load(&[
        first,
        asked("2", "https://a.test/b", 2.0, "Script"),
        ("Tracing.dataCollected", json!({ "value": traced })),
    ]));
    assert_eq!(entries[0]["_renderBlocking"], "in_body_parser_blocking");
    assert_eq!(entries[1]["_renderBlocking"], "blocking");
}

#[test]
fn many_parts_of_a_body_are_joined_and_lose_no_byte() {
    let mut events = vec![asked("D", "https://a.test/", 1.0, "Document"), answered("D", 1.1, 1.0)];
    events.extend((0..3_500).map(|part| data("D", 1.1 + f64::from(part) / 1e3, 100, 0)));
    events.push(finished("D", 9.0, 200_100));
    let (_, entries) = written(load(&events));
    let arrivals = entries[0]["_arrivals"].as_array().unwrap();
    assert!(arrivals.len() <= 1_000);
    let sum: u64 = arrivals.iter().map(|point| point[1].as_u64().unwrap()).sum();
    assert_eq!(sum, 200_000);
}

proptest! {
    #[test]
    fn any_events_make_a_file_that_is_read(
        events in prop::collection::vec((0..10_usize, 0..3_u8, -10.0..1e5_f64, -100..1_000_000_i32), 0..30),
    ) {
        const METHODS: [&str; 10] = [
            "Network.requestWillBeSent", "Network.responseReceived", "Network.dataReceived",
            "Network.loadingFinished", "Network.loadingFailed", "Network.requestServedFromCache",
            "Network.requestWillBeSentExtraInfo", "Page.loadEventFired", "Page.lifecycleEvent",
            "Tracing.dataCollected",
        ];
        let mut all = vec![asked("0", "https://a.test/", 1.0, "Document"), answered("0", 1.2, 1.1)];
        all.extend(events.iter().map(|&(method, id, at, number)| {
            let params = json!({
                "requestId": id.to_string(), "timestamp": at, "wallTime": at * 1e6, "loaderId": number,
                "request": { "url": format!("https://a.test/{id}"), "headers": number },
                "redirectResponse": if number % 2 == 0 { Value::Null } else { json!({ "status": 302 }) },
                "response": { "timing": { "requestTime": number, "sendStart": at } },
                "dataLength": number, "encodedDataLength": number, "name": "firstPaint",
                "value": [{ "name": "RunTask", "ph": "X", "ts": at, "dur": number }],
            });
            (METHODS[method], params)
        }));
        let bytes = file(&[load(&all)], "1.0", false);
        Har::parse(&bytes).unwrap();
        let _ = read("page", &bytes, &ReadOptions::default());
        let _ = trace::read_recording(&bytes, None);
    }
}
