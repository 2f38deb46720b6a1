//! Chromium as a stack. Where it is not installed, nothing is tested, unless the environment variable
//! `QUIPU_CHROMIUM_REQUIRED` is set.

use tempfile::TempDir;

use super::{LINKS, compared, may_emulate, output, quipu, text};

/// Of a page whose objects Chromium asks for in every load.
const PAGE: [&str; 2] = ["--page", "sb-admin"];

/// Whether there is a Chromium.
fn has_chromium() -> bool {
    let found = quipu_recorder::find_browser();
    let is_required = std::env::var_os("QUIPU_CHROMIUM_REQUIRED").is_some();
    assert!(found.is_ok() || !is_required, "no Chromium, and QUIPU_CHROMIUM_REQUIRED is set");
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok()
}

#[test]
fn chromium_loads_a_page_over_each_path_or_all() {
    if !may_emulate() {
        return;
    }
    if !has_chromium() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    for (stacks, rows) in [
        (
            "chromium-h3,chromium-h2:congestion=reno,chromium-h1",
            &[
                ("path0 alone + chromium-h3", "stack=chromium-h3 alone=path0", 0),
                ("path1 alone + chromium-h3", "stack=chromium-h3 alone=path1", 1),
                (
                    "path0 alone + chromium-h2 + reno",
                    "stack=chromium-h2 congestion=reno alone=path0",
                    0,
                ),
                (
                    "path1 alone + chromium-h2 + reno",
                    "stack=chromium-h2 congestion=reno alone=path1",
                    1,
                ),
                (
                    "path0 alone + chromium-h1 + cubic",
                    "stack=chromium-h1 congestion=cubic alone=path0",
                    0,
                ),
                (
                    "path1 alone + chromium-h1 + cubic",
                    "stack=chromium-h1 congestion=cubic alone=path1",
                    1,
                ),
            ][..],
        ),
        (
            "chromium-mptcp-h2",
            &[("chromium-mptcp-h2 + cubic", "stack=chromium-mptcp-h2 congestion=cubic", 2)],
        ),
    ] {
        let out = folder.path().join(stacks);
        let what = [&["--stack", stacks][..], &PAGE].concat();
        let Some(found) = compared(&what, &out) else { return };
        assert_eq!(found.len(), rows.len(), "{found:?}");
        for (row, (policy, choice, path)) in found.iter().zip(rows) {
            assert_eq!((&row["policy"], &row["choice"]), (&(*policy).into(), &(*choice).into()));
            let page = &row["metrics"][1];
            assert!(page["median"].as_u64() > Some(300_000_000), "{policy}: {page}");
            let share = |path: usize| row["shares"][path]["per_mille"].as_u64();
            match path {
                2 => assert!((0..2).all(|path| share(path) > Some(50)), "{}", row["shares"]),
                &path => assert_eq!(share(path), Some(1_000), "{policy}"),
            }
        }
    }
}

#[test]
fn what_only_the_model_of_a_browser_can_do_is_refused() {
    for (arguments, told) in [
        (&["--start", "paths-ready"][..], "start: expected cold with --stack chromium-h2"),
        (&["--discovery", "all-at-once"], "discovery: expected recorded with --stack chromium-h2"),
    ] {
        let mut command = quipu();
        command.args(["compare", "--world", "emulated", "--stack", "quipu,chromium-h2"]);
        let ended = output(command.args(PAGE).args(arguments));
        let reason = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {reason}");
        assert!(reason.contains(told), "{arguments:?}: {reason}");
    }
}

#[test]
fn without_a_browser_nothing_is_run() {
    if !may_emulate() {
        return;
    }
    let Some(ip) = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"]
        .into_iter()
        .find(|it| std::fs::exists(it).is_ok_and(|is| is))
    else {
        return;
    };
    // A folder of programs that has `ip` alone.
    let folder = TempDir::new().expect("a folder");
    std::os::unix::fs::symlink(ip, folder.path().join("ip")).expect("a link");
    let mut command = quipu();
    command.args(["compare", "--world", "emulated", "--stack", "chromium-h2"]).args(PAGE);
    let ended = output(command.args(LINKS).env("PATH", folder.path()));
    let reason = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{reason}");
    assert!(reason.contains("no Chromium found"), "{reason}");
}
