//! The order of frames, and what credit does to it.

use quipu_policy::NodeId;
use quipu_policy::stream::{ByChunk, QuantumWrr, Ranked, RoundRobin};

use super::*;

const NOW: Instant = Instant::ZERO;

fn queue(policy: impl StreamPolicy + 'static) -> Queue {
    let mut queue = Queue::new(Box::new(policy), 1_000);
    assert!(queue.grow(None, 1 << 20, NOW));
    queue
}

fn open(queue: &mut Queue, stream: u64, octets: usize) {
    queue.open(StreamId(stream), NOW);
    assert!(queue.write(StreamId(stream), Bytes::from(vec![stream as u8; octets]), NOW));
    assert!(queue.finish(StreamId(stream), NOW));
}

/// The next frame: its stream, the length of its payload, whether it ends the stream.
fn next(queue: &mut Queue) -> Option<(u64, usize, bool)> {
    let mut octets = Vec::new();
    let (stream, left) = queue.next_frame(NOW, &mut |part| octets.extend_from_slice(&part))?;
    let header = crate::h2::frame::Header::decode(*octets.first_chunk().unwrap());
    assert_eq!((header.length, header.stream.value()), (octets.len() - 9, stream.0 as u32));
    assert!(octets[9..].iter().all(|&octet| octet == stream.0 as u8));
    assert_eq!(header.has(crate::h2::frame::flag::END_STREAM), left == Left::Ended);
    Some((stream.0, header.length, left == Left::Ended))
}

fn frames(queue: &mut Queue) -> Vec<(u64, usize, bool)> {
    std::iter::from_fn(|| next(queue)).collect()
}

#[test]
fn a_frame_is_a_turn() {
    let mut queue = queue(RoundRobin::new());
    open(&mut queue, 15, 2_500);
    open(&mut queue, 17, 1_000);
    assert_eq!(queue.unsent(), Amount(3_500));
    let expected = [(15, 1_000, false), (17, 1_000, true), (15, 1_000, false), (15, 500, true)];
    assert_eq!(frames(&mut queue), expected);
    assert_eq!((queue.unsent(), queue.overridden()), (Amount::ZERO, 0));
    assert!(!queue.is_open(StreamId(15)));
}

#[test]
fn sizes_and_places_reach_the_policy() {
    let mut by_size = queue(Ranked::sjf());
    open(&mut by_size, 15, 900);
    open(&mut by_size, 17, 800);
    let size = PriorityEdit::Size { stream: StreamId(15), size: Amount(5) };
    by_size.edit(&size, NOW);
    assert_eq!(next(&mut by_size).map(|frame| frame.0), Some(17), "at least what was written");
    let mut by_weight = queue(QuantumWrr::new());
    for (stream, weight) in [(15, 1), (17, 3)] {
        open(&mut by_weight, stream, 9_000);
        let (node, parent) = (NodeId(stream), NodeId::ROOT);
        by_weight.edit(&PriorityEdit::Insert { node, parent, weight, exclusive: false }, NOW);
        by_weight.edit(&PriorityEdit::Attach { node, stream: StreamId(stream) }, NOW);
    }
    let order: Vec<u64> =
        (0..8).filter_map(|_| next(&mut by_weight)).map(|frame| frame.0).collect();
    assert_eq!(order.iter().filter(|&&stream| stream == 17).count(), 6, "{order:?}");
}

#[test]
fn credit_of_a_stream_stops_it_alone() {
    let mut queue = queue(ByChunk::fifo());
    assert!(queue.set_initial_window(1_500, NOW));
    open(&mut queue, 15, 2_000);
    open(&mut queue, 17, 700);
    assert_eq!(frames(&mut queue), [(15, 1_000, false), (15, 500, false), (17, 700, true)]);
    // Less than nothing.
    assert!(queue.set_initial_window(0, NOW));
    assert!(queue.grow(Some(StreamId(15)), 1_501, NOW));
    assert_eq!(frames(&mut queue), [(15, 1, false)]);
    assert!(queue.set_initial_window(1_500, NOW));
    assert_eq!(frames(&mut queue), [(15, 499, true)]);
}

#[test]
fn credit_of_the_connection_stops_all() {
    let mut queue = Queue::new(Box::new(RoundRobin::new()), 16_384);
    assert!(queue.set_initial_window(1 << 20, NOW));
    open(&mut queue, 15, 65_000);
    open(&mut queue, 17, 65_000);
    assert_eq!(frames(&mut queue).iter().map(|frame| frame.1).sum::<usize>(), 65_535);
    assert!(queue.grow(None, 100_000, NOW));
    assert_eq!(frames(&mut queue).iter().map(|frame| frame.1).sum::<usize>(), 64_465);
    assert_eq!(queue.overridden(), 0);
}

#[test]
fn credit_beyond_the_largest_window_is_refused() {
    let mut queue = queue(RoundRobin::new());
    queue.open(StreamId(15), NOW);
    assert!(!queue.grow(Some(StreamId(15)), (1 << 31) - 1, NOW));
    assert!(!queue.grow(None, (1 << 31) - 1, NOW));
    assert!(queue.grow(Some(StreamId(15)), 1_000_000, NOW));
    assert!(!queue.set_initial_window((1 << 31) - 1, NOW));
}

#[test]
fn an_end_alone_is_an_empty_frame() {
    let mut queue = queue(RoundRobin::new());
    queue.open(StreamId(15), NOW);
    assert_eq!(next(&mut queue), None);
    assert!(queue.write(StreamId(15), Bytes::from_static(&[15; 4]), NOW));
    assert_eq!(next(&mut queue), Some((15, 4, false)));
    assert!(queue.finish(StreamId(15), NOW));
    assert!(!queue.finish(StreamId(15), NOW));
    assert!(!queue.write(StreamId(15), Bytes::new(), NOW));
    assert_eq!(frames(&mut queue), [(15, 0, true)]);
}

/// A policy that names a stream that is over, or none.
struct Stubborn(Option<Turn>);

impl StreamPolicy for Stubborn {
    fn next(&mut self, _: &View<'_>, _: &mut Notes) -> Option<Turn> {
        self.0
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>) {
        if let (Event::Closed(stream), None) = (event, self.0) {
            self.0 = Some(Turn::unlimited(*stream));
        }
    }

    fn on_taken(&mut self, _: Turn, _: Kind, _: &View<'_>) {}

    fn on_returned(&mut self, _: Turn, _: &View<'_>) {}
}

#[test]
fn a_policy_that_names_nothing_loses_nothing() {
    let mut queue = queue(Stubborn(None));
    open(&mut queue, 17, 10);
    open(&mut queue, 15, 10);
    open(&mut queue, 19, 10);
    assert_eq!(frames(&mut queue), [(15, 10, true), (17, 10, true), (19, 10, true)]);
    assert_eq!(queue.overridden(), 3);
}

#[test]
fn a_closed_stream_leaves_nothing_behind() {
    let mut queue = queue(RoundRobin::new());
    open(&mut queue, 15, 5_000);
    open(&mut queue, 17, 1_000);
    assert_eq!(next(&mut queue).map(|frame| frame.0), Some(15));
    assert!(queue.close(StreamId(15), NOW));
    assert!(!queue.close(StreamId(15), NOW));
    assert_eq!(queue.unsent(), Amount(1_000));
    open(&mut queue, 19, 10);
    assert_eq!(frames(&mut queue), [(17, 1_000, true), (19, 10, true)]);
}
