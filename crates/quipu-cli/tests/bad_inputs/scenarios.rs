//! Scenario files that are none.

use std::fmt::Write as _;

use super::{Place, kept};

const TEXTS: [&str; 56] = [
    "runs = = 3",
    "runs",
    "[runs",
    "runs = 1\nruns = 2",
    "\u{0}",
    "runs = \"3\"",
    "runs = 0",
    "runs = -1",
    "runs = 1.5",
    "runs = 1e400",
    "run = 3",
    "seed = -1",
    "seed = 9223372036854775808",
    "pages = \"cnn\"",
    "pages = [\"cn\"]",
    "pages = [\"missing.har\"]",
    "pages = []",
    "pages = [\"cnn\", \"cnn\"]",
    "pages = [3]",
    "session = 0",
    "browser = \"chorme\"",
    "priorities = 3",
    "compute = \"some\"",
    "compute_scale = 4.1",
    "compute_scale = nan",
    "push = \"everything\"",
    "origins = \"own\"",
    "clients = 0",
    "clients = { count = 3, spread = \"fast\" }",
    "http = \"h4\"",
    "host_jitter = \"2s\"",
    "host_jitter = 3",
    "time_limit = \"0s\"",
    "duration = \"1h1\"",
    "series = \"0ms\"",
    "measure = { from = \"9s\", until = \"1s\" }",
    "[policies]\nstream = []",
    "[policies]\nstream = [\"dwr\"]",
    "[policies]\npath = [\"single:id=-7\"]",
    "[policies]\nstreams = [\"rr\"]",
    "[policies]\ncongestion = \"newreno,newren\"",
    "[transport]\nprofile = \"quip\"",
    "[transport]\ninitial_window = 0",
    "[transport]\necn = \"yes\"",
    "networks = []",
    "networks = [\"wifi+lt\"]",
    "networks = [\"wifi+lte\", \"wifi+lte\"]",
    "networks = [{ name = \"a\" }]",
    "networks = [{ name = \"a\", paths = [] }]",
    "networks = [{ name = \"a\", paths = [{ name = \"b\" }] }]",
    "networks = [{ name = \"a\", paths = [{ name = \"b\", down = { rate = \"1mbit\" } }] }]",
    "networks = [{ name = \"a\", paths = [{ name = \"b\", down = { rate = \"1mbit\", delay = \"1ms\" } }, \
     { name = \"b\", down = { rate = \"1mbit\", delay = \"1ms\" } }] }]",
    "networks = [{ name = \"a\", paths = [{ name = \"b\", bottleneck = \"c\" }] }]",
    "networks = [\"missing.toml\"]",
    "pages = []\n[[flows]]\nname = \"f\"\nstart = \"9s\"\nstop = \"1s\"",
    "pages = []\n[[cross]]\nname = \"c\"\nrate = \"0\"",
];

const SWEEPS: [&str; 14] = [
    "[sweep]",
    "[sweep]\nrunz = [1, 2]",
    "[sweep]\nruns = []",
    "[sweep]\nruns = 3",
    "[sweep]\nruns = [0]",
    "[sweep]\npages = [[\"cnn\"]]",
    "[sweep]\nbrowser = [\"chrome\", \"chorme\"]",
    "[sweep]\n\"networks.*.paths.9.down.rate\" = [\"1mbit\"]",
    "[sweep]\n\"networks.*.paths.0.down.rate\" = [\"fast\"]",
    "[sweep]\n\"networks.*.paths.0.down.rat\" = [\"1mbit\"]",
    "[[sweep.zip]]\nruns = [1, 2]\nseed = [1]",
    "[sweep.random]\ncount = 0\nruns = { from = 1, to = 2 }",
    "[sweep.random]\ncount = 3\nruns = { from = 2, to = \"x\" }",
    "series = \"1ms\"\n[sweep]\nseed = [1]",
];

fn refused(place: &Place, texts: &[&str], arguments: &[&str]) -> String {
    let mut lines = String::new();
    for text in texts {
        place.put("bad.toml", text.as_bytes());
        let line = place.refused(arguments);
        writeln!(lines, "{text:?}\n    {line}").expect("a string");
    }
    lines
}

#[test]
fn scenarios_are_refused_at_their_line_and_field() {
    let lines = refused(&Place::new(), &TEXTS, &["run", "bad.toml", "--out", "out"]);
    kept("scenarios", &lines);
}

#[test]
fn sweeps_are_refused_at_their_line_and_field() {
    kept("sweeps", &refused(&Place::new(), &SWEEPS, &["sweep", "bad.toml", "--out", "out"]));
}
