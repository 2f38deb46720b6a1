//! What must hold between whole runs, whatever the numbers are.

use quipu_base::{Bytes, Duration};
use quipu_lab::batch::run;
use quipu_lab::plan::{Cell, Plan};
use quipu_record::{End, RunRecord};
use quipu_scenario::{Discovery, Network, PathSpec, Scenario, Tls};

fn path(fields: &str) -> PathSpec {
    fields.parse().unwrap()
}

/// Runs each stream policy once on one path.
fn records(
    page: &str,
    browser: &str,
    link: &str,
    streams: &[&str],
    change: impl FnOnce(&mut Scenario),
) -> Vec<RunRecord> {
    let mut scenario = Scenario {
        pages: vec![page.to_owned()],
        browser: browser.to_owned(),
        runs: 1,
        networks: vec![Network::from_links(vec![path(link)])],
        ..Scenario::default()
    };
    scenario.policies.stream = streams.iter().map(|&name| name.to_owned()).collect();
    scenario.policies.path = vec!["minrtt".to_owned()];
    scenario.policies.baselines = false;
    change(&mut scenario);
    let plan = Plan::new(scenario).unwrap();
    (0..streams.len())
        .map(|policy| run(&plan, Cell { page: 0, network: 0, policy, run: 0 }).unwrap())
        .collect()
}

/// Objects in the order in which they were complete.
fn order(record: &RunRecord) -> Vec<u32> {
    let mut objects: Vec<_> =
        record.objects.iter().map(|object| (object.completed_at, object.object)).collect();
    objects.sort_unstable();
    objects.into_iter().map(|(_, object)| object).collect()
}

/// A work-conserving sender cannot change when the last object ends (schedulers.md, 7.1).
#[test]
fn page_time_is_the_same_for_every_stream_policy_where_nothing_is_lost() {
    let streams = [
        "rr",
        "fifo",
        "wrr",
        "wrr:mode=quantum",
        "swrr",
        "dwrr",
        "dwrr:mode=code",
        "pfifo",
        "edf",
        "rfc9218",
        "strict",
        "srpt",
        "sjf",
        "fsp",
    ];
    for browser in ["chrome", "firefox", "safari"] {
        let link = "rate=20mbit,delay=10ms,queue=unlimited";
        let records = records("framework-youtube", browser, link, &streams, |scenario| {
            scenario.discovery = Discovery::AllAtOnce;
        });
        let times: Vec<f64> =
            records.iter().map(|record| record.page_time.as_nanos() as f64).collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        println!("{browser}: page time {:.1} to {:.1} ms", least / 1e6, most / 1e6);
        assert!(most / least <= 1.02, "{browser}: {times:?}");
        assert_eq!(records[0].sender_total(|path| path.bytes_lost), Bytes::ZERO);
        let orders: Vec<_> = records.iter().map(order).collect();
        assert_ne!(orders[0], orders[2], "{browser}: the tree changes the order of objects");
    }
}

/// The tree of Safari gives the document most of the rate, whatever is asked for beside it.
#[test]
fn the_tree_decides_the_order_of_objects() {
    let link = "rate=20mbit,delay=10ms,queue=unlimited";
    let records = records("framework-youtube", "chrome", link, &["rr", "wrr"], |scenario| {
        scenario.discovery = Discovery::AllAtOnce;
    });
    let rank = |record: &RunRecord, object| order(record).iter().position(|&o| o == object);
    // Under Chrome's chain the document, at its head, is the first to end of what is large.
    assert!(rank(&records[1], 0) < rank(&records[0], 0));
}

#[test]
fn rustls_and_null_tls_give_the_same_packets_and_page_time() {
    let run_with = |tls| {
        let link = "rate=20mbit,delay=10ms";
        records("framework-youtube", "chrome", link, &["wrr"], |scenario| {
            scenario.transport.tls = tls;
        })
        .remove(0)
    };
    let (null, real) = (run_with(Tls::Null), run_with(Tls::Rustls));
    let packets = |record: &RunRecord| -> u64 {
        [End::Client, End::Server]
            .into_iter()
            .flat_map(|end| record.paths_of(end).map(|path| path.packets_sent).collect::<Vec<_>>())
            .sum()
    };
    let share = real.page_time.as_nanos() as f64 / null.page_time.as_nanos() as f64;
    println!("packets {} and {}, page time ratio {share:.4}", packets(&null), packets(&real));
    assert_eq!(packets(&null), packets(&real));
    assert!((0.99..=1.01).contains(&share), "{} and {}", null.page_time, real.page_time);
}

/// The worked example of MobileH2: 2, 1 and 2 MB with weights 32, 42 and 22 at 1 MB/s end at
/// 4.375, 2.286 and 5.0 s under generalised processor sharing.
#[test]
fn weighted_shares_through_the_stack_are_those_of_generalised_processor_sharing() {
    let records = records(
        "SHARES",
        "mobileh2",
        // 1 MB/s of stream bytes: 1,310 of 1,378 bytes of a packet on the link.
        "rate=8.42mbit,delay=5ms,queue=unlimited",
        &["wrr:mode=fluid"],
        |scenario| {
            scenario.pages = vec![shares_page()];
            scenario.discovery = Discovery::AllAtOnce;
            scenario.time_limit = Duration::from_secs(60);
        },
    );
    let record = &records[0];
    // Off with handshake and slow start: the first byte of the first of the three ends both.
    let start = record.objects[1..].iter().map(|object| object.first_byte_at).min().unwrap();
    for (object, ideal) in record.objects[1..].iter().zip([4.375, 16.0 / 7.0, 5.0]) {
        let seconds = (object.completed_at - start).as_secs_f64();
        println!("object {}: {seconds:.3} s, ideal {ideal:.3} s", object.object);
        assert!((seconds / ideal - 1.0).abs() <= 0.06, "{seconds} against {ideal}");
    }
}

/// A HAR file of an empty document and the example's three objects, asked for as HTML (32), font
/// (42) and image (22).
fn shares_page() -> String {
    let entry = |url: &str, mime: &str, bytes: u64| {
        format!(
            r#"{{"startedDateTime":"2026-01-01T00:00:00.000Z","time":1,"request":{{"method":"GET",
            "url":"https://example.test/{url}","httpVersion":"h2","headers":[],"headersSize":-1,
            "bodySize":0}},"response":{{"status":200,"httpVersion":"h2","headers":[],
            "headersSize":-1,"bodySize":{bytes},"content":{{"size":{bytes},"mimeType":"{mime}"}},
            "redirectURL":""}},"cache":{{}},"timings":{{"send":0,"wait":0,"receive":0}}}}"#
        )
    };
    let entries = [
        entry("", "text/html", 100),
        entry("a.html", "text/html", 2_000_000),
        entry("b.woff2", "font/woff2", 1_000_000),
        entry("c.png", "image/png", 2_000_000),
    ];
    let har = format!(
        r#"{{"log":{{"version":"1.2","creator":{{"name":"test","version":"1"}},"entries":[{}]}}}}"#,
        entries.join(",")
    );
    let file = std::env::temp_dir().join(format!("quipu-shares-{}.har", std::process::id()));
    std::fs::write(&file, har).unwrap();
    file.to_str().unwrap().to_owned()
}
