//! Recordings that are none.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Place, kept};

pub(crate) const GOOD: &str = include_str!("../../../quipu-web/tests/data/www.google.com-2017.har");

/// A change of one value: its path, and what it becomes; nothing to remove it.
type Change = (&'static str, Option<Value>);

fn changes() -> Vec<Change> {
    vec![
        ("/log", None),
        ("/log", Some(json!([]))),
        ("/log/entries", None),
        ("/log/entries", Some(json!({}))),
        ("/log/entries", Some(json!([]))),
        ("/log/entries", Some(json!([3]))),
        ("/log/pages", Some(json!("one"))),
        ("/log/entries/0/request", Some(json!("GET"))),
        ("/log/entries/2/response/content", Some(json!("text"))),
        ("/log/entries/2/response/bodySize", Some(json!(1e18))),
        ("/log/entries/2/response/_transferSize", Some(json!(1_u64 << 60))),
        ("/log/entries/2/timings", Some(json!("none"))),
    ]
}

#[test]
fn recordings_are_refused_at_the_path_of_their_value() {
    let place = Place::new();
    let mut lines = String::new();
    for (path, value) in changes() {
        let mut har: Value = serde_json::from_str(GOOD).expect("JSON");
        match &value {
            Some(value) => *har.pointer_mut(path).expect("a value") = value.clone(),
            None => {
                let (parent, key) = path.rsplit_once('/').expect("a path");
                let parent = har.pointer_mut(parent).and_then(Value::as_object_mut);
                parent.expect("an object").remove(key);
            }
        }
        place.put("bad.har", har.to_string().as_bytes());
        let became = value.map_or("removed".to_owned(), |value| value.to_string());
        let line = place.refused(&["load", "--page", "bad.har", "--out", "out"]);
        writeln!(lines, "{path}: {became}\n    {line}").expect("a string");
    }
    kept("recordings", &lines);
}

#[test]
fn entries_that_are_broken_are_told_and_the_rest_is_loaded() {
    let place = Place::new();
    let mut har: Value = serde_json::from_str(GOOD).expect("JSON");
    har["log"]["entries"][3]["request"] = json!({});
    har["log"]["entries"][5]["response"]["status"] = json!(0);
    place.put("odd.har", har.to_string().as_bytes());
    for command in ["load", "compare"] {
        let arguments = [command, "--page", "odd.har", "--runs=1"];
        let output = place.command(&arguments).output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr);
        let told: Vec<&str> = text.lines().filter(|line| line.starts_with("note: ")).collect();
        let expected = [
            "note: page odd: 1 entry left out: blocked, cancelled or failed; `quipu page show` lists them",
            "note: page odd: 1 entry left out: broken, without a URL; `quipu page show` lists them",
        ];
        assert_eq!(told, expected, "{text}");
    }
}

#[test]
fn files_that_are_no_recordings_are_refused() {
    let place = Place::new();
    let cut = &GOOD.as_bytes()[..GOOD.len() / 2];
    let files: [(&str, &[u8]); 14] = [
        ("nothing", b""),
        ("a number", b"3"),
        ("an empty object", b"{}"),
        ("a list", b"[]"),
        ("text", b"hello"),
        ("HTML", b"<!doctype html><title>404</title>"),
        ("half a file", cut),
        ("a zero byte", b"\0"),
        ("not UTF-8", b"{\"log\": \"\xff\xfe\"}"),
        ("an empty gzip file", &[0x1f, 0x8b]),
        ("gzip of nothing", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("broken gzip", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 255, 255, 255]),
        ("a broken archive", b"PK\x03\x04nothing"),
        ("an empty archive", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    ];
    let mut lines = String::new();
    for (name, content) in files {
        place.put("bad.har", content);
        let line = place.refused(&["compare", "--page", "bad.har", "--out", "out"]);
        writeln!(lines, "{name}\n    {line}").expect("a string");
    }
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    place.put("bad.har", nested.as_bytes());
    let line = place.refused(&["page", "show", "bad.har"]);
    writeln!(lines, "lists in lists\n    {line}").expect("a string");
    // Entries decades apart: the load would end by the limit of virtual time.
    let mut har: Value = serde_json::from_str(GOOD).expect("JSON");
    for (index, entry) in
        har["log"]["entries"].as_array_mut().expect("a list").iter_mut().enumerate()
    {
        entry["startedDateTime"] = json!(format!("{}-01-01T00:00:00.000Z", 1990 + 30 * index));
    }
    place.put("bad.har", har.to_string().as_bytes());
    let line = place.refused(&["load", "--page", "bad.har"]);
    writeln!(lines, "centuries\n    {line}").expect("a string");
    kept("no_recordings", &lines);
}

#[cfg(unix)]
#[test]
fn files_without_an_end_are_refused_after_what_may_be_read() {
    let place = Place::new();
    let toml = "networks = [{ name = \"a\", paths = [{ name = \"b\", down = { trace = \"/dev/zero\", delay = \"1ms\" } }] }]";
    place.put("endless.toml", toml.as_bytes());
    let text = place.all_refused(
        [
            "run /dev/zero",
            "scenario check /dev/zero",
            "compare --network /dev/zero.toml",
            "compare --link trace=/dev/zero,delay=1ms",
            "compare --link rate=1mbit,delay_trace=/dev/zero",
            "run endless.toml",
            "report /dev/zero --out a.html",
        ]
        .iter()
        .copied()
        .filter(|command| !command.starts_with("scenario")),
    );
    kept("endless", &text);
}
