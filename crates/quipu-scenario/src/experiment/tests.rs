use quipu_link::QueueLimit;

use super::*;
use crate::QueueSpec;

const GRID: &str = r#"
runs = 5
pages = ["framework-google"]
networks = ["wifi+lte", "framework-medium"]

[policies]
stream = ["rr", "wrr"]

[experiment]
id = "fw-fig6-{page}-{browser}-{level}"
paper = "framework"
figure = "Figure 6"
title = "Page time with {browser}"

[experiment.vary]
page = [{ name = "google", value = "framework-google" }, { name = "youtube", value = "framework-youtube" }]
browser = [{ name = "chrome", value = "framework-chrome" }, { name = "safari", value = "framework-safari" }]
level = [
    { name = "low", set = { networks = ["wifi+lte"] }, loss = "0" },
    { name = "medium", set = { networks = ["framework-medium", "wifi+lte"] }, loss = "1.5" },
]

[[experiment.variants]]
name = "unlimited queue"
set = { "networks.*.paths.*.down.queue" = "unlimited", initial_window = 32 }

[[experiment.rules]]
name = "rr"
claim = "RR is slower than WRR at {level.loss} % loss"
kind = "claim"
metric = "page"
of = "rr + minrtt"
to = "wrr + minrtt"
ratio = "> 1.5"
expect = "fails"
because = "its own log"
ablation = "queue"

[[experiment.rules]]
name = "growth"
claim = "grows with dynamicity"
kind = "firm"
metric = "page"
only = { level = ["medium"] }
steps = [{ network = "wifi+lte" }, { network = "framework-medium" }]
ratio = "> 1"

[[experiment.rules]]
name = "queue"
claim = "queues matter not"
kind = "ablation"
metric = { name = "object", kind = "image", stat = "p95" }
of = { variant = "unlimited queue" }
to = { variant = "main" }
within = 0.02
"#;

#[test]
fn a_file_fans_out_into_ids_with_scenarios_of_their_own() {
    let all = cases(GRID, "grid.toml").unwrap();
    let ids: Vec<&str> = all.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids[0], "fw-fig6-google-chrome-low");
    assert_eq!(ids[1], "fw-fig6-google-chrome-medium");
    assert_eq!((ids.len(), ids[7]), (8, "fw-fig6-youtube-safari-medium"));
    let last = &all[7];
    assert_eq!(last.scenario.pages, ["framework-youtube"]);
    assert_eq!(last.scenario.browser, "framework-safari");
    let networks: Vec<&str> = last.scenario.networks.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(networks, ["framework-medium", "wifi+lte"]);
    assert_eq!(last.experiment.title, "Page time with safari");
    assert_eq!(last.experiment.rules[0].claim, "RR is slower than WRR at 1.5 % loss");
    assert_eq!((all[0].experiment.rules.len(), last.experiment.rules.len()), (2, 3));
}

#[test]
fn variants_change_fields_lists_and_elements_of_lists() {
    let case = &cases(GRID, "grid.toml").unwrap()[1];
    let changed = case.experiment.variants[0].set.apply(&case.scenario).unwrap();
    assert_eq!(changed.transport.initial_window, 32);
    for path in changed.networks.iter().flat_map(|network| &network.paths) {
        let links = path.own_links().unwrap();
        let unlimited = QueueSpec::DropTail(QueueLimit::Unlimited);
        assert_eq!(links.down.queue, unlimited);
        assert_ne!(links.up.queue, unlimited);
    }
}

/// What a paper leaves open, with `values` of the first of two settings.
fn open(values: &str) -> Result<Vec<Case>, crate::ScenarioError> {
    let settings = format!(
        r#"
[[experiment.settings]]
name = "queue"
values = [{values}]

[[experiment.settings]]
name = "window"
about = "the paper does not tell"
values = [{{ name = "10" }}, {{ name = "32", set = {{ "transport.initial_window" = 32 }} }}]
"#
    );
    cases(&format!("{GRID}\n{settings}"), "grid.toml")
}

const QUEUES: &str = r#"{ name = "own" }, { name = "5p", set = { "networks.*.paths.*.down.queue" = "5p" } }, { name = "none", set = { "networks.*.paths.*.down.queue" = "unlimited" } }"#;

#[test]
fn combinations_of_settings_begin_with_the_scenario_itself() {
    let case = &open(QUEUES).unwrap()[0];
    let expected = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]];
    assert_eq!(case.experiment.combinations(), expected);
    assert_eq!(case.experiment.settings_runs, 5);
    let none = &cases(GRID, "grid.toml").unwrap()[0];
    assert!(none.experiment.combinations().is_empty());
}

#[test]
fn settings_that_cannot_be_swept_are_refused() {
    let many: Vec<String> =
        (1..129).map(|it| format!("{{ name = \"{it}\", set = {{ runs = {it} }} }}")).collect();
    let many = format!("{{ name = \"own\" }}, {}", many.join(", "));
    for (values, told) in [
        ("{ name = \"own\" }", "expected 2 or more"),
        (
            "{ name = \"own\", set = { runs = 2 } }, { name = \"5p\", set = { runs = 3 } }",
            "setting queue: the first value is the scenario's own, without `set`",
        ),
        ("{ name = \"own\" }, { name = \"5p\" }", "setting queue: value `5p` needs `set`"),
        (
            "{ name = \"5p\" }, { name = \"5p\", set = { runs = 3 } }",
            "value of setting queue: `5p` is there twice",
        ),
        (&many, "settings have 129 × 2 combinations; expected at most 256"),
    ] {
        let error = open(values).unwrap_err().to_string();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn a_papers_number_has_the_unit_of_its_rule() {
    let with = |number: &str| {
        let paper = format!("claim = \"queues matter not\"\npaper = \"{number}\"");
        cases(&GRID.replace("claim = \"queues matter not\"", &paper), "grid.toml")
    };
    let rule = with("1.02").unwrap().remove(0).experiment.rules.pop().unwrap();
    assert_eq!(rule.paper.map(|paper| paper.value), Some(1.02));
    let error = with("3ms").unwrap_err().to_string();
    assert!(error.contains("expected an amount as in `1 ± 0.02`"), "{error}");
    let error = with("much").unwrap_err().to_string();
    assert!(error.contains("expected a number with its unit"), "{error}");
}

#[test]
fn pages_and_networks_fan_out_by_themselves() {
    let text = GRID.replace("-{browser}-{level}", "-{network}");
    let begin = text.find("[experiment.vary]").unwrap();
    let end = text.find("[[experiment.variants]]").unwrap();
    let text = format!("{}{}", &text[..begin], &text[end..]);
    let text = text.replace("only = { level = [\"medium\"] }", "");
    let all = cases(&text, "grid.toml").unwrap();
    let ids: Vec<&str> = all.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(
        ids,
        ["fw-fig6-framework-google-wifi+lte", "fw-fig6-framework-google-framework-medium"]
    );
    assert_eq!(all[1].scenario.networks.len(), 1);
}

#[test]
fn a_scenario_with_an_experiment_runs_as_any_other() {
    let scenario = crate::Scenario::from_toml(GRID, "grid.toml").unwrap();
    scenario.validate().unwrap();
    assert!(!scenario.to_toml().unwrap().contains("experiment"));
    assert!(cases("runs = 3", "none.toml").unwrap().is_empty());
}

#[test]
fn tables_whose_cells_are_not_told_are_refused() {
    let with = |table: &str| {
        let text = format!("{GRID}\n[[experiment.tables]]\nmetric = \"page\"\n{table}");
        cases(&text, "grid.toml").map(|cases| cases[0].experiment.tables.clone())
    };
    let tables = with(
        r#"name = "t"
rows = ["rr + minrtt"]
columns = [{ name = "page" }]"#,
    );
    let tables = tables.unwrap();
    assert_eq!(tables[0].rows[0].of.as_ref().unwrap().policy.as_deref(), Some("rr + minrtt"));
    for (table, told) in [
        (
            r#"rows = ["a"]
columns = ["b"]"#,
            "rows and columns both say `policy`",
        ),
        (
            r#"rows = ["a", "a"]
columns = [{ name = "b" }]"#,
            "table t: row `a` is there twice",
        ),
        (
            r#"rows = []
columns = [{ name = "b" }]"#,
            "rows is 0; expected 1 or more",
        ),
        (
            r#"curves = true
to = "a"
rows = ["a"]
columns = [{ name = "b" }]"#,
            "curves are of one metric, without `to`",
        ),
        (
            r#"rows = [{ name = "a", over = "first" }]
columns = [{ name = "b" }]"#,
            "expected mean, median, min, max or p0 to p100",
        ),
    ] {
        let error = with(&format!("name = \"t\"\n{table}")).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn malformed_rules_are_refused_with_their_line() {
    let refused = |from: &str, to: &str| {
        assert!(GRID.contains(from), "{from}");
        cases(&GRID.replace(from, to), "grid.toml").unwrap_err().to_string()
    };
    let line = |text: &str| GRID[..GRID.find(text).unwrap()].matches('\n').count() + 1;
    for (from, to, at, told) in [
        (
            "metric = \"page\"\nof",
            "metric = \"pag\"\nof",
            "metric = \"page\"\nof",
            "did you mean `page`?",
        ),
        ("> 1.5", "above 1.5", "ratio = \"> 1.5\"", "expected a threshold"),
        ("kind = \"firm\"", "kind = \"frim\"", "kind = \"firm\"", "unknown variant `frim`"),
    ] {
        let error = refused(from, to);
        let place = format!("grid.toml:{}:", line(at));
        assert!(error.starts_with(&place) && error.contains(told), "{error}");
    }
    for (from, to, told) in [
        ("because = \"its own log\"", "", "what is expected to fail needs `because`"),
        (
            "ablation = \"queue\"",
            "ablation = \"queues\"",
            "there is no rule `queues`; did you mean `queue`?",
        ),
        (
            "variant = \"unlimited queue\"",
            "variant = \"unlimited\"",
            "there is no variant `unlimited`",
        ),
        ("name = \"growth\"", "name = \"rr\"", "rule `rr` is there twice"),
        ("ratio = \"> 1\"", "ratio = \"> 1ms\"", "expected without a unit"),
        ("ratio = \"> 1\"", "", "value or ratio or difference or within is missing; expected a"),
        ("within = 0.02", "within = 0.02\nratio = \"> 1\"", "exactly one of"),
        (
            "to = \"wrr + minrtt\"",
            "to = { metric = { name = \"object\", pooled = true } }",
            "either both or none is pooled",
        ),
        ("to = \"wrr + minrtt\"", "", "a comparison needs `to` or `steps`"),
        ("metric = \"page\"\nonly", "metrik = \"page\"\nonly", "unknown field `metrik`"),
        ("{level}\"", "{lvl}\"", "experiment.id is lvl; expected an axis of vary"),
        ("-{browser}", "", "expected `{browser}` in it"),
        (
            "level = [\"medium\"]",
            "level = [\"medum\"]",
            "level has no value `medum`; did you mean `medium`?",
        ),
        ("only = { level", "only = { levl", "the id has no `{levl}`; did you mean `level`?"),
        ("initial_window = 32", "initial_windw = 32", "did you mean `transport.initial_window`?"),
    ] {
        let all = cases(&GRID.replace(from, to), "grid.toml").and_then(|cases| {
            let case = &cases[0];
            case.experiment.variants[0].set.apply(&case.scenario)
        });
        let error = all.unwrap_err().to_string();
        assert!(error.contains(told), "{from}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
