use quipu_base::{Bytes, Duration};

use super::*;
use crate::batch::{run, run_session};
use quipu_record::{End, PathRecord};
use quipu_scenario::{Network, PathSpec, Scenario, find_network};

mod flows;
mod radio;

fn plan(change: impl FnOnce(&mut Scenario)) -> Plan {
    let mut scenario =
        Scenario { pages: vec!["sitespeed".to_owned()], runs: 2, ..Scenario::default() };
    change(&mut scenario);
    plan_of(scenario)
}

fn plan_of(scenario: Scenario) -> Plan {
    Plan::new(scenario).unwrap()
}

fn first(plan: &Plan) -> RunRecord {
    run(plan, Cell { page: 0, network: 0, policy: 0, run: 0 }).unwrap()
}

fn page(plan: &Plan) -> std::sync::Arc<quipu_web::page::Page> {
    plan.page(Cell { page: 0, network: 0, policy: 0, run: 0 }).unwrap().page
}

fn held(plan: &Plan) -> usize {
    page(plan).objects().iter().filter(|object| object.holds_load()).count()
}

#[test]
fn a_page_arrives_whole_over_both_paths() {
    let plan = plan(|_| {});
    let record = first(&plan);
    assert_eq!(record.objects.iter().filter(|object| object.held).count(), held(&plan));
    assert_eq!((record.refused, record.overridden), (0, 0));
    assert!(record.paths_of(End::Server).all(|path| path.packets_sent > 5));
    // A handshake takes a round trip of 30 ms, and the page begins with its start.
    assert!(record.connect_time >= Duration::from_millis(30));
    assert!(record.critical_time >= record.connect_time + Duration::from_millis(30));
    assert!(record.page_time >= record.critical_time);
    for object in &record.objects {
        assert!(object.requested_at <= object.first_byte_at);
        assert!(object.first_byte_at <= object.completed_at);
        assert!(object.since_request <= object.since_page_start);
    }
}

#[test]
fn the_same_run_twice_is_the_same_and_another_run_is_another() {
    let plan = plan(|scenario| scenario.networks = vec![find_network("wifi+lte-lossy").unwrap()]);
    let cell = Cell { page: 0, network: 0, policy: 3, run: 0 };
    assert_eq!(run(&plan, cell).unwrap(), run(&plan, cell).unwrap());
    assert_ne!(run(&plan, cell).unwrap(), run(&plan, Cell { run: 1, ..cell }).unwrap());
}

#[test]
fn losses_are_sent_again_and_counted() {
    let plan =
        plan(|scenario| scenario.networks = vec![find_network("mobileh2-high-lossy").unwrap()]);
    let runs = (0..4).map(|index| Cell { page: 0, network: 0, policy: 0, run: index });
    let records: Vec<_> = runs.map(|cell| run(&plan, cell).unwrap()).collect();
    let total = |of: fn(&PathRecord) -> Bytes| -> u64 {
        records.iter().map(|record| record.sender_total(of).0).sum()
    };
    assert!(total(|path| path.bytes_lost) > 0);
    assert!(total(|path| path.bytes_resent) > 0);
}

#[test]
fn every_default_policy_and_each_path_alone_loads_a_page_of_many_objects() {
    let plan = plan(|scenario| {
        scenario.pages = vec!["mobileh2-google".to_owned()];
        scenario.networks = vec![find_network("wifi+lte-lossy").unwrap()];
    });
    for cell in plan.cells().filter(|cell| cell.run == 0) {
        let record = run(&plan, cell).unwrap();
        assert_eq!((record.refused, record.overridden), (0, 0), "{}", plan.name_of(cell));
    }
}

#[test]
fn a_single_path_alone_carries_nearly_all() {
    let plan = plan(|scenario| scenario.pages = vec!["framework-google".to_owned()]);
    for (policy, alone) in [(5, 0), (6, 1)] {
        let record = run(&plan, Cell { page: 0, network: 0, policy, run: 0 }).unwrap();
        let all = record.sender_total(|path| path.bytes_sent).0;
        let path = record.paths_of(End::Server).find(|path| path.path == alone).unwrap();
        assert!(path.bytes_sent.0 * 100 > all * 95, "path {alone}");
    }
}

#[test]
fn all_at_once_is_no_slower_than_as_recorded() {
    let recorded = first(&plan(|_| {})).page_time;
    let plan = plan(|scenario| scenario.discovery = quipu_scenario::Discovery::AllAtOnce);
    assert!(first(&plan).page_time < recorded);
}

#[test]
fn a_ready_or_warm_connection_saves_the_handshake() {
    let time = |start: &str| {
        let plan = plan(|scenario| scenario.transport.start = start.parse().unwrap());
        let record = first(&plan);
        (record.page_time, record.connect_time)
    };
    let (cold, connect) = time("cold");
    assert!(time("paths-ready").0 + connect <= cold + Duration::from_millis(1));
    assert!(time("warm:4").0 + connect <= cold + Duration::from_millis(1));
}

#[test]
fn rustls_gives_the_sizes_of_the_null_tls() {
    let bytes = |tls: &str| {
        let plan = plan(|scenario| {
            scenario.transport.tls = tls.parse().unwrap();
            scenario.host_jitter = Duration::ZERO;
        });
        first(&plan).sender_total(|path| path.bytes_sent)
    };
    assert_eq!(bytes("rustls"), bytes("null"));
}

#[test]
fn one_path_and_four_paths_load_the_page() {
    for count in [1, 4] {
        let path: PathSpec = "rate=10mbit,delay=10ms".parse().unwrap();
        let network = Network::from_links(vec![path; count]);
        let plan = plan(|scenario| scenario.networks = vec![network]);
        let record = first(&plan);
        assert_eq!(record.paths_of(End::Server).count(), count);
    }
}

#[test]
fn a_dead_network_is_an_error_that_tells_what_is_missing() {
    let path: PathSpec = "rate=10mbit,delay=10ms,outage=50ms".parse().unwrap();
    let plan = plan(|scenario| {
        scenario.networks = vec![Network::from_links(vec![path])];
        scenario.time_limit = Duration::from_secs(20);
    });
    let cell = Cell { page: 0, network: 0, policy: 0, run: 0 };
    let error = run(&plan, cell).unwrap_err().to_string();
    assert!(error.contains("of 9 objects were missing"), "{error}");
}

/// A load of a large page over one path, described as in an option.
fn over(path: &str, change: impl FnOnce(&mut Scenario)) -> RunRecord {
    first(&plan(|scenario| {
        scenario.networks = vec![Network::from_links(vec![path.parse().unwrap()])];
        scenario.pages = vec!["framework-youtube".to_owned()];
        change(scenario);
    }))
}

#[test]
fn access_links_take_their_share_of_the_round_trip() {
    let dumbbell = over("rate=10mbit,delay=10us,access.rate=1gbit,access.delay=15ms", |_| {});
    let same_round_trip = over("rate=10mbit,delay=30.01ms", |_| {});
    assert!(dumbbell.connect_time > Duration::from_millis(60));
    // To send each datagram twice more takes 11 µs or less each; chance meets other datagrams.
    let ratio = dumbbell.page_time.as_nanos() as f64 / same_round_trip.page_time.as_nanos() as f64;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn a_load_meets_the_steps_of_its_links() {
    let steady = over("rate=20mbit,delay=10ms", |_| {}).page_time;
    let slower = over("rate=20mbit,delay=10ms,steps=200ms:2mbit", |_| {}).page_time;
    let stalled = over("rate=20mbit,delay=10ms,steps=200ms:0+1200ms:20mbit", |_| {}).page_time;
    assert!(slower > steady.saturating_mul(3), "{slower} instead of {steady}");
    let pause = stalled.saturating_sub(steady);
    assert!(pause > Duration::from_millis(900) && pause < Duration::from_secs(2), "{pause}");
}

#[test]
fn marks_reach_the_sender_and_spare_it_losses() {
    let lost = |path: &str, ecn: bool| {
        over(path, |scenario| scenario.transport.ecn = ecn).sender_total(|path| path.bytes_lost)
    };
    let plain = "rate=10mbit,delay=20ms,queue=60p";
    let marking = "rate=10mbit,delay=20ms,queue=60p,mark=20p";
    assert!(lost(plain, true) > Bytes::ZERO);
    assert_eq!(lost(marking, false), lost(plain, false), "who does not ask for marks gets none");
    assert!(lost(marking, true).0 * 2 < lost(plain, true).0);
}

#[test]
fn http3_loads_what_http2_loads_and_goes_by_urgencies() {
    let over = |http: &str| {
        plan(|scenario| {
            *scenario = scenario.clone().with_field("http", http).unwrap();
            scenario.transport.tls = quipu_scenario::Tls::Null;
        })
    };
    let (h2, h3) = (first(&over("h2")), first(&over("h3")));
    assert_eq!(h3.objects.len(), h2.objects.len());
    // Heads are on the streams of their requests, and frames take a few octets.
    let ratio = h3.page_time.as_nanos() as f64 / h2.page_time.as_nanos() as f64;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    let refused = |field: &str, value: &str| {
        let scenario = Scenario::default().with_field("http", "h3").unwrap();
        Plan::new(scenario.with_field(field, value).unwrap()).unwrap_err().to_string()
    };
    assert!(refused("push", "critical").contains("none over h3"));
    assert!(refused("browser", "mobileh2").contains("a browser with urgencies"));
}

#[test]
fn a_server_that_writes_in_chunks_serves_the_same_page() {
    let whole = first(&plan(|_| {}));
    for chunk in [Bytes(700), Bytes(32 << 10)] {
        let chunked = plan(|scenario| scenario.transport.server_write_chunk = Some(chunk));
        let record = first(&chunked);
        assert_eq!(record.objects.len(), whole.objects.len());
        // A stream whose next chunk is not written yet lets others go first.
        let ratio = record.page_time.as_nanos() as f64 / whole.page_time.as_nanos() as f64;
        assert!(chunk < Bytes(1_000) || (0.9..1.2).contains(&ratio), "{chunk}: {ratio}");
    }
}

#[test]
fn bursts_and_the_first_payloads_are_as_the_scenario_says() {
    let datagrams = |edit: fn(&mut Scenario)| {
        let record = first(&plan(edit));
        record.paths.iter().map(|path| path.packets_sent).sum::<u64>()
    };
    let usual = datagrams(|_| {});
    let small = datagrams(|scenario| scenario.transport.udp_payload = Bytes(1_200));
    let large = datagrams(|scenario| scenario.transport.initial_udp_payload = Bytes(1_350));
    assert!(small > usual, "{small} of 1,200 bytes, {usual} of 1,350");
    assert!(large <= usual, "{large} with 1,350 bytes from the start, {usual} else");
    let time = |edit: fn(&mut Scenario)| first(&plan(edit)).page_time;
    let spread = time(|scenario| {
        scenario.transport.pacing_burst_packets = 1;
        scenario.transport.pacing_burst_time = Duration::ZERO;
        scenario.transport.pacing_burst_limit = Bytes(1_350);
    });
    assert!(spread > time(|_| {}), "packets one by one take longer than bursts");
}

#[test]
fn unknown_names_are_told_the_nearest() {
    let refused = |field: &str, value: &str| {
        let scenario = Scenario::default().with_field(field, value).unwrap();
        Plan::new(scenario).unwrap_err().to_string()
    };
    assert!(refused("browser", "chrom").contains("did you mean `chrome`?"));
    assert!(refused("pages", "wikipeda").contains("did you mean `wikipedia`?"));
    assert!(refused("stream", "dwr").contains("did you mean `dwrr`?"));
    assert!(refused("path", "minrt").contains("did you mean `minrtt`?"));
    assert!(refused("path", "single:ix=1").contains("did you mean `id`?"));
    assert!(refused("congestion", "newren").contains("did you mean `newreno`?"));
}

fn session(edit: impl FnOnce(&mut Scenario)) -> (Plan, Vec<RunRecord>) {
    let plan = plan(|scenario| {
        scenario.pages = vec!["pries".to_owned()];
        edit(scenario);
    });
    let records = run_session(&plan, Cell { page: 0, network: 0, policy: 0, run: 1 }).unwrap();
    (plan, records)
}

#[test]
fn a_session_loads_page_after_page_over_one_connection_each_read_in_between() {
    let (plan, records) = session(|scenario| scenario.session = 4);
    assert_eq!(records.iter().map(|record| record.visit).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let cell = Cell { page: 0, network: 0, policy: 0, run: 1 };
    for (record, visit) in records.iter().zip(0..) {
        let page = plan.visit(cell, visit).unwrap().page;
        let sizes: Vec<Bytes> = page.objects().iter().map(|object| object.response_bytes).collect();
        assert_eq!(record.objects.iter().map(|object| object.body).collect::<Vec<_>>(), sizes);
        assert!(record.sender_total(|path| path.bytes_sent) > page.body_bytes());
        assert_eq!(record.connect_time, records[0].connect_time);
        let packets = record.sender_packets();
        assert!(packets < page.body_bytes().0 / 1_000 + 100, "only those of the visit: {packets}");
    }
    let asked = |record: &RunRecord| record.objects.iter().map(|it| it.requested_at).min().unwrap();
    for (pair, visit) in records.windows(2).zip(0..) {
        let reading = plan.pages[0].reading_time(1, visit);
        assert_eq!(asked(&pair[1]), pair[0].ended_at + reading);
        // No handshake, but a round trip.
        assert!(pair[1].objects[0].first_byte_at > asked(&pair[1]) + Duration::from_millis(20));
    }
}

#[test]
fn the_first_page_of_a_session_is_that_of_a_run_without_more() {
    let (_, long) = session(|scenario| scenario.session = 3);
    let (_, short) = session(|_| {});
    assert_eq!(short.len(), 1);
    // Traffic is measured over the whole run.
    let traffic = short[0].traffic.clone();
    assert_eq!(RunRecord { traffic, ..long[0].clone() }, short[0]);
    assert_ne!(long[1].objects, long[0].objects);
}

#[test]
fn a_page_that_is_loaded_again_needs_no_handshake() {
    let (_, records) = session(|scenario| {
        scenario.pages = vec!["sitespeed".to_owned()];
        scenario.session = 2;
    });
    assert_eq!(records[0].objects.len(), records[1].objects.len());
    assert!(records[1].page_time < records[0].page_time);
}

#[test]
fn radios_count_what_paths_carried_and_nothing_without_a_model() {
    let plain = plan(|_| {});
    assert!(first(&plain).radios.is_empty());
    let plan = plan(|scenario| {
        let mut network = find_network("wifi+lte").unwrap();
        network.paths[0].energy = Some(quipu_scenario::EnergyModel::Wifi);
        network.paths[1].price = Some(2.0);
        scenario.networks = vec![network];
    });
    let record = first(&plan);
    let [wifi, lte] = record.radios[..] else { panic!("two paths: {:?}", record.radios) };
    assert_eq!(first(&plain).page_time, record.page_time, "counting changes nothing");
    assert!(wifi.energy > Some(0) && wifi.cost.is_none() && wifi.wakeups == 1);
    assert!(lte.energy.is_none() && lte.active > Duration::ZERO);
    assert_eq!(lte.cost, Some(2 * (lte.bytes_down.0 + lte.bytes_up.0)));
    let sent = record.paths_of(End::Client).find(|path| path.path == 0).unwrap();
    assert!(wifi.bytes_up >= sent.bytes_sent, "datagrams have more than their payload");
}
