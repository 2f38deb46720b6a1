use quipu_lab::base::Duration;
use quipu_record::ObjectRecord;
use quipu_scenario::Scenario;

use super::*;

/// Two policies on a page over a network, of so many runs.
fn plan(runs: u32) -> Plan {
    let mut scenario = Scenario { runs, ..Scenario::default() };
    scenario.pages = vec!["sitespeed".to_owned()];
    scenario.policies.stream = vec!["rr".to_owned(), "fifo".to_owned()];
    scenario.policies.baselines = false;
    Plan::new(scenario).unwrap()
}

/// Runs whose page takes what `millis` says of policy and run, and whose handshake takes 1 ms.
fn world(plan: &Plan, millis: impl Fn(usize, u32) -> u64) -> Vec<(Cell, RunRecord)> {
    let record = |cell: Cell| RunRecord {
        page_time: Duration::from_millis(millis(cell.policy, cell.run)),
        critical_time: Duration::from_millis(100),
        connect_time: Duration::from_millis(1),
        objects: vec![ObjectRecord::default()],
        ..RunRecord::default()
    };
    plan.cells().map(|cell| (cell, record(cell))).collect()
}

#[test]
fn differences_are_medians_of_pairs_with_the_same_run() {
    let plan = plan(3);
    // Runs differ by far more than worlds.
    let ideal = world(&plan, |_, run| 1_000 * u64::from(run + 1));
    let emulated = world(&plan, |_, run| 1_010 * u64::from(run + 1));
    let costs = world(&plan, |_, run| 1_009 * u64::from(run + 1));
    let agreement = Agreement::new(&plan, &emulated, &[ideal, costs]);
    let page = &agreement.differences[0];
    assert_eq!(
        (page.policy.as_str(), page.metric, page.pairs),
        ("rr + minrtt", Metric::PageTime, 3)
    );
    assert_eq!([page.emulated, page.simulated], [2_020_000_000, 2_000_000_000]);
    assert!((page.difference - 0.01).abs() < 1e-9, "{page:?}");
    assert!(page.interval.is_some_and(|(low, high)| (low - high).abs() < 1e-9));
    assert!((page.difference_with_costs - 1.0 / 1_009.0).abs() < 1e-9, "{page:?}");
    assert!(agreement.is_whole());
}

#[test]
fn a_difference_of_more_than_it_may_be_is_none_that_agrees() {
    let plan = plan(1);
    let ideal = world(&plan, |_, _| 1_000);
    let emulated = world(&plan, |policy, _| if policy == 0 { 1_021 } else { 1_019 });
    let agreement = Agreement::new(&plan, &emulated, &[ideal.clone(), ideal]);
    let pages = agreement.differences.iter().filter(|it| it.metric == Metric::PageTime);
    assert_eq!(pages.map(Difference::agrees).collect::<Vec<_>>(), [false, true]);
    assert!(!agreement.is_whole());
}

#[test]
fn costs_are_taken_apart_and_each_part_has_what_it_adds() {
    let plan = plan(2);
    let at = |millis: u64| world(&plan, move |_, _| millis);
    let simulated = [at(1_000), at(1_010), at(1_002), at(1_003), at(1_001), at(1_004)];
    let agreement = Agreement::new(&plan, &at(1_010), &simulated);
    let causes = &agreement.causes[0];
    assert_eq!([causes.difference, causes.connect], [10_000_000, 0]);
    let added = [causes.timers, causes.waking, causes.batches, causes.datagrams];
    assert_eq!(added, [2_000_000, 3_000_000, 1_000_000, 4_000_000]);
}

#[test]
fn policies_that_the_simulator_separates_have_their_order_in_both_worlds_or_not() {
    let plan = plan(4);
    let ideal = world(&plan, |policy, run| 1_000 + 100 * policy as u64 + u64::from(run));
    let turned = world(&plan, |policy, run| 1_100 - 100 * policy as u64 + u64::from(run));
    for (emulated, agrees) in [(&ideal, true), (&turned, false)] {
        let agreement = Agreement::new(&plan, emulated, &[ideal.clone(), ideal.clone()]);
        let orders = &agreement.orders;
        assert_eq!(orders.len(), 1, "critical times are the same: {orders:?}");
        let order = &orders[0];
        assert_eq!([&order.faster, &order.slower], ["rr + minrtt", "fifo + minrtt"]);
        assert_eq!(order.agrees(), agrees, "{order:?}");
        assert_eq!(order.turns_at, None, "{order:?}");
    }
    let mut simulated = vec![ideal.clone(); 6];
    simulated.extend([ideal, turned.clone()]);
    let agreement = Agreement::new(&plan, &turned, &simulated);
    let order = &agreement.orders[0];
    assert_eq!((order.agrees(), order.turns_at), (false, Some(200_000)), "{order:?}");
    assert!(order.with_costs < 1.0);
}

#[test]
fn parts_of_costs_have_all_of_them_together() {
    let all: HostSpec = "measured:wake=90us,wake_p99=400us".parse().unwrap();
    assert_eq!(Variant::Ideal.of(all), HostSpec::IDEAL);
    assert_eq!(Variant::Whole.of(all), all);
    let mut joined = Variant::Timers.of(all);
    let waking = Variant::Waking.of(all).0;
    let (batches, datagrams) = (Variant::Batches.of(all).0, Variant::Datagrams.of(all).0);
    assert_eq!(joined.0.send_batch, 1);
    joined.0.wake = waking.wake;
    joined.0.wake_p99 = waking.wake_p99;
    joined.0.send_batch = batches.send_batch;
    joined.0.send_batch_cost = batches.send_batch_cost;
    joined.0.receive_batch = batches.receive_batch;
    joined.0.receive_batch_cost = batches.receive_batch_cost;
    joined.0.send_cost = datagrams.send_cost;
    joined.0.receive_cost = datagrams.receive_cost;
    joined.0.socket_buffer = datagrams.socket_buffer;
    joined.0.interface_rate = datagrams.interface_rate;
    assert_eq!(joined, all);
}

#[test]
fn what_does_not_agree_is_looked_for_with_other_times_to_wake() {
    let plan = plan(1);
    let at = |millis: u64| world(&plan, move |_, _| millis);
    let mut simulated: Vec<_> = (0..6).map(|_| at(1_000)).collect();
    simulated.extend([at(1_005), at(1_010), at(1_045), at(1_060)]);
    let agreement = Agreement::new(&plan, &at(1_050), &simulated);
    let page = &agreement.differences[0];
    assert!(!page.agrees() && page.agrees_nearest(), "{page:?}");
    let nearest = page.nearest.unwrap();
    assert_eq!([nearest.wake, nearest.simulated], [300_000, 1_045_000_000]);
    assert_eq!(
        (page.alike, page.loads),
        (2, 6),
        "1,045 and 1,060 ms, of two worlds and four others"
    );
    let agreement = Agreement::new(&plan, &at(1_100), &simulated);
    assert!(!agreement.differences[0].agrees_nearest());
    let all: HostSpec = "measured:wake=250us,wake_p99=400us".parse().unwrap();
    let wakes = |micros| Variant::Wakes(micros).of(all).0;
    assert_eq!(wakes(250), all.0);
    assert_eq!(wakes(100).wake, Duration::from_micros(100));
    assert_eq!(wakes(1_000).wake_p99, Duration::from_micros(1_150));
}
