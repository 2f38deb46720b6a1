//! `docs/security.md` and `docs/engine-faults.md` name tests that exist, and the former says so where
//! one is ignored. Secrets are compared in constant time, and tables are ordered.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every test function, and whether it is ignored.
fn tests() -> BTreeMap<String, bool> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    sources(&root().join("interop/tests"), &mut files);
    let mut tests = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (mut is_test, mut is_ignored) = (false, false);
        for line in text.lines().map(str::trim) {
            if line == "#[test]" || line.starts_with("#[tokio::test") {
                (is_test, is_ignored) = (true, false);
            } else if line.starts_with("#[ignore") {
                is_ignored = true;
            } else if let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ")
                && is_test
            {
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                tests.insert(name, is_ignored);
                is_test = false;
            }
        }
    }
    tests
}

/// The cells of each row of a page's tables, all of which begin with a column of this name.
fn table(page: &str, first: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = page.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.filter(|row| row[0] != first && !row[0].starts_with("---")).collect()
}

/// What a cell names as code.
fn named(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The attack and the defence of each row, with the tests that it names.
fn rows(page: &str) -> Vec<(String, String, Vec<String>)> {
    let row = |row: Vec<String>| {
        let [attack, _, defence, tests] = &row[..] else { panic!("four cells: {row:?}") };
        (attack.clone(), defence.clone(), named(tests))
    };
    table(page, "Attack").into_iter().map(row).collect()
}

#[test]
fn every_attack_names_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let tests = tests();
    let rows = rows(&page);
    assert!(rows.len() > 40, "{} attacks", rows.len());
    for (attack, defence, named) in rows {
        assert!(!named.is_empty(), "no test of: {attack}");
        let mut ignored = 0;
        for name in &named {
            let known = tests.get(name);
            let is_ignored = known.unwrap_or_else(|| panic!("no test is called {name}: {attack}"));
            ignored += usize::from(*is_ignored);
        }
        let open = defence.contains("**Open**");
        assert_eq!(ignored > 0, open, "{attack}: {ignored} tests are ignored");
    }
}

/// A fault of the engine that was found has a test that runs, or the reason why it has none.
#[test]
fn every_fault_names_tests_that_run_or_a_reason() {
    let page = std::fs::read_to_string(root().join("docs/engine-faults.md")).unwrap();
    let tests = tests();
    let rows = table(&page, "Fault");
    assert!(rows.len() > 60, "{} faults", rows.len());
    for row in rows {
        let [fault, _, shown] = &row[..] else { panic!("three cells: {row:?}") };
        if shown.starts_with("No test: ") {
            continue;
        }
        let named = named(shown);
        assert!(!named.is_empty(), "neither a test nor a reason: {fault}");
        for name in named {
            assert_eq!(tests.get(&name), Some(&false), "no test called {name} runs: {fault}");
        }
    }
}

/// The other way round: an attack that has a test has a line of the page.
#[test]
fn every_test_of_an_attack_is_on_the_page() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let mut files = Vec::new();
    sources(&root().join("crates/quipu-testkit/tests/attacks"), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (before, line) in text.lines().zip(text.lines().skip(1)) {
            let is_test = ["#[test]", "#[ignore"].iter().any(|start| before.starts_with(start));
            if let Some(name) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = name.split('(').next().unwrap_or_default();
                assert!(page.contains(&format!("`{name}`")), "{name} of {}", file.display());
            }
        }
    }
}

/// What the engine's source says outside of its tests, by file.
fn engine() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    sources(&root().join("crates/quipu-quic/src"), &mut files);
    files.retain(|file| !file.ends_with("tests.rs"));
    let code = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        (file, code)
    };
    files.into_iter().map(code).collect()
}

/// Peers choose what tables are looked up by, connection IDs first of all, and could choose what
/// collides. Ordered maps have no such keys.
#[test]
fn no_table_of_the_engine_is_hashed() {
    let engine = engine();
    assert!(engine.iter().any(|(_, code)| code.contains("BTreeMap<ConnectionId")));
    for (file, code) in &engine {
        let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        for line in code {
            let hashed = ["HashMap", "HashSet", "hash_map", "hash_set", "HashTable", "IndexMap"];
            assert!(!hashed.iter().any(|name| line.contains(name)), "{}: {line}", file.display());
        }
    }
}

/// The words on both sides of each comparison in a line.
fn compared(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let is_part = |c: char| c.is_alphanumeric() || "_.*&()".contains(c);
    let mut words = Vec::new();
    for operator in [" == ", " != "] {
        for (at, _) in code.match_indices(operator) {
            let before = code[..at].rsplit(|c| !is_part(c)).next();
            let behind = code[at + operator.len()..].split(|c| !is_part(c)).next();
            words.extend([before, behind].into_iter().flatten().map(str::to_owned));
        }
    }
    words
}

/// Reset tokens and the tags of Retry packets are compared by one function, which looks at all bytes.
/// AEADs, and with them address tokens, are the TLS provider's affair.
#[test]
fn secrets_are_compared_in_constant_time() {
    let engine = engine();
    let of = |name: &str| {
        let found = engine.iter().find(|(file, _)| file.ends_with(name));
        found.map(|(_, code)| code.as_str()).unwrap()
    };
    // The type's own comparison is the function's, so that none can be written by mistake.
    let tokens = of("wire/connection_id.rs");
    let kind = tokens.find("pub struct ResetToken").unwrap();
    let derived = tokens[..kind].lines().rev().take_while(|line| line.starts_with("#["));
    let derived: String = derived.collect();
    assert!(derived.contains("derive(") && !derived.contains("PartialEq"), "{derived}");
    assert!(!derived.contains("Hash") && !derived.contains("Ord"), "{derived}");
    let comparison = tokens.split("impl PartialEq for ResetToken {").nth(1).unwrap();
    assert!(
        comparison.split('}').next().unwrap().contains("constant_time::equal("),
        "{comparison}"
    );
    assert!(of("connection/receive.rs").contains("constant_time::equal(&tag_of, &tag)"));
    // Nothing that is called a tag or the bytes of a token is compared otherwise.
    for (file, code) in &engine {
        for line in code.lines() {
            for word in compared(line) {
                let last = word.trim_end_matches("()").rsplit('.').next().unwrap_or_default();
                let secret = ["tag", "mac", "challenge"].contains(&last)
                    || word.contains("token") && word.contains("bytes");
                assert!(!secret, "{}: {line}", file.display());
            }
        }
    }
}
