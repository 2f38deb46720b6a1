use jsonschema::Validator;
use quipu_web::scheme::BrowserScheme;

use super::*;
use crate::document::Document;
use crate::published::{hold, root};
use crate::{PageName, Scenario, SweepSpec, builtin_networks, reference};

/// The schema where each layer has two policies.
fn ours() -> Value {
    let name = |layer| format!("mine-{layer:?}").to_lowercase();
    schema(&|layer| vec!["minrtt".to_owned(), name(layer)])
}

fn validator() -> Validator {
    jsonschema::validator_for(&ours()).unwrap()
}

fn json_of(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap()
}

fn faults(validator: &Validator, text: &str) -> Vec<String> {
    let json = json_of(text);
    validator.iter_errors(&json).map(|error| error.to_string()).collect()
}

/// Holds the page of the docs to our tables, or writes it if `QUIPU_RENEW` is set.
#[test]
fn the_published_reference_has_these_tables() {
    hold("scenarios.md", "<!-- quipu scenario fields -->\n\n", &reference());
}

#[test]
fn policies_that_are_handed_in_are_examples() {
    let path = &ours()["definitions"]["path-policy"];
    let examples = path["examples"].as_array().unwrap();
    assert!(examples.contains(&json!("minrtt")) && examples.contains(&json!("mine-path")));
    assert_eq!(examples.iter().filter(|name| **name == "minrtt").count(), 1);
}

#[test]
fn every_scenario_of_ours_is_valid() {
    let validator = validator();
    let complete = Scenario { networks: builtin_networks(), ..Scenario::default() };
    assert_eq!(faults(&validator, &complete.to_toml().unwrap()), [""; 0]);
    assert_eq!(faults(&validator, ""), [""; 0]);
    let mut experiments = 0;
    for paper in std::fs::read_dir(root().join("experiments")).unwrap() {
        let paper = paper.unwrap().path();
        if !paper.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(paper).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_none_or(|ending| ending != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let cases = crate::experiment::cases(&text, "a.toml").unwrap();
            let texts = match cases.is_empty() {
                true => vec![text],
                false => cases.into_iter().map(|case| case.text).collect(),
            };
            for text in texts {
                assert_eq!(faults(&validator, &text), [""; 0], "{}", file.display());
                // Written out whole it is valid too.
                let scenario = Scenario::from_toml(&text, "a.toml").unwrap();
                assert_eq!(faults(&validator, &scenario.to_toml().unwrap()), [""; 0]);
            }
            experiments += 1;
        }
    }
    assert!(experiments >= 18, "{experiments}");
}

#[test]
fn what_the_schema_refuses_the_reader_refuses_and_the_other_way_round() {
    let validator = validator();
    let link = |fields: &str| {
        format!("[[networks]]\nname = \"n\"\npaths = [{{ name = \"p\", down = {{ {fields} }} }}]")
    };
    let bad = [
        "rnus = 3".to_owned(),
        "runs = 0".to_owned(),
        "runs = \"3\"".to_owned(),
        "runs = 1.5".to_owned(),
        "seed = -1".to_owned(),
        "pages = \"cnn\"".to_owned(),
        "pages = [3]".to_owned(),
        "pages = [\"pries:x\"]".to_owned(),
        "browser = \"crome\"".to_owned(),
        "discovery = \"recoded\"".to_owned(),
        "http = \"h2,raw\"".to_owned(),
        "host_jitter = \"-1us\"".to_owned(),
        "host_jitter = 3".to_owned(),
        "series = \"often\"".to_owned(),
        "networks = [\"wifi+lt\"]".to_owned(),
        "networks = []".to_owned(),
        "networks = [{ name = \"n\" }]".to_owned(),
        "networks = [{ name = \"n\", paths = [] }]".to_owned(),
        "networks = [{ name = \"n\", paths = [{ name = \"p\" }] }]".to_owned(),
        "[policies]\nstreams = [\"rr\"]".to_owned(),
        "[policies]\nbaselines = \"yes\"".to_owned(),
        "[transport]\ninitial_window = 0".to_owned(),
        "[transport]\npacing_factor = 0.01".to_owned(),
        "[transport]\nstart = \"warm:0\"".to_owned(),
        "[transport]\nserver_write_chunk = \"32\"".to_owned(),
        "[transport]\ntls = \"openssl\"".to_owned(),
        "[raw]\nstreams = [{ late = \"1ms\" }]".to_owned(),
        "[raw]\nsplit = [\"1\"]".to_owned(),
        "[measure]\nfrom = \"later\"".to_owned(),
        "[[flows]]\nstart = \"1s\"".to_owned(),
        "[[flows]]\nname = \"f\"\nstreams = 0".to_owned(),
        "[[flows]]\nname = \"f\"\npaths = [-1]".to_owned(),
        "[[cross]]\nname = \"c\"".to_owned(),
        "[[cross]]\nname = \"c\"\nrate = \"1mbit\"\nkind = \"steady\"".to_owned(),
        link("rate = \"1mbit\""),
        link("delay = \"1ms\""),
        link("rate = \"1\", delay = \"1ms\""),
        link("rate = \"1mbit\", delay = \"1ms\", loss = \"burst 1% 50%\""),
        link("rate = \"1mbit\", delay = \"1ms\", queue = \"50\""),
        link("rate = \"1mbit\", delay = \"1ms\", mark = \"nevr\""),
        link("rate = \"1mbit\", delay = \"1ms\", lost = \"1%\""),
        link("rate = \"1mbit\", delay = \"1ms\", reorder = { share = \"1%\" }"),
        link("rate = \"1mbit\", delay = \"1ms\", steps = [{ at = \"1s\" }]"),
        link("rate = \"1mbit\", delay = \"1ms\", outages = [{ from = \"1s\", to = \"2s\" }]"),
    ];
    for text in bad {
        assert!(!faults(&validator, &text).is_empty(), "valid by the schema: {text}");
        let read = Scenario::from_toml(&text, "a.toml").map_err(|error| error.to_string());
        let checked = read.and_then(|scenario| {
            let names = scenario.pages.iter().map(|page| PageName::parse(page).map(drop));
            let checked = scenario.validate().and(names.collect::<Result<(), _>>());
            checked.map_err(|error| error.to_string())?;
            // What a plan looks up.
            BrowserScheme::builtin(&scenario.browser).map_err(|error| error.to_string())
        });
        assert!(checked.is_err(), "valid for the reader: {text}");
    }
}

#[test]
fn sweeps_are_as_their_reader_wants_them() {
    let validator = validator();
    let good = [
        "initial-window = [10, 32]",
        "initial_window = { values = [10, 32] }",
        "seed = { from = 1, to = 9, steps = 3, scale = \"log\" }",
        "both = { values = [1], fields = [\"seed\"] }",
        "seed = [1]\n[[sweep.zip]]\nbrowser = [\"chrome\"]\npriorities = [\"tree\"]",
        "[sweep.random]\ncount = 3\nseed = 7\nbrowser = [\"chrome\"]",
        "[sweep.random]\ncount = 3\ninitial_window = { from = 10, to = 40 }",
    ];
    let bad = [
        "",
        "seed = 1",
        "seed = []",
        "seed = [1, 1]",
        "seed = { values = 1 }",
        "seed = { from = 1, to = 9 }",
        "seed = { from = 1, to = 9, steps = 1 }",
        "seed = { from = 1, to = 9, steps = 3, scale = \"lin\" }",
        "seed = { values = [1], from = 1 }",
        "seed = { values = [1], field = [\"seed\"] }",
        "seed = { values = [1], fields = [] }",
        "seed = { values = [1], times = 2 }",
        "zip = [3]",
        "[[sweep.zip]]\nseed = 3",
        "random = 3",
        "[sweep.random]\ncount = 3",
        "[sweep.random]\nbrowser = [\"chrome\"]",
        "[sweep.random]\ncount = 0\nbrowser = [\"chrome\"]",
        "[sweep.random]\ncount = 3\nseed = -1\nbrowser = [\"chrome\"]",
        "[sweep.random]\ncount = 3\nseed = 1\ninitial_window = { from = 10 }",
        "[sweep.random]\ncount = 3\ninitial_window = { from = 1, to = 2, steps = 2 }",
    ];
    let read = |text: &str| SweepSpec::read(&Document::new(text, "a.toml"));
    for text in good.map(|fields| format!("[sweep]\n{fields}\n")) {
        assert_eq!(faults(&validator, &text), [""; 0], "{text}");
        let written = read(&text).unwrap().unwrap().to_toml();
        assert_eq!(faults(&validator, &written), [""; 0], "{written}");
    }
    for text in bad.map(|fields| format!("[sweep]\n{fields}\n")) {
        assert!(!faults(&validator, &text).is_empty(), "valid by the schema: {text}");
        assert!(read(&text).is_err(), "valid for the reader: {text}");
    }
}

#[test]
fn patterns_match_what_is_read_and_nothing_that_is_refused() {
    let schema = ours();
    let definitions = schema["definitions"].as_object().unwrap();
    let mut tested = 0;
    let mut tables = vec![Scenario::table()];
    while let Some(table) = tables.pop() {
        for field in &table.fields {
            tables.extend(field.kind.tables());
            for text in field.kind.texts() {
                let alone = jsonschema::validator_for(&definitions[&key(text.name)]).unwrap();
                for example in text.examples {
                    assert!(alone.is_valid(&json!(example)), "{}: {example}", text.name);
                }
                for refused in text.refused {
                    assert!(!alone.is_valid(&json!(refused)), "{}: {refused}", text.name);
                }
                tested += 1;
            }
        }
    }
    assert!(tested > 50, "{tested}");
}

#[test]
fn every_field_is_described_and_closed() {
    let schema = ours();
    let definitions = schema["definitions"].as_object().unwrap();
    let tables = definitions.values().chain([&schema]).filter(|part| part["type"] == "object");
    for table in tables {
        let rest = &table["additionalProperties"];
        assert!(*rest == json!(false) || rest.is_object(), "{table}");
        for (name, property) in table["properties"].as_object().unwrap() {
            let about = property["description"].as_str().unwrap();
            assert!(about.ends_with('.'), "{name}: {about}");
        }
    }
}
