//! A HAR file and a trace beside it as one file.

use serde_json::{Value, json};
use thiserror::Error;

use crate::har::{Har, HarError};
use crate::page::{PageError, is_of_first_load};
use crate::trace::{self, TraceError};

/// Why a recording and a trace do not make one file.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AddTraceError {
    /// The HAR file was not read.
    #[error(transparent)]
    Har(#[from] HarError),
    /// It has no load.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The trace was not read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// They have nothing in common.
    #[error(
        "the trace is of another load: none of its {requests} requests has a URL that the recording has exactly once{}",
        .first.as_ref().map(|url| format!("; its first is {url}")).unwrap_or_default()
    )]
    OfAnother {
        /// Requests of the trace.
        requests: usize,
        /// URL of the first of them.
        first: Option<String>,
    },
}

/// The HAR file `file` with `trace`, a file as [`trace::read`] takes it, as the trace of its first load, where
/// [`trace::read_recordings`] finds it. Events that are not read are left out.
///
/// # Errors
/// If one of them cannot be read, or the trace is of another load.
pub fn with_trace(file: &[u8], trace: &[u8]) -> Result<Vec<u8>, AddTraceError> {
    let har = Har::parse(file)?;
    let activity = trace::read(trace)?;
    if !is_of_first_load(&har, &activity)? {
        let mut requests = activity.requests().iter();
        let first = requests.next().map(|request| request.url.to_string());
        return Err(AddTraceError::OfAnother { requests: activity.requests().len(), first });
    }
    let mut document: Value = serde_json::from_slice(unmarked(file)).unwrap_or_default();
    let events = events(trace);
    if let Some(log) = document.get_mut("log") {
        add_events(log, events);
    }
    let mut text = document.to_string();
    text.push('\n');
    Ok(text.into_bytes())
}

/// Without a byte order mark.
fn unmarked(file: &[u8]) -> &[u8] {
    file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file)
}

/// The events of a trace that are read.
fn events(trace: &[u8]) -> Vec<Value> {
    let text = unmarked(trace);
    // A list may end without its bracket.
    let closed = || {
        let open = text.trim_ascii_end();
        let open = open.strip_suffix(b",").unwrap_or(open);
        serde_json::from_slice(&[open, b"]"].concat()).ok()
    };
    let whole: Option<Value> = serde_json::from_slice(text).ok().or_else(closed);
    let list = match whole {
        Some(Value::Array(list)) => list,
        Some(mut object) => match object.get_mut("traceEvents").map(Value::take) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        },
        None => Vec::new(),
    };
    let is_read = |event: &Value| event["name"].as_str().is_some_and(trace::is_read);
    list.into_iter().filter(is_read).collect()
}

/// Gives `events` to the page of the first load, which is there afterwards, with an id that its entries name.
fn add_events(log: &mut Value, events: Vec<Value>) {
    let texts = |list: &Value, field: &str| -> Vec<String> {
        let of = |item: &Value| Some(item.get(field)?.as_str()?.to_owned());
        list.as_array().into_iter().flatten().filter_map(of).collect()
    };
    let (ids, refs) = (texts(&log["pages"], "id"), texts(&log["entries"], "pageref"));
    let used = ids.iter().find(|id| refs.contains(id));
    let id = used.or(refs.first()).or(ids.first()).cloned().unwrap_or_else(|| "page_1".to_owned());
    for entry in log["entries"].as_array_mut().into_iter().flatten() {
        if !entry["pageref"].is_string() && entry.is_object() {
            entry["pageref"] = id.as_str().into();
        }
    }
    let mut pages = match log["pages"].take() {
        Value::Array(pages) => pages,
        _ => Vec::new(),
    };
    let at = pages.iter().position(|page| page["id"] == id.as_str()).unwrap_or_else(|| {
        pages.push(json!({ "id": id, "title": "", "pageTimings": {} }));
        pages.len() - 1
    });
    pages[at]["_traceEvents"] = Value::Array(events);
    log["pages"] = Value::Array(pages);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_base::Duration;

    use super::*;
    use crate::page::{Compute, Page, ReadOptions, read};

    /// A script at 0 ms, which is there at 100 ms, and an answer that it asks for at 400 ms.
    fn har(pages: &Value, pageref: &Value) -> Vec<u8> {
        let entry = |path: &str, start: u64, kind: &str| {
            json!({
                "pageref": pageref,
                "startedDateTime": format!("2026-01-01T00:00:00.{start:03}Z"),
                "time": 100,
                "request": { "url": format!("https://a.test/{path}") },
                "response": { "status": 200, "bodySize": 10 },
                "timings": { "wait": 90, "receive": 10 },
                "_resourceType": kind,
                "_initiator": "https://a.test/",
                "_initiator_type": "script",
            })
        };
        let mut answer = entry("answer", 400, "xhr");
        answer["_initiator"] = "https://a.test/a.js".into();
        // Open all the time, so that nothing but a trace tells what the browser did.
        let mut long = entry("long", 0, "image");
        long["time"] = 900.into();
        let entries = [entry("", 0, "document"), entry("a.js", 0, "script"), answer, long];
        json!({ "log": { "pages": pages, "entries": entries } }).to_string().into_bytes()
    }

    /// 120 ms of work from 150 ms on; a timer of 100 ms, set at its end, that fires at 380 ms and asks.
    fn trace(host: &str) -> Vec<u8> {
        let event = |name: &str, at: u64, phase: &str, length: u64, data: Value| {
            json!({
                "name": name, "ph": phase, "ts": at * 1_000 + 5_000_000, "dur": length * 1_000,
                "pid": 1, "tid": 1, "args": { "data": data },
            })
        };
        let send = |id: &str, path: &str, at: u64| {
            let data = json!({ "requestId": id, "url": format!("https://{host}/{path}") });
            event("ResourceSendRequest", at, "I", 0, data)
        };
        let timer = |fields: Value| json!({ "timerId": 1, "frame": "f", "singleShot": true, "timeout": fields });
        json!({ "traceEvents": [
            send("1", "", 0),
            send("2", "a.js", 0),
            event("FunctionCall", 150, "X", 120, json!({})),
            event("TimerInstall", 270, "I", 0, timer(json!(100))),
            event("TimerFire", 380, "X", 30, timer(json!(null))),
            send("3", "answer", 400),
            event("SomethingElse", 401, "X", 5, json!({})),
        ] })
        .to_string()
        .into_bytes()
    }

    fn answer(file: &[u8], compute: Compute) -> (u64, u64) {
        let options = ReadOptions { compute, ..ReadOptions::default() };
        let page: Page = read("test", file, &options).unwrap().page;
        let answer = page.objects().iter().find(|object| object.path() == "/answer").unwrap();
        (answer.gap.computing.as_millis(), answer.gap.timer.as_millis())
    }

    #[test]
    fn a_trace_beside_a_file_tells_computing_and_timers() {
        let page = json!([{ "id": "p", "startedDateTime": "2026-01-01T00:00:00Z" }]);
        for (pages, pageref) in [
            (page.clone(), json!("p")),
            (page, json!(null)),
            (json!(null), json!(null)),
            (json!([]), json!("of none")),
        ] {
            let plain = har(&pages, &pageref);
            assert_eq!(answer(&plain, Compute::Low), (0, 0));
            assert_eq!(answer(&plain, Compute::Likely), (300, 0));
            let traced = with_trace(&plain, &trace("a.test")).unwrap();
            // 120 ms of work, 20 ms in the task of the timer, and 10 ms for which it was late.
            assert_eq!(answer(&traced, Compute::Low), (140, 100));
            assert_eq!(answer(&traced, Compute::Likely), (200, 100));
            assert!(!String::from_utf8(traced).unwrap().contains("SomethingElse"));
        }
    }

    #[test]
    fn a_list_that_is_not_closed_is_a_trace_too() {
        let whole: Value = serde_json::from_slice(&trace("a.test")).unwrap();
        let mut list = whole["traceEvents"].to_string();
        list.truncate(list.len() - 1);
        list.push_str(",\n");
        let traced = with_trace(&har(&json!([]), &json!("p")), list.as_bytes()).unwrap();
        assert_eq!(answer(&traced, Compute::Low), (140, 100));
    }

    #[test]
    fn a_trace_of_another_page_is_refused() {
        let error = with_trace(&har(&json!([]), &json!("p")), &trace("b.test")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the trace is of another load: none of its 3 requests has a URL that the recording has exactly once; \
             its first is https://b.test/"
        );
    }

    proptest! {
        #[test]
        fn files_with_any_part_replaced_are_read_or_refused(
            at in 0..2_000_usize, with in "[\\[\\]{}\",:0-9a-z-]{0,4}", cut in prop::option::of(0..2_500_usize),
        ) {
            let mut file = with_trace(&har(&json!([]), &json!("p")), &trace("a.test")).unwrap();
            let at = at.min(file.len());
            let end = (at + with.len()).min(file.len());
            file.splice(at..end, with.bytes());
            file.truncate(cut.unwrap_or(usize::MAX));
            for compute in [Compute::Low, Compute::Likely, Compute::High] {
                let _ = read("test", &file, &ReadOptions { compute, ..ReadOptions::default() });
            }
            let _ = with_trace(&file, &trace("a.test"));
            let _ = with_trace(&har(&json!([]), &json!("p")), &file);
        }
    }

    #[test]
    fn times_of_traces_do_not_overflow() {
        let text = String::from_utf8(trace("a.test")).unwrap();
        for huge in ["1e300", "-1e300", "18446744073709551615"] {
            let text = text.replace("\"timeout\":100", &format!("\"timeout\":{huge}"));
            let file = with_trace(&har(&json!([]), &json!("p")), text.as_bytes()).unwrap();
            let (computing, timer) = answer(&file, Compute::Likely);
            assert!(Duration::from_millis(computing + timer) <= Duration::from_millis(300));
        }
    }
}
