//! Server push, through whole page loads.

use quipu_base::Duration;
use quipu_lab::batch::{run, run_session};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::table::{WaterfallOptions, waterfall};
use quipu_record::{ObjectRecord, RunRecord};
use quipu_scenario::{Discovery, Network, Priorities, Push, Scenario};

const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

fn scenario(page: &str, browser: &str, push: Push) -> Scenario {
    let mut scenario = Scenario {
        pages: vec![page.to_owned()],
        browser: browser.to_owned(),
        push,
        runs: 1,
        networks: vec![Network::from_links(vec!["rate=20mbit,delay=30ms".parse().unwrap()])],
        ..Scenario::default()
    };
    scenario.policies.stream = vec!["wrr".to_owned()];
    scenario.policies.path = vec!["minrtt".to_owned()];
    scenario.policies.baselines = false;
    scenario
}

/// The load, and the numbers of the objects that the scenario says are pushed.
fn load(scenario: Scenario) -> (RunRecord, Vec<u32>) {
    let plan = Plan::new(scenario).unwrap();
    let record = run(&plan, CELL).unwrap();
    assert_eq!((record.refused, record.overridden), (0, 0));
    let mut expected: Vec<u32> = plan
        .scenario
        .pushed(&plan.page(CELL).unwrap().page)
        .into_iter()
        .map(|object| object.0)
        .collect();
    expected.sort_unstable();
    (record, expected)
}

fn pushed(record: &RunRecord) -> Vec<u32> {
    record.objects.iter().filter(|object| object.pushed).map(|object| object.object).collect()
}

fn requested(object: &ObjectRecord, record: &RunRecord) -> Duration {
    object.requested_at - (record.objects[1].completed_at - record.objects[1].since_page_start)
}

#[test]
fn what_the_scenario_names_is_pushed_over_both_mappings_and_by_both_kinds_of_priorities() {
    for http in ["h2", "h2-tcp"] {
        for (priorities, browser) in [
            (Priorities::Tree, "chrome"),
            (Priorities::Tree, "firefox"),
            (Priorities::Tree, "framework-chrome-batches"),
            (Priorities::Urgency, "chrome"),
            (Priorities::Urgency, "none"),
        ] {
            {
                for push in [Push::None, Push::Critical, Push::Images, Push::Assets] {
                    let scenario =
                        Scenario { priorities, ..scenario("framework-youtube", browser, push) };
                    let scenario = scenario.with_field("http", http).unwrap();
                    let (record, expected) = load(scenario);
                    assert_eq!(pushed(&record), expected, "{http} {priorities} {browser} {push}");
                    assert_eq!(record.objects.len(), 51);
                }
            }
        }
    }
}

#[test]
fn every_stream_policy_pushes() {
    use quipu_policy::{Layer, Registry};
    for entry in Registry::builtin().of(Layer::Stream) {
        let mut scenario = scenario("ilmessaggero", "chrome", Push::Recorded);
        scenario.policies.stream = vec![entry.name.to_owned()];
        let (record, expected) = load(scenario);
        assert_eq!((pushed(&record).len(), pushed(&record)), (3, expected), "{}", entry.name);
    }
}

#[test]
fn a_pushed_style_sheet_saves_the_round_trip_of_its_request() {
    let critical = |push| {
        let mut scenario = scenario("framework-youtube", "chrome", push);
        // So that the document takes one round trip.
        scenario.transport.initial_window = 32;
        load(scenario).0.critical_time
    };
    let [without, with] = [Push::None, Push::Critical].map(critical);
    // A round trip takes 60 ms, of which the document takes a part.
    assert!(without > with + Duration::from_millis(30), "{without:?} {with:?}");
}

/// The promise comes with the first packets of the answer, and counts as the request.
#[test]
fn the_time_of_a_pushed_object_counts_from_its_promise() {
    let (record, _) = load(scenario("framework-youtube", "chrome", Push::Assets));
    let document = &record.objects[1];
    for object in record.objects.iter().filter(|object| object.pushed) {
        assert!(object.requested_at > document.requested_at);
        assert!(object.requested_at <= document.first_byte_at);
        assert!(object.first_byte_at >= object.requested_at);
        assert_eq!(object.since_request, object.completed_at - object.requested_at);
    }
}

/// All that is not pushed is asked for at once, and what is pushed not at all.
#[test]
fn with_all_at_once_pushed_objects_are_not_asked_for() {
    let scenario = Scenario {
        discovery: Discovery::AllAtOnce,
        ..scenario("framework-youtube", "framework-chrome-batches", Push::Images)
    };
    let (record, expected) = load(scenario);
    assert_eq!((pushed(&record).len(), pushed(&record)), (39, expected));
    for object in record.objects.iter().filter(|object| !object.pushed) {
        assert_eq!(requested(object, &record), Duration::ZERO);
    }
}

#[test]
fn a_server_pushes_no_objects_of_other_origins() {
    let one = scenario("wikipedia", "chrome", Push::Assets);
    let (all, _) = load(one.clone());
    let (own, expected) = load(one.with_field("origins", "recorded").unwrap());
    assert_eq!(pushed(&own), expected);
    assert!(!pushed(&own).is_empty() && pushed(&own).len() < pushed(&all).len());
    let document = own.objects.iter().map(|object| object.connection).next().unwrap();
    let of_other = |object: &&ObjectRecord| object.pushed && object.connection != document;
    assert_eq!(own.objects.iter().find(of_other), None);
}

#[test]
fn every_page_of_a_session_is_pushed() {
    let scenario =
        Scenario { session: 2, ..scenario("framework-youtube", "chrome", Push::Critical) };
    let plan = Plan::new(scenario).unwrap();
    let records = run_session(&plan, CELL).unwrap();
    assert_eq!(records.iter().map(|record| pushed(record).len()).collect::<Vec<_>>(), [7, 7]);
}

#[test]
fn raw_streams_push_nothing() {
    let scenario = scenario("framework-youtube", "chrome", Push::Assets);
    let error = scenario.with_field("http", "raw").unwrap().validate().unwrap_err().to_string();
    assert!(error.starts_with("push is assets; expected none with raw streams"), "{error}");
}

#[test]
fn the_waterfall_marks_what_was_pushed() {
    let plan = Plan::new(scenario("framework-youtube", "chrome", Push::Critical)).unwrap();
    let record = run(&plan, CELL).unwrap();
    let options = WaterfallOptions { screen: quipu_lab::table::Screen::ANY, rows: 100 };
    let text = waterfall(
        &plan.page(CELL).unwrap(),
        &record,
        &std::collections::BTreeMap::new(),
        &[],
        options,
    );
    let marked = |line: &&str| line.chars().nth(3) == Some('+');
    assert_eq!(text.lines().filter(marked).count(), 7, "{text}");
    assert!(text.contains("+ pushed, from its promise"), "{text}");
}
