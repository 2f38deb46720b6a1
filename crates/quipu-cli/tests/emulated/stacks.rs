//! Loads with stacks of the kernel, beside Quipu's.

use serde_json::Value;
use tempfile::TempDir;

use super::{compared, may_emulate, output, quipu, text};

#[test]
fn stacks_of_the_kernel_are_compared_over_each_path_or_all() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("results");
    let stacks = ["--stack", "quipu,tcp-h2:congestion=reno,tcp-h1,mptcp-h2", "--stream", "fifo"];
    let what = [&stacks[..], &["--page", "dojo-demo", "--no-baselines"]].concat();
    let Some(rows) = compared(&what, &out) else { return };
    let of = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let named: Vec<(String, String)> =
        rows.iter().map(|row| (of(row, "policy"), of(row, "choice"))).collect();
    assert!(named[0].0 == "fifo + minrtt" && named[0].1.contains("stream=fifo"), "{named:?}");
    let expected = [
        ("path0 alone + tcp-h2 + reno", "stack=tcp-h2 congestion=reno alone=path0"),
        ("path1 alone + tcp-h2 + reno", "stack=tcp-h2 congestion=reno alone=path1"),
        ("path0 alone + tcp-h1 + cubic", "stack=tcp-h1 congestion=cubic alone=path0"),
        ("path1 alone + tcp-h1 + cubic", "stack=tcp-h1 congestion=cubic alone=path1"),
        ("mptcp-h2 + cubic", "stack=mptcp-h2 congestion=cubic"),
    ];
    let kernel = named[1..].iter().map(|(policy, choice)| (policy.as_str(), choice.as_str()));
    assert!(kernel.eq(expected), "{named:?}");
    for row in &rows[1..] {
        let page = &row["metrics"][1];
        assert!(page["median"].as_u64() > Some(300_000_000), "{page}");
        assert_eq!(page["over_bound"], Value::Null, "bounds are those of QUIC");
    }
    let shares = |row: usize| rows[row]["shares"].as_array().expect("shares").clone();
    let share = |row: usize, path: usize| shares(row)[path]["per_mille"].as_u64();
    assert_eq!((share(1, 0), share(2, 0)), (Some(1_000), Some(0)));
    assert!((0..2).all(|path| share(5, path) > Some(50)), "{:?}", shares(5));
    let scenario = std::fs::read_to_string(out.join("scenario.toml")).expect("a scenario");
    let stacks = "stack = \"quipu,tcp-h2:congestion=reno,tcp-h1,mptcp-h2\"";
    assert!(scenario.contains(stacks), "{scenario}");
}

#[test]
fn stacks_that_there_are_not_or_elsewhere_are_refused() {
    let emulated = ["--world", "emulated"];
    for (arguments, world, told) in [
        (&["compare", "--stack", "tcp-h3"][..], &emulated[..], "did you mean `tcp-h2`?"),
        (
            &["compare", "--stack", "tcp-h2:congestion=cubc"],
            &emulated,
            "did you mean `tcp-h2:congestion=cubic`?",
        ),
        (
            &["compare", "--stack", "chromium-h3"],
            &[],
            "stack chromium-h3: expected quipu, or --world emulated",
        ),
        (
            &["compare", "--priority", "10"],
            &[],
            "--priority 10: expected none without --world emulated",
        ),
        (
            &["compare", "--stack", "quipu,tcp-h2"],
            &[],
            "stack tcp-h2: expected quipu, or --world emulated",
        ),
        (
            &["compare", "--stack", "mptcp-h2"],
            &["--world", "simulated"],
            "stack mptcp-h2: expected quipu",
        ),
        (&["load", "--stack=tcp-h1"], &[], "stack tcp-h1: expected quipu"),
        (
            &["compare", "--stack", "quipu,quinn-h3,noq-h3"],
            &emulated,
            "stack quinn-h3: this program does not have it; quipu-stacks, the program of interop/stacks, does",
        ),
        (&["load", "--stack=noq-h3"], &emulated, "stack noq-h3: this program does not have it"),
        (
            &["compare", "--stack", "noq-h3"],
            &[],
            "stack noq-h3: expected quipu, or --world emulated",
        ),
        (
            &["serve", "--har", "dojo-demo", "--stack", "noq-h3:congestion=bbr"],
            &[],
            "stack noq-h3:congestion=bbr: this program does not have it",
        ),
        (
            &["serve", "--har", "dojo-demo", "--stack", "tcp-h2"],
            &[],
            "--stack: tcp-h2: expected quinn-h3 or noq-h3",
        ),
        (
            &["compare", "--stack", "tcp-h2", "--page", "dojo-demo"],
            &["--live", "https://127.0.0.1"],
            "stack tcp-h2: expected quipu",
        ),
    ] {
        let ended = output(quipu().args(arguments).args(world));
        let reason = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {reason}");
        assert!(reason.contains(told), "{arguments:?}: {reason}");
    }
}
