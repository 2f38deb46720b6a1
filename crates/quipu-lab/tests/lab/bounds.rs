//! No run beats its bounds: random pages over random networks with every policy.
//!
//! `cargo test` does a slice; `QUIPU_BOUNDS=100000 cargo test --release -p quipu-lab --test lab bounds` all.

use quipu_base::{Bytes, Duration, Random, Seed};
use quipu_lab::batch::run_session;
use quipu_lab::pages::PlannedPage;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::policies::Registry;
use quipu_policy::registry::Layer;
use quipu_record::{Bounds, ObjectRecord, RunRecord};
use quipu_scenario::{
    CrossSpec, Discovery, FlowSpec, HttpVersion, LossDetection, Network, PathSpec, Push, Scenario,
    Start,
};
use quipu_web::page::{Blocking, Discovery as Found, NotHeld, Object, ObjectId, ObjectKind, Page};
use rand::RngExt;

/// Cases that `cargo test` does.
const SLICE: u64 = 150;

/// Mostly one, with a share of `percent` the other.
fn rarely<T>(
    random: &mut Random,
    percent: u32,
    usual: T,
    rare: impl FnOnce(&mut Random) -> T,
) -> T {
    if random.random_range(0..100) < percent { rare(random) } else { usual }
}

fn pick<'a, T: ?Sized>(random: &mut Random, list: &[&'a T]) -> &'a T {
    list[random.random_range(0..list.len())]
}

/// Spread over orders of magnitude.
fn scaled(random: &mut Random, least: f64, most: f64) -> f64 {
    least * libm::pow(most / least, random.random_range(0.0..1.0))
}

fn link(random: &mut Random, prefix: &str) -> String {
    let rate = scaled(random, 0.2, 400.0);
    let delay = scaled(random, 0.2, 120.0);
    let delay = rarely(random, 10, delay, |_| 0.0);
    let recorded = random.random_range(0..8) == 0;
    let source = if recorded {
        let trace = pick(random, &["us-drive-08-att", "us-drive-08-verizon"]);
        let from = pick(random, &["0s", "7s", "random"]);
        format!("{prefix}trace={trace},{prefix}from={from}")
    } else {
        format!("{prefix}rate={rate:.3}mbit")
    };
    let mut text = format!("{source},{prefix}delay={:.0}us", delay * 1_000.0);
    let mut add = |field: &str, value: String| text.push_str(&format!(",{prefix}{field}={value}"));
    if random.random_range(0..4) == 0 {
        let jitter = (delay * 1_000.0 * random.random_range(0.0..1.0)).floor();
        add("jitter", format!("{jitter:.0}us"));
        if random.random_range(0..2) == 0 {
            add("jitter_correlation", "30%".to_owned());
        }
    }
    if random.random_range(0..3) == 0 {
        add("loss", format!("{:.2}%", scaled(random, 0.05, 8.0)));
    }
    if !recorded && random.random_range(0..5) == 0 {
        let mut at = 0.0;
        let steps = (0..random.random_range(1..6)).map(|_| {
            at += scaled(random, 1.0, 800.0);
            format!("{:.0}us:{:.3}mbit", at * 1_000.0, scaled(random, 0.2, 400.0))
        });
        add("steps", steps.collect::<Vec<_>>().join("+"));
    }
    if random.random_range(0..8) == 0 {
        for _ in 0..random.random_range(1..4) {
            let from = scaled(random, 1.0, 2_000.0) * 1_000.0;
            let until = from + scaled(random, 1.0, 600.0) * 1_000.0;
            add("outage", format!("{from:.0}us..{until:.0}us"));
        }
    }
    if random.random_range(0..6) == 0 {
        add("queue", format!("{}p", random.random_range(4..60)));
    }
    if random.random_range(0..10) == 0 {
        add("reorder", format!("5%+{:.0}us", scaled(random, 1.0, 40.0) * 1_000.0));
    }
    if random.random_range(0..10) == 0 {
        add("duplicate", format!("20%+{:.0}us", scaled(random, 0.01, 20.0) * 1_000.0));
    }
    text
}

fn network(random: &mut Random) -> Network {
    let count = [1, 2, 2, 2, 3][random.random_range(0..5)];
    let path = |index: usize, random: &mut Random| -> PathSpec {
        let access =
            rarely(random, 25, String::new(), |random| format!(",{}", link(random, "access.")));
        let own = if index > 0 && random.random_range(0..4) == 0 {
            format!("bottleneck=p{}", random.random_range(0..index))
        } else {
            let up =
                rarely(random, 40, String::new(), |random| format!(",{}", link(random, "up.")));
            format!("{}{up}", link(random, ""))
        };
        format!("name=p{index},{own}{access}").parse().unwrap()
    };
    Network::from_links((0..count).map(|index| path(index, random)).collect())
}

fn page(random: &mut Random) -> Page {
    let count = random.random_range(1..12);
    let object = |id: u32, random: &mut Random| {
        let kind = if id == 0 { ObjectKind::Document } else { ObjectKind::Image };
        let most = [2_000.0, 30_000.0, 400_000.0][random.random_range(0..3)];
        let bytes = scaled(random, 1.0, most) as u64;
        let bytes = rarely(random, 5, bytes, |_| 0);
        let mut object =
            Object::new(ObjectId(id), format!("https://a.test/{id}"), kind, Bytes(bytes));
        let millis = |random: &mut Random| {
            Duration::from_micros((scaled(random, 0.01, 100.0) * 1_000.0) as u64)
        };
        object.think_time = rarely(random, 40, Duration::ZERO, millis);
        object.request.body =
            rarely(random, 15, Bytes::ZERO, |random| Bytes(scaled(random, 1.0, 30_000.0) as u64));
        object.blocking = rarely(random, 30, Blocking::None, |_| Blocking::Render);
        object.not_held =
            if id > 0 { rarely(random, 15, None, |_| Some(NotHeld::Beacon)) } else { None };
        object
    };
    let mut objects: Vec<Object> = (0..count).map(|id| object(id, random)).collect();
    for index in 1..objects.len() {
        let parent = random.random_range(0..index);
        let body = objects[parent].response_bytes.0;
        let parent = ObjectId(parent as u32);
        objects[index].discovery = match random.random_range(0..5) {
            0 => Found::Root,
            1 => Found::AfterCompletion { parent },
            _ => Found::ParserOffset { parent, offset: Bytes(random.random_range(0..=body)) },
        };
        objects[index].gap.computing = rarely(random, 20, Duration::ZERO, |random| {
            Duration::from_micros(random.random_range(0..60_000))
        });
        if random.random_range(0..4) == 0 {
            objects[index].waits_for.push(ObjectId(random.random_range(0..index) as u32));
        }
    }
    Page::new("random", objects).unwrap()
}

/// A policy of a layer, by its name.
fn policy(random: &mut Random, layer: Layer) -> String {
    let registry = Registry::builtin();
    let names: Vec<&str> = registry.of(layer).map(|entry| entry.name).collect();
    pick(random, &names).to_owned()
}

fn scenario(case: u64) -> Scenario {
    let mut random = Seed::new(case).stream("bounds", 0);
    let random = &mut random;
    let mut scenario = Scenario {
        seed: case,
        runs: 1,
        pages: vec!["framework-youtube".to_owned()],
        browser: pick(random, &["chrome", "firefox", "safari", "none"]).to_owned(),
        time_limit: Duration::from_secs(60),
        networks: vec![network(random)],
        ..Scenario::default()
    };
    scenario.host_jitter = Duration::from_micros([0, 0, 100, 3_000][random.random_range(0..4)]);
    scenario.discovery = rarely(random, 15, Discovery::Recorded, |_| Discovery::AllAtOnce);
    scenario.session = rarely(random, 10, 1, |_| 2);
    let policies = &mut scenario.policies;
    policies.stream = vec![policy(random, Layer::Stream)];
    policies.path = vec![policy(random, Layer::Path)];
    policies.joint = Vec::new();
    if random.random_range(0..5) == 0 {
        policies.stream.clear();
        policies.path.clear();
        policies.joint = vec![policy(random, Layer::Joint)];
    }
    policies.ack = policy(random, Layer::Ack);
    policies.congestion =
        rarely(random, 60, "newreno".to_owned(), |random| policy(random, Layer::Congestion));
    policies.reinject =
        rarely(random, 15, "none".to_owned(), |random| policy(random, Layer::Reinject));
    policies.resend =
        rarely(random, 30, "default".to_owned(), |random| policy(random, Layer::Resend));
    policies.baselines = false;
    let transport = &mut scenario.transport;
    transport.start = match random.random_range(0..10) {
        0 | 1 => Start::PathsReady,
        2 => Start::Warm(random.random_range(1..5)),
        _ => Start::Cold,
    };
    transport.initial_window = [1, 2, 3, 10, 10, 32][random.random_range(0..6)];
    transport.udp_payload = Bytes([1_200, 1_350, 1_350, 1_472, 9_000][random.random_range(0..5)]);
    transport.certificate_chain =
        Bytes([100, 1_000, 3_000, 3_000, 9_000][random.random_range(0..5)]);
    transport.pacing = random.random_range(0..4) > 0;
    transport.ecn = random.random_range(0..4) == 0;
    transport.ack_every = [1, 2, 2, 10][random.random_range(0..4)];
    transport.initial_rtt = Duration::from_millis([5, 100, 250, 333][random.random_range(0..4)]);
    transport.least_probe_timeout = Duration::from_millis([0, 0, 200][random.random_range(0..3)]);
    transport.loss_detection =
        rarely(random, 30, LossDetection::PacketsOrTime, |_| LossDetection::Time);
    transport.server_write_chunk = rarely(random, 15, None, |_| Some(Bytes(32 << 10)));
    scenario.link_overhead = Bytes([0, 28, 28, 48][random.random_range(0..4)]);
    match random.random_range(0..20) {
        0 | 1 => scenario = scenario.with_field("http", "h2-tcp").unwrap(),
        6..=8 if scenario.browser != "none" => {
            scenario = scenario.with_field("http", "h3").unwrap();
        }
        2 | 3 if !matches!(scenario.transport.start, Start::Warm(_)) => {
            scenario = scenario.with_field("http", "raw").unwrap();
            scenario.session = 1;
            let sender = pick(random, &["server", "client"]);
            scenario = scenario.with_field("raw.sender", sender).unwrap();
            let order = pick(random, &["given", "random"]);
            scenario = scenario.with_field("raw.order", order).unwrap();
        }
        4 => scenario.flows = vec![FlowSpec { bytes: Some(Bytes(40_000)), ..FlowSpec::new("f") }],
        5 => {
            let text = "name = \"c\"\nrate = \"300kbit\"\nkind = \"poisson\"";
            let cross: Result<CrossSpec, _> = toml::from_str(text);
            scenario.cross = cross.into_iter().collect();
        }
        _ => {}
    }
    if !scenario.http.is_raw() && !scenario.http.has(HttpVersion::H3) {
        let mut random = Seed::new(case).stream("push", 0);
        scenario.push = rarely(&mut random, 30, Push::None, |random| {
            [Push::Critical, Push::Images, Push::Assets][random.random_range(0..3)]
        });
    }
    scenario
}

/// What a case gave.
enum Outcome {
    /// It makes no sense: policies that do not go together, a path that a policy has not.
    NoPlan,
    /// It did not end.
    NoEnd,
    /// What was measured of each page, with its bounds.
    Loads(Vec<RunRecord>),
}

fn outcome(case: u64) -> Outcome {
    let Ok(mut plan) = Plan::new(scenario(case)) else { return Outcome::NoPlan };
    if plan.networks[0].policies.is_empty() {
        return Outcome::NoPlan;
    }
    let made = page(&mut Seed::new(case).stream("page", 0));
    plan.pages = vec![PlannedPage::of_page(made, Seed::new(case)).unwrap()];
    let cell = Cell { page: 0, network: 0, policy: 0, run: 0 };
    run_session(&plan, cell).map_or(Outcome::NoEnd, Outcome::Loads)
}

/// What is wrong with the bounds of a load. Only what carries nothing, an empty object of a raw stream
/// over paths without delay, may be bound by nothing.
fn faults(record: &RunRecord) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |what: String, bound: Bounds, measured: Duration, carries: bool| {
        let Bounds { fluid, tight } = bound;
        let says_something = fluid > Duration::ZERO || !carries;
        if !(says_something && fluid <= tight && tight <= measured) {
            let (fluid, tight, found) = (fluid.as_nanos(), tight.as_nanos(), measured.as_nanos());
            faults.push(format!("{what}: fluid {fluid}, tight {tight}, measured {found}"));
        }
    };
    let has_body = |object: &ObjectRecord| object.body > Bytes::ZERO;
    let held = record.objects.iter().any(|object| object.held && has_body(object));
    check("page".to_owned(), record.page_bound, record.page_time, held);
    if !record.critical_time.is_zero() {
        let document = record.objects.first().is_some_and(has_body);
        check("critical".to_owned(), record.critical_bound, record.critical_time, document);
    }
    for object in &record.objects {
        let (name, body) = (format!("object {}", object.object), has_body(object));
        check(name, object.bound, object.since_page_start, body);
    }
    faults
}

#[test]
fn no_load_beats_its_bounds() {
    let cases = std::env::var("QUIPU_BOUNDS").map_or(SLICE, |text| text.parse().unwrap());
    let first = std::env::var("QUIPU_FIRST_BOUND").map_or(0, |text| text.parse().unwrap());
    let (mut failures, mut loads, mut no_plan, mut no_end) = (Vec::new(), 0_u64, 0_u64, 0_u64);
    let mut ratios: [Vec<f64>; 2] = Default::default();
    for case in first..first + cases {
        match outcome(case) {
            Outcome::NoPlan => no_plan += 1,
            Outcome::NoEnd => no_end += 1,
            Outcome::Loads(of_case) => {
                for record in &of_case {
                    loads += 1;
                    let found = faults(record);
                    failures.extend(found.iter().map(|fault| format!("case {case}: {fault}")));
                    let Bounds { fluid, tight } = record.page_bound;
                    for (ratios, bound) in ratios.iter_mut().zip([fluid, tight]) {
                        let bound = bound.as_nanos().max(1) as f64;
                        ratios.push(record.page_time.as_nanos() as f64 / bound);
                    }
                }
            }
        }
    }
    for (name, ratios) in ["fluid", "tight"].iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let at = |share: usize| ratios.get(ratios.len() * share / 100).copied().unwrap_or(0.0);
        let least = ratios.first().copied().unwrap_or(0.0);
        println!("page time over the {name} bound: least {least:.4}, median {:.2}", at(50));
    }
    println!("{cases} cases: {loads} loads, {no_end} without end, {no_plan} without sense");
    let told: Vec<_> = failures.iter().take(40).cloned().collect();
    assert!(failures.is_empty(), "{} beaten:\n{}", failures.len(), told.join("\n"));
    assert!(loads * 2 > cases, "too few loads to say anything");
}

/// One path without anything that takes time, and one large object: what is left above the bound is the
/// protocol's.
#[test]
fn a_large_object_over_one_clean_path_is_within_a_few_percent_of_its_bound() {
    let object =
        Object::new(ObjectId(0), "https://a.test/", ObjectKind::Document, Bytes(30_000_000));
    let page = Page::new("large", vec![object]).unwrap();
    let mut scenario = Scenario { runs: 1, host_jitter: Duration::ZERO, ..Scenario::default() };
    scenario.networks = vec![Network::from_links(vec!["rate=50mbit,delay=10ms".parse().unwrap()])];
    scenario.policies.stream = vec!["rr".to_owned()];
    let mut plan = Plan::new(scenario).unwrap();
    plan.pages = vec![PlannedPage::of_page(page, Seed::new(1)).unwrap()];
    let cell = Cell { page: 0, network: 0, policy: 0, run: 0 };
    let record = run_session(&plan, cell).unwrap().remove(0);
    let over = |bound: Duration| record.page_time.as_secs_f64() / bound.as_secs_f64();
    let [fluid, tight] = [record.page_bound.fluid, record.page_bound.tight].map(over);
    assert!((1.0..1.03).contains(&fluid), "{fluid} times the fluid bound");
    assert!((1.0..1.02).contains(&tight), "{tight} times the tight bound");
}
