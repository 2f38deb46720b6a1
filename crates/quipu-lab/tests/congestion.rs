//! Congestion control over links that flows fill: how full, how fair. Each test reads its scenario file
//! in `experiments/` and runs it with fewer runs than it asks for.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::base::Duration;
use quipu_lab::plan::Plan;
use quipu_lab::results::Sharing;
use quipu_lab::run::run_session;
use quipu_lab::scenario::Scenario;
use quipu_lab::sweep::sweep;

/// What `runs` runs of each row of `experiments/FILE` say, after `change`.
fn measured(file: &str, runs: u32, change: impl FnOnce(&mut Scenario)) -> Vec<Sharing> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut scenario = Scenario::load(&folder.join(file)).unwrap();
    scenario.runs = runs;
    change(&mut scenario);
    let plan = Plan::new(scenario).unwrap();
    let swept = sweep(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert!(swept.summary.complete, "{:?}", swept.summary.failures);
    swept.summary.sharing
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
    for sharing in measured("congestion/shared-bottleneck.toml", 3, |_| {}) {
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
        assert!(goodput(&sharing, 0) > 19.2 && one.min(two) > 500, "{sharing:?}");
        if sharing.policy != "wvegas" {
            assert!(one.min(two) > 850, "{sharing:?}");
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
        println!("second flow: {:.3} of both", goodput(sharing, 1) / all);
        goodput(sharing, 1) / all
    };
    let early = share(&measured("ns3/fig4.toml", 3, |_| {})[0]);
    let late = measured("ns3/fig4.toml", 3, |scenario| {
        scenario.duration = Duration::from_secs(120);
        scenario.measure.from = Duration::from_secs(100);
        scenario.measure.until = None;
    });
    // Seconds 40 to 60: within ten points of a half. The rest of the way takes a minute more.
    assert!((0.4..=0.6).contains(&early), "{early:.3}");
    assert!((0.45..=0.55).contains(&share(&late[0])), "{late:?}");
}

#[test]
fn bbr_follows_more_capacity_within_gain_cycles_and_less_after_ten_rounds() {
    let more = &measured("ns3/fig3a.toml", 1, |_| {})[0];
    println!("more: {} ‰ from 25 s on", used(more, 0));
    assert!(used(more, 0) > 900, "{more:?}");
    // The mean round trip in milliseconds and the use of the link over some seconds.
    let between = |from, until| {
        let all = measured("ns3/fig3b.toml", 1, |scenario| {
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
