//! One small site by every kind of recording: `site.har` of `quipu page record` and `site.netlog.json` are of one load,
//! `site.trace.json` is of another. Chromium 156 made them; what is not read is left out of them.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use quipu_web::import::har_file;
use serde_json::Value;

fn entries(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let har = har_file(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    let har: Value = serde_json::from_slice(&har).unwrap_or_default();
    har["log"]["entries"].as_array().cloned().unwrap_or_default()
}

fn url(entry: &Value) -> &str {
    entry["request"]["url"].as_str().unwrap_or_default()
}

fn body(entry: &Value) -> f64 {
    let response = &entry["response"];
    let coded = response["content"]["size"].as_f64().unwrap_or(-1.0);
    // The recorder counts the frames of a body too, where nothing encodes it.
    response["bodySize"].as_f64().unwrap_or(-1.0).min(coded)
}

#[test]
fn a_netlog_tells_the_same_as_the_recorder_of_the_same_load() {
    let (recorded, logged) = (entries("site.har"), entries("site.netlog.json"));
    let urls = |entries: &[Value]| entries.iter().map(|it| url(it).to_owned()).collect::<Vec<_>>();
    assert_eq!(urls(&recorded), urls(&logged));
    for (recorded, logged) in recorded.iter().zip(&logged) {
        let url = url(recorded);
        for path in [
            "/request/method",
            "/request/headersSize",
            "/request/bodySize",
            "/request/httpVersion",
            "/response/status",
            "/response/headersSize",
            "/response/content/size",
            "/connection",
        ] {
            assert_eq!(recorded.pointer(path), logged.pointer(path), "{path} of {url}");
        }
        assert_eq!(body(recorded), body(logged), "{url}");
        let number = |entry: &Value, path: &str| entry.pointer(path).and_then(Value::as_f64);
        for name in ["wait", "receive", "connect"] {
            let path = format!("/timings/{name}");
            let millis = |entry: &Value| number(entry, &path).unwrap_or(-1.0).max(0.0);
            // A log has whole milliseconds, and tells when a request was ended rather than its last byte.
            let apart = (millis(recorded) - millis(logged)).abs();
            assert!(apart <= 5.0, "{name} of {url}: {apart}");
        }
    }
}

#[test]
fn a_trace_tells_the_same_requests_and_sizes() {
    let of = |name: &str| {
        let entries = entries(name);
        let redirects = |entry: &&Value| entry["response"]["redirectURL"] == "";
        let told = |entry: &Value| {
            let text = |path: &str| entry.pointer(path).cloned().unwrap_or_default().to_string();
            let status = text("/response/status");
            let kind = text("/_resourceType");
            let priority = text("/_initialPriority");
            (url(entry).to_owned(), status, kind, priority, body(entry) as u64)
        };
        let mut told: Vec<_> = entries.iter().filter(redirects).map(told).collect();
        told.sort();
        told
    };
    assert_eq!(of("site.har"), of("site.trace.json"));
    let moved =
        entries("site.trace.json").into_iter().find(|entry| url(entry).ends_with("/moved.png"));
    let target =
        moved.and_then(|entry| Some(entry["response"]["redirectURL"].as_str()?.to_owned()));
    assert_eq!(target.as_deref(), Some("http://page.test:8801/four.png"));
}
