use quipu_base::Duration;

use super::*;
use crate::batch::{run, run_sampled};
use crate::plan::{Cell, Plan};
use crate::results::place;
use crate::run::host::Host;
use crate::run::instruments::{Instruments, Setting};
use crate::run::pages::Pages;
use crate::run::topology::Topology;
use quipu_record::{RunRecord, SeriesPart};
use quipu_scenario::{Direction, FlowSpec, Network, Series, find_network};

const FIRST: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

/// A page of 1.6 MB over paths without chance, sampled every so many milliseconds.
fn plan(links: &[&str], millis: u64, change: impl FnOnce(&mut Scenario)) -> Plan {
    let paths = links.iter().map(|link| link.parse().unwrap()).collect();
    let mut scenario = Scenario {
        pages: vec!["framework-youtube".to_owned()],
        networks: vec![Network::from_links(paths)],
        host_jitter: Duration::ZERO,
        series: Series::Every(Duration::from_millis(millis)),
        ..Scenario::default()
    };
    scenario.discovery = "all-at-once".parse().unwrap();
    change(&mut scenario);
    Plan::new(scenario).unwrap()
}

fn sampled(plan: &Plan, cell: Cell) -> (RunRecord, Vec<SeriesRow>) {
    let mut rows = Vec::new();
    let record = run_sampled(plan, cell, &mut |row| {
        rows.push(row.clone());
        Ok(())
    });
    (record.unwrap().remove(0), rows)
}

/// Rows of one path, or of the connection.
fn of(rows: &[SeriesRow], end: End, path: Option<u32>) -> Vec<&SeriesRow> {
    rows.iter().filter(|row| (row.end, row.path) == (end, path)).collect()
}

#[test]
fn a_run_is_the_same_with_any_series_and_without() {
    for (network, http) in [("wifi+lte-lossy", "h2"), ("mobileh2-high-lossy", "raw")] {
        let base = Scenario {
            pages: vec!["framework-google".to_owned()],
            networks: vec![find_network(network).unwrap()],
            runs: 2,
            http: http.parse().unwrap(),
            ..Scenario::default()
        };
        let plain = Plan::new(base.clone()).unwrap();
        for micros in [1_013, 50_000] {
            let series = Series::Every(Duration::from_micros(micros));
            let scenario = Scenario { series, series_ends: SeriesEnds::Both, ..base.clone() };
            let plan = Plan::new(scenario).unwrap();
            for policy in [0, 4] {
                let cell = Cell { policy, run: 1, ..FIRST };
                let (record, rows) = sampled(&plan, cell);
                assert!(rows.len() > 10);
                assert_eq!(record, run(&plain, cell).unwrap(), "{network}, {micros} us");
            }
        }
    }
}

#[test]
fn samples_are_taken_every_so_long_until_the_run_ends() {
    let plan = plan(&["rate=10mbit,delay=10ms"], 30, |_| {});
    let (record, rows) = sampled(&plan, FIRST);
    let times: Vec<u64> =
        of(&rows, End::Server, None).iter().map(|row| row.at.as_nanos()).collect();
    // At the start and after 10 ms the client's first datagram has not come.
    let last = record.ended_at.as_nanos() / 30_000_000;
    let expected: Vec<u64> = (1..=last).map(|sample| sample * 30_000_000).collect();
    assert_eq!(times, expected);
    assert!(of(&rows, End::Client, None).is_empty(), "the sender of the data alone");
}

#[test]
fn in_slow_start_the_window_grows_by_what_is_acknowledged_and_doubles_each_round_trip() {
    let plan = plan(&["rate=1gbit,delay=50ms"], 100, |_| {});
    let (_, rows) = sampled(&plan, FIRST);
    let path = of(&rows, End::Server, Some(0));
    // While there is something to send: a window that is not used does not grow.
    let all = path.last().map(|row| row.bytes_sent).unwrap();
    let rounds: Vec<_> = path
        .iter()
        .filter(|row| row.bytes_acked >= Bytes(10_000) && row.bytes_sent < all)
        .collect();
    assert!(rounds.len() >= 5, "{}", rounds.len());
    for pair in rounds.windows(2) {
        let [before, after] = pair else { continue };
        assert_eq!((after.state, after.ssthresh), (Some("slow start"), None));
        assert_eq!(after.cwnd - before.cwnd, after.bytes_acked - before.bytes_acked);
        // Packets are paced, so that the last ones of a round are acknowledged after the sample.
        let growth = after.cwnd.0 as f64 / before.cwnd.0 as f64;
        assert!((1.8..=2.0).contains(&growth), "{growth} at {}", after.at);
    }
}

#[test]
fn what_is_in_flight_fills_the_window_and_goes_no_further() {
    let plan = plan(&["rate=20mbit,delay=25ms,queue=unlimited"], 1, |scenario| {
        scenario.transport.pacing = false;
    });
    let (_, rows) = sampled(&plan, FIRST);
    let path = of(&rows, End::Server, Some(0));
    let packet = Bytes(1_350);
    assert!(path.iter().all(|row| row.in_flight <= row.cwnd + packet && row.bytes_lost.is_zero()));
    let full = path.iter().filter(|row| row.in_flight + packet >= row.cwnd).count();
    assert!(full * 2 > path.len(), "{full} of {}", path.len());
    assert!(path.iter().all(|row| row.pacing_rate.is_none()), "nothing is paced");
}

#[test]
fn a_queue_fills_to_its_limit_and_never_above() {
    let plan = plan(&["rate=10mbit,delay=10ms,queue=30p"], 1, |_| {});
    let (record, rows) = sampled(&plan, FIRST);
    let path = of(&rows, End::Server, Some(0));
    let most = path.iter().filter_map(|row| row.queue_down).max().unwrap();
    assert!((Bytes(40_000)..=Bytes(45_000)).contains(&most), "{most}");
    let up = path.iter().filter_map(|row| row.queue_up).max().unwrap();
    assert!(up < Bytes(10_000), "requests and acknowledgements: {up}");
    let last = path.last().unwrap();
    assert!(last.bytes_lost > Bytes::ZERO && last.ssthresh.is_some());
    assert!(last.bytes_lost <= record.sender_total(|path| path.bytes_lost));
    // 1,350 of 1,378 bytes on the link are payload.
    let capacity = 10_000_000 * 1_350 / 1_378;
    let rates: Vec<u64> = path
        .iter()
        .filter(|row| row.queue_down > Some(Bytes(10_000)))
        .filter_map(|row| row.delivery_rate)
        .map(|rate| rate.bits_per_sec())
        .collect();
    let near = rates.iter().filter(|&&rate| rate.abs_diff(capacity) * 20 <= capacity).count();
    assert!(rates.len() > 300 && near * 10 >= rates.len() * 9, "{near} of {}", rates.len());
}

#[test]
fn round_trips_are_those_of_the_link_and_its_queue() {
    let plan = plan(&["rate=10mbit,delay=10ms,queue=unlimited"], 5, |_| {});
    let (_, rows) = sampled(&plan, FIRST);
    let base = Duration::from_millis(20);
    for row in of(&rows, End::Server, Some(0)).iter().filter(|row| row.srtt.is_some()) {
        let [min, latest, srtt] = [row.min_rtt, row.latest_rtt, row.srtt].map(Option::unwrap);
        assert!(min <= latest && min <= srtt.saturating_mul(2));
        assert!(min >= base, "{min:?}");
    }
    // A full packet takes 1.1 ms to be sent, and its acknowledgement less than 0.1 ms.
    let least = of(&rows, End::Server, Some(0)).last().unwrap().min_rtt.unwrap();
    assert!(least <= base + Duration::from_micros(1_200), "{least:?}");
    // What waits takes its time: 1 ms for 1,250 bytes.
    let longest = |of: fn(&SeriesRow) -> Option<u64>| rows.iter().filter_map(of).max().unwrap();
    let queued = longest(|row| row.queue_down.map(|queue| queue.0));
    let latest = longest(|row| row.latest_rtt.map(Duration::as_millis));
    let expected = 20 + queued * 8 / 10_000;
    assert!(latest.abs_diff(expected) <= 10, "{latest} ms, {expected} ms expected");
}

#[test]
fn a_connection_is_the_sum_of_its_paths() {
    let links = ["rate=20mbit,delay=10ms", "rate=10mbit,delay=20ms"];
    let plan = plan(&links, 7, |scenario| scenario.series_ends = SeriesEnds::Both);
    let (record, rows) = sampled(&plan, FIRST);
    let mut with_two_paths = 0;
    for whole in rows.iter().filter(|row| row.path.is_none()) {
        let same =
            |row: &&SeriesRow| (row.at, row.end) == (whole.at, whole.end) && row.path.is_some();
        let paths: Vec<_> = rows.iter().filter(same).collect();
        with_two_paths += usize::from(paths.len() == 2);
        let sum = |of: fn(&SeriesRow) -> u64| paths.iter().map(|row| of(row)).sum::<u64>();
        for of in [
            |row: &SeriesRow| row.cwnd.0,
            |row: &SeriesRow| row.in_flight.0,
            |row: &SeriesRow| row.bytes_sent.0,
            |row: &SeriesRow| row.bytes_acked.0,
            |row: &SeriesRow| row.bytes_lost.0,
            |row: &SeriesRow| row.queue_up.map_or(0, |queue| queue.0),
            |row: &SeriesRow| row.queue_down.map_or(0, |queue| queue.0),
            |row: &SeriesRow| row.pacing_rate.map_or(0, |rate| rate.bits_per_sec()),
            |row: &SeriesRow| row.delivery_rate.map_or(0, |rate| rate.bits_per_sec()),
        ] {
            assert_eq!(of(whole), sum(of));
        }
        let shares = sum(|row| row.share_ppm.map_or(0, u64::from));
        assert!((999_998..=1_000_000).contains(&shares), "{shares}");
        assert_eq!((whole.share_ppm, whole.srtt), (Some(1_000_000), None));
    }
    assert!(with_two_paths > 50, "{with_two_paths}");
    for end in [End::Server, End::Client] {
        for path in [0, 1] {
            let of_path = of(&rows, end, Some(path));
            assert!(of_path.is_sorted_by_key(|row| (row.at, row.bytes_sent, row.bytes_acked)));
            let ended = record.paths_of(end).find(|record| record.path == path).unwrap();
            let last = of_path.last().unwrap();
            // Less than a sample's time before the end.
            let most = Rate::from_mbit_per_sec(20).bytes_in(Duration::from_millis(7));
            assert!(last.bytes_sent <= ended.bytes_sent);
            assert!(last.bytes_sent + most + most >= ended.bytes_sent);
            assert!(last.bytes_acked <= last.bytes_sent);
        }
    }
}

#[test]
fn a_link_that_paths_share_counts_once_and_shares_are_of_the_same_side() {
    // One connection counted as two, and both of its paths as over the link of the first.
    let plan = plan(&["rate=10mbit,delay=10ms", "rate=10mbit,delay=10ms"], 20, |_| {});
    let mut world = World::new(quipu_sim::WorldConfig::new(plan.scenario.run_seed(0)));
    let network = &plan.networks[0].network;
    let mut topology = Topology::new(&mut world, network, plan.scenario.link_overhead).unwrap();
    let instruments = Instruments::default();
    let setting = Setting { plan: &plan, cell: FIRST, instruments: &instruments };
    let pages = Pages::add(setting, &mut world, &mut topology).unwrap();
    let server = pages.watched(&topology)[0].node;
    let mut rows = Vec::new();
    let mut sink = |row: &SeriesRow| {
        rows.push(row.clone());
        Ok(())
    };
    let watched = ["a", "b"].map(|flow| Watched {
        flow: flow.into(),
        end: End::Server,
        sends: true,
        node: server,
        line: 0,
        links: vec![topology.shared(0); 2],
    });
    let mut sampler = Sampler::new(&plan.scenario, watched.into(), &mut sink).unwrap();
    let limit = Instant::ZERO + Duration::from_millis(200);
    let sampler = Some(&mut sampler);
    let end = run_while(&mut world, limit, |_| true, Host::connection, sampler).unwrap();
    assert_eq!(end, RunEnd::TimeLimit);
    assert_eq!(rows.last().map(|row| row.at), Some(limit), "the limit is sampled too");
    let flows: Vec<&str> = rows.iter().map(|row| &*row.flow).collect();
    assert_eq!(flows[..4], ["a", "a", "b", "b"]);
    for whole in rows.iter().filter(|row| row.path.is_none()) {
        assert_eq!(whole.share_ppm, Some(500_000));
        let same = |row: &&SeriesRow| (row.at, &row.flow) == (whole.at, &whole.flow);
        assert!(rows.iter().filter(same).all(|row| row.queue_down == whole.queue_down));
    }
    assert!(rows.iter().any(|row| row.path == Some(1) && row.queue_down > Some(Bytes::ZERO)));
}

#[test]
fn flows_are_told_apart_and_sampled_at_the_end_that_writes() {
    let start = Duration::from_secs(1);
    let plan = plan(&["rate=10mbit,delay=10ms", "rate=10mbit,delay=10ms"], 10, |scenario| {
        scenario.pages.clear();
        let up = FlowSpec { direction: Direction::Up, start, ..FlowSpec::new("up") };
        let one_path = FlowSpec { paths: vec!["1".into()], ..FlowSpec::new("second") };
        scenario.flows = vec![FlowSpec::new("both"), one_path, up];
        scenario.duration = Duration::from_secs(3);
        scenario.measure.from = Duration::from_millis(1_555);
        scenario.measure.until = Some(Duration::from_millis(2_500));
    });
    let (record, rows) = sampled(&plan, FIRST);
    assert_eq!(record, run(&plan, FIRST).unwrap());
    assert_eq!(rows.last().map(|row| row.at), Some(Instant::ZERO + Duration::from_secs(3)));
    let named = |flow: &'static str| rows.iter().filter(move |row| &*row.flow == flow);
    assert!(named("up").all(|row| row.end == End::Client && row.at >= Instant::ZERO + start));
    assert!(named("both").all(|row| row.end == End::Server));
    // Its path is the network's second, which the other flow uses too.
    for row in named("second").filter(|row| row.path == Some(0)) {
        let mut other = named("both").filter(|other| other.at == row.at);
        if let Some(other) = other.find(|other| other.path == Some(1)) {
            assert_eq!(row.queue_down, other.queue_down);
        }
    }
    let last: Vec<_> = rows[rows.len() - 8..].iter().filter(|row| row.path.is_none()).collect();
    assert_eq!(last.len(), 3);
    let shares: u32 = last.iter().filter_map(|row| row.share_ppm).sum();
    assert!((999_997..=1_000_000).contains(&shares), "{shares}");
}

#[test]
fn a_series_that_cannot_be_written_ends_the_run() {
    let plan = plan(&["rate=10mbit,delay=10ms"], 20, |_| {});
    let refuse = |_: &SeriesRow| Err(io::Error::other("full"));
    let error = run_sampled(&plan, FIRST, &mut { refuse }).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the time series: full");
}

#[test]
fn rows_read_as_a_table() {
    let plan = plan(&["name=a,rate=20mbit,delay=10ms", "rate=10mbit,delay=20ms"], 20, |_| {});
    let mut text = Vec::new();
    let mut part = SeriesPart::new(place(&plan, FIRST), &mut text);
    let mut left = 12;
    let record = run_sampled(&plan, FIRST, &mut |row| {
        left -= 1;
        if left >= 0 { part.write(row) } else { Ok(()) }
    });
    assert!(record.is_ok());
    part.finish().unwrap();
    insta::assert_snapshot!(String::from_utf8(text).unwrap());
}
