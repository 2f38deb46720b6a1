//! What an exchange of a request and a response takes over emulated links beyond what a host is measured to cost.
//!
//! The costs of a host are measured with datagrams that come one after the other. In a load a request finds hosts
//! asleep, with code and data in no cache; it goes through the tasks of both ends, is encrypted, and wakes the emulator
//! four times. This is measured by a page of objects that wait for each other, loaded in both worlds.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_lab::base::{Bytes, Duration};
use quipu_lab::batch::{Batch, run_all, run_session};
use quipu_record::RunRecord;
use quipu_scenario::{HostSpec, Hosts, HttpVersions};
use serde_json::{Value, json};

use super::as_emulated;
use crate::batch;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::world::{self, Emulator};

/// Objects of the page, each of which is requested when the one before is there. Our choice.
const EXCHANGES: u32 = 30;

/// The size of each: a packet has room for it.
const SIZE: Bytes = Bytes(500);

/// What the client computes before each request, so that hosts sleep between exchanges. Our choice.
const REST: Duration = Duration::from_millis(20);

/// The only path: it has no queue, and hosts sleep while a packet is on its way.
const LINK: &str = "rate=100mbit,delay=10ms";

/// Loads in each world.
const RUNS: &str = "5";

/// `costs` with as much more time to wake as exchanges take more over emulated links than between hosts with `costs`.
/// `http` is how pages are loaded.
///
/// # Errors
/// If the page cannot be written, links cannot be emulated, or `stop` is set meanwhile.
pub(super) fn added(
    costs: HostSpec,
    http: &HttpVersions,
    emulator: &Arc<Emulator>,
    stop: &Arc<AtomicBool>,
    own: &Own<'_>,
) -> Result<HostSpec, Failure> {
    let failed = |error| Failure::Run(format!("cannot write the page of exchanges: {error}"));
    let mut file = tempfile::Builder::new().suffix(".har").tempfile().map_err(failed)?;
    file.write_all(page().to_string().as_bytes()).map_err(failed)?;
    let mut given = Given::load(None)?;
    given.choose(&[file.path().display().to_string()], &[])?;
    given.link(&[LINK.to_owned()])?;
    given.scenario.http = http.clone();
    let fields = [("runs", RUNS), ("policies.stream", "fifo"), ("policies.path", "minrtt")];
    for (field, value) in fields {
        given.set(field, "quipu agree", Some(value))?;
    }
    as_emulated(&mut given)?;
    let mut plan = given.clone().plan(own)?.emulated(world::as_maker(emulator));
    plan.stop = Arc::clone(stop);
    let real = batch::with_progress(&plan, Default::default(), None, stop, None)?;
    emulator.forget();
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    given.scenario.host = Hosts { client: costs, server: costs };
    let plan = given.plan(own)?;
    let simulated = run_all(&plan, None, stop, &|_| {}, &run_session).map_err(Failure::run)?;
    let Some(more) = more(&real, &simulated) else {
        eprintln!("warning: all loads that measure exchanges were void; is this host busy?");
        return Ok(costs);
    };
    let slower = slower(costs, more);
    let (more, wake) = (milliseconds(more), milliseconds(slower.0.wake));
    eprintln!(
        "a request and its response take {more:.3} ms more over emulated links: hosts take {wake:.3} ms to wake"
    );
    Ok(slower)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// Hosts with `costs` that take `more` time for an exchange: each of the two wakes once in it.
fn slower(mut costs: HostSpec, more: Duration) -> HostSpec {
    let each = more.divided_by(2);
    costs.0.wake += each;
    costs.0.wake_p99 += each;
    costs
}

/// What an exchange took more at the median of pairs; nothing if it took less. `None` without pairs.
fn more(real: &Batch, simulated: &Batch) -> Option<Duration> {
    let rest = |record: &RunRecord| record.page_time.saturating_sub(record.connect_time);
    let mut pairs: Vec<Duration> = Vec::new();
    for (cell, record) in &real.finished {
        let pair = simulated.finished.iter().find(|(other, _)| other == cell);
        pairs.extend(pair.map(|(_, pair)| rest(record).saturating_sub(rest(pair))));
    }
    pairs.sort_unstable();
    let median = pairs.get(pairs.len() / 2)?;
    Some(median.divided_by(EXCHANGES.into()))
}

/// The page, as a browser would have recorded it without a network.
fn page() -> Value {
    let entries: Vec<Value> = (0..EXCHANGES).map(entry).collect();
    let started = started(0);
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "quipu agree", "version": env!("CARGO_PKG_VERSION") },
        "pages": [{ "id": "page", "startedDateTime": started, "title": "exchanges", "pageTimings": {} }],
        "entries": entries,
    } })
}

fn started(object: u32) -> String {
    let at = REST.as_millis() * u64::from(object);
    format!("2026-01-01T00:00:{:02}.{:03}Z", at / 1_000, at % 1_000)
}

fn url(object: u32) -> String {
    format!("https://exchanges.test/{object}")
}

fn entry(object: u32) -> Value {
    let (kind, media_type, initiator) = match object.checked_sub(1) {
        None => ("document", "text/html", json!({ "type": "other" })),
        Some(before) => {
            ("script", "text/javascript", json!({ "type": "script", "url": url(before) }))
        }
    };
    let size = SIZE.0;
    json!({
        "pageref": "page",
        "startedDateTime": started(object),
        "time": 0,
        "_resourceType": kind,
        "_initiator": initiator,
        "request": {
            "method": "GET", "url": url(object), "httpVersion": "h2", "cookies": [], "headers": [],
            "queryString": [], "headersSize": -1, "bodySize": 0,
        },
        "response": {
            "status": 200, "statusText": "", "httpVersion": "h2", "cookies": [], "headers": [],
            "content": { "size": size, "mimeType": media_type }, "redirectURL": "",
            "headersSize": -1, "bodySize": size, "_transferSize": size,
        },
        "cache": {},
        "timings": { "blocked": 0, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": 0, "receive": 0 },
    })
}

#[cfg(test)]
mod tests {
    use quipu_lab::pages::{LoadedPage, Reading};
    use quipu_scenario::Scenario;

    use super::*;

    #[test]
    fn each_object_of_the_page_waits_for_the_one_before() {
        let mut file = tempfile::Builder::new().suffix(".har").tempfile().expect("a file");
        file.write_all(page().to_string().as_bytes()).expect("written");
        let name = file.path().display().to_string();
        let loaded = LoadedPage::load(&name, Reading::of(&Scenario::default())).expect("a page");
        let page = &loaded.page.page;
        assert_eq!(page.objects().len(), 30);
        for (object, before) in page.objects().iter().skip(1).zip(page.objects()) {
            assert_eq!(object.response_bytes, SIZE);
            assert_eq!(object.discovery.parent(), Some(before.id));
            assert!(object.holds_load());
        }
    }

    #[test]
    fn what_an_exchange_takes_more_is_that_of_two_wakings() {
        let costs: HostSpec = "measured:wake=90us,wake_p99=400us".parse().expect("costs");
        let slower = slower(costs, Duration::from_micros(500));
        assert_eq!(slower.0.wake, Duration::from_micros(340));
        assert_eq!(slower.0.wake_p99, Duration::from_micros(650));
        assert_eq!(slower.0.timer_late, costs.0.timer_late);
    }
}
