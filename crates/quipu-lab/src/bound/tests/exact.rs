//! The bound and the best of all schedules, side by side.

use quipu_base::{Duration, Instant, Random, Rate, Seed};
use quipu_link::LinkConfig;
use rand::RngExt;

use super::super::chain::{Asked, Item, Load};
use super::super::way::Way;
use super::super::{PageBound, bound};
use super::brute::{Search, World};
use super::{MILLI, link, millis, way};

/// One byte each millisecond on every path: a unit is a byte, a slot a millisecond.
fn ways(world: &World) -> (Way, Way) {
    let up = LinkConfig {
        delay: Duration::from_millis(u64::from(world.up_delay)),
        ..LinkConfig::default()
    };
    let one = Rate::from_bits_per_sec(8_000);
    let down: Vec<LinkConfig> = world
        .paths
        .iter()
        .map(|(delay, rests)| {
            let mut config = link(1, u64::from(*delay));
            if rests.contains(&0) {
                config.rate = Some(Rate::ZERO);
            }
            for slot in 1..=12 {
                let rate = if rests.contains(&slot) { Rate::ZERO } else { one };
                config = config.with_step(millis(u64::from(slot)), rate);
            }
            config
        })
        .collect();
    (way(&[up]), way(&down))
}

fn world(random: &mut Random) -> World {
    let paths = random.random_range(1..=2);
    let path = |random: &mut Random| {
        let rests = (0..random.random_range(0..3)).map(|_| random.random_range(0..10)).collect();
        (random.random_range(0..4), rests)
    };
    World { up_delay: random.random_range(0..3), paths: (0..paths).map(|_| path(random)).collect() }
}

fn item(random: &mut Random, asked: Asked) -> Item {
    Item {
        asked,
        waits_for: Vec::new(),
        gap: Duration::ZERO,
        request: Some(1),
        think: Duration::from_millis(random.random_range(0..4)),
        head: 0,
        body: random.random_range(1..=3),
        held: true,
        critical: false,
    }
}

/// The bound in whole slots, which every time here is.
fn bound_in_slots(world: &World, load: &Load) -> (u64, Vec<u64>) {
    let (up, down) = ways(world);
    let PageBound { page_time, objects, .. } = bound(load, &up, &down, Instant::ZERO);
    let slots = |time: Duration| {
        assert_eq!(time.as_nanos() % MILLI, 0, "{time:?} is no whole slot");
        time.as_millis()
    };
    (slots(page_time), objects.into_iter().map(slots).collect())
}

#[test]
fn with_all_asked_for_at_once_the_bound_is_the_best_schedule() {
    let mut random = Seed::new(1).stream("brute", 0);
    for case in 0..120 {
        let world = world(&mut random);
        let objects = random.random_range(1..=3);
        let items = (0..objects).map(|_| item(&mut random, Asked::AtStart)).collect();
        let load = Load::new(items);
        let (page, each) = bound_in_slots(&world, &load);
        let best = Search::new(&world, &load, (0..objects).collect(), page + 3).optimum();
        assert_eq!(page, u64::from(best), "case {case}: {load:?}");
        for (object, bound) in each.into_iter().enumerate() {
            let best = Search::new(&world, &load, vec![object], bound + 3).optimum();
            assert_eq!(bound, u64::from(best), "case {case}, object {object}: {load:?}");
        }
    }
}

#[test]
fn with_discovery_each_object_alone_can_be_as_early_as_its_bound_and_the_page_no_earlier() {
    let mut random = Seed::new(2).stream("brute", 0);
    let (mut cases, mut equal) = (0, 0);
    for case in 0..60 {
        let world = world(&mut random);
        let mut items: Vec<Item> = Vec::new();
        for index in 0..random.random_range(2..=3) {
            let parent = if index == 0 { 0 } else { random.random_range(0..index) };
            let asked = match random.random_range(0..4) {
                _ if index == 0 => Asked::AtStart,
                1 => Asked::With { parent },
                0 => Asked::After { parent },
                _ => Asked::On { parent, bytes: random.random_range(1..=items[parent].body) },
            };
            let mut item = item(&mut random, asked);
            let pushed = matches!(asked, Asked::With { .. });
            item.request = item.request.filter(|_| !pushed);
            if index > 0 && !pushed {
                item.gap = Duration::from_millis(random.random_range(0..3));
                if random.random_range(0..3) == 0 {
                    item.waits_for.push(random.random_range(0..index));
                }
            }
            items.push(item);
        }
        let load = Load::new(items);
        let (page, each) = bound_in_slots(&world, &load);
        for (object, bound) in each.into_iter().enumerate() {
            let best = Search::new(&world, &load, vec![object], bound + 3).optimum();
            // What waits for two others has a chain for each, not for both.
            let alone = load.items[..=object].iter().all(|item| item.waits_for.is_empty());
            let holds = if alone { bound == u64::from(best) } else { bound <= u64::from(best) };
            assert!(holds, "case {case}, object {object}: {bound} and {best}: {load:?}");
        }
        let all = (0..load.items.len()).collect();
        let best = Search::new(&world, &load, all, page + 4).optimum();
        assert!(page <= u64::from(best), "case {case}: {page} > {best}: {load:?}");
        cases += 1;
        equal += u32::from(page == u64::from(best));
    }
    // Where it is not, discovery and the rest of the page wait for each other.
    assert!(equal * 10 >= cases * 8, "{equal} of {cases}");
}
