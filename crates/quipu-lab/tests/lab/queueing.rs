//! PFIFO against FIFO as in Figure 6 of "Extending the ns-3 QUIC Module" (Paro et al., MSWiM 2020), and
//! EDF beside them: two streams without HTTP, one path of 1 Mb/s and 10 ms of round trip, NewReno.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::batch::{Batch, run_all, run_session};
use quipu_lab::plan::Plan;
use quipu_record::StreamSummary;
use quipu_record::stats::median;
use quipu_scenario::Scenario;

/// All runs of an experiment of this repository, changed by `fields`.
fn batch(experiment: &str, fields: &[(&str, &str)]) -> Batch {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/ns3");
    let mut scenario = Scenario::load(&folder.join(experiment)).unwrap();
    for (field, value) in fields {
        scenario = scenario.with_field(field, value).unwrap();
    }
    let plan = Plan::new(scenario).unwrap();
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert_eq!(batch.summary.failures, []);
    for row in &batch.summary.rows {
        assert_eq!((row.refused, row.overridden), (0, 0), "{}", row.policy);
    }
    batch
}

/// The first and the second stream with `policy` over network `network`.
fn streams<'a>(batch: &'a Batch, policy: &str, network: &str) -> [&'a StreamSummary; 2] {
    let mut rows = batch.summary.rows.iter();
    let row = rows.find(|row| row.policy.starts_with(policy) && row.network == network).unwrap();
    [&row.streams[0], &row.streams[1]]
}

/// The verdict rule of `ns3-fig6.toml`.
fn pfifo_favours_the_first_stream(batch: &Batch) {
    let [fifo, pfifo] = ["fifo", "pfifo"].map(|policy| streams(batch, policy, "ns3-page"));
    for (stream, (fifo, pfifo)) in (1..).zip(fifo.into_iter().zip(pfifo)) {
        println!("stream {stream}: {fifo:?}\n          {pfifo:?}");
    }
    assert!(pfifo[0].median < fifo[0].lower_quartile);
    assert!(pfifo[0].ratio_high.unwrap() < 0.75, "first stream: {:?}", pfifo[0].ratio);
    let [low, high] = [pfifo[1].ratio_low, pfifo[1].ratio_high].map(Option::unwrap);
    assert!(1.0 <= low && high <= 1.25, "second stream: {low} to {high}");
}

#[test]
fn over_100_pages_pfifo_makes_the_first_stream_far_faster_and_the_second_a_little_slower() {
    let batch = batch("ns3-fig6.toml", &[]);
    assert_eq!(batch.finished.len(), 200);
    assert_eq!(streams(&batch, "fifo", "ns3-page")[0].runs, 100);
    pfifo_favours_the_first_stream(&batch);
}

#[test]
fn so_it_does_whichever_end_writes_and_in_whichever_order() {
    for fields in [("raw.order", "random"), ("raw.sender", "client")] {
        pfifo_favours_the_first_stream(&self::batch("ns3-fig6.toml", &[fields, ("runs", "50")]));
    }
}

/// Single objects instead of whole streams, in random order: medians over all objects of 30 pages.
#[test]
fn objects_of_the_first_stream_come_far_sooner_and_those_of_the_second_a_little_later() {
    let fields = [("raw.order", "random"), ("runs", "30"), ("seed", "6")];
    let batch = batch("ns3-fig6.toml", &fields);
    let medians = |policy: usize| {
        [0, 1].map(|stream| {
            let records = batch.finished.iter().filter(|(cell, _)| cell.policy == policy);
            let objects = records.flat_map(|(_, record)| &record.objects);
            let of_stream = objects.filter(|object| object.stream == Some(stream));
            let times: Vec<u64> =
                of_stream.map(|object| object.since_page_start.as_nanos()).collect();
            median(&times).unwrap() as f64 / 1e9
        })
    };
    let (fifo, pfifo) = (medians(0), medians(1));
    println!("medians of the first and second stream: fifo {fifo:.3?} s, pfifo {pfifo:.3?} s");
    let [first, second] = [pfifo[0] / fifo[0], pfifo[1] / fifo[1]];
    assert!((0.05..=0.60).contains(&first), "first stream: {first:.3}");
    assert!((1.0..=1.40).contains(&second), "second stream: {second:.3}");
}

/// The verdict rule of `ns3-edf.toml`.
#[test]
fn deadlines_favour_the_first_stream_less_than_identifiers_do() {
    let batch = batch("ns3-edf.toml", &[]);
    for network in ["ns3-page", "ns3-page-lossy"] {
        let means = |policy| streams(&batch, policy, network).map(|stream| stream.mean as f64);
        let [fifo, pfifo, edf] = ["fifo", "pfifo +", "edf +"].map(means);
        println!("{network}: fifo {fifo:?}, pfifo {pfifo:?}, edf {edf:?}");
        assert!(pfifo[0] * 1.1 < edf[0] && edf[0] * 1.1 < fifo[0], "{network}: first stream");
        for (policy, usual) in [("pfifo:retx_first", pfifo), ("edf:retx_first", edf)] {
            let lost_first = means(policy);
            println!("    {policy}: {lost_first:?}");
            assert!(lost_first[0] > 0.98 * usual[0], "{network}: {policy} gains the first stream");
            assert!((0.97..1.03).contains(&(lost_first[1] / fifo[1])), "{network}: second stream");
        }
    }
}

#[test]
fn a_page_written_at_once_is_in_order_of_deadlines_as_in_order_of_streams() {
    let batch = batch("ns3-edf.toml", &[("runs", "30"), ("raw.gap", "1us")]);
    for network in ["ns3-page", "ns3-page-lossy"] {
        let means = |policy| streams(&batch, policy, network).map(|stream| stream.mean as f64);
        let [pfifo, edf] = ["pfifo +", "edf +"].map(means);
        let ratios = [edf[0] / pfifo[0], edf[1] / pfifo[1]];
        assert!(ratios.iter().all(|ratio| (0.99..1.01).contains(ratio)), "{network}: {ratios:?}");
    }
}

/// The verdict rule of `ns3-tab1.toml`.
#[test]
fn what_sessions_load_has_the_moments_of_the_fitted_laws() {
    let batch = batch("ns3-tab1.toml", &[]);
    assert_eq!(batch.finished.len(), 1_000);
    let drawn = batch.summary.pages[0].drawn.as_ref().unwrap();
    let near = |quantity: usize, mean: f64, tolerance: f64| {
        let found = drawn.quantities[quantity].mean;
        println!("{:?}", drawn.quantities[quantity]);
        assert!((found / mean - 1.0).abs() < tolerance, "{quantity}: {found} is not near {mean}");
    };
    near(0, 31_561.0, 0.10);
    near(1, 1.772, 0.10);
    near(2, 21_091.0, 0.10);
    near(3, 31.93, 0.10);
    // The drawn pages are the loaded ones.
    let objects: usize = batch.finished.iter().map(|(_, record)| record.objects.len()).sum();
    let means = (drawn.quantities[1].mean + drawn.quantities[3].mean) * 1_000.0;
    assert!((objects as f64 - means).abs() < 0.5, "{objects} objects, {means} drawn");
    assert_eq!((drawn.quantities[4].count, batch.summary.rows[0].runs), (500, 500));
}
