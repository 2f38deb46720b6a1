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
use quipu_lab::pages::exchanges;
use quipu_record::RunRecord;
use quipu_scenario::{HostSpec, Hosts, HttpVersions};
use tempfile::NamedTempFile;

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
    let file = page()?;
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

/// Writes the page to a file, which is there as long as it is kept.
fn page() -> Result<NamedTempFile, Failure> {
    let har = exchanges(EXCHANGES, SIZE, REST).map_err(Failure::run)?;
    let failed = |error| Failure::Run(format!("cannot write the page of exchanges: {error}"));
    let mut file = tempfile::Builder::new().suffix(".har").tempfile().map_err(failed)?;
    file.write_all(har.as_bytes()).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use quipu_lab::pages::{LoadedPage, Reading};
    use quipu_scenario::Scenario;

    use super::*;

    #[test]
    fn each_object_of_the_page_waits_for_the_one_before() {
        let file = page().expect("a file");
        let name = file.path().display().to_string();
        let loaded = LoadedPage::load(&name, Reading::of(&Scenario::default())).expect("a page");
        let page = &loaded.page.page;
        assert_eq!(page.objects().len(), 30);
        for (object, before) in page.objects().iter().skip(1).zip(page.objects()) {
            assert_eq!(object.response_bytes, SIZE);
            assert_eq!(object.discovery.parent(), Some(before.id));
            assert_eq!(object.gap.computing, REST);
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
