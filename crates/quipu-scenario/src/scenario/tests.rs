use super::*;
use crate::units::Unit;
use crate::{Start, builtin_networks, find_network};

#[test]
fn the_default_is_valid_and_survives_its_file() {
    let scenario = Scenario::default();
    scenario.validate().unwrap();
    assert_eq!(scenario.networks[0].name, "wifi+lte");
    let text = scenario.to_toml().unwrap();
    assert_eq!(Scenario::from_toml(&text, "scenario.toml").unwrap(), scenario);
}

#[test]
fn all_builtin_networks_are_valid_survive_a_file_and_have_names_of_their_own() {
    let networks = builtin_networks();
    assert!(networks.len() >= 10);
    let names: std::collections::BTreeSet<_> = networks.iter().map(|n| &n.name).collect();
    assert_eq!(names.len(), networks.len());
    let scenario = Scenario { networks, ..Scenario::default() };
    scenario.validate().unwrap();
    let text = scenario.to_toml().unwrap();
    assert_eq!(Scenario::from_toml(&text, "scenario.toml").unwrap(), scenario);
}

#[test]
fn a_file_may_name_networks_and_leave_out_the_rest() {
    let text =
        "networks = [\"lte\", { name = \"x\", paths = [] }]\n[transport]\ninitial_window = 32";
    let scenario = Scenario::from_toml(text, "a.toml").unwrap();
    assert_eq!(scenario.transport.initial_window, 32);
    assert_eq!(scenario.networks[0].paths[0].name, "lte");
    let error = scenario.validate().unwrap_err().to_string();
    assert_eq!(error, "networks[1].paths is 0; expected 1 to 32");
}

#[test]
fn mistakes_in_a_file_name_the_line_and_the_nearest() {
    let refused = |text| Scenario::from_toml(text, "a.toml").unwrap_err().to_string();
    assert!(refused("seed = 1\nrnus = 3").starts_with("a.toml:2:1: rnus: no such field; "));
    assert!(refused("networks = [\"wifi+lt\"]").contains("did you mean `wifi+lte`?"));
    assert!(refused("discovery = \"recoded\"").contains("did you mean `recorded`?"));
    assert!(refused("host_jitter = \"-1us\"").contains("expected a time"));
    assert!(refused("runs = -1").starts_with("a.toml:1:8: runs: -1; "));
    assert!(!refused("seed = 1\nrnus").contains('\n'));
}

#[test]
fn values_out_of_range_are_refused() {
    let refused = |key: &str, value: &str| {
        let changed = Scenario::default().with_field(key, value);
        changed.and_then(|scenario| scenario.validate()).unwrap_err().to_string()
    };
    assert_eq!(refused("runs", "0"), "runs is 0; expected 1 to 10000");
    assert!(refused("pages", "").starts_with("pages is empty"));
    assert_eq!(refused("session", "0"), "session is 0; expected 1 to 1000");
    assert!(refused("pacing_factor", "NaN").starts_with("transport.pacing_factor is NaN"));
    assert!(refused("udp-payload", "1000B").contains("expected 1200B to 65527B"));
    assert!(refused("initial_window", "many").contains("expected a whole number"));
    assert!(refused("initial_windw", "3").contains("did you mean `transport.initial_window`?"));
    assert!(refused("start", "warm:0").contains("warm:1 to warm:1000"));
    assert!(refused("stream", "").contains("at least one stream policy"));
    assert!(refused("tls", "openssl").ends_with("expected one of null, rustls"));
}

#[test]
fn fields_of_elements_of_lists_are_set_by_name_position_or_all() {
    let default = Scenario::default();
    let queue = |scenario: &Scenario, path: usize| {
        scenario.networks[0].paths[path].own_links().unwrap().down.queue.print()
    };
    let before = [queue(&default, 0), queue(&default, 1)];
    let named = default.with_field("networks.wifi+lte.paths.wifi.down.queue", "50p").unwrap();
    assert_eq!([queue(&named, 0), queue(&named, 1)], ["50p".to_owned(), before[1].clone()]);
    let all = default.with_field("networks.*.paths.*.*.queue", "7p").unwrap();
    assert_eq!([queue(&all, 0), queue(&all, 1)], ["7p", "7p"]);
    let reorders = default.with_field("networks.0.paths.1.down.jitter_reorders", "true").unwrap();
    assert!(reorders.networks[0].paths[1].own_links().unwrap().down.jitter_reorders);

    for (key, value, told) in [
        ("networks.*.paths.wi-fi.down.queue", "50p", "elements of lists have names or positions"),
        ("networks.*.paths.wifi.down.queue", "50", "50p"),
        ("networks.*.paths.wifi.down.quue", "50p", "did you mean `queue`"),
        ("networks.*.paths.wifi.down.jitter_reorders", "yes", "true or false"),
    ] {
        let error = default.with_field(key, value).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_field_is_set_by_its_last_name() {
    let scenario = Scenario::default().with_field("start", "warm:4").unwrap();
    assert_eq!(scenario.transport.start, Start::Warm(4));
    let scenario = scenario.with_field("server-write-chunk", "32KiB").unwrap();
    assert_eq!(scenario.transport.server_write_chunk, Some(Bytes(32 << 10)));
    let scenario = scenario.with_field("policies.path", "ecf:beta=0.25,delta=1,minrtt").unwrap();
    assert_eq!(scenario.policies.path, ["ecf:beta=0.25,delta=1", "minrtt"]);
}

#[test]
fn without_randomness_one_run_is_enough() {
    let mut scenario = Scenario::default();
    let network = scenario.networks[0].clone();
    assert_eq!(scenario.runs_on(&network), 30);
    scenario.host_jitter = Duration::ZERO;
    assert_eq!(scenario.runs_on(&network), 1);
    assert_eq!(scenario.runs_on(&find_network("wifi+lte-lossy").unwrap()), 30);
}
