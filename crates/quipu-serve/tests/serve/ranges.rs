//! Parts of files.

use http::Method;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, LAST_MODIFIED,
    RANGE,
};

use crate::setup::{Answer, Site, date};

async fn part(site: &Site, range: &str) -> Answer {
    site.get("/a.txt", &[(RANGE, range)]).await
}

#[tokio::test]
async fn one_range_is_sent_with_its_place() {
    let site = Site::of(&[("a.txt", "0123456789")]);
    for (range, text, place) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=4-4", "4", "bytes 4-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=7-100", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-100", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = part(&site, range).await;
        answer.is(206, text);
        assert_eq!(answer.header(CONTENT_RANGE), Some(place));
        assert_eq!(answer.header(CONTENT_LENGTH), Some(text.len().to_string().as_str()));
        assert!(answer.header(ETAG).is_some());
    }
    assert_eq!(site.get("/a.txt", &[]).await.header(ACCEPT_RANGES), Some("bytes"));
}

#[tokio::test]
async fn a_range_beyond_the_file_is_refused_with_its_length() {
    let site = Site::of(&[("a.txt", "0123456789"), ("empty.txt", "")]);
    for range in ["bytes=10-", "bytes=100-200", "bytes=-0"] {
        let answer = part(&site, range).await;
        answer.is(416, "416 Range Not Satisfiable: the file has no such range of bytes\n");
        assert_eq!(answer.header(CONTENT_RANGE), Some("bytes */10"));
        assert_eq!(answer.header(CONTENT_TYPE), Some("text/plain; charset=utf-8"));
    }
}

#[tokio::test]
async fn an_empty_file_is_sent_whole() {
    let site = Site::of(&[("empty.txt", "")]);
    for range in ["bytes=0-", "bytes=0-9", "bytes=-1"] {
        let answer = site.get("/empty.txt", &[(RANGE, range)]).await;
        answer.is(200, "");
    }
}

#[tokio::test]
async fn several_ranges_and_other_units_get_the_whole_file() {
    let site = Site::of(&[("a.txt", "0123456789")]);
    for range in ["bytes=0-1,4-5", "bytes=0-1, 1-2, -1", "lines=1-2", "BYTES=0-1"] {
        let answer = part(&site, range).await;
        answer.is(200, "0123456789");
        assert_eq!(answer.header(CONTENT_RANGE), None);
    }
    let twice = [(RANGE, "bytes=0-1"), (RANGE, "bytes=2-3")];
    site.get("/a.txt", &twice).await.is(200, "0123456789");
}

#[tokio::test]
async fn head_ignores_ranges() {
    let site = Site::of(&[("a.txt", "0123456789")]);
    let answer = site.ask(Method::HEAD, "/a.txt", &[(RANGE, "bytes=0-1")]).await;
    answer.is(200, "");
    assert_eq!(answer.header(CONTENT_LENGTH), Some("10"));
}

#[tokio::test]
async fn a_range_of_another_file_gets_the_whole_one() {
    let site = Site::of(&[("a.txt", "0123456789")]);
    date(&site.root().join("a.txt"), 1_000_000_000);
    let whole = site.get("/a.txt", &[]).await;
    let tag = whole.header(ETAG).unwrap();
    let modified = whole.header(LAST_MODIFIED).unwrap();
    let weak = format!("W/{tag}");
    let range = (RANGE, "bytes=0-1");
    for same in [tag, modified] {
        let answer = site.get("/a.txt", &[range.clone(), (IF_RANGE, same)]).await;
        answer.is(206, "01");
    }
    for other in ["\"other\"", &weak, "Sun, 09 Sep 2001 01:46:41 GMT", "yesterday"] {
        let answer = site.get("/a.txt", &[range.clone(), (IF_RANGE, other)]).await;
        answer.is(200, "0123456789");
        // What would be refused otherwise.
        let beyond = site.get("/a.txt", &[(RANGE, "bytes=10-"), (IF_RANGE, other)]).await;
        beyond.is(200, "0123456789");
    }
    // Without a range, the condition is about nothing.
    site.get("/a.txt", &[(IF_RANGE, tag)]).await.is(200, "0123456789");
}
