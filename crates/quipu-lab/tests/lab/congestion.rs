//! Congestion control over links that flows fill: how full, how fair. Each test reads its scenario file
//! in `experiments/` and runs it with fewer runs than it asks for.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::base::Duration;
use quipu_lab::batch::{run_all, run_sampled, run_session};
use quipu_lab::plan::Plan;
use quipu_record::{SeriesRow, Sharing};
use quipu_scenario::Scenario;

/// What `runs` runs of each row of `experiments/FILE` say, after `change`.
fn measured(file: &str, runs: u32, change: impl FnOnce(&mut Scenario)) -> Vec<Sharing> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut scenario = Scenario::load(&folder.join(file)).unwrap();
    scenario.runs = runs;
    change(&mut scenario);
    let plan = Plan::new(scenario).unwrap();
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert!(batch.summary.complete, "{:?}", batch.summary.failures);
    batch.summary.sharing
}

fn congestion(names: &str) -> impl FnOnce(&mut Scenario) {
    move |scenario| scenario.policies.congestion = names.to_owned()
}

/// The median use of the link at `index` in thousandths.
fn used(sharing: &Sharing, index: usize) -> u64 {
    sharing.links[index].utilisation_per_mille.median
}

/// The median of what the flow at `index` got, in megabits per second.
fn goodput(sharing: &Sharing, index: usize) -> f64 {
    sharing.flows[index].goodput.median as f64 / 1e6
}

#[test]
fn controllers_fill_a_link_with_a_queue_of_one_product() {
    for sharing in measured("congestion/utilisation.toml", 1, congestion("newreno,cubic")) {
        println!("{}: {} ‰, {:.2} Mb/s", sharing.policy, used(&sharing, 0), goodput(&sharing, 0));
        assert!(used(&sharing, 0) > 950, "{sharing:?}");
    }
}

#[test]
fn random_loss_stops_newreno_and_not_bbr() {
    let all = measured("congestion/random-loss.toml", 1, congestion("newreno,bbr"));
    for sharing in &all {
        println!("{}: {} ‰, {:.2} Mb/s", sharing.policy, used(sharing, 0), goodput(sharing, 0));
    }
    let [newreno, bbr] = &all[..] else { panic!("two rows") };
    // sqrt(3 / 2p) packets of 1,321 bytes per round trip are 1.8 Mb/s.
    assert!((1.0..4.0).contains(&goodput(newreno, 0)), "{newreno:?}");
    assert!(used(bbr, 0) > 900, "{bbr:?}");
}

#[test]
fn coupled_controllers_take_no_more_than_one_flow_at_a_shared_bottleneck() {
    for sharing in measured("congestion/shared-bottleneck.toml", 2, |_| {}) {
        let (single, both) = (goodput(&sharing, 0), goodput(&sharing, 1));
        println!("{}: {both:.2} Mb/s over both, {single:.2} beside it", sharing.policy);
        assert!(used(&sharing, 0) > 950, "{sharing:?}");
        if sharing.policy == "newreno" {
            assert!(both > 1.5 * single, "without coupling two paths are two flows: {sharing:?}");
        } else {
            assert!(both <= 1.15 * single, "{sharing:?}");
        }
    }
}

#[test]
fn coupled_controllers_use_both_of_two_disjoint_paths() {
    for sharing in measured("congestion/disjoint.toml", 1, |_| {}) {
        let (one, two) = (used(&sharing, 0), used(&sharing, 2));
        println!("{}: {one} and {two} ‰, {:.2} Mb/s", sharing.policy, goodput(&sharing, 0));
        // One path of 20 Mb/s carries at most 19.2 Mb/s of content.
        if sharing.policy == "wvegas" {
            // Slow start ends by a single packet in a queue, after which windows grow slowly: with
            // packets of 1,200 to 1,350 bytes it reaches 14.6 to 23.5 Mb/s.
            assert!(goodput(&sharing, 0) > 14.0 && one.min(two) > 200, "{sharing:?}");
        } else {
            assert!(goodput(&sharing, 0) > 19.2 && one.min(two) > 850, "{sharing:?}");
        }
    }
}

#[test]
fn wvegas_takes_bursts_for_queues_and_fills_both_paths_without_them() {
    let smooth = |scenario: &mut Scenario| {
        scenario.policies.congestion = "wvegas".to_owned();
        scenario.transport.pacing_burst_packets = 2;
        scenario.transport.pacing_burst_time = Duration::ZERO;
    };
    let all = measured("congestion/disjoint.toml", 1, smooth);
    assert!(used(&all[0], 0).min(used(&all[0], 2)) > 950, "{all:?}");
}

#[test]
fn two_bbr_flows_come_to_share_a_bottleneck() {
    let share = |sharing: &Sharing| {
        let all = goodput(sharing, 0) + goodput(sharing, 1);
        println!("{}, second flow: {:.3} of both", sharing.network, goodput(sharing, 1) / all);
        goodput(sharing, 1) / all
    };
    // Seconds 40 to 60, with the queue of the paper's script: within 20 % of a half. The rest of the way
    // takes a minute more.
    let early = measured("ns3/ns3-fig4.toml", 5, |_| {});
    assert!((0.4..=0.6).contains(&share(&early[0])), "{early:?}");
    let late = measured("ns3/ns3-fig4.toml", 3, |scenario| {
        scenario.duration = Duration::from_secs(120);
        scenario.measure.from = Duration::from_secs(100);
        scenario.measure.until = None;
    });
    assert!(late.iter().all(|sharing| (0.45..=0.55).contains(&share(sharing))), "{late:?}");
}

/// What the first flow of Figure 2 shows every 10 ms.
fn figure_2() -> Vec<SeriesRow> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let scenario = Scenario::load(&folder.join("ns3/ns3-fig2.toml")).unwrap();
    let plan = Plan::new(scenario.with_field("series", "10ms").unwrap()).unwrap();
    let mut rows = Vec::new();
    let mut keep = |row: &SeriesRow| {
        if &*row.flow == "quic" && row.path.is_some() {
            rows.push(row.clone());
        }
        Ok(())
    };
    run_sampled(&plan, plan.cells().next().unwrap(), &mut keep).unwrap();
    rows
}

#[test]
fn bbr_goes_through_its_states_in_order_and_at_the_right_times() {
    let rows = figure_2();
    // When each state began, in seconds.
    let mut states: Vec<(&str, f64)> = Vec::new();
    for row in &rows {
        if states.last().map(|last| last.0) != row.state {
            states.push((row.state.unwrap(), row.at.as_nanos() as f64 / 1e9));
        }
    }
    println!("{states:?}");
    let names: Vec<&str> = states.iter().map(|(name, _)| *name).collect();
    assert_eq!(names[..3], ["startup", "drain", "probe bandwidth"]);
    let probes = names[3..].chunks(2);
    assert!(probes.clone().count() >= 2, "{states:?}");
    assert!(probes.into_iter().all(|pair| pair[0] == "probe rtt"), "{states:?}");
    // A round trip of 180 ms doubles what is sent until 4 Mb/s are filled from 2 packets on, six
    // times; three rounds without growth follow.
    assert!((1.0..4.0).contains(&states[1].1), "{states:?}");
    // The round-trip time is probed 10 s after its least value was seen, for 200 ms and a round trip. The
    // first cycle of probes for bandwidth may see a lower one by the hosts' jitter.
    let begins: Vec<f64> =
        states.iter().filter(|(name, _)| *name == "probe rtt").map(|(_, at)| *at).collect();
    assert!((10.0..15.0).contains(&begins[0]), "{begins:?}");
    assert!(
        begins.windows(2).all(|pair| (10.0..13.0).contains(&(pair[1] - pair[0]))),
        "{begins:?}"
    );
    let ends = states.windows(2).filter(|pair| pair[0].0 == "probe rtt");
    assert!(
        ends.into_iter().all(|pair| (0.35..0.8).contains(&(pair[1].1 - pair[0].1))),
        "{states:?}"
    );
}

#[test]
fn the_window_of_bbr_is_two_products_and_the_least_round_trip_that_of_the_links() {
    let rows = figure_2();
    let steady: Vec<&SeriesRow> = rows
        .iter()
        .filter(|row| row.at.as_nanos() > 5_000_000_000 && row.state == Some("probe bandwidth"))
        .collect();
    let mut windows: Vec<u64> = steady.iter().map(|row| row.cwnd.0).collect();
    windows.sort_unstable();
    let window = windows[windows.len() / 2];
    let rtt: u64 = steady.iter().filter_map(|row| row.latest_rtt).map(Duration::as_nanos).sum();
    let rtt = rtt / steady.len() as u64 / 1_000_000;
    println!("window {window} B, mean round trip {rtt} ms");
    assert!((180_000 * 8 / 10..=180_000 * 12 / 10).contains(&window), "{window}");
    // The paper: near twice 180 ms. Without noise the bandwidth is not over-estimated by so much.
    assert!((185..=360).contains(&rtt), "{rtt}");
    let least = rows.last().and_then(|row| row.min_rtt).unwrap().as_millis();
    assert!((180..=186).contains(&least), "{least}");
}

#[test]
fn a_bulk_flow_over_one_byte_stream_gets_what_one_over_four_streams_gets() {
    let sharing = &measured("ns3/ns3-fig2.toml", 1, |_| {})[0];
    let (quic, tcp_like) = (goodput(sharing, 0), goodput(sharing, 1));
    println!("{quic:.3} and {tcp_like:.3} Mb/s");
    assert!((tcp_like / quic - 1.0).abs() < 0.02, "{quic}, {tcp_like}");
    assert!(used(sharing, 0) > 900, "{sharing:?}");
}

#[test]
fn bbr_follows_more_capacity_within_gain_cycles_and_less_after_ten_rounds() {
    let more = &measured("ns3/ns3-fig3a.toml", 1, |_| {})[0];
    println!("more: {} ‰ from 25 s on", used(more, 0));
    assert!(used(more, 0) > 900, "{more:?}");
    // The mean round trip in milliseconds and the use of the link over some seconds.
    let between = |from, until| {
        let all = measured("ns3/ns3-fig3b.toml", 1, |scenario| {
            scenario.measure.from = Duration::from_secs(from);
            scenario.measure.until = Some(Duration::from_secs(until));
        });
        let found = (all[0].flows[0].rtt_mean_ns.unwrap().median / 1_000_000, used(&all[0], 0));
        println!("{from} to {until} s: {} ms, {} ‰", found.0, found.1);
        found
    };
    assert!(between(46, 50).0 > 500);
    let (rtt, used) = between(60, 80);
    assert!(rtt < 400 && used > 900, "{rtt} ms, {used} ‰");
}
