//! Folders that are damaged: something is said, the rest is shown, and nothing panics.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::folders::{Sweep, read, sweep_folder, try_read};
use crate::specs::check;

fn small(folder: &Path) {
    let sweep = Sweep { pages: 1, browsers: 2, networks: 2, policies: 2, runs: 3, objects: 3 };
    sweep_folder(folder, &sweep);
    fs::write(folder.join("summary.json"), SUMMARY).unwrap();
    fs::write(folder.join("verdicts.json"), "{}").unwrap();
}

const SUMMARY: &str = r#"{"version":"0.1.0","commit":"c","world":"simulated","seed":7,"complete":true,
"runs_planned":24,"runs_finished":24,"failures":[{"page":"page0","network":"net0","policy":"policy0",
"run":1,"reason":"too late"}],"pages":[{"name":"page0","objects":3,"bytes":9,"hosts":1}],"rows":[{
"page":"page0","network":"net0","policy":"policy1 + minrtt","fields":{"browser":"b0"},"choice":"all",
"metrics":[{"metric":"page_time","ratio":1.03,"ratio_low":1.02,"ratio_high":1.04}]}],"identical":[]}"#;

fn edit(folder: &Path, file: &str, change: impl Fn(String) -> String) {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, change(text)).unwrap();
}

#[test]
fn each_damage_is_told_in_one_line_and_the_rest_is_shown() {
    /// A file, what happens to it, and what is said.
    type Case = (&'static str, fn(String) -> String, &'static str);
    let cases: [Case; 7] = [
        (
            "runs.csv",
            |text| text.replacen(",100000000,", ",fast,", 1),
            "runs.csv, line 2: column page_time_ns: `fast`; expected a whole number; this row is left \
             out.",
        ),
        (
            "runs.csv",
            |text| text[..text.len() - 40].to_owned(),
            "cells; expected 14; this row is left out.",
        ),
        (
            "objects.csv",
            |text| text.replace("since_page_start_ns", "since_page_start"),
            "objects.csv has no column `since_page_start_ns`; nearest is `since_page_start`; what needs \
             it is left out.",
        ),
        (
            "status.json",
            |text| text.replace("\"done\":24", "\"done\":7"),
            "is unfinished: 7 of 24 runs are done; the report shows these.",
        ),
        (
            "summary.json",
            |text| text[..200].to_owned(),
            "summary.json is not as this version writes it and is left out",
        ),
        (
            "summary.json",
            |text| text.replace("\"seed\":7", "\"seed\":\"seven\""),
            "summary.json is not as this version writes it and is left out",
        ),
        ("paths.csv", |text| text.replace("500", "x"), "and 47 more are left out."),
    ];
    for (file, change, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        edit(folder.path(), file, change);
        let document = read(folder.path());
        check(&document);
        let said = document.notices.iter().any(|notice| notice.contains(expected));
        assert!(said, "{file}: {:?}", document.notices);
        assert!(document.sections.iter().any(|section| section.id == "page-time"), "{file}");
    }
}

#[test]
fn failed_runs_are_told_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let document = read(folder.path());
    check(&document);
    assert!(document.notices.iter().any(|it| it.ends_with("1 run failed; see the failures.")));
    let failures = document.sections.iter().find(|section| section.id == "failures").unwrap();
    assert!(failures.tables[0].rows[0].contains(&"too late".into()));
}

/// What happens to a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Byte(usize, u8),
    Text(usize, String),
    Remove(usize, usize),
    Gone,
}

fn damage() -> impl Strategy<Value = Damage> {
    let texts = prop_oneof![
        Just("\"".to_owned()),
        Just(",".to_owned()),
        Just("\n".to_owned()),
        Just("{".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("-1".to_owned()),
        Just("1e999".to_owned()),
        Just("</script>".to_owned()),
        Just("\u{202e}".to_owned()),
    ];
    prop_oneof![
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (any::<usize>(), texts).prop_map(|(at, text)| Damage::Text(at, text)),
        (any::<usize>(), 1_usize..60).prop_map(|(at, count)| Damage::Remove(at, count)),
        Just(Damage::Gone),
    ]
}

const FILES: [&str; 7] = [
    "runs.csv",
    "objects.csv",
    "paths.csv",
    "networks.csv",
    "summary.json",
    "status.json",
    "sweep.toml",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_a_panic_or_a_figure_without_data(
        damages in prop::collection::vec((0_usize..FILES.len(), damage()), 1..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        small(folder.path());
        for (file, damage) in damages {
            let path = folder.path().join(FILES[file]);
            let Ok(mut bytes) = fs::read(&path) else { continue };
            let all = bytes.len().max(1);
            match damage {
                Damage::Cut(at) => bytes.truncate(at % all),
                Damage::Byte(at, byte) if !bytes.is_empty() => bytes[at % all] = byte,
                Damage::Byte(..) => {}
                Damage::Text(at, text) => {
                    let at = (at % all).min(bytes.len());
                    bytes.splice(at..at, text.bytes());
                }
                Damage::Remove(at, count) => {
                    let at = (at % all).min(bytes.len());
                    let end = (at + count).min(bytes.len());
                    bytes.drain(at..end);
                }
                Damage::Gone => {
                    fs::remove_file(&path).unwrap();
                    continue;
                }
            }
            fs::write(&path, bytes).unwrap();
        }
        match try_read(folder.path()) {
            Ok(document) => {
                check(&document);
                let html = quipu_report::page::page(&document);
                prop_assert!(html.len() < 10_000_000);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
