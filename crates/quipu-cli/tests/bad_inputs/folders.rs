//! Folders that cannot be written, a full disk, and processes that are ended.

#![cfg_attr(not(unix), expect(dead_code, reason = "processes are ended by signals"))]

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{Place, kept};

/// A comparison that takes far longer than any test.
const LONG: [&str; 9] =
    ["compare", "--page", "pries", "--runs", "10000", "--stream", "all", "--out", "out"];

#[test]
fn folders_that_have_something_else_are_refused() {
    let place = Place::new();
    let commands = [
        "compare --out good.toml",
        "compare --out full",
        "compare --out good.toml/out",
        "compare --out /dev/null/out",
        "load --out full",
        "run good.toml --out full",
        "report good.toml --out a.html",
        "compare --out full --force --out full",
    ];
    kept("folders", &place.all_refused(commands));
}

#[expect(clippy::disallowed_methods, reason = "a process needs its time")]
fn started(place: &Place, arguments: &[&str]) -> Child {
    let child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let mut looked = 0;
    while !place.names().iter().any(|name| name.to_string_lossy().contains("partial")) {
        looked += 1;
        assert!(looked < 10_000, "the run did not begin");
        sleep(Duration::from_millis(5));
    }
    // The handler of signals is set a moment later.
    sleep(Duration::from_millis(200));
    child
}

fn signalled(place: &Place, arguments: &[&str], signal: &str) -> Option<i32> {
    let mut child = started(place, arguments);
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    child.wait().expect("an end").code()
}

#[cfg(unix)]
#[test]
fn a_process_that_is_asked_to_end_keeps_what_was_finished_and_leaves_nothing_half_written() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let place = Place::new();
        assert_eq!(signalled(&place, &LONG, signal), Some(130), "{signal}");
        assert!(place.path().join("out/summary.json").is_file(), "{signal}");
        let partial =
            place.names().into_iter().find(|name| name.to_string_lossy().contains("partial"));
        assert_eq!(partial, None, "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn one_long_load_can_be_interrupted() {
    let place = Place::new();
    let before = place.names();
    let long = ["load", "--session=1000", "--page", "cnn", "--out", "out"];
    assert_eq!(signalled(&place, &long, "-INT"), Some(130));
    assert_eq!(place.names(), before);
}

#[cfg(unix)]
#[test]
fn what_a_killed_process_left_is_removed_by_the_next() {
    let place = Place::new();
    assert_eq!(signalled(&place, &LONG, "-KILL"), None);
    assert!(place.path().join(".out.partial").is_dir());
    let output = place.command(&["run", "good.toml", "--runs", "1", "--out", "out"]).output();
    assert!(output.expect("an end").status.success());
    assert!(!place.path().join(".out.partial").exists());
    assert!(place.path().join("out/summary.json").is_file());
}

#[cfg(unix)]
#[test]
fn a_second_writer_of_a_folder_is_refused() {
    let place = Place::new();
    let mut first = started(&place, &LONG);
    let arguments = ["run", "good.toml", "--out", "out"];
    let output = place.command(&arguments).output().expect("an end");
    let line = place.line(&arguments, &output, 2);
    first.kill().expect("a signal");
    first.wait().expect("an end");
    assert_eq!(
        line,
        "another process is writing to output folder out; wait for it, or give another folder"
    );
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_told_with_the_file_and_leaves_nothing_behind() {
    let place = Place::new();
    let before = place.names();
    // Files may have 512 bytes, as if no more were left on the disk.
    let limited = |arguments: &str| {
        let program = env!("CARGO_BIN_EXE_quipu");
        let script = format!("trap '' XFSZ; ulimit -f 1; exec {program} {arguments}");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir(place.path()).output().expect("bash")
    };
    for arguments in [
        "run good.toml --out out",
        "load --out out",
        "load --har a.har",
        "page infer good.har --out a.har",
        "scenario new a.toml",
    ] {
        let line = place.line(&[arguments], &limited(arguments), 1);
        assert!(line.starts_with("cannot write "), "{arguments}: {line}");
        assert_eq!(place.names(), before, "{arguments} left something behind");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let output = place.command(&["networks"]).stdout(full).output().expect("an end");
    let line = place.line(&["networks"], &output, 1);
    assert!(line.starts_with("cannot write to standard output: "), "{line}");
}
