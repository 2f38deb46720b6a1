//! Priorities of both kinds, through whole page loads.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use quipu_base::Duration;
use quipu_lab::batch::run;
use quipu_lab::plan::{Cell, Plan};
use quipu_policy::{Layer, Registry};
use quipu_record::RunRecord;
use quipu_scenario::{Network, PathSpec, Priorities, Reprioritise, Scenario};
use quipu_web::layout::Viewport;
use quipu_web::page::{ObjectId, ObjectKind, Page};

const KINDS: [Priorities; 2] = [Priorities::Tree, Priorities::Urgency];

/// A load of `page` over one slow path, where order matters most.
fn scenario(page: &str, browser: &str, stream: &str, priorities: Priorities) -> Scenario {
    let link: PathSpec = "rate=6mbit,delay=15ms".parse().unwrap();
    let mut scenario = Scenario {
        pages: vec![page.to_owned()],
        browser: browser.to_owned(),
        priorities,
        runs: 1,
        networks: vec![Network::from_links(vec![link])],
        ..Scenario::default()
    };
    scenario.policies.stream = vec![stream.to_owned()];
    scenario.policies.path = vec!["minrtt".to_owned()];
    scenario.policies.baselines = false;
    scenario
}

const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

fn page_of(plan: &Plan) -> Arc<Page> {
    plan.page(CELL).unwrap().page
}

fn load(scenario: Scenario) -> (Plan, RunRecord) {
    let plan = Plan::new(scenario).unwrap();
    let record = run(&plan, CELL).unwrap();
    assert_eq!((record.refused, record.overridden), (0, 0));
    (plan, record)
}

/// Mean time from the page's first request to the end of the objects that `which` chooses.
fn mean_time(plan: &Plan, record: &RunRecord, which: impl Fn(ObjectId) -> bool) -> Duration {
    let page = page_of(plan);
    let start = record.objects.iter().map(|object| object.requested_at).min().unwrap();
    let chosen =
        record.objects.iter().filter(|object| which(page.objects()[object.object as usize].id));
    let times: Vec<u64> = chosen.map(|object| (object.completed_at - start).as_nanos()).collect();
    assert!(!times.is_empty());
    Duration::from_nanos(times.iter().sum::<u64>() / times.len() as u64)
}

#[test]
fn every_stream_policy_runs_on_both_kinds_of_pages() {
    let registry = Registry::builtin();
    let streams: Vec<&str> = registry.of(Layer::Stream).map(|entry| entry.name).collect();
    assert!(streams.contains(&"wrr"));
    for browser in ["chrome", "firefox", "safari", "none"] {
        for priorities in KINDS {
            for stream in &streams {
                load(scenario("framework-youtube", browser, stream, priorities));
            }
        }
    }
}

/// What a page needs first comes earlier if the order is by the tree, also by one that stands for
/// urgencies.
#[test]
fn a_policy_that_goes_by_the_tree_serves_urgencies() {
    for browser in ["chrome", "firefox"] {
        for priorities in KINDS {
            let urgent = |stream: &str| {
                let (plan, record) =
                    load(scenario("framework-youtube", browser, stream, priorities));
                mean_time(&plan, &record, |object| {
                    let page = page_of(&plan);
                    let object = page.object(object).unwrap();
                    matches!(object.kind, ObjectKind::Document | ObjectKind::Stylesheet)
                })
            };
            let (by_turns, by_tree) = (urgent("rr"), urgent("wrr"));
            println!("{browser} by {priorities}: {by_turns} by turns, {by_tree} by the tree");
            assert!(by_tree < by_turns, "{browser} by {priorities}");
        }
    }
}

/// Over the same path and with the same policy, images in view are there earlier if Chrome tells that
/// they are. Where its guess before layout was right, urgencies gain nothing by layout.
#[test]
fn images_in_view_are_promoted_at_layout() {
    for (page, priorities) in [
        ("framework-amazon", Priorities::Tree),
        ("greenweb", Priorities::Urgency),
        ("ilmessaggero", Priorities::Tree),
        ("ilmessaggero", Priorities::Urgency),
    ] {
        let visible = |reprioritise| {
            let mut scenario = scenario(page, "chrome", "wrr", priorities);
            scenario.reprioritise = reprioritise;
            let images = scenario.visible_images as usize;
            let (plan, record) = load(scenario);
            let viewport = Viewport::of(&page_of(&plan), images);
            mean_time(&plan, &record, |object| viewport.is_visible(object))
        };
        let (before, after) = (visible(Reprioritise::Off), visible(Reprioritise::Browser));
        println!("{page} by {priorities}: images in view {before}, promoted {after}");
        assert!(after < before, "{page} by {priorities}");
    }
}

#[test]
fn only_chrome_tells_what_layout_shows() {
    for (browser, tells) in [("chrome", true), ("safari", false)] {
        let record = |reprioritise| {
            let mut scenario = scenario("framework-amazon", browser, "wrr", Priorities::Tree);
            scenario.reprioritise = reprioritise;
            load(scenario).1
        };
        let same = record(Reprioritise::Off).objects == record(Reprioritise::Browser).objects;
        assert_eq!(same, !tells, "{browser}");
    }
}

#[test]
fn browsers_without_urgencies_are_refused() {
    for browser in ["mobileh2", "framework-chrome"] {
        let error = Plan::new(scenario("framework-youtube", browser, "rr", Priorities::Urgency))
            .unwrap_err();
        let expected = "a browser with urgencies: chrome, firefox, none, safari";
        assert!(error.to_string().contains(expected), "{error}");
    }
}
