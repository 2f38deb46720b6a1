use quipu_base::Duration;

use super::*;
use crate::stream::testing::Driver;

const MS: Duration = Duration::from_millis(1);

#[test]
fn chunks_go_in_order_of_writing_across_streams() {
    let mut driver = Driver::new(Fifo::new());
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
    let mut driver = Driver::new(Fifo::new());
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
    let mut driver = Driver::new(Fifo::new());
    driver.open(12, 1_500);
    driver.open(4, 1_500);
    assert_eq!(driver.packets(9, 1_000), [4, 4, 12, 12]);
}

#[test]
fn lost_bytes_keep_the_time_of_their_chunk() {
    let mut driver = Driver::new(Fifo::new());
    driver.open(8, 2_000);
    driver.advance(MS);
    driver.open(4, 3_000);
    assert_eq!(driver.packets(3, 1_000), [8, 8, 4]);
    driver.lose(8, 1_000, 2_000);
    let taken = driver.take(1_000);
    assert_eq!((taken.stream.id.0, taken.span.start), (8, Offset(1_000)));
    assert_eq!(driver.packets(9, 1_000), [4, 4]);
}

#[test]
fn chunks_are_forgotten_once_acknowledged() {
    let mut driver = Driver::new(Fifo::new());
    driver.create(4, None);
    for _ in 0..10 {
        driver.write(4, 1_000, false);
        driver.advance(MS);
    }
    driver.packets(8, 1_000);
    driver.acknowledge(4, 7_000);
    let chunks = driver.policy.streams[0].as_ref().unwrap();
    assert_eq!(chunks.chunks.front().map(|chunk| chunk.end), Some(Offset(8_000)));
}

#[test]
fn a_bare_fin_has_the_time_of_the_last_write() {
    let mut driver = Driver::new(Fifo::new());
    driver.open(8, 0);
    driver.create(4, None);
    driver.write(4, 1_000, false);
    driver.take(1_000);
    driver.take(1_000);
    driver.advance(MS);
    driver.open(12, 1_000);
    driver.write(4, 0, true);
    assert_eq!(driver.packets(9, 1_000), [4, 12]);
}

#[test]
fn a_plan_taken_back_goes_again_in_its_order() {
    let mut driver = Driver::new(Fifo::new());
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
    let mut driver = Driver::new(Fifo::new());
    driver.open(4, 2_000);
    let old = driver.key(4);
    driver.close(4);
    let new = StreamKey { slot: old.slot, id: quipu_base::StreamId(40) };
    driver.tell(&Event::Opened(new));
    driver.tell(&Event::Ready(new));
    assert_eq!(driver.peek(), Some(Turn::unlimited(new)));
}
