use super::*;
use quipu_scenario::Finding;

fn findings(text: &str) -> Vec<String> {
    let document = Document::new(text, "a.toml");
    match check(&document, &Registry::builtin()) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.iter().map(Finding::to_string).collect(),
    }
}

#[test]
fn a_good_scenario_is_a_plan() {
    assert_eq!(findings(""), [""; 0]);
    assert_eq!(findings("pages = [\"sitespeed\"]\nnetworks = [\"lte\"]"), [""; 0]);
}

#[test]
fn each_table_that_is_wrong_is_told() {
    let text = "\
rnus = 3
visible_images = 5000
browser = \"firefx\"
http = \"h2,raw\"
[policies]
stream = [\"dwrr\", \"wr\"]
congestion = \"newren\"
[transport]
initial_windw = 3
[raw]
gap = \"10\"
[[networks]]
name = \"n\"
paths = [{ name = \"p\", down = { rate = \"1mbt\", delay = \"1ms\" } }]
[[networks]]
name = \"m\"
paths = [{ name = \"p\", down = { rate = \"1mbit\", delay = \"1ms\", jitter = \"2ms\" } }]
[[flows]]
name = \"f\"
start = \"soon\"
[[cross]]
name = \"c\"
";
    let told = findings(text);
    let starts = [
        "a.toml:1:1: rnus: no such field; expected one of seed, runs, ",
        "a.toml:2:18: visible_images: 5000; expected a whole number, 0 to 1000",
        "a.toml:3:11: browser: `firefx`; expected one of chrome",
        "a.toml:4:8: http: `h2,raw`; expected h2, h2-tcp",
        "a.toml:9:1: transport.initial_windw: no such field; expected one of profile, initial_udp_payload",
        "a.toml:11:7: raw.gap: `10`; expected a time with its unit",
        "a.toml:14:40: networks[0].paths[0].down.rate: `1mbt`; expected a rate with its unit",
        "a.toml:20:9: flows[0].start: `soon`; expected a time",
        "a.toml:21:1: cross[0].rate: missing; expected a rate",
    ];
    assert_eq!(told.len(), starts.len(), "{told:#?}");
    for (told, start) in told.iter().zip(starts) {
        assert!(told.starts_with(start), "{told}\n{start}");
    }
    assert!(told[0].ends_with("did you mean `runs`?"), "{}", told[0]);
    assert!(told[2].ends_with("did you mean `firefox`?"), "{}", told[2]);
}

#[test]
fn what_is_wrong_in_meaning_is_told_of_every_part_too() {
    let text = "\
pages = [\"sitespeed\", \"cnm\", \"sitespeed\"]
time_limit = \"0s\"
[policies]
stream = [\"dwrr\", \"wr\"]
path = [\"single:idd=1\"]
congestion = \"newren\"
[transport]
udp_payload = \"100B\"
[[networks]]
name = \"n\"
paths = [{ name = \"p\", down = { rate = \"1mbit\", delay = \"1ms\", jitter = \"2ms\" } }]
[[networks]]
name = \"m\"
paths = [{ name = \"p\", bottleneck = \"q\" }]
[[flows]]
name = \"f\"
paths = [\"pp\"]
[[flows]]
name = \"g\"
stop = \"0s\"
";
    let told = findings(text);
    let starts = [
        "a.toml:1:23: pages[1]: `cnm`; expected a page: ",
        "a.toml:2:14: time_limit: 0ms; expected 1ms to 1000000s",
        "a.toml:4:19: policies.stream[1]: `wr`; expected a stream policy: ",
        "a.toml:5:9: policies.path[0]: single has no parameter `idd`; expected one of id",
        "a.toml:6:14: policies.congestion: `newren`; expected a congestion policy: ",
        "a.toml:8:15: transport.udp_payload: 100B; expected 1200B to 65527B",
        "a.toml:11:73: networks[0].paths[0].down.jitter: 2.000 ms; expected not more than the delay",
        "a.toml:14:37: networks[1].paths[0].bottleneck: ",
        "a.toml:17:10: flows[0].paths[0]: `pp`; expected a path: p",
        "a.toml:20:8: flows[1].stop: 0ms; expected later than its start, 0ms",
    ];
    for start in starts {
        assert!(told.iter().any(|told| told.starts_with(start)), "{start}\n{told:#?}");
    }
}

#[test]
fn a_fault_of_form_hides_none_in_other_tables_and_makes_none_up() {
    let told =
        findings("runs = 0\n[policies]\nstream = [\"dwr\"]\nfoo = 1\n[transport]\nack_every = 0\n");
    assert_eq!(told.len(), 3, "{told:#?}");
    let told = findings("pages = []\n[[flows]]\nnaem = \"f\"\n[transport]\nudp_payload = \"1B\"\n");
    assert_eq!(told.len(), 3, "a flow's two and the transport's: {told:#?}");
    let told = findings("[[networks]]\nname = \"n\"\n[[flows]]\nname = \"f\"\npaths = [\"q\"]\n");
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[test]
fn files_that_are_no_toml_are_told_line_by_line() {
    let told = findings("runs = = 3\n[policies\nseed = 1\n");
    assert!(told.len() >= 2, "{told:#?}");
    assert!(told[0].starts_with("a.toml:1:8: "), "{told:#?}");
    assert!(told[1].starts_with("a.toml:2:"), "{told:#?}");
    assert!(findings("runs = 99999999999999999999999")[0].starts_with("a.toml:1:8: runs: "));
    assert!(!findings("\u{0}\u{1}").is_empty());
}
