//! Files that were compressed before.

use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LAST_MODIFIED, RANGE,
    VARY,
};

use crate::setup::{Site, date};

fn site() -> Site {
    Site::of(&[
        ("a.js", "plain"),
        ("a.js.br", "as br"),
        ("a.js.gz", "as gzip"),
        ("a.js.zst", "as zstd"),
        ("b.js", "plain"),
        ("b.js.gz", "as gzip"),
        ("c.js.gz", "as gzip"),
        ("index.html", "plain"),
        ("index.html.br", "as br"),
    ])
}

#[tokio::test]
async fn the_form_is_the_one_that_the_client_weighs_most() {
    let site = site();
    for (accepts, text) in [
        ("gzip, deflate, br, zstd", "as zstd"),
        ("gzip, br", "as br"),
        ("gzip", "as gzip"),
        ("br;q=0.5, gzip;q=0.9", "as gzip"),
        ("br;q=0, gzip", "as gzip"),
        ("zstd;q=0, br;q=0, gzip;q=0", "plain"),
        ("gzip;q=0.000", "plain"),
        ("GZIP", "as gzip"),
        ("identity", "plain"),
        ("deflate", "plain"),
        ("", "plain"),
    ] {
        let answer = site.get("/a.js", &[(ACCEPT_ENCODING, accepts)]).await;
        answer.is(200, text);
        let encoding = text.strip_prefix("as ");
        assert_eq!(answer.header(CONTENT_ENCODING), encoding, "{accepts}");
        assert_eq!(answer.header(CONTENT_TYPE), Some("text/javascript; charset=utf-8"));
        assert_eq!(answer.header(VARY), Some("accept-encoding"));
    }
    site.get("/a.js", &[]).await.is(200, "plain");
}

#[tokio::test]
async fn a_form_that_is_not_there_is_passed_over() {
    let site = site();
    let accepts = [(ACCEPT_ENCODING, "zstd, br, gzip")];
    site.get("/b.js", &accepts).await.is(200, "as gzip");
    site.get("/b.js", &[(ACCEPT_ENCODING, "zstd, br")]).await.is(200, "plain");
    site.get("/", &accepts).await.is(200, "as br");
}

#[tokio::test]
async fn each_form_has_its_own_tag_and_ranges() {
    let site = site();
    let zstd = (ACCEPT_ENCODING, "zstd");
    let plain = site.get("/a.js", &[]).await;
    let encoded = site.get("/a.js", &[(ACCEPT_ENCODING, "zstd")]).await;
    assert_ne!(plain.header(ETAG), encoded.header(ETAG));
    let tag = encoded.header(ETAG).unwrap();
    site.get("/a.js", &[zstd.clone(), (IF_NONE_MATCH, tag)]).await.is(304, "");
    site.get("/a.js", &[(IF_NONE_MATCH, tag)]).await.is(200, "plain");
    site.get("/a.js", &[zstd, (RANGE, "bytes=3-")]).await.is(206, "zstd");
}

#[tokio::test]
async fn forms_of_one_time_and_size_have_tags_of_their_own() {
    let names = ["a.js", "a.js.gz", "a.js.br", "a.js.zst"];
    let site = Site::of(&names.map(|name| (name, "four")));
    for name in names {
        date(&site.root().join(name), 1_000_000_000);
    }
    let mut tags = Vec::new();
    for accepts in ["identity", "gzip", "br", "zstd"] {
        let answer = site.get("/a.js", &[(ACCEPT_ENCODING, accepts)]).await;
        assert_eq!(answer.header(LAST_MODIFIED), Some("Sun, 09 Sep 2001 01:46:40 GMT"));
        tags.push(answer.header(ETAG).unwrap().to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "{tags:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_form_that_may_not_be_served_is_passed_over() {
    let site = site();
    site.write("../secret.zst", "secret");
    std::os::unix::fs::symlink("../secret.zst", site.root().join("b.js.zst")).unwrap();
    std::fs::create_dir(site.root().join("b.js.br")).unwrap();
    site.get("/b.js", &[(ACCEPT_ENCODING, "zstd, br, gzip")]).await.is(200, "as gzip");
}
