//! On which path acknowledgements return, and what that does to the sender's estimates.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration, Instant, PathId, Rate, Role, Seed};
use quipu_link::{LinkConfig, Outage, QueueLimit};
use quipu_policy::PathView;
use quipu_quic::{Connection, ConnectionEvent, TransportConfig};
use quipu_sim::{Interface, World, WorldConfig};
use quipu_testkit::{
    ExchangeNode, NodeConfig, Plan, QuicNode, Scenario, Tls, client_address, policies,
    server_address,
};

const A: PathId = PathId(0);
const B: PathId = PathId(1);

/// More bytes than any test here moves.
const ENDLESS: u64 = 40_000_000;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// 50 Mbit/s and no loss.
fn link(one_way: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(50), ms(one_way))
}

/// A client and a server with an exchange between them.
#[derive(Clone)]
struct Setup {
    /// Acknowledgement policies of client and server.
    ack: [&'static str; 2],
    /// Path policies of client and server.
    path: [&'static str; 2],
    /// Whether client and server offer the extension.
    offers: [bool; 2],
    /// Links from client to server and back.
    links: Vec<[LinkConfig; 2]>,
    plan: Plan,
    /// Receive window: small ones leave every queue empty.
    window: u64,
    /// Packets after which an acknowledgement is due.
    every: u32,
    seed: u64,
}

/// Both ends in the middle of it.
struct Run {
    world: World<QuicNode>,
    ends: [quipu_sim::NodeId; 2],
}

impl Setup {
    /// A download over two paths in turn. The way up is slow on the first, the way down on the
    /// second: what `min-rtt`, `own` and `min-owd` choose are three different things.
    fn asymmetric(ack: &'static str) -> Self {
        Setup {
            ack: [ack; 2],
            path: ["path-rr"; 2],
            offers: [true; 2],
            links: vec![[link(60), link(10)], [link(10), link(80)]],
            plan: Plan::download(ENDLESS),
            window: 30_000,
            every: 2,
            seed: 1,
        }
    }

    fn start(&self) -> Run {
        let links = self.links.iter().map(|pair| pair[0].clone()).collect();
        let scenario = Scenario { seed: Seed::new(self.seed), ..Scenario::new(self.plan, links) };
        let mut world = World::new(WorldConfig::new(scenario.seed));
        let ends = [Role::Client, Role::Server].map(|role| {
            let end = usize::from(!role.is_client());
            let text = format!("path={} ack={}", self.path[end], self.ack[end]);
            world.add_node(QuicNode::new(NodeConfig {
                policies: policies(&text),
                transport: TransportConfig {
                    ack_return_paths: self.offers[end],
                    connection_window: Bytes(self.window),
                    ack_every: self.every,
                    // A gap in packet numbers is acknowledged at once: tests count on none.
                    skips_packet_numbers: false,
                    ..TransportConfig::default()
                },
                ..NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 })
            }))
        });
        let there = Interface { node: ends[1], address: server_address() };
        for (path, [up, down]) in (0..).zip(&self.links) {
            let here = Interface { node: ends[0], address: client_address(path) };
            world.add_path(here, there, up, down).unwrap();
        }
        Run { world, ends }
    }
}

impl Run {
    fn until(&mut self, now: Instant) -> &Self {
        self.world.run_until(now).unwrap();
        for id in self.ends {
            assert_eq!(self.world.node(id).failure(), None);
        }
        self
    }

    fn end(&self, role: Role) -> &QuicNode {
        self.world.node(self.ends[usize::from(!role.is_client())])
    }

    fn connection(&self, role: Role) -> &Connection {
        self.end(role).connection().unwrap()
    }

    /// A path as the server sees it.
    fn path(&self, id: PathId) -> &PathView {
        self.connection(Role::Server).path_views().find(|view| view.key.id == id).unwrap()
    }

    /// Smoothed round-trip times of both paths at the server, in milliseconds.
    fn srtts(&self) -> [u64; 2] {
        [A, B].map(|id| self.path(id).srtt.unwrap().as_millis())
    }

    /// From which millisecond after `from` on the server has the short round-trip time of [`A`].
    fn new_way_back(&mut self, from: u64) -> Option<u64> {
        let is_short = |path: &PathView| path.srtt.is_some_and(|srtt| srtt < ms(40));
        (from..from + 5_000).find(|&t| is_short(self.until(at(t)).path(A)))
    }

    fn downloaded(&self) -> Bytes {
        self.end(Role::Client).exchange().map_or(Bytes::ZERO, |exchange| exchange.received())
    }

    /// Packets lost, found to be not lost after all, and probe timeouts, at the server.
    fn alarms(&self) -> [u64; 3] {
        let mut sum = [0; 3];
        for (_, counters) in self.connection(Role::Server).path_counters() {
            sum[0] += counters.packets_lost;
            sum[1] += counters.packets_spurious;
            sum[2] += counters.probe_timeouts;
        }
        sum
    }

    /// When an end first suspected a path after `since`.
    fn suspected(&self, role: Role, path: PathId, since: Instant) -> Option<Instant> {
        let events = self.end(role).events().iter();
        let is_it = |(when, event): &&(Instant, ConnectionEvent)| {
            *when >= since && *event == ConnectionEvent::PathSuspect(path)
        };
        events.filter(is_it).map(|(when, _)| *when).next()
    }

    fn packets_of(&self, role: Role) -> BTreeMap<PathId, u64> {
        let counters = self.connection(role).path_counters();
        counters.into_iter().map(|(path, counters)| (path, counters.packets_sent)).collect()
    }
}

fn close_to(found: [u64; 2], expected: [u64; 2]) -> bool {
    found.iter().zip(expected).all(|(&found, expected)| (expected..=expected + 3).contains(&found))
}

#[test]
fn acknowledgements_return_on_the_fastest_way_back() {
    let mut own = Setup::asymmetric("own").start();
    let found = own.until(at(5_000)).srtts();
    assert!(close_to(found, [70, 90]), "{found:?}");
    let mut run = Setup::asymmetric("min-owd").start();
    let found = run.until(at(5_000)).srtts();
    assert!(close_to(found, [20, 90]), "{found:?}");
    assert_eq!(run.path(A).min_rtt.map(Duration::as_millis), Some(20));
    assert_eq!(run.alarms(), [0; 3]);
}

#[test]
fn under_loss_the_window_grows_with_the_shorter_round_trip() {
    let [own, min_owd] = ["own", "min-owd"].map(|ack| {
        let setup = Setup { path: ["single"; 2], window: 15 << 20, ..Setup::asymmetric(ack) };
        let links = vec![[link(60), link(10).with_loss(0.01)], [link(10), link(80)]];
        let mut run = Setup { links, ..setup }.start();
        run.until(at(20_000));
        let [lost, spurious, _] = run.alarms();
        assert!(lost > 10 && spurious == 0, "{ack}: {lost}, {spurious}");
        run.downloaded().0
    });
    println!("own: {own} bytes in 20 s, min-owd: {min_owd}");
    assert!(min_owd > own * 2, "{min_owd}, {own}: round trips of 20 and 70 ms");
}

#[test]
fn the_change_comes_within_a_few_round_trips_of_the_second_path() {
    let mut run = Setup::asymmetric("min-owd").start();
    let up = (0..5_000).find(|&t| {
        let connection = run.until(at(t)).end(Role::Server).connection();
        connection.is_some_and(|connection| connection.view(at(t)).paths.usable().count() == 2)
    });
    let changed = run.new_way_back(up.unwrap());
    println!("second path at {up:?} ms, new way back at {changed:?} ms");
    assert!(changed.unwrap() < up.unwrap() + 500);
}

#[test]
fn advice_that_is_lost_is_sent_again() {
    // The way down is dark when the advice would come.
    let outage = Outage::between(at(300), at(600));
    let mut setup = Setup::asymmetric("min-owd");
    for link in &mut setup.links {
        link[1] = link[1].clone().with_outage(outage);
    }
    let mut run = setup.start();
    let changed = run.new_way_back(300).unwrap();
    println!("new way back at {changed} ms");
    assert!((600..2_000).contains(&changed), "{changed}");
}

#[test]
fn the_probe_timeout_follows_the_way_back() {
    let cut = at(5_000);
    let [own, min_owd] = ["own", "min-owd"].map(|ack| {
        let mut setup = Setup::asymmetric(ack);
        setup.links[0][1] = link(10).with_outage(Outage::for_good(cut));
        let mut run = setup.start();
        run.until(at(8_000)).suspected(Role::Server, A, cut).unwrap() - cut
    });
    println!("a dead way there is seen after {own} with own, {min_owd} with min-owd");
    assert!(min_owd + ms(40) < own, "{min_owd}, {own}");
}

#[test]
fn without_the_extension_at_either_end_it_is_own() {
    for offers in [[false, true], [true, false], [false, false]] {
        let [min_owd, own] = ["min-owd", "own"].map(|ack| {
            let mut run = Setup { offers, ..Setup::asymmetric(ack) }.start();
            run.until(at(5_000));
            assert_eq!(run.alarms(), [0; 3]);
            let packets = [Role::Client, Role::Server].map(|role| run.packets_of(role));
            (run.srtts(), run.downloaded(), packets)
        });
        assert_eq!(min_owd, own, "{offers:?}");
    }
}

#[test]
fn a_peer_with_another_policy_is_neither_moved_nor_misread() {
    for (peer, expected) in [("own", [70, 90]), ("min-rtt", [70, 140]), ("all", [20, 90])] {
        let mut run = Setup { ack: [peer, "min-owd"], ..Setup::asymmetric("") }.start();
        let found = run.until(at(5_000)).srtts();
        assert!(close_to(found, expected), "{peer}: {found:?}");
        assert_eq!(run.alarms(), [0; 3]);
    }
}

#[test]
fn acknowledgements_leave_a_return_path_that_dies() {
    for (links, what) in [(0..1, "the way up"), (0..2, "the path")] {
        let cut = at(5_000);
        let mut setup = Setup::asymmetric("min-owd");
        for link in links {
            let healthy = setup.links[1][link].clone();
            setup.links[1][link] = healthy.with_outage(Outage::for_good(cut));
        }
        let mut run = setup.start();
        let before = run.until(cut).downloaded();
        let stalled =
            (1..100).find(|&t| run.until(cut + ms(20 * t)).downloaded() > before + Bytes(60_000));
        println!("{what} dies: 60 kB more after {:?} ms", stalled.map(|t| 20 * t));
        assert!(stalled.unwrap() <= 50, "{what}");
        let found = run.until(cut + ms(5_000)).path(A).srtt.unwrap();
        assert!((ms(70)..ms(75)).contains(&found), "{what}: {found}");
        let later = run.downloaded();
        assert!(run.until(cut + ms(6_000)).downloaded() > later + Bytes(100_000), "{what}");
    }
}

#[test]
fn a_return_path_that_comes_back_is_used_again() {
    let mut setup = Setup::asymmetric("min-owd");
    setup.links[1][0] = link(10).with_outage(Outage::between(at(5_000), at(7_000)));
    let mut run = setup.start();
    assert!(run.until(at(7_000)).path(A).srtt.unwrap() >= ms(70));
    let found = run.until(at(15_000)).srtts();
    assert!(close_to(found, [20, 90]), "{found:?}");
}

#[test]
fn loss_on_the_way_back_is_harmless_with_copies_on_all_paths() {
    // Credit is lost on the way back too, so that chance decides much of a single run.
    const SEEDS: u64 = 40;
    let run = |ack, seed| {
        let plan = Plan::download(5_000_000);
        let mut setup = Setup { window: 300_000, plan, seed, ..Setup::asymmetric(ack) };
        setup.links =
            vec![[link(20).with_loss(0.3), link(20)], [link(20).with_loss(0.3), link(20)]];
        let mut run = setup.start();
        let done = (0..600).find(|&t| run.until(at(100 * t)).downloaded() == Bytes(5_000_000));
        let [lost, spurious, timeouts] = run.alarms();
        println!(
            "{ack}: done at {done:?} · 100 ms, {lost} lost, {spurious} of them spurious, {timeouts} timeouts"
        );
        [done.unwrap(), spurious, timeouts]
    };
    let [own, all] = ["own", "all"].map(|ack| {
        let runs = (0..SEEDS).map(|seed| run(ack, seed));
        runs.reduce(|sum, run| [0, 1, 2].map(|which| sum[which] + run[which])).unwrap()
    });
    // The end is seen in steps of 100 ms.
    assert!(
        all[0] <= own[0] + SEEDS && all[1] <= own[1] && all[2] * 2 < own[2],
        "{own:?}, {all:?}"
    );
}

#[test]
fn a_dead_way_back_is_not_noticed_with_copies_on_all_paths() {
    let cut = at(3_000);
    let [own, all] = ["own", "all"].map(|ack| {
        let mut setup = Setup::asymmetric(ack);
        setup.links[0][0] = link(10);
        setup.links[1][0] = link(10).with_outage(Outage::for_good(cut));
        let mut run = setup.start();
        run.until(at(6_000));
        (run.suspected(Role::Server, B, cut), run.alarms())
    });
    assert!(own.0.is_some());
    assert_eq!(all, (None, [0; 3]));
}

#[test]
fn acknowledgements_ride_on_what_leaves_next() {
    // The server's data goes on the first path, the client's on the second.
    let run = |ack, plan| {
        // Nothing is lost, so both ends always send.
        let link = || link(20).with_queue(QueueLimit::bandwidth_delay(50.0));
        let links = vec![[link(), link()], [link(), link()]];
        let path = ["single:id=1", "single:id=0"];
        let setup = Setup { path, plan, links, ..Setup::asymmetric(ack) };
        let mut run = Setup { window: 15 << 20, every: 100, ..setup }.start();
        let before = run.until(at(250)).packets_of(Role::Client)[&A];
        let after = run.until(at(750)).packets_of(Role::Client)[&A];
        assert_eq!(run.alarms(), [0; 3], "{ack}");
        after - before
    };
    let [own, any] = ["own", "any"].map(|ack| run(ack, Plan::both_ways(ENDLESS)));
    println!("packets of the client on the first path in 500 ms: {own} with own, {any} with any");
    assert!(any <= 2 && own >= 18, "{any}, {own}: one is due every 25 ms");
    // Nothing leaves to ride on.
    let [own, any] = ["own", "any"].map(|ack| run(ack, Plan::download(ENDLESS)));
    assert_eq!(any, own);
}

#[test]
fn the_least_round_trip_follows_a_way_back_that_changes_for_good() {
    let cut = at(5_000);
    let dead = link(10).with_outage(Outage::for_good(cut));
    // The second path is the faster one: all acknowledgements return on it, until it dies.
    let links = vec![[link(60), link(10)], [dead, link(30).with_outage(Outage::for_good(cut))]];
    let mut run = Setup { links, ..Setup::asymmetric("min-rtt") }.start();
    assert_eq!(run.until(cut).path(A).min_rtt.map(Duration::as_millis), Some(20));
    let least = |run: &mut Run, t| run.until(at(t)).path(A).min_rtt.unwrap();
    let followed = (5_000..10_000).step_by(10).find(|&t| least(&mut run, t) >= ms(70));
    println!("the least round-trip time follows at {followed:?} ms");
    assert!(followed.is_some_and(|t| t < 6_500), "{followed:?}");
}

/// Whatever way acknowledgements return, and however often that changes, no sample of the delivery
/// rate exceeds what the link carries.
#[test]
fn delivery_rates_stay_below_the_rate_of_the_link() {
    // 50 Mbit/s with 28 bytes above each packet of 1,350.
    let most = 50e6 * 1_350.0 / 1_378.0;
    for ack in ["own", "min-rtt", "any", "all", "min-owd"] {
        let mut setup = Setup { window: 15 << 20, ..Setup::asymmetric(ack) };
        setup.links[0][0] = link(60).with_outage(Outage::between(at(6_000), at(6_400)));
        setup.links[1][0] = link(10).with_outage(Outage::between(at(3_000), at(4_000)));
        let mut run = setup.start();
        let (mut greatest, mut samples) = (0.0_f64, 0);
        for t in 1_000..9_000 {
            run.until(at(t));
            let connection = run.connection(Role::Server);
            for view in connection.path_views() {
                let Some(sample) = connection.rate_sample(view.key) else { continue };
                greatest = greatest.max(sample.rate.bits_per_sec() as f64);
                samples += 1;
            }
        }
        println!("{ack}: {:.2} Mbit/s at most of {:.2}", greatest / 1e6, most / 1e6);
        assert!(samples > 8_000 && greatest > 0.9 * most, "{ack}: {greatest}");
        assert!(greatest < 1.02 * most, "{ack}: {greatest}");
    }
}

/// What policies read as a path's rate is what it delivers, whichever controller it has.
#[test]
fn the_rate_that_policies_see_is_measured_under_every_controller() {
    // 50 Mbit/s with 28 bytes above each packet of 1,350.
    let most = 50e6 * 1_350.0 / 1_378.0;
    for congestion in [
        "minrtt congestion=newreno",
        "minrtt congestion=cubic",
        "minrtt congestion=olia",
        "minrtt congestion=bbr",
        "minrtt congestion=bbr3",
    ] {
        let setup = Setup { path: ["minrtt", congestion], ..Setup::asymmetric("own") };
        let plan = Plan::download(10 * ENDLESS);
        let mut run = Setup { window: 15 << 20, plan, ..setup }.start();
        run.until(at(6_000));
        for view in run.connection(Role::Server).path_views() {
            let rate = view.rate.unwrap().bits_per_sec() as f64;
            println!("{congestion}: {:.2} Mbit/s of {:.2}", rate / 1e6, most / 1e6);
            assert!((0.8..1.02).contains(&(rate / most)), "{congestion}: {rate}");
        }
    }
}

/// The first path is away for three seconds, in which the second finds what it can carry; then the
/// first takes all again that credit allows. The trickle that is left shows the policy's rate, not
/// the path's.
#[test]
fn a_path_that_the_policy_starves_keeps_its_bandwidth() {
    let mut setup = Setup {
        path: ["minrtt", "minrtt congestion=bbr"],
        window: 20_000,
        plan: Plan::download(10 * ENDLESS),
        ..Setup::asymmetric("own")
    };
    let away = Outage::between(at(2_000), at(5_000));
    setup.links = vec![[link(10), link(10).with_outage(away)], [link(30), link(30)]];
    let mut run = setup.start();
    let sent = |run: &Run| run.packets_of(Role::Server)[&B];
    let bandwidth = |run: &Run| {
        let connection = run.connection(Role::Server);
        let (_, published) = connection.controllers().iter().find(|(key, _)| key.id == B).unwrap();
        published.bandwidth.unwrap().bits_per_sec()
    };
    run.until(at(5_000));
    let (found, used) = (bandwidth(&run), sent(&run));
    run.until(at(7_000));
    let before = sent(&run);
    run.until(at(12_000));
    let (kept, trickle) = (bandwidth(&run), sent(&run) - before);
    println!("found {found} b/s with {used} packets, kept {kept} over {trickle} packets");
    assert!(used > 500 && trickle < 100, "{used}, {trickle}");
    assert!(found > 2_000_000 && kept >= found / 100 * 95, "{found}, {kept}");
    let view = run.path(B);
    assert!(view.limited, "{view:?}");
    assert!(view.rate.unwrap().bits_per_sec() >= found / 100 * 95, "{view:?}");
}
