//! Which files are served, and how.

use http::Method;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, HeaderValue, LAST_MODIFIED,
    LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use quipu_serve::files::Files;

use crate::setup::{Site, date};

#[tokio::test]
async fn a_file_is_sent_with_its_type_length_and_validators() {
    let site = Site::of(&[("a.css", "body {}"), ("b.unknown-ending", "?")]);
    date(&site.root().join("a.css"), 1_000_000_000);
    let answer = site.get("/a.css?version=3", &[]).await;
    answer.is(200, "body {}");
    assert_eq!(answer.header(CONTENT_TYPE), Some("text/css; charset=utf-8"));
    assert_eq!(answer.header(CONTENT_LENGTH), Some("7"));
    assert_eq!(answer.header(LAST_MODIFIED), Some("Sun, 09 Sep 2001 01:46:40 GMT"));
    assert_eq!(answer.header(CACHE_CONTROL), Some("no-cache"));
    assert_eq!(answer.header(X_CONTENT_TYPE_OPTIONS), Some("nosniff"));
    let tag = answer.header(ETAG).unwrap();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag} is strong");
    assert!(answer.header(DATE).is_some_and(|date| date.ends_with(" GMT")));
    let unknown = site.get("/b.unknown-ending", &[]).await;
    assert_eq!(unknown.header(CONTENT_TYPE), Some("application/octet-stream"));
}

#[tokio::test]
async fn head_tells_what_get_would_send() {
    let site = Site::of(&[("a.txt", "seven b")]);
    let get = site.get("/a.txt", &[]).await;
    let head = site.ask(Method::HEAD, "/a.txt", &[]).await;
    head.is(200, "");
    for name in [CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, CACHE_CONTROL] {
        assert_eq!(head.headers.get(&name), get.headers.get(&name), "{name}");
    }
    let missing = site.ask(Method::HEAD, "/b.txt", &[]).await;
    missing.is(404, "");
    assert_eq!(
        missing.headers.get(CONTENT_LENGTH),
        site.get("/b.txt", &[]).await.headers.get(CONTENT_LENGTH)
    );
}

#[tokio::test]
async fn other_methods_are_refused_with_those_allowed() {
    let site = Site::of(&[("a.txt", "a")]);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get"] {
        let answer = site.ask(method.parse().unwrap(), "/a.txt", &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header(ALLOW)), (405, Some("GET, HEAD")));
        assert_eq!(answer.text(), "405 Method Not Allowed: only GET and HEAD\n", "{method}");
    }
}

#[tokio::test]
async fn what_is_missing_is_told_in_plain_text() {
    let site = Site::of(&[("a.html", "a")]);
    for path in
        ["/b", "/b.html", "/b/", "/a.html/", "/a.html/b", &format!("/{}", "n".repeat(2_000))]
    {
        let answer = site.get(path, &[]).await;
        answer.is(404, "404 Not Found: there is no file at this address\n");
        assert_eq!(answer.header(CONTENT_TYPE), Some("text/plain; charset=utf-8"));
        assert_eq!(answer.header(CACHE_CONTROL), None);
    }
}

#[tokio::test]
async fn a_folder_answers_with_its_index_page() {
    let site = Site::of(&[("index.html", "top"), ("b/index.html", "below"), ("c/d.txt", "")]);
    site.get("/", &[]).await.is(200, "top");
    site.get("/?q", &[]).await.is(200, "top");
    site.get("/b/", &[]).await.is(200, "below");
    site.get("/b/index.html", &[]).await.is(200, "below");
    let html = site.get("/b/", &[]).await;
    assert_eq!(html.header(CONTENT_TYPE), Some("text/html; charset=utf-8"));
    // No list of what is there.
    assert_eq!(site.get("/c/", &[]).await.status, 404);
}

#[tokio::test]
async fn a_folder_without_a_slash_redirects_to_the_path_alone() {
    let site = Site::of(&[("b/index.html", "below")]);
    // Not to the host that a client named.
    for target in ["/b", "https://other.example/b"] {
        let answer = site.get(target, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header(LOCATION)), (307, Some("/b/")));
    }
    assert_eq!(site.get("/b?c=d", &[]).await.header(LOCATION), Some("/b/?c=d"));
    assert_eq!(site.get("//b", &[]).await.status, 404);
}

#[tokio::test]
async fn no_path_leaves_the_folder() {
    let site = Site::of(&[("a.txt", "a"), ("../secret.txt", "secret"), ("b/c.txt", "c")]);
    for path in [
        "/../secret.txt",
        "/b/../../secret.txt",
        "/b/../a.txt",
        "/%2e%2e/secret.txt",
        "/%2E%2E%2Fsecret.txt",
        "/..%2fsecret.txt",
        "/b%2f..%2f..%2fsecret.txt",
        "/..%5csecret.txt",
        "/a.txt%00",
        "/a.txt%00.html",
        "/%00",
        "/./a.txt",
        "//a.txt",
        "/b//c.txt",
        "/b%2fc.txt",
        "/%ff",
    ] {
        let answer = site.get(path, &[]).await;
        assert_eq!(answer.status, 404, "{path}: {:?}", answer.text());
        assert_eq!(site.ask(Method::HEAD, path, &[]).await.status, 404, "{path}");
    }
    let absolute = format!("/{}", site.root().join("a.txt").display());
    assert_eq!(site.get(&absolute, &[]).await.status, 404);
    site.get("/%61.txt", &[]).await.is(200, "a");
}

#[cfg(unix)]
#[tokio::test]
async fn no_sequence_of_pieces_leaves_the_folder() {
    const PIECES: [&str; 11] =
        ["", "/", "..", "%2e%2e", ".", "%2f", "%5c", "%00", "a", "out", "secret.txt"];
    let site = Site::of(&[("a/b.txt", "b"), ("../secret.txt", "secret")]);
    std::os::unix::fs::symlink("..", site.root().join("out")).unwrap();
    let mut redirected = std::collections::BTreeSet::new();
    for number in 0..PIECES.len().pow(4) {
        let place = |exponent| PIECES[number / PIECES.len().pow(exponent) % PIECES.len()];
        let path = format!("/{}", [3, 2, 1, 0].map(place).concat());
        let answer = site.get(&path, &[]).await;
        match answer.status.as_u16() {
            307 => redirected.insert(path),
            status => {
                assert_eq!(status, 404, "{path}: {}", answer.text());
                false
            }
        };
    }
    assert_eq!(redirected, ["/a".to_owned()].into());
}

#[tokio::test]
async fn hidden_files_are_served_below_well_known_alone() {
    let site = Site::of(&[
        (".env", "secret"),
        (".git/config", "secret"),
        ("b/.hidden/c", "secret"),
        (".well-known/security.txt", "Contact:"),
        (".well-known/.hidden", "secret"),
        ("b/.well-known/c", "secret"),
    ]);
    for path in [
        "/.env",
        "/.git/config",
        "/b/.hidden/c",
        "/.well-known/.hidden",
        "/b/.well-known/c",
        "/.git",
    ] {
        assert_eq!(site.get(path, &[]).await.status, 404, "{path}");
    }
    site.get("/.well-known/security.txt", &[]).await.is(200, "Contact:");
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_links_are_followed_within_the_folder_alone() {
    use std::os::unix::fs::symlink;

    let site = Site::of(&[
        ("a.txt", "a"),
        ("b/c.txt", "c"),
        (".git/config", "secret"),
        ("../secret.txt", "secret"),
        ("../beside/index.html", "secret"),
        ("../site-two/d.txt", "secret"),
    ]);
    let root = site.root();
    symlink("a.txt", root.join("link.txt")).unwrap();
    symlink(root.join("b"), root.join("folder")).unwrap();
    symlink("../secret.txt", root.join("out.txt")).unwrap();
    symlink(root.parent().unwrap().join("beside"), root.join("out")).unwrap();
    // A name that begins as the folder's does.
    symlink("../site-two", root.join("two")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink(".git/config", root.join("hidden.txt")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    site.get("/link.txt", &[]).await.is(200, "a");
    site.get("/folder/c.txt", &[]).await.is(200, "c");
    for path in [
        "/out.txt",
        "/out",
        "/out/",
        "/out/index.html",
        "/two/d.txt",
        "/up/secret.txt",
        "/up/site/a.txt/",
        "/hidden.txt",
        "/circle",
        "/dangling",
    ] {
        let answer = site.get(path, &[]).await;
        assert_eq!(answer.status, 404, "{path}: {:?}", answer.text());
    }
    // It ends where it is allowed to.
    site.get("/up/site/a.txt", &[]).await.is(200, "a");
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_are_no_files() {
    let site = Site::of(&[]);
    let pipe = site.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(site.get("/pipe", &[]).await.status, 404);
}

#[tokio::test]
async fn caches_keep_files_for_as_long_as_they_are_told() {
    let mut site = Site::of(&[("a.txt", "a")]);
    let hour = HeaderValue::from_static("max-age=3600");
    site.files = site.files.clone().cache_control(hour);
    assert_eq!(site.get("/a.txt", &[]).await.header(CACHE_CONTROL), Some("max-age=3600"));
    assert_eq!(site.get("/b.txt", &[]).await.header(CACHE_CONTROL), None);
}

#[tokio::test]
async fn a_large_file_arrives_whole() {
    let text: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    let site = Site::of(&[("large.txt", &text)]);
    site.get("/large.txt", &[]).await.is(200, &text);
}

#[test]
fn what_is_no_folder_is_refused_with_what_to_do() {
    let site = Site::of(&[("a.txt", "a")]);
    for path in ["a.txt", "missing"] {
        let error = Files::new(site.root().join(path)).unwrap_err().to_string();
        assert!(error.starts_with("cannot serve ") && error.contains(path), "{error}");
        assert!(error.ends_with("give a folder that this user may read"), "{error}");
    }
}
