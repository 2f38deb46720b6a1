//! Priorities of both kinds, through whole page loads.

use std::sync::Arc;

use proptest::prelude::*;
use quipu_base::{Duration, StreamId};
use quipu_lab::batch::run;
use quipu_lab::plan::{Cell, Plan};
use quipu_policy::{Layer, NodeId, NodeKey, Priorities as Tree, PriorityEdit, Registry};
use quipu_record::RunRecord;
use quipu_scenario::{Network, PathSpec, Priorities, Reprioritise, Scenario};
use quipu_web::layout::Viewport;
use quipu_web::page::{ChromePriority, ObjectId, ObjectKind, Page};
use quipu_web::scheme::{BrowserScheme, Dependency, RequestFacts, Signal};

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

proptest! {
    /// Whatever moves, what was told makes the server's tree the chain: by level, then by time of opening
    /// or moving.
    #[test]
    fn what_is_told_keeps_the_tree_a_chain(
        steps in proptest::collection::vec((0_usize..5, 0_usize..3, 0_usize..20), 1..60),
    ) {
        const LEVELS: [ChromePriority; 5] = ChromePriority::ALL;
        let facts = |level| {
            let mut facts = RequestFacts::of_kind(ObjectKind::Image);
            facts.recorded = Some(LEVELS[level]);
            facts
        };
        let mut session = BrowserScheme::builtin("chrome").unwrap().session();
        let mut tree = Tree::new();
        // In the order of the chain.
        let mut open: Vec<(usize, StreamId)> = Vec::new();
        let place = |open: &mut Vec<_>, level, stream| {
            let at = open.partition_point(|&(other, _)| other <= level);
            open.insert(at, (level, stream));
        };
        let node = |stream: StreamId| if stream.0 == 0 { NodeId::ROOT } else { NodeId(stream.0) };
        for (next, (level, what, which)) in (1_u64..).zip(steps) {
            if what == 0 && !open.is_empty() {
                let at = which % open.len();
                let (old, stream) = open.remove(at);
                let change = session.reprioritise(&facts(level), stream);
                prop_assert_eq!(change.is_some(), old != level);
                if old == level {
                    open.insert(at, (level, stream));
                    continue;
                }
                place(&mut open, level, stream);
                for (moved, Dependency { parent, weight, exclusive }) in change.unwrap().places {
                    let (node, parent) = (node(moved), node(parent));
                    tree.apply(&PriorityEdit::Move { node, parent, weight, exclusive }, None).unwrap();
                }
            } else if what == 1 && !open.is_empty() {
                let (_, stream) = open.remove(which % open.len());
                session.on_closed(stream);
                tree.apply(&PriorityEdit::Remove { node: node(stream) }, None).unwrap();
            } else {
                let stream = StreamId(next * 4);
                let Signal { parent, weight, exclusive, .. } =
                    session.priority_for(&facts(level), stream);
                let (node, parent) = (node(stream), node(parent));
                tree.apply(&PriorityEdit::Insert { node, parent, weight, exclusive }, None).unwrap();
                place(&mut open, level, stream);
            }
            let mut chain = Vec::new();
            let mut at = NodeKey::ROOT;
            while let Some(&[only]) = tree.node(at).map(|node| node.children.as_slice()) {
                at = only;
                chain.push(tree.node(at).unwrap().id.0);
            }
            let expected: Vec<u64> = open.iter().map(|(_, stream)| stream.0).collect();
            prop_assert_eq!(chain, expected);
        }
    }
}
