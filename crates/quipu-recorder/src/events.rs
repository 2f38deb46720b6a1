//! The part of a trace that is kept: what [`quipu_web::trace`] reads, in its form.

use std::collections::BTreeSet;

use quipu_web::trace;
use serde_json::{Map, Value};

/// The categories that are traced.
pub(crate) const CATEGORIES: [&str; 3] =
    ["devtools.timeline", "disabled-by-default-devtools.timeline", "blink.user_timing"];

/// Tasks shorter than this, in µs, are left out if nothing is known of what they did: they are most of the events, and
/// little of the time. Our choice.
const SHORTEST_TASK: f64 = 50.0;

/// What a request says of what waits for it, which recordings have at its entry.
pub(crate) const RENDER_BLOCKING: &str = "renderBlocking";

/// Events of a trace as they come.
#[derive(Debug, Default)]
pub(crate) struct Events {
    kept: Vec<Value>,
    /// Main threads of renderers.
    main: BTreeSet<(i64, i64)>,
    lost_some: bool,
}

impl Events {
    /// Takes the events of one message.
    pub(crate) fn take(&mut self, events: &Value) {
        for event in events.as_array().into_iter().flatten() {
            let name = event["name"].as_str().unwrap_or_default();
            if name == "thread_name" && event["args"]["name"] == "CrRendererMain" {
                self.main.insert(thread(event));
            }
            let short = name == "RunTask"
                && event["dur"].as_f64().is_some_and(|length| length < SHORTEST_TASK);
            if trace::is_read(name) && !short {
                self.kept.push(stripped(event));
            }
        }
    }

    /// Takes the end of the trace, which says whether the browser lost events.
    pub(crate) fn end(&mut self, complete: &Value) {
        self.lost_some = complete["dataLossOccurred"] == true;
    }

    /// Whether the browser lost events.
    pub(crate) fn lost_some(&self) -> bool {
        self.lost_some
    }

    /// What a recording has: the events of main threads, and requests of any.
    pub(crate) fn written(&self) -> Vec<&Value> {
        let is_request =
            |event: &Value| event["name"].as_str().is_some_and(|name| name.starts_with("Resource"));
        let kept = |event: &&Value| self.main.contains(&thread(event)) || is_request(event);
        let mut events: Vec<&Value> = self.kept.iter().filter(kept).collect();
        events.sort_by(|a, b| {
            let at = |event: &Value| event["ts"].as_f64().unwrap_or(0.0);
            at(a).total_cmp(&at(b))
        });
        events
    }

    /// The fields `field` of the requests that the trace tells, by request.
    pub(crate) fn of_requests<'a>(
        &'a self,
        field: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.kept.iter().filter_map(move |event| {
            let data = &event["args"]["data"];
            Some((data["requestId"].as_str()?, data[field].as_str()?))
        })
    }
}

fn thread(event: &Value) -> (i64, i64) {
    (event["pid"].as_i64().unwrap_or(0), event["tid"].as_i64().unwrap_or(0))
}

/// The event without what nobody reads.
fn stripped(event: &Value) -> Value {
    let only = |from: &Value, fields: &[&str]| {
        let pairs =
            fields.iter().filter_map(|&name| Some((name.to_owned(), from.get(name)?.clone())));
        pairs.collect::<Map<String, Value>>()
    };
    let fields: Vec<&str> = trace::ARGUMENTS.into_iter().chain([RENDER_BLOCKING]).collect();
    let mut kept = only(event, &["name", "ph", "ts", "dur", "pid", "tid"]);
    let mut args = only(&event["args"], &["name", "fileName"]);
    for part in ["data", "beginData"] {
        let data = only(&event["args"][part], &fields);
        if !data.is_empty() {
            args.insert(part.to_owned(), Value::Object(data));
        }
    }
    if !args.is_empty() {
        kept.insert("args".to_owned(), Value::Object(args));
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_is_what_is_read() {
        let event = |name: &str, tid: u32, rest: Value| {
            let mut event =
                json!({ "name": name, "ph": "X", "ts": 5, "dur": 900, "pid": 1, "tid": tid });
            event.as_object_mut().unwrap().append(&mut rest.as_object().unwrap().clone());
            event
        };
        let mut events = Events::default();
        events.take(&json!([
            event("RunTask", 2, json!({ "cat": "x", "tdur": 3 })),
            event("RunTask", 2, json!({ "dur": 20 })),
            event("RunTask", 3, json!({})),
            event("Layout", 2, json!({ "ts": 1, "args": { "endData": 7, "data": { "url": "u", "x": 1 } } })),
            event("Screenshot", 2, json!({})),
            event("ResourceSendRequest", 3, json!({ "args": { "data": { "requestId": "r",
                "url": "u", "renderBlocking": "blocking" } } })),
            { "name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": { "name": "CrRendererMain" } },
        ]));
        events.take(&json!(7));
        let names: Vec<&str> =
            events.written().iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["thread_name", "Layout", "RunTask", "ResourceSendRequest"]);
        assert_eq!(
            *events.written()[1],
            json!({ "name": "Layout", "ph": "X", "ts": 1, "dur": 900, "pid": 1, "tid": 2,
                    "args": { "data": { "url": "u" } } })
        );
        let found: Vec<_> = events.of_requests("renderBlocking").collect();
        assert_eq!(found, [("r", "blocking")]);
    }
}
