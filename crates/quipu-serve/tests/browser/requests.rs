//! A browser requests what the page has, and receives it. `QUIPU_REPLAY_PAGES` names other pages, separated by commas,
//! and prints what came of each, in Firefox if `QUIPU_REPLAY_BROWSER` is `firefox`; `cnn` takes longer than the limit.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quipu_web::page::{Object, Page};
use serde_json::Value;

use crate::alone;
use crate::chromium::Browser;
use crate::firefox::{Firefox, Response};
use crate::pages::{shipped, with_port};
use crate::served::{IDLE, Served};

/// Host and target, as the log has them.
fn place_of(object: &Object) -> String {
    let host = object.host().to_ascii_lowercase();
    let host = [":443", ":80"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
    format!("{host}{}", object.path())
}

/// What differs between the objects of `page` and the `requests`, a line each.
fn differences(page: &Page, requests: &[Value]) -> Vec<String> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for object in page.objects() {
        *counts.entry(place_of(object)).or_default() += 1;
    }
    let mut found = Vec::new();
    for entry in requests {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let host = text("host");
        let host = host.strip_suffix(":443").unwrap_or(&host);
        *counts.entry(format!("{host}{}", text("target"))).or_default() -= 1;
        let is_good = matches!(entry["status"].as_u64(), Some(200 | 302));
        if !is_good || entry["complete"] != true {
            found.push(format!("not answered in full: {entry}"));
        }
    }
    for (place, count) in counts {
        match count {
            0 => {}
            1.. => found.push(format!("{count} requests missing: {place}")),
            _ => found.push(format!("{} requests too many: {place}", -count)),
        }
    }
    found
}

fn versions(requests: &[Value]) -> BTreeMap<String, usize> {
    let mut versions = BTreeMap::new();
    for entry in requests {
        *versions.entry(entry["version"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    versions
}

#[test]
fn a_browser_requests_what_the_page_has_and_nothing_else_over_http3() {
    let _alone = alone();
    for name in ["rust-vec", "greenweb", "mobileh2-google"] {
        let page = shipped(name);
        let served = Served::new(&page);
        let Some(_browser) = Browser::open(&served, true, &[]) else { return };
        let requests = served.wait(page.objects().len());
        assert_eq!(differences(&page, &requests), Vec::<String>::new(), "{name}");
        let expected = BTreeMap::from([("HTTP/3.0".to_owned(), page.objects().len())]);
        assert_eq!(versions(&requests), expected, "{name}");
    }
}

#[test]
fn a_browser_finds_http3_by_alt_svc() {
    let _alone = alone();
    let page = with_port(&shipped("sb-admin"), 8443);
    let count = page.objects().len();
    let served = Served::new(&page);
    // Over QUIC a certificate that no authority signed is accepted only for hosts that are named so, at any port.
    let known = format!("--origin-to-force-quic-on={}:1", served.replay.hosts()[0]);
    let more = [known.as_str()];
    let Some(browser) = Browser::open(&served, false, &more) else { return };
    let first = served.wait(count);
    assert_eq!(differences(&page, &first), Vec::<String>::new());
    let document = first
        .iter()
        .find(|entry| entry["target"] == page.object(page.main_document()).unwrap().path());
    assert_eq!(document.unwrap()["version"], "HTTP/2.0");
    // Some of these may come over HTTP/3 already. As long as there is a connection over TCP, it may be used.
    std::thread::sleep(2 * IDLE);
    browser.open_tab(&served.replay.start());
    let both = served.wait(2 * count);
    let second = &both[count..];
    assert_eq!(differences(&page, second), Vec::<String>::new());
    assert_eq!(versions(second), BTreeMap::from([("HTTP/3.0".to_owned(), count)]));
}

/// What a browser receives: host and target, protocol, status, and bytes of the body.
type Received = (String, String, u64, u64);

/// What it receives of an intact page, by place.
fn intact(page: &Page, served: &Served) -> Vec<Received> {
    let grown = served.replay.differences();
    let of_object = |object: &Object| {
        let grown = grown.iter().find(|difference| difference.object == object.id);
        let bytes = grown.map_or(object.response_bytes.0, |difference| difference.served);
        (place_of(object), "h3".to_owned(), 200, bytes)
    };
    let mut all: Vec<Received> = page.objects().iter().map(of_object).collect();
    all.sort_unstable();
    all
}

/// What it received, by place.
fn received(responses: &[Response]) -> Vec<Received> {
    let of_response = |response: &Response| {
        let place = response.url.strip_prefix("https://").unwrap_or(&response.url).to_owned();
        (place, response.protocol.clone(), response.status, response.bytes)
    };
    let mut all: Vec<Received> = responses.iter().map(of_response).collect();
    all.sort_unstable();
    all
}

#[test]
fn firefox_receives_every_object_over_http3() {
    let _alone = alone();
    for name in ["dojo-demo", "rust-vec", "mobileh2-google"] {
        let page = shipped(name);
        let served = Served::new(&page);
        let Some(mut firefox) = Firefox::start(&served, true) else { return };
        let report = firefox.load(&served.replay.start(), page.objects().len());
        assert_eq!(report.failed, [], "{name}");
        assert_eq!(received(&report.responses), intact(&page, &served), "{name}");
        assert_eq!(differences(&page, &served.requests()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn firefox_finds_http3_by_alt_svc() {
    let _alone = alone();
    let page = shipped("sb-admin");
    let served = Served::new(&page);
    let Some(mut firefox) = Firefox::start(&served, false) else { return };
    let mut load = |count| {
        let report = firefox.load(&served.replay.start(), count);
        assert_eq!(report.failed, []);
        report.responses
    };
    let first = load(page.objects().len());
    let document = first.iter().find(|response| response.url == served.replay.start());
    assert_eq!(document.unwrap().protocol, "h2");
    // Firefox requests the icon of a site once.
    let mut expected = intact(&page, &served);
    expected.retain(|(place, ..)| !place.ends_with("/favicon.ico"));
    // As long as there is a connection over TCP, it may be used.
    let loads: Vec<Vec<Received>> = (0..3).map(|_| received(&load(expected.len()))).collect();
    assert!(loads.contains(&expected), "never over HTTP/3 alone: {loads:?}");
}

#[test]
fn pages_that_are_asked_for_are_compared() {
    let Ok(names) = std::env::var("QUIPU_REPLAY_PAGES") else { return };
    let _alone = alone();
    for name in names.split(',') {
        let page = shipped(name);
        let served = Served::new(&page);
        let requests = if std::env::var("QUIPU_REPLAY_BROWSER").is_ok_and(|it| it == "firefox") {
            let Some(mut firefox) = Firefox::start(&served, true) else { return };
            firefox.load(&served.replay.start(), page.objects().len());
            served.requests()
        } else {
            let Some(_browser) = Browser::open(&served, true, &[]) else { return };
            served.wait(page.objects().len())
        };
        let mut lines = String::new();
        for difference in differences(&page, &requests) {
            let _ = writeln!(lines, "  {}", difference.chars().take(240).collect::<String>());
        }
        let (count, larger) = (page.objects().len(), served.replay.differences().len());
        let versions = versions(&requests);
        eprint!(
            "{name}: {} requests for {count} objects, {larger} larger, {versions:?}\n{lines}",
            requests.len()
        );
    }
}
