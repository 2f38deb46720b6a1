//! `docs/security.md` names tests that exist, and says so where one is ignored.
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
            if line == "#[test]" {
                (is_test, is_ignored) = (true, false);
            } else if line.starts_with("#[ignore") {
                is_ignored = true;
            } else if let Some(rest) = line.strip_prefix("fn ")
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

/// The attack and the defence of each row, with the tests that it names.
fn rows(page: &str) -> Vec<(String, String, Vec<String>)> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let table = page.lines().filter(|line| line.starts_with("| ")).map(cells);
    table
        .filter(|row| row[0] != "Attack" && !row[0].starts_with("---"))
        .map(|row| {
            let [attack, _, defence, named] = &row[..] else { panic!("four cells: {row:?}") };
            let named = named.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (attack.clone(), defence.clone(), named)
        })
        .collect()
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
