//! The process that makes emulated loads.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{LINKS, load_succeeds_unless_void, may_emulate, output, quipu, read, reports, text};

/// Number of the process that makes the loads of `command`, once it is there.
#[expect(clippy::disallowed_methods, reason = "a process takes real time to start")]
fn client_of(command: &mut Child) -> u32 {
    let parent = format!("PPid:\t{}", command.id());
    let is_client = |number: &u32| {
        let file = |name: &str| fs::read_to_string(format!("/proc/{number}/{name}"));
        let is_child = file("status").is_ok_and(|it| it.lines().any(|line| line == parent));
        is_child && file("cmdline").is_ok_and(|it| it.contains("emulated-client"))
    };
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < Duration::from_secs(60), "no client after a minute");
        assert!(command.try_wait().expect("a process").is_none(), "it ended without a client");
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        if let Some(client) = numbers.find(is_client) {
            return client;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_is_killed_fails_its_load_alone() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let mut command = quipu();
    command.args(["compare", "--world", "emulated", "--page", "dojo-demo", "--runs", "3"]);
    command.args(LINKS).args(["--stream", "fifo", "--out"]).arg(folder.path().join("r"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("the program starts");
    let client = client_of(&mut running).to_string();
    let killed = output(std::process::Command::new("kill").args(["-9", &client]));
    assert!(killed.status.success(), "{}", text(&killed.stderr));
    let ended = running.wait_with_output().expect("it ends");
    let (printed, told) = (text(&ended.stdout), text(&ended.stderr));
    // What fails while the machine is too busy is made again.
    if reports(&folder.path().join("r")).iter().any(|report| report["attempt"] != 1) {
        eprintln!("void: {told}");
        return;
    }
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert_eq!(printed.matches("run 0: the client of loads ended").count(), 1, "{printed}");
    let summary = read(&folder.path().join("r/summary.json"));
    assert_eq!(summary["failures"].as_array().map(Vec::len), Some(1), "{printed}");
}

#[test]
fn connections_of_the_client_are_logged_where_that_was_asked_for() {
    if !may_emulate() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let logs = folder.path().join("logs");
    let mut command = quipu();
    command.args(["load", "--world", "emulated", "--page", "dojo-demo", "--stream", "fifo"]);
    command.args(LINKS).args(["--qlog-version", "0.3", "--qlog"]).arg(&logs);
    // Loads that are void are logged, too.
    load_succeeds_unless_void(&output(&mut command));
    let files = fs::read_dir(&logs).expect("a folder").flatten();
    let names: Vec<_> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    for path in ["_client_path0.sqlog", "_client_path1.sqlog"] {
        assert!(names.iter().any(|name| name.ends_with(path)), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("partial")), "{names:?}");
}

#[test]
fn who_asks_it_for_no_load_is_told_so_and_nobody_is_told_of_it() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "\"Begin\"\n").expect("a file");
    let mut command = quipu();
    command.arg("emulated-client").stdin(fs::File::open(file.path()).expect("a file"));
    let ended = output(&mut command);
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(text(&ended.stderr), "error: expected a load\n");
    fs::write(file.path(), "load\n").expect("a file");
    command.stdin(fs::File::open(file.path()).expect("a file"));
    let ended = output(&mut command);
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended.stderr).contains("this is no load: "), "{}", text(&ended.stderr));
    let load = r#"{"Load":{"scenario":"pages=['dojo-demo']","cell":{"page":0,"network":9,"policy":0,"run":0},
        "address":"127.0.0.1:1","pin":"","interfaces":[],"ways":[],"logs":null}}"#;
    fs::write(file.path(), load.replace('\n', "")).expect("a file");
    command.stdin(fs::File::open(file.path()).expect("a file"));
    let ended = output(&mut command);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let answer = text(&ended.stdout);
    assert!(answer.contains("the scenario has no Cell { page: 0, network: 9"), "{answer}");
    assert!(output(quipu().arg("emulated-client")).status.success());
    assert!(!text(&output(quipu().arg("--help")).stdout).contains("emulated-client"));
}
