//! Recordings as HAR 1.2 files with the fields of chrome-har, and with our own for what it has none: `_network`,
//! `_shaped`, `_repeat`, `_viewport`, `_traceOffset` and `_traceEvents` of a page, `_arrivals` and `_unfinished` of an entry.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use quipu_web::phases::{Phases, Timing, date, encoded, rounded, written_arrivals};
use serde_json::{Map, Value, json};

use crate::Load;
use crate::events::RENDER_BLOCKING;
use crate::observed::Request;

/// The most bytes of an initiator's stack that are kept: our choice.
const MOST_DETAIL: usize = 20_000;

/// The HAR file of `loads`, each of which is a page of it, written by `version` of the program; gzip of it if `compress`.
pub fn file(loads: &[Load], version: &str, compress: bool) -> Vec<u8> {
    let text = text(loads, version);
    if !compress {
        return text.into_bytes();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(text.as_bytes());
    encoder.finish().unwrap_or_default()
}

/// A line for each page and each entry, so that the file can be looked at.
fn text(loads: &[Load], version: &str) -> String {
    let mut pages = Vec::new();
    let mut entries = Vec::new();
    for (number, load) in (1..).zip(loads) {
        let id = format!("page_{number}");
        pages.push(page(load, &id).to_string());
        let page = Page::new(load, &id);
        let mut requests: Vec<(f64, Value)> =
            load.observed.requests().iter().filter_map(|request| page.entry(request)).collect();
        requests.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        entries.extend(requests.into_iter().map(|(_, entry)| entry.to_string()));
    }
    let creator = json!({ "name": "quipu", "version": version });
    let (name, number) =
        loads.first().and_then(|load| load.browser.split_once('/')).unwrap_or(("Chrome", ""));
    let browser = json!({ "name": name, "version": number });
    format!(
        "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"browser\":{browser},\n\
         \"pages\":[\n{}\n],\n\"entries\":[\n{}\n]}}}}\n",
        pages.join(",\n"),
        entries.join(",\n"),
    )
}

fn page(load: &Load, id: &str) -> Value {
    let observed = &load.observed;
    let (start, wall) = observed.start();
    let marks = observed.marks();
    let since = |mark: Option<f64>| mark.map_or(json!(-1), |mark| rounded((mark - start) * 1e3));
    let mut timings = json!({
        "onContentLoad": since(marks.content_load),
        "onLoad": since(marks.load),
    });
    for (name, mark) in [
        ("_firstPaint", marks.first_paint),
        ("_firstContentfulPaint", marks.first_contentful_paint),
    ] {
        if mark.is_some() {
            timings[name] = since(mark);
        }
    }
    let mut page = json!({
        "id": id,
        "title": format!("{} at {}, repeat {}", load.url, load.network, load.repeat),
        "startedDateTime": date(wall * 1e3),
        "pageTimings": timings,
        "_url": load.url,
        "_network": load.network.written(),
        "_repeat": load.repeat,
        "_viewport": format!("{}x{}", load.viewport.0, load.viewport.1),
        // What the trace's clock read at startedDateTime, in ms.
        "_traceOffset": rounded(start * 1e3),
        "_traceEvents": observed.trace().written(),
    });
    if load.shaped {
        page["_shaped"] = json!(true);
    }
    if observed.trace().lost_some() {
        page["_traceIncomplete"] = json!(true);
    }
    page
}

/// What the entries of a load have in common.
struct Page<'a> {
    load: &'a Load,
    id: &'a str,
    render_blocking: BTreeMap<&'a str, &'a str>,
}

impl<'a> Page<'a> {
    fn new(load: &'a Load, id: &'a str) -> Page<'a> {
        let render_blocking = load.observed.trace().of_requests(RENDER_BLOCKING).collect();
        Page { load, id, render_blocking }
    }

    /// The entry of a request with its start, if the request is one for a resource.
    fn entry(&self, request: &Request) -> Option<(f64, Value)> {
        if !request.is_for_resource() {
            return None;
        }
        let observed = &self.load.observed;
        let phases = phases(request, observed.last());
        let (clock, wall) = observed.start();
        let mut entry = json!({
            "pageref": self.id,
            "startedDateTime": date(wall * 1e3 + (phases.start - clock * 1e3)),
            "time": rounded(phases.total()),
            "request": written_request(request),
            "response": written_response(request),
            "cache": {},
            "timings": phases.written(),
        });
        let fields = entry.as_object_mut()?;
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        if let Some(address) = request.response["remoteIPAddress"].as_str() {
            put("serverIPAddress", json!(address.trim_matches(['[', ']'])));
        }
        if let Some(connection) = request.response["connectionId"].as_u64().filter(|&id| id > 0) {
            put("connection", json!(connection.to_string()));
        }
        put("_requestId", json!(request.id));
        put("_resourceType", json!(request.kind.to_ascii_lowercase()));
        if let Some(priority) = request.request["initialPriority"].as_str() {
            put("_initialPriority", json!(priority));
        }
        if let Some(priority) = &request.priority {
            put("_priority", json!(priority));
        }
        if let Some(word) = self.render_blocking(request) {
            put("_renderBlocking", json!(word));
        }
        if request.request["isLinkPreload"] == true {
            put("_isLinkPreload", json!(true));
        }
        if let Some(cache) = from_cache(request) {
            put("_fromCache", json!(cache));
        }
        if request.finished.is_none() {
            put("_unfinished", json!(true));
        }
        let arrivals = written_arrivals(&arrivals(request), phases.start);
        if !arrivals.is_empty() {
            put("_arrivals", json!(arrivals));
        }
        fields.append(&mut initiator(&request.initiator));
        Some((phases.start, entry))
    }

    /// Chromium's word in a trace; the protocol has another form of it.
    fn render_blocking(&self, request: &Request) -> Option<String> {
        if let Some(word) = self.render_blocking.get(request.id.as_str()) {
            return Some((*word).to_owned());
        }
        let mut word = String::new();
        for sign in request.render_blocking.as_deref()?.chars() {
            if sign.is_ascii_uppercase() && !word.is_empty() {
                word.push('_');
            }
            word.push(sign.to_ascii_lowercase());
        }
        Some(word)
    }
}

/// The phases of a request, of a load whose last event was at `last` seconds.
fn phases(request: &Request, last: f64) -> Phases {
    let millis = |seconds: f64| seconds * 1e3;
    let end = request.finished.unwrap_or(last);
    // A response from the memory cache did not use the network.
    let timing = match request.from_memory {
        true => Timing::default(),
        false => Timing::read(&request.response["timing"]),
    };
    Phases::of(millis(request.asked), request.answered.map(millis), millis(end), &timing)
}

/// When which bytes of the body arrived, in ms of the browser's clock.
pub(crate) fn arrivals(request: &Request) -> Vec<(f64, u64)> {
    let decoded: Vec<(f64, u64)> =
        request.data.iter().map(|&(at, decoded, _)| (at * 1e3, decoded as u64)).collect();
    let end = request.finished.map_or(f64::INFINITY, |finished| finished * 1e3);
    encoded(&decoded, body_bytes(request).round() as u64, end)
}

/// The cache that a response came out of.
pub(crate) fn from_cache(request: &Request) -> Option<&'static str> {
    let told = |field: &str| request.response[field] == true;
    if request.from_memory {
        Some("memory")
    } else if told("fromDiskCache") || told("fromPrefetchCache") {
        Some("disk")
    } else {
        None
    }
}

/// Bytes of the body on the wire.
fn body_bytes(request: &Request) -> f64 {
    let decoded = request.decoded();
    if request.finished.is_none() || request.error.is_some() {
        // Without an end only what came is known.
        let encoded: f64 = request.data.iter().map(|&(_, _, encoded)| encoded).sum();
        return if encoded > 0.0 { encoded } else { decoded };
    }
    let body = (request.encoded - head_bytes(request)).max(0.0);
    // What the renderer ended, such as a picture that it cannot read, is told without its head.
    let is_coded = request.response["headers"].as_object().is_some_and(|headers| {
        headers.keys().any(|name| name.eq_ignore_ascii_case("content-encoding"))
    });
    if is_coded { body } else { body.max(decoded.min(request.encoded)) }
}

/// Bytes of the head of a response on the wire, as Chromium counts them.
fn head_bytes(request: &Request) -> f64 {
    request.response["encodedDataLength"].as_f64().unwrap_or(0.0).max(0.0)
}

/// A number of bytes.
fn whole(bytes: f64) -> Value {
    json!(bytes.max(0.0).round() as u64)
}

fn written_request(request: &Request) -> Value {
    let method = request.request["method"].as_str().unwrap_or("GET");
    let sent = &request.sent_headers["headers"];
    let headers = if sent.is_object() { sent } else { &request.request["headers"] };
    let body = request.request["postData"].as_str().map_or(0, str::len);
    json!({
        "method": method,
        "url": request.url(),
        "httpVersion": protocol(request),
        "headers": header_list(headers),
        "queryString": query(request.url()),
        "cookies": [],
        "headersSize": request_head(request, headers, method),
        "bodySize": body,
    })
}

/// Bytes of the head of a request; -1 where headers are compressed.
fn request_head(request: &Request, headers: &Value, method: &str) -> i64 {
    if !protocol(request).starts_with("http/1") {
        return -1;
    }
    let url = request.url();
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let path = rest.find(['/', '?']).map_or(1, |start| rest.len() - start);
    // Blanks, the version and the ends of lines.
    let line = method.len() + path + " HTTP/1.1\r\n".len() + 1;
    let lines = headers.as_object().into_iter().flatten();
    let lines: usize =
        lines.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len) + 4).sum();
    i64::try_from(line + lines + 2).unwrap_or(-1)
}

fn written_response(request: &Request) -> Value {
    let response = &request.response;
    let body = body_bytes(request);
    let content = request.decoded();
    let received = &request.received_headers;
    let head = match received["headersText"].as_str() {
        Some(text) if protocol(request).starts_with("http/1") => json!(text.len()),
        _ => json!(-1),
    };
    let headers =
        if received["headers"].is_object() { &received["headers"] } else { &response["headers"] };
    let failed = request.error.as_deref();
    let unanswered = response.is_null().then_some("no response before the time was up");
    let mut written = json!({
        "status": if failed.is_some() { json!(0) } else { number_or(&response["status"], 0.0) },
        "statusText": response["statusText"].as_str().unwrap_or_default(),
        "httpVersion": protocol(request),
        "headers": header_list(headers),
        "cookies": [],
        "content": {
            "size": whole(content),
            "compression": whole(content - body),
            "mimeType": response["mimeType"].as_str().unwrap_or_default(),
        },
        "redirectURL": request.redirect.as_deref().unwrap_or_default(),
        "headersSize": head,
        "bodySize": whole(body),
        "_transferSize": whole(request.encoded.max(body + head_bytes(request))),
    });
    if let Some(error) = failed.or(unanswered) {
        written["_error"] = json!(error);
    }
    written
}

fn number_or(value: &Value, or: f64) -> Value {
    if value.is_number() { value.clone() } else { json!(or) }
}

fn protocol(request: &Request) -> &str {
    request.response["protocol"].as_str().unwrap_or_default()
}

/// A header with several values has a line for each.
fn header_list(headers: &Value) -> Vec<Value> {
    let pairs = headers.as_object().into_iter().flatten();
    pairs
        .flat_map(|(name, value)| {
            let lines = value.as_str().unwrap_or_default().lines();
            lines.map(move |line| json!({ "name": name, "value": line }))
        })
        .collect()
}

fn query(url: &str) -> Vec<Value> {
    let text =
        url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, text)| text);
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({ "name": name, "value": value })
        })
        .collect()
}

/// Who asked for it: the URL of the document, style sheet or script, the place in it, and Chromium's own object.
fn initiator(initiator: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: &Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value.clone());
        }
    };
    put("_initiator_type", &initiator["type"]);
    // The first function with a script, also of those that waited for one another.
    let mut stack = &initiator["stack"];
    let mut frame = &Value::Null;
    while frame.is_null() && stack.is_object() {
        let frames = stack["callFrames"].as_array().into_iter().flatten();
        let mut named =
            frames.filter(|frame| frame["url"].as_str().is_some_and(|url| !url.is_empty()));
        frame = named.next().unwrap_or(&Value::Null);
        stack = &stack["parent"];
    }
    let place = if initiator["url"].is_string() { initiator } else { frame };
    put("_initiator", &place["url"]);
    put("_initiator_line", &place["lineNumber"]);
    put("_initiator_column", &place["columnNumber"]);
    let detail = initiator.to_string();
    if initiator.is_object() && detail.len() <= MOST_DETAIL {
        put("_initiator_detail", &json!(detail));
    }
    fields
}

#[cfg(test)]
mod tests;
