use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};

use super::*;
use crate::reproduce::chance::by_chance;
use crate::reproduce::select::{OfSeries, of_series};
use crate::reproduce::{Effort, Job, Origin};
use quipu_lab::plan::Cell;
use quipu_lab::policies::Registry;
use quipu_record::{
    Bounds, Direction, End, FlowRecord, LinkRecord, MetricSummary, ObjectRecord, PathRecord,
    Provenance, RunRecord, SeriesRow, StreamRecord, TrafficRecord,
};
use quipu_scenario::experiment::cases;

const HEAD: &str = r#"
pages = ["framework-google"]
networks = ["wifi+lte", "framework-medium"]
runs = 6
series = "10ms"
time_limit = "20s"

[policies]
stream = ["rr", "wrr", "dwrr"]
path = ["minrtt"]
baselines = false

[[flows]]
name = "first"

[[flows]]
name = "second"

[experiment]
id = "synthetic"
paper = "quipu"
title = "made up"

[[experiment.variants]]
name = "other"
set = { runs = 6 }
"#;

/// Page times in milliseconds by unit, network, policy and run.
type Times = fn(usize, usize, usize, u32) -> u64;

fn job(rules: &str) -> Job {
    let text = format!("{HEAD}\n{rules}");
    let case = cases(&text, "synthetic.toml").unwrap().remove(0);
    Job::new(case, &Origin::Builtin, Effort::WHOLE, &Registry::builtin(), &Arc::default(), None)
        .unwrap()
}

fn record(millis: u64) -> RunRecord {
    let time = Duration::from_millis(millis);
    let objects = (0..15).map(|object| ObjectRecord {
        object,
        body: Bytes(1_000),
        held: true,
        stream: Some(object % 2),
        requested_at: Instant::ZERO,
        first_byte_at: Instant::ZERO,
        completed_at: Instant::ZERO + time,
        since_page_start: Duration::from_millis(millis + u64::from(object)),
        since_request: time,
        ..ObjectRecord::default()
    });
    let path = |path, sent| PathRecord {
        connection: 0,
        end: End::Server,
        path,
        packets_sent: 10,
        datagrams_received: 0,
        bytes_sent: Bytes(sent),
        bytes_resent: Bytes(7),
        bytes_copies: Bytes::ZERO,
        packets_lost: 4,
        bytes_lost: Bytes::ZERO,
        loss_detection: Duration::from_millis(90),
        bytes_spurious: Bytes::ZERO,
    };
    let flow = |flow, bytes| FlowRecord {
        flow,
        started_at: Instant::ZERO,
        ended_at: None,
        lived: Duration::from_secs(1),
        bytes: Bytes(bytes),
        rtt_mean: Some(time),
        rtt_p95: None,
        packets_sent: 100,
        packets_lost: 2,
        bytes_lost: Bytes::ZERO,
        paths: Vec::new(),
    };
    let link = |path, direction| LinkRecord {
        path,
        direction,
        delivered: Bytes(90),
        capacity: Bytes(100),
        dropped: 0,
    };
    RunRecord {
        page_time: time,
        page_bound: Bounds { fluid: Duration::ZERO, tight: Duration::from_millis(millis / 2) },
        objects: objects.collect(),
        paths: vec![path(0, 3_000), path(1, 1_000)],
        streams: vec![StreamRecord {
            stream: 1,
            since_page_start: time,
            ..StreamRecord::default()
        }],
        path_switches: 4,
        traffic: TrafficRecord {
            flows: vec![flow(0, 125_000), flow(1, 375_000)],
            links: vec![link(0, Direction::Down), link(0, Direction::Up)],
            ..TrafficRecord::default()
        },
        ..RunRecord::default()
    }
}

/// The verdicts of `rules` over made-up runs.
fn judged(rules: &str, times: Times) -> Vec<RuleVerdict> {
    with_runs(rules, times, |rules, units, runs| {
        rules.iter().map(|rule| judge(rule, units, runs)).collect()
    })
}

/// What `of` makes of these rules, their units and the runs of these.
fn with_runs<T>(rules: &str, times: Times, of: fn(&[Rule], &[Unit], &[Runs<'_>]) -> T) -> T {
    let job = job(rules);
    let finished: Vec<Vec<(Cell, RunRecord)>> = (0..)
        .zip(&job.units)
        .map(|(unit, it)| {
            let cells = it.plan.cells();
            cells
                .map(|cell| (cell, record(times(unit, cell.network, cell.policy, cell.run))))
                .collect()
        })
        .collect();
    let series: Vec<BTreeMap<Cell, OfSeries<'_>>> = job
        .units
        .iter()
        .map(|unit| {
            let of = |cell| (cell, of_series(&unit.plan, cell, &rows(), &job.series));
            unit.plan.cells().map(of).collect()
        })
        .collect();
    let runs: Vec<Runs<'_>> = job
        .units
        .iter()
        .zip(finished.iter().zip(&series))
        .map(|(unit, (finished, series))| Runs { plan: &unit.plan, finished, series, dealt: None })
        .collect();
    of(&job.case.experiment.rules, &job.units, &runs)
}

fn rule(body: &str) -> String {
    format!("[[experiment.rules]]\nname = \"it\"\nclaim = \"something\"\n{body}\n")
}

/// The verdict of a rule with this body.
#[track_caller]
fn verdict(body: &str, times: Times) -> Verdict {
    let found = judged(&rule(body), times).remove(0);
    println!("{}: {} ({}) {}", found.rule, found.here, found.interval, found.verdict);
    found.verdict
}

/// The second policy has 80 to 90 % of the first one's time, the third one 70 to 140 %; the second
/// network takes twice as long, the variant three times.
fn usual(unit: usize, network: usize, policy: usize, run: u32) -> u64 {
    let factor = match policy {
        0 => 100,
        1 => 80 + 2 * u64::from(run),
        _ => 70 + 14 * u64::from(run),
    };
    let slower = [1, 3][unit] * [1, 2][network];
    (100 + u64::from(run)) * factor * slower
}

#[test]
fn a_ratio_holds_fails_or_straddles() {
    let body = |threshold: &str, of: &str| {
        format!(
            "metric = \"page\"\nof = \"{of} + minrtt\"\nto = \"rr + minrtt\"\nratio = \"{threshold}\""
        )
    };
    assert_eq!(verdict(&body("< 0.95", "wrr"), usual), Verdict::Holds);
    assert_eq!(verdict(&body("> 1", "wrr"), usual), Verdict::Fails);
    assert_eq!(verdict(&body("< 0.85", "wrr"), usual), Verdict::Unclear);
    assert_eq!(verdict(&body("< 1", "dwrr"), usual), Verdict::Unclear);
    assert_eq!(verdict(&body("0.5..2", "dwrr"), usual), Verdict::Holds);
}

#[test]
fn where_says_in_how_many_places() {
    // Only over the second network the second policy is slower.
    let times: Times = |_, network, policy, run| {
        1_000 + u64::from(run) + if policy == 1 { [0, 500][network] } else { 100 }
    };
    let body = |places: &str| {
        format!(
            "metric = \"page\"\nof = \"wrr + minrtt\"\nto = \"rr + minrtt\"\nratio = \"< 1\"\nwhere = \"{places}\""
        )
    };
    assert_eq!(verdict(&body("all"), times), Verdict::Fails);
    assert_eq!(verdict(&body("any"), times), Verdict::Holds);
    let here = format!("{}\nnetworks = [\"framework-medium\"]", body("any"));
    assert_eq!(verdict(&here, times), Verdict::Fails);
}

#[test]
fn networks_variants_and_steps_are_compared() {
    let growth = "metric = \"page\"\nof = { network = \"framework-medium\" }\nto = { network = \"wifi+lte\" }\nratio = \"1.99..2.01\"";
    assert_eq!(verdict(growth, usual), Verdict::Holds);
    let steps = "metric = \"page\"\nsteps = [{ network = \"wifi+lte\" }, { network = \"framework-medium\" }]\nratio = \"> 1.99\"";
    let found = judged(&rule(steps), usual).remove(0);
    assert_eq!((found.verdict, found.findings.len()), (Verdict::Holds, 3));
    assert_eq!(
        found.findings[0].place,
        "framework-google, rr + minrtt: framework-medium to wifi+lte"
    );
    let variant = "metric = \"page\"\nof = { variant = \"other\", policy = \"rr + minrtt\" }\nto = { variant = \"main\" }\nratio = \"2.99..3.01\"";
    assert_eq!(verdict(variant, usual), Verdict::Holds);
}

#[test]
fn one_is_compared_with_a_list_or_with_all_others() {
    let best = |to: &str| {
        format!("metric = \"page\"\nof = \"wrr + minrtt\"\nto = {to}\nratio = \"<= 0.9\"")
    };
    assert_eq!(verdict(&best("[\"rr + minrtt\"]"), usual), Verdict::Holds);
    assert_eq!(verdict(&best("[\"rr + minrtt\", \"dwrr + minrtt\"]"), usual), Verdict::Unclear);
    let found = judged(&rule(&best("\"others\"")), usual).remove(0);
    assert_eq!((found.verdict, found.findings.len()), (Verdict::Unclear, 4));
    let pairs = "metric = \"page\"\npolicies = [\"rr + minrtt\", \"wrr + minrtt\"]\nto = \"others\"\nwithin = 0.3";
    assert_eq!(judged(&rule(pairs), usual).remove(0).findings.len(), 4);
}

#[test]
fn differences_and_values_have_units() {
    let difference = |threshold: &str| {
        format!(
            "metric = \"page\"\nnetworks = [\"wifi+lte\"]\nof = \"wrr + minrtt\"\nto = \"rr + minrtt\"\ndifference = \"{threshold}\""
        )
    };
    assert_eq!(verdict(&difference("−2.5s..−1s"), usual), Verdict::Holds);
    assert_eq!(verdict(&difference("> 0ms"), usual), Verdict::Fails);
    assert_eq!(verdict(&difference("< −1.6s"), usual), Verdict::Unclear);
    let value = |threshold: &str, over: &str| {
        format!(
            "metric = \"page\"\nnetworks = [\"wifi+lte\"]\nof = \"rr + minrtt\"\nvalue = \"{threshold}\"\nover = \"{over}\""
        )
    };
    assert_eq!(verdict(&value("10s..10.5s", "median"), usual), Verdict::Holds);
    assert_eq!(verdict(&value("= 10.5s", "max"), usual), Verdict::Unclear);
    assert_eq!(verdict(&value("> 11s", "p95"), usual), Verdict::Fails);
}

#[test]
fn a_gain_is_compared_with_the_gain_elsewhere() {
    // 0.5 over the first network, 0.8 over the second.
    let times: Times = |_, network, policy, run| {
        (1_000 + u64::from(run)) * if policy == 1 { [50, 80][network] } else { 100 }
    };
    let body = |threshold: &str| {
        format!(
            "metric = \"page\"\nof = {{ policy = \"wrr + minrtt\", network = \"framework-medium\" }}\nto = {{ policy = \"rr + minrtt\" }}\nbeside = {{ network = \"wifi+lte\" }}\nratio = \"{threshold}\""
        )
    };
    assert_eq!(verdict(&body("1.59..1.61"), times), Verdict::Holds);
    assert_eq!(verdict(&body("< 1"), times), Verdict::Fails);
}

#[test]
fn objects_streams_paths_flows_and_links_are_chosen() {
    let holds = |metric: &str, threshold: &str| {
        let body = format!(
            "metric = {metric}\nnetworks = [\"wifi+lte\"]\nof = \"rr + minrtt\"\nvalue = \"{threshold}\"\nover = \"min\""
        );
        assert_eq!(verdict(&body, |_, _, _, _| 100), Verdict::Holds, "{metric}");
    };
    holds("{ name = \"object\", index = 3 }", "= 103ms");
    holds("{ name = \"object\", stat = \"max\" }", "= 114ms");
    holds("{ name = \"object\", stat = \"p50\" }", "= 107ms");
    holds("{ name = \"object\", stream = 1, stat = \"min\" }", "= 101ms");
    holds("{ name = \"object\", stat = \"count\" }", "= 15");
    holds("{ name = \"stream\", stream = 1 }", "= 100ms");
    holds("{ name = \"share\", path = \"wifi\" }", "= 75%");
    holds("{ name = \"share\", path = 1 }", "= 0.25");
    holds("\"page-over-bound\"", "= 2");
    holds("\"stability\"", "= 5");
    holds("\"resent\"", "= 14B");
    holds("{ name = \"goodput\", flow = \"first\" }", "= 1mbit");
    holds("{ name = \"loss-detection\", path = \"lte\" }", "= 22.5ms");
    // All policies' objects end in the order of their numbers.
    holds("{ name = \"order\", against = \"wrr + minrtt\" }", "= 1");
    holds("{ name = \"flow-share\", flow = 1 }", "= 75%");
    holds("{ name = \"rtt-mean\", flow = 0 }", "= 100ms");
    holds("{ name = \"lost\", flow = 0 }", "= 2%");
    holds("{ name = \"utilisation\", path = 0, direction = \"up\" }", "= 90%");
    holds("\"fairness\"", "0.79..0.81");
}

#[test]
fn objects_of_all_runs_are_pooled() {
    let body = |of: &str, threshold: &str| {
        format!(
            "metric = {{ name = \"object\", pooled = true, stat = \"p95\" }}\nnetworks = [\"wifi+lte\"]\n{of}ratio = \"{threshold}\""
        )
    };
    let sides = "of = \"wrr + minrtt\"\nto = \"rr + minrtt\"\n";
    assert_eq!(verdict(&body(sides, "0.8..0.95"), usual), Verdict::Holds);
    assert_eq!(verdict(&body(sides, "> 1"), usual), Verdict::Fails);
}

#[test]
fn distances_to_the_bound_are_those_of_rows_that_have_one() {
    let metric = |metric, bound, over_bound| MetricSummary {
        metric,
        median: 300,
        p95: 310,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        fluid_bound: None,
        bound,
        over_bound,
    };
    let row = |policy: &str, metrics| RowSummary {
        page: "framework-google".to_owned(),
        network: "wifi+lte".to_owned(),
        policy: policy.to_owned(),
        choice: String::new(),
        alone: None,
        runs: 6,
        metrics,
        shares: Vec::new(),
        streams: Vec::new(),
        fairness: None,
        refused: 0,
        overridden: 0,
    };
    let page = metric(Metric::PageTime, Some(200), Some(1.5));
    let critical = metric(Metric::CriticalTime, Some(150), Some(2.0));
    let without = metric(Metric::PageTime, None, None);
    let summary = Summary {
        provenance: Provenance::default(),
        world: "simulated",
        seed: 1,
        complete: true,
        runs_planned: 18,
        runs_finished: 18,
        failures: Vec::new(),
        pages: Vec::new(),
        rows: vec![
            row("rr", vec![page.clone(), critical]),
            row("wrr", vec![without]),
            row("dwrr", vec![page]),
        ],
        sharing: Vec::new(),
        identical: Vec::new(),
        faster_alone: Vec::new(),
        computing_range: None,
    };
    let found: Vec<_> = bounds(&summary)
        .into_iter()
        .map(|row| (row.policy, row.page_bound_ns, row.page_over_bound, row.critical_over_bound))
        .collect();
    let expected = [("rr".to_owned(), 200, 1.5, Some(2.0)), ("dwrr".to_owned(), 200, 1.5, None)];
    assert_eq!(found, expected);
}

#[test]
fn what_is_not_there_is_an_error_and_no_pass() {
    for metric in [
        "{ name = \"object\", index = 99 }",
        "{ name = \"object\", kind = \"media\" }",
        "{ name = \"object\", url = \"ftp:*\" }",
        "{ name = \"stream\", stream = 7 }",
        "{ name = \"share\", path = \"dsl\" }",
        "{ name = \"loss-detection\", path = \"third\" }",
        "{ name = \"goodput\", flow = \"third\" }",
        "{ name = \"rtt-p95\", flow = \"first\" }",
        "{ name = \"utilisation\", path = 1 }",
        "{ name = \"state\", state = \"never seen\" }",
        "{ name = \"drawn\", column = \"mains\" }",
        "\"critical-over-bound\"",
    ] {
        for (test, extra) in [("value", "> 0"), ("value", "<= 0")] {
            let unit = if metric.contains("object")
                || metric.contains("stream")
                || metric.contains("rtt")
                || metric.contains("state")
                || metric.contains("loss-detection")
            {
                "s"
            } else if metric.contains("goodput") {
                "bit"
            } else {
                ""
            };
            let body = format!("metric = {metric}\n{test} = \"{extra}{unit}\"");
            let found = judged(&rule(&body), usual).remove(0);
            assert_eq!(found.verdict, Verdict::Error, "{metric}");
            assert!(found.findings.iter().all(|finding| finding.problem.is_some()), "{metric}");
            assert!(!found.is_as_expected(false) && !found.is_as_expected(true));
        }
    }
}

#[test]
fn runs_that_failed_are_not_there() {
    let job = job(&rule(
        "metric = \"page\"\nof = \"wrr + minrtt\"\nto = \"rr + minrtt\"\nratio = \"< 1\"",
    ));
    let series = BTreeMap::new();
    let runs: Vec<Runs<'_>> = job
        .units
        .iter()
        .map(|unit| Runs { plan: &unit.plan, finished: &[], series: &series, dealt: None })
        .collect();
    let found = judge(&job.case.experiment.rules[0], &job.units, &runs);
    assert_eq!(found.verdict, Verdict::Error);
    let problem = found.findings[0].problem.as_deref();
    assert_eq!(
        problem,
        Some("no run of framework-google over wifi+lte with wrr + minrtt has page")
    );
}

#[test]
fn only_a_firm_rule_with_all_runs_must_not_be_unclear() {
    let body = "metric = \"page\"\nof = \"dwrr + minrtt\"\nto = \"rr + minrtt\"\nratio = \"< 1\"";
    let found = judged(&rule(body), usual).remove(0);
    assert_eq!(found.verdict, Verdict::Unclear);
    assert!(found.is_as_expected(false) && found.is_as_expected(true));
    let firm = format!("kind = \"firm\"\n{body}");
    let found = judged(&rule(&firm), usual).remove(0);
    assert!(!found.is_as_expected(false) && found.is_as_expected(true));
    let opposite = body.replace("< 1", "> 3");
    let found = judged(&rule(&opposite), usual).remove(0);
    assert!(!found.is_as_expected(false) && !found.is_as_expected(true));
}

/// A second of samples every 10 ms: two flows, the first with a state that comes and goes.
fn rows() -> Vec<SeriesRow> {
    let flows: [Arc<str>; 2] = ["first".into(), "second".into()];
    let mut rows = Vec::new();
    for sample in 0..100_u64 {
        let at = Instant::from_nanos(sample * 10_000_000);
        for (index, flow) in (1..).zip(&flows) {
            let acked = Bytes(sample * 1_000 * index);
            let probing = sample % 40 >= 30;
            rows.push(SeriesRow {
                path: Some(0),
                state: Some(if probing { "probe rtt" } else { "probe bandwidth" }),
                cwnd: Bytes(10_000 + sample),
                srtt: Some(Duration::from_millis(if probing { 100 } else { 200 })),
                min_rtt: Some(Duration::from_millis(100)),
                bytes_acked: acked,
                ..SeriesRow::new(at, Arc::clone(flow), End::Server)
            });
            rows.push(SeriesRow {
                bytes_acked: acked,
                ..SeriesRow::new(at, Arc::clone(flow), End::Server)
            });
        }
    }
    rows
}

#[test]
fn samples_are_chosen_by_time_and_state() {
    let holds = |metric: &str, threshold: &str| {
        let body = format!(
            "metric = {metric}\nnetworks = [\"wifi+lte\"]\nvalue = \"{threshold}\"\nover = \"max\""
        );
        assert_eq!(verdict(&body, |_, _, _, _| 100), Verdict::Holds, "{metric}");
    };
    let series = |rest: &str| format!("{{ name = \"series\", flow = \"first\", {rest} }}");
    holds(&series("column = \"srtt/min_rtt\""), "= 2");
    holds(&series("column = \"srtt/min_rtt\", state = \"probe rtt\""), "= 1");
    holds(
        &series("column = \"srtt\", stat = \"mean\", from = \"0.3s\", until = \"0.4s\""),
        "= 100ms",
    );
    holds(&series("column = \"cwnd\", path = 0, stat = \"last\""), "= 10099B");
    holds(&series("column = \"cwnd\", path = \"wifi\", stat = \"first\""), "= 10000B");
    // 1,000 B every 10 ms.
    holds(
        &series("column = \"bytes_acked\", stat = \"rate\", from = \"0.5s\""),
        "0.79mbit..0.81mbit",
    );
    holds(&series("column = \"bytes_acked\", stat = \"part\""), "0.333..0.334");
    let state = |stat: &str| {
        format!(
            "{{ name = \"state\", flow = \"second\", state = \"probe rtt\", stat = \"{stat}\" }}"
        )
    };
    holds(&state("first"), "= 300ms");
    holds(&state("count"), "= 2");
    holds(&state("period"), "= 400ms");
    holds(&state("length"), "= 100ms");
    holds(&state("part"), "= 20%");
}

#[test]
fn a_rule_about_policies_does_not_hold_by_chance_and_one_about_all_of_them_does() {
    let rules = [
        "metric = \"page\"\nof = \"wrr + minrtt\"\nto = \"rr + minrtt\"\nratio = \"< 1\"",
        "metric = \"page\"\nvalue = \"> 1ms\"",
        "metric = \"page\"\nof = { network = \"framework-medium\" }\nto = { network = \"wifi+lte\" }\nratio = \"> 1.2\"",
    ];
    let text: String = (0..)
        .zip(rules)
        .map(|(index, body)| rule(body).replace("\"it\"", &format!("\"it {index}\"")))
        .collect();
    let truth = judged(&text, usual);
    assert!(truth.iter().take(2).all(|rule| rule.verdict == Verdict::Holds), "{truth:#?}");
    let deals = 40;
    let found = with_runs(&text, usual, |rules, units, runs| by_chance(rules, units, runs, 40));
    assert!(found.iter().all(|found| found.deals == deals));
    assert!(!found[0].survives(), "{found:?}");
    assert_eq!(found[1].held, deals);
    assert!(found[2].survives(), "{found:?}");
    let again = with_runs(&text, usual, |rules, units, runs| by_chance(rules, units, runs, 40));
    assert_eq!(again, found);
}

#[test]
fn a_verdict_says_in_words_what_is_compared_and_what_came_out() {
    let body = "metric = \"page\"\nof = \"wrr + minrtt\"\nto = \"rr + minrtt\"\n\
                networks = [\"wifi+lte\"]\nratio = \"< 1\"\nwhere = \"any\"";
    let found = judged(&rule(body), |_, _, policy, _| [100, 80, 70][policy]).remove(0);
    assert_eq!(
        found.rule,
        "page: ratio wrr + minrtt to rr + minrtt: < 1; networks wifi+lte; in one place at least"
    );
    assert_eq!((found.here.as_str(), found.interval.as_str()), ("0.800", "0.800"));
    let place = "framework-google, wifi+lte: wrr + minrtt to rr + minrtt";
    assert_eq!(found.findings[0].place, place);

    let body = "metric = \"page\"\nof = \"wrr + minrtt\"\nto = \"rr + minrtt\"\nratio = \"< 1\"";
    let times: Times = |_, network, policy, _| [[100, 80, 70], [100, 90, 70]][network][policy];
    let found = judged(&rule(body), times).remove(0);
    assert_eq!(found.rule, "page: ratio wrr + minrtt to rr + minrtt: < 1");
    assert_eq!(found.here, "0.800 to 0.900");

    let body =
        body.replace("\"wrr + minrtt\"", "{ variant = \"other\", policy = \"wrr + minrtt\" }");
    let found = judged(&rule(&body), times).remove(0);
    assert_eq!(found.findings[0].place, format!("other, {place}"));
}
