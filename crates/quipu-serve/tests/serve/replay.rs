//! Replayed pages, without a browser.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use proptest::prelude::*;
use quipu_base as base;
use quipu_serve::{Body, Replay};
use quipu_web::page::{Blocking, Discovery, Gap, NotHeld, Object, ObjectId, ObjectKind, Page};
use tower_service::Service;

/// What a service answers, in real time: think times pass at once.
fn answer(replay: &Replay, method: Method, url: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(url).body(Empty::<Bytes>::new()).unwrap();
    let mut replay = replay.clone();
    waiting(async move { replay.call(request).await.unwrap() })
}

fn waiting<R>(what: impl Future<Output = R>) -> R {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(what)
}

fn get(replay: &Replay, url: &str) -> (Response<()>, Vec<u8>) {
    let (parts, body) = answer(replay, Method::GET, url).into_parts();
    let body = waiting(async move { body.collect().await.unwrap().to_bytes().to_vec() });
    (Response::from_parts(parts, ()), body)
}

fn shipped(name: &str) -> Page {
    quipu_web::pages::find(name).unwrap().read().unwrap().page
}

/// The URL of an object as it is served.
fn url_of(object: &Object) -> String {
    let path = object.url.split_once("://").map_or("", |(_, rest)| rest);
    format!("https://{path}")
}

/// The references in a text: what stands in quotes and begins with a stroke.
fn references(text: &str, base: &str) -> Vec<String> {
    let quoted = text.split('"').skip(1).step_by(2);
    let plain = quoted.map(|text| text.replace("&amp;", "&").replace("&#39;", "'"));
    plain
        .filter(|text| text.starts_with('/'))
        .map(|text| match text.starts_with("//") {
            true => format!("https:{text}"),
            false => format!("https://{base}{text}"),
        })
        .collect()
}

/// Requests each object of `page` once, as a browser would come to them; the references in all bodies, counted.
/// All objects must be of one host, since references are relative.
fn check(page: &Page) -> BTreeMap<String, usize> {
    let replay = Replay::new(page);
    let differs: BTreeMap<u32, u64> =
        replay.differences().iter().map(|other| (other.object.0, other.served)).collect();
    let mut named = BTreeMap::new();
    for object in page.objects() {
        let (head, body) = get(&replay, &url_of(object));
        let expected = differs.get(&object.id.0).copied().unwrap_or(object.response_bytes.0);
        assert_eq!(body.len() as u64, expected, "{} {}", object.id, object.url);
        assert_eq!(head.headers()["content-length"], expected.to_string());
        assert_eq!(head.headers()["access-control-allow-origin"], "*");
        assert_eq!(head.headers()["timing-allow-origin"], "*");
        assert_eq!(head.headers()["cache-control"], "no-store");
        assert!(matches!(head.status(), StatusCode::OK | StatusCode::FOUND));
        if let Some(location) = head.headers().get("location") {
            *named.entry(location.to_str().unwrap().to_owned()).or_default() += 1;
        }
        let media_type = head.headers()["content-type"].to_str().unwrap();
        let is_text = ["text/html", "text/css", "text/javascript"];
        if is_text.iter().any(|text| media_type.starts_with(text)) {
            for reference in references(std::str::from_utf8(&body).unwrap(), object.host()) {
                *named.entry(reference).or_default() += 1;
            }
        }
    }
    named
}

fn urls(page: &Page, start: &str) -> BTreeMap<String, usize> {
    let mut urls = BTreeMap::new();
    for object in page.objects() {
        *urls.entry(url_of(object)).or_default() += 1;
    }
    // Nothing names where the browser begins.
    match urls.get_mut(start) {
        Some(1) => drop(urls.remove(start)),
        Some(count) => *count -= 1,
        None => panic!("the page has no {start}"),
    }
    urls
}

#[test]
fn objects_of_shipped_pages_have_their_sizes_and_are_named_once() {
    for name in ["rust-vec", "framework-amazon", "sb-admin", "kicad-start", "sphinx-manual"] {
        let page = shipped(name);
        let replay = Replay::new(&page);
        assert_eq!(replay.differences(), [], "{name}");
        assert_eq!(check(&page), urls(&page, &replay.start()), "{name}");
    }
}

#[test]
fn every_shipped_page_is_served_whole() {
    for builtin in quipu_web::pages::builtin() {
        let page = builtin.read().unwrap().page;
        let replay = Replay::new(&page);
        assert_eq!(replay.objects(), page.objects().len());
        for difference in replay.differences() {
            assert!(difference.served > difference.recorded, "{}: {difference:?}", builtin.name);
        }
        let (head, _) = get(&replay, &replay.start());
        assert!(head.status().is_success() || head.status().is_redirection(), "{}", builtin.name);
    }
}

#[test]
fn clients_that_know_a_page_get_its_bytes_and_their_number() {
    for name in ["wikipedia", "dojo-demo", "framework-google"] {
        let page = shipped(name);
        let replay = Replay::bare(&page);
        assert_eq!(replay.differences(), [], "{name}");
        for object in page.objects() {
            let (head, body) = get(&replay, &url_of(object));
            assert_eq!(body.len() as u64, object.response_bytes.0, "{} {}", object.id, object.url);
            assert_eq!(head.status(), StatusCode::OK);
            let fields: Vec<&str> = head.headers().keys().map(|name| name.as_str()).collect();
            assert_eq!(fields, ["content-length"]);
        }
    }
}

fn object(id: u32, path: &str, kind: ObjectKind, bytes: u64) -> Object {
    Object::new(ObjectId(id), format!("https://a.test/{path}"), kind, base::Bytes(bytes))
}

fn at(parent: u32, offset: u64) -> Discovery {
    Discovery::ParserOffset { parent: ObjectId(parent), offset: base::Bytes(offset) }
}

fn after(parent: u32) -> Discovery {
    Discovery::AfterCompletion { parent: ObjectId(parent) }
}

fn text(page: &Page, path: &str) -> String {
    let body = get(&Replay::new(page), &format!("https://a.test/{path}")).1;
    String::from_utf8(body).unwrap().trim_end().to_owned()
}

#[test]
fn elements_stand_at_their_bytes() {
    let mut script = object(1, "s.js", ObjectKind::Script, 10).discovered(at(0, 200));
    script.blocking = Blocking::Parser;
    let mut font = object(2, "f.woff2", ObjectKind::Font, 10).discovered(at(0, 100));
    font.preload = true;
    let late = object(3, "late.png", ObjectKind::Image, 99).discovered(at(0, 999));
    let async_script = object(4, "t.js", ObjectKind::Script, 10).discovered(at(0, 300));
    let document = object(0, "", ObjectKind::Document, 1000);
    let page = Page::new("p", vec![document, script, font, late, async_script]).unwrap();
    let (_, body) = get(&Replay::new(&page), "https://a.test/");
    let body = String::from_utf8(body).unwrap();
    let font = "<link rel=preload as=font crossorigin href=\"/f.woff2\">";
    for (element, offset) in [
        (font, 100),
        ("<script src=\"/s.js\"></script>", 200),
        ("<script async src=\"/t.js\"></script>", 300),
        ("<img src=\"/late.png\">", 1000 - "<img src=\"/late.png\">".len()),
    ] {
        assert_eq!(body.find(element), Some(offset), "{element}");
    }
    assert!(body.starts_with("<!doctype html><link rel=icon href=\"data:,\"><!--"));
}

#[test]
fn style_sheets_and_scripts_request_what_they_brought() {
    let mut objects = vec![
        object(0, "", ObjectKind::Document, 9000),
        object(1, "s.css", ObjectKind::Stylesheet, 500).discovered(at(0, 100)),
        object(2, "f.woff2", ObjectKind::Font, 10).discovered(after(1)),
        object(3, "b.png", ObjectKind::Image, 10).discovered(after(1)),
        object(4, "i.css", ObjectKind::Stylesheet, 10).discovered(after(1)),
        object(5, "x.js", ObjectKind::Script, 900).discovered(after(1)),
        object(6, "d", ObjectKind::Xhr, 10).discovered(after(5)),
        object(7, "p.gif", ObjectKind::Image, 10).discovered(after(6)),
        object(8, "t", ObjectKind::Fetch, 10).discovered(after(5)),
    ];
    objects[1].blocking = Blocking::Render;
    objects[6].gap.computing = base::Duration::from_micros(12_340);
    objects[8].gap.timer = base::Duration::from_millis(500);
    let page = Page::new("p", objects).unwrap();
    let document = text(&page, "");
    assert!(document.contains("<link id=c1 rel=stylesheet href=\"/s.css\" onload='"), "{document}");
    assert!(document.contains("E(\"script\",{src:\"/x.js\"})"), "{document}");
    assert_eq!(
        text(&page, "s.css"),
        "@import \"/i.css\";head,#c1{display:block}#c1{background:url(\"/b.png\")}\
         @font-face{font-family:c1;src:url(\"/f.woff2\");unicode-range:U+4e00}\
         #c1::before{font-family:c1;content:\"\\4e00\"}"
    );
    let script = text(&page, "x.js");
    assert!(script.contains("const a6=()=>{new Image().src=\"/p.gif\";};"), "{script}");
    assert!(script.contains("setTimeout(()=>{F(\"/t\")},500);"), "{script}");
    assert!(script.contains("let t=N();"), "{script}");
    assert!(script.contains("W(t,12.3);X(\"/d\",a6);"), "{script}");
}

#[test]
fn what_started_after_the_load_event_is_requested_after_it_and_holds_up_nothing() {
    let mut objects = vec![
        object(0, "", ObjectKind::Document, 900),
        object(1, "x.js", ObjectKind::Script, 900).discovered(at(0, 100)),
        object(2, "late.png", ObjectKind::Image, 10).discovered(after(1)),
        object(3, "soon.png", ObjectKind::Image, 10).discovered(after(1)),
    ];
    objects[2].gap.computing = base::Duration::from_millis(550);
    objects[2].not_held = Some(NotHeld::AfterOnLoad);
    objects[3].gap.computing = base::Duration::from_millis(7);
    let script = text(&Page::new("p", objects).unwrap(), "x.js");
    let late = "setTimeout(()=>L(()=>{new Image().src=\"/late.png\"}),550);";
    assert!(script.contains(late), "{script}");
    assert!(script.contains("W(t,7);new Image().src=\"/soon.png\";"), "{script}");
    assert!(!script.contains("W(t,550)"), "{script}");
}

#[test]
fn objects_of_one_url_come_in_turn_and_begin_anew_with_the_page() {
    let objects = vec![
        object(0, "", ObjectKind::Document, 900),
        object(1, "x", ObjectKind::Fetch, 10).discovered(at(0, 1)),
        object(2, "x", ObjectKind::Fetch, 20).discovered(at(0, 2)),
    ];
    let replay = Replay::new(&Page::new("p", objects).unwrap());
    let length = || get(&replay, "https://a.test/x").1.len();
    get(&replay, "https://a.test/");
    assert_eq!((length(), length(), length()), (10, 20, 10));
    get(&replay, "https://A.test:443/");
    assert_eq!(length(), 10);
    // HEAD takes no turn.
    let head = answer(&replay, Method::HEAD, "https://a.test/x");
    assert_eq!(head.headers()["content-length"], "20");
    assert_eq!(length(), 20);
}

#[test]
fn what_browsers_would_not_request_again_is_fetched() {
    let mut objects = vec![
        object(0, "", ObjectKind::Document, 900),
        object(1, "x.js", ObjectKind::Script, 300).discovered(at(0, 1)),
        object(2, "y.gif", ObjectKind::Image, 50).discovered(after(1)),
        object(3, "x.js", ObjectKind::Script, 20).discovered(at(0, 2)),
    ];
    // Frames within frames of one URL.
    objects.extend((4..7).map(|id| object(id, "f", ObjectKind::Document, 900)));
    objects[4].discovery = at(0, 3);
    objects[5].discovery = at(4, 0);
    objects[6].discovery = at(5, 0);
    let page = Page::new("p", objects).unwrap();
    let document = text(&page, "");
    assert!(document.contains("<script async src=\"/x.js\"></script>"), "{document}");
    assert!(document.contains("F(\"/x.js\",0,{cache:\"no-store\"})"), "{document}");
    let replay = Replay::new(&page);
    let frames: Vec<_> = (0..3).map(|_| get(&replay, "https://a.test/f").1).collect();
    let contains =
        |frame: usize, what: &str| String::from_utf8_lossy(&frames[frame]).contains(what);
    assert!(contains(0, "<iframe src=\"/f\">") && contains(1, "F(\"/f\",0,"));
    assert!(!contains(2, "/f"));
    // Whichever comes first, the script that runs has the code.
    let mut replay = replay;
    let fetched = Request::get("https://a.test/x.js").header("sec-fetch-dest", "empty");
    let fetched = replay.call(fetched.body(Empty::<Bytes>::new()).unwrap());
    assert_eq!(waiting(fetched).unwrap().headers()["content-length"], "20");
    assert_eq!(get(&replay, "https://a.test/x.js").1.len(), 300);
}

#[test]
fn what_the_page_has_not_is_not_found() {
    let page = Page::new("p", vec![object(0, "", ObjectKind::Document, 900)]).unwrap();
    let replay = Replay::new(&page);
    for url in ["https://a.test/favicon.ico", "https://b.test/", "https://a.test/?"] {
        assert_eq!(get(&replay, url).0.status(), StatusCode::NOT_FOUND, "{url}");
    }
    let check = answer(&replay, Method::OPTIONS, "https://a.test/");
    assert_eq!(check.status(), StatusCode::NO_CONTENT);
    assert_eq!(check.headers()["access-control-allow-methods"], "*");
}

#[test]
fn redirects_lead_to_the_main_document_and_icons_are_named() {
    let objects = vec![
        object(0, "old", ObjectKind::Document, 0),
        object(1, "new", ObjectKind::Document, 900).discovered(after(0)),
        object(2, "favicon.ico", ObjectKind::Image, 50).discovered(after(1)),
    ];
    let page = Page::new("p", objects).unwrap().with_main_document(ObjectId(1));
    let replay = Replay::new(&page);
    assert_eq!(replay.start(), "https://a.test/old");
    let (head, body) = get(&replay, &replay.start());
    assert_eq!((head.status(), body.len()), (StatusCode::FOUND, 0));
    assert_eq!(head.headers()["location"], "https://a.test/new");
    assert!(text(&page, "new").contains("<link rel=icon href=\"/favicon.ico\">"));
    assert_eq!(replay.differences(), []);
}

#[test]
fn permission_checks_go_ahead_of_their_requests() {
    let of_host = |id, kind| {
        Object::new(ObjectId(id), "https://b.test/api", kind, base::Bytes(7)).discovered(after(3))
    };
    let objects = vec![
        object(0, "", ObjectKind::Document, 900),
        of_host(1, ObjectKind::Preflight),
        Object { discovery: after(1), ..of_host(2, ObjectKind::Fetch) },
        object(3, "x.js", ObjectKind::Script, 900).discovered(at(0, 9)),
    ];
    let page = Page::new("p", objects).unwrap();
    let script = text(&page, "x.js");
    assert!(script.contains("F(\"//b.test/api\",0,{headers:{\"x-check\":1}})"), "{script}");
    let replay = Replay::new(&page);
    let check = answer(&replay, Method::OPTIONS, "https://b.test/api");
    assert_eq!(
        (check.status(), &check.headers()["content-length"]),
        (StatusCode::OK, &"7".parse().unwrap())
    );
    assert_eq!(get(&replay, "https://b.test/api").1.len(), 7);
}

#[test]
fn an_object_that_has_no_room_for_what_it_names_grows() {
    let objects = vec![
        object(0, "", ObjectKind::Document, 5),
        object(1, "x.js", ObjectKind::Script, 0).discovered(at(0, 9)),
        object(2, "p.gif", ObjectKind::Image, 0).discovered(after(1)),
    ];
    let page = Page::new("p", objects).unwrap();
    let differences: Vec<(u32, u64)> = Replay::new(&page)
        .differences()
        .iter()
        .map(|difference| (difference.object.0, difference.recorded))
        .collect();
    assert_eq!(differences, [(0, 5), (1, 0)]);
    assert_eq!(check(&page), urls(&page, "https://a.test/"));
}

#[test]
fn the_response_begins_after_the_think_time() {
    let mut document = object(0, "", ObjectKind::Document, 900);
    document.think_time = base::Duration::from_millis(60);
    let mut replay = Replay::new(&Page::new("p", vec![document]).unwrap());
    // Its end is waited for by the host's clock, so the runtime's has to go with that.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lasted = runtime.block_on(async move {
        let begin = tokio::time::Instant::now();
        let request = Request::get("https://a.test/").body(Empty::<Bytes>::new()).unwrap();
        replay.call(request).await.unwrap();
        begin.elapsed()
    });
    assert!(lasted.as_secs_f64() >= 0.06, "{lasted:?}");
}

prop_compose! {
    /// An object that waits for one before it, or is a root.
    fn any_object(id: u32)(
        kind in proptest::sample::select(&ObjectKind::ALL[..]),
        bytes in prop_oneof![Just(0), 0..300_u64, Just(70_000)],
        parent in 0..=id,
        offset in prop_oneof![Just(0), 0..400_u64, Just(u64::MAX)],
        parsed: bool,
        blocking in proptest::sample::select(vec![Blocking::None, Blocking::Parser, Blocking::Render]),
        preload: bool,
        gap in prop_oneof![Just((0, 0)), (0..200_u64, 0..200_u64)],
        body in prop_oneof![Just(0), 0..100_u64],
        other in 0..=id,
        path in "[a-z]{1,3}(/[a-z&'=;,()-]{0,4})?([?][a-z&=]{0,3})?",
    ) -> Object {
        let mut object = object(id, &format!("{id}{path}"), kind, bytes);
        if parent < id {
            object.discovery = if parsed { at(parent, offset) } else { after(parent) };
        }
        if other < id {
            object.waits_for = vec![ObjectId(other)];
        }
        object.blocking = blocking;
        object.preload = preload;
        object.gap = Gap {
            computing: base::Duration::from_millis(gap.0),
            timer: base::Duration::from_millis(gap.1),
        };
        object.request.body = base::Bytes(body);
        object
    }
}

fn any_page() -> impl Strategy<Value = Page> {
    (1..25_u32, 0..25_u32).prop_flat_map(|(count, main)| {
        let objects: Vec<_> = (0..count).map(any_object).collect();
        objects.prop_map(move |objects| {
            Page::new("p", objects).unwrap().with_main_document(ObjectId(main))
        })
    })
}

proptest! {
    /// Each object is named once and nothing else is, whatever the page; objects have at least their bytes.
    #[test]
    fn made_up_pages_name_each_object_once(page in any_page()) {
        let replay = Replay::new(&page);
        let named = check(&page);
        prop_assert_eq!(named.values().sum::<usize>(), page.objects().len() - 1);
        prop_assert!(named.values().all(|count| *count == 1), "{:?}", named);
        prop_assert!(!named.contains_key(&replay.start()));
    }

    /// Odd URLs and repeated ones are served too.
    #[test]
    fn odd_urls_do_no_harm(urls in prop::collection::vec("[ -~äß]{0,12}|https?://[ab](:[0-9]{0,3})?[/?#a.]{0,4}", 1..12)) {
        let objects = (0..).zip(&urls).map(|(id, url)| {
            let discovery = if id == 0 { Discovery::Root } else { after(id - 1) };
            let kind = ObjectKind::ALL[id as usize % ObjectKind::ALL.len()];
            Object::new(ObjectId(id), url.as_str(), kind, base::Bytes(50)).discovered(discovery)
        });
        let replay = Replay::new(&Page::new("p", objects.collect()).unwrap());
        prop_assert_eq!(replay.objects(), urls.len());
    }
}
