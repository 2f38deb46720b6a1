use super::*;
use quipu_scenario::find_network;

fn labels(change: impl FnOnce(&mut Scenario)) -> Result<Vec<String>, ScenarioError> {
    let mut scenario = Scenario::default();
    change(&mut scenario);
    let rows = rows(&scenario, &alone("wifi+lte"), &Registry::builtin())?;
    Ok(rows.into_iter().map(|row| row.label).collect())
}

/// Each path of a network.
fn alone(network: &str) -> Vec<AlonePath> {
    let network = find_network(network).unwrap();
    (0..network.paths.len()).filter_map(|path| AlonePath::of(&network, path)).collect()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

fn count(layer: Layer) -> usize {
    Registry::builtin().of(layer).count()
}

#[test]
fn all_stands_for_every_policy_of_a_layer() {
    let labels = labels(|scenario| {
        scenario.policies.stream = names(&["fifo", "all"]);
        scenario.policies.baselines = false;
    })
    .unwrap();
    assert_eq!(labels.len(), count(Layer::Stream));
    assert_eq!(labels[..2], ["fifo + minrtt", "rr + minrtt"], "none twice");
}

#[test]
fn all_leaves_out_what_needs_a_file() {
    let mut registry = Registry::builtin();
    let like = registry.get(Layer::Path, "minrtt").unwrap().clone();
    let params = vec![quipu_policy::registry::Param::file("file", "what it is made of")];
    registry.add(quipu_policy::Entry { name: "of-file", params, ..like }).unwrap();
    let mut scenario = Scenario::default();
    scenario.policies.stream = names(&["fifo"]);
    scenario.policies.path = names(&["all"]);
    scenario.policies.baselines = false;
    let all = rows(&scenario, &[], &registry).unwrap();
    assert_eq!(all.len(), count(Layer::Path));
    scenario.policies.path = names(&["of-file"]);
    let error = rows(&scenario, &[], &registry).unwrap_err().to_string();
    assert!(error.contains("of-file needs a file: expected of-file:file=FILE"), "{error}");
}

#[test]
fn all_streams_with_all_paths_are_all_pairs_and_all_joint_policies() {
    let all = |joint: &[&str]| {
        let joint = names(joint);
        labels(move |scenario| {
            scenario.policies.stream = names(&["all"]);
            scenario.policies.path = names(&["all"]);
            scenario.policies.joint = joint;
        })
        .unwrap()
    };
    let pairs = count(Layer::Stream) * count(Layer::Path);
    // And each path alone.
    assert_eq!(all(&[]).len(), pairs + count(Layer::Joint) + 2);
    let mut unique = all(&[]);
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), all(&[]).len());
}

#[test]
fn each_path_alone_is_a_row_with_the_first_stream_policy() {
    let mut scenario = Scenario::default();
    scenario.policies.stream = names(&["fifo", "rr"]);
    scenario.policies.path = names(&["ecf", "single:id=1"]);
    let of = |scenario: &Scenario, alone: &[AlonePath]| {
        rows(scenario, alone, &Registry::builtin()).unwrap()
    };
    let rows = of(&scenario, &alone("wifi+lte"));
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    let pairs = ["fifo + ecf", "rr + ecf", "fifo + single:id=1", "rr + single:id=1"];
    assert_eq!(labels[..4], pairs, "a policy that uses one path of two is no path alone");
    assert_eq!(labels[4..], ["wifi alone", "lte alone"]);
    let part = |layer| rows[5].spec.part(layer).map(|part| part.name());
    assert_eq!((part(Layer::Stream), part(Layer::Path)), (Some("fifo"), Some("minrtt")));
    assert!(rows[5].full_text().ends_with(" alone=lte"), "{}", rows[5].full_text());
    // A joint policy orders streams of its own, which one path leaves to `rr`.
    scenario.policies.stream.clear();
    scenario.policies.joint = names(&["sec"]);
    let rows = of(&scenario, &alone("wifi+lte"));
    let part = |layer| rows[1].spec.part(layer).map(|part| part.name());
    assert_eq!((rows[1].label.as_str(), part(Layer::Stream)), ("wifi alone", Some("rr")));
    scenario.policies.baselines = false;
    assert_eq!(of(&scenario, &alone("wifi+lte")).len(), 1);
}

#[test]
fn stacks_of_libraries_are_rows_over_each_path_alone_or_over_all() {
    let stack = "quinn-h3:congestion=bbr,noq-h3".parse().unwrap();
    let scenario = Scenario { stack, http: "h3".parse().unwrap(), ..Scenario::default() };
    let rows = rows(&scenario, &alone("wifi+lte"), &Registry::builtin()).unwrap();
    let told: Vec<(&str, String)> =
        rows.iter().map(|row| (row.label.as_str(), row.full_text())).collect();
    let expected = [
        ("wifi alone + quinn-h3 + bbr", "stack=quinn-h3 congestion=bbr alone=wifi"),
        ("lte alone + quinn-h3 + bbr", "stack=quinn-h3 congestion=bbr alone=lte"),
        ("noq-h3 + cubic", "stack=noq-h3 congestion=cubic"),
    ];
    assert_eq!(told, expected.map(|(label, text)| (label, text.to_owned())));
}

#[test]
fn stacks_of_the_kernel_are_rows_over_each_path_alone_or_over_all_in_their_order() {
    let mut scenario = Scenario::default();
    scenario.policies.stream = names(&["rr"]);
    scenario.policies.congestion = "cubic,olia".to_owned();
    scenario.http = "h2-tcp".parse().unwrap();
    let made = |scenario: &Scenario, network: &str| {
        rows(scenario, &alone(network), &Registry::builtin()).unwrap()
    };
    let labels = |rows: &[PolicyRow]| rows.iter().map(|row| row.label.clone()).collect::<Vec<_>>();
    scenario.stack = "mptcp-h2,quipu,tcp-h2:congestion=bbr".parse().unwrap();
    let all = made(&scenario, "wifi+lte");
    let expected = [
        "mptcp-h2 + cubic",
        "rr + minrtt + cubic",
        "wifi alone + cubic",
        "lte alone + cubic",
        "rr + minrtt + olia",
        "wifi alone + olia",
        "lte alone + olia",
        "wifi alone + tcp-h2 + bbr",
        "lte alone + tcp-h2 + bbr",
    ];
    assert_eq!(labels(&all), expected);
    assert_eq!(all[0].full_text(), "stack=mptcp-h2 congestion=cubic");
    assert_eq!(all[8].full_text(), "stack=tcp-h2 congestion=bbr alone=lte");
    assert!(all[1].full_text().contains("stream=rr"), "{}", all[1].full_text());
    scenario.stack = "tcp-h1".parse().unwrap();
    scenario.policies.baselines = false;
    assert_eq!(
        labels(&made(&scenario, "wifi+lte")),
        ["wifi alone + tcp-h1 + cubic", "lte alone + tcp-h1 + cubic"]
    );
    assert_eq!(labels(&rows(&scenario, &[], &Registry::builtin()).unwrap()), ["tcp-h1 + cubic"]);
    scenario.pages.clear();
    scenario.flows = vec![FlowSpec::new("flow")];
    assert_eq!(made(&scenario, "wifi+lte").len(), 2, "flows are not theirs");
}

#[test]
fn paths_of_one_name_are_told_apart() {
    let mut network = find_network("wifi+lte").unwrap();
    network.paths[1].name = "wifi".to_owned();
    let of = |position| AlonePath::of(&network, position).unwrap();
    assert_eq!((of(0).label, of(1).label), ("wifi (path 0)".into(), "wifi (path 1)".into()));
    assert!(AlonePath::of(&network, 2).is_none());
}

#[test]
fn several_policies_of_acknowledgements_are_rows_that_tell_them() {
    let labels = labels(|scenario| {
        scenario.policies.stream = names(&["wrr"]);
        scenario.policies.ack = "own,min-owd".to_owned();
    })
    .unwrap();
    assert_eq!(labels[0], "wrr + minrtt + own");
    assert!(labels.contains(&"wrr + minrtt + min-owd".to_owned()));
    assert_eq!(labels.len(), 6, "each path alone too: {labels:?}");
}

#[test]
fn several_congestion_controllers_are_rows_that_tell_them() {
    let with = |congestion: &str| {
        labels(|scenario| {
            scenario.policies.stream = names(&["wrr"]);
            scenario.policies.baselines = false;
            scenario.policies.congestion = congestion.to_owned();
        })
    };
    assert_eq!(with("cubic").unwrap(), ["wrr + minrtt"]);
    assert_eq!(with("cubic,olia").unwrap(), ["wrr + minrtt + cubic", "wrr + minrtt + olia"]);
    let all = with("all").unwrap();
    assert_eq!(all.len(), count(Layer::Congestion));
    assert!(all.contains(&"wrr + minrtt + newreno".to_owned()), "{all:?}");
    assert!(with("newren").is_err());
    assert!(with("").is_err());
}

#[test]
fn flows_without_pages_have_a_row_for_each_controller_that_they_leave_open() {
    let with = |congestion: &str, flows: &[&str]| {
        labels(|scenario| {
            let flow =
                |name: &&str| FlowSpec { congestion: name.to_string(), ..FlowSpec::new(name) };
            scenario.pages.clear();
            scenario.flows = flows.iter().map(flow).collect();
            scenario.policies.congestion = congestion.to_owned();
        })
    };
    assert_eq!(with("cubic", &["default", "newreno"]).unwrap(), ["cubic"]);
    assert_eq!(with("cubic,olia", &["default"]).unwrap(), ["cubic", "olia"]);
    assert_eq!(with("cubic", &["newreno"]).unwrap(), ["as given"]);
    let error = with("cubic", &["newren"]).unwrap_err().to_string();
    assert!(error.contains("did you mean `newreno`?"), "{error}");
}

#[test]
fn several_ways_to_carry_http_are_rows_that_tell_them() {
    let http = |text: &str, joint: &[&str]| {
        let joint = names(joint);
        labels(move |scenario| {
            scenario.http = text.parse().unwrap();
            scenario.policies.stream = names(&["wrr"]);
            scenario.policies.joint = joint;
            scenario.policies.baselines = false;
        })
    };
    assert_eq!(http("h2-tcp", &[]).unwrap(), ["wrr + minrtt"]);
    let both = ["wrr + minrtt + h2", "wrr + minrtt + h2-tcp"];
    assert_eq!(http("h2,h2-tcp", &[]).unwrap(), both);
    let error = http("h2,h2-tcp", &["sec"]).unwrap_err().to_string();
    assert!(error.starts_with("policies.joint is sec; expected none"), "{error}");
    let all = http("h2,h2-tcp", &["all"]).unwrap();
    assert_eq!(all.len(), 2 + count(Layer::Joint), "with HTTP over streams alone: {all:?}");
}

#[test]
fn over_one_byte_stream_the_order_of_streams_is_for_http_alone() {
    let mut scenario = Scenario { http: HttpVersion::H2Tcp.into(), ..Scenario::default() };
    scenario.policies.stream = names(&["fifo"]);
    let rows = rows(&scenario, &[], &Registry::builtin()).unwrap();
    let part = |spec: &PolicySpec| spec.part(Layer::Stream).map(|part| part.name());
    assert_eq!((part(&rows[0].spec), part(&rows[0].transport)), (Some("fifo"), Some("rr")));
    assert!(rows[0].full_text().ends_with(" http=h2-tcp"));
}

#[test]
fn of_all_only_what_goes_together_is_taken_but_named_conflicts_are_errors() {
    let with = |stream: &str| {
        let stream = names(&[stream]);
        labels(move |scenario| {
            scenario.policies.stream = stream;
            scenario.policies.resend = "rank".to_owned();
            scenario.policies.baselines = false;
        })
    };
    let all = with("all").unwrap();
    assert!(!all.contains(&"fifo + minrtt".to_owned()), "{all:?}");
    assert!(all.contains(&"wrr + minrtt".to_owned()));
    let error = with("fifo").unwrap_err();
    assert!(matches!(error, ScenarioError::Policy(_)));
    assert!(error.to_string().contains(" exclude each other: "), "{error}");
}
