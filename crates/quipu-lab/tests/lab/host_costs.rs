//! Hosts that cost something, through whole runs.

use std::sync::atomic::AtomicBool;

use quipu_base::{Bytes, Duration, Rate};
use quipu_lab::batch::{run, run_all, run_session};
use quipu_lab::plan::{Cell, Plan};
use quipu_record::{End, Output, RunRecord};
use quipu_scenario::Scenario;

const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

/// 2 MB in one stream over a link of 200 Mbit/s and 10 ms, that the server writes once all is ready; or
/// what `host` and `link` change of that.
fn bulk(host: &str, link: &str) -> RunRecord {
    let text = format!(
        r#"
        http = "raw"
        runs = 1
        host_jitter = "0ms"
        host = {host}
        [raw]
        objects = ["2MB"]
        [transport]
        start = "paths-ready"
        [policies]
        stream = ["rr"]
        path = ["minrtt"]
        baselines = false
        [[networks]]
        name = "n"
        paths = [{{ name = "p", down = {{ {link} }} }}]
        "#
    );
    let record = run(&Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap(), CELL);
    let record = record.unwrap();
    assert_eq!((record.refused, record.overridden), (0, 0));
    record
}

const FAST: &str = "rate = \"200mbit\", delay = \"10ms\", queue = \"unlimited\"";
const COST: Duration = Duration::from_micros(200);

/// What the paths of an end count, those of the handshake included.
fn datagrams(record: &RunRecord, of: fn(&quipu_record::PathRecord) -> u64, end: End) -> u64 {
    record.paths_of(end).map(of).sum()
}

/// As many packets of 1,350 B carry 2 MB at least.
fn least_packets() -> u64 {
    2_000_000 / 1_350
}

#[test]
fn a_bulk_transfer_takes_what_its_datagrams_cost_to_send() {
    let ideal = bulk("\"ideal\"", FAST);
    let costly = bulk("{ server = \"send_cost=200us\" }", FAST);
    let packets = datagrams(&costly, |path| path.packets_sent, End::Server);
    // Nothing leaves sooner than those before it have been sent.
    assert!(costly.page_time >= COST.saturating_mul(least_packets()), "{:?}", costly.page_time);
    // And nothing waits for more than all of them, beyond what the transfer takes anyway.
    let most = ideal.page_time + COST.saturating_mul(packets);
    assert!(costly.page_time <= most, "{:?}, at most {most:?}", costly.page_time);
    assert!(packets < 2 * least_packets(), "{packets}");
    assert!(ideal.page_time < COST.saturating_mul(least_packets()), "{:?}", ideal.page_time);
}

#[test]
fn a_bulk_transfer_takes_what_its_datagrams_cost_to_receive() {
    let ideal = bulk("\"ideal\"", FAST);
    let costly = bulk("{ client = \"receive_batch=16,receive_cost=200us\" }", FAST);
    let packets = datagrams(&costly, |path| path.datagrams_received, End::Client);
    assert!(costly.page_time >= COST.saturating_mul(least_packets()), "{:?}", costly.page_time);
    let most = ideal.page_time + COST.saturating_mul(packets);
    assert!(costly.page_time <= most, "{:?}, at most {most:?}", costly.page_time);
}

#[test]
fn what_comes_in_a_batch_is_acknowledged_less_often() {
    let acknowledged = |host: &str| {
        let record = bulk(host, FAST);
        datagrams(&record, |path| path.packets_sent, End::Client)
    };
    let one = acknowledged("{ client = \"receive_batch=1,receive_cost=200us\" }");
    let batches = acknowledged("{ client = \"receive_batch=16,receive_cost=200us\" }");
    // Every second packet is acknowledged, but a batch only once; batches are full while the client is the
    // bottleneck, which it is after the first round trips.
    assert!(one >= least_packets() / 2, "{one}");
    assert!(batches * 4 < one, "{batches} instead of {one}");
}

#[test]
fn batches_share_what_a_call_of_the_kernel_costs() {
    let time = |batch: u32| {
        let host = format!("{{ server = \"send_batch={batch},send_batch_cost=200us\" }}");
        bulk(&host, FAST).page_time
    };
    // What one in each batch cannot be faster than, ten can.
    let alone = COST.saturating_mul(least_packets());
    assert!(time(1) >= alone && time(10) < alone, "{:?} and {:?}", time(1), time(10));
    assert!(time(10) >= alone.divided_by(10), "{:?}", time(10));
}

#[test]
fn a_full_socket_holds_a_sender_back_before_the_link_drops_anything() {
    // The link holds 20 packets; slow start sends more than that at once.
    let link = "rate = \"5mbit\", delay = \"20ms\", queue = \"20p\"";
    let lost = |record: &RunRecord| datagrams(record, |path| path.packets_lost, End::Server);
    let ideal = bulk("\"ideal\"", link);
    assert!(lost(&ideal) > 0);
    // An interface as fast as the link leaves no queue there.
    let full = bulk("{ server = \"socket_buffer=16KiB,interface_rate=5mbit\" }", link);
    assert_eq!(lost(&full), 0);
    // All of it and its headers at 5 Mbit/s, and one way.
    let least = Rate::from_mbit_per_sec(5).time_for(Bytes(2_000_000));
    assert!(full.page_time >= least + Duration::from_millis(20), "{:?}", full.page_time);
    // 28 B of headers, 60 B of QUIC's at most, the request's way, and slow start: ten packets, doubled with each
    // round trip of 40 ms, reach the 50 kB of bandwidth and queue within three.
    let most = least.scaled(1_350 + 28 + 60, 1_350) + Duration::from_millis(20 + 5 * 40);
    assert!(full.page_time <= most, "{:?}, at most {most:?}", full.page_time);
}

#[test]
fn flows_have_hosts_too() {
    let goodput = |host: &str| {
        let text = format!(
            "pages = []\nduration = \"2s\"\nhost = {host}\n[[flows]]\nname = \"f\"\n\
             [[networks]]\nname = \"n\"\npaths = [{{ name = \"p\", down = {{ {FAST} }} }}]"
        );
        let plan = Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap();
        run(&plan, CELL).unwrap().traffic.flows[0].goodput().bits_per_sec()
    };
    // 5,000 packets per second of 1,350 B.
    let limit = 5_000 * 1_350 * 8;
    assert!(goodput("\"ideal\"") > 2 * limit);
    let costly = goodput("{ server = \"send_cost=200us\" }");
    assert!(costly <= limit && costly > limit / 2, "{costly}");
}

#[test]
fn runs_on_measured_hosts_repeat_to_the_byte_and_say_what_their_hosts_cost() {
    let files = |host: &str, jobs: usize| {
        let text = format!(
            "host = \"{host}\"\npages = [\"pries:4\"]\nruns = 3\nnetworks = [\"wifi+lte-lossy\"]\n\
             [policies]\nstream = [\"rr\"]\npath = [\"minrtt\", \"ecf\"]\n"
        );
        let plan = Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap();
        let batch =
            run_all(&plan, Some(jobs), &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
        assert_eq!(batch.summary.failures, []);
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("result");
        let output = Output::prepare(&target, false).unwrap();
        quipu_lab::results::write(output, &plan, &batch.finished, &batch.summary).unwrap();
        let names = ["scenario.toml", "runs.csv", "objects.csv", "paths.csv"];
        names.map(|name| std::fs::read_to_string(target.join(name)).unwrap())
    };
    let measured = files("measured", 1);
    assert_eq!(measured, files("measured", 2));
    let line = measured[0].lines().find(|line| line.starts_with("host = ")).unwrap();
    assert!(line.contains("send_batch=64,") && line.contains("receive_cost="), "{line}");
    assert_ne!(measured[1], files("ideal", 1)[1]);
}
