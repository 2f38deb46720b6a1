//! Loads as a HAR 1.2 file with the fields of chrome-har and of `quipu page record`.

use serde_json::{Map, Value, json};

use super::load::{Initiator, Load, Recorded, Request};
use crate::har::MAX_OBJECT_BYTES;
use crate::phases::{date, rounded, written_arrivals};

/// The HAR file of what was recorded.
pub(super) fn file(recorded: &Recorded) -> Vec<u8> {
    let mut pages = Vec::with_capacity(recorded.loads.len());
    let mut entries = Vec::new();
    for (number, load) in (1..).zip(&recorded.loads) {
        let id = format!("page_{number}");
        pages.push(page(recorded, load, &id));
        let mut requests: Vec<&Request> = load.requests.iter().collect();
        requests.sort_by(|a, b| a.phases.start.total_cmp(&b.phases.start));
        entries.extend(requests.into_iter().map(|request| entry(recorded, request, &id)));
    }
    let mut log = json!({
        "version": "1.2",
        "creator": { "name": recorded.creator },
        "pages": pages,
        "entries": entries,
    });
    if let Some((name, version)) = &recorded.browser {
        log["browser"] = json!({ "name": name, "version": version });
    }
    json!({ "log": log }).to_string().into_bytes()
}

fn page(recorded: &Recorded, load: &Load, id: &str) -> Value {
    let since = |mark: Option<f64>| mark.map_or(json!(-1), |mark| rounded(mark - load.start));
    json!({
        "id": id,
        "title": load.url,
        "startedDateTime": date(recorded.clock + load.start),
        "pageTimings": {
            "onContentLoad": since(load.content_load),
            "onLoad": since(load.on_load),
        },
        "_requestsOfBrowser": recorded.of_browser,
        "_requestsOfOthers": recorded.of_others,
    })
}

fn entry(recorded: &Recorded, request: &Request, page: &str) -> Value {
    let phases = &request.phases;
    let mut entry = json!({
        "pageref": page,
        "startedDateTime": date(recorded.clock + phases.start),
        "time": rounded(phases.total()),
        "request": {
            "method": request.method,
            "url": request.url,
            "httpVersion": request.protocol.as_deref().unwrap_or_default(),
            "headers": [],
            "queryString": [],
            "cookies": [],
            "headersSize": size(request.request_header),
            "bodySize": size(Some(request.request_body)),
        },
        "response": response(request),
        "cache": {},
        "timings": phases.written(),
        "_requestId": request.id,
    });
    let texts = [
        ("connection", &request.connection),
        ("_resourceType", &request.kind),
        ("_initialPriority", &request.initial_priority),
        ("_priority", &request.priority),
        ("_renderBlocking", &request.render_blocking),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            entry[name] = json!(text);
        }
    }
    let flags = [
        ("_isLinkPreload", request.is_preload),
        ("_fromCache", request.from_cache),
        ("_unfinished", request.unfinished),
    ];
    for (name, _) in flags.into_iter().filter(|&(_, flag)| flag) {
        entry[name] = json!(true);
    }
    let arrivals = written_arrivals(&request.arrivals, phases.start);
    if !arrivals.is_empty() {
        entry["_arrivals"] = json!(arrivals);
    }
    if let Some(fields) = entry.as_object_mut() {
        fields.append(&mut initiator(&request.initiator));
    }
    entry
}

fn response(request: &Request) -> Value {
    let saved = match (request.decoded, request.body) {
        (Some(decoded), Some(body)) => decoded.saturating_sub(body),
        _ => 0,
    };
    let mut response = json!({
        "status": if request.error.is_some() { 0 } else { request.status },
        "statusText": "",
        "httpVersion": request.protocol.as_deref().unwrap_or_default(),
        "headers": [],
        "cookies": [],
        "content": {
            "size": size(request.decoded),
            "compression": size(Some(saved)),
            "mimeType": request.mime.as_deref().unwrap_or_default(),
        },
        "redirectURL": request.redirect.as_deref().unwrap_or_default(),
        "headersSize": size(request.response_header),
        "bodySize": size(request.body),
    });
    if request.transferred.is_some() {
        response["_transferSize"] = size(request.transferred);
    }
    if let Some(error) = &request.error {
        response["_error"] = json!(error);
    }
    response
}

/// A number of bytes, as far as it is believed; -1 if it is unknown.
fn size(bytes: Option<u64>) -> Value {
    bytes.map_or(json!(-1), |bytes| json!(bytes.min(MAX_OBJECT_BYTES)))
}

fn initiator(initiator: &Initiator) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    put("_initiator_type", initiator.kind.as_ref().map(|kind| json!(kind)));
    put("_initiator", initiator.url.as_ref().map(|url| json!(url)));
    put("_initiator_line", initiator.line.map(|line| json!(line)));
    put("_initiator_column", initiator.column.map(|column| json!(column)));
    put("_initiator_detail", initiator.detail.as_ref().map(|detail| json!(detail)));
    fields
}
