//! Flows and cross traffic: how they share, when they begin and end, what is measured.

use super::*;
use quipu_record::{FlowRecord, TrafficRecord};
use quipu_scenario::units::Share;
use quipu_scenario::{Direction, FlowSpec};

/// A plan of `text` over one path of 10 Mb/s and 20 ms of round trip with a queue of two products.
fn flows(text: &str) -> Plan {
    let text = format!(
        "pages = []\nhost_jitter = \"0ms\"\nduration = \"10s\"\n{text}\n\
         [[networks]]\nname = \"n\"\npaths = [{{ name = \"p\", down = {{ rate = \"10mbit\", \
         delay = \"10ms\", queue = \"2bdp\" }} }}]"
    );
    Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap()
}

fn traffic(plan: &Plan) -> TrafficRecord {
    first(plan).traffic
}

/// Megabits per second.
fn goodput(flow: &FlowRecord) -> f64 {
    flow.goodput().bits_per_sec() as f64 / 1e6
}

#[test]
fn a_flow_fills_its_link_either_way() {
    for direction in ["down", "up"] {
        let plan = flows(&format!("[[flows]]\nname = \"a\"\ndirection = \"{direction}\""));
        let record = first(&plan);
        assert_eq!(record.ended_at, Instant::ZERO + Duration::from_secs(10));
        let traffic = record.traffic;
        // 1,350 B of payload in 1,378 B on the link, less headers.
        assert!((9.2..9.8).contains(&goodput(&traffic.flows[0])), "{traffic:?}");
        let [down, up] = [&traffic.links[0], &traffic.links[1]];
        let (busy, idle) = if direction == "down" { (down, up) } else { (up, down) };
        assert!((960..=1_000).contains(&busy.utilisation()), "{traffic:?}");
        assert!(idle.utilisation() < 60, "{traffic:?}");
        let flow = &traffic.flows[0];
        let (mean, p95) = (flow.rtt_mean.unwrap(), flow.rtt_p95.unwrap());
        // Between an empty and a full queue.
        assert!(mean > Duration::from_millis(21) && mean < Duration::from_millis(65), "{flow:?}");
        assert!(mean < p95 && p95 < Duration::from_millis(65), "{flow:?}");
        assert!(flow.packets_lost > 0 && flow.packets_lost * 50 < flow.packets_sent, "{flow:?}");
        assert_eq!(flow.paths.len(), 1);
        assert!(flow.paths[0].bytes > flow.bytes);
    }
}

#[test]
fn a_flow_of_so_many_bytes_ends_with_them_and_the_run_with_the_last_flow() {
    let plan = flows(
        "[[flows]]\nname = \"a\"\nbytes = \"1000000B\"\nstreams = 7\n\
         [[flows]]\nname = \"b\"\nbytes = \"500000B\"\nstart = \"2s\"",
    );
    let record = first(&plan);
    let [a, b] = &record.traffic.flows[..] else { panic!("two flows") };
    assert_eq!((a.bytes, b.bytes), (Bytes(1_000_000), Bytes(500_000)));
    assert_eq!(b.ended_at, Some(record.ended_at));
    assert!(a.ended_at.unwrap() < Instant::ZERO + Duration::from_secs(2));
    assert_eq!(b.started_at, Instant::ZERO + Duration::from_secs(2));
    assert_eq!(a.lived, a.ended_at.unwrap() - Instant::ZERO);
    // 8 Mb at 10 Mb/s, and a few round trips.
    assert!((5.0..9.0).contains(&goodput(a)), "{a:?}");
}

#[test]
fn a_flow_that_stops_makes_room_and_only_the_window_counts() {
    let plan = flows(
        "measure = { from = \"6s\", until = \"9s\" }\n\
         [[flows]]\nname = \"a\"\n[[flows]]\nname = \"b\"\nstop = \"5s\"",
    );
    let traffic = traffic(&plan);
    let [a, b] = &traffic.flows[..] else { panic!("two flows") };
    assert_eq!(traffic.until - traffic.from, Duration::from_secs(3));
    assert_eq!(b.ended_at, Some(Instant::ZERO + Duration::from_secs(5)));
    assert_eq!((b.bytes, b.lived, b.rtt_mean), (Bytes::ZERO, Duration::ZERO, None));
    assert!(goodput(a) > 9.2, "{a:?}");
}

#[test]
fn constant_cross_traffic_leaves_the_rest_to_a_flow() {
    let plan = flows(
        "measure = { from = \"2s\" }\n[[flows]]\nname = \"a\"\n\
         [[cross]]\nname = \"c\"\nrate = \"4mbit\"\n\
         [[cross]]\nname = \"late\"\nrate = \"1mbit\"\nstart = \"20s\"",
    );
    let traffic = traffic(&plan);
    let (flow, cross) = (&traffic.flows[0], &traffic.cross[0]);
    // 4 Mb/s over 8 s.
    assert!(cross.sent.0.abs_diff(4_000_000) < 2_000, "{cross:?}");
    assert!(cross.received.0 * 100 > cross.sent.0 * 95, "{cross:?}");
    assert!((5.4..6.0).contains(&goodput(flow)), "{flow:?}");
    assert!(traffic.links[0].utilisation() > 960, "{traffic:?}");
    assert_eq!(traffic.cross[1].sent, Bytes::ZERO);
}

#[test]
fn a_flow_over_two_paths_uses_both_and_one_over_the_second_leaves_the_first() {
    let path = |name: &str| {
        let path: PathSpec = "rate=5mbit,delay=10ms,queue=2bdp".parse().unwrap();
        PathSpec { name: name.to_owned(), ..path }
    };
    let mut network = quipu_scenario::Network::from_links(vec![path("x"), path("y")]);
    network.name = "n".to_owned();
    let plan = |flows: Vec<FlowSpec>| {
        plan_of(Scenario {
            pages: Vec::new(),
            flows,
            networks: vec![network.clone()],
            duration: Duration::from_secs(8),
            ..Scenario::default()
        })
    };
    let record = traffic(&plan(vec![FlowSpec::new("both")]));
    assert!(goodput(&record.flows[0]) > 8.5, "{record:?}");
    assert_eq!(record.flows[0].paths.len(), 2);
    let second = FlowSpec { paths: vec!["y".into()], ..FlowSpec::new("second") };
    let record = traffic(&plan(vec![second]));
    assert_eq!(record.flows[0].paths[0].path, 1);
    assert_eq!(record.links[0].delivered, Bytes::ZERO);
    assert!(record.links[2].utilisation() > 900);
}

#[test]
fn a_page_beside_a_flow_takes_longer_and_ends_the_run() {
    let alone = first(&plan(|scenario| scenario.networks = vec![find_network("lte").unwrap()]));
    let plan = plan(|scenario| {
        scenario.networks = vec![find_network("lte").unwrap()];
        scenario.flows = vec![FlowSpec::new("bulk")];
        scenario.flows[0].direction = Direction::Down;
    });
    let beside = first(&plan);
    assert!(beside.page_time > alone.page_time);
    assert!(beside.traffic.flows[0].bytes > Bytes(100_000));
    assert_eq!(beside.traffic.until, beside.ended_at);
    assert_eq!(alone.traffic.flows.len(), 0);
}

#[test]
fn a_flow_over_a_dead_path_carries_nothing_and_is_no_error() {
    let mut path: PathSpec = "rate=10mbit,delay=10ms".parse().unwrap();
    path.own_links_mut().unwrap().down.loss = Share::WHOLE.into();
    let plan = plan_of(Scenario {
        pages: Vec::new(),
        flows: vec![FlowSpec::new("a")],
        networks: vec![quipu_scenario::Network::from_links(vec![path])],
        duration: Duration::from_secs(3),
        ..Scenario::default()
    });
    let traffic = traffic(&plan);
    assert_eq!(traffic.flows[0].bytes, Bytes::ZERO);
    assert_eq!(traffic.until, Instant::ZERO + Duration::from_secs(3));
}

#[test]
fn the_same_flows_twice_are_the_same_and_cross_traffic_is_of_the_run() {
    let plan = flows(
        "[[flows]]\nname = \"a\"\n[[cross]]\nname = \"c\"\nrate = \"4mbit\"\nkind = \"poisson\"",
    );
    let cell = Cell { page: 0, network: 0, policy: 0, run: 0 };
    let one = run(&plan, cell).unwrap();
    assert_eq!(one, run(&plan, cell).unwrap());
    assert_ne!(one, run(&plan, Cell { run: 1, ..cell }).unwrap());
    assert_eq!(plan.networks[0].runs, 30, "chance decides when cross traffic comes");
}
