//! Raw streams without HTTP, through whole runs.

use std::sync::atomic::AtomicBool;

use quipu_base::{Bytes, Duration};
use quipu_lab::batch::{run, run_all, run_session};
use quipu_lab::plan::{Cell, Plan};
use quipu_record::{End, Output, RunRecord};
use quipu_scenario::{HttpVersion, Network, PathSpec, Scenario, Tls, find_network};

const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

/// Raw streams over one link, with `stream` as the only policy.
fn scenario(link: &str, stream: &str) -> Scenario {
    let path: PathSpec = link.parse().unwrap();
    let mut scenario = Scenario {
        http: HttpVersion::Raw.into(),
        networks: vec![Network::from_links(vec![path])],
        runs: 2,
        ..Scenario::default()
    };
    scenario.policies.stream = vec![stream.to_owned()];
    scenario.policies.baselines = false;
    scenario
}

fn set(mut scenario: Scenario, fields: &[(&str, &str)]) -> Scenario {
    for (field, value) in fields {
        scenario = scenario.with_field(field, value).unwrap();
    }
    scenario
}

fn record(scenario: Scenario) -> RunRecord {
    let record = run(&Plan::new(scenario).unwrap(), CELL).unwrap();
    assert_eq!((record.refused, record.overridden), (0, 0));
    record
}

/// Objects in the order in which they were complete.
fn order(record: &RunRecord) -> Vec<u32> {
    let mut objects: Vec<_> =
        record.objects.iter().map(|object| (object.completed_at, object.object)).collect();
    objects.sort_unstable();
    objects.into_iter().map(|(_, object)| object).collect()
}

const FAST: &str = "rate=20mbit,delay=10ms";

#[test]
fn objects_told_one_by_one_arrive_on_their_streams() {
    let objects = ("raw.objects", "30kB+0B+2kB,0B+0B,500kB");
    let streams = ("raw.streams", "100ms,default,1s");
    let record = record(set(scenario(FAST, "pfifo"), &[streams, objects]));
    let streams: Vec<_> =
        record.streams.iter().map(|it| (it.stream, it.objects, it.bytes)).collect();
    assert_eq!(streams, [(0, 3, Bytes(32_000)), (1, 2, Bytes::ZERO), (2, 1, Bytes(500_000))]);
    let latencies: Vec<_> = record.streams.iter().map(|stream| stream.latency).collect();
    let seconds = |millis| Some(Duration::from_millis(millis));
    assert_eq!(latencies, [seconds(100), None, seconds(1_000)]);
    let of: Vec<_> = record.objects.iter().map(|object| object.stream.unwrap()).collect();
    assert_eq!(of, [0, 0, 0, 1, 1, 2]);
    for stream in &record.streams {
        let objects = record.objects.iter().filter(|it| it.stream == Some(stream.stream));
        assert_eq!(objects.map(|it| it.completed_at).max(), Some(stream.completed_at));
        assert!(stream.first_byte_at <= stream.completed_at);
    }
    let last = record.streams.iter().map(|stream| stream.since_page_start).max();
    assert_eq!(last, Some(record.page_time));
    // The handshake, the request, the way there.
    assert!(record.page_time > Duration::from_millis(40 + 200));
}

#[test]
fn policies_order_whole_streams_and_objects_as_they_should() {
    // Six objects of 100 kB, alternating between two streams, a millisecond apart.
    let order_of = |policy: &str, order: &str, gap: &str| {
        let fields = [
            ("raw.objects", "100kB+100kB+100kB,100kB+100kB+100kB"),
            ("raw.streams", "1s,100ms"),
            ("raw.order", order),
            ("raw.gap", gap),
        ];
        self::order(&record(set(scenario(FAST, policy), &fields)))
    };
    assert_eq!(order_of("fifo", "given", "1ms"), [0, 1, 2, 3, 4, 5]);
    assert_eq!(order_of("pfifo", "given", "0ms"), [0, 1, 2, 3, 4, 5]);
    // The second stream may take less time; a little of the first is under way.
    assert_eq!(order_of("edf", "given", "1us")[..3], [3, 4, 5]);
    // What is far apart is due in the order of writing.
    assert_eq!(order_of("edf", "given", "600ms"), [0, 1, 2, 3, 4, 5]);
    // FIFO takes what is written at random at random, PFIFO does not.
    assert_ne!(order_of("fifo", "random", "1us"), [0, 1, 2, 3, 4, 5]);
    let by_stream: Vec<u32> =
        order_of("pfifo", "random", "1us").iter().map(|object| object / 3).collect();
    assert_eq!(by_stream, [0, 0, 0, 1, 1, 1]);
}

#[test]
fn either_end_may_write_over_several_lossy_paths_from_a_ready_connection() {
    for sender in ["server", "client"] {
        let mut scenario = set(
            scenario(FAST, "edf"),
            &[("pages", "framework-youtube"), ("raw.sender", sender), ("start", "paths-ready")],
        );
        scenario.networks = vec![find_network("wifi+lte-lossy").unwrap()];
        let ready = record(scenario.clone());
        let sends = if sender == "client" { End::Client } else { End::Server };
        assert_eq!(ready.sender, sends);
        assert!(ready.sender_total(|path| path.bytes_sent) > Bytes(1_600_000));
        assert!(ready.paths_of(sends).all(|path| path.packets_sent > 20), "{sender}");
        let cold = record(set(scenario, &[("start", "cold")]));
        assert!(ready.page_time + ready.connect_time < cold.page_time + Duration::from_millis(200));
        assert_eq!(ready.objects.len(), 51);
    }
}

#[test]
fn every_stream_policy_and_rustls_carry_raw_streams() {
    let mut scenario = set(scenario(FAST, "all"), &[("pages", "pries:4"), ("runs", "1")]);
    scenario.raw.split.0 = vec![Bytes(12_000)];
    let plan = Plan::new(scenario.clone()).unwrap();
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert_eq!(batch.summary.failures, []);
    let bytes: Vec<Bytes> = batch.finished[0].1.streams.iter().map(|it| it.bytes).collect();
    for (cell, record) in &batch.finished {
        assert_eq!((record.refused, record.overridden), (0, 0), "{}", plan.name_of(*cell));
        assert_eq!(record.streams.iter().map(|it| it.bytes).collect::<Vec<_>>(), bytes);
    }
    scenario.host_jitter = Duration::ZERO;
    let null = record(scenario.clone());
    scenario.transport.tls = Tls::Rustls;
    let real = record(scenario);
    let packets = RunRecord::sender_packets;
    assert_eq!(packets(&null), packets(&real));
}

#[test]
fn runs_of_raw_streams_repeat_to_the_byte_and_have_a_file_of_streams() {
    let fields = [("pages", "pries"), ("raw.order", "random")];
    let mut scenario = set(scenario("rate=5mbit,delay=5ms,loss=1%", "fifo"), &fields);
    scenario.policies.stream.push("pfifo".to_owned());
    let files = |jobs: usize| -> Vec<Vec<u8>> {
        let plan = Plan::new(scenario.clone()).unwrap();
        let batch =
            run_all(&plan, Some(jobs), &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("result");
        let output = Output::prepare(&target, false).unwrap();
        quipu_lab::results::write(output, &plan, &batch.finished, &batch.summary).unwrap();
        let names = ["streams.csv", "objects.csv", "runs.csv", "summary.json"];
        names.iter().map(|name| std::fs::read(target.join(name)).unwrap()).collect()
    };
    let first = files(1);
    assert_eq!(first, files(4));
    let streams = String::from_utf8(first[0].clone()).unwrap();
    assert!(
        streams
            .starts_with("page,network,policy,run,visit,client,stream,latency_ns,objects,bytes,")
    );
    let summary: serde_json::Value = serde_json::from_slice(&first[3]).unwrap();
    assert_eq!(summary["rows"][1]["streams"][0]["runs"], 2);
    assert_eq!(summary["pages"][0]["drawn"]["pages"], 2);
}
