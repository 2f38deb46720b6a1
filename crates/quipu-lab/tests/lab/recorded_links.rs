//! What a busy link of a scenario file delivers in the simulator, against the recording that it
//! follows: opportunities of a packet-delivery trace, integrals of rates over time, ramps.

use quipu_base::{Bytes, Duration, Instant, Rate, Seed};
use quipu_lab::batch::run;
use quipu_lab::plan::{Cell, Plan};
use quipu_link::{BuiltinTrace, DeliveryTrace, LinkConfig, Recording};
use quipu_scenario::{LinkSpec, OwnLinks, Scenario};
use quipu_sim::{Envelope, Interface, Node, NodeId, Outgoing, World, WorldConfig, address};

/// Both carriers of a drive as it was recorded, and a path without anything for the flow that a
/// scenario must have.
fn scenario(trace: &str, extra: &str) -> Scenario {
    let path = |carrier: &str| {
        format!(
            "{{ name = \"{carrier}\", down = {{ trace = \"{trace}-{carrier}\", delay = \"0ms\" }} }}"
        )
    };
    let text = format!(
        "pages = []\nhost_jitter = \"0ms\"\n{extra}\n\
         [[flows]]\nname = \"idle\"\npaths = [\"idle\"]\nbytes = \"1000B\"\nstart = \"115s\"\n\
         [[networks]]\nname = \"drive\"\npaths = [{}, {}, \
         {{ name = \"idle\", down = {{ rate = \"1mbit\", delay = \"1ms\" }} }}]",
        path("att"),
        path("verizon"),
    );
    let scenario = Scenario::from_toml(&text, "drive.toml").unwrap();
    scenario.validate().unwrap();
    scenario
}

/// Sends datagrams of 1,472 B, 1,500 B on the link, at a constant rate.
struct Source {
    route: Envelope,
    gap: Duration,
    next_at: Option<Instant>,
    due: u32,
}

impl Node for Source {
    fn handle_datagram(&mut self, _now: Instant, _envelope: &Envelope, _payload: &mut [u8]) {}

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.next_at.filter(|at| *at <= now) {
            self.due += 1;
            self.next_at = Some(at + self.gap);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Outgoing<'_>) {
        for _ in 0..std::mem::take(&mut self.due) {
            out.buffer()[..1_472].fill(0);
            out.send(&self.route, 1_472);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }
}

/// Bytes that `link` delivers in the simulator in each of the first `seconds` seconds, while more
/// is offered than it can carry.
fn delivered_each_second(link: &LinkConfig, offered: Rate, seconds: usize) -> Vec<u64> {
    let config = WorldConfig::new(Seed::new(1));
    let mut world =
        World::new(WorldConfig { host_jitter: Duration::ZERO, max_payload: 1_472, ..config });
    let (here, there) = (address(1, 0, 1), address(2, 0, 2));
    let source = |next_at| Source {
        route: Envelope { local: here, remote: there, ecn: 0 },
        gap: offered.time_for(Bytes(1_500)),
        next_at,
        due: 0,
    };
    let sender: NodeId = world.add_node(source(Some(Instant::ZERO)));
    let sink = world.add_node(source(None));
    let id = world.add_link(link).unwrap();
    let (from, to) =
        (Interface { node: sender, address: here }, Interface { node: sink, address: there });
    world.add_route(from, to, &[id]).unwrap();
    let mut before = 0;
    (1..=seconds as u64)
        .map(|second| {
            let end = Instant::ZERO + Duration::from_secs(second);
            world.run_until(end).unwrap();
            let stats = world.link_stats(id).unwrap().delivered.bytes;
            let delivered = (stats - world.queued_at(id, end).unwrap()).0;
            delivered - std::mem::replace(&mut before, delivered)
        })
        .collect()
}

fn links(scenario: &Scenario, path: usize) -> [&LinkSpec; 2] {
    let OwnLinks { down, up } = scenario.networks[0].paths[path].own_links().unwrap();
    [down, up]
}

#[test]
fn both_carriers_of_us_drive_08_deliver_their_opportunities_in_every_second() {
    let scenario = scenario("us-drive-08", "duration = \"117s\"");
    for (path, name) in ["us-drive-08-att", "us-drive-08-verizon"].into_iter().enumerate() {
        let builtin = BuiltinTrace::named(name).unwrap();
        let recordings = [builtin.down().unwrap(), builtin.up().unwrap()];
        for (link, recording) in links(&scenario, path).into_iter().zip(recordings) {
            let Recording::Deliveries(trace) = recording else { panic!("Mahimahi's form") };
            // Beyond its end, so that it starts again.
            let seconds = 125;
            let offered = Rate::from_mbit_per_sec(100);
            let delivered = delivered_each_second(&link.config(Bytes(28)), offered, seconds);
            let by = |second: usize| {
                let at = Instant::ZERO + Duration::from_secs(second as u64);
                trace.opportunities_by(at) * DeliveryTrace::OPPORTUNITY.0
            };
            let mut total = 0;
            for (second, delivered) in delivered.into_iter().enumerate() {
                let recorded = by(second + 1) - by(second);
                // 0.1 % is asked for; with datagrams that fill an opportunity it is all.
                assert_eq!(delivered, recorded, "{name}, second {second}");
                total += delivered;
            }
            assert_eq!(total, link_capacity(link, seconds as u64), "{name}");
        }
    }
}

fn link_capacity(link: &LinkSpec, seconds: u64) -> u64 {
    let until = Instant::ZERO + Duration::from_secs(seconds);
    quipu_link::Capacity::of(&link.config(Bytes(28))).between(Instant::ZERO, until).0
}

/// Through a whole run: cross traffic above the trace's greatest rate.
#[test]
fn a_run_measures_what_the_trace_carries() {
    let cross = ["att", "verizon"].map(|path| {
        let sender = |direction: &str| {
            format!(
                "[[cross]]\nname = \"{path}-{direction}\"\npath = \"{path}\"\n\
                 direction = \"{direction}\"\nrate = \"80mbit\"\npacket = \"1200B\"\n"
            )
        };
        sender("down") + &sender("up")
    });
    let extra = "duration = \"110s\"\n[measure]\nfrom = \"3s\"\nuntil = \"103s\"\n";
    let plan = Plan::new(scenario("us-drive-08", &format!("{extra}{}", cross.concat()))).unwrap();
    let record = run(&plan, Cell { page: 0, network: 0, policy: 0, run: 0 }).unwrap();
    assert_eq!(record.traffic.links.len(), 6);
    for link in record.traffic.links.iter().take(4) {
        let (delivered, capacity) = (link.delivered.0, link.capacity.0);
        assert!(capacity > 50_000_000, "{link:?}");
        // A datagram under way at either end is all that they may differ by.
        assert!(delivered.abs_diff(capacity) <= 1_500 + 1_228, "{link:?}");
        assert!(delivered.abs_diff(capacity) * 1_000 <= capacity, "{link:?}");
    }
}

#[test]
fn rates_as_csv_deliver_their_integral() {
    // Down to 0 and up to 1.8 Gbit/s.
    for (trace, offered) in [("us-drive-02", 500), ("us-drive-09", 1_000), ("us-drive-05", 100)] {
        let scenario = scenario(trace, "duration = \"100s\"");
        for link in (0..2).flat_map(|path| links(&scenario, path)) {
            let config = link.config(Bytes(28));
            let rates = config.rates.clone().expect("CSV");
            let greatest = rates.values().map(|(_, rate)| rate).max().unwrap();
            if greatest >= Rate::from_mbit_per_sec(offered) {
                continue;
            }
            let seconds = 20;
            let delivered =
                delivered_each_second(&config, Rate::from_mbit_per_sec(offered), seconds);
            let by = |second: usize| {
                let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
                // Times of rows are tenths of seconds, and a rate holds until the next one.
                let tenths = 0..second as u64 * 10;
                let bits = tenths.map(|tenth| rates.value_at(at(tenth * 100)).bits_per_sec() / 10);
                bits.sum::<u64>() / 8
            };
            let mut sum = 0;
            for (second, delivered) in delivered.into_iter().enumerate() {
                sum += delivered;
                let recorded = by(second + 1);
                assert!(sum <= recorded + 1, "{trace}, second {second}: {sum}, {recorded}");
                // The last datagram may be on the link still.
                assert!(
                    sum + 1_500 + 16 >= recorded,
                    "{trace}, second {second}: {sum}, {recorded}"
                );
            }
        }
    }
}

#[test]
fn a_ramp_delivers_as_much_as_the_line() {
    let text = "name = \"x\"\ndown = { rate = \"30mbit\", delay = \"10ms\", steps = [\
                { at = \"2s\", rate = \"6mbit\", over = \"4s\" }, \
                { at = \"8s\", rate = \"18mbit\", delay = \"20ms\", over = \"1s\" }] }";
    let path: quipu_scenario::PathSpec = toml::from_str(text).unwrap();
    path.validate().unwrap();
    let config = path.own_links().unwrap().down.config(Bytes(28));
    let delivered = delivered_each_second(&config, Rate::from_mbit_per_sec(60), 10);
    // Megabits: 30, 30, then 27, 21, 15, 9 in the ramp's seconds, 6, 6, 12 in the second ramp, 18.
    let megabits = [30, 30, 27, 21, 15, 9, 6, 6, 12, 18];
    for (second, (delivered, megabits)) in delivered.into_iter().zip(megabits).enumerate() {
        let expected = megabits * 125_000;
        assert!(u64::abs_diff(delivered, expected) <= 1_500, "{second}: {delivered}, {expected}");
    }
}
