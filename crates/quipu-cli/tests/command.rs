//! The command as a user meets it: output, exit codes, files, and every kind of bad input.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// The one line of an error, after making sure of exit code and form.
fn error_of(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(!text.contains("panicked"), "{text}");
    let message = text.trim_end().strip_prefix("error: ");
    message.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// The error of `quipu ARGUMENTS` in an empty folder, in which nothing must be left.
fn refused(arguments: &[&str]) -> String {
    let folder = folder();
    let output = quipu(folder.path(), arguments);
    assert_eq!(files(folder.path()), Vec::<String>::new());
    assert_eq!(stdout(&output), "");
    error_of(&output, 2)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

const QUICK: [&str; 5] = ["compare", "--page", "sitespeed", "--runs", "2"];

fn quick(more: &[&str]) -> Vec<String> {
    QUICK.iter().chain(more).map(|argument| (*argument).to_owned()).collect()
}

fn run_quick(folder: &Path, more: &[&str]) -> Output {
    let arguments = quick(more);
    quipu(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_comparison_prints_a_table_and_nothing_else() {
    let folder = folder();
    let output = run_quick(folder.path(), &["--stream", "rr,dwrr"]);
    assert!(output.status.success());
    assert_eq!(output.stderr, b"");
    let text = stdout(&output);
    assert!(
        text.starts_with("sitespeed: 9 objects (8 count for the page time), 131.7 kB, 1 host\n"),
        "{text}"
    );
    for row in ["rr + minrtt", "dwrr + minrtt", "wifi alone", "lte alone"] {
        assert!(text.contains(row), "{row}");
    }
    assert!(text.contains("Ratio to rr + minrtt"));
    let told = "\n\nlte alone is faster than every policy over both paths: ";
    assert_eq!(text.matches(told).count(), 1, "{text}");
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn without_chance_one_run_is_all_and_there_are_no_intervals() {
    let folder = folder();
    let text = stdout(&run_quick(folder.path(), &["--host-jitter=0ms", "--stream", "rr"]));
    assert!(text.contains("· 1 run, seed 1 ·"), "{text}");
    assert!(text.contains("wifi alone  1.000 –"), "{text}");
}

#[test]
fn a_path_alone_is_what_the_network_of_that_path_gives() {
    let folder = folder();
    for network in ["wifi+lte", "wifi", "lte"] {
        let more = ["--network", network, "--stream", "dwrr", "--out", network];
        assert!(run_quick(folder.path(), &more).status.success(), "{network}");
    }
    // Rows of a policy over a network, without these names.
    let rows = |file: &str, network: &str, policy: &str| -> Vec<String> {
        let path = folder.path().join(network).join(file);
        let text = std::fs::read_to_string(path).expect("a table");
        let start = format!("sitespeed,{network},{policy},");
        text.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
    };
    for path in ["wifi", "lte"] {
        for file in ["runs.csv", "objects.csv"] {
            let alone = rows(file, "wifi+lte", &format!("{path} alone"));
            assert!(!alone.is_empty());
            assert_eq!(alone, rows(file, path, "dwrr + minrtt"), "{path}: {file}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let folder = folder();
    let read = |jobs: &str| {
        let output = run_quick(folder.path(), &["--jobs", jobs, "--out", jobs]);
        assert!(output.status.success());
        let target = folder.path().join(jobs);
        assert_eq!(
            files(&target),
            [
                "networks.csv",
                "objects.csv",
                "paths.csv",
                "runs.csv",
                "scenario.toml",
                "summary.json"
            ]
        );
        let contents = files(&target).into_iter().map(|name| std::fs::read(target.join(name)));
        contents.collect::<Result<Vec<_>, _>>().expect("readable files")
    };
    assert_eq!(read("1"), read("3"));
    assert_eq!(files(folder.path()), ["1", "3"]);
}

#[test]
fn a_results_scenario_repeats_the_result() {
    let folder = folder();
    let first = run_quick(folder.path(), &["--network", "wifi+lte-lossy", "--out", "first"]);
    assert!(first.status.success());
    let again = ["compare", "--scenario", "first/scenario.toml", "--out", "again"];
    assert_eq!(quipu(folder.path(), &again).stdout, first.stdout);
    for name in ["runs.csv", "objects.csv", "paths.csv", "summary.json", "scenario.toml"] {
        let read = |folder_name: &str| {
            std::fs::read(folder.path().join(folder_name).join(name)).expect("a file")
        };
        assert_eq!(read("first"), read("again"), "{name}");
    }
}

#[test]
fn a_time_series_is_written_beside_the_results_and_nowhere_else() {
    let told = refused(&["load", "--page", "sitespeed", "--series", "10ms"]);
    assert!(told.starts_with("series is 10ms, but there is no folder for it"), "{told}");
    assert!(refused(&["compare", "--series", "10ms"]).contains("give one with --out DIR"));
    let folder = folder();
    let load = ["load", "--page", "sitespeed", "--run", "1"];
    let alone = quipu(folder.path(), &load);
    let with = [&load[..], &["--series", "10ms", "--out", "r"]].concat();
    let output = quipu(folder.path(), &with);
    assert!(output.status.success());
    assert_eq!(output.stdout, alone.stdout, "the run is the same");
    let target = folder.path().join("r");
    assert_eq!(
        files(&target),
        [
            "networks.csv",
            "objects.csv",
            "paths.csv",
            "runs.csv",
            "scenario.toml",
            "series.csv",
            "summary.json"
        ]
    );
    let read = |folder_name: &str, name: &str| {
        std::fs::read_to_string(folder.path().join(folder_name).join(name)).expect("a file")
    };
    let series = read("r", "series.csv");
    assert!(series.lines().count() > 20, "{series}");
    assert!(
        series.lines().skip(1).all(|row| row.starts_with("sitespeed,wifi+lte,dwrr + minrtt,1"))
    );
    // The scenario beside the results repeats the run.
    let again = ["compare", "--scenario", "r/scenario.toml", "--out", "again"];
    assert!(quipu(folder.path(), &again).status.success());
    let repeated = read("again", "series.csv");
    assert!(repeated.ends_with(series.split_once('\n').expect("a header").1));
    // A load without a series takes the old one away.
    let plain = ["load", "--page", "sitespeed", "--out", "r", "--force"];
    assert!(quipu(folder.path(), &plain).status.success());
    assert_eq!(files(&target).len(), 6);
}

#[test]
fn a_load_is_written_as_a_har_file_that_is_a_page_again() {
    let folder = folder();
    let load = ["load", "--page", "sitespeed", "--har", "load.har"];
    let drawn = stdout(&quipu(folder.path(), &load));
    assert_eq!(stdout(&quipu(folder.path(), &load[..3])), drawn);
    assert_eq!(files(folder.path()), ["load.har"]);
    let page = stdout(&quipu(folder.path(), &["page", "show", "load.har"]));
    let time = drawn.split("page ").nth(1).and_then(|rest| rest.split(" ms").next());
    let time: f64 = time.and_then(|time| time.parse().ok()).expect("a page time");
    for told in ["8 of 8 entries", "7 of 8 known"] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let on_load = page.split("load event ").nth(1).and_then(|rest| rest.split(" ms").next());
    let on_load: f64 = on_load.and_then(|time| time.trim().parse().ok()).expect("its load event");
    assert!((on_load - time).abs() < 0.06, "{time} ms, {on_load} ms");
    let output = quipu(folder.path(), &["load", "--page", "load.har"]);
    assert!(output.status.success(), "{output:?}");
    let output = quipu(folder.path(), &[&load[..3], &["--har", "no/such/folder.har"]].concat());
    let error = error_of(&output, 1);
    assert!(error.starts_with("cannot write no/such/folder.har:"), "{error}");
    let raw = refused(&["load", "--page", "sitespeed", "--http", "raw", "--har", "raw.har"]);
    assert!(raw.contains("--har: raw streams have no requests"), "{raw}");
}

#[test]
fn a_load_draws_its_waterfall_in_the_width_of_the_terminal() {
    let folder = folder();
    let output = quipu(folder.path(), &["load", "--page", "sitespeed"]);
    assert!(output.status.success());
    let text = stdout(&output);
    assert!(text.starts_with("sitespeed over wifi+lte with dwrr + minrtt, run 0\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with('│')).count(), 8);
}

#[test]
fn a_drawn_page_is_that_of_the_run_of_its_number_under_one_seed() {
    let folder = folder();
    let show = |arguments: &[&str]| {
        let output = quipu(folder.path(), &[&["page", "show"], arguments].concat());
        assert!(output.status.success());
        stdout(&output)
    };
    assert_eq!(show(&["pries:3"]), show(&["pries:3", "--seed", "1"]));
    assert_ne!(show(&["pries:3"]), show(&["pries:3", "--seed", "2"]));
    let load = |page: &str, run: &str| {
        let output = quipu(folder.path(), &["load", "--page", page, "--run", run]);
        assert!(output.status.success());
        // The first line tells page and run.
        stdout(&output).split_once('\n').map(|(_, text)| text.to_owned()).unwrap_or_default()
    };
    assert_eq!(load("pries", "3"), load("pries:3", "3"));
    assert_ne!(load("pries", "3"), load("pries", "2"));
}

#[test]
fn the_model_is_told_beside_what_it_was_fitted_to() {
    let folder = folder();
    let model = ["page", "model", "pries", "--pages", "2000"];
    let output = quipu(folder.path(), &model);
    assert!(output.status.success());
    let text = stdout(&output);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a row");
        let words =
            line[name.len()..].split_whitespace().map(|word| word.parse().expect("a number"));
        words.collect::<Vec<f64>>()
    };
    let mains = row("main objects");
    assert_eq!((mains[0], mains[2], mains[4], mains[6]), (2_000.0, 1.2, 2.63, 212.0));
    assert!((1.7..1.85).contains(&mains[1]), "{mains:?}");
    assert_eq!(row("reading time, s")[2], 39.7);
    assert!(refused(&["page", "model", "prise"]).contains("did you mean `pries`?"));
}

#[test]
fn lists_name_what_there_is() {
    let folder = folder();
    for (list, name) in [
        ("pages", "framework-youtube"),
        ("networks", "wifi+lte"),
        ("networks", "us-drive-08-att"),
        ("traces", "wifi-5ghz-strong"),
        ("browsers", "firefox"),
        ("schedulers", "dwrr"),
    ] {
        let output = quipu(folder.path(), &[list]);
        assert!(output.status.success());
        assert!(stdout(&output).contains(name), "{list}");
    }
    let browsers = stdout(&quipu(folder.path(), &["browsers"]));
    let row = |name: &str| {
        let mut rows = browsers.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|words| words.first() == Some(&name)).expect("a row")
    };
    assert_eq!(row("chrome")[1..3], ["tree,", "urgency"]);
    assert_eq!(row("mobileh2")[1..3], ["tree", "the"]);
    let output = quipu(folder.path(), &["schedulers", "minrtt"]);
    assert!(stdout(&output).contains("probe"));
    let output = quipu(folder.path(), &["page", "show", "sitespeed"]);
    assert!(stdout(&output).contains("sitespeed"));
}

#[test]
fn misspelt_names_are_told_the_nearest() {
    for (arguments, nearest) in [
        (vec!["--stream", "dwr"], "dwrr"),
        (vec!["--path", "minrt"], "minrtt"),
        (vec!["--congestion", "newreno,cubik"], "cubic"),
        (vec!["--path", "single:idd=1"], "id"),
        (vec!["--browser", "firefx"], "firefox"),
        (vec!["--priorities", "urgancy"], "urgency"),
        (vec!["--reprioritise=of"], "off"),
        (vec!["--page", "wikipeda"], "wikipedia"),
        (vec!["--network", "wifi+lt"], "wifi+lte"),
        (vec!["--initial-windw=3"], "transport.initial_window"),
        (vec!["--discovery", "recoded"], "recorded"),
        (vec!["--start", "paths-redy"], "paths-ready"),
        (vec!["--sed", "3"], "--seed"),
        (vec!["--link", "rat=3mbit,delay=1ms"], "rate"),
    ] {
        let all: Vec<&str> = ["compare"].into_iter().chain(arguments).collect();
        let message = refused(&all);
        assert!(message.contains(&format!("did you mean `{nearest}`?")), "{message}");
    }
    assert!(refused(&["compar"]).contains("did you mean `compare`?"));
    assert!(refused(&["schedulers", "dwr"]).contains("did you mean `dwrr`?"));
}

#[test]
fn values_that_make_no_experiment_are_refused() {
    for (arguments, expected) in [
        (vec!["--runs", "0"], "--runs 0: runs: 0; expected 1 to 10000"),
        (vec!["--runs", "-1"], "runs"),
        (vec!["--runs", "many"], "runs: many; expected a whole number"),
        (vec!["--jobs", "0"], "0"),
        (vec!["--link", "rate=-3mbit,delay=1ms"], "rate is `-3mbit`"),
        (vec!["--link", "rate=NaNmbit,delay=1ms"], "rate is `NaNmbit`"),
        (vec!["--link", "rate=0mbit,delay=1ms"], "rate is `0mbit`"),
        (vec!["--link", "rate=1mbit,delay=-1ms"], "delay is `-1ms`"),
        (vec!["--link", "rate=1mbit,delay=1ms,loss=101%"], "loss is `101%`"),
        (vec!["--link", "rate=1mbit,delay=1ms,jitter=2ms"], "jitter"),
        (vec!["--link", "rate=1mbit,delay=1ms,queue=0p"], "queue is `0p`"),
        (vec!["--link", ""], "rate or trace is missing"),
        (vec!["--network", "lte", "--link", "rate=1mbit,delay=1ms"], "--link"),
        (vec!["--http", "h3", "--push=images"], "none over h3"),
        (vec!["--priorities", "urgency", "--browser", "mobileh2"], "chrome, firefox, none, safari"),
        (vec!["--visible-images=1001"], "0 to 1000"),
        (vec!["--tls", "openssl"], "openssl"),
        (vec!["--series", "1us"], "series: 1us; expected 10us or more"),
        (vec!["--series", "often"], "expected none, or a time such as 10ms"),
        (vec!["--start", "warm:0"], "warm:1 to warm:1000"),
        (vec!["--udp-payload=100B"], "1200B to 65527B"),
        (vec!["--pacing-factor=NaN"], "0.1 to 100"),
        (vec!["--page", "nowhere.har"], "cannot read page nowhere.har"),
        (vec!["--scenario", "nowhere.toml"], "cannot read nowhere.toml"),
        (vec!["--network", "nowhere.toml"], "cannot read nowhere.toml"),
        (vec!["--force"], "--out"),
        (vec!["--page", "cnn", "--page", "cnn"], "pages[1]: cnn twice"),
        (vec!["--page", "pries:x"], "a HAR file, pries, or pries:N"),
        (vec!["--network", "lte", "--network", "lte"], "networks[1]: lte twice"),
        (vec!["--set", "runs"], "expected KEY=VALUE"),
    ] {
        let all: Vec<&str> = ["compare"].into_iter().chain(arguments).collect();
        let message = refused(&all);
        assert!(message.contains(expected), "{message}");
    }
    let links = ["--link", "rate=1mbit,delay=1ms"].repeat(33);
    let message = refused(&["compare"].into_iter().chain(links).collect::<Vec<_>>());
    assert!(message.contains("expected 1 to 32"), "{message}");
}

/// What the command says of a file with `content`, given as option or as argument.
fn file_refused(name: &str, content: &str, arguments: &[&str]) -> String {
    let folder = folder();
    std::fs::write(folder.path().join(name), content).expect("a file");
    let output = quipu(folder.path(), arguments);
    assert_eq!(files(folder.path()), [name]);
    error_of(&output, 2)
}

fn har(entries: &str) -> String {
    format!(
        r#"{{"log": {{"version": "1.2", "creator": {{"name": "a", "version": "1"}}, "entries": [{entries}]}}}}"#
    )
}

fn entry(url: &str, initiator: &str, size: &str) -> String {
    format!(
        r#"{{"startedDateTime": "2026-01-01T00:00:00.000Z", "time": 10, "_initiator": "{initiator}",
        "request": {{"method": "GET", "url": "{url}", "httpVersion": "h2", "headers": [],
        "headersSize": -1, "bodySize": 0}},
        "response": {{"status": 200, "httpVersion": "h2", "headers": [], "headersSize": -1,
        "bodySize": {size}, "content": {{"size": {size}, "mimeType": "text/html"}}}},
        "timings": {{"send": 0, "wait": 5, "receive": 5}}}}"#
    )
}

#[test]
fn broken_pages_are_refused_in_one_line() {
    let whole = har(&entry("https://a.test/", "", "5000"));
    let long_cut = &whole[..whole.len() / 2];
    for (content, what) in [
        (long_cut, "cut in the middle"),
        ("not JSON", "not JSON"),
        ("", "empty"),
        ("{}", "no log"),
        (&har(""), "no entries"),
        ("\u{0}\u{1}\u{2}", "binary"),
        (&"[".repeat(100_000), "deeply nested"),
    ] {
        for (command, place) in [
            (vec!["compare", "--runs", "1", "--page", "p.har"], "p.har:"),
            (vec!["page", "show", "p.har"], "page p.har: "),
        ] {
            let message = file_refused("p.har", content, &command);
            // What is no HAR file at all has no place in it.
            let is_told = message.starts_with(place) || message.contains("read page p.har: not a");
            assert!(is_told, "{what}: {message}");
        }
    }
}

#[test]
fn strange_sizes_and_cycles_are_loaded_or_refused_but_never_crash() {
    let cyclic = [
        entry("https://a.test/", "", "5000"),
        entry("https://a.test/1", "https://a.test/2", "500"),
        entry("https://a.test/2", "https://a.test/1", "500"),
    ];
    let pages = [
        har(&entry("https://a.test/", "", "-1")),
        har(&entry("https://a.test/", "", "-99999999999999999999")),
        har(&entry("https://a.test/", "https://a.test/", "0")),
        har(&cyclic.join(",")),
    ];
    for page in pages {
        let folder = folder();
        std::fs::write(folder.path().join("p.har"), page).expect("a file");
        let arguments = ["compare", "--page", "p.har", "--runs", "1", "--stream", "rr"];
        let output = quipu(folder.path(), &arguments);
        if !output.status.success() {
            error_of(&output, 2);
        }
    }
}

#[test]
fn a_size_beyond_all_measure_ends_with_an_error() {
    let folder = folder();
    let page = har(&entry("https://a.test/", "", "99999999999999999999999"));
    std::fs::write(folder.path().join("p.har"), page).expect("a file");
    let output = quipu(folder.path(), &["page", "show", "p.har"]);
    if !output.status.success() {
        error_of(&output, 2);
    }
    let arguments = ["compare", "--page", "p.har", "--runs", "1", "--out", "r"];
    error_of(&quipu(folder.path(), &arguments), 2);
    assert_eq!(files(folder.path()), ["p.har"]);
}

#[test]
fn broken_scenarios_and_networks_name_the_line() {
    let scenario = ["compare", "--scenario", "s.toml"];
    let message = file_refused("s.toml", "runs = 3\nsed = 4\n", &scenario);
    assert!(
        message.starts_with("s.toml:2:1: sed: no such field; expected one of seed, "),
        "{message}"
    );
    let message = file_refused("s.toml", "runs = \n", &scenario);
    assert!(message.starts_with("s.toml:1:"), "{message}");
    let message = file_refused("s.toml", "networks = []\n", &scenario);
    assert!(message.contains("networks: 0; expected 1 or more"), "{message}");
    let network = ["compare", "--network", "n.toml"];
    let message = file_refused("n.toml", "name = \"n\"\npaths = []\n", &network);
    assert!(message.contains("expected 1 to 32"), "{message}");
    let text = "name = \"n\"\npaths = [{ name = \"a\", down = { rate = \"1mbit\" } }]\n";
    let message = file_refused("n.toml", text, &network);
    assert!(message.contains("down.delay: missing; expected delay: a time"), "{message}");
}

#[test]
fn an_output_folder_is_never_half_written() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("full")).expect("a folder");
    std::fs::write(folder.path().join("full/notes"), "mine").expect("a file");
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let message = error_of(&run_quick(folder.path(), &["--out", "full"]), 2);
    assert!(message.contains("not empty"), "{message}");
    let message = error_of(&run_quick(folder.path(), &["--out", "file"]), 2);
    assert!(message.contains("is a file"), "{message}");
    let message = error_of(&run_quick(folder.path(), &["--out", "file/below"]), 2);
    assert!(message.contains("output folder"), "{message}");
    assert_eq!(files(folder.path()), ["file", "full"]);
    assert_eq!(files(&folder.path().join("full")), ["notes"]);
    assert!(run_quick(folder.path(), &["--out", "full", "--force"]).status.success());
    assert_eq!(files(&folder.path().join("full")).len(), 7);
}

#[test]
fn a_load_that_cannot_end_is_a_failed_run_with_what_there_is() {
    let folder = folder();
    let dead = "rate=10mbit,delay=10ms,outage=50ms";
    let output = run_quick(
        folder.path(),
        &["--link", dead, "--stream", "rr", "--time-limit=5s", "--out", "r"],
    );
    let reason = error_of(&output, 1);
    assert!(reason.starts_with("2 of 2 runs failed: "), "{reason}");
    assert!(stdout(&output).contains("Incomplete: 0 of 2 runs succeeded."));
    let summary = std::fs::read_to_string(folder.path().join("r/summary.json")).expect("a file");
    assert!(summary.contains("\"complete\": false"));
}

/// Two flows that share a link, and cross traffic.
const FLOWS: &str = "
pages = []
runs = 2
duration = \"5s\"
measure = { from = \"1s\" }
networks = [{ name = \"n\", paths = [{ name = \"p\", down = { rate = \"8mbit\", delay = \"10ms\" } }] }]
policies = { congestion = \"newreno,cubic\" }
flows = [{ name = \"first\" }, { name = \"second\", congestion = \"newreno\", start = \"1s\" }]
cross = [{ name = \"phone\", rate = \"1mbit\", kind = \"poisson\" }]
";

#[test]
fn a_file_of_flows_gives_their_table_and_their_files() {
    let folder = folder();
    std::fs::write(folder.path().join("f.toml"), FLOWS).expect("a file");
    let output = quipu(folder.path(), &["run", "f.toml", "--out", "r"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let title = "n (p 8mbit 10ms) · 2 flows · 1 sender of cross traffic · at most 5s · measured from \
                 1s · 2 runs, seed 1 · simulated\n";
    assert!(text.starts_with(title), "{text}");
    for row in
        ["newreno  first ", "cubic    first ", "cubic    second", "phone   (poisson)", "Jain down"]
    {
        assert!(text.contains(row), "{row} in {text}");
    }
    let result = folder.path().join("r");
    let usual =
        ["networks.csv", "objects.csv", "paths.csv", "runs.csv", "scenario.toml", "summary.json"];
    let mut expected = ["cross.csv", "flow_paths.csv", "flows.csv", "links.csv"].to_vec();
    expected.extend(usual);
    expected.sort_unstable();
    assert_eq!(files(&result), expected);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(result.join(name)).expect("a file");
        text.lines().count() - 1
    };
    // Two policies, two runs; two flows of one path, two links, one sender.
    assert_eq!(["flows.csv", "flow_paths.csv", "links.csv", "cross.csv"].map(lines), [8, 8, 8, 4]);
    assert_eq!((lines("runs.csv"), lines("objects.csv")), (4, 0));
    // A result's scenario repeats it, and a result without flows leaves none of their files.
    let again = quipu(folder.path(), &["run", "r/scenario.toml"]);
    assert_eq!(again.stdout, output.stdout);
    let page = quipu(folder.path(), &[&QUICK[..], &["--out", "r", "--force"]].concat());
    assert!(page.status.success());
    assert_eq!(files(&result), usual);
}

#[test]
fn a_file_of_pages_runs_as_a_comparison_and_its_fields_can_be_set() {
    let folder = folder();
    let text = "pages = [\"sitespeed\"]\nruns = 2\npolicies = { stream = [\"rr\"] }\n";
    std::fs::write(folder.path().join("p.toml"), text).expect("a file");
    let output = quipu(folder.path(), &["run", "p.toml", "--start=warm:4", "--sort", "page"]);
    assert!(output.status.success());
    let compare = ["compare", "--scenario", "p.toml", "--start", "warm:4", "--sort", "page"];
    assert_eq!(stdout(&output), stdout(&quipu(folder.path(), &compare)));
    let output = quipu(folder.path(), &["run", "p.toml", "--runs", "0"]);
    assert!(error_of(&output, 2).ends_with("runs: 0; expected 1 to 10000"));
    let output = quipu(folder.path(), &["run", "p.toml", "--set", "pages="]);
    assert!(error_of(&output, 2).contains("at least one page, or one of `flows`"));
    let output = quipu(folder.path(), &["run", "nowhere.toml"]);
    assert!(error_of(&output, 2).contains("cannot read nowhere.toml"));
    std::fs::write(folder.path().join("f.toml"), FLOWS).expect("a file");
    let output = quipu(folder.path(), &["load", "--scenario", "f.toml"]);
    assert!(error_of(&output, 2).contains("no page to load"));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_leaves_what_is_finished() {
    let folder = folder();
    let child = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["compare", "--page", "framework-google", "--runs", "10000", "--out", "r"])
        .args(["--jobs", "1"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The partial folder is made just before the handler and the runs.
    while files(folder.path()).is_empty() {
        std::thread::yield_now();
    }
    let stop = format!("kill -INT {}", child.id());
    // Until the handler listens the signal would end the program at once.
    let listening = format!("grep -q '^SigCgt:.*[2367abef]$' /proc/{}/status", child.id());
    let script = format!("until {listening}; do :; done; {stop}");
    assert!(Command::new("sh").args(["-c", &script]).status().expect("a shell").success());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(error_of(&output, 130), "interrupted");
    assert!(stdout(&output).contains("Incomplete: "));
    assert_eq!(files(folder.path()), ["r"]);
    assert_eq!(files(&folder.path().join("r")).len(), 6);
}

#[test]
fn a_load_is_logged_where_the_option_or_the_variable_says() {
    let folder = folder();
    let load = ["load", "--page", "sitespeed"];
    let plain = quipu(folder.path(), &load);
    let option = [&load[..], &["--qlog", "by-option"]].concat();
    assert_eq!(stdout(&quipu(folder.path(), &option)), stdout(&plain));
    let old = [&load[..], &["--qlog", "old", "--qlog-version", "0.3"]].concat();
    assert!(quipu(folder.path(), &old).status.success());
    let by_variable = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(load)
        .current_dir(folder.path())
        .env("QLOGDIR", "by-variable/")
        .output()
        .expect("the program starts");
    assert!(by_variable.status.success());
    let names = files(&folder.path().join("by-option"));
    let [client, server] = &names[..] else { panic!("{names:?}") };
    assert!(client.ends_with("_client.sqlog") && server.ends_with("_server.sqlog"), "{names:?}");
    assert_eq!(files(&folder.path().join("by-variable")), names);
    let read = |folder: &Path, name: &str| std::fs::read(folder.join(name)).expect("a file");
    for name in &names {
        let [one, other] =
            ["by-option", "by-variable"].map(|part| read(&folder.path().join(part), name));
        assert!(!one.is_empty() && one == other, "{name}");
    }
    let old = files(&folder.path().join("old"));
    assert!(
        old.len() == 4 && old.iter().any(|name| name.ends_with("_server_path1.sqlog")),
        "{old:?}"
    );
}

#[test]
fn logs_of_a_comparison_are_in_a_folder_for_each_run() {
    let folder = folder();
    let output =
        run_quick(folder.path(), &["--qlog", "logs", "--qlog-runs", "1", "--stream", "rr"]);
    assert!(output.status.success());
    let runs = files(&folder.path().join("logs"));
    assert!(runs.len() >= 2 && runs.iter().all(|name| name.ends_with(",_run_0")), "{runs:?}");
    for run in runs {
        assert_eq!(files(&folder.path().join("logs").join(run)).len(), 2);
    }
}

#[test]
fn wrong_options_of_logs_are_told() {
    let wrong = refused(&["load", "--qlog", "logs", "--qlog-version", "0.4"]);
    assert_eq!(wrong, "--qlog-version: qlog version 0.4; expected current or 0.3");
    let lonely = refused(&["load", "--qlog-version", "0.3"]);
    assert!(lonely.starts_with("--qlog-version: expected --qlog DIR"), "{lonely}");
    let lonely = refused(&["compare", "--qlog-runs", "3"]);
    assert!(lonely.starts_with("--qlog-runs: expected --qlog DIR"), "{lonely}");
}

#[test]
fn what_another_reading_of_a_recording_turns_is_marked() {
    let folder = folder();
    let output = quipu(
        folder.path(),
        &[
            "compare",
            "--page",
            "rust-book",
            "--page",
            "framework-google",
            "--runs",
            "3",
            "--range",
            "--out",
            "out",
        ],
    );
    let text = stdout(&output);
    let (tables, turned) = text
        .split_once("† differs with low and high computing of rust-book:\n")
        .unwrap_or_else(|| panic!("{text}"));
    // fifo is ahead because of what is taken for computing.
    let row = tables.lines().find(|line| line.starts_with("fifo") && line.contains('†'));
    assert!(row.is_some(), "{tables}");
    let told = "  rust-book over wifi+lte, fifo + minrtt: page is lower than with rr + minrtt (";
    assert!(turned.contains(told), "{turned}");
    let google = tables.split("framework-google").nth(1).unwrap_or_default();
    assert!(!google.contains('†'), "nothing of it is hidden: {google}");

    let summary = std::fs::read(folder.path().join("out/summary.json")).expect("a file");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    let range = &summary["computing_range"];
    assert_eq!(range["with"], serde_json::json!(["low", "high"]));
    assert_eq!(range["pages"], serde_json::json!(["rust-book"]));
    let report = quipu(folder.path(), &["report", "out"]);
    assert_eq!(report.status.code(), Some(0));
    let report = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a file");
    assert!(report.contains("some results depend on what the recording hides: "));

    // The same numbers as without it.
    let plain = quipu(
        folder.path(),
        &["compare", "--page", "rust-book", "--page", "framework-google", "--runs", "3"],
    );
    let medians = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.contains('/'));
        rows.filter(|line| line.starts_with("fifo")).map(str::to_owned).collect()
    };
    assert_eq!(medians(&stdout(&plain)), medians(&text));
    assert!(stdout(&plain).contains("(use --range to see what the recording leaves open)"));
}

#[test]
fn pages_that_hide_nothing_have_no_range() {
    let arguments = ["compare", "--page", "framework-google", "--runs", "2", "--range"];
    let text = stdout(&quipu(folder().path(), &arguments));
    assert!(text.contains("No page leaves open how long computing takes"), "{text}");
}
