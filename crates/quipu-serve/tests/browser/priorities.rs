//! The order of responses on a link that is slower than they come: by the browser's urgencies under `rfc9218`, and not
//! under `rr`. The server's qlog says what was sent when. Its connection's policies say how urgent each stream was then: by
//! the browser's `priority` fields and PRIORITY_UPDATE frames, which qlog does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::LinkConfig;
use quipu_policy::{Ask, Decision, Event, Joint, Notes, PathKey, Policies, StreamKey, View};
use quipu_qlog::{Form, QlogFolder};
use quipu_web::page::{Blocking, Discovery, Object, ObjectId, ObjectKind, Page};
use serde_json::Value;

use crate::alone;
use crate::chromium::Browser;
use crate::served::{Served, Setup};

/// How urgent a stream became, and when.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: f64,
    stream: u64,
    urgency: u8,
}

/// What the policies of a connection were told.
#[derive(Debug, Default)]
struct Noted {
    /// In order of time.
    urgencies: Vec<Told>,
    /// When there was something of a response to send for the first time, by stream.
    ready: BTreeMap<u64, f64>,
}

/// One connection after the other.
type Notebook = Arc<Mutex<Vec<Noted>>>;

/// Notes urgencies, and decides as another.
struct Noting {
    inner: Box<dyn Joint>,
    notebook: Notebook,
    place: usize,
}

impl Joint for Noting {
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision {
        self.inner.decide(ask, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::Opened(stream) | Event::Reprioritised(stream) => self.note(stream, view, false),
            Event::Ready(stream) => self.note(stream, view, true),
            _ => {}
        }
        self.inner.on_event(event, view);
    }

    fn has_copies(&self) -> bool {
        self.inner.has_copies()
    }

    fn control_path(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.inner.control_path(view)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.inner.wake_at()
    }

    fn committed(&self, path: PathKey) -> Bytes {
        self.inner.committed(path)
    }
}

impl Noting {
    fn note(&self, stream: StreamKey, view: &View<'_>, is_ready: bool) {
        let Some(found) = view.streams.get(stream) else { return };
        let at = view.now.as_nanos() as f64 / 1e6;
        let mut notebook = self.notebook.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = &mut notebook[self.place];
        let (stream, urgency) = (stream.id.0, found.priority.urgency);
        noted.urgencies.push(Told { at, stream, urgency });
        if is_ready {
            noted.ready.entry(stream).or_insert(at);
        }
    }
}

/// Policies by name, which note urgencies.
fn noting(stream: &str, notebook: &Notebook) -> Setup {
    let mut setup = Setup::new(&format!("stream={stream}"));
    let (make, notebook) = (setup.policies.clone(), notebook.clone());
    setup.policies = Arc::new(move || {
        let policies = make();
        let mut pages = notebook.lock().unwrap_or_else(PoisonError::into_inner);
        pages.push(Noted::default());
        let place = pages.len() - 1;
        let notebook = notebook.clone();
        let noting = Noting { inner: policies.joint, notebook, place };
        Policies { joint: Box::new(noting), ..policies }
    });
    setup
}

/// Bytes of responses that a packet carries for the first time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: f64,
    stream: u64,
    bytes: u64,
}

/// What a server sent on the streams of requests, in order.
fn sent(qlog: &Path) -> Vec<Sent> {
    let text = std::fs::read_to_string(qlog).unwrap();
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for record in text.split('\x1e').filter(|record| !record.is_empty()) {
        let record: Value = serde_json::from_str(record).unwrap();
        if record["name"] != "quic:packet_sent" {
            continue;
        }
        let at = record["time"].as_f64().unwrap();
        for frame in record["data"]["frames"].as_array().into_iter().flatten() {
            // Others are not of requests.
            let stream = frame["stream_id"].as_u64().filter(|stream| stream % 4 == 0);
            let Some(stream) = stream.filter(|_| frame["frame_type"] == "stream") else { continue };
            let begin = frame["offset"].as_u64().unwrap_or(0);
            let length = frame["raw"]["payload_length"].as_u64().unwrap_or(0);
            let end = ends.entry(stream).or_default();
            let bytes = (begin + length).saturating_sub(*end);
            *end += bytes;
            if bytes > 0 {
                all.push(Sent { at, stream, bytes });
            }
        }
    }
    all
}

/// Bytes that were sent while responses of several urgencies had something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Contested {
    /// All of them.
    bytes: u64,
    /// Those that were not of the most urgent.
    inverted: u64,
}

/// A response has something to send from when the policies were told so until its last byte is sent. Retransmissions do
/// not count.
fn contested(sent: &[Sent], noted: &Noted) -> Contested {
    let mut spans: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (place, Sent { stream, .. }) in sent.iter().enumerate() {
        let begin = || {
            noted
                .ready
                .get(stream)
                .map_or(place, |&ready| sent.partition_point(|sent| sent.at <= ready))
        };
        spans.entry(*stream).or_insert_with(|| (begin().min(place), place)).1 = place;
    }
    let urgency = |stream: u64, at: f64| {
        let told = noted.urgencies.iter().rfind(|told| told.stream == stream && told.at <= at);
        told.map_or(3, |told| told.urgency)
    };
    let mut found = Contested::default();
    for (place, sent) in sent.iter().enumerate() {
        let open = spans.iter().filter(|(_, span)| (span.0..=span.1).contains(&place));
        let levels: BTreeSet<u8> = open.map(|(&stream, _)| urgency(stream, sent.at)).collect();
        if levels.len() > 1 {
            found.bytes += sent.bytes;
            if levels.first() != Some(&urgency(sent.stream, sent.at)) {
                found.inverted += sent.bytes;
            }
        }
    }
    found
}

/// Images that are requested first, and what is more urgent later.
fn page() -> Page {
    let object = |id: u32, name: &str, kind, bytes, discovery| {
        let url = format!("https://page.test/{name}");
        Object::new(ObjectId(id), url, kind, Bytes(bytes)).discovered(discovery)
    };
    let at = |offset| Discovery::ParserOffset { parent: ObjectId(0), offset: Bytes(offset) };
    let after = |parent| Discovery::AfterCompletion { parent: ObjectId(parent) };
    let mut objects = vec![
        object(0, "", ObjectKind::Document, 20_000, Discovery::Root),
        object(1, "page.css", ObjectKind::Stylesheet, 60_000, at(200)),
        object(2, "page.js", ObjectKind::Script, 80_000, at(10_000)),
        object(3, "text.woff2", ObjectKind::Font, 60_000, after(1)),
        object(4, "data.json", ObjectKind::Fetch, 150_000, after(2)),
    ];
    objects[1].blocking = Blocking::Render;
    objects[2].blocking = Blocking::Parser;
    for image in 0..8 {
        let name = format!("{image}.jpg");
        let place = at(1_000 + 100 * image);
        objects.push(object(5 + image as u32, &name, ObjectKind::Image, 100_000, place));
    }
    Page::new("urgencies", objects).unwrap()
}

/// Loads the page with a stream policy, and looks at what was sent. `None` without a browser.
fn load(stream: &str) -> Option<(Contested, Noted)> {
    let page = page();
    let folder = tempfile::tempdir().unwrap();
    let logs = QlogFolder::create(folder.path(), Form::Current, stream).unwrap();
    let notebook = Notebook::default();
    let mut setup = noting(stream, &notebook);
    setup.recorders = Some(logs.recorders());
    let delay = Duration::from_millis(20);
    setup.link = Some(LinkConfig::new(Rate::from_mbit_per_sec(5), delay));
    let served = Served::with(&page, setup);
    let browser = Browser::open(&served, true, &[])?;
    let requests = served.wait(page.objects().len());
    assert_eq!(requests.len(), page.objects().len(), "{requests:?}");
    drop(browser);
    drop(served);
    // A connection that requested nothing counts for nothing.
    let files = logs.finish().unwrap();
    let mut connections: Vec<Vec<Sent>> = files.iter().map(|file| sent(file)).collect();
    connections.retain(|sent| !sent.is_empty());
    let mut notebook = notebook.lock().unwrap_or_else(PoisonError::into_inner);
    notebook.retain(|noted| noted.ready.keys().any(|stream| stream % 4 == 0));
    assert_eq!((connections.len(), notebook.len()), (1, 1), "one connection with requests");
    let noted = notebook.remove(0);
    Some((contested(&connections[0], &noted), noted))
}

#[test]
fn responses_go_by_their_urgencies_under_rfc9218_and_not_under_rr() {
    let _alone = alone();
    let Some((by_urgency, noted)) = load("rfc9218") else { return };
    let Some((in_turns, _)) = load("rr") else { return };
    eprintln!("rfc9218: {by_urgency:?}, rr: {in_turns:?}");
    let levels: BTreeSet<u8> = noted.urgencies.iter().map(|told| told.urgency).collect();
    assert!(levels.len() > 2, "urgencies that the browser told: {levels:?}");
    for (name, found) in [("rfc9218", by_urgency), ("rr", in_turns)] {
        assert!(found.bytes > 100_000, "{name}: {found:?}");
    }
    let share = |found: Contested| found.inverted as f64 / found.bytes as f64;
    assert!(share(by_urgency) < 0.02, "rfc9218: {by_urgency:?}");
    assert!(share(in_turns) > 0.25, "rr: {in_turns:?}");
}

#[test]
fn bytes_ahead_of_more_urgent_ones_are_found() {
    let sent = |streams: &[u64]| -> Vec<Sent> {
        let all = streams.iter().enumerate();
        all.map(|(place, &stream)| Sent { at: place as f64, stream, bytes: 10 }).collect()
    };
    let urgencies = [(0, 3), (4, 0), (8, 3)];
    let told = |(stream, urgency)| Told { at: -1.0, stream, urgency };
    let mut noted = Noted { urgencies: urgencies.map(told).to_vec(), ready: BTreeMap::new() };
    let found = |streams: &[u64], noted: &Noted| contested(&sent(streams), noted);
    // Nothing is under way at once; then two of one urgency.
    assert_eq!(found(&[4, 4, 0, 8], &noted), Contested::default());
    assert_eq!(found(&[0, 8, 0, 8], &noted), Contested::default());
    // The urgent one interrupts another, and then they take turns.
    assert_eq!(found(&[0, 4, 4, 0], &noted), Contested { bytes: 20, inverted: 0 });
    assert_eq!(found(&[0, 4, 0, 4, 0], &noted), Contested { bytes: 30, inverted: 10 });
    // It waits before its first byte, too.
    noted.ready = BTreeMap::from([(0, -1.0), (4, 0.5)]);
    assert_eq!(found(&[0, 0, 0, 4, 0], &noted), Contested { bytes: 30, inverted: 20 });
    // A change of urgency counts from when it was told.
    noted.urgencies.push(Told { at: 1.5, stream: 0, urgency: 0 });
    assert_eq!(found(&[0, 0, 0, 4, 0], &noted), Contested { bytes: 10, inverted: 10 });
}
