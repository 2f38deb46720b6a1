use quipu_base::Duration;

use super::*;
use crate::Priority;
use crate::stream::testing::Driver;

const MS: Duration = Duration::from_millis(1);

#[test]
fn chunks_go_in_order_of_writing_across_streams() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.create(4, None);
    driver.create(8, None);
    driver.write(8, 2_500, false);
    driver.advance(MS);
    driver.write(4, 1_500, false);
    driver.advance(MS);
    driver.write(8, 1_000, true);
    assert_eq!(driver.packets(9, 1_000), [8, 8, 8, 4, 4, 8]);
}

#[test]
fn a_turn_ends_with_its_chunk() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.create(4, None);
    driver.write(4, 700, false);
    driver.advance(MS);
    driver.write(4, 700, false);
    assert_eq!(driver.peek().map(|turn| turn.max), Some(Bytes(700)));
    driver.take(500);
    assert_eq!(driver.peek().map(|turn| turn.max), Some(Bytes(200)));
}

#[test]
fn chunks_of_one_instant_go_in_order_of_stream() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.open(12, 1_500);
    driver.open(4, 1_500);
    assert_eq!(driver.packets(9, 1_000), [4, 4, 12, 12]);
}

#[test]
fn lost_bytes_keep_the_time_of_their_chunk() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.open(8, 2_000);
    driver.advance(MS);
    driver.open(4, 3_000);
    assert_eq!(driver.packets(3, 1_000), [8, 8, 4]);
    driver.lose(8, 1_000, 2_000);
    let taken = driver.send(1_000).unwrap();
    assert_eq!((taken.stream.id.0, taken.span.start), (8, Offset(1_000)));
    assert_eq!(driver.packets(9, 1_000), [4, 4]);
}

#[test]
fn chunks_are_forgotten_once_acknowledged() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.create(4, None);
    for _ in 0..10 {
        driver.write(4, 1_000, false);
        driver.advance(MS);
    }
    driver.packets(8, 1_000);
    driver.acknowledge(4, 7_000);
    let chunks = driver.policy.streams[0].as_ref().unwrap();
    assert_eq!(chunks.chunk_at(Offset::ZERO).map(|chunk| chunk.end), Some(Offset(8_000)));
}

#[test]
fn a_bare_fin_has_the_time_of_the_last_write() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.open(8, 0);
    driver.create(4, None);
    driver.write(4, 1_000, false);
    driver.packets(2, 1_000);
    driver.advance(MS);
    driver.open(12, 1_000);
    driver.write(4, 0, true);
    assert_eq!(driver.packets(9, 1_000), [4, 12]);
}

#[test]
fn a_plan_taken_back_goes_again_in_its_order() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.open(4, 2_000);
    driver.advance(MS);
    driver.open(8, 2_000);
    let plans: Vec<_> = (0..3).map(|_| driver.take(1_000)).collect();
    for taken in plans.into_iter().rev() {
        driver.give_back(taken);
    }
    assert_eq!(driver.packets(9, 1_000), [4, 4, 8, 8]);
}

#[test]
fn a_slot_used_again_forgets_the_old_chunks() {
    let mut driver = Driver::new(ByChunk::fifo());
    driver.open(4, 2_000);
    let old = driver.key(4);
    driver.close(4);
    let new = StreamKey { slot: old.slot, id: quipu_base::StreamId(40) };
    driver.tell(&Event::Opened(new));
    driver.tell(&Event::Ready(new));
    assert_eq!(driver.peek(), Some(Turn::unlimited(new)));
}

fn edf() -> Driver<ByChunk> {
    Driver::new(ByChunk::edf(Duration::from_millis(100)))
}

/// A stream whose data may take that long.
fn create(driver: &mut Driver<ByChunk>, id: u64, latency_ms: u64) {
    driver.create(id, None);
    let latency = Some(Duration::from_millis(latency_ms));
    driver.set_priority(id, Priority { latency, ..Priority::default() });
}

#[test]
fn the_earliest_deadline_goes_first_even_if_it_has_passed() {
    let mut driver = edf();
    create(&mut driver, 0, 40);
    driver.open(4, 1_000);
    driver.advance(Duration::from_millis(50));
    driver.write(0, 1_000, true);
    driver.open(8, 1_000);
    // Due after 90, 100 and 150 ms; all late.
    driver.advance(Duration::from_secs(1));
    assert_eq!(driver.packets(9, 1_000), [0, 4, 8]);
}

#[test]
fn another_latency_holds_for_what_is_written_from_then_on() {
    let mut driver = edf();
    create(&mut driver, 4, 30);
    driver.write(4, 1_000, false);
    driver.set_priority(4, Priority::default());
    driver.write(4, 1_000, true);
    create(&mut driver, 0, 60);
    driver.write(0, 1_000, true);
    assert_eq!(driver.packets(9, 1_000), [4, 0, 4]);
}

#[test]
fn lost_parts_keep_the_deadlines_of_their_chunks() {
    let mut driver = edf();
    create(&mut driver, 4, 10);
    create(&mut driver, 8, 30);
    driver.write(4, 1_000, false);
    driver.advance(Duration::from_millis(40));
    driver.write(4, 1_000, false);
    driver.packets(2, 1_000);
    driver.write(8, 1_000, true);
    // Both chunks of 4, due after 10 and 50 ms, are lost at once; 8 is due after 70 ms, 12 after 45.
    create(&mut driver, 12, 5);
    driver.write(12, 1_000, true);
    driver.lose(4, 0, 2_000);
    assert_eq!(driver.packets(9, 1_000), [4, 12, 4, 8]);
}

#[test]
fn plans_are_called_back_for_an_earlier_deadline_and_for_lost_bytes() {
    let mut driver = edf();
    driver.open(4, 2_000);
    assert_eq!(driver.packets(1, 1_000), [4]);
    driver.advance(MS);
    driver.open(8, 2_000);
    driver.packets(1, 1_000);
    let planned = driver.take(1_000);
    driver.open(12, 1_000);
    assert_eq!((planned.stream.id.0, driver.policy.order()), (8, 0));
    driver.lose(4, 0, 1_000);
    assert_eq!(driver.policy.order(), 1);
    create(&mut driver, 16, 10);
    driver.write(16, 1_000, true);
    assert_eq!(driver.policy.order(), 2);
}
