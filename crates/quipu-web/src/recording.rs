//! Loads as HAR 1.2 files, with the fields that chrome-har adds, so that the viewers of others open them.
//!
//! What a browser would know is written as it writes it; what only a simulated load tells stands in fields of our
//! own: `_pathBytes`, `_pathSegments`, `_held`. Cookies, headers and bodies are left out, as there are none.

mod join;
mod traced;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use quipu_base::{Bytes, Duration};
use serde_json::{Map, Value, json};

pub use join::join;
pub use traced::{AddTraceError, with_trace};

use crate::page::{Blocking, ChromePriority, Discovery, Object, ObjectId, ObjectKind, Page};

/// Bytes of a line in a document or script, as line numbers of initiators count: our choice, and what the reader
/// takes where it knows nothing of lines.
const LINE_BYTES: u64 = 80;

/// When loads begin: recordings have a date, and simulated ones are to be the same each time.
const DATE: &str = "2020-01-01T00:00:00Z";

/// One load of a page.
#[derive(Clone, Debug)]
pub struct Recording<'a> {
    /// The page.
    pub page: &'a Page,
    /// Its title: what was loaded, and how.
    pub title: String,
    /// From the start of the first load of the file to that of this one.
    pub began: Duration,
    /// The load event, from the start of the load.
    pub on_load: Duration,
    /// The objects that were loaded.
    pub objects: Vec<Recorded>,
    /// Whether it says who asked for what, and what waited for it.
    pub initiators: bool,
}

/// One object of a load. Times count from its start.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Which.
    pub object: ObjectId,
    /// Number of the connection that it came over.
    pub connection: u32,
    /// When the handshake of that connection ended, if it had not before the load.
    pub connected: Option<Duration>,
    /// When it was asked for, or promised.
    pub requested: Duration,
    /// When its first byte had arrived.
    pub first_byte: Duration,
    /// When it was complete.
    pub completed: Duration,
    /// Whether the server pushed it.
    pub pushed: bool,
    /// What each path carried: its name, and bytes of the body.
    pub carried: Vec<(String, Bytes)>,
    /// When they did: the path's name, from, until, bytes.
    pub segments: Vec<(String, Duration, Duration, Bytes)>,
}

/// The file of `loads`, which `version` of the program simulated. Loads are in the order of their start.
pub fn write(loads: &[Recording<'_>], version: &str) -> String {
    let creator = json!({ "name": "quipu", "version": version });
    let date: Timestamp = DATE.parse().unwrap_or_default();
    let mut pages = Vec::new();
    let mut entries = Vec::new();
    for (number, load) in (1..).zip(loads) {
        let id = format!("page_{number}");
        pages.push(json!({
            "id": id,
            "title": load.title,
            "startedDateTime": at(date, load.began),
            "pageTimings": {
                "onContentLoad": millis(content_load(load)),
                "onLoad": millis(load.on_load),
            },
        }));
        let mut objects: Vec<&Recorded> = load.objects.iter().collect();
        objects.sort_by_key(|recorded| (recorded.requested, recorded.object));
        // The first request of a connection has its handshake; others wait for it.
        let mut open = BTreeSet::new();
        for recorded in objects {
            let Some(object) = load.page.object(recorded.object) else { continue };
            let started = at(date, load.began + recorded.requested);
            let opens = open.insert(recorded.connection);
            entries.push(entry(load, object, recorded, opens, &id, started));
        }
    }
    let log = json!({
        "version": "1.2",
        "creator": creator,
        "browser": { "name": "simulated", "version": version },
        "comment": "A simulated load: no server was asked.",
        "pages": pages,
        "entries": entries,
    });
    let mut text = format!("{:#}", json!({ "log": log }));
    text.push('\n');
    text
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A date, to the microsecond.
fn at(date: Timestamp, after: Duration) -> String {
    let after = SignedDuration::from_nanos(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX));
    let at = date.checked_add(after).unwrap_or(date);
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// When the document and all that its parser waits for were complete.
fn content_load(load: &Recording<'_>) -> Duration {
    let waits = |recorded: &&Recorded| {
        let object = load.page.object(recorded.object);
        recorded.object == load.page.main_document()
            || object.is_some_and(|object| object.blocking == Blocking::Parser)
    };
    let ends = load.objects.iter().filter(waits).map(|recorded| recorded.completed);
    ends.max().unwrap_or_default()
}

fn entry(
    load: &Recording<'_>,
    object: &Object,
    recorded: &Recorded,
    opens: bool,
    page: &str,
    started: String,
) -> Value {
    let Recorded { requested, first_byte, completed, .. } = *recorded;
    let connected = recorded.connected.unwrap_or_default().clamp(requested, first_byte);
    let set_up = connected.saturating_sub(requested);
    let (connect, blocked) =
        if opens { (set_up, Duration::ZERO) } else { (Duration::ZERO, set_up) };
    let wait = first_byte.saturating_sub(connected);
    let receive = completed.saturating_sub(first_byte);
    let or_none = |time: Duration| if time.is_zero() { -1.0 } else { millis(time) };
    let whole = object.response_header_bytes + object.response_bytes;
    let mut entry = json!({
        "pageref": page,
        "startedDateTime": started,
        "time": millis(blocked + connect + wait + receive),
        "request": {
            "method": if object.request.body.is_zero() { "GET" } else { "POST" },
            "url": object.url,
            "httpVersion": "h2",
            "headers": [],
            "queryString": query(&object.url),
            "cookies": [],
            "headersSize": object.request.header.0,
            "bodySize": object.request.body.0,
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": "h2",
            "headers": [],
            "cookies": [],
            "content": {
                "size": object.response_bytes.0,
                "compression": 0,
                "mimeType": mime(object.kind),
            },
            "redirectURL": "",
            "headersSize": object.response_header_bytes.0,
            "bodySize": object.response_bytes.0,
            "_transferSize": whole.0,
        },
        "cache": {},
        "timings": {
            "blocked": or_none(blocked),
            "dns": -1.0,
            // The handshake of QUIC is that of TLS.
            "connect": or_none(connect),
            "ssl": or_none(connect),
            "send": 0.0,
            "wait": millis(wait),
            "receive": millis(receive),
        },
        // Others count from 1, and write 0 where they know of none.
        "connection": recorded.connection.saturating_add(1).to_string(),
        "_resourceType": object.kind.name(),
        "_was_pushed": u8::from(recorded.pushed),
        "_isLinkPreload": object.preload,
        "_held": object.holds_load(),
    });
    let Some(fields) = entry.as_object_mut() else { return entry };
    if let Some(priority) = object.priority {
        let word = |priority: ChromePriority| Value::from(priority.to_string());
        fields.insert("_initialPriority".to_owned(), word(priority.initial));
        fields.insert("_priority".to_owned(), word(priority.last));
    }
    if load.initiators {
        let waits = match object.blocking {
            Blocking::None => "non_blocking",
            Blocking::Parser => "in_body_parser_blocking",
            Blocking::Render => "blocking",
        };
        fields.insert("_renderBlocking".to_owned(), waits.into());
        fields.append(&mut initiator(load.page, object));
    }
    let carried = recorded.carried.iter().map(|(path, bytes)| (path.clone(), Value::from(bytes.0)));
    fields.insert("_pathBytes".to_owned(), Value::Object(carried.collect()));
    let segment = |(path, from, to, bytes): &(String, Duration, Duration, Bytes)| json!({ "path": path, "from": millis(*from), "to": millis(*to), "bytes": bytes.0 });
    let segments: Vec<Value> = recorded.segments.iter().map(segment).collect();
    fields.insert("_pathSegments".to_owned(), Value::Array(segments));
    entry
}

/// Who asked for `object`, as Chrome knows it and chrome-har writes it: a parser and where it was, or the functions
/// of a script. What a script asks for after an answer came to it is the script's.
fn initiator(page: &Page, object: &Object) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    let asked = |id: ObjectId| {
        let mut at = page.object(id);
        while let Some(asked) = at
            && matches!(asked.kind, ObjectKind::Xhr | ObjectKind::Fetch)
            && let Some(parent) = asked.discovery.parent()
        {
            at = page.object(parent);
        }
        at
    };
    let (kind, by, offset) = match object.discovery {
        Discovery::Root => ("other", None, Bytes::ZERO),
        // A request of an inline script, which has waited for others.
        Discovery::ParserOffset { parent, offset } if !object.waits_for.is_empty() => {
            ("script", page.object(parent), offset)
        }
        Discovery::ParserOffset { parent, offset } => ("parser", page.object(parent), offset),
        Discovery::AfterCompletion { parent } => {
            let by = asked(parent);
            let kind = match by.map(|by| by.kind) {
                Some(ObjectKind::Stylesheet) => "parser",
                _ => "script",
            };
            (kind, by, Bytes::ZERO)
        }
    };
    let (line, column) = (offset.0 / LINE_BYTES, offset.0 % LINE_BYTES);
    put("_initiator_type", Value::from(kind));
    let mut detail = json!({ "type": kind });
    if let Some(by) = by {
        put("_initiator", Value::from(by.url.as_str()));
        put("_initiator_line", Value::from(line));
        detail = match kind {
            "script" => json!({
                "type": kind,
                "stack": { "callFrames": [{
                    "functionName": "",
                    "scriptId": by.id.0.to_string(),
                    "url": by.url,
                    "lineNumber": line,
                    "columnNumber": column,
                }] },
            }),
            _ => json!({
                "type": kind,
                "url": by.url,
                "lineNumber": line,
                "columnNumber": column,
            }),
        };
    }
    put("_initiator_detail", Value::from(detail.to_string()));
    fields
}

/// Names and values of the query of `url`.
fn query(url: &str) -> Vec<Value> {
    let query = url.split('#').next().and_then(|url| url.split_once('?'));
    let pairs = query.map_or("", |(_, query)| query).split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        json!({ "name": name, "value": value })
    };
    pairs.map(pair).collect()
}

/// A media type that the reader understands as `kind`.
fn mime(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Document => "text/html",
        ObjectKind::Stylesheet => "text/css",
        ObjectKind::Script => "text/javascript",
        ObjectKind::Font => "font/woff2",
        ObjectKind::Xhr | ObjectKind::Fetch => "application/json",
        ObjectKind::Image => "image/webp",
        ObjectKind::Media => "video/mp4",
        ObjectKind::Manifest => "application/manifest+json",
        ObjectKind::Preflight | ObjectKind::Prefetch | ObjectKind::Ping | ObjectKind::Other => {
            "application/octet-stream"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::har::Har;
    use crate::page::{NotHeld, ReadOptions, RequestSize, read};

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// A document with a style sheet and a script, whose answer asks for an image.
    fn page() -> Page {
        let object = |id, name: &str, kind, bytes, discovery| {
            Object::new(ObjectId(id), format!("https://a.test/{name}"), kind, Bytes(bytes))
                .discovered(discovery)
        };
        let parser =
            |offset| Discovery::ParserOffset { parent: ObjectId(0), offset: Bytes(offset) };
        let after = |parent| Discovery::AfterCompletion { parent: ObjectId(parent) };
        let mut objects = vec![
            object(0, "", ObjectKind::Document, 8_000, Discovery::Root),
            object(1, "a.css", ObjectKind::Stylesheet, 4_000, parser(800)),
            object(2, "b.js?x=1&y", ObjectKind::Script, 6_000, parser(1_600)),
            object(3, "c.json", ObjectKind::Xhr, 300, after(2)),
            object(4, "d.webp", ObjectKind::Image, 9_000, after(3)),
            object(5, "e.woff2", ObjectKind::Font, 2_000, after(1)),
        ];
        objects[1].blocking = Blocking::Render;
        objects[2].blocking = Blocking::Parser;
        objects[3].request = RequestSize { header: Bytes(400), body: Bytes(50) };
        Page::new("made up", objects).unwrap()
    }

    fn load(page: &Page, initiators: bool) -> Recording<'_> {
        let recorded = |object: u32, requested, first_byte, completed| Recorded {
            object: ObjectId(object),
            connection: 7,
            connected: Some(ms(20)),
            requested: ms(requested),
            first_byte: ms(first_byte),
            completed: ms(completed),
            pushed: false,
            carried: vec![("wifi".to_owned(), Bytes(100))],
            segments: vec![("wifi".to_owned(), ms(first_byte), ms(completed), Bytes(100))],
        };
        Recording {
            page,
            title: "made up over wifi".to_owned(),
            began: Duration::ZERO,
            on_load: ms(200),
            objects: vec![
                recorded(0, 0, 50, 70),
                recorded(1, 52, 80, 90),
                recorded(2, 54, 85, 100),
                recorded(3, 105, 130, 131),
                recorded(4, 136, 160, 200),
                recorded(5, 95, 120, 125),
            ],
            initiators,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let page = page();
        let text = write(&[load(&page, true)], "1.0");
        let har = Har::parse(text.as_bytes()).unwrap();
        assert_eq!((har.pages.len(), har.entries.len()), (1, 6));
        assert_eq!(har.entries[0].timings.connect, Some(20.0));
        assert_eq!(har.entries[0].timings.wait, Some(30.0));
        let found = read("back", text.as_bytes(), &ReadOptions::default()).unwrap().page;
        // In the order of requests.
        for (at, id) in [0, 1, 2, 5, 3, 4].into_iter().enumerate() {
            let (found, truth) = (&found.objects()[at], page.object(ObjectId(id)).unwrap());
            assert_eq!(found.url, truth.url);
            assert_eq!(found.kind, truth.kind, "{}", truth.url);
            assert_eq!(found.response_bytes, truth.response_bytes, "{}", truth.url);
            assert_eq!(found.response_header_bytes, truth.response_header_bytes, "{}", truth.url);
            assert_eq!(found.request, truth.request, "{}", truth.url);
            assert_eq!(found.blocking, truth.blocking, "{}", truth.url);
        }
        let parent = |at: usize| {
            let parent = found.objects()[at].discovery.parent().unwrap();
            found.object(parent).unwrap().path().to_owned()
        };
        assert_eq!(parent(1), "/");
        assert_eq!(parent(3), "/a.css");
        // Chrome names the script for both; that it had waited for an answer is inferred.
        assert_eq!((parent(4), parent(5)), ("/b.js?x=1&y".to_owned(), "/c.json".to_owned()));
    }

    #[test]
    fn without_initiators_nothing_tells_them() {
        let page = page();
        let text = write(&[load(&page, false)], "1.0");
        assert!(!text.contains("_initiator"), "{text}");
        assert!(text.contains("\"_pathBytes\""), "{text}");
    }

    #[test]
    fn loads_of_a_session_follow_one_another() {
        let page = page();
        let mut second = load(&page, true);
        second.began = Duration::from_secs(100);
        let text = write(&[load(&page, true), second], "1.0");
        assert!(text.contains("2020-01-01T00:01:40.000000Z"), "{text}");
        for number in ["1", "2"] {
            let options = ReadOptions { load: Some(number.to_owned()), ..ReadOptions::default() };
            let found = read("back", text.as_bytes(), &options).unwrap().page;
            assert_eq!(found.objects().len(), 6);
        }
    }

    #[test]
    fn what_the_load_did_not_wait_for_is_marked() {
        let mut objects = page().objects().to_vec();
        objects[4].not_held = Some(NotHeld::LongPoll);
        let page = Page::new("made up", objects).unwrap();
        let text = write(&[load(&page, true)], "1.0");
        assert_eq!(text.matches("\"_held\": false").count(), 1);
    }
}
