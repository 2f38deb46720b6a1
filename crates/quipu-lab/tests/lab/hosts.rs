//! Several clients, several servers and several origins of a page: who waits for whom, and that
//! everything arrives.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use quipu_base::{Bytes, Duration, Instant};
use quipu_lab::batch::{run_all, run_sampled, run_session};
use quipu_lab::plan::{Cell, Plan};
use quipu_record::{End, RunRecord};
use quipu_scenario::{
    Clients, Discovery, Network, Origins, Scenario, Series, SeriesEnds, ServerSpec, Start,
};

const FIRST: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

fn plan(paths: &[&str], change: impl FnOnce(&mut Scenario)) -> Plan {
    let paths = paths.iter().map(|fields| fields.parse().unwrap()).collect();
    let mut scenario = Scenario {
        pages: vec!["framework-youtube".to_owned()],
        runs: 1,
        networks: vec![Network::from_links(paths)],
        ..Scenario::default()
    };
    scenario.policies.stream = vec!["rr".to_owned()];
    scenario.policies.baselines = false;
    change(&mut scenario);
    Plan::new(scenario).unwrap()
}

/// The page times of `clients` that load a page of 1.6 MB at once, in seconds.
fn times(path: &str, clients: Clients) -> Vec<f64> {
    let plan = plan(&[path], |scenario| {
        scenario.clients = clients;
        scenario.discovery = Discovery::AllAtOnce;
    });
    let records = run_session(&plan, FIRST).unwrap();
    records.iter().map(|record| record.page_time.as_secs_f64()).collect()
}

#[test]
fn clients_share_the_bottleneck_and_nothing_else() {
    let shared = "rate=8mbit,delay=10ms";
    let alone = times(shared, Clients::of(1))[0];
    let two = times(shared, Clients::of(2));
    // The last of two is there when the bottleneck has carried both.
    let last = two.iter().copied().fold(0.0, f64::max);
    assert!((1.9..2.15).contains(&(last / alone)), "{two:?} instead of {alone}");
    // Each behind an access link as fast as that bottleneck.
    let own = "rate=1gbit,delay=9ms,access.rate=8mbit,access.delay=0.5ms";
    let alone = times(own, Clients::of(1))[0];
    for time in times(own, Clients::of(3)) {
        assert!((0.98..1.02).contains(&(time / alone)), "{time} instead of {alone}");
    }
    // Two of three at one server, whose access link they share, and one at another.
    let servers = Clients { servers: Some(2), ..Clients::of(3) };
    let [first, second, third] = times(own, servers)[..] else { panic!("three clients") };
    assert!((0.98..1.02).contains(&(second / alone)), "{second} instead of {alone}");
    let last = f64::max(first, third);
    assert!((1.9..2.15).contains(&(last / alone)), "{first} and {third} instead of {alone}");
}

#[test]
fn fair_controllers_serve_clients_evenly() {
    let plan = plan(&["rate=40mbit,delay=10ms"], |scenario| {
        scenario.clients = Clients::of(8);
        scenario.discovery = Discovery::AllAtOnce;
    });
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert_eq!(batch.finished.len(), 8);
    let row = &batch.summary.rows[0];
    assert_eq!(row.runs, 1);
    let fairness = row.fairness.unwrap();
    assert_eq!(fairness.clients, 8);
    assert!(fairness.page_time.median > 970_000, "{fairness:?}");
    assert!(fairness.goodput.median > 950_000, "{fairness:?}");
    let text = quipu_lab::table::compare(
        &plan,
        &batch.summary,
        quipu_lab::table::Order::default(),
        quipu_lab::table::Screen::ANY,
    );
    assert!(text.contains("8 clients") && text.contains("Jain's index"), "{text}");
}

#[test]
fn clients_start_when_they_are_to_and_the_first_is_as_if_alone() {
    let spread = |clients: Clients| plan(&["rate=50mbit,delay=5ms"], |it| it.clients = clients);
    let plan = spread(Clients {
        spread: Duration::from_secs(2),
        every: Duration::from_millis(300),
        ..Clients::of(4)
    });
    let records = run_session(&plan, FIRST).unwrap();
    for (record, client) in records.iter().zip(0..) {
        assert_eq!((record.client, record.visit), (client, 0));
        let start = plan.client_start(0, client);
        let asked = record.objects.iter().map(|object| object.requested_at).min().unwrap();
        assert_eq!(asked, start);
        assert!(record.ended_at >= start + record.page_time);
        // Counted from its own start: a round trip, and queues of others.
        let connect = record.connect_time.as_millis();
        assert!((10..200).contains(&connect), "{connect}");
    }
    let starts: BTreeSet<Instant> = (0..4).map(|client| plan.client_start(0, client)).collect();
    assert_eq!(starts.len(), 4);
    // No client comes before the first is done: its load is that of a run without others.
    let apart = Clients { every: Duration::from_secs(20), ..Clients::of(2) };
    let together = run_session(&spread(apart), FIRST).unwrap();
    let alone = run_session(&spread(Clients::of(1)), FIRST).unwrap().remove(0);
    let traffic = alone.traffic.clone();
    assert_eq!(RunRecord { traffic, ..together[0].clone() }, alone);
    let asked = together[1].objects.iter().map(|object| object.requested_at).min();
    assert_eq!(asked, Some(Instant::ZERO + Duration::from_secs(20)));
}

#[test]
fn each_client_draws_its_page_and_reads_it_for_its_own_time() {
    let plan = plan(&["rate=20mbit,delay=10ms"], |scenario| {
        scenario.pages = vec!["pries".to_owned()];
        scenario.clients = Clients::of(2);
        scenario.session = 2;
    });
    let records = run_session(&plan, FIRST).unwrap();
    let order: Vec<_> = records.iter().map(|record| (record.client, record.visit)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    for record in &records {
        let page = plan.visit_of(FIRST, record.client, record.visit).unwrap().page;
        let body = record.objects.iter().map(|object| object.body).sum::<Bytes>();
        assert_eq!(body, page.body_bytes());
    }
    for client in [0, 1] {
        let of_client: Vec<_> = records.iter().filter(|it| it.client == client).collect();
        let asked = of_client[1].objects.iter().map(|object| object.requested_at).min();
        let reading = plan.pages[0].reading_time_of(0, client, 0);
        assert_eq!(asked, Some(of_client[0].ended_at + reading));
    }
}

/// What must hold between the parts of the record of a load with a connection for each origin.
fn check_origins(plan: &Plan, record: &RunRecord, least_round_trip: Duration) {
    let page = plan.page(FIRST).unwrap().page;
    let origins = page.origins();
    let held = page.objects().iter().filter(|object| object.holds_load()).count();
    assert_eq!(record.objects.iter().filter(|it| it.held).count(), held);
    assert_eq!(record.connections.len(), origins.names().len());
    for (connection, name) in record.connections.iter().zip(origins.names()) {
        assert_eq!(*connection.origin, **name);
        let of_it: Vec<_> =
            record.objects.iter().filter(|it| it.connection == connection.connection).collect();
        assert!(
            of_it
                .iter()
                .all(|it| { page.objects()[it.object as usize].origin() == *connection.origin })
        );
        assert_eq!(connection.objects, of_it.len() as u64);
        // A handshake of its own.
        let connected_at = connection.connected_at.unwrap();
        assert!(connected_at >= connection.opened_at + least_round_trip, "{connection:?}");
        let asked = of_it.iter().map(|it| it.requested_at).min().unwrap();
        if connection.connection > 0 {
            assert_eq!(connection.opened_at, asked);
        }
        assert!(of_it.iter().all(|it| it.first_byte_at >= connected_at + least_round_trip));
        // Bytes are conserved: all bodies were sent, and nothing came that was not sent.
        let sum = |end: End, amount: &dyn Fn(&quipu_record::PathRecord) -> u64| -> u64 {
            let paths = record.paths_of(end);
            paths.filter(|it| it.connection == connection.connection).map(amount).sum()
        };
        assert!(sum(End::Server, &|path| path.bytes_sent.0) > connection.body.0);
        let (sent, came) = (
            sum(End::Server, &|path| path.packets_sent),
            sum(End::Client, &|path| path.datagrams_received),
        );
        assert!(came <= sent && came > 0, "{came} of {sent}");
    }
}

#[test]
fn a_page_of_many_origins_arrives_whole_with_every_stream_policy() {
    let paths = ["rate=12mbit,delay=15ms,loss=2%", "rate=8mbit,delay=10ms,loss=2%"];
    for http in ["h2", "h2-tcp"] {
        let plan = plan(&paths, |scenario| {
            scenario.pages = vec!["amazon".to_owned()];
            scenario.origins = Origins::Recorded;
            scenario.http = http.parse().unwrap();
            scenario.policies.stream = vec!["all".to_owned()];
        });
        let policies = plan.networks[0].policies.len();
        assert!(policies >= 12, "{policies}");
        for policy in 0..policies {
            let records = run_session(&plan, Cell { policy, ..FIRST }).unwrap();
            assert_eq!(records.len(), 1);
            // The shorter path's; the handshake's has 30 ms.
            check_origins(&plan, &records[0], Duration::from_millis(20));
            assert_eq!((records[0].refused, records[0].overridden), (0, 0));
            // The largest has both paths.
            let mut paths = records[0].paths_of(End::Server).filter(|path| path.connection == 1);
            assert!(paths.all(|path| path.bytes_sent > Bytes(10_000)), "{:?}", records[0].paths);
        }
    }
}

#[test]
fn handshakes_of_further_origins_cost_time_and_a_ready_start_is_of_the_first_alone() {
    let load = |origins, start| {
        let plan = plan(&["rate=20mbit,delay=25ms"], |scenario| {
            scenario.pages = vec!["github-2015".to_owned()];
            scenario.origins = origins;
            scenario.transport.start = start;
        });
        run_session(&plan, FIRST).unwrap().remove(0)
    };
    let folded = load(Origins::One, Start::Cold);
    let apart = load(Origins::Recorded, Start::Cold);
    // Of the fifth origin the page waits for nothing.
    assert_eq!(apart.connections.len(), 4);
    assert!(folded.connections.is_empty());
    assert_eq!(folded.connect_time, apart.connect_time);
    assert!(apart.critical_time > folded.critical_time);
    let ready = load(Origins::Recorded, Start::PathsReady);
    let page_start = ready.objects.iter().map(|object| object.requested_at).min().unwrap();
    let [first, others @ ..] = &ready.connections[..] else { panic!("connections") };
    assert!(first.connected_at.unwrap() <= page_start);
    assert!(others.iter().all(|it| it.opened_at > page_start));
}

#[test]
fn a_far_server_is_as_far_as_it_is_told() {
    let load = |servers: Vec<ServerSpec>| {
        let plan = plan(&["rate=50mbit,delay=10ms", "rate=50mbit,delay=10ms"], |scenario| {
            scenario.pages = vec!["greenweb".to_owned()];
            scenario.origins = Origins::Recorded;
            scenario.host_jitter = Duration::ZERO;
            scenario.servers = servers;
        });
        run_session(&plan, FIRST).unwrap().remove(0)
    };
    let near = load(Vec::new());
    let far_name = near.connections[1].origin.clone();
    let hosts = far_name.trim_start_matches("https://").to_owned();
    let far = load(vec![ServerSpec { hosts, delay: Duration::from_millis(40) }]);
    let mut compared = 0;
    for (near, far) in near.connections.iter().zip(&far.connections) {
        let handshake = |it: &quipu_record::ConnectionRecord| {
            Some((it.connected_at? - it.opened_at).as_millis())
        };
        let (Some(before), Some(after)) = (handshake(near), handshake(far)) else { continue };
        let more = after.saturating_sub(before);
        // Others may meet queues at other times.
        let is_far = far.origin == far_name;
        let expected = if is_far { 80..=90 } else { 0..=10 };
        assert!(expected.contains(&more), "{}: {more} ms more", far.origin);
        compared += 1 + 100 * usize::from(is_far);
    }
    assert!(compared > 103, "the far one and others were compared: {compared}");
}

#[test]
fn servers_that_no_page_has_and_pages_of_too_many_connections_are_refused() {
    let refused = |page: &str, more: &str| {
        let text = format!("pages = [\"{page}\"]\norigins = \"recorded\"\n{more}");
        Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap_err().to_string()
    };
    let told = refused("amazon", "servers = [{ hosts = \"cdn.example\", delay = \"1ms\" }]");
    assert!(told.contains("unknown host of the pages `cdn.example`"), "{told}");
    let told = refused("cnn", "clients = 100");
    assert!(told.contains("connections each; expected at most 10000"), "{told}");
}

/// Three clients with a connection for each origin, beside a flow and cross traffic.
fn crowd() -> Plan {
    plan(&["rate=20mbit,delay=15ms,loss=1%", "rate=10mbit,delay=10ms"], |scenario| {
        let text = "pages = [\"amazon\"]\norigins = \"recorded\"\nruns = 2\n\
                    clients = { count = 3, spread = \"500ms\", servers = 2 }\n\
                    flows = [{ name = \"bulk\" }]\n\
                    cross = [{ name = \"noise\", rate = \"1mbit\", kind = \"poisson\" }]";
        let networks = std::mem::take(&mut scenario.networks);
        let policies = std::mem::take(&mut scenario.policies);
        *scenario = Scenario::from_toml(text, "a.toml").unwrap();
        (scenario.networks, scenario.policies) = (networks, policies);
        scenario.policies.stream = vec!["dwrr".to_owned(), "rr".to_owned()];
    })
}

#[test]
fn any_number_of_threads_gives_the_same_records() {
    let plan = crowd();
    let batch =
        |jobs| run_all(&plan, Some(jobs), &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    let (one, two) = (batch(1), batch(2));
    assert!(one.summary.complete, "{:?}", one.summary.failures);
    assert_eq!(one.finished, two.finished);
    assert_eq!(one.summary, two.summary);
    assert_eq!(one.finished.len(), 2 * 2 * 3);
    let clients: Vec<u32> = one.finished.iter().map(|(_, record)| record.client).collect();
    assert_eq!(clients[..6], [0, 1, 2, 0, 1, 2]);
    // The traffic of a run is told once, and goes on until the last page is there.
    for (_, record) in &one.finished {
        let told = usize::from(record.is_first());
        assert_eq!((record.traffic.flows.len(), record.traffic.cross.len()), (told, told));
    }
    let last = one.finished[..3].iter().map(|(_, record)| record.ended_at).max();
    assert_eq!(Some(one.finished[0].1.traffic.until), last);
    assert_eq!(one.summary.sharing[0].runs, 2);
}

#[test]
fn a_series_shows_every_connection_and_changes_nothing() {
    let mut plan = crowd();
    let plain = run_session(&plan, FIRST).unwrap();
    plan.scenario.series = Series::Every(Duration::from_millis(20));
    plan.scenario.series_ends = SeriesEnds::Both;
    let mut flows = BTreeSet::new();
    let mut shares = std::collections::BTreeMap::new();
    let sampled = run_sampled(&plan, FIRST, &mut |row| {
        flows.insert((row.flow.to_string(), row.end == End::Client));
        if row.path.is_none() && row.end == End::Server {
            *shares.entry(row.at).or_insert(0) += row.share_ppm.unwrap_or(0);
        }
        Ok(())
    });
    assert_eq!(sampled.unwrap(), plain);
    // Three clients, four origins and the flow, both ends of each.
    assert_eq!(flows.len(), 2 * (3 * 4 + 1), "{flows:?}");
    for name in ["page", "page:1", "bulk"] {
        assert!(flows.contains(&(name.to_owned(), true)), "{name}");
    }
    let further = &plain[0].connections[1].origin;
    let further = further.split_once("://").unwrap().1;
    assert!(flows.contains(&(format!("page:2@{further}"), false)), "{flows:?}");
    // All that servers sent, rounded down per connection.
    assert!(shares.values().all(|share| (999_980..=1_000_000).contains(share)));
}

#[test]
fn several_clients_read_raw_streams() {
    let plan = plan(&["rate=10mbit,delay=10ms", "rate=10mbit,delay=20ms"], |scenario| {
        scenario.http = "raw".parse().unwrap();
        scenario.clients = Clients { every: Duration::from_millis(50), ..Clients::of(3) };
    });
    let records = run_session(&plan, FIRST).unwrap();
    assert_eq!(records.len(), 3);
    for (record, client) in records.iter().zip(0..) {
        assert_eq!(record.client, client);
        assert!(!record.streams.is_empty());
        let asked = record.objects.iter().map(|object| object.requested_at).min().unwrap();
        assert_eq!(asked, plan.client_start(0, client));
    }
}

#[test]
fn a_load_that_cannot_end_tells_what_is_missing_of_all_clients() {
    let plan = plan(&["rate=10mbit,delay=10ms,outage=200ms"], |scenario| {
        scenario.clients = Clients::of(3);
        scenario.time_limit = Duration::from_secs(5);
    });
    let error = run_session(&plan, FIRST).unwrap_err().to_string();
    assert!(error.contains("of 153 objects were missing"), "{error}");
}
