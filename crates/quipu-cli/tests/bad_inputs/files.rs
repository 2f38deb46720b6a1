//! Traces that are none.

use std::fmt::Write as _;

use super::{Place, kept};

const CSV: [(&str, &str); 18] = [
    ("nothing", ""),
    ("only a header", "time_s,mbps\n"),
    ("no header", "0,8\n1,4\n"),
    ("no time", "rate,mbps\n0,8\n"),
    ("no rate", "time_s,speed\n0,8\n"),
    ("a value that is no number", "time_s,mbps\n0,fast\n"),
    ("a time that is no number", "time_s,mbps\nsoon,8\n"),
    ("a negative rate", "time_s,mbps\n0,-8\n"),
    ("a negative time", "time_s,mbps\n-1,8\n"),
    ("times that go back", "time_s,mbps\n1,8\n0,4\n"),
    ("no rate above zero", "time_s,mbps\n0,0\n1,0\n"),
    ("infinity", "time_s,mbps\n0,inf\n"),
    ("not a number", "time_s,mbps\n0,nan\n"),
    ("a rate beyond what is possible", "time_s,mbps\n0,1e300\n"),
    ("a field too few", "time_s,mbps\n0\n"),
    ("two columns of one name", "time_s,mbps,mbps\n0,8\n"),
    ("a time of ages", "time_s,mbps\n0,8\n1e300,8\n"),
    ("a zero byte", "time_s,mbps\n0,\u{0}\n"),
];

const MAHIMAHI: [(&str, &str); 9] = [
    ("nothing", ""),
    ("a single zero", "0\n"),
    ("an empty line", "1\n\n2\n"),
    ("a word", "1\ntwo\n"),
    ("a negative number", "-1\n"),
    ("a fraction", "1.5\n"),
    ("numbers that go down", "2\n1\n"),
    ("a number beyond what is possible", "99999999999999999999\n"),
    ("a header", "time,rate\n1,2\n"),
];

fn refused(files: &[(&str, &str)], name: &str, link: &str) -> String {
    let place = Place::new();
    let mut lines = String::new();
    for (what, content) in files {
        place.put(name, content.as_bytes());
        let line = place.refused(&["compare", "--link", link, "--out", "out"]);
        writeln!(lines, "{what}\n    {line}").expect("a string");
    }
    lines
}

#[test]
fn rates_are_refused_at_their_line() {
    kept("rates", &refused(&CSV, "bad.csv", "trace=bad.csv,delay=1ms"));
}

#[test]
fn delivery_traces_are_refused_at_their_line() {
    kept("deliveries", &refused(&MAHIMAHI, "bad.down", "trace=bad.down,delay=1ms"));
}

#[test]
fn delays_and_losses_are_refused_at_their_line() {
    let delays = [
        ("no round trips", "time_s,mbps\n0,8\n"),
        ("a negative round trip", "time_s,rtt_ms\n0,-3\n"),
        ("a round trip of ages", "time_s,rtt_ms\n0,1e9\n"),
        ("a word", "time_s,rtt_ms\n0,slow\n"),
        ("all lost", "time_s,rtt_ms\n0,\n1,\n"),
    ];
    let mut text = refused(&delays, "bad.csv", "rate=1mbit,delay_trace=bad.csv");
    let losses = [
        ("more than all", "time_s,loss_percent\n0,101\n"),
        ("less than none", "time_s,loss_percent\n0,-1\n"),
        ("a word", "time_s,loss_percent\n0,some\n"),
    ];
    text.push_str(&refused(&losses, "bad.csv", "rate=1mbit,delay=1ms,loss_trace=bad.csv"));
    kept("delays", &text);
}
