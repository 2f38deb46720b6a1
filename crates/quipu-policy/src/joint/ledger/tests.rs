use super::*;
use crate::conformance::World;
use quipu_base::{Instant, PathId};

const FAST: PathKey = PathKey { slot: 0, id: PathId(0) };
const SLOW: PathKey = PathKey { slot: 1, id: PathId(1) };

fn span(start: u64, end: u64) -> Span {
    Span::new(Offset(start), Offset(end))
}

/// A stream of 10,000 bytes with as much credit.
fn stream(world: &mut World) -> StreamView {
    let key = world.streams.open(Instant::ZERO, Default::default(), Bytes(10_000));
    world.streams.write(key, Bytes(10_000));
    world.streams.get(key).cloned().unwrap()
}

#[test]
fn what_no_path_holds_is_found_between_and_behind_the_plans() {
    let mut world = World::new(Bytes(100_000));
    let view = stream(&mut world);
    let mut ledger = Ledger::new();
    ledger.commit(FAST, &view, span(0, 1000));
    ledger.commit(SLOW, &view, span(3000, 4000));
    let unheld = ledger.lowest_unheld(view.key, &world.streams).unwrap();
    assert_eq!(unheld.span, span(1000, 3000));
    ledger.commit(FAST, &view, span(1000, 3000));
    let unheld = ledger.lowest_unheld(view.key, &world.streams).unwrap();
    assert_eq!(unheld.span, span(4000, 10_000));
    ledger.commit(SLOW, &view, span(9000, 10_000));
    assert_eq!(ledger.highest_unheld(view.key, &world.streams).unwrap().span, span(4000, 9000));
    assert_eq!(ledger.totals(), [Bytes(3000), Bytes(2000)]);
}

#[test]
fn bytes_lost_below_the_plans_are_found_again() {
    let mut world = World::new(Bytes(100_000));
    let mut view = stream(&mut world);
    world.place(view.key, span(0, 2000), false);
    view = world.streams.get(view.key).cloned().unwrap();
    let mut ledger = Ledger::new();
    ledger.commit(FAST, &view, span(2000, 4000));
    assert_eq!(ledger.lowest_unheld(view.key, &world.streams).unwrap().span.start, Offset(4000));
    world.streams.lose(view.key, span(500, 700), false, SLOW, &mut Vec::new());
    ledger.reopen(view.key, Offset(500));
    let lost = Run { span: span(500, 700), class: Class::Lost { origin: SLOW } };
    assert_eq!(ledger.lowest_unheld(view.key, &world.streams), Some(lost));
    assert_eq!(ledger.lowest_lost(&view, &world.streams), Some(lost));
}

#[test]
fn a_plan_that_goes_on_joins_the_newest_and_comes_back_as_one() {
    let mut world = World::new(Bytes(100_000));
    let view = stream(&mut world);
    let mut ledger = Ledger::new();
    ledger.commit(FAST, &view, span(0, 1000));
    ledger.commit(FAST, &view, span(1000, 2000));
    ledger.commit(SLOW, &view, span(2000, 3000));
    ledger.commit(FAST, &view, span(3000, 4000));
    let back: Vec<Span> =
        std::iter::from_fn(|| ledger.pop_newest()).map(|commit| commit.span).collect();
    assert_eq!(back, [span(3000, 4000), span(2000, 3000), span(0, 2000)]);
    assert!(ledger.is_empty());
    assert_eq!(ledger.total(), Bytes::ZERO);
}

#[test]
fn the_newest_plan_comes_back_packet_by_packet() {
    let mut world = World::new(Bytes(100_000));
    let view = stream(&mut world);
    let mut ledger = Ledger::new();
    ledger.commit(SLOW, &view, span(0, 1000));
    ledger.commit(FAST, &view, span(1000, 3500));
    let mut pop = || ledger.pop_newest_tail(Bytes(1200)).map(|commit| commit.span);
    assert_eq!(pop(), Some(span(2300, 3500)));
    assert_eq!(pop(), Some(span(1100, 2300)));
    assert_eq!(pop(), Some(span(1000, 1100)));
    assert_eq!(pop(), Some(span(0, 1000)));
    assert_eq!(pop(), None);
}

#[test]
fn a_plan_reserves_the_credit_up_to_its_end() {
    let mut world = World::new(Bytes(100_000));
    let mut view = stream(&mut world);
    let mut ledger = Ledger::new();
    ledger.commit(SLOW, &view, span(3000, 4000));
    assert_eq!(ledger.reserved(), Bytes(4000), "the bytes skipped cost credit too");
    assert_eq!(ledger.credit_end(&view, Bytes(5000)), Offset(5000));
    ledger.commit(FAST, &view, span(0, 3000));
    assert_eq!(ledger.reserved(), Bytes(4000));
    world.place(view.key, span(3000, 4000), false);
    ledger.release(view.key, span(3000, 4000));
    view = world.streams.get(view.key).cloned().unwrap();
    ledger.settle(view.key, view.high_sent);
    assert_eq!(ledger.reserved(), Bytes::ZERO, "what is left lies below what was sent");
}

#[test]
fn an_acknowledgement_in_the_middle_of_a_plan_splits_it() {
    let mut world = World::new(Bytes(100_000));
    let view = stream(&mut world);
    let mut ledger = Ledger::new();
    ledger.commit(FAST, &view, span(0, 3000));
    assert_eq!(ledger.release(view.key, span(1000, 1500)), Bytes(500));
    assert_eq!(ledger.release(view.key, span(900, 1600)), Bytes(200));
    assert_eq!(ledger.front(FAST).map(|commit| commit.span), Some(span(0, 900)));
    assert_eq!(ledger.release(view.key, span(0, 900)), Bytes(900));
    assert_eq!(ledger.front(FAST).map(|commit| commit.span), Some(span(1600, 3000)));
    assert_eq!(ledger.held(view.key), Bytes(1400));
}

#[test]
fn the_end_of_a_stream_is_planned_once() {
    let mut world = World::new(Bytes(100_000));
    let key = world.streams.open(Instant::ZERO, Default::default(), Bytes::ZERO);
    world.streams.finish(key);
    let view = world.streams.get(key).cloned().unwrap();
    let mut ledger = Ledger::new();
    assert!(ledger.leaves_something(&view));
    ledger.commit(SLOW, &view, span(0, 0));
    assert!(!ledger.leaves_something(&view));
    assert_eq!(ledger.lowest_unheld(key, &world.streams), None);
    assert_eq!(ledger.pop_of_stream(key).map(|commit| commit.span), Some(span(0, 0)));
    assert!(ledger.is_empty());
}

mod against_a_naive_model {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: usize = 64;

    #[derive(Clone, Debug)]
    enum Operation {
        Commit { path: u8, len: u64 },
        Send { at: u64, len: u64 },
        PopNewest,
        PopPath { path: u8 },
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0u8..3, 1u64..9).prop_map(|(path, len)| Operation::Commit { path, len }),
            3 => (0u64..64, 1u64..9).prop_map(|(at, len)| Operation::Send { at, len }),
            1 => Just(Operation::PopNewest),
            1 => (0u8..3).prop_map(|path| Operation::PopPath { path }),
        ]
    }

    fn path(slot: u8) -> PathKey {
        PathKey { slot, id: PathId(u32::from(slot)) }
    }

    proptest! {
        /// The model holds one cell per byte: which path holds it, and since which plan.
        #[test]
        fn holds_totals_and_lookups_agree(operations in prop::collection::vec(operation(), 1..60)) {
            let mut world = World::new(Bytes(1_000));
            let key = world.streams.open(Instant::ZERO, Default::default(), Bytes(1_000));
            world.streams.write(key, Bytes(LENGTH as u64));
            let mut ledger = Ledger::new();
            let mut cells: [Option<(u8, u64)>; LENGTH] = [None; LENGTH];
            let mut sent = [false; LENGTH];
            for (step, operation) in (0u64..).zip(operations) {
                let view = world.streams.get(key).cloned().unwrap();
                match operation {
                    Operation::Commit { path: slot, len } => {
                        let Some(run) = ledger.lowest_unheld(key, &world.streams) else { continue };
                        let len = run.span.len().min(Bytes(len));
                        let span = Span::from_len(run.span.start, len);
                        ledger.commit(path(slot), &view, span);
                        for at in span.start.0..span.end.0 {
                            prop_assert_eq!(cells[at as usize], None);
                            cells[at as usize] = Some((slot, step));
                        }
                    }
                    Operation::Send { at, len } => {
                        let Some(run) = world.streams.pending_from(key, Offset(at)) else { continue };
                        let span = Span::from_len(run.span.start, run.span.len().min(Bytes(len)));
                        world.place(key, span, false);
                        let freed = ledger.release(key, span);
                        let cells = &mut cells[span.start.0 as usize..span.end.0 as usize];
                        let held = cells.iter().flatten().count();
                        cells.fill(None);
                        sent[span.start.0 as usize..span.end.0 as usize].fill(true);
                        prop_assert_eq!(freed, Bytes(held as u64));
                    }
                    Operation::PopNewest => {
                        let Some(commit) = ledger.pop_newest() else { continue };
                        let newest = cells.iter().flatten().map(|cell| cell.1).max();
                        let span = commit.span.start.0 as usize..commit.span.end.0 as usize;
                        let popped = &mut cells[span];
                        prop_assert!(popped.iter().flatten().any(|cell| Some(cell.1) == newest));
                        prop_assert!(popped.iter().all(Option::is_some));
                        popped.fill(None);
                    }
                    Operation::PopPath { path: slot } => {
                        let Some(commit) = ledger.pop_newest_of(path(slot)) else { continue };
                        let span = commit.span.start.0 as usize..commit.span.end.0 as usize;
                        prop_assert!(cells[span.clone()].iter().flatten().all(|c| c.0 == slot));
                        cells[span].fill(None);
                    }
                }
                let view = world.streams.get(key).cloned().unwrap();
                ledger.settle(key, view.high_sent);
                for slot in 0..3 {
                    let held = cells.iter().flatten().filter(|cell| cell.0 == slot).count();
                    prop_assert_eq!(ledger.committed(path(slot)), Bytes(held as u64));
                }
                let held = cells.iter().flatten().count() as u64;
                prop_assert_eq!(ledger.held(key), Bytes(held));
                let end = cells.iter().rposition(Option::is_some).map_or(0, |at| at as u64 + 1);
                prop_assert_eq!(ledger.reserved(), Offset(end).since(view.high_sent));
                let lowest = (0..LENGTH).find(|&at| !sent[at] && cells[at].is_none());
                let found = ledger.lowest_unheld(key, &world.streams);
                prop_assert_eq!(found.map(|run| run.span.start.0 as usize), lowest);
                let highest = (0..LENGTH).rfind(|&at| !sent[at] && cells[at].is_none());
                let found = ledger.highest_unheld(key, &world.streams);
                prop_assert_eq!(found.map(|run| run.span.end.0 as usize - 1), highest);
                prop_assert_eq!(ledger.leaves_something(&view), lowest.is_some());
            }
        }
    }
}
