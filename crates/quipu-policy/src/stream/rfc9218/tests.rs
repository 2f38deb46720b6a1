use super::*;
use crate::Priority;
use crate::stream::testing::{Driver, runs};

fn open(driver: &mut Driver<UrgencyLevels>, id: u64, urgency: u8, incremental: bool, bytes: u64) {
    driver.create(id, None);
    driver.set_priority(id, Priority { urgency, incremental, ..Priority::default() });
    driver.write(id, bytes, true);
}

#[test]
fn levels_are_strict_and_non_incremental_streams_go_by_identifier() {
    let mut driver = Driver::new(UrgencyLevels::new(Mixed::First, false));
    open(&mut driver, 0, 5, false, 2_000);
    open(&mut driver, 8, 1, false, 2_000);
    open(&mut driver, 4, 1, false, 2_000);
    open(&mut driver, 12, 7, false, 1_000);
    assert_eq!(driver.packets(9, 1_000), [4, 4, 8, 8, 0, 0, 12]);
}

#[test]
fn incremental_streams_take_turns_after_the_others() {
    let mut driver = Driver::new(UrgencyLevels::new(Mixed::First, false));
    open(&mut driver, 0, 3, true, 3_000);
    open(&mut driver, 4, 3, true, 2_000);
    open(&mut driver, 8, 3, false, 2_000);
    assert_eq!(driver.packets(9, 1_000), [8, 8, 0, 4, 0, 4, 0]);
}

#[test]
fn a_fair_level_alternates_between_the_kinds() {
    let mut driver = Driver::new(UrgencyLevels::new(Mixed::Fair, false));
    open(&mut driver, 0, 3, true, 3_000);
    open(&mut driver, 4, 3, true, 3_000);
    open(&mut driver, 8, 3, false, 2_000);
    open(&mut driver, 12, 3, false, 2_000);
    open(&mut driver, 16, 4, false, 1_000);
    assert_eq!(driver.packets(20, 1_000), [8, 0, 8, 4, 12, 0, 12, 4, 0, 4, 16]);
}

#[test]
fn the_guard_gives_one_packet_in_64_to_the_next_lower_level() {
    let mut driver = Driver::new(UrgencyLevels::new(Mixed::First, true));
    open(&mut driver, 0, 0, false, 130_000);
    open(&mut driver, 4, 4, false, 1_000);
    open(&mut driver, 8, 6, true, 9_000);
    let order = driver.packets(130, 1_000);
    assert_eq!(runs(&order), [(0, 63), (4, 1), (0, 63), (8, 1), (0, 2)]);
}

#[test]
fn another_urgency_moves_a_stream_and_calls_plans_back() {
    let mut driver = Driver::new(UrgencyLevels::new(Mixed::First, false));
    open(&mut driver, 0, 3, false, 3_000);
    open(&mut driver, 4, 3, true, 3_000);
    driver.take(1_000);
    driver.set_priority(4, Priority { urgency: 2, incremental: true, ..Priority::default() });
    assert_eq!(driver.policy.order(), 1);
    assert_eq!(driver.packets(4, 1_000), [4, 4, 4, 0]);
    open(&mut driver, 8, 3, false, 1_000);
    assert_eq!(driver.policy.order(), 1);
    open(&mut driver, 12, 1, false, 1_000);
    assert_eq!(driver.policy.order(), 2);
}

#[test]
fn plans_of_all_that_streams_have_go_back_in_their_order() {
    for mixed in [Mixed::First, Mixed::Fair] {
        let start = || {
            let mut driver = Driver::new(UrgencyLevels::new(mixed, true));
            open(&mut driver, 0, 3, true, 2_000);
            open(&mut driver, 4, 3, true, 2_000);
            open(&mut driver, 8, 3, false, 2_000);
            driver
        };
        let mut driver = start();
        let plans: Vec<_> = (0..6).map(|_| driver.take(1_000)).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(driver.packets(6, 1_000), start().packets(6, 1_000));
    }
}
