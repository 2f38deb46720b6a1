//! `quipu report`: what it writes, what it says, and its exit codes.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error of the command in `folder`.
fn quipu(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("QLOGDIR")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A comparison in `folder/first`.
fn compared(folder: &Path) {
    let arguments = [
        "compare",
        "--page",
        "sitespeed",
        "--runs",
        "2",
        "--stream",
        "rr,fifo",
        "--no-baselines",
        "--out",
        "first",
    ];
    assert_eq!(quipu(folder, &arguments).0, 0);
}

#[test]
fn a_result_becomes_one_file_that_asks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    compared(folder.path());
    let (code, told, noted) = quipu(folder.path(), &["report", "first", "--specs", "figures"]);
    assert_eq!((code, noted.as_str()), (0, ""));
    assert!(told.starts_with("first/report.html: ") && told.lines().count() == 1, "{told}");
    assert!(told.contains(" figures; their specifications are in figures"), "{told}");
    let page = fs::read_to_string(folder.path().join("first/report.html")).unwrap();
    assert!(page.contains(r#""title":"Results: first""#));
    for outside in ["src=", "<link rel=\"stylesheet", "@import", "url(http"] {
        let markup = page.split("<script").next().unwrap();
        assert!(!markup.contains(outside), "{outside}");
    }
    let spec = folder.path().join("figures/page-time-curves.vl.json");
    let spec: serde_json::Value = serde_json::from_slice(&fs::read(spec).unwrap()).unwrap();
    assert_eq!(spec["layer"][0]["encoding"]["x"]["title"], "page time, ms");
    assert!(!spec["data"]["values"].as_array().unwrap().is_empty());
    // A report is made again without asking; the same folder gives the same bytes.
    assert_eq!(quipu(folder.path(), &["report", "first"]).0, 0);
    assert_eq!(fs::read_to_string(folder.path().join("first/report.html")).unwrap(), page);
}

#[test]
fn what_is_wrong_ends_with_2_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    compared(folder.path());
    fs::write(folder.path().join("mine.html"), "my own page, long enough to be read").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["report", "fist"], "fist does not exist; expected the folder of `quipu compare"),
        (&["report", "fist"], "did you mean `./first`?"),
        (&["report", "first", "--load", "sitespeed,3"], "expected PAGE,NETWORK,POLICY,RUN"),
        (
            &["report", "first", "--out", "mine.html"],
            "mine.html is there and is no report; --force replaces it",
        ),
    ];
    for (arguments, expected) in cases {
        let (code, told, error) = quipu(folder.path(), arguments);
        assert_eq!((code, told.as_str()), (2, ""), "{arguments:?}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
    let forced = ["report", "first", "--out", "mine.html", "--force"];
    assert_eq!(quipu(folder.path(), &forced).0, 0);
}

#[test]
fn damage_is_noted_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    compared(folder.path());
    fs::remove_file(folder.path().join("first/summary.json")).unwrap();
    let (code, told, noted) = quipu(folder.path(), &["report", "first"]);
    assert_eq!(code, 0);
    assert_eq!(noted, "note: first has no summary that can be read.\n");
    assert!(told.ends_with("figures; 1 notice\n"), "{told}");
}
