//! `quipu page record` as far as it goes without a browser, and pages in compressed files.

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
