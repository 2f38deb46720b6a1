use proptest::prelude::*;
use quipu_base::StreamId;

use super::*;
use crate::page::{ChromePriority, ObjectId, ObjectKind};

fn scheme(name: &str) -> BrowserScheme {
    BrowserScheme::builtin(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn signal(name: &str, kind: ObjectKind) -> Signal {
    scheme(name).session().priority_for(&RequestFacts::of_kind(kind), StreamId(4))
}

#[test]
fn every_shipped_profile_is_sound_and_has_its_own_name() {
    let names: Vec<_> = BrowserScheme::names().collect();
    assert!(names.is_sorted());
    for name in names {
        assert_eq!(scheme(name).name(), name);
        assert!(!scheme(name).about().is_empty());
    }
    let error = BrowserScheme::builtin("chorme").unwrap_err().to_string();
    assert!(error.starts_with("unknown browser `chorme`; did you mean `chrome`?"), "{error}");
}

/// Weights of document, style sheet, script, font, xhr, image, ping.
#[test]
fn weights_of_requests_known_by_type_alone() {
    let kinds = [
        ObjectKind::Document,
        ObjectKind::Stylesheet,
        ObjectKind::Script,
        ObjectKind::Font,
        ObjectKind::Xhr,
        ObjectKind::Image,
        ObjectKind::Ping,
    ];
    for (name, weights) in [
        ("chrome", [256, 256, 147, 256, 220, 147, 110]),
        ("firefox", [32, 32, 22, 42, 22, 22, 22]),
        ("framework-chrome", [256, 256, 256, 256, 110, 147, 110]),
        ("framework-chrome-batches", [256, 256, 183, 256, 220, 147, 110]),
        ("framework-firefox", [255, 32, 32, 22, 32, 42, 32]),
        ("framework-safari", [256, 24, 24, 16, 16, 8, 16]),
        ("mobileh2", [32, 32, 32, 42, 22, 22, 22]),
        ("none", [16; 7]),
        ("safari", [255, 24, 24, 16, 16, 8, 8]),
    ] {
        assert_eq!(kinds.map(|kind| signal(name, kind).weight), weights, "{name}");
    }
}

#[test]
fn firefox_makes_six_groups_and_images_follow_the_leaders() {
    let phantoms = scheme("firefox").session().initial_phantoms();
    let found: Vec<_> =
        phantoms.iter().map(|node| (node.id.0, node.parent.0, node.weight)).collect();
    assert_eq!(found, [(3, 0, 201), (5, 0, 101), (7, 0, 1), (9, 7, 1), (11, 3, 1), (13, 0, 241)]);
    let parent = |kind| signal("firefox", kind).parent.0;
    assert_eq!(parent(ObjectKind::Document), 13);
    assert_eq!(parent(ObjectKind::Stylesheet), 3);
    assert_eq!(parent(ObjectKind::Image), 11);
    assert_eq!(parent(ObjectKind::Prefetch), 9);
    assert_eq!(parent(ObjectKind::Ping), 7);
    let mut script = RequestFacts::of_kind(ObjectKind::Script);
    let parent = |facts: &RequestFacts| {
        scheme("firefox").session().priority_for(facts, StreamId(4)).parent.0
    };
    assert_eq!(parent(&script), 5);
    script.blocking = true;
    assert_eq!(parent(&script), 3);
    script.late = true;
    assert_eq!(parent(&script), 5);
}

#[test]
fn the_printed_tree_of_chrome_has_three_batches_and_pushed_objects_are_in_the_last() {
    let phantoms = scheme("framework-chrome-batches").session().initial_phantoms();
    let found: Vec<_> =
        phantoms.iter().map(|node| (node.id.0, node.parent.0, node.weight)).collect();
    assert_eq!(found, [(3, 0, 256), (5, 3, 1), (7, 5, 1)]);
    let mut session = scheme("framework-chrome-batches").session();
    let mut place = |kind, pushed| {
        let facts = RequestFacts { pushed, ..RequestFacts::of_kind(kind) };
        let signal = session.priority_for(&facts, StreamId(16));
        (signal.parent.0, signal.weight)
    };
    assert_eq!(place(ObjectKind::Document, false), (3, 256));
    assert_eq!(place(ObjectKind::Stylesheet, false), (3, 256));
    assert_eq!(place(ObjectKind::Script, false), (5, 183));
    assert_eq!(place(ObjectKind::Xhr, false), (5, 220));
    assert_eq!(place(ObjectKind::Image, false), (7, 147));
    assert_eq!(place(ObjectKind::Ping, false), (7, 110));
    for kind in [ObjectKind::Stylesheet, ObjectKind::Image] {
        assert_eq!(place(kind, true), (7, 110));
    }
}

/// The files of the paper carry what its client sent for each of them.
#[test]
fn the_framework_schemes_send_what_the_papers_client_sent() {
    for page in ["framework-amazon", "framework-google", "framework-youtube"] {
        let builtin = crate::pages::find(page).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&builtin.har().unwrap()).unwrap();
        let page = builtin.read().unwrap().page;
        for (id, entry) in (0..).zip(json["log"]["entries"].as_array().unwrap()) {
            let facts = RequestFacts::of(&page, ObjectId(id)).unwrap();
            for browser in ["chrome", "firefox", "safari"] {
                let mut session = scheme(&format!("framework-{browser}")).session();
                let signal = session.priority_for(&facts, StreamId(16));
                let sent = &entry["_priorities"][browser];
                assert_eq!(u64::from(signal.weight), sent["weight"].as_u64().unwrap());
                assert_eq!(signal.parent.0, sent["dependsOn"].as_u64().unwrap());
                assert!(!signal.exclusive);
            }
        }
    }
}

#[test]
fn chrome_hangs_each_stream_on_the_newest_one_that_is_not_less_urgent() {
    let mut session = scheme("chrome").session();
    let mut open = |kind, stream| {
        let signal = session.priority_for(&RequestFacts::of_kind(kind), StreamId(stream));
        assert!(signal.exclusive);
        signal.parent.0
    };
    assert_eq!(open(ObjectKind::Document, 4), 0);
    assert_eq!(open(ObjectKind::Image, 8), 4);
    assert_eq!(open(ObjectKind::Stylesheet, 12), 4);
    assert_eq!(open(ObjectKind::Image, 16), 8);
    assert_eq!(open(ObjectKind::Xhr, 20), 12);
    session.on_closed(StreamId(12));
    session.on_closed(StreamId(12));
    let mut open = |kind, stream| {
        session.priority_for(&RequestFacts::of_kind(kind), StreamId(stream)).parent.0
    };
    assert_eq!(open(ObjectKind::Font, 24), 4);
    assert_eq!(open(ObjectKind::Ping, 28), 16);
}

#[test]
fn chrome_keeps_the_priority_that_chrome_recorded() {
    let mut facts = RequestFacts::of_kind(ObjectKind::Script);
    facts.recorded = Some(ChromePriority::High);
    let signal = scheme("chrome").session().priority_for(&facts, StreamId(4));
    assert_eq!((signal.weight, signal.urgency, signal.incremental), (220, 1, false));
    let safari = scheme("safari").session().priority_for(&facts, StreamId(4));
    assert_eq!(safari.weight, 24);
}

/// A recording of Chrome with its HTTP/2 tree: what we send for the same page has the same weights.
#[test]
fn the_chrome_scheme_sends_the_weights_of_a_recorded_chrome() {
    let page = crate::pages::find("wikipedia").unwrap().read().unwrap().page;
    let mut session = scheme("chrome").session();
    let mut compared = 0;
    for object in page.objects() {
        let facts = RequestFacts::of(&page, object.id).unwrap();
        let signal = session.priority_for(&facts, StreamId(u64::from(object.id.0) * 4 + 4));
        if let Some(recorded) = object.http2 {
            assert_eq!((signal.weight, signal.exclusive), (recorded.weight, recorded.exclusive));
            compared += 1;
        }
    }
    assert_eq!(compared, 104);
}

/// A request by type and facts, with its urgency in Chrome, Firefox and Safari; `true`: incremental.
type Row = (&'static str, RequestFacts, [(u8, bool); 3]);

/// The table of HTTP/3 assignments, row by row. Of rows that give a range, what the profiles choose.
/// Of a request that the user caused, and of trackers, no recording tells.
fn http3_rows() -> Vec<Row> {
    let of = |kind, set: fn(&mut RequestFacts)| {
        let mut facts = RequestFacts::of_kind(kind);
        set(&mut facts);
        facts
    };
    let plain: fn(&mut RequestFacts) = |_| {};
    let (t, f) = (true, false);
    use ObjectKind::*;
    vec![
        ("main HTML", of(Document, plain), [(0, t), (0, t), (0, t)]),
        ("CSS in head", of(Stylesheet, |it| it.blocking = true), [(0, f), (2, f), (1, t)]),
        ("CSS late in body", of(Stylesheet, |it| it.late = true), [(2, f), (2, f), (1, t)]),
        (
            "CSS late in body, blocking",
            of(Stylesheet, |it| (it.late, it.blocking) = (true, true)),
            [(2, f), (2, f), (1, t)],
        ),
        ("CSS preloaded", of(Stylesheet, |it| it.preload = true), [(0, f), (0, f), (1, t)]),
        ("JS in head, blocking", of(Script, |it| it.blocking = true), [(1, f), (2, f), (1, t)]),
        (
            "JS blocking, after the first image",
            of(Script, |it| (it.late, it.blocking) = (true, true)),
            [(2, f), (2, f), (1, t)],
        ),
        ("JS async or defer", of(Script, plain), [(3, f), (3, f), (1, t)]),
        ("JS preloaded", of(Script, |it| it.preload = true), [(1, f), (1, f), (1, t)]),
        ("font by CSS", of(Font, plain), [(0, f), (3, f), (3, t)]),
        ("font preloaded", of(Font, |it| it.preload = true), [(1, f), (2, f), (3, t)]),
        ("XHR", of(Xhr, plain), [(1, t), (3, f), (3, t)]),
        ("fetch()", of(Fetch, plain), [(1, t), (4, f), (3, t)]),
        ("one of the first images", of(Image, |it| it.prominent = true), [(2, t), (5, t), (5, t)]),
        (
            "image in view",
            of(Image, |it| (it.prominent, it.visible) = (true, true)),
            [(1, t), (3, t), (5, t)],
        ),
        ("image", of(Image, plain), [(3, t), (5, t), (5, t)]),
        (
            "image, fetchpriority=high",
            of(Image, |it| it.fetch_priority = Some(FetchPriority::High)),
            [(1, t), (3, t), (3, t)],
        ),
        (
            "image, fetchpriority=low",
            of(Image, |it| it.fetch_priority = Some(FetchPriority::Low)),
            [(3, t), (6, t), (7, t)],
        ),
        ("audio, video", of(Media, plain), [(3, t), (4, f), (3, t)]),
        ("prefetch", of(Prefetch, plain), [(4, t), (6, f), (7, t)]),
        ("beacon", of(Ping, plain), [(4, t), (6, f), (7, t)]),
    ]
}

#[test]
fn urgencies_are_those_of_the_table() {
    for (row, facts, expected) in http3_rows() {
        for (browser, expected) in ["chrome", "firefox", "safari"].into_iter().zip(expected) {
            assert!(scheme(browser).has_urgencies());
            let signal = scheme(browser).session().priority_for(&facts, StreamId(4));
            assert_eq!((signal.urgency, signal.incremental), expected, "{row}, {browser}");
        }
        let none = scheme("none").session().priority_for(&facts, StreamId(4));
        assert_eq!((none.urgency, none.incremental), (3, false), "{row}");
    }
    assert!(!scheme("mobileh2").has_urgencies());
}

#[test]
fn an_image_in_view_moves_up_the_chain() {
    let mut session = scheme("chrome").session();
    let mut facts = RequestFacts::of_kind(ObjectKind::Image);
    let mut open = |facts: &RequestFacts, stream| {
        session.priority_for(facts, StreamId(stream));
    };
    open(&RequestFacts::of_kind(ObjectKind::Document), 4);
    open(&facts, 8);
    open(&facts, 12);
    open(&facts, 16);
    open(&RequestFacts::of_kind(ObjectKind::Ping), 20);
    assert_eq!(session.reprioritise(&facts, StreamId(12)), None);
    facts.visible = true;
    let place = |stream, parent, weight| {
        (StreamId(stream), Dependency { parent: StreamId(parent), weight, exclusive: true })
    };
    // What followed it follows what it followed; then it is put behind the document.
    let change = session.reprioritise(&facts, StreamId(12)).unwrap();
    assert_eq!(change.places, [place(16, 8, 147), place(12, 4, 220)]);
    assert_eq!(change.urgency, Some((1, true)));
    // The first image follows what it followed already.
    let change = session.reprioritise(&facts, StreamId(8)).unwrap();
    assert_eq!(change.places, []);
    assert_eq!(session.reprioritise(&facts, StreamId(8)), None);
    assert_eq!(session.reprioritise(&facts, StreamId(99)), None);
    // Later requests find the new order.
    let xhr = session.priority_for(&RequestFacts::of_kind(ObjectKind::Xhr), StreamId(24));
    assert_eq!(xhr.parent.0, 8);
}

#[test]
fn what_layout_shows_changes_urgencies_without_a_chain() {
    let mut session = scheme("firefox").session();
    let mut facts = RequestFacts::of_kind(ObjectKind::Image);
    session.priority_for(&facts, StreamId(4));
    facts.visible = true;
    let change = session.reprioritise(&facts, StreamId(4)).unwrap();
    assert_eq!(change, Change { places: Vec::new(), urgency: Some((3, true)) });
    let mut script = RequestFacts::of_kind(ObjectKind::Script);
    session.priority_for(&script, StreamId(8));
    script.blocking = true;
    let leaders = Dependency { parent: StreamId(3), weight: 32, exclusive: false };
    let change = session.reprioritise(&script, StreamId(8)).unwrap();
    assert_eq!(change, Change { places: vec![(StreamId(8), leaders)], urgency: Some((2, false)) });
    assert!(scheme("chrome").reprioritises() && !scheme("firefox").reprioritises());
}

#[test]
fn each_fault_of_a_profile_is_named() {
    let profile = |body: &str| {
        let text = format!("name = \"x\"\nabout = \"x\"\ntree = \"weighted\"\n{body}");
        BrowserScheme::parse(&text).unwrap_err().to_string()
    };
    let cases = [
        ("[[rule]]\nweight = 0", "profile: rule 1: weight 0 is out of range; expected 1 to 256"),
        (
            "[[rule]]\nweight = 257",
            "profile: rule 1: weight 257 is out of range; expected 1 to 256",
        ),
        (
            "[[rule]]\nweight = 1\nurgency = 8",
            "profile: rule 1: urgency 8 is out of range; expected 0 to 7",
        ),
        (
            "[[rule]]\nkinds = [\"image\"]\nweight = 1",
            "profile: the last rule must match every request: no kinds, sniffed or when",
        ),
        (
            "[[rule]]\nparent = \"a\"\nweight = 1",
            "profile: rule 1: no phantom `a` was declared before; known: ",
        ),
        (
            "[[phantom]]\nname = \"a\"\nstream = 4\nweight = 1\n[[rule]]\nweight = 1",
            "profile: phantom `a`: stream 4 must be odd, below 2^31 and used once",
        ),
    ];
    for (body, message) in cases {
        assert_eq!(profile(body), message);
    }
    let unknown = profile("[[rule]]\nweight = 1\nwieght = 2");
    assert!(unknown.starts_with("profile: line 6: unknown field `wieght`"), "{unknown}");
}

proptest! {
    /// The naive model scans all open streams.
    #[test]
    fn the_chain_agrees_with_a_scan_of_all_open_streams(
        steps in proptest::collection::vec((0_usize..4, any::<bool>(), 0_usize..20), 1..60),
    ) {
        let kinds =
            [ObjectKind::Document, ObjectKind::Xhr, ObjectKind::Image, ObjectKind::Ping];
        let mut session = scheme("chrome").session();
        let mut open: Vec<(u64, u16)> = Vec::new();
        for (next, (kind, close, which)) in (1_u64..).zip(steps) {
            if close && !open.is_empty() {
                let (stream, _) = open.remove(which % open.len());
                session.on_closed(StreamId(stream));
                continue;
            }
            let stream = next * 4;
            let facts = RequestFacts::of_kind(kinds[kind]);
            let signal = session.priority_for(&facts, StreamId(stream));
            // The least weight that is not below its own, then the newest of it.
            let parent = open
                .iter()
                .filter(|(_, weight)| *weight >= signal.weight)
                .min_by_key(|(stream, weight)| (*weight, u64::MAX - stream));
            prop_assert_eq!(signal.parent.0, parent.map_or(0, |(stream, _)| *stream));
            open.push((stream, signal.weight));
        }
    }

    #[test]
    fn any_text_is_a_profile_or_an_error(text in "\\PC{0,80}") {
        let _ = BrowserScheme::parse(&text);
    }
}
