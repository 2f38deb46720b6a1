use proptest::prelude::*;

use super::*;
use crate::page::{Blocking, Gap, Object, ObjectKind};

const START: Instant = Instant::from_nanos(1_000_000_000);

/// How an object is found.
#[derive(Clone, Debug)]
struct How {
    discovery: Discovery,
    waits_for: Vec<ObjectId>,
    gap: Duration,
}

impl How {
    /// It waits for the object `id` too.
    fn and(mut self, id: u32) -> How {
        self.waits_for.push(ObjectId(id));
        self
    }

    fn gap(mut self, millis: u64) -> How {
        self.gap = Duration::from_millis(millis);
        self
    }
}

fn found(discovery: Discovery) -> How {
    How { discovery, waits_for: Vec::new(), gap: Duration::ZERO }
}

fn root() -> How {
    found(Discovery::Root)
}

fn at_byte(parent: u32, offset: u64) -> How {
    found(Discovery::ParserOffset { parent: ObjectId(parent), offset: Bytes(offset) })
}

fn after(parent: u32, millis: u64) -> How {
    found(Discovery::AfterCompletion { parent: ObjectId(parent) }).gap(millis)
}

fn object(id: u32, bytes: u64, how: How) -> Object {
    Object {
        discovery: how.discovery,
        waits_for: how.waits_for,
        gap: Gap { computing: how.gap, timer: Duration::ZERO },
        ..Object::new(
            ObjectId(id),
            format!("https://a.test/{id}"),
            ObjectKind::Document,
            Bytes(bytes),
        )
    }
}

fn page(hows: &[How], bytes: u64) -> Arc<Page> {
    let objects = (0..).zip(hows).map(|(id, how)| object(id, bytes, how.clone()));
    Page::new("test", objects.collect()).unwrap().shared()
}

fn load(hows: &[How]) -> PageLoad {
    PageLoad::new(page(hows, 1_000), DiscoveryMode::Recorded, START)
}

fn requests(load: &mut PageLoad) -> Vec<u32> {
    std::iter::from_fn(|| load.poll_request()).map(|id| id.0).collect()
}

#[test]
fn children_come_when_the_parser_has_reached_their_byte() {
    let mut load = load(&[root(), at_byte(0, 500), at_byte(0, 0), at_byte(0, 501)]);
    assert_eq!(requests(&mut load), [0]);
    load.on_response_head(ObjectId(0), START);
    assert_eq!(requests(&mut load), [2]);
    load.on_body_bytes(ObjectId(0), Bytes(499), START);
    assert!(requests(&mut load).is_empty());
    load.on_body_bytes(ObjectId(0), Bytes(500), START);
    assert_eq!(requests(&mut load), [1]);
    load.on_complete(ObjectId(0), START);
    assert_eq!(requests(&mut load), [3]);
}

#[test]
fn children_come_a_gap_after_their_parent_is_complete() {
    let mut load = load(&[root(), after(0, 20), after(0, 10), after(0, 0)]);
    requests(&mut load);
    assert_eq!(load.poll_timeout(), None);
    load.on_complete(ObjectId(0), START);
    assert_eq!(requests(&mut load), [3]);
    let due = START + Duration::from_millis(10);
    assert_eq!(load.poll_timeout(), Some(due));
    load.handle_timeout(due - Duration::from_nanos(1));
    assert!(requests(&mut load).is_empty());
    load.handle_timeout(due);
    load.handle_timeout(due);
    assert_eq!(requests(&mut load), [2]);
    load.handle_timeout(START + Duration::from_secs(1));
    assert_eq!(requests(&mut load), [1]);
    assert_eq!(load.poll_timeout(), None);
}

#[test]
fn an_object_comes_a_gap_after_the_last_of_all_that_it_waits_for() {
    let mut load =
        load(&[root(), at_byte(0, 1), at_byte(0, 2), at_byte(0, 3).and(1).and(2).gap(5)]);
    requests(&mut load);
    load.on_complete(ObjectId(0), START);
    assert_eq!(requests(&mut load), [1, 2]);
    load.on_complete(ObjectId(2), START);
    assert_eq!(load.poll_timeout(), None);
    let last = START + Duration::from_millis(7);
    load.on_complete(ObjectId(1), last);
    assert_eq!(load.poll_timeout(), Some(last + Duration::from_millis(5)));
    load.handle_timeout(last + Duration::from_millis(5));
    assert_eq!(requests(&mut load), [3]);
}

#[test]
fn a_timer_adds_to_computing() {
    let mut second = object(1, 9, after(0, 3));
    second.gap.timer = Duration::from_millis(100);
    let page = Page::new("test", vec![object(0, 9, root()), second]).unwrap();
    let mut load = PageLoad::new(page.shared(), DiscoveryMode::Recorded, START);
    load.on_complete(ObjectId(0), START);
    assert_eq!(load.poll_timeout(), Some(START + Duration::from_millis(103)));
}

#[test]
fn the_load_is_finished_before_what_it_does_not_wait_for() {
    let mut beacon = object(1, 10, at_byte(0, 0));
    beacon.not_held = Some(crate::page::NotHeld::Beacon);
    let page = Page::new("test", vec![object(0, 10, root()), beacon]).unwrap();
    let mut load = PageLoad::new(page.shared(), DiscoveryMode::Recorded, START);
    assert!(!load.is_finished());
    load.on_complete(ObjectId(0), START);
    load.on_complete(ObjectId(0), START);
    assert!(load.is_finished() && !load.is_all_complete());
    load.on_complete(ObjectId(1), START);
    assert!(load.is_all_complete());
}

#[test]
fn layout_comes_when_nothing_before_the_first_image_blocks() {
    let blocking = |id, kind, late| {
        let mut object = object(id, 10, at_byte(0, 0));
        (object.blocking, object.late) = (kind, late);
        object
    };
    let objects = vec![
        object(0, 10, root()),
        blocking(1, Blocking::Render, false),
        blocking(2, Blocking::Parser, false),
        blocking(3, Blocking::Parser, true),
    ];
    let page = Page::new("test", objects).unwrap().shared();
    let mut load = PageLoad::new(page, DiscoveryMode::Recorded, START);
    for id in [1, 2, 2] {
        assert!(!load.is_laid_out());
        load.on_complete(ObjectId(id), START);
    }
    assert!(!load.is_laid_out(), "there is nothing to lay out");
    load.on_response_head(ObjectId(0), START);
    assert!(load.is_laid_out());
}

#[test]
fn all_at_once_asks_for_everything_at_the_start_and_once() {
    let page = page(&[root(), at_byte(0, 5), after(1, 9)], 9);
    let mut load = PageLoad::new(page, DiscoveryMode::AllAtOnce, START);
    assert_eq!(requests(&mut load), [0, 1, 2]);
    for id in 0..3 {
        load.on_complete(ObjectId(id), START);
    }
    assert!(requests(&mut load).is_empty());
    assert!(load.is_all_complete());
}

#[test]
fn objects_of_another_page_are_ignored() {
    let mut load = load(&[root()]);
    load.on_response_head(ObjectId(7), START);
    load.on_body_bytes(ObjectId(7), Bytes(1), START);
    load.on_complete(ObjectId(7), START);
    assert_eq!((load.open(), requests(&mut load)), (1, vec![0]));
}

#[test]
fn every_shipped_page_asks_for_all_its_objects() {
    for builtin in crate::pages::builtin() {
        let page = builtin.read().unwrap().page.shared();
        let mut load = PageLoad::new(Arc::clone(&page), DiscoveryMode::Recorded, START);
        let mut now = START;
        let mut asked = 0;
        while !load.is_all_complete() {
            while let Some(id) = load.poll_request() {
                asked += 1;
                load.on_complete(id, now);
            }
            if let Some(due) = load.poll_timeout() {
                now = due;
                load.handle_timeout(now);
            }
        }
        assert_eq!(asked, page.objects().len(), "{}", builtin.name);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Bytes(u32, u64),
    Complete(u32),
    Wait(u64),
}

/// An object of a random page: its parent among the earlier ones, the way, the offset, the gap, another object
/// that it waits for.
type Shape = (Option<u32>, bool, u64, u64, Option<u32>);

fn pages() -> impl Strategy<Value = Vec<Shape>> {
    let earlier = any::<prop::sample::Index>;
    let object = (earlier(), any::<bool>(), 0_u64..50, 0_u64..50, proptest::option::of(earlier()));
    proptest::collection::vec(object, 1..12).prop_map(|objects| {
        let earlier = |id: usize, index: prop::sample::Index| {
            (id > 0).then(|| u32::try_from(index.index(id)).unwrap())
        };
        let shape = |(id, (at, parsed, offset, gap, other))| {
            let other: Option<prop::sample::Index> = other;
            (earlier(id, at), parsed, offset, gap, other.and_then(|other| earlier(id, other)))
        };
        objects.into_iter().enumerate().map(shape).collect()
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (0_u32..12, 0_u64..60).prop_map(|(id, total)| Event::Bytes(id, total)),
        (0_u32..12).prop_map(Event::Complete),
        (0_u64..40).prop_map(Event::Wait),
    ];
    proptest::collection::vec(event, 0..40)
}

#[test]
fn what_a_pushed_object_refers_to_is_found_when_the_page_comes_to_it() {
    let mut load = load(&[root(), at_byte(0, 500), after(1, 0), at_byte(1, 10), after(0, 20)]);
    assert_eq!(requests(&mut load), [0]);
    // Objects 1 and 4 were promised, and are there before the document is.
    load.on_body_bytes(ObjectId(1), Bytes(1_000), START);
    load.on_complete(ObjectId(1), START);
    load.on_complete(ObjectId(4), START);
    load.on_response_head(ObjectId(0), START);
    assert!(requests(&mut load).is_empty());
    load.on_body_bytes(ObjectId(0), Bytes(500), START);
    assert_eq!(requests(&mut load), [1, 3, 2]);
    load.on_complete(ObjectId(0), START);
    let due = START + Duration::from_millis(20);
    assert_eq!(load.poll_timeout(), Some(due));
    load.handle_timeout(due);
    assert_eq!(requests(&mut load), [4]);
    assert_eq!(load.open(), 2);
    load.on_complete(ObjectId(2), due);
    load.on_complete(ObjectId(3), due);
    assert!(load.is_all_complete());
}

#[test]
fn with_all_at_once_pushed_objects_wait_for_the_head_of_the_document() {
    let page = page(&[root(), at_byte(0, 5), after(1, 9)], 9);
    let mode = DiscoveryMode::AllAtOnce;
    let mut load = PageLoad::with_push(page, mode, &[ObjectId(1)], START);
    assert_eq!(requests(&mut load), [0, 2]);
    load.on_response_head(ObjectId(0), START);
    assert_eq!(requests(&mut load), [1]);
}

proptest! {
    /// The naive model looks at all objects after each event. What comes of an object before the page asks
    /// for it, as if it was pushed, counts from then on.
    #[test]
    fn the_same_objects_are_asked_for_as_by_a_scan_of_all(shape in pages(), events in events()) {
        let how = |&(parent, parsed, offset, gap, other): &Shape| {
            let how = match parent {
                None => return root(),
                Some(parent) if parsed => at_byte(parent, offset).gap(gap),
                Some(parent) => after(parent, gap),
            };
            match other {
                Some(other) => how.and(other),
                None => how,
            }
        };
        let hows: Vec<How> = shape.iter().map(how).collect();
        let mut load = load(&hows);
        let mut now = START;
        let mut heads: Vec<Option<Bytes>> = vec![None; shape.len()];
        let mut completed = vec![false; shape.len()];
        let mut asked = requests(&mut load);
        // When all that an object waits for had come, and when it was asked for.
        let mut found_at: Vec<Option<Instant>> = vec![None; shape.len()];
        let mut asked_at: Vec<Option<Instant>> =
            hows.iter().map(|how| (how.discovery == Discovery::Root).then_some(now)).collect();
        for event in events {
            match event {
                Event::Bytes(id, total) => {
                    load.on_body_bytes(ObjectId(id), Bytes(total), now);
                    if let Some(head) = heads.get_mut(id as usize).filter(|_| total > 0) {
                        *head = Some(head.map_or(Bytes(total), |had| had.max(Bytes(total))));
                    }
                }
                Event::Complete(id) => {
                    load.on_complete(ObjectId(id), now);
                    if let Some(head) = heads.get_mut(id as usize) {
                        *head = Some(Bytes::MAX);
                        completed[id as usize] = true;
                    }
                }
                Event::Wait(millis) => {
                    now += Duration::from_millis(millis);
                    load.handle_timeout(now);
                }
            }
            asked.extend(requests(&mut load));
            // Children may have any numbers.
            for _ in 0..hows.len() {
                for (id, how) in hows.iter().enumerate() {
                    let complete = |id: &ObjectId| completed[id.index()] && asked_at[id.index()].is_some();
                    let is_found = match &how.discovery {
                        Discovery::Root => true,
                        Discovery::ParserOffset { parent, offset } => {
                            asked_at[parent.index()].is_some()
                                && heads[parent.index()].is_some_and(|received| *offset <= received)
                        }
                        Discovery::AfterCompletion { parent } => complete(parent),
                    };
                    if is_found && how.waits_for.iter().all(complete) {
                        let found = *found_at[id].get_or_insert(now);
                        if found + how.gap <= now {
                            asked_at[id].get_or_insert(now);
                        }
                    }
                }
            }
            let expected: Vec<u32> =
                (0..).zip(&asked_at).filter(|(_, at)| at.is_some()).map(|(id, _)| id).collect();
            let mut sorted = asked.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }
}
