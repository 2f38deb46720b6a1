use proptest::prelude::*;

use super::*;
use crate::page::{Blocking, Object, ObjectKind};

const START: Instant = Instant::from_nanos(1_000_000_000);

fn object(id: u32, bytes: u64, discovery: Discovery) -> Object {
    let url = format!("https://a.test/{id}");
    Object::new(ObjectId(id), url, ObjectKind::Document, Bytes(bytes)).discovered(discovery)
}

fn at_byte(parent: u32, offset: u64) -> Discovery {
    Discovery::ParserOffset { parent: ObjectId(parent), offset: Bytes(offset) }
}

fn after(parent: u32, millis: u64) -> Discovery {
    let gap = Duration::from_millis(millis);
    Discovery::AfterCompletion { parent: ObjectId(parent), gap }
}

fn load(discoveries: &[Discovery]) -> PageLoad {
    let objects =
        (0..).zip(discoveries).map(|(id, discovery)| object(id, 1000, *discovery)).collect();
    let page = Page::new("test", objects).unwrap();
    PageLoad::new(page.shared(), DiscoveryMode::Recorded, START)
}

fn requests(load: &mut PageLoad) -> Vec<u32> {
    std::iter::from_fn(|| load.poll_request()).map(|id| id.0).collect()
}

#[test]
fn children_come_when_the_parser_has_reached_their_byte() {
    let mut load = load(&[Discovery::Root, at_byte(0, 500), at_byte(0, 0), at_byte(0, 501)]);
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
    let mut load = load(&[Discovery::Root, after(0, 20), after(0, 10), after(0, 0)]);
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
fn the_load_is_finished_before_what_it_does_not_wait_for() {
    let mut beacon = object(1, 10, at_byte(0, 0));
    beacon.not_held = Some(crate::page::NotHeld::Beacon);
    let page = Page::new("test", vec![object(0, 10, Discovery::Root), beacon]).unwrap();
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
        object(0, 10, Discovery::Root),
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
    let objects =
        vec![object(0, 9, Discovery::Root), object(1, 9, at_byte(0, 5)), object(2, 9, after(1, 9))];
    let page = Page::new("test", objects).unwrap().shared();
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
    let mut load = load(&[Discovery::Root]);
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

fn pages() -> impl Strategy<Value = Vec<(Option<u32>, bool, u64)>> {
    // Each object: its parent among the earlier ones, the way, the offset or gap.
    let object = (any::<prop::sample::Index>(), any::<bool>(), 0_u64..50);
    proptest::collection::vec(object, 1..12).prop_map(|objects| {
        let parent = |id: usize, index: prop::sample::Index| {
            (id > 0).then(|| u32::try_from(index.index(id)).unwrap())
        };
        objects.into_iter().enumerate().map(|(id, (at, how, n))| (parent(id, at), how, n)).collect()
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
    let mut load =
        load(&[Discovery::Root, at_byte(0, 500), after(1, 0), at_byte(1, 10), after(0, 20)]);
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
    let objects =
        vec![object(0, 9, Discovery::Root), object(1, 9, at_byte(0, 5)), object(2, 9, after(1, 9))];
    let page = Page::new("test", objects).unwrap().shared();
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
        let discovery = |&(parent, parsed, n): &(Option<u32>, bool, u64)| match parent {
            None => Discovery::Root,
            Some(parent) if parsed => at_byte(parent, n),
            Some(parent) => after(parent, n),
        };
        let discoveries: Vec<_> = shape.iter().map(discovery).collect();
        let mut load = load(&discoveries);
        let mut now = START;
        let mut heads: Vec<Option<Bytes>> = vec![None; shape.len()];
        let mut completed: Vec<Option<Instant>> = vec![None; shape.len()];
        let mut asked = requests(&mut load);
        let mut asked_at: Vec<Option<Instant>> =
            discoveries.iter().map(|how| (*how == Discovery::Root).then_some(now)).collect();
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
                        completed[id as usize].get_or_insert(now);
                    }
                }
                Event::Wait(millis) => {
                    now += Duration::from_millis(millis);
                    load.handle_timeout(now);
                }
            }
            asked.extend(requests(&mut load));
            // Children may have any numbers.
            for _ in 0..discoveries.len() {
                for (id, how) in discoveries.iter().enumerate() {
                    let is_due = match *how {
                        Discovery::Root => true,
                        Discovery::ParserOffset { parent, offset } => {
                            asked_at[parent.index()].is_some()
                                && heads[parent.index()].is_some_and(|received| offset <= received)
                        }
                        Discovery::AfterCompletion { parent, gap } => {
                            let times = completed[parent.index()].zip(asked_at[parent.index()]);
                            times.is_some_and(|(came, asked)| came.max(asked) + gap <= now)
                        }
                    };
                    if is_due {
                        asked_at[id].get_or_insert(now);
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
