//! The model beside a browser: the times of a page and its objects when the browser loads its replay over a link, and
//! when `quipu load` simulates that page over that link.
//!
//! With `QUIPU_MODEL=PROGRAM`, the path of a `quipu`, prints a table in Markdown, one of `docs/browser-model.md`.
//! `QUIPU_MODEL_BROWSER` is `chromium`, as without it, or `firefox`; `QUIPU_MODEL_PAGES` names other pages, separated by
//! commas, `QUIPU_MODEL_RATES` other rates in Mbit/s, and `QUIPU_MODEL_RUNS` says how often the browser loads each. With
//! `QUIPU_MODEL_OBJECTS` it prints the times of each object, from request to completion: the browser's, then the model's.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use quipu_base::{Bytes, Duration, Rate};
use quipu_link::{LinkConfig, QueueLimit};
use quipu_recorder::Options;
use quipu_web::page::Page;
use serde_json::Value;
use tempfile::TempDir;

use crate::alone;
use crate::firefox::{Firefox, Response};
use crate::pages::shipped;
use crate::served::{Served, Setup};

const PAGES: &str = "sb-admin,mobileh2-google,rust-vec,pandas-merging";
const RATES: &str = "5,20,50";
const RUNS: u32 = 5;
/// One way.
const DELAY: Duration = Duration::from_millis(20);

/// How long Firefox has been there before it loads a page.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(3);

/// When an object was requested and when it had come, in ms from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    requested: f64,
    complete: f64,
}

/// A load of a page.
#[derive(Clone, Debug, PartialEq)]
struct Load {
    /// Until the load event, in ms.
    page: f64,
    /// By URL, and how many objects of that URL were requested before.
    objects: BTreeMap<(String, usize), Times>,
}

/// The loads of a HAR file.
fn loads(har: &Value) -> Vec<Load> {
    let millis = |time: &Value| {
        let time: Timestamp = time.as_str().unwrap().parse().unwrap();
        time.as_nanosecond() as f64 / 1e6
    };
    let pages = har["log"]["pages"].as_array().unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    let load = |page: &Value| {
        let begun = millis(&page["startedDateTime"]);
        let mut objects = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry["pageref"] == page["id"]) {
            let requested = millis(&entry["startedDateTime"]) - begun;
            let complete = requested + entry["time"].as_f64().unwrap();
            let url = entry["request"]["url"].as_str().unwrap();
            insert(&mut objects, url, Times { requested, complete });
        }
        Load { page: page["pageTimings"]["onLoad"].as_f64().unwrap(), objects }
    };
    pages.iter().map(load).collect()
}

/// The queue that a scenario's link has by default: two bandwidth-delay products, or 50 packets.
fn link(mbit: u64) -> LinkConfig {
    let queue = QueueLimit::BandwidthDelay {
        multiple: 2.0,
        round_trip: Some(DELAY + DELAY),
        at_least: Bytes(50 * QueueLimit::PACKET.0),
    };
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), DELAY).with_queue(queue)
}

/// What the model is compared with.
#[derive(Clone, Copy)]
enum Browser {
    Chromium,
    Firefox,
}

impl Browser {
    fn wanted() -> Browser {
        match std::env::var("QUIPU_MODEL_BROWSER").as_deref() {
            Err(_) | Ok("chromium") => Browser::Chromium,
            Ok("firefox") => Browser::Firefox,
            Ok(other) => panic!("QUIPU_MODEL_BROWSER: {other:?}, expected chromium or firefox"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Browser::Chromium => "Chromium",
            Browser::Firefox => "Firefox",
        }
    }

    /// What the model of it is called.
    fn profile(self) -> &'static str {
        match self {
            Browser::Chromium => "chrome",
            Browser::Firefox => "firefox",
        }
    }

    /// Loads of `page`, each with a new profile; none without the browser.
    fn loads(self, page: &Page, mbit: u64, runs: u32) -> Vec<Load> {
        let mut setup = Setup::new("stream=rfc9218 path=minrtt congestion=newreno");
        setup.link = Some(link(mbit));
        let served = Served::with(page, setup);
        assert!(served.replay.differences().is_empty(), "{} is served as it is", page.name());
        match self {
            Browser::Chromium => by_chromium(&served, runs),
            Browser::Firefox => by_firefox(&served, page.objects().len(), runs),
        }
    }
}

/// Loads by Chromium.
fn by_chromium(served: &Served, runs: u32) -> Vec<Load> {
    let mut options = Options::new(&served.replay.start()).unwrap();
    options.arguments = vec![
        "--enable-quic".to_owned(),
        format!("--origin-to-force-quic-on={}", served.replay.origins().join(",")),
        format!("--ignore-certificate-errors-spki-list={}", served.key),
    ];
    options.hosts = vec![("*".to_owned(), format!("127.0.0.1:{}", served.port))];
    options.repeat = runs;
    options.settle = Duration::from_secs(1);
    let outcome = quipu_recorder::record(&options, &AtomicBool::new(false), &mut |_| {});
    outcome.ended.unwrap();
    let har = quipu_recorder::file(&outcome.loads, "0", false);
    loads(&serde_json::from_slice(&har).unwrap())
}

/// Loads by Firefox of a page of so many objects.
fn by_firefox(served: &Served, objects: usize, runs: u32) -> Vec<Load> {
    let start = served.replay.start();
    let load = |mut firefox: Firefox| {
        // A browser with a new profile is busy for a while.
        std::thread::sleep(SETTLE);
        let report = firefox.load(&start, objects);
        assert_eq!(report.failed, []);
        let document = report.responses.iter().find(|response| response.url == start).unwrap();
        let begun = document.opened;
        let mut responses: Vec<&Response> = report.responses.iter().collect();
        responses.sort_by(|one, two| one.requested.total_cmp(&two.requested));
        let mut objects = BTreeMap::new();
        for response in responses {
            assert_eq!(response.protocol, "h3", "{response:?}");
            let requested = response.requested - begun;
            let complete = response.complete - begun;
            insert(&mut objects, &response.url, Times { requested, complete });
        }
        Load { page: report.load_event - begun, objects }
    };
    (0..runs).map_while(|_| Firefox::start(served, true)).map(load).collect()
}

/// Inserts the times of one more object of that URL.
fn insert(objects: &mut BTreeMap<(String, usize), Times>, url: &str, times: Times) {
    let same = (0..).find(|&same| !objects.contains_key(&(url.to_owned(), same)));
    objects.insert((url.to_owned(), same.unwrap()), times);
}

/// The load of `page` that the program at `quipu` simulates.
fn by_model(quipu: &str, page: &str, mbit: u64, browser: Browser) -> Load {
    let folder = TempDir::new().unwrap();
    let har = folder.path().join("load.har");
    let link = format!("rate={mbit}mbit,delay=20ms");
    let output = Command::new(quipu)
        .args(["load", "--page", page, "--link", &link, "--http", "h3"])
        .args(["--browser", browser.profile(), "--priorities", "urgency", "--stream", "rfc9218"])
        .args(["--path", "minrtt", "--congestion", "newreno", "--har"])
        .arg(&har)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    loads(&serde_json::from_slice(&std::fs::read(har).unwrap()).unwrap()).remove(0)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => values[middle - 1..=middle].iter().sum::<f64>() / 2.0,
        _ => values[middle],
    }
}

/// The load each of whose times is the median of those of `loads`. Objects that one of them lacks are left out.
fn median_load(loads: &[Load]) -> Load {
    let mut objects = BTreeMap::new();
    for object in loads[0].objects.keys() {
        let times: Option<Vec<Times>> =
            loads.iter().map(|load| load.objects.get(object).copied()).collect();
        let Some(times) = times else { continue };
        let requested = median(times.iter().map(|times| times.requested));
        let complete = median(times.iter().map(|times| times.complete));
        objects.insert(object.clone(), Times { requested, complete });
    }
    Load { page: median(loads.iter().map(|load| load.page)), objects }
}

/// How far the model is from the browser.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Distance {
    /// Objects that both have.
    objects: usize,
    /// Of the page time, as a share of the browser's.
    page: f64,
    /// Median times of completion: the browser's and the model's.
    complete: (f64, f64),
    /// The median of the objects' distances, without sign, as shares of the browser's times of completion.
    object: f64,
    /// Medians of model less browser, in ms: time of request, and from request to completion.
    requested: f64,
    took: f64,
}

/// The objects that both have, with the browser's times and the model's.
fn both<'a>(
    browser: &'a Load,
    model: &'a Load,
) -> impl Iterator<Item = (&'a (String, usize), Times, Times)> {
    let objects = browser.objects.iter();
    objects.filter_map(|(object, &times)| Some((object, times, *model.objects.get(object)?)))
}

fn distance(browser: &Load, model: &Load) -> Distance {
    let both: Vec<(Times, Times)> = both(browser, model).map(|(_, one, two)| (one, two)).collect();
    let of =
        |share: fn(Times, Times) -> f64| median(both.iter().map(|&(one, two)| share(one, two)));
    let took = |times: Times| times.complete - times.requested;
    let lasted = both.iter().map(|&(one, two)| took(two) - took(one));
    Distance {
        objects: both.len(),
        page: model.page / browser.page - 1.0,
        complete: (of(|one, _| one.complete), of(|_, two| two.complete)),
        object: of(|one, two| (two.complete / one.complete - 1.0).abs()),
        requested: of(|one, two| two.requested - one.requested),
        took: median(lasted),
    }
}

#[test]
fn the_model_stands_beside_a_browser() {
    let Ok(quipu) = std::env::var("QUIPU_MODEL") else { return };
    let _alone = alone();
    let variable = |name: &str, or: &str| std::env::var(name).unwrap_or_else(|_| or.to_owned());
    let runs = variable("QUIPU_MODEL_RUNS", &RUNS.to_string()).parse().unwrap();
    let browser = Browser::wanted();
    let called = browser.name();
    let mut table = format!(
        "| page | Mbit/s | objects | page time: {called} (range) | model | distance | object time: {called} | model | \
         distance of medians | median distance | requested | took |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for name in variable("QUIPU_MODEL_PAGES", PAGES).split(',') {
        let page = shipped(name);
        for rate in variable("QUIPU_MODEL_RATES", RATES).split(',') {
            let mbit = rate.parse().unwrap();
            let loads = browser.loads(&page, mbit, runs);
            if loads.is_empty() {
                return;
            }
            let pages = || loads.iter().map(|load| load.page);
            let least = pages().fold(f64::INFINITY, f64::min);
            let most = pages().fold(0.0, f64::max);
            let (measured, model) = (median_load(&loads), by_model(&quipu, name, mbit, browser));
            let found = distance(&measured, &model);
            // The model's load ends with the page, before the objects that the page does not wait for.
            assert_eq!(found.objects, model.objects.len(), "{name}: objects that both have");
            // Something else was loaded, or over another link, if it is so far off.
            assert!((-0.75..3.0).contains(&found.page), "{name} at {mbit} Mbit/s: {found:?}");
            let (one, two) = found.complete;
            table += &format!(
                "| {name} | {mbit} | {} | {:.0} ({least:.0}–{most:.0}) | {:.0} | {:+.0} % | {one:.0} | {two:.0} | \
                 {:+.0} % | {:.0} % | {:+.0} | {:+.0} |\n",
                found.objects,
                measured.page,
                model.page,
                found.page * 100.0,
                (two / one - 1.0) * 100.0,
                found.object * 100.0,
                found.requested,
                found.took,
            );
            eprintln!("{}", table.lines().last().unwrap());
            if std::env::var_os("QUIPU_MODEL_OBJECTS").is_some() {
                for ((url, _), one, two) in both(&measured, &model) {
                    let file = url.rsplit('/').next().unwrap_or_default();
                    eprintln!(
                        "  {:4.0}–{:4.0} {:4.0}–{:4.0} {file}",
                        one.requested, one.complete, two.requested, two.complete
                    );
                }
            }
        }
    }
    eprint!("\n{table}");
}

#[test]
fn distances_are_those_of_the_objects_that_both_have() {
    let load = |page, objects: &[(&str, f64, f64)]| {
        let objects = objects.iter().map(|&(url, requested, complete)| {
            ((url.to_owned(), 0), Times { requested, complete })
        });
        Load { page, objects: objects.collect() }
    };
    let chromium = [("a", 0.0, 100.0), ("b", 50.0, 200.0), ("c", 100.0, 400.0), ("x", 0.0, 1.0)];
    let model = [("a", 0.0, 90.0), ("b", 40.0, 150.0), ("c", 90.0, 500.0), ("y", 0.0, 1.0)];
    let (chromium, model) = (load(500.0, &chromium), load(550.0, &model));
    let found = distance(&chromium, &model);
    assert_eq!((found.objects, found.complete), (3, (200.0, 150.0)));
    assert_eq!((found.requested, found.took), (-10.0, -10.0));
    assert!((found.page - 0.1).abs() < 1e-9 && (found.object - 0.25).abs() < 1e-9, "{found:?}");
    let both = median_load(&[chromium.clone(), model]);
    assert_eq!((both.page, both.objects.len()), (525.0, 3));
    assert_eq!(both.objects[&("a".to_owned(), 0)], Times { requested: 0.0, complete: 95.0 });
    assert_eq!(median_load(std::slice::from_ref(&chromium)), chromium);
}
