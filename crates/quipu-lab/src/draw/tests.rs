use super::*;
use quipu_scenario::find_network;

fn drawn(text: &str, signs: Signs) -> String {
    let scenario = Scenario::from_toml(text, "a.toml").unwrap();
    scenario.validate().unwrap();
    draw(&scenario, &scenario.networks[0], signs, Screen::ANY).unwrap()
}

const DUMBBELL: &str = r#"
pages = []
[[networks]]
name = "dumbbell"
about = "two paths over one bottleneck"
[[networks.paths]]
name = "near"
down = { rate = "4mbit", delay = "10us", queue = "1bdp", loss = "0.1%" }
up = { rate = "2mbit" }
access = { rate = "10mbit", delay = "45ms" }
[[networks.paths]]
name = "far"
bottleneck = "near"
access = { rate = "10mbit", delay = "90ms" }
[[networks.paths]]
name = "side"
down = { rate = "1mbit", delay = "5ms", outages = [{ from = "2s", until = "3s" }], mark = "30p" }
[[flows]]
name = "bulk"
paths = ["near"]
streams = 4
start = "15s"
[[cross]]
name = "noise"
rate = "1mbit"
kind = "on-off"
path = "side"
"#;

const STEPS: &str = r#"
clients = { count = 3, servers = 1, every = "1s" }
[[networks]]
name = "radio"
[[networks.paths]]
name = "radio"
down = { rate = "2mbit", delay = "20ms", steps = [
    { at = "20s", rate = "4mbit" }, { at = "30s", rate = "0" }, { at = "45s", rate = "1mbit" },
] }
up = { steps = [] }
"#;

#[test]
fn two_paths_have_a_box_each() {
    let scenario = Scenario::default();
    let network = find_network("wifi+lte").unwrap();
    insta::assert_snapshot!(
        "wifi_lte",
        draw(&scenario, &network, Signs::Unicode, Screen::ANY).unwrap()
    );
}

#[test]
fn a_shared_bottleneck_is_one_box() {
    insta::assert_snapshot!("dumbbell", drawn(DUMBBELL, Signs::Unicode));
    let ascii = drawn(DUMBBELL, Signs::Ascii);
    assert!(ascii.is_ascii(), "{ascii}");
    insta::assert_snapshot!("dumbbell_ascii", ascii);
}

#[test]
fn steps_have_a_curve() {
    insta::assert_snapshot!("steps", drawn(STEPS, Signs::Unicode));
    assert!(drawn(STEPS, Signs::Ascii).is_ascii());
}

#[test]
fn every_network_that_ships_can_be_drawn_in_lines_of_one_length() {
    for network in quipu_scenario::builtin_networks() {
        let text = draw(&Scenario::default(), &network, Signs::Unicode, Screen::ANY).unwrap();
        let picture = text.split("\n\n").nth(1).unwrap();
        let walls: Vec<usize> = picture
            .lines()
            .map(|line| line.trim_end_matches(|sign| !"│┐┘".contains(sign)).chars().count())
            .collect();
        assert!(walls.iter().all(|width| *width == walls[0]), "{text}");
    }
}

#[test]
fn the_radio_is_at_the_client_and_named_links_are_at_the_server() {
    let network = find_network("framework-scene-low-b").unwrap();
    let text = draw(&Scenario::default(), &network, Signs::Unicode, Screen::ANY).unwrap();
    let row = text.lines().find(|line| line.contains("◀ 55mbit")).unwrap();
    let at = |what: &str| row.find(what).unwrap();
    assert!(at("( radio wifi )") < at("◀ 55mbit") && at("◀ 55mbit") < at("[ server ]"), "{row}");
    assert!(text.contains("links server: 300mbit 0ms; shared by lte, wifi\n"), "{text}");
    assert!(text.contains("radio: lte on channel 36 at 45 m, 50 m; wifi on channel 40"), "{text}");
}

#[test]
fn recordings_have_curves_of_both_directions() {
    let network = find_network("wifi-weak+lte-recorded").unwrap();
    let text = draw(&Scenario::default(), &network, Signs::Ascii, Screen::ANY).unwrap();
    assert!(text.contains("trace us-drive-08-att"), "{text}");
    for curve in ["lte down: 0 to ", "lte up: 0 to "] {
        assert!(text.lines().any(|line| line.starts_with(curve)), "{text}");
    }
}
