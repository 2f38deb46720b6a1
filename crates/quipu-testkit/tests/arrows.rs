//! Which crate may use which: the table of `ARCHITECTURE.md`, held against all manifests.
//!
//! The table holds for every kind of dependency. A test that needs both the engine and the
//! simulator belongs into `quipu-testkit` or `quipu-lab`, where both may be used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Each crate of ours with those of ours that it may use, from the ground up.
const TABLE: [(&str, &[&str]); 24] = [
    // For build scripts, which look at the others as text.
    ("build", &[]),
    ("base", &[]),
    ("policy", &["base"]),
    ("learned", &["base", "policy"]),
    ("quic", &["base", "policy"]),
    ("null-tls", &["base", "quic"]),
    ("http", &["base", "policy", "quic"]),
    ("qlog", &["base", "policy", "quic"]),
    ("web", &["base"]),
    ("link", &["base"]),
    ("sim", &["base", "link"]),
    ("emu", &["base", "link"]),
    ("tokio", &["base", "policy", "quic", "http"]),
    ("recorder", &["base", "web"]),
    // Its tests drive a browser over links, and read logs.
    ("serve", &["base", "policy", "quic", "http", "web", "tokio", "link", "qlog", "recorder"]),
    ("record", &["base"]),
    ("scenario", &["base", "link", "web", "record"]),
    (
        "lab",
        &[
            "base", "policy", "quic", "qlog", "null-tls", "http", "web", "link", "sim", "record",
            "scenario", "emu",
        ],
    ),
    // Its tests load from a server.
    (
        "live",
        &["base", "policy", "quic", "http", "tokio", "web", "record", "scenario", "lab", "serve"],
    ),
    ("study", &["base", "web", "record", "scenario", "lab"]),
    ("report", &["base", "record"]),
    (
        "cli",
        &[
            "base", "record", "recorder", "scenario", "lab", "live", "study", "report", "tokio",
            "serve", "emu", "build", "learned",
        ],
    ),
    // Not in `crates/`, where all is built and tested without Python.
    (
        "python",
        &["base", "policy", "learned", "record", "scenario", "lab", "study", "report", "cli"],
    ),
    ("testkit", &["base", "policy", "quic", "qlog", "null-tls", "http", "tokio", "link", "sim"]),
];

/// Arrows that may not exist even by way of other crates.
const NEVER: [(&str, &[&str]); 7] = [
    ("policy", &["quic"]),
    ("quic", &["sim", "link", "tokio"]),
    ("sim", &["quic"]),
    ("link", &["quic"]),
    ("web", &["policy", "quic"]),
    // A changed policy builds no scenario code again.
    ("scenario", &["policy", "quic", "http", "sim"]),
    ("report", &["policy", "quic", "sim", "scenario", "lab"]),
];

/// Foreign crates that bring a clock, a socket or a runtime.
const CLOCKS: [&str; 12] = [
    "async-io",
    "chrono",
    "coarsetime",
    "jiff",
    "mio",
    "quanta",
    "quinn-udp",
    "smol",
    "socket2",
    "time",
    "tokio",
    "web-time",
];

/// Who may use foreign crates that bring a clock. `web` and `link` read times in recordings.
const MAY_USE_CLOCKS: [(&str, &[&str]); 8] = [
    ("web", &["jiff"]),
    ("link", &["jiff"]),
    // It writes when a real browser asked for what.
    ("recorder", &["jiff"]),
    ("emu", &CLOCKS),
    ("tokio", &CLOCKS),
    ("serve", &CLOCKS),
    ("live", &CLOCKS),
    // The command line draws progress.
    ("cli", &CLOCKS),
];

/// What each crate uses directly, ours and foreign, by short name.
type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_manifests_keep_to_the_table() {
    let uses = workspace();
    assert!(uses.len() >= 10, "only {:?} were found", uses.keys());
    assert_eq!(violations(&uses), Vec::<String>::new());
}

#[test]
fn an_arrow_that_is_not_in_the_table_is_found() {
    let found = |from: &str, to: &str| !violations(&made_up(&[(from, to)])).is_empty();
    for (from, to) in [
        ("cli", "null-tls"),
        ("http", "null-tls"),
        ("quic", "sim"),
        ("quic", "link"),
        ("quic", "tokio"),
        ("sim", "quic"),
        ("policy", "quic"),
        ("web", "quic"),
        ("scenario", "policy"),
        ("base", "policy"),
        ("lab", "testkit"),
    ] {
        assert!(found(from, &format!("quipu-{to}")), "{from} -> {to} was accepted");
    }
    for (from, to) in [("link", "tokio"), ("sim", "jiff"), ("quic", "quinn-udp")] {
        assert!(found(from, to), "{from} -> {to} was accepted");
    }
    assert!(!found("lab", "quipu-null-tls"));
    assert!(!found("web", "jiff"));
}

#[test]
fn an_arrow_by_way_of_other_crates_is_found() {
    let uses = made_up(&[("quic", "quipu-http"), ("http", "quipu-sim")]);
    let found = violations(&uses);
    assert!(found.contains(&"quipu-quic reaches quipu-sim, which it must not".to_owned()));
}

#[test]
fn a_crate_without_a_row_is_found() {
    assert_eq!(violations(&made_up(&[("gossip", "serde")])), ["quipu-gossip has no row"]);
}

#[test]
fn every_kind_of_dependency_counts_and_renaming_hides_nothing() {
    let workspace: Table =
        toml::from_str(r#"clock = { package = "tokio", version = "1" }"#).unwrap();
    let manifest: Table = toml::from_str(
        r#"
        dependencies.quipu-base.workspace = true
        dependencies.clock.workspace = true
        dev-dependencies.engine = { package = "quipu-quic", path = "../quipu-quic" }
        build-dependencies.serde = "1"
        target."cfg(unix)".dependencies.libc = "0.2"
        "#,
    )
    .unwrap();
    let found: Vec<String> = dependencies(&manifest, &workspace).into_iter().collect();
    assert_eq!(found, ["libc", "quipu-base", "quipu-quic", "serde", "tokio"]);
}

#[test]
fn the_table_itself_has_no_forbidden_arrow() {
    let arrows: Vec<(&str, String)> = TABLE
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (*from, format!("quipu-{to}"))))
        .collect();
    let arrows: Vec<(&str, &str)> = arrows.iter().map(|(from, to)| (*from, to.as_str())).collect();
    assert_eq!(violations(&made_up(&arrows)), Vec::<String>::new());
    for (row, (name, may_use)) in TABLE.iter().enumerate() {
        let is_above = |other: &&str| TABLE[..row].iter().any(|(above, _)| above == other);
        assert!(may_use.iter().all(is_above), "{name} uses a crate of a later row");
    }
}

/// Everything that is wrong with `uses`.
fn violations(uses: &Uses) -> Vec<String> {
    let mut found = Vec::new();
    for (name, used) in uses {
        let Some(may_use) = row(&TABLE, name) else {
            found.push(format!("quipu-{name} has no row"));
            continue;
        };
        for used in used {
            let allowed = match used.strip_prefix("quipu-") {
                Some(ours) => may_use.contains(&ours),
                None => {
                    let clocks = row(&MAY_USE_CLOCKS, name).unwrap_or_default();
                    !CLOCKS.contains(&used.as_str()) || clocks.contains(&used.as_str())
                }
            };
            if !allowed {
                found.push(format!("quipu-{name} uses {used}, which is not in its row"));
            }
        }
        let reached = reached(uses, name);
        let never = row(&NEVER, name).unwrap_or_default();
        for target in never.iter().filter(|target| reached.contains(**target)) {
            found.push(format!("quipu-{name} reaches quipu-{target}, which it must not"));
        }
    }
    found
}

fn row(table: &[(&str, &'static [&'static str])], name: &str) -> Option<&'static [&'static str]> {
    table.iter().find(|(other, _)| *other == name).map(|(_, row)| *row)
}

/// Our crates that `name` uses, directly or not.
fn reached<'u>(uses: &'u Uses, name: &str) -> BTreeSet<&'u str> {
    let of = |name: &str| {
        let used = uses.get(name).into_iter().flatten();
        used.filter_map(|used| used.strip_prefix("quipu-"))
    };
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = of(name).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(of(next));
        }
    }
    reached
}

/// A workspace that has these arrows.
fn made_up(arrows: &[(&str, &str)]) -> Uses {
    let mut uses = Uses::new();
    for (from, to) in arrows {
        uses.entry((*from).to_owned()).or_default().insert((*to).to_owned());
    }
    uses
}

/// What each crate under `crates/` uses, and the Python package.
fn workspace() -> Uses {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are in a folder");
    let repository = crates.parent().expect("the folder is in the repository");
    let root = read(&repository.join("Cargo.toml"));
    let shared = root["workspace"]["dependencies"].as_table().expect("a table");
    let members = fs::read_dir(crates).expect("crates can be listed");
    members
        .map(|member| member.expect("an entry").path())
        .chain([repository.join("python")])
        .map(|member| member.join("Cargo.toml"))
        .filter(|manifest| manifest.exists())
        .map(|manifest| {
            let manifest = read(&manifest);
            let name = manifest["package"]["name"].as_str().expect("a name");
            let name =
                name.strip_prefix("quipu-").expect("our crates are called quipu-").to_owned();
            (name, dependencies(&manifest, shared))
        })
        .collect()
}

fn read(path: &PathBuf) -> Table {
    let text = fs::read_to_string(path).expect("a manifest can be read");
    toml::from_str(&text).expect("a manifest is TOML")
}

/// All crates that `manifest` names, of every kind and for every platform; `shared` are the
/// workspace's.
fn dependencies(manifest: &Table, shared: &Table) -> BTreeSet<String> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(Value::as_table);
    let platforms = targets.into_iter().flatten().filter_map(|(_, section)| section.as_table());
    let sections = std::iter::once(manifest).chain(platforms);
    sections
        .flat_map(|section| KINDS.iter().filter_map(|kind| section.get(*kind)?.as_table()))
        .flatten()
        .map(|(key, value)| {
            let renamed = |value: &Value| Some(value.get("package")?.as_str()?.to_owned());
            let renamed_here = renamed(value);
            renamed_here.or_else(|| renamed(shared.get(key)?)).unwrap_or_else(|| key.clone())
        })
        .collect()
}
