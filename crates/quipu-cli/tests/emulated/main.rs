//! Programs and loads over emulated links. Where this user may make no network namespaces, nothing is tested, and each
//! test says so.
#![cfg(target_os = "linux")]

mod browsers;
mod clients;
mod exchanges;
mod stacks;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A network that a busy machine keeps to, if any can.
const LINKS: [&str; 4] = ["--link", "rate=20mbit,delay=40ms", "--link", "rate=10mbit,delay=60ms"];

fn quipu() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether links can be emulated here.
fn may_emulate() -> bool {
    let tried = output(quipu().args(["emulate", "wifi+lte", "--", "true"]));
    let told = text(&tried.stderr);
    if tried.status.success() {
        return true;
    }
    assert!(told.contains("namespace") || told.contains("cannot run `ip`"), "{told}");
    eprintln!("skipped: {told}");
    false
}

fn emulate(arguments: &[&str]) -> Output {
    output(quipu().arg("emulate").args(LINKS).args(arguments))
}

fn read(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

/// What the emulator said of each load.
fn reports(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("emulation.jsonl")).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_program_has_an_interface_for_each_path_and_its_code_is_the_commands() {
    if !may_emulate() {
        return;
    }
    let script = "echo $QUIPU_HOST; echo $QUIPU_CLIENT; echo $QUIPU_SERVER; echo $QUIPU_INTERFACES
                  ls /sys/class/net | sort | tr '\\n' ' '; exit 7";
    let ended = emulate(&["--", "sh", "-c", script]);
    assert_eq!(ended.status.code(), Some(7), "{}", text(&ended.stderr));
    let printed = text(&ended.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "client0");
    assert_eq!(lines[1..3].iter().map(|line| line.split(' ').count()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(lines[3], "path0 path1");
    let told = text(&ended.stderr);
    assert!(told.contains("client0: path0 ") && told.contains("server0: path0 "), "{told}");
    assert!(told.contains("emulated for "), "{told}");
    assert_eq!(emulate(&["--", "sh", "-c", "kill -9 $$"]).status.code(), Some(128 + 9));
    let missing = emulate(&["--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("error: no-such-program does not start in client0"));
}

#[test]
fn a_file_comes_over_both_paths_and_the_report_says_what_the_links_did() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let to = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(to("site")).expect("a folder");
    let content: Vec<u8> =
        (0..2_000_000_u32).map(|nth| (nth.wrapping_mul(nth) >> 7) as u8).collect();
    std::fs::write(to("site/file"), &content).expect("written");
    let program = env!("CARGO_BIN_EXE_quipu");
    // The ready server writes its pin, and the client waits for that.
    let serve =
        format!("{program} serve {} --no-tcp --listen 0.0.0.0:443 > {}", to("site"), to("told"));
    let fetch = format!(
        "until grep -q ^pin {told}; do sleep 0.05; done; {program} fetch https://${{QUIPU_SERVER%% *}}/file \
         --pin $(sed -n 's/^pin //p' {told}) --via path0 --via path1 --output {out}",
        told = to("told"),
        out = to("out"),
    );
    let report = to("report.json");
    let seed = ["--seed", "7", "--server", &serve, "--report", &report];
    let ended = emulate(&[&seed[..], &["--", "sh", "-c", &fetch]].concat());
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert!(std::fs::read(to("out")).expect("a file") == content);
    let report = read(report.as_ref());
    assert_eq!(report["world"], "emulated");
    let scenario = report["scenario"].as_str().expect("a scenario");
    assert!(scenario.contains("seed = 7") && scenario.contains("\"40ms\""), "{scenario}");
    let links = report["report"]["links"].as_array().expect("links");
    let names: Vec<&str> = links.iter().filter_map(|link| link["name"].as_str()).collect();
    assert_eq!(names, ["path0.up", "path0.down", "path1.up", "path1.down"]);
    for link in [1, 3] {
        let bytes = links[link]["delivered"]["bytes"].as_u64().expect("a number");
        assert!(bytes > 100_000, "{}: {bytes}", names[link]);
    }
    assert!(report["report"]["lateness"]["packets"].as_u64() > Some(1_000));
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    for (arguments, told) in [
        (&["wifi+lt"][..], "wifi+lte"),
        (&["missing.toml"], "missing.toml"),
        (&["--link", "rate=fast"], "--link rate=fast"),
        (&["wifi+lte", "--mtu", "9001"], "--mtu"),
    ] {
        let ended = output(quipu().arg("emulate").args(arguments).args(["--", "true"]));
        let reason = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {reason}");
        assert!(reason.contains(told), "{arguments:?}: {reason}");
    }
    if !may_emulate() {
        return;
    }
    let two = emulate(&["--server", "true", "--server", "true", "--", "true"]);
    assert_eq!(two.status.code(), Some(2));
    assert!(text(&two.stderr).contains("--server is given 2 times, and there are 1 servers"));
}

#[test]
fn an_interrupted_emulation_ends_with_its_programs() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("runs");
    let script = format!("echo $$ > {}; exec sleep 1000", file.display());
    let mut command = quipu();
    command.arg("emulate").args(LINKS).args(["--", "sh", "-c", &script]);
    let mut emulating = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut waiting = Command::new("sh");
    let waited = waiting.arg("-c").arg(format!(
        "for i in $(seq 600); do [ -s {} ] && exit; sleep 0.1; done; exit 1",
        file.display()
    ));
    assert!(waited.status().expect("sh runs").success(), "it never ran");
    let status = Command::new("kill").args(["-INT", &emulating.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
    let code = emulating.wait().expect("it ends").code();
    assert_eq!(code, Some(130));
}

#[test]
fn policies_are_compared_over_emulated_links_and_the_results_say_so() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("results");
    let mut command = quipu();
    command.args(["compare", "--world", "emulated", "--page", "dojo-demo", "--stream", "rr,fifo"]);
    command.args(LINKS).args(["--runs", "2", "--out"]).arg(&out);
    let ended = output(&mut command);
    let (printed, told) = (text(&ended.stdout), text(&ended.stderr));
    let reports = reports(&out);
    let summary = read(&out.join("summary.json"));
    assert_eq!(summary["world"], "emulated");
    assert_eq!(summary["runs_planned"], 2 * (2 + 2));
    let of = |report: &Value| report["report"]["links"][1]["delivered"]["packets"].as_u64();
    assert!(reports.iter().any(|report| of(report) > Some(100)));
    let scenario = std::fs::read_to_string(out.join("scenario.toml")).expect("a scenario");
    assert!(scenario.contains("\"60ms\""), "{scenario}");
    if !ended.status.success() {
        // A machine that is too busy: no void run counts.
        let failures = summary["failures"].as_array().expect("a list");
        let is_void = |failure: &Value| {
            failure["reason"].as_str().is_some_and(|reason| reason.starts_with("void 3 times: "))
        };
        assert!(!failures.is_empty() && failures.iter().all(is_void), "{told}");
        eprintln!("void: {told}");
        return;
    }
    let head = printed.lines().find(|line| line.contains(" · ")).expect("a head");
    assert!(head.ends_with(" · 2 runs, seed 1 · emulated"), "{printed}");
    for row in ["rr + minrtt ", "fifo + minrtt ", "path0 alone ", "path1 alone "] {
        assert!(printed.lines().any(|line| line.starts_with(row)), "{row}: {printed}");
    }
    assert!(reports.iter().filter(|it| it["report"]["void"] == Value::Array(vec![])).count() >= 8);
    let page_time = |row: usize| summary["rows"][row]["metrics"][1]["median"].as_u64();
    assert!(page_time(0).is_some_and(|time| time > 300_000_000), "{:?}", page_time(0));
    let report = folder.path().join("report.html");
    let reported = output(quipu().arg("report").arg(&out).arg("--out").arg(&report));
    assert!(reported.status.success(), "{}", text(&reported.stderr));
    let html = std::fs::read_to_string(report).expect("a report");
    assert!(html.contains("World: emulated."));
}

#[test]
fn a_page_is_loaded_over_http_2_and_a_warm_connection_as_in_the_papers() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("results");
    let mut command = quipu();
    command.args(["compare", "--world", "emulated", "--page", "dojo-demo", "--no-baselines"]);
    command.args(["--http", "h2", "--start", "warm:4", "--browser", "firefox", "--stream", "swrr"]);
    command.args(["--set", "transport.server_write_chunk=32KiB"]);
    let ended = output(command.args(LINKS).args(["--runs", "1", "--out"]).arg(&out));
    if !succeeds_unless_void(&ended, &out) {
        return;
    }
    let summary = read(&out.join("summary.json"));
    let scenario = std::fs::read_to_string(out.join("scenario.toml")).expect("a scenario");
    for field in ["tls = \"rustls\"", "start = \"warm:4\"", "server_write_chunk = \"32KiB\""] {
        assert!(scenario.contains(field), "{field}: {scenario}");
    }
    // The connection was there before the page.
    let metrics = &summary["rows"][0]["metrics"];
    let (connect, page) = (metrics[0]["median"].as_u64(), metrics[1]["median"].as_u64());
    assert!(connect > Some(80_000_000) && page > Some(300_000_000), "{connect:?}, {page:?}");
}

#[test]
fn what_emulated_hosts_cannot_be_told_is_refused() {
    let emulated = "--world emulated";
    for (arguments, told) in [
        (&["compare", "--jobs", "2"][..], "--jobs: expected none"),
        (&["compare", "--http", "h2-tcp"], "http: expected h2 or h3 with --world emulated"),
        (
            &["compare", "--host", "measured"],
            "--host: expected none, as hosts are real, with --world emulated",
        ),
        (&["compare", "--live", "https://127.0.0.1"], "--live"),
        (&["load", "--live", "https://127.0.0.1"], "--live"),
        (&["load", "--session=2"], "session: expected a single page with --world emulated"),
        (&["load", "--push=critical"], "push: expected none with --world emulated"),
        (&["load", "--clients=2"], "clients: expected one with --world emulated"),
        (&["reproduce", "pp-fig8", "--jobs", "1"], "--jobs: expected none"),
    ] {
        let mut command = quipu();
        let ended = output(command.args(arguments).args(emulated.split(' ')));
        let reason = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {reason}");
        assert!(reason.contains(told), "{arguments:?}: {reason}");
    }
}

/// A study of two orders of streams, which runs over the links.
const STUDY: &str = r#"
runs = 2
pages = ["dojo-demo"]
http = "h3"
policies = { stream = ["fifo", "rr"], path = ["minrtt"], baselines = false }
transport = { tls = "rustls", initial_window = 32 }

[[networks]]
name = "two"
paths = [
    { name = "a", down = { rate = "20mbit", delay = "40ms" } },
    { name = "b", down = { rate = "10mbit", delay = "60ms" } },
]

[sweep]
"networks.two.paths.a.down.rate" = ["10mbit", "20mbit"]

[experiment]
id = "orders"
paper = "quipu"
figure = ""
title = "Two orders"

[[experiment.rules]]
name = "order"
claim = "the page is as fast in either"
metric = "page"
of = "fifo + minrtt"
to = "rr + minrtt"
within = 0.9
"#;

/// Whether it succeeded; what failed was void, on a machine that is too busy.
fn succeeds_unless_void(ended: &Output, folder: &Path) -> bool {
    if ended.status.success() {
        return true;
    }
    let told = text(&ended.stderr);
    let reports = reports(folder);
    let is_void = |report: &Value| report["report"]["void"] != Value::Array(vec![]);
    let void = reports.iter().filter(|it| is_void(it)).count();
    assert!(void >= 3 && told.contains("runs failed"), "{told}");
    eprintln!("void: {told}");
    false
}

/// The same of `quipu load`, which leaves no folder if it fails.
fn load_succeeds_unless_void(ended: &Output) -> bool {
    let told = text(&ended.stderr);
    let succeeds = ended.status.success();
    assert!(succeeds || told.contains("void 3 times: "), "{told}");
    if !succeeds {
        eprintln!("void: {told}");
    }
    succeeds
}

/// What a host may lack for Multipath TCP: support in the kernel, in `ip`, or what makes a browser use it.
const NO_MULTIPATH: [&str; 3] = ["no Multipath TCP here", "`ip mptcp", "mptcpize does not start"];

/// The rows of one run over [`LINKS`] of what `compare` has beside its options here, with results in `out`; `None` where it
/// cannot be made, which is told.
fn compared(arguments: &[&str], out: &Path) -> Option<Vec<Value>> {
    let mut command = quipu();
    command.args(["compare", "--world", "emulated", "--runs", "1"]).args(arguments);
    let ended = output(command.args(LINKS).arg("--out").arg(out));
    let told = text(&ended.stderr);
    if NO_MULTIPATH.iter().any(|lacks| told.contains(lacks)) {
        eprintln!("skipped: {told}");
        return None;
    }
    let succeeded = succeeds_unless_void(&ended, out);
    succeeded.then(|| read(&out.join("summary.json"))["rows"].as_array().expect("rows").clone())
}

#[test]
fn files_of_experiments_are_run_swept_and_judged_over_emulated_links() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("study.toml");
    std::fs::write(&file, STUDY).expect("written");
    let made = |command: &str| {
        let out = folder.path().join(command);
        let mut quipu = quipu();
        quipu.arg(command).arg(&file).args(["--world", "emulated", "--out"]).arg(&out);
        (output(&mut quipu), out)
    };
    let (ended, out) = made("run");
    if succeeds_unless_void(&ended, &out) {
        let summary = read(&out.join("summary.json"));
        assert_eq!((&summary["world"], &summary["runs_planned"]), (&"emulated".into(), &4.into()));
        let scenario = std::fs::read_to_string(out.join("scenario.toml")).expect("a scenario");
        assert!(scenario.contains("initial_window = 32"), "{scenario}");
        for row in summary["rows"].as_array().expect("rows") {
            let page = &row["metrics"][1];
            assert!(page["over_bound"].as_f64() > Some(1.0), "no load beats the bound: {page}");
        }
    }
    let (ended, out) = made("sweep");
    if succeeds_unless_void(&ended, &out) {
        let status = read(&out.join("status.json"));
        assert_eq!((&status["world"], &status["done"]), (&"emulated".into(), &8.into()));
        let before = reports(&out);
        assert!(before.len() >= 8, "each run has one");
        let (again, _) = made("sweep");
        assert!(again.status.success(), "{}", text(&again.stderr));
        assert_eq!(reports(&out), before, "what is kept is not made again");
    }
    let (ended, out) = made("reproduce");
    if succeeds_unless_void(&ended, &out) {
        let judged = read(&out.join("orders/verdicts.json"));
        assert_eq!((&judged["world"], &judged["runs"]), (&"emulated".into(), &4.into()));
        let printed = text(&ended.stdout);
        assert!(printed.contains(" · 4 runs · emulated"), "{printed}");
        let (_, worlds) = printed.split_once("in both worlds").expect("both");
        assert!(worlds.contains("simulated") && worlds.contains("orders"), "{printed}");
        let simulated = read(&out.join("simulated/orders/verdicts.json"));
        assert_eq!((&simulated["world"], &simulated["runs"]), (&"simulated".into(), &4.into()));
    }
}

#[test]
fn the_same_loads_in_both_worlds_are_compared_and_the_order_of_metrics_and_policies_is_told() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("agree");
    let mut command = quipu();
    command
        .args([
            "agree",
            "--page",
            "dojo-demo",
            "--stream",
            "rr,fifo",
            "--runs",
            "2",
            "--host",
            "measured",
        ])
        .args(LINKS);
    let ended = output(command.arg("--out").arg(&out));
    if !succeeds_unless_void(&ended, &out.join("emulated")) {
        return;
    }
    let printed = text(&ended.stdout);
    assert!(printed.contains(" of 4 medians agree"), "{printed}");
    let agreement = read(&out.join("agreement.json"));
    let page = &agreement["differences"][0];
    assert_eq!((&page["policy"], &page["pairs"]), (&"rr + minrtt".into(), &2.into()));
    // Not how well they agree, on a machine that is busy, but that they are the same loads.
    let difference = page["difference"].as_f64().expect("a number");
    assert!(difference.abs() < 0.5, "{page}");
    for (world, name) in [("emulated", "emulated"), ("ideal", "simulated"), ("costs", "simulated")]
    {
        let summary = read(&out.join(world).join("summary.json"));
        assert_eq!((&summary["world"], &summary["runs_finished"]), (&name.into(), &4.into()));
    }
    let scenario = std::fs::read_to_string(out.join("costs/scenario.toml")).expect("a scenario");
    assert!(scenario.contains("send_batch"), "{scenario}");
}

#[test]
fn one_page_is_loaded_over_emulated_links() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("load");
    let mut command = quipu();
    command.args(["load", "--world", "emulated", "--page", "dojo-demo"]).args(LINKS);
    let ended = output(command.arg("--out").arg(&out));
    if !load_succeeds_unless_void(&ended) {
        return;
    }
    let printed = text(&ended.stdout);
    assert!(printed.contains("emulated; datagrams received: path0 "), "{printed}");
    let links = &reports(&out)[0]["report"]["links"];
    assert!(links[1]["delivered"]["packets"].as_u64() > Some(100), "{links}");
    assert_eq!(read(&out.join("summary.json"))["world"], "emulated");
}
