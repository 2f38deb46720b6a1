use proptest::prelude::*;

use super::*;

fn with_entry(entry: &str) -> String {
    format!(r#"{{"log":{{"entries":[{entry}]}}}}"#)
}

#[test]
fn byte_order_mark_and_null_pages_are_read() {
    let text =
        r#"{"log":{"pages":null,"entries":[{"request":{"url":"https://a.test/","method":null}}]}}"#;
    let mut file = vec![0xef, 0xbb, 0xbf];
    file.extend_from_slice(text.as_bytes());
    let har = Har::parse(&file).unwrap();
    assert!(har.pages.is_empty());
    assert_eq!(har.entries[0].request.url.as_deref(), Some("https://a.test/"));
    assert_eq!(har.entries[0].request.method, None);
}

#[test]
fn numbers_as_text_and_flags_as_numbers_are_read() {
    let text = with_entry(
        r#"{"_bytesIn":"123","_was_pushed":"0","_http2_stream_exclusive":1,"_initiator_line":[1]}"#,
    );
    let har = Har::parse(text.as_bytes()).unwrap();
    assert_eq!(har.entries[0].bytes_in, Some(123.0));
    assert!(!har.entries[0].was_pushed);
    assert!(har.entries[0].http2_stream_exclusive);
    assert_eq!(har.entries[0].initiator_line, None);
}

#[test]
fn both_forms_of_the_initiator_are_read() {
    let text = with_entry(
        r#"{"_initiator":"https://a.test/"},{"_initiator":{"type":"script","stack":{"callFrames":
           [{"url":"https://a.test/x.js"}],"parent":{"callFrames":[{"url":"https://a.test/y.js"}]}}}},
           {"_initiator":null},{"_initiator":""},{"_initiator":7}"#,
    );
    let har = Har::parse(text.as_bytes()).unwrap();
    assert!(
        matches!(&har.entries[0].initiator, Some(Initiator::Url(url)) if url == "https://a.test/")
    );
    let Some(Initiator::DevTools(object)) = &har.entries[1].initiator else {
        panic!("an object is read as Chrome's form");
    };
    let stack = object.stack.as_ref().unwrap();
    assert_eq!(stack.call_frames[0].url.as_deref(), Some("https://a.test/x.js"));
    assert_eq!(
        stack.parent.as_ref().unwrap().call_frames[0].url.as_deref(),
        Some("https://a.test/y.js")
    );
    assert!(har.entries[2..].iter().all(|entry| entry.initiator.is_none()));
}

#[test]
fn time_zones_are_taken_into_account() {
    let text = with_entry(
        r#"{"startedDateTime":"2026-03-27T17:36:33.838-04:00"},
           {"startedDateTime":"2026-03-27T21:36:33.838Z"},{"startedDateTime":"yesterday"}"#,
    );
    let har = Har::parse(text.as_bytes()).unwrap();
    assert_eq!(har.entries[0].started, har.entries[1].started);
    assert_eq!(har.entries[2].started, None);
}

#[test]
fn each_fault_has_its_own_line() {
    let cases: &[(&[u8], &str)] = &[
        (
            b"{\"log\":\n {\"entries\":[",
            "the file ends in the middle in log.entries[0], at line 2, column 13",
        ),
        (b"", "the file ends in the middle, at line 1, column 0"),
        (b"<html>", "not JSON: expected value at line 1, column 1"),
        (b"\x1f\x8b\x08", "the file is compressed with gzip; unpack it first"),
        (b"{}", "not a HAR file: no field `log` in the outer object"),
        (b"{\"log\":{\"entries\":[]}}", "the file has no entries"),
        (
            b"{\"lgo\":{\"entries\":[]}}",
            "not a HAR file: no field `log` in the outer object; did you mean `lgo`?",
        ),
        (
            b"{\"log\":{\"pages\":[{\"entires\":1}],\"entreis\":[]}}",
            "the file has no entries; did you mean `entreis`?",
        ),
        (b"{\"log\":{\"x\" 1}}", "not JSON: expected `:` in log.x at line 1, column 13"),
        (
            b"{\"log\":{\"entries\":7}}",
            "not a HAR file: log.entries: invalid type: integer `7`, expected a sequence at line 1, \
             column 19",
        ),
        (
            b"{\"log\":{\"entries\":[{\"response\":{\"bodySize\":1e12}}]}}",
            "entry 1: response.bodySize is 1000000000000 bytes; at most 1 GiB is believed",
        ),
    ];
    for (file, message) in cases {
        assert_eq!(Har::parse(file).unwrap_err().to_string(), *message);
    }
    let many = with_entry(&vec!["{}"; MAX_ENTRIES + 1].join(","));
    assert_eq!(
        Har::parse(many.as_bytes()).unwrap_err(),
        HarError::TooManyEntries { count: MAX_ENTRIES + 1, limit: MAX_ENTRIES }
    );
}

#[test]
fn a_fault_is_told_without_its_place() {
    let fault = |file: &str| Har::parse(file.as_bytes()).unwrap_err().fault();
    assert_eq!(fault("{\"log\":{\"entries\":["), "the file ends in the middle");
    assert_eq!(fault("{\"log\":{\"x\" 1}}"), "not JSON: expected `:`");
    let told = "not a HAR file: log.entries: invalid type: integer `7`, expected a sequence";
    assert_eq!(fault("{\"log\":{\"entries\":7}}"), told);
    assert_eq!(fault("{\"log\":{\"entries\":[]}}"), "the file has no entries");
}

#[test]
fn deep_nesting_is_refused_not_overflown() {
    let deep = format!(r#"{{"log":{{"x":{}"#, "[".repeat(1_000_000));
    assert!(Har::parse(deep.as_bytes()).is_err());
    let stack = format!(
        r#"{{"_initiator":{{"stack":{}1{}}}}}"#,
        r#"{"parent":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    assert!(Har::parse(with_entry(&stack).as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_never_panic(file in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Har::parse(&file);
    }
}
