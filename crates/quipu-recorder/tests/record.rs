//! A small site, recorded by a real Chromium. Without one the tests are passed over, unless the environment variable
//! `QUIPU_CHROMIUM_REQUIRED` is set.
#![expect(clippy::disallowed_methods, reason = "a real browser is driven in real time")]
#![expect(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

mod server;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_base::Duration as Span;
use quipu_recorder::{Network, Options, Outcome, RecordError, file, record};
use quipu_web::har::Har;
use quipu_web::page::{ObjectKind, Page, ReadOptions, read};
use quipu_web::trace::{self, WorkKind};

/// One test at a time has the machine: times are looked at.
static ALONE: Mutex<()> = Mutex::new(());

/// The machine for this test, if there is a browser on it.
fn with_browser() -> Option<MutexGuard<'static, ()>> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = Options::new("http://127.0.0.1:1/").unwrap();
    options.timeout = Span::from_secs(1);
    let stop = AtomicBool::new(true);
    match record(&options, &stop, &mut |_| {}).ended {
        Err(RecordError::NoBrowser { .. }) => {
            let required = std::env::var_os("QUIPU_CHROMIUM_REQUIRED").is_some();
            assert!(!required, "no Chromium is installed, and QUIPU_CHROMIUM_REQUIRED is set");
            eprintln!("passed over: no Chromium is installed");
            None
        }
        _ => Some(alone),
    }
}

fn record_all(options: &Options) -> Outcome {
    record(options, &AtomicBool::new(false), &mut |progress| eprintln!("{progress}"))
}

/// Profiles of this process' browsers that are there.
fn profiles() -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let prefix = format!("quipu-recorder-{}-", std::process::id());
    let ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    };
    entries.map(|entry| entry.path()).filter(ours).collect()
}

fn page_of(file: &[u8], load: &str) -> Page {
    read("site", file, &ReadOptions { load: Some(load.to_owned()), ..ReadOptions::default() })
        .unwrap()
        .page
}

#[test]
fn a_site_is_recorded_at_two_speeds() {
    let Some(_alone) = with_browser() else { return };
    let before = profiles();
    let site = server::start();
    let mut options = Options::new(&format!("{site}/moved")).unwrap();
    options.networks = Network::parse_list("1mbit,20mbit", Some("30ms")).unwrap();
    options.settle = Span::from_secs(1);
    let outcome = record_all(&options);
    outcome.ended.unwrap();
    assert_eq!(profiles(), before);
    let text = file(&outcome.loads, "test", false);
    assert_eq!(file(&outcome.loads, "test", true)[..2], [0x1f, 0x8b]);
    let har = Har::parse(&text).unwrap();
    assert_eq!(har.pages.len(), 2);

    let on_load = |index: usize| har.pages[index].page_timings.on_load.unwrap();
    // 130 kB take a second of 1 Mbit/s, and a twentieth of that of 20.
    assert!(on_load(0) > 800.0 && on_load(1) > 60.0 && on_load(0) > on_load(1) + 500.0);
    for load in ["1", "2"] {
        look_at_page(&page_of(&text, load));
        look_at_trace(&text, &har, load);
    }
}

fn look_at_page(page: &Page) {
    let object = |path: &str| {
        let found = page.objects().iter().find(|object| object.path() == path);
        found.unwrap_or_else(|| panic!("{path} is in the page"))
    };
    let parent = |path: &str| {
        let parent = object(path).discovery.parent().and_then(|id| page.object(id));
        parent.map(|parent| parent.path().to_owned()).unwrap_or_default()
    };
    for (path, kind, by) in [
        ("/", ObjectKind::Document, "/moved"),
        ("/style.css", ObjectKind::Stylesheet, "/"),
        ("/work.js", ObjectKind::Script, "/"),
        ("/late.js", ObjectKind::Script, "/"),
        ("/font.woff2", ObjectKind::Font, "/style.css"),
        ("/first.svg", ObjectKind::Image, "/"),
        ("/second.svg", ObjectKind::Image, "/"),
        ("/data.json", ObjectKind::Fetch, "/work.js"),
    ] {
        assert_eq!((object(path).kind, parent(path).as_str()), (kind, by), "{path}");
    }
    // Chromium does not tell who inserts a picture once a promise is kept.
    assert_eq!(object("/third.svg").kind, ObjectKind::Image);
    let bytes = object("/first.svg").response_bytes.0;
    assert!((60_000..61_000).contains(&bytes), "{bytes}");
}

fn look_at_trace(text: &[u8], har: &Har, load: &str) {
    let activity = trace::read_recording(text, Some(load)).unwrap().unwrap();
    let id = format!("page_{load}");
    let start = har.pages.iter().find(|page| page.id.as_deref() == Some(&id)).unwrap();
    let start = start.started_date_time.unwrap().as_nanosecond();
    let worked = |url: &str, kind: WorkKind| -> f64 {
        let of_url = |work: &&trace::Work| {
            work.kind == kind && work.url.as_deref().is_some_and(|found| found.ends_with(url))
        };
        let lengths = activity.work().iter().filter(of_url);
        lengths.map(|work| work.end.saturating_sub(work.start).as_secs_f64()).sum()
    };
    assert!(worked("/work.js", WorkKind::Script) >= 0.08, "two times 40 ms");
    assert!(worked("/work.js", WorkKind::Script) < 1.0);
    assert!(activity.work().iter().any(|work| work.kind == WorkKind::Parse));
    assert!(activity.work().iter().any(|work| work.kind == WorkKind::Layout));
    let timer =
        activity.timers().iter().find(|timer| timer.timeout == Some(Span::from_millis(150)));
    let timer = timer.expect("the timer fired");
    assert!(timer.fired.saturating_sub(timer.installed.unwrap()) >= Span::from_millis(149));

    // The trace and the entries tell the same times.
    let raw: serde_json::Value = serde_json::from_slice(text).unwrap();
    let entries = raw["log"]["entries"].as_array().unwrap();
    let of_load = entries.iter().filter(|entry| entry["pageref"] == *id);
    let mut compared = 0;
    for entry in of_load {
        let url = entry["request"]["url"].as_str().unwrap();
        let started: jiff::Timestamp = entry["startedDateTime"].as_str().unwrap().parse().unwrap();
        let queued = entry["timings"]["_queued"].as_f64().unwrap_or(0.0);
        let asked = (started.as_nanosecond() - start) as f64 / 1e6 - queued;
        let traced = activity.requests().iter().find(|request| *request.url == *url);
        if url.ends_with("/moved") || url.ends_with('/') {
            continue;
        }
        let traced = traced.unwrap_or_else(|| panic!("{url} is in the trace"));
        let apart = traced.asked.as_secs_f64() * 1e3 - asked;
        assert!(apart.abs() < 5.0, "{url}: {apart} ms apart");
        compared += 1;
        let arrivals = entry["_arrivals"].as_array().unwrap();
        let bytes: u64 = arrivals.iter().map(|point| point[1].as_u64().unwrap()).sum();
        assert_eq!(bytes as f64, entry["response"]["bodySize"].as_f64().unwrap(), "{url}");
        let last = arrivals.last().unwrap()[0].as_f64().unwrap();
        assert!(last <= entry["time"].as_f64().unwrap() + 0.01, "{url}: {last}");
    }
    assert!(compared >= 8, "{compared} requests");
}

#[test]
fn a_page_that_never_ends_is_left_when_its_time_is_up_or_on_request() {
    let Some(_alone) = with_browser() else { return };
    let before = profiles();
    let site = server::start();
    let mut options = Options::new(&format!("{site}/endless")).unwrap();
    options.timeout = Span::from_secs(2);
    let outcome = record_all(&options);
    outcome.ended.unwrap();
    let text = String::from_utf8(file(&outcome.loads, "test", false)).unwrap();
    assert!(text.contains("\"_unfinished\":true") && text.contains("\"onLoad\":-1"), "{text}");

    options.timeout = Span::from_secs(60);
    let stop = Arc::new(AtomicBool::new(false));
    let asks = stop.clone();
    let begun = Instant::now();
    let waits = thread::spawn(move || {
        thread::sleep(Duration::from_secs(3));
        asks.store(true, Ordering::Relaxed);
    });
    let outcome = record(&options, &stop, &mut |_| {});
    waits.join().unwrap();
    assert!(matches!(outcome.ended, Err(RecordError::Interrupted)));
    assert!(outcome.loads.is_empty() && begun.elapsed() < Duration::from_secs(20));
    assert_eq!(profiles(), before);
}

#[test]
fn a_site_that_does_not_answer_is_told() {
    let Some(_alone) = with_browser() else { return };
    // Nobody listens at this port.
    let options = Options::new("http://127.0.0.1:9/").unwrap();
    let error = record_all(&options).ended.unwrap_err();
    assert!(error.is_usage(), "{error}");
    assert!(error.to_string().starts_with("cannot load http://127.0.0.1:9/: net::ERR"), "{error}");
}
