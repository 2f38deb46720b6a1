//! `quipu page record` as far as it goes without a browser, pages in compressed files, and traces beside them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;

const HAR: &str = r#"{"log":{"entries":[{"startedDateTime":"2020-01-01T00:00:00Z","time":30,
    "request":{"url":"https://a.test/"},"response":{"status":200,"bodySize":500,
    "content":{"mimeType":"text/html"}}}]}}"#;

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.current_dir(folder).args(arguments).output().expect("the program starts")
}

/// What is refused before a browser is started, in one line and with exit code 2.
fn refused(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = quipu(folder.path(), &[&["page", "record"], arguments].concat());
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
    error
}

#[test]
fn what_cannot_be_recorded_is_refused_with_what_is_expected() {
    let url = "http://127.0.0.1:9/";
    for (arguments, expected) in [
        (&["example.org"][..], "URL: \"example.org\"; expected a URL with its scheme"),
        (&[url, "--at", "2mb"], "--at: \"2mb\"; expected rates such as"),
        (&[url, "--rtt", "40"], "--rtt: \"40\"; expected a time such as 40ms"),
        (&[url, "--settle", "never"], "--settle: \"never\"; expected a time such as 40ms"),
        (&[url, "--viewport", "12"], "--viewport: \"12\"; expected width and height"),
        (&[url, "--repeat", "0"], "invalid value '0' for '--repeat <N>'"),
        (&[url, "--out", "no/such/file.har"], "expected a file in a folder that exists"),
        (&[url, "--chromium", "no-such-browser"], "no Chromium found, looked for no-such-browser"),
    ] {
        let error = refused(arguments);
        assert!(error.contains(expected), "{error}");
    }
}

/// Waits until `done`, at most ten seconds.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "other processes are waited for")]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let mut is_done = done();
    for _ in 0..1_000 {
        if is_done {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_done = done();
    }
    assert!(is_done, "{what}: not within ten seconds");
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_recorder_leaves_no_browser_and_no_profile() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let browser = folder.path().join("browser");
    // It never listens, and has a helper, as browsers have.
    let script =
        format!("#!/bin/sh\nsleep 60 &\necho $$ $! > {}/started\nwait\n", folder.path().display());
    std::fs::write(&browser, script).expect("a file");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["page", "record", "http://127.0.0.1:9/", "--out", "a.har", "--chromium"])
        .arg(&browser)
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .spawn()
        .expect("the program starts");
    let started = || std::fs::read_to_string(folder.path().join("started")).unwrap_or_default();
    wait_until("the browser starts", || started().ends_with('\n'));
    recorder.kill().expect("it is killed");
    recorder.wait().expect("it ended");

    let is_alive = |pid: &str| {
        // A zombie, which nobody may wait for here, is no process any more.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    };
    for pid in started().split_whitespace() {
        wait_until("the browser ends", || !is_alive(pid));
    }
    let profiles = || {
        let entries = folder.path().read_dir().expect("a folder").flatten();
        entries.filter(|it| it.file_name().to_string_lossy().starts_with("quipu-recorder-")).count()
    };
    wait_until("the profile is removed", || profiles() == 0);
}

#[test]
fn a_compressed_recording_is_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(folder.path().join("a.har.gz")).expect("a file");
    let mut encoder = GzEncoder::new(file, Compression::fast());
    encoder.write_all(HAR.as_bytes()).and_then(|()| encoder.try_finish()).expect("it is written");
    let output = quipu(folder.path(), &["page", "show", "a.har.gz"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("page        a\n"), "{text}");

    std::fs::write(folder.path().join("b.zip"), "PK\x03\x04 and more").expect("it is written");
    let output = quipu(folder.path(), &["page", "show", "b.zip"]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(
        error.starts_with("error: cannot read page b.zip: the archive is damaged: "),
        "{error}"
    );
}

/// A script asks for `answer` 300 ms after it came, while another response was on its way.
const SCRIPTED: &str = r#"{"log":{"entries":[
    {"startedDateTime":"2020-01-01T00:00:00Z","time":100,"request":{"url":"https://a.test/"},
     "response":{"status":200,"bodySize":500,"content":{"mimeType":"text/html"}}},
    {"startedDateTime":"2020-01-01T00:00:00Z","time":900,"request":{"url":"https://a.test/long"},
     "_initiator":"https://a.test/","_resourceType":"image","response":{"status":200,"bodySize":500}},
    {"startedDateTime":"2020-01-01T00:00:00.400Z","time":100,"request":{"url":"https://a.test/answer"},
     "_initiator":"https://a.test/","_initiator_type":"script","_resourceType":"xhr",
     "response":{"status":200,"bodySize":500}}]}}"#;

/// Its main thread worked for 120 ms of these.
const TRACE: &str = r#"{"traceEvents":[
    {"name":"ResourceSendRequest","ph":"I","ts":1000000,"pid":1,"tid":1,
     "args":{"data":{"requestId":"1","url":"https://a.test/"}}},
    {"name":"FunctionCall","ph":"X","ts":1150000,"dur":120000,"pid":1,"tid":1,"args":{}}]}"#;

/// The line of `page show` for `--compute low`.
fn low(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|line| line.starts_with("low"));
    line.unwrap_or_default().to_owned()
}

#[test]
fn a_trace_beside_a_recording_tells_computing() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("a.har", SCRIPTED).and_then(|()| write("a.json", TRACE)).expect("they are written");
    let plain = quipu(folder.path(), &["page", "show", "a.har"]);
    assert!(low(&plain.stdout).starts_with("low "), "{plain:?}");
    assert!(!low(&plain.stdout).contains("120"), "{}", low(&plain.stdout));

    let infer = ["page", "infer", "a.har", "--trace", "a.json", "--out", "both.har"];
    let inferred = quipu(folder.path(), &infer);
    assert!(low(&inferred.stdout).contains(" 120.0 ms "), "{}", low(&inferred.stdout));
    let shown = quipu(folder.path(), &["page", "show", "both.har"]);
    assert_eq!(low(&shown.stdout), low(&inferred.stdout));

    // An archive has both.
    let file = std::fs::File::create(folder.path().join("a.zip")).expect("a file");
    let mut archive = zip::ZipWriter::new(file);
    for (name, text) in [("1.har", SCRIPTED), ("1_trace.json", TRACE)] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).expect("it begins");
        archive.write_all(text.as_bytes()).expect("it is written");
    }
    archive.finish().expect("it is closed");
    let archived = quipu(folder.path(), &["page", "show", "a.zip"]);
    assert_eq!(low(&archived.stdout), low(&inferred.stdout));
}

#[test]
fn a_trace_that_is_of_no_use_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    let other = TRACE.replace("a.test", "b.test");
    let of_another = "error: trace in t.json: the trace is of another load: none of its 1 requests";
    for (trace, expected) in [
        ("", "error: trace in t.json: the trace ends in the middle, at line 1, column 0"),
        ("{}", "error: trace in t.json: not a trace: no field `traceEvents` in the outer object"),
        ("[]", "error: trace in t.json: no main thread of a renderer in the trace"),
        (&other, of_another),
    ] {
        write("a.har", SCRIPTED).and_then(|()| write("t.json", trace)).expect("they are written");
        let infer = ["page", "infer", "a.har", "--trace", "t.json", "--out", "both.har"];
        let output = quipu(folder.path(), &infer);
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with(expected), "{error}");
        assert!(!folder.path().join("both.har").exists());
    }
    let two = ["page", "infer", "a.har", "a.har", "--trace", "t.json", "--out", "both.har"];
    let error = String::from_utf8(quipu(folder.path(), &two).stderr).expect("text");
    assert!(error.starts_with("error: --trace is of one HAR file, not of 2"), "{error}");
}
