//! What the papers report about their schedulers, as far as it holds here, and what explains the
//! rest: `docs/reproduction.md` has the numbers over all runs, these tests hold the directions with
//! few. Each reads its paper's scenario file in `experiments/`.

use std::path::Path;

use quipu_base::{Duration, Seed};
use quipu_lab::batch::run;
use quipu_lab::plan::{Cell, Plan};
use quipu_link::QueueLimit;
use quipu_record::RunRecord;
use quipu_record::stats::{Comparison, Ratio};
use quipu_scenario::{Discovery, LossDetection, Scenario};

const RUNS: u32 = 3;

type Metric = fn(&RunRecord) -> Duration;
const PAGE: Metric = |record| record.page_time;
const OBJECTS: Metric = |record| record.object_index;
const CRITICAL: Metric = |record| record.critical_time;

/// A page over a network of a scenario file, with some of its policies.
struct Figure {
    plan: Plan,
}

impl Figure {
    fn of(file: &str, page: &str, network: &str) -> Figure {
        Figure::changed(file, page, network, |_| {})
    }

    fn changed(
        file: &str,
        page: &str,
        network: &str,
        change: impl FnOnce(&mut Scenario),
    ) -> Figure {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut scenario = Scenario::load(&folder.join(file)).unwrap();
        assert!(scenario.pages.iter().any(|name| name == page), "{file} has no {page}");
        scenario.pages = vec![page.to_owned()];
        scenario.networks.retain(|candidate| candidate.name == network);
        scenario.runs = RUNS;
        change(&mut scenario);
        Figure { plan: Plan::new(scenario).unwrap() }
    }

    /// All runs of the policy called `label`.
    fn records(&self, label: &str) -> Vec<RunRecord> {
        let policies = &self.plan.networks[0].policies;
        let policy = policies.iter().position(|row| row.label == label).unwrap();
        (0..RUNS)
            .map(|number| Cell { page: 0, network: 0, policy, run: number })
            .map(|cell| run(&self.plan, cell).unwrap())
            .collect()
    }

    /// The ratio of `label` to `base` over the paired runs, as `quipu compare` prints it.
    fn ratio(&self, label: &str, base: &str, metric: Metric) -> f64 {
        ratio(&self.records(label), &self.records(base), metric)
    }
}

fn ratio(records: &[RunRecord], base: &[RunRecord], metric: Metric) -> f64 {
    let pairs: Vec<_> = records
        .iter()
        .zip(base)
        .map(|(record, base)| (metric(record).as_nanos(), metric(base).as_nanos()))
        .collect();
    let Ratio { mean, .. } = Comparison::new(Seed::new(1), true).ratio(&pairs).unwrap();
    mean
}

/// A page of MobileH2, its objects found as a browser finds them, acknowledged on their own path.
fn mobileh2(page: &str, network: &str, change: impl FnOnce(&mut Scenario)) -> Figure {
    let file = format!("mobileh2/mh-fig3{}.toml", if page == "google" { 'a' } else { 'b' });
    Figure::changed(&file, &format!("mobileh2-{page}"), network, |scenario| {
        scenario.discovery = Discovery::Recorded;
        scenario.policies.ack = "own".to_owned();
        change(scenario);
    })
}

fn parallel(file: &str, network: &str) -> Figure {
    Figure::of(file, "pw-pats-parallel", network)
}

#[track_caller]
fn within(what: &str, value: f64, range: std::ops::RangeInclusive<f64>) {
    println!("{what}: {value:.3}");
    assert!(range.contains(&value), "{what}: {value:.3} is not in {range:?}");
}

/// Measured: 0.564 at 5 Mb/s.
#[test]
fn pw_pats_halves_the_style_sheets_time_over_unequal_rates() {
    let figure = parallel("pw-pats/pp-fig8.toml", "x5");
    let base = figure.records("rr + minrtt");
    let pw_pats = figure.records("pw-pats");
    within("critical", ratio(&pw_pats, &base, CRITICAL), 0.45..=0.67);
    within("page", ratio(&pw_pats, &base, PAGE), 0.93..=1.02);
}

/// Measured from 0.480 to 0.562 of LowRTT's time from 50 to 500 ms; LowRTT's grows with the delay.
#[test]
fn pw_pats_halves_the_style_sheets_time_over_unequal_delays() {
    let mut slowest = Duration::ZERO;
    for network in ["d50", "d200", "d500"] {
        let figure = parallel("pw-pats/pp-fig9.toml", network);
        let base = figure.records("rr + minrtt");
        within(network, ratio(&figure.records("pw-pats"), &base, CRITICAL), 0.40..=0.67);
        assert!(base[0].page_time > slowest, "{network}: {}", base[0].page_time);
        slowest = base[0].page_time;
    }
}

/// The control that the paper does not have. At 5 Mb/s the two are equal to a thousandth, over three
/// paths both have 0.649 of LowRTT's time.
#[test]
fn strict_order_with_minrtt_explains_the_gain_of_pw_pats() {
    for (file, network) in [
        ("pw-pats/pp-fig8.toml", "x5"),
        ("pw-pats/pp-fig9.toml", "d100"),
        ("pw-pats/pp-fig12.toml", "pwpats-three"),
    ] {
        let figure = parallel(file, network);
        let share = figure.ratio("pw-pats", "strict + minrtt", CRITICAL);
        within(network, share, 0.94..=1.06);
    }
}

/// The paper has −28.7 % for the style sheet and −7 % for the page; measured −35 % and 0 %.
#[test]
fn pw_pats_speeds_the_style_sheet_up_against_pats_over_three_paths() {
    let figure = parallel("pw-pats/pp-fig12.toml", "pwpats-three");
    let (pw_pats, pats) = (figure.records("pw-pats"), figure.records("rr + pats"));
    within("critical", ratio(&pw_pats, &pats, CRITICAL), 0.55..=0.80);
    within("page", ratio(&pw_pats, &pats, PAGE), 0.96..=1.04);
}

/// Over three paths the first windows overshoot the queues, and bytes of the style sheet wait to be
/// sent again. Without loss PW-PATS has 0.51 of LowRTT's time instead of 0.76.
#[test]
fn losses_of_slow_start_take_much_of_pw_pats_gain_over_three_paths() {
    let lossless =
        Figure::changed("pw-pats/pp-fig12.toml", "pw-pats-parallel", "pwpats-three", |scenario| {
            for path in &mut scenario.networks[0].paths {
                path.own_links_mut().unwrap().down.queue = QueueLimit::Unlimited.into();
            }
        });
    let with_loss = parallel("pw-pats/pp-fig12.toml", "pwpats-three");
    let gain = lossless.ratio("pw-pats", "rr + minrtt", CRITICAL);
    within("without loss", gain, 0.40..=0.55);
    within("with loss", with_loss.ratio("pw-pats", "rr + minrtt", CRITICAL), 0.57..=0.80);
}

/// PATS that binds packets only to paths with room is minRTT (schedulers.md, 2.6).
#[test]
fn pats_bound_to_open_paths_is_minrtt() {
    for (file, network) in [("pw-pats/pp-fig8.toml", "x15"), ("pw-pats/pp-fig9.toml", "d300")] {
        let figure = parallel(file, network);
        let (pats, minrtt) =
            (figure.records("rr + pats:bind=literal"), figure.records("rr + minrtt"));
        assert_eq!(pats[0].objects, minrtt[0].objects, "{network}");
        assert_eq!(pats[0].paths, minrtt[0].paths, "{network}");
    }
}

/// The paper has FStream's page before PW-PATS's at high rates. Here the window and the queue of the
/// path of 1 Mb/s take up to a second, and FStream keeps the style sheet out of them (0.292 of
/// LowRTT's time against 0.481 at 15 Mb/s). With a queue of 5 packets PW-PATS is the faster one up
/// to 10 Mb/s.
#[test]
fn fstream_passes_pw_pats_at_high_rates_by_leaving_the_slow_queue_alone() {
    let deep = parallel("pw-pats/pp-fig8.toml", "x15");
    within("50 packets", deep.ratio("fstream", "pw-pats", CRITICAL), 0.55..=0.85);
    within("50 packets, page", deep.ratio("fstream", "pw-pats", PAGE), 0.85..=0.97);
    let short = Figure::changed("pw-pats/pp-fig8.toml", "pw-pats-parallel", "x10", |scenario| {
        let slow = scenario.networks[0].paths[1].own_links_mut().unwrap();
        slow.down.queue = QueueLimit::packets(5).into();
    });
    within("5 packets", short.ratio("fstream", "pw-pats", CRITICAL), 1.05..=1.30);
}

/// Measured 0.619 to 0.727 of the mean object time, page 0.971 to 1.071; the paper: objects clearly
/// sooner, the page nearly as before.
#[test]
fn sec_ends_objects_sooner_and_leaves_the_large_page_as_it_was() {
    for network in ["mobileh2-low", "mobileh2-low-lossy", "mobileh2-high", "mobileh2-high-lossy"] {
        let figure = mobileh2("amazon", network, |_| {});
        let base = figure.records("wrr + minrtt");
        let sec = figure.records("sec");
        within(network, ratio(&sec, &base, OBJECTS), 0.50..=0.85);
        within(network, ratio(&sec, &base, PAGE), 0.92..=1.12);
    }
}

/// `fsp` is SEC's order of streams without its allotment to paths.
#[test]
fn the_order_of_streams_explains_the_gain_of_sec() {
    for network in ["mobileh2-low", "mobileh2-high"] {
        let figure = mobileh2("amazon", network, |_| {});
        within(network, figure.ratio("sec", "fsp + minrtt", OBJECTS), 0.97..=1.06);
    }
}

/// Of the small page most objects wait to be found; what is asked for at once SEC can order
/// (0.743 and 0.766 against 0.985 and 1.008).
#[test]
fn discovery_hides_the_gain_of_sec_on_the_small_page() {
    for network in ["mobileh2-low", "mobileh2-high"] {
        let found = mobileh2("google", network, |_| {});
        let share = found.ratio("sec", "wrr + minrtt", OBJECTS);
        within(network, share, 0.90..=1.08);
        let at_once = mobileh2("google", network, |scenario| {
            scenario.discovery = Discovery::AllAtOnce;
        });
        let share = at_once.ratio("sec", "wrr + minrtt", OBJECTS);
        within(network, share, 0.55..=0.85);
    }
}

/// The waiting of ECF does not act on these paths: the runs are those of the rounds with minRTT.
#[test]
fn sa_ecf_as_described_needs_the_time_of_its_rounds_over_clean_paths() {
    for page in ["framework-google", "framework-youtube", "framework-amazon"] {
        let figure = Figure::of("framework/fw-fig6.toml", page, "low-b");
        let share = figure.ratio("sa-ecf", "wrr:mode=quantum + minrtt", PAGE);
        within(page, share, 0.97..=1.03);
    }
}

/// The port waits where losses have made windows small; over clean paths it does so less. Measured
/// 1.036, 1.032 and 1.132; the authors' figures have +10 to +29 %.
#[test]
fn sa_ecf_as_built_is_hardly_slower_over_clean_paths() {
    for page in ["framework-google", "framework-youtube", "framework-amazon"] {
        let figure = Figure::of("framework/fw-fig6.toml", page, "low-b");
        let share = figure.ratio("sa-ecf:mode=as-built", "sa-ecf", PAGE);
        within(page, share, 0.96..=1.15);
    }
}

/// Measured 0.949 where Wi-Fi's way up takes 150 ms and all objects are requested at once; the paper has
/// −8.5 %. Where objects are found as a browser finds them it is 0.986.
#[test]
fn min_owd_shortens_the_load_where_an_uplink_is_slow() {
    let share = |discovery: Discovery| {
        let [min_owd, own] = ["min-owd", "own"].map(|ack| {
            let (file, page) = ("mobileh2/mh-fig4.toml", "mobileh2-amazon");
            Figure::changed(file, page, "70", |scenario| {
                scenario.discovery = discovery;
                scenario.policies.ack = ack.to_owned();
            })
            .records("wrr + minrtt")
        });
        ratio(&min_owd, &own, PAGE)
    };
    within("at once", share(Discovery::AllAtOnce), 0.92..=0.97);
    within("recorded", share(Discovery::Recorded), 0.97..=1.00);
}

/// Measured 0.946 of the small page's time over 10 and 50 ms, clean.
#[test]
fn min_owd_shortens_the_load_over_unlike_paths() {
    let [min_owd, own] = ["min-owd", "own"].map(|ack| {
        let change = |scenario: &mut Scenario| scenario.policies.ack = ack.to_owned();
        mobileh2("google", "mobileh2-high", change).records("wrr + minrtt")
    });
    within("page", ratio(&min_owd, &own, PAGE), 0.92..=0.98);
}

/// Wi-Fi's level goes from clean to medium to high. By a count of packets reordering counts as loss; by time
/// alone, as mp-quic has it, page time hardly grows.
#[test]
fn page_time_grows_with_dynamicity_where_packets_tell_losses() {
    for policy in ["wrr:mode=quantum + minrtt", "sa-ecf"] {
        let mut slowest = Duration::ZERO;
        for network in ["low-a", "medium", "high"] {
            let change = |scenario: &mut Scenario| {
                scenario.transport.loss_detection = LossDetection::PacketsOrTime;
            };
            let (file, page) = ("framework/fw-fig6.toml", "framework-amazon");
            let figure = Figure::changed(file, page, network, change);
            let records = figure.records(policy);
            let sum = records.iter().map(|record| record.page_time.as_nanos()).sum::<u64>();
            let mean = Duration::from_nanos(sum / u64::from(RUNS));
            println!("{policy}, {network}: {mean}");
            assert!(mean > slowest, "{policy}, {network}: {mean} after {slowest}");
            slowest = mean;
        }
    }
}
