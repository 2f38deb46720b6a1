//! HTTP/2 over one byte stream beside HTTP/2 over QUIC's streams.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_base::Bytes;
use quipu_lab::batch::{run_all, run_session};
use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_lab::policy::Layer;
use quipu_record::{Metric, MetricSummary, RowSummary, Summary};
use quipu_scenario::{HttpVersion, Network, PathSpec, Scenario};

fn network(name: &str, paths: &[&str]) -> Network {
    let paths: Vec<PathSpec> = paths.iter().map(|fields| fields.parse().unwrap()).collect();
    Network { name: name.to_owned(), ..Network::from_links(paths) }
}

/// Both ways to carry HTTP, the streams in turns.
fn scenario(pages: &[&str], networks: Vec<Network>) -> Scenario {
    let mut scenario = Scenario {
        pages: pages.iter().map(|&page| page.to_owned()).collect(),
        http: "h2,h2-tcp".parse().unwrap(),
        networks,
        ..Scenario::default()
    };
    scenario.policies.stream = vec!["rr".to_owned()];
    scenario.policies.baselines = false;
    scenario
}

fn summary(scenario: Scenario) -> Summary {
    let plan = Plan::new(scenario).unwrap();
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert_eq!(batch.summary.failures, []);
    for row in &batch.summary.rows {
        let at_fault = (row.refused, row.overridden);
        assert_eq!(at_fault, (0, 0), "{} of {} over {}", row.policy, row.page, row.network);
    }
    batch.summary
}

fn metric(row: &RowSummary, metric: Metric) -> MetricSummary {
    row.metrics.iter().find(|summary| summary.metric == metric).unwrap().clone()
}

/// A metric of the byte stream's row, for each page and network.
fn of_byte_stream(summary: &Summary, name: Metric) -> Vec<(String, MetricSummary)> {
    let rows = summary.rows.iter().filter(|row| row.policy.ends_with(" + h2-tcp"));
    rows.map(|row| (format!("{} over {}", row.page, row.network), metric(row, name))).collect()
}

#[test]
fn without_loss_a_page_takes_the_same_time() {
    let pages = ["wikipedia", "ilmessaggero", "framework-youtube"];
    let mut scenario = scenario(&pages, vec![network("clean", &["rate=20mbit,delay=20ms"])]);
    scenario.runs = 3;
    // In turn, packets and frames of 16 kB give another order, on which a page may depend.
    scenario.policies.stream = vec!["fifo".to_owned()];
    let summary = summary(scenario);
    for (what, page) in of_byte_stream(&summary, Metric::PageTime) {
        let ratio = page.ratio.unwrap();
        assert!((0.96..1.04).contains(&ratio), "{what}: {ratio}");
    }
}

/// Head-of-line blocking, as `experiments/ns3/ns3-fig5.toml` has it, and that it is of the
/// loss: without any, objects take about as long.
#[test]
fn with_loss_objects_wait_for_each_other() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/ns3/ns3-fig5.toml");
    let mut scenario = Scenario::load(&file).unwrap();
    scenario.networks.retain(|network| ["loss-0%", "loss-2%"].contains(&network.name.as_str()));
    scenario.pages.retain(|page| page.starts_with("framework-"));
    scenario.policies.stream.truncate(1);
    let summary = summary(scenario);
    let objects = of_byte_stream(&summary, Metric::ObjectIndex);
    assert_eq!(objects.len(), 4);
    for pair in objects.chunks(2) {
        let [(_, clean), (what, lossy)] = pair else { panic!("two networks") };
        let (low, without) = (lossy.ratio_low.unwrap(), clean.ratio_high.unwrap());
        assert!(low > 1.0 && low > without, "{what}: from {low}, {without} without loss");
    }
}

/// Each page for one of the browsers.
#[test]
fn every_page_loads_with_every_order_of_streams() {
    let all: Vec<&str> = quipu_web::pages::builtin().iter().map(|page| page.name).collect();
    for (first, browser) in ["chrome", "firefox", "safari"].into_iter().enumerate() {
        let pages: Vec<&str> = all.iter().copied().skip(first).step_by(3).collect();
        let paths = ["rate=30mbit,delay=10ms,loss=1%", "rate=15mbit,delay=25ms"];
        let mut scenario = scenario(&pages, vec![network("two", &paths)]);
        scenario.http = HttpVersion::H2Tcp.into();
        scenario.browser = browser.to_owned();
        scenario.policies.stream = vec!["all".to_owned()];
        scenario.runs = 1;
        let summary = summary(scenario);
        let orders = Registry::builtin().of(Layer::Stream).count();
        assert_eq!(summary.rows.len(), pages.len() * orders);
    }
}

#[test]
fn both_paths_carry_the_byte_stream() {
    let paths = ["rate=10mbit,delay=10ms", "rate=10mbit,delay=20ms"];
    let mut scenario = scenario(&["framework-youtube"], vec![network("two", &paths)]);
    scenario.http = HttpVersion::H2Tcp.into();
    scenario.runs = 1;
    let summary = summary(scenario);
    let shares = &summary.rows[0].shares;
    assert!(shares.iter().all(|share| share.per_mille > 250), "{shares:?}");
}

#[test]
fn little_credit_and_small_frames_still_load_the_page_but_take_longer() {
    let page_time = |change: fn(&mut Scenario)| {
        let one = network("one", &["rate=20mbit,delay=5ms"]);
        let mut scenario = scenario(&["sitespeed"], vec![one]);
        scenario.http = HttpVersion::H2Tcp.into();
        scenario.runs = 1;
        change(&mut scenario);
        metric(&summary(scenario).rows[0], Metric::PageTime).median
    };
    let usual = page_time(|_| {});
    let little_credit = page_time(|scenario| {
        scenario.transport.stream_credit = Bytes(1 << 10);
        scenario.transport.connection_credit = Bytes(65_535);
    });
    let small_frames = page_time(|scenario| {
        scenario.transport.data_frame = Bytes(1);
        scenario.transport.unsent_limit = Bytes(1);
    });
    assert!(usual < little_credit, "{usual} {little_credit}");
    // Nine octets of header for each octet.
    assert!(5 * usual < small_frames, "{usual} {small_frames}");
}

#[test]
fn credit_that_http_2_cannot_give_is_refused() {
    for (field, value) in [
        ("transport.stream_credit", "2GiB"),
        ("transport.connection_credit", "2GiB"),
        ("transport.connection_credit", "64KiB"),
        ("transport.data_frame", "16385B"),
        ("transport.unsent_limit", "0B"),
    ] {
        let scenario = Scenario { http: "h2,h2-tcp".parse().unwrap(), ..Scenario::default() };
        let checked = scenario.with_field(field, value).unwrap().validate();
        assert_eq!(checked.is_err(), value != "64KiB", "{field} = {value}");
        if let Err(error) = checked {
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }
    let scenario = Scenario::default().with_field("connection_credit", "60KiB").unwrap();
    assert!(scenario.validate().is_ok());
    let scenario = scenario.with_field("http", "h2-tcp").unwrap();
    assert!(scenario.validate().is_err());
}
