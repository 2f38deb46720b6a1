//! `quipu fetch` from servers that do what it asks, in their own way.

use std::sync::{Arc, Mutex};

use quipu_tokio::tokio;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::scripted::{Exchange, Scripted, assert_failed, assert_succeeded, told};
use crate::server::quipu;

pub(crate) fn noise(length: usize) -> Vec<u8> {
    let words =
        (0..length as u32 / 4 + 1).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes());
    words.take(length).collect()
}

fn sha256(octets: &[u8]) -> String {
    let digest = digest(&SHA256, octets);
    digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Answers with method, length of the content as it is announced, and SHA-256 of what comes.
async fn take_in(mut exchange: Exchange) {
    let mut content = Vec::new();
    while let Some(octets) = exchange.body.data(65_536).await.expect("received") {
        content.extend_from_slice(&octets);
    }
    let length = exchange.head.headers().get("content-length");
    let length = length.map_or("unknown", |length| length.to_str().expect("ASCII")).to_owned();
    let answer = format!("{} {length} {}", exchange.head.method(), sha256(&content));
    exchange.respond(201, &[], true);
    exchange.send(answer.as_bytes()).await;
    exchange.finish();
}

#[test]
fn an_upload_arrives_whole() {
    let server = Scripted::start(take_in);
    let content = noise(3_000_001);
    let file = server.to("up");
    std::fs::write(&file, &content).expect("written");
    let name = file.to_str().expect("UTF-8");
    let sum = sha256(&content);
    let output = server.fetch("/up", &["--upload", name]);
    assert_succeeded(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("PUT 3000001 {sum}"));
    // The length of what comes from a pipe is not known.
    let mut command = server.command("/up", &["--upload", "-", "--request", "POST"]);
    let output = command.stdin(std::fs::File::open(&file).expect("a file")).output();
    let output = output.expect("it ends");
    assert_succeeded(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("POST unknown {sum}"));
}

#[test]
fn no_file_is_larger_than_allowed_and_nothing_of_it_is_kept() {
    let server = Scripted::start(|mut exchange| async move {
        let content = noise(100_000);
        let is_told = exchange.head.uri().path() == "/told";
        let fields = [("etag", "\"1\""), ("content-length", "100000")];
        exchange.respond(200, if is_told { &fields } else { &fields[..1] }, true);
        // The client may want no more.
        let _ = exchange.responder.send_data(content.into()).await;
        let _ = exchange.responder.finish(None);
    });
    for path in ["/told", "/untold"] {
        for more in [&[][..], &["--continue"]] {
            let options = [&["--max-filesize", "99999"], more].concat();
            let output = server.fetch_file(path, &options);
            assert_failed(&output, 63, &["--max-filesize allows 99999"]);
            assert_eq!(server.names(), [""; 0], "{path} {more:?}");
        }
        let output = server.fetch_file(path, &["--max-filesize", "100000"]);
        assert_succeeded(&output);
        assert!(std::fs::read(server.to("f")).expect("a file") == noise(100_000));
        std::fs::remove_file(server.to("f")).expect("removed");
    }
}

/// Sends what follows the hundredth octet, as the query says: the range that it tells, and how much comes.
async fn send_range(mut exchange: Exchange) {
    let query = exchange.head.uri().query().unwrap_or_default().replace("%20", " ");
    let (range, length) = query.split_once('&').expect("a range and a length");
    assert_eq!(exchange.head.headers()["range"], "bytes=100-");
    exchange.respond(206, &[("etag", "\"1\""), ("content-range", range)], true);
    let content = noise(1_000);
    let length: usize = length.parse().expect("a number");
    let _ = exchange.responder.send_data(content[100..100 + length].to_vec().into()).await;
    let _ = exchange.responder.finish(None);
}

#[test]
fn a_range_that_is_not_the_rest_of_the_file_is_an_error() {
    let server = Scripted::start(send_range);
    let resume = |range: &str, length: usize| {
        server.keep(&noise(1_000)[..100], "\"1\"");
        server.fetch_file(&format!("/?bytes%20{range}&{length}"), &["--continue"])
    };
    // The right one.
    assert_succeeded(&resume("100-199/200", 100));
    assert!(std::fs::read(server.to("f")).expect("a file") == noise(1_000)[..200]);
    std::fs::remove_file(server.to("f")).expect("removed");
    let part = || std::fs::read(server.to("f.part")).expect("a part");
    // What an earlier fetch kept is of the file's size, and stays.
    server.keep(&noise(1_000)[..100], "\"1\"");
    let options = ["--continue", "--max-filesize", "199"];
    let output = server.fetch_file("/?bytes%20100-199/200&100", &options);
    assert_failed(&output, 63, &["the file has 200 bytes"]);
    assert!(part() == noise(1_000)[..100]);
    for (range, part_of_error) in [
        ("0-99/200", "not what follows byte 100"),
        ("101-200/201", "not what follows byte 100"),
        ("100-199/300", "ends before the file does"),
        ("100-299/200", "expected bytes 100-LAST/LENGTH"),
    ] {
        assert_failed(&resume(range, 100), 33, &[part_of_error]);
        assert!(part() == noise(1_000)[..100], "{range}: nothing is written");
    }
    // Less comes than it says: what came may be gone on with.
    assert_failed(&resume("100-199/200", 99), 18, &["after 99 bytes of a range of 100"]);
    assert!(part() == noise(1_000)[..199]);
    assert_eq!(server.names(), ["f.part", "f.part.validator"]);
    // More comes: of what, nobody knows.
    assert_failed(&resume("100-199/*", 101), 33, &["of a range of 100"]);
    assert_eq!(server.names(), [""; 0]);
}

#[test]
fn a_part_that_is_the_whole_file_takes_its_name() {
    let server = Scripted::start(|mut exchange: Exchange| async move {
        assert_eq!(exchange.head.headers()["range"], "bytes=100-");
        let range = exchange.head.uri().path().replace("/", "bytes */");
        exchange.respond(416, &[("content-range", &range)], true);
        exchange.send(b"there is no such range").await;
        exchange.finish();
    });
    server.keep(&noise(1_000)[..100], "\"1\"");
    assert_failed(&server.fetch_file("/99", &["--continue"]), 33, &["no more than the 100 bytes"]);
    assert_eq!(server.names(), ["f.part", "f.part.validator"]);
    for options in [&["--continue"][..], &["--continue", "--fail"]] {
        server.keep(&noise(1_000)[..100], "\"1\"");
        assert_succeeded(&server.fetch_file("/100", options));
        assert_eq!(server.names(), ["f"]);
        assert!(std::fs::read(server.to("f")).expect("a file") == noise(1_000)[..100]);
        std::fs::remove_file(server.to("f")).expect("removed");
    }
}

#[test]
fn a_redirect_leads_to_another_server_without_the_fields_that_were_given() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let serve = |location: String| {
        let seen = Arc::clone(&seen);
        Scripted::start(move |mut exchange: Exchange| {
            let (seen, location) = (Arc::clone(&seen), location.clone());
            async move {
                let has_field = exchange.head.headers().contains_key("authorization");
                seen.lock().expect("a list").push((exchange.head.uri().clone(), has_field));
                match location.as_str() {
                    "" => {
                        exchange.respond(200, &[], true);
                        exchange.send(b"there").await;
                        exchange.finish();
                    }
                    location => exchange.respond(302, &[("location", location)], false),
                }
            }
        })
    };
    let there = serve(String::new());
    let here = serve(there.url("/b"));
    let (from, file) = (here.url("/a"), here.to("f"));
    let field = "authorization: Basic YTpi";
    let fetch = |trust: &[&str]| {
        let mut command = quipu();
        command.args(["fetch", &from, "--header", field, "--json", "--quiet", "--output"]);
        command.arg(&file).args(trust).output().expect("it ends")
    };
    let output = fetch(&["--insecure"]);
    assert_succeeded(&output);
    let warning = told(&output);
    assert!(
        warning.starts_with("warning: --insecure: ") && warning.lines().count() == 1,
        "{warning}"
    );
    assert_eq!(std::fs::read(&file).expect("a file"), b"there");
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["objects"][0]["final_url"], there.url("/b"));
    assert_eq!(value["objects"][0]["redirects"], 1);
    assert_eq!(value["connections"].as_array().map(Vec::len), Some(2), "{value}");
    let uri = |server: &Scripted, path| server.url(path).parse().expect("a URL");
    let expected = [(uri(&here, "/a"), true), (uri(&there, "/b"), false)];
    assert_eq!(std::mem::take(&mut *seen.lock().expect("a list")), expected);
    // The other server has to be known, too.
    std::fs::remove_file(&file).expect("removed");
    assert_failed(&fetch(&["--pin", &here.pin]), 60, &["not trusted"]);
    // Nothing is asked for without TLS.
    let plain = serve(there.url("/b").replace("https:", "http:"));
    assert_failed(&plain.fetch_file("/a", &[]), 3, &["http://127.0.0.1:", "no URL of https"]);
    assert_eq!((here.names(), plain.names()), (Vec::new(), Vec::new()));
}

#[test]
fn urgencies_are_told_as_they_were_stated() {
    let server = Scripted::start(|mut exchange: Exchange| async move {
        let fields = [("priority", "u=0")];
        let overrides = exchange.head.uri().path() == "/urgent";
        exchange.respond(200, if overrides { &fields } else { &[] }, false);
    });
    for (path, options, urgency, incremental) in [
        ("/", &[][..], 3, false),
        ("/", &["--priority", "u=5,i"], 5, true),
        ("/", &["--priority", "u=5", "--header", "priority: u=1"], 1, false),
        ("/urgent", &["--priority", "u=5,i"], 0, true),
    ] {
        let output = server.fetch_file(path, &[options, &["--json"]].concat());
        assert_succeeded(&output);
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let object = &value["objects"][0];
        assert_eq!(object["urgency"], urgency, "{path} {options:?}");
        assert_eq!(object["incremental"], incremental, "{path} {options:?}");
    }
}

#[test]
fn any_certificate_is_taken_if_the_user_says_so_alone() {
    let server = Scripted::start(|mut exchange: Exchange| async move {
        exchange.respond(204, &[], false);
    });
    let fetch = |options: &[&str]| {
        quipu().args(["fetch", &server.url("/")]).args(options).output().expect("it ends")
    };
    assert_succeeded(&fetch(&["-k"]));
    let authorities = fetch(&[]);
    assert_eq!(authorities.status.code(), Some(60), "{}", told(&authorities));
    let both = fetch(&["--insecure", "--pin", &server.pin]);
    assert_eq!(both.status.code(), Some(2));
    assert!(told(&both).contains("cannot be used with"), "{}", told(&both));
}

/// Answers nothing, ever.
pub(crate) async fn stay_silent(exchange: Exchange) {
    let _kept = exchange;
    std::future::pending::<()>().await;
}

/// Sends half of what it announces, and stops when `cut` is told.
pub(crate) async fn send_half(mut exchange: Exchange, cut: Arc<tokio::sync::Notify>) -> Exchange {
    exchange.respond(200, &[("etag", "\"1\""), ("content-length", "200000")], true);
    exchange.send(&noise(200_000)[..100_000]).await;
    cut.notified().await;
    exchange
}
