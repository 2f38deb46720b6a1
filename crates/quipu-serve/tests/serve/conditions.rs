//! Requests that depend on what the client has.

use http::Method;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, DATE, ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE, VARY,
};

use crate::setup::{Site, date};

const BEFORE: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
const AT: &str = "Sun, 09 Sep 2001 01:46:40 GMT";
const AFTER: &str = "Sun, 09 Sep 2001 01:46:41 GMT";

fn site() -> Site {
    let site = Site::of(&[("a.txt", "0123456789")]);
    date(&site.root().join("a.txt"), 1_000_000_000);
    site
}

#[tokio::test]
async fn a_file_that_a_cache_has_is_not_sent_again() {
    let site = site();
    let whole = site.get("/a.txt", &[]).await;
    let tag = whole.header(ETAG).unwrap();
    let weak = format!("W/{tag}");
    let listed = format!("\"other\", {tag}");
    for known in [tag, &weak, &listed, "*"] {
        for method in [Method::GET, Method::HEAD] {
            let answer = site.ask(method, "/a.txt", &[(IF_NONE_MATCH, known)]).await;
            answer.is(304, "");
            // https://www.rfc-editor.org/rfc/rfc9110#section-15.4.5
            for name in [ETAG, LAST_MODIFIED, CACHE_CONTROL, VARY] {
                assert_eq!(answer.headers.get(&name), whole.headers.get(&name), "{name}");
            }
            assert!(answer.header(DATE).is_some());
            assert_eq!(answer.header(CONTENT_LENGTH), None);
        }
    }
    site.get("/a.txt", &[(IF_NONE_MATCH, "\"other\"")]).await.is(200, "0123456789");
}

#[tokio::test]
async fn a_file_that_did_not_change_since_is_not_sent_again() {
    let site = site();
    for (since, status) in [(BEFORE, 200), (AT, 304), (AFTER, 304), ("last week", 200)] {
        let answer = site.get("/a.txt", &[(IF_MODIFIED_SINCE, since)]).await;
        assert_eq!(answer.status, status, "{since}");
    }
    // A tag says more than a date.
    let both = [(IF_NONE_MATCH, "\"other\""), (IF_MODIFIED_SINCE, AT)];
    site.get("/a.txt", &both).await.is(200, "0123456789");
}

#[tokio::test]
async fn a_request_about_another_file_fails() {
    let site = site();
    let whole = site.get("/a.txt", &[]).await;
    let tag = whole.header(ETAG).unwrap();
    for (name, value, status) in [
        (IF_MATCH, tag, 200),
        (IF_MATCH, "*", 200),
        (IF_MATCH, "\"other\"", 412),
        (IF_UNMODIFIED_SINCE, AT, 200),
        (IF_UNMODIFIED_SINCE, BEFORE, 412),
    ] {
        let answer = site.get("/a.txt", &[(name.clone(), value)]).await;
        assert_eq!(answer.status, status, "{name}: {value}");
        if status == 412 {
            assert!(answer.text().starts_with("412 Precondition Failed: "), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_changed_file_has_another_tag() {
    let site = site();
    let tag = |answer: crate::setup::Answer| answer.header(ETAG).unwrap().to_owned();
    let first = tag(site.get("/a.txt", &[]).await);
    assert_eq!(tag(site.get("/a.txt", &[]).await), first);
    // Of the same length.
    site.write("a.txt", "9876543210");
    assert_ne!(tag(site.get("/a.txt", &[]).await), first);
    // Of the same time.
    site.write("a.txt", "0123");
    date(&site.root().join("a.txt"), 1_000_000_000);
    assert_ne!(tag(site.get("/a.txt", &[]).await), first);
}

#[tokio::test]
async fn conditions_are_judged_before_ranges() {
    let site = site();
    let known = [(IF_MODIFIED_SINCE, AT), (RANGE, "bytes=0-1")];
    site.get("/a.txt", &known).await.is(304, "");
    let other = [(IF_MODIFIED_SINCE, BEFORE), (RANGE, "bytes=0-1")];
    site.get("/a.txt", &other).await.is(206, "01");
}
