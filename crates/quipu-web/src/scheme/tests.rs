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

/// The files of the paper carry what its client sent for each of them.
#[test]
fn the_framework_schemes_send_what_the_papers_client_sent() {
    for page in ["framework-amazon", "framework-google", "framework-youtube"] {
        let builtin = crate::pages::find(page).unwrap();
        let json: serde_json::Value = serde_json::from_slice(builtin.bytes).unwrap();
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
