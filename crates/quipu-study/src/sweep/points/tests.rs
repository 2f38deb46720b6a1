use super::*;

fn read(text: &str) -> Result<Sweep, String> {
    let document = Document::new(text, "a.toml");
    match Sweep::read(&document, &Registry::builtin()) {
        Ok(sweep) => Ok(sweep.unwrap()),
        Err(findings) => {
            Err(findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n"))
        }
    }
}

const HEAD: &str =
    "pages = [\"sitespeed\"]\nruns = 2\n[policies]\nstream = [\"rr\"]\nbaselines = false\n";

#[test]
fn every_point_is_a_plan_with_its_values() {
    let sweep = read(&format!(
        "{HEAD}[sweep]\nbrowser = [\"firefox\", \"chrome\"]\ninitial_window = [10, 32]\n"
    ))
    .unwrap();
    let of = |point: &Point| {
        let scenario = &point.plan.scenario;
        (scenario.browser.clone(), scenario.transport.initial_window)
    };
    let all: Vec<(String, u32)> = sweep.points.iter().map(of).collect();
    let expected = [("firefox", 10), ("firefox", 32), ("chrome", 10), ("chrome", 32)];
    assert_eq!(all, expected.map(|(name, window)| (name.to_owned(), window)));
    assert_eq!(sweep.runs(), 8);
    assert_eq!(sweep.columns[1], Column::new("transport.initial_window", Kind::Whole));
    assert_eq!(sweep.points[1].cells(&sweep.columns), [Cell::Text("firefox"), Cell::Whole(32)]);
}

#[test]
fn a_ratio_multiplies_a_field_of_the_same_network() {
    let text = format!(
        "networks = [\"wifi+lte\", \"mobileh2-high\"]\n{HEAD}\
         [sweep.rate_ratio]\nvalues = [0.5, 2]\nfields = [\"networks.*.paths.1.*.rate\"]\n\
         times = \"networks.*.paths.0.down.rate\"\n"
    );
    let sweep = read(&text).unwrap();
    let rates = |point: &Point| {
        let networks = &point.plan.scenario.networks;
        networks
            .iter()
            .map(|network| {
                let links = network.paths[1].own_links().unwrap();
                assert_eq!(links.down.rate, links.up.rate);
                links.down.rate.unwrap().bits_per_sec()
            })
            .collect::<Vec<u64>>()
    };
    let all: Vec<Vec<u64>> = sweep.points.iter().map(rates).collect();
    // Half and twice 55 and 3 Mbit/s.
    assert_eq!(all, [[27_500_000, 1_500_000], [110_000_000, 6_000_000]]);
    assert_eq!(sweep.points[0].texts(), ["0.5"]);
    assert_eq!(sweep.points[1].texts(), ["2"]);
    assert_eq!(sweep.columns[0].kind, Kind::Number);
}

#[test]
fn the_complete_file_makes_the_same_points() {
    let sweep = read(&format!(
        "{HEAD}[sweep]\n\"networks.*.paths.lte.down.loss\" = [\"0%\", \"2%\"]\n\
         [sweep.random]\ncount = 3\nhost_jitter = {{ from = \"10us\", to = \"1ms\", scale = \"log\" }}\n"
    ))
    .unwrap();
    let again = read(&sweep.to_toml(&mut Inputs::default()).unwrap()).unwrap();
    let scenarios = |sweep: &Sweep| -> Vec<Scenario> {
        sweep.points.iter().map(|point| point.plan.scenario.clone()).collect()
    };
    assert_eq!(scenarios(&again), scenarios(&sweep));
    assert_eq!(sweep.points.len(), 6);
}

#[test]
fn a_wrong_value_is_told_where_its_field_stands() {
    for (text, expected) in [
        ("browser = [\"chrome\", \"chrom\"]", "a.toml:7:1: browser: "),
        (
            "\"transport.initial_window\" = [10, \"x\"]",
            "a.toml:7:1: transport.initial_window: \"x\": invalid type",
        ),
        ("initial_window = [10, 0]", "a.toml:7:1: transport.initial_window: "),
        (
            "\"networks.*.paths.2.down.rate\" = [\"1mbit\"]",
            "a.toml:7:1: networks.*.paths.2.down.rate: no such field: `2`; expected one of wifi, lte, 0, 1",
        ),
        (
            "\"networks.*.paths.ltte.down.rate\" = [\"1mbit\"]",
            "a.toml:7:1: networks.*.paths.ltte.down.rate: no such field: `ltte`; expected one of wifi, lte, 0, 1; did you mean `lte`?",
        ),
        (
            "\"networks.*.paths.1.down.rat\" = [\"1mbit\"]",
            "a.toml:7:1: networks.*.paths.1.down.rat: \"1mbit\": unknown field `rat`",
        ),
        (
            "page = { values = [1], fields = [\"seed\"] }",
            "a.toml:7:8: sweep.page: `page`; expected a name that no column of results has",
        ),
        ("\"policies.congestion\" = [\"newrno\"]", "a.toml:7:1: policies.congestion: `newrno`"),
    ] {
        let error = read(&format!("{HEAD}\n[sweep]\n{text}\n").replace("false\n\n", "false\n"))
            .unwrap_err();
        assert!(error.starts_with(expected), "{error}\ninstead of\n{expected}");
    }
    let error = read(&format!("series = \"10ms\"\n{HEAD}[sweep]\nseed = [1]\n")).unwrap_err();
    assert!(error.starts_with("a.toml:1:10: series: a series; expected no time series"), "{error}");
}
