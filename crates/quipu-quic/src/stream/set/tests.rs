use bytes::Bytes as Chunk;
use quipu_base::PathId;
use quipu_policy::seam::referee::fit_copy;
use quipu_policy::{Class, Kind, PathKey, Refusal, Run, Span, StreamTable};

use super::*;
use crate::stream::fault::{OpenError, StreamError, StreamFault};
use crate::stream::frames::ControlFrame;

const NOW: Instant = Instant::ZERO;
const BIDI: StreamDirection = StreamDirection::Bidirectional;
const UNI: StreamDirection = StreamDirection::Unidirectional;
const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };

const LIMITS: StreamLimits = StreamLimits {
    stream_window: 1000,
    connection_window: 1500,
    bidirectional: 8,
    unidirectional: 3,
    cancels: CancelLimit { burst: 1_000, per_second: 33 },
    send_buffer: 1 << 20,
    unsent: 1 << 20,
};

const PEER: PeerLimits = PeerLimits {
    max_data: 1500,
    max_stream_data_bidi_local: 1000,
    max_stream_data_bidi_remote: 1000,
    max_stream_data_uni: 500,
    max_streams_bidi: 3,
    max_streams_uni: 3,
};

fn client() -> Streams {
    let mut streams = Streams::new(Role::Client, LIMITS);
    streams.set_peer_limits(PEER);
    streams
}

fn server() -> Streams {
    let mut streams = Streams::new(Role::Server, LIMITS);
    streams.set_peer_limits(PEER);
    streams
}

fn span(start: u64, end: u64) -> Span {
    Span { start: Offset(start), end: Offset(end) }
}

fn edges(streams: &mut Streams) -> Vec<Edge> {
    std::iter::from_fn(|| streams.pop_edge()).collect()
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.pop_event()).collect()
}

fn frames(streams: &mut Streams) -> Vec<ControlFrame> {
    std::iter::from_fn(|| streams.pop_frame(|_| true)).collect()
}

/// Opens a stream with `len` bytes written.
fn opened(streams: &mut Streams, len: usize) -> StreamKey {
    let id = streams.open(BIDI, NOW).unwrap();
    streams.write(id, Chunk::from(vec![7; len])).unwrap();
    streams.key(id).unwrap()
}

#[test]
fn streams_open_up_to_the_peers_limit() {
    let mut streams = client();
    for index in 0..3 {
        assert_eq!(streams.open(BIDI, NOW), Ok(StreamId(4 * index)));
    }
    assert_eq!(streams.open(BIDI, NOW), Err(OpenError::Limit { direction: BIDI, limit: 3 }));
    assert_eq!(frames(&mut streams), [ControlFrame::StreamsBlocked { direction: BIDI, limit: 3 }]);
    streams.on_max_streams(BIDI, 4);
    assert_eq!(events(&mut streams), [StreamEvent::Available(BIDI)]);
    assert_eq!(streams.open(BIDI, NOW), Ok(StreamId(12)));
    assert_eq!(streams.open(UNI, NOW), Ok(StreamId(2)));
}

#[test]
fn a_limit_on_streams_is_told_once_however_often_opening_is_tried() {
    let mut streams = client();
    let blocked = |limit| ControlFrame::StreamsBlocked { direction: BIDI, limit };
    for limit in [3, 5] {
        streams.on_max_streams(BIDI, limit);
        while streams.open(BIDI, NOW).is_ok() {}
        assert_eq!(frames(&mut streams), [blocked(limit)]);
        for _ in 0..100 {
            assert!(streams.open(BIDI, NOW).is_err());
            assert_eq!(frames(&mut streams), []);
        }
        // Unless it was lost.
        streams.requeue_frame(&blocked(limit));
        assert_eq!(frames(&mut streams), [blocked(limit)]);
    }
    assert_eq!(events(&mut streams), [StreamEvent::Available(BIDI)]);
}

#[test]
fn a_limit_on_data_is_told_once_however_often_it_blocks() {
    let mut streams = client();
    let first = opened(&mut streams, 1000);
    let second = opened(&mut streams, 600);
    streams.place(first, span(0, 1000));
    streams.place(second, span(0, 500));
    assert_eq!(frames(&mut streams), [ControlFrame::DataBlocked { limit: 1500 }]);
    // Nothing is blocked any more, and then something is again.
    streams.reset(second.id, 0).unwrap();
    let third = opened(&mut streams, 10);
    assert_eq!(streams.conn_view().window_blocked, 2);
    let reset = ControlFrame::ResetStream { stream: second, code: 0, final_size: Offset(500) };
    assert_eq!(frames(&mut streams), [reset]);
    streams.on_max_data(1505);
    streams.place(third, span(0, 5));
    assert_eq!(frames(&mut streams), [ControlFrame::DataBlocked { limit: 1505 }]);
}

#[test]
fn nothing_opens_before_the_peers_limits_are_known() {
    let mut streams = Streams::new(Role::Client, LIMITS);
    assert!(streams.open(BIDI, NOW).is_err());
    assert_eq!(frames(&mut streams), []);
    streams.set_peer_limits(PEER);
    assert_eq!(events(&mut streams), [StreamEvent::Available(BIDI)]);
}

#[test]
fn edges_tell_a_streams_life_in_order() {
    let mut streams = client();
    let id = streams.open(BIDI, NOW).unwrap();
    streams.set_size(id, Bytes(100)).unwrap();
    streams.write(id, Chunk::from_static(&[1; 60])).unwrap();
    streams.write(id, Chunk::from_static(&[2; 40])).unwrap();
    let key = streams.key(id).unwrap();
    assert_eq!(
        edges(&mut streams),
        [Edge::Opened(key), Edge::Sized(key), Edge::Written(key), Edge::Ready(key)]
    );
    assert_eq!((streams.conn_view().ready, streams.conn_view().unsent), (1, Bytes(100)));
    assert_eq!(streams.fit(key, None, Bytes(1200)), Ok(span(0, 100)));
    let placed = streams.place(key, span(0, 100)).unwrap();
    assert_eq!((placed.kind, placed.fin), (Kind::Fresh, false));
    assert_eq!(edges(&mut streams), [Edge::Stopped(key)]);
    assert_eq!(streams.conn_view().credit, Bytes(1400));
    streams.finish(id).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Written(key), Edge::Ready(key)]);
    assert!(streams.get(key).unwrap().bare_fin);
    assert!(streams.place(key, streams.fit(key, None, Bytes(1)).unwrap()).unwrap().fin);
    streams.on_acked(key, span(0, 100), false);
    streams.on_acked(key, span(100, 100), true);
    assert_eq!(edges(&mut streams), [Edge::Closed(key)]);
    let told = [StreamEvent::Drained(id), StreamEvent::Finished(id)];
    assert_eq!(events(&mut streams), told);
    assert!(streams.get(key).is_none());
}

#[test]
fn a_readiness_that_came_and_went_is_not_told() {
    let mut streams = client();
    let key = opened(&mut streams, 100);
    streams.place(key, span(0, 100));
    edges(&mut streams);
    let mut requeued = Vec::new();
    streams.on_lost(key, span(0, 100), false, PATH, &mut requeued);
    assert_eq!(requeued, [(key, span(0, 100))]);
    assert_eq!(streams.conn_view().ready, 1);
    streams.on_acked(key, span(0, 100), false);
    assert_eq!(edges(&mut streams), []);
    assert_eq!(streams.conn_view().ready, 0);
}

#[test]
fn a_skip_costs_the_connection_credit_of_the_bytes_skipped() {
    let mut streams = client();
    let first = opened(&mut streams, 1000);
    let second = opened(&mut streams, 1000);
    assert_eq!(streams.fit(first, Some(Offset(800)), Bytes(100)), Ok(span(800, 900)));
    streams.place(first, span(800, 900));
    assert_eq!(streams.conn_view().credit, Bytes(600));
    assert_eq!(streams.fit(second, Some(Offset(550)), Bytes(100)), Ok(span(550, 600)));
    assert_eq!(
        streams.fit(second, Some(Offset(600)), Bytes(100)),
        Err(Refusal::NothingLeft(second))
    );
    assert_eq!(
        streams.fit(first, Some(Offset(850)), Bytes(9)),
        Err(Refusal::NotPending(first, Offset(850)))
    );
    let hole = Run { span: span(0, 800), class: Class::Hole };
    assert_eq!(streams.pending_from(first, Offset(0)), Some(hole));
    assert_eq!(streams.get(first).unwrap().free, Bytes(800));
}

#[test]
fn used_up_connection_credit_is_counted_once_and_told_to_the_peer() {
    let mut streams = client();
    let first = opened(&mut streams, 1000);
    let second = opened(&mut streams, 1000);
    streams.place(first, span(0, 1000));
    streams.place(second, span(0, 500));
    assert_eq!(streams.conn_view().window_blocked, 1);
    assert_eq!(streams.fit(second, None, Bytes(10)), Err(Refusal::NothingLeft(second)));
    assert_eq!(frames(&mut streams), [ControlFrame::DataBlocked { limit: 1500 }]);
    streams.requeue_frame(&ControlFrame::DataBlocked { limit: 1500 });
    streams.on_max_data(1600);
    assert_eq!(frames(&mut streams), []);
    assert_eq!(streams.fit(second, None, Bytes(1000)), Ok(span(500, 600)));
    streams.place(second, span(500, 600));
    assert_eq!(streams.conn_view().window_blocked, 2);
}

#[test]
fn stream_credit_stops_a_stream_and_its_growth_readies_it() {
    let mut streams = client();
    let key = opened(&mut streams, 1200);
    assert_eq!(streams.get(key).unwrap().sendable, Bytes(1000));
    streams.place(key, span(0, 1000));
    edges(&mut streams);
    assert_eq!(streams.conn_view().ready, 0);
    assert_eq!(streams.conn_view().unsent, Bytes(200));
    let blocked = ControlFrame::StreamDataBlocked { stream: key, limit: Offset(1000) };
    assert_eq!(frames(&mut streams), [blocked]);
    streams.on_max_stream_data(key.id, Offset(1100), NOW).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Ready(key)]);
    streams.requeue_frame(&blocked);
    assert_eq!(frames(&mut streams), []);
}

#[test]
fn copies_are_free_of_credit_and_only_of_what_flies() {
    let mut streams = client();
    let key = opened(&mut streams, 1000);
    streams.place(key, span(0, 500));
    let credit = streams.conn_view().credit;
    assert_eq!(fit_copy(&streams, key, span(100, 900), Bytes(300)), Ok(span(100, 400)));
    let beyond = span(500, 600);
    assert_eq!(fit_copy(&streams, key, beyond, Bytes(300)), Err(Refusal::NotInFlight(key, beyond)));
    assert_eq!(streams.place_copy(key, span(100, 400)).unwrap().kind, Kind::Copy);
    assert_eq!(streams.conn_view().credit, credit);
    let mut requeued = Vec::new();
    streams.on_lost(key, span(0, 500), false, PATH, &mut requeued);
    assert_eq!(requeued, [(key, span(0, 100)), (key, span(400, 500))]);
}

#[test]
fn a_reset_takes_everything_away_at_once_and_frees_the_slot_when_known() {
    let mut streams = client();
    let id = streams.open(UNI, NOW).unwrap();
    let key = streams.key(id).unwrap();
    streams.write(id, Chunk::from_static(&[0; 300])).unwrap();
    streams.place(key, span(0, 100));
    edges(&mut streams);
    streams.reset(id, 9).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Closed(key)]);
    assert_eq!((streams.conn_view().ready, streams.conn_view().unsent), (0, Bytes::ZERO));
    assert!(streams.get(key).is_none());
    assert_eq!(streams.write(id, Chunk::new()), Err(StreamError::NotOpen(id)));
    let frame = ControlFrame::ResetStream { stream: key, code: 9, final_size: Offset(100) };
    assert_eq!(frames(&mut streams), [frame]);
    streams.requeue_frame(&frame);
    assert_eq!(frames(&mut streams), [frame]);
    assert_eq!(streams.len(), 1);
    streams.on_frame_acked(&frame);
    assert!(streams.is_empty());
    streams.requeue_frame(&frame);
    assert_eq!(frames(&mut streams), []);
    streams.on_lost(key, span(0, 100), false, PATH, &mut Vec::new());
}

#[test]
fn a_frame_that_does_not_fit_stays() {
    let mut streams = client();
    let key = opened(&mut streams, 10);
    streams.reset(key.id, 1).unwrap();
    assert_eq!(streams.pop_frame(|_| false), None);
    assert!(streams.has_frames());
    assert!(streams.pop_frame(|_| true).is_some());
    assert_eq!(streams.pop_frame(|_| true), None);
    assert!(!streams.has_frames());
}

#[test]
fn slots_are_used_again_after_both_halves_are_over() {
    let mut streams = client();
    let key = opened(&mut streams, 10);
    streams.finish(key.id).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Opened(key), Edge::Written(key), Edge::Ready(key)]);
    streams.place(key, span(0, 10));
    streams.on_stream_frame(key.id, Offset(0), true, b"answer", NOW).unwrap();
    streams.on_acked(key, span(0, 10), true);
    assert_eq!(streams.len(), 1);
    let read = streams.read(key.id, u64::MAX, &mut |_| {}).unwrap();
    assert_eq!(read, Read { bytes: 6, end: true });
    assert!(streams.is_empty());
    assert_eq!(streams.key(key.id), None);
    let next = opened(&mut streams, 20);
    assert_eq!((next.slot, next.id), (key.slot, StreamId(4)));
    assert_eq!(streams.on_acked(key, span(0, 10), true), Bytes::ZERO);
    assert_eq!(streams.get(next).unwrap().seq, 1);
    // Late frames of the old stream are ignored.
    streams.on_stream_frame(key.id, Offset(0), true, b"answer", NOW).unwrap();
    assert_eq!(
        edges(&mut streams),
        [Edge::Closed(key), Edge::Opened(next), Edge::Written(next), Edge::Ready(next)]
    );
}

#[test]
fn a_peers_stream_opens_all_of_its_kind_below() {
    let mut streams = server();
    streams.on_stream_frame(StreamId(8), Offset(0), false, b"x", NOW).unwrap();
    assert_eq!(
        events(&mut streams),
        [
            StreamEvent::Opened(StreamId(0)),
            StreamEvent::Opened(StreamId(4)),
            StreamEvent::Opened(StreamId(8)),
            StreamEvent::Readable(StreamId(8)),
        ]
    );
    assert_eq!(streams.views().count(), 3);
    streams.on_stream_frame(StreamId(2), Offset(0), false, b"x", NOW).unwrap();
    assert_eq!(streams.views().count(), 3);
    assert_eq!(
        streams.on_stream_frame(StreamId(32), Offset(0), false, b"x", NOW),
        Err(StreamFault::StreamLimit)
    );
}

#[test]
fn frames_for_the_wrong_direction_or_an_unopened_stream_are_faults() {
    let mut streams = client();
    let own = streams.open(UNI, NOW).unwrap();
    let fault = Err(StreamFault::StreamState);
    assert_eq!(streams.on_stream_frame(own, Offset(0), false, b"x", NOW), fault);
    assert_eq!(streams.on_reset_stream(own, 0, Offset(0), NOW), fault);
    assert_eq!(streams.on_stream_data_blocked(own, NOW), fault);
    assert_eq!(streams.on_stop_sending(StreamId(3), 0, NOW), fault);
    assert_eq!(streams.on_max_stream_data(StreamId(3), Offset(9), NOW), fault);
    assert_eq!(streams.on_stream_frame(StreamId(0), Offset(0), false, b"x", NOW), fault);
    assert_eq!(streams.on_stop_sending(StreamId(0), 0, NOW), fault);
    assert_eq!(streams.on_max_stream_data(StreamId(1), Offset(9), NOW), Ok(()));
}

#[test]
fn received_data_is_bounded_over_all_streams() {
    let mut streams = server();
    streams.on_stream_frame(StreamId(0), Offset(0), false, &[0; 1000], NOW).unwrap();
    assert_eq!(
        streams.on_stream_frame(StreamId(4), Offset(0), false, &[0; 501], NOW),
        Err(StreamFault::FlowControl)
    );
    streams.on_stream_frame(StreamId(4), Offset(0), false, &[0; 500], NOW).unwrap();
    streams.read(StreamId(0), u64::MAX, &mut |_| {}).unwrap();
    let key = streams.key(StreamId(0)).unwrap();
    let stream_credit = ControlFrame::MaxStreamData { stream: key, limit: Offset(2000) };
    assert_eq!(frames(&mut streams), [ControlFrame::MaxData { limit: 2500 }, stream_credit]);
    streams.read(StreamId(4), 100, &mut |_| {}).unwrap();
    assert_eq!(frames(&mut streams), []);
    streams.requeue_frame(&ControlFrame::MaxData { limit: 2500 });
    streams.requeue_frame(&ControlFrame::MaxData { limit: 1500 });
    streams.requeue_frame(&stream_credit);
    assert_eq!(frames(&mut streams), [ControlFrame::MaxData { limit: 2600 }, stream_credit]);
}

#[test]
fn a_reset_by_the_peer_gives_its_credit_back_and_ends_the_half() {
    let mut streams = server();
    streams.on_stream_frame(StreamId(2), Offset(0), false, &[0; 300], NOW).unwrap();
    streams.on_reset_stream(StreamId(2), 7, Offset(900), NOW).unwrap();
    assert_eq!(
        events(&mut streams).last(),
        Some(&StreamEvent::Reset { stream: StreamId(2), code: 7 })
    );
    assert!(streams.is_empty());
    assert_eq!(
        frames(&mut streams),
        [
            ControlFrame::MaxData { limit: 2400 },
            ControlFrame::MaxStreams { direction: UNI, limit: 4 }
        ]
    );
    streams.on_stream_frame(StreamId(14), Offset(0), false, b"", NOW).unwrap();
}

#[test]
fn a_stream_that_nobody_wants_goes_on_until_its_size_is_known() {
    let mut streams = server();
    streams.on_stream_frame(StreamId(2), Offset(0), false, &[0; 300], NOW).unwrap();
    let key = streams.key(StreamId(2)).unwrap();
    streams.stop_sending(StreamId(2), 5).unwrap();
    let stop = ControlFrame::StopSending { stream: key, code: 5 };
    assert_eq!(frames(&mut streams), [stop]);
    streams.requeue_frame(&stop);
    assert_eq!(frames(&mut streams), [stop]);
    assert!(streams.read(StreamId(2), 10, &mut |_| {}).is_err());
    streams.on_reset_stream(StreamId(2), 5, Offset(400), NOW).unwrap();
    assert!(streams.is_empty());
    streams.requeue_frame(&stop);
    assert!(!frames(&mut streams).contains(&stop));
}

#[test]
fn stop_sending_resets_the_stream_with_the_same_code() {
    let mut streams = client();
    let key = opened(&mut streams, 100);
    streams.place(key, span(0, 40));
    edges(&mut streams);
    streams.on_stop_sending(key.id, 3, NOW).unwrap();
    streams.on_stop_sending(key.id, 3, NOW).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Closed(key)]);
    assert_eq!(events(&mut streams), [StreamEvent::Stopped { stream: key.id, code: 3 }]);
    let frame = ControlFrame::ResetStream { stream: key, code: 3, final_size: Offset(40) };
    assert_eq!(frames(&mut streams), [frame]);
}

#[test]
fn a_stream_of_the_peer_can_be_stopped_before_anything_of_it_came() {
    let mut streams = client();
    let pushed = StreamId(3);
    assert_eq!(streams.stop_sending(pushed, 7), Err(StreamError::NotOpen(pushed)));
    assert!(streams.ensure_receiving(pushed, NOW));
    streams.stop_sending(pushed, 7).unwrap();
    let stream = streams.key(pushed).unwrap();
    assert_eq!(frames(&mut streams), [ControlFrame::StopSending { stream, code: 7 }]);
    assert!(edges(&mut streams).is_empty());
    // Neither one of this end nor one beyond the limit.
    for stream in [StreamId(2), StreamId(4 * 1_000_000 + 3)] {
        assert!(!streams.ensure_receiving(stream, NOW), "{stream}");
    }
}

#[test]
fn the_policy_hears_nothing_of_a_stream_that_is_over_before_it_is_told() {
    let mut streams = server();
    streams.on_stop_sending(StreamId(0), 3, NOW).unwrap();
    assert_eq!(edges(&mut streams), []);
    streams.on_stream_frame(StreamId(4), Offset(0), false, b"x", NOW).unwrap();
    let key = streams.key(StreamId(4)).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Opened(key)]);
}

#[test]
fn control_streams_are_hidden_and_served_by_identifier() {
    let mut streams = client();
    let first = streams.open(BIDI, NOW).unwrap();
    let second = streams.open(UNI, NOW).unwrap();
    streams.set_control(second).unwrap();
    streams.set_control(first).unwrap();
    streams.write(second, Chunk::from_static(&[2; 10])).unwrap();
    streams.write(first, Chunk::from_static(&[1; 10])).unwrap();
    assert_eq!(edges(&mut streams), []);
    assert_eq!((streams.conn_view().ready, streams.conn_view().unsent), (0, Bytes::ZERO));
    let key = streams.key(first).unwrap();
    assert!(streams.get(key).is_none());
    assert!(streams.is_control(key));
    assert_eq!(streams.fit(key, None, Bytes(9)), Err(Refusal::NoStream(key)));
    assert_eq!(streams.next_control(Bytes(6)), Some((key, span(0, 6))));
    streams.place(key, span(0, 6));
    assert_eq!(streams.next_control(Bytes(6)), Some((key, span(6, 10))));
    streams.place(key, span(6, 10));
    let other = streams.key(second).unwrap();
    assert_eq!(streams.next_control(Bytes(100)), Some((other, span(0, 10))));
    let mut requeued = Vec::new();
    streams.on_lost(key, span(0, 6), false, PATH, &mut requeued);
    assert_eq!(requeued, []);
    assert_eq!(streams.next_control(Bytes(100)), Some((key, span(0, 6))));
}

#[test]
fn a_stream_that_becomes_a_control_stream_late_closes_for_the_policy() {
    let mut streams = server();
    streams.on_stream_frame(StreamId(0), Offset(0), false, b"x", NOW).unwrap();
    let key = streams.key(StreamId(0)).unwrap();
    streams.write(StreamId(0), Chunk::from_static(b"settings")).unwrap();
    edges(&mut streams);
    streams.set_control(StreamId(0)).unwrap();
    assert_eq!(edges(&mut streams), [Edge::Closed(key)]);
    assert_eq!((streams.conn_view().ready, streams.conn_view().unsent), (0, Bytes::ZERO));
    assert_eq!(streams.next_control(Bytes(100)), Some((key, span(0, 8))));
}

#[test]
fn closed_streams_of_the_peer_make_room_for_new_ones() {
    let mut streams = server();
    for index in 0..1000 {
        let id = StreamId::new(Role::Client, BIDI, index);
        streams.on_stream_frame(id, Offset(0), true, b"q", NOW).unwrap();
        streams.read(id, 10, &mut |_| {}).unwrap();
        streams.write(id, Chunk::from_static(b"a")).unwrap();
        streams.finish(id).unwrap();
        let key = streams.key(id).unwrap();
        streams.place(key, span(0, 1));
        streams.on_acked(key, span(0, 1), true);
        streams.on_max_data(1500 + index);
        let granted = frames(&mut streams);
        assert!(granted.contains(&ControlFrame::MaxStreams { direction: BIDI, limit: index + 9 }));
    }
    assert_eq!(streams.slots.len(), 1);
    streams.requeue_frame(&ControlFrame::MaxStreams { direction: BIDI, limit: 1007 });
    assert_eq!(frames(&mut streams), []);
    let newest = ControlFrame::MaxStreams { direction: BIDI, limit: 1008 };
    streams.requeue_frame(&newest);
    assert_eq!(frames(&mut streams), [newest]);
}

#[test]
fn a_peer_may_cancel_some_of_its_streams_and_no_more() {
    let limits = StreamLimits { cancels: CancelLimit { burst: 3, per_second: 1 }, ..LIMITS };
    let mut streams = Streams::new(Role::Server, limits);
    streams.set_peer_limits(PEER);
    let id = |index| StreamId::new(Role::Client, BIDI, index);
    // Both directions of one stream count once, and what we do not want does not count.
    streams.on_stop_sending(id(0), 1, NOW).unwrap();
    streams.on_reset_stream(id(0), 1, Offset(0), NOW).unwrap();
    streams.on_stream_frame(id(1), Offset(0), false, b"x", NOW).unwrap();
    streams.stop_sending(id(1), 2).unwrap();
    streams.on_reset_stream(id(1), 2, Offset(1), NOW).unwrap();
    streams.on_reset_stream(id(2), 1, Offset(0), NOW).unwrap();
    streams.on_stop_sending(id(3), 1, NOW).unwrap();
    let cancelled = Err(StreamFault::Cancelled);
    assert_eq!(streams.on_stop_sending(id(4), 1, NOW), cancelled);
    // With time, others may be.
    let later = NOW + quipu_base::Duration::from_secs(1);
    streams.on_reset_stream(id(5), 1, Offset(0), later).unwrap();
    assert_eq!(streams.on_reset_stream(id(6), 1, Offset(0), later), cancelled);
    // Streams of ours are ours to open: the peer may refuse them all.
    for _ in 0..3 {
        let own = opened(&mut streams, 1);
        streams.on_stop_sending(own.id, 1, NOW).unwrap();
    }
}

#[test]
fn cancelling_one_of_many_streams_costs_the_same_as_one_of_few() {
    const STREAMS: usize = 4_000;
    crate::cost::grows_in_proportion(8, |times| {
        let count = (STREAMS * times) as u64;
        let limits = StreamLimits {
            bidirectional: count,
            cancels: CancelLimit { burst: u32::MAX, per_second: 0 },
            ..LIMITS
        };
        let mut streams = Streams::new(Role::Server, limits);
        streams.set_peer_limits(PEER);
        // All are opened by the first frame, and none is told to a policy before it ends.
        for index in (0..count).rev() {
            streams.on_stop_sending(StreamId::new(Role::Client, BIDI, index), 1, NOW).unwrap();
        }
        assert_eq!(edges(&mut streams), []);
    });
}

/// A client whose peer takes nothing, with a buffer of so many bytes.
fn stalled(send_buffer: u64) -> Streams {
    let mut streams = Streams::new(Role::Client, StreamLimits { send_buffer, ..LIMITS });
    streams.set_peer_limits(PeerLimits { max_data: 1 << 20, max_streams_bidi: 8, ..PEER });
    streams
}

#[test]
fn writes_take_what_there_is_room_for_and_tell_when_there_is_more() {
    let mut streams = stalled(1_600);
    let id = streams.open(BIDI, NOW).unwrap();
    assert_eq!(streams.send_room(id), 1_600);
    assert_eq!(streams.write(id, vec![7; 1_000].into()), Ok(1_000));
    assert_eq!(streams.write(id, vec![7; 1_000].into()), Ok(600));
    assert_eq!(streams.write(id, vec![7; 1_000].into()), Ok(0));
    let key = streams.key(id).unwrap();
    streams.place(key, span(0, 1_000));
    assert_eq!(events(&mut streams), [], "sent is not acknowledged");
    streams.on_acked(key, span(0, 999), false);
    assert_eq!(streams.send_room(id), 0, "the chunk is kept whole");
    streams.on_acked(key, span(999, 1_000), false);
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);
    assert_eq!(streams.write(id, vec![7; 3_000].into()), Ok(1_000));
    // Told once for each write that took a part.
    streams.reset(id, 0).unwrap();
    assert_eq!(events(&mut streams), []);
}

#[test]
fn streams_that_stand_still_do_not_stop_the_others() {
    let mut streams = stalled(1_600);
    let hoards = streams.open(BIDI, NOW).unwrap();
    assert_eq!(streams.write(hoards, vec![7; 5_000].into()), Ok(1_600));
    let small = streams.open(BIDI, NOW).unwrap();
    assert_eq!(streams.write(small, vec![7; 5_000].into()), Ok(100));
    assert_eq!(streams.write(small, vec![7; 5_000].into()), Ok(0));
    let key = streams.key(small).unwrap();
    streams.place(key, span(0, 100));
    streams.on_acked(key, span(0, 100), false);
    let told = [StreamEvent::Drained(small), StreamEvent::Writable(small)];
    assert_eq!(events(&mut streams), told);
    assert_eq!(streams.write(small, vec![7; 5_000].into()), Ok(100));
    // And once the other one is gone, all is there for it.
    streams.reset(hoards, 0).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable(small)]);
    assert_eq!(streams.write(small, vec![7; 5_000].into()), Ok(1_500));
}

#[test]
fn of_one_stream_no_more_is_taken_than_may_be_unsent() {
    let limits = StreamLimits { unsent: 400, ..LIMITS };
    let mut streams = Streams::new(Role::Client, limits);
    streams.set_peer_limits(PeerLimits { max_data: 1 << 20, max_streams_bidi: 8, ..PEER });
    let id = streams.open(BIDI, NOW).unwrap();
    assert_eq!(streams.write(id, vec![7; 1_000].into()), Ok(400));
    assert_eq!(streams.write(id, vec![7; 600].into()), Ok(0));
    let other = streams.open(BIDI, NOW).unwrap();
    assert_eq!(streams.write(other, vec![7; 1_000].into()), Ok(400));
    let key = streams.key(id).unwrap();
    streams.place(key, span(0, 199));
    assert_eq!(events(&mut streams), [], "more than half is unsent");
    streams.place(key, span(199, 200));
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)], "sent is enough");
    assert_eq!(streams.write(id, vec![7; 600].into()), Ok(200));
}

#[test]
fn who_waits_for_its_own_bytes_to_be_sent_waits_for_the_others_too() {
    let limits = StreamLimits { unsent: 400, send_buffer: 1_600, ..LIMITS };
    let mut streams = Streams::new(Role::Client, limits);
    streams.set_peer_limits(PeerLimits { max_data: 1 << 20, max_streams_bidi: 8, ..PEER });
    let id = streams.open(BIDI, NOW).unwrap();
    assert_eq!(streams.write(id, vec![7; 1_000].into()), Ok(400));
    let hoards = streams.open(BIDI, NOW).unwrap();
    streams.write_all(hoards, vec![7; 1_200].into()).unwrap();
    let key = streams.key(id).unwrap();
    streams.place(key, span(0, 400));
    assert_eq!(events(&mut streams), [StreamEvent::Drained(id)]);
    streams.reset(hoards, 0).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);
}

#[test]
fn control_streams_and_who_asks_for_it_are_not_limited() {
    let mut streams = stalled(1_600);
    let control = streams.open(UNI, NOW).unwrap();
    streams.set_control(control).unwrap();
    assert_eq!(streams.write(control, vec![7; 5_000].into()), Ok(5_000));
    let id = streams.open(BIDI, NOW).unwrap();
    streams.write_all(id, vec![7; 5_000].into()).unwrap();
    assert_eq!(streams.send_room(id), 0);
    streams.finish(id).unwrap();
    assert_eq!(streams.write(id, vec![7; 1].into()), Err(StreamError::Finished(id)));
}

#[test]
fn a_write_that_is_refused_does_not_wait_for_room() {
    let mut streams = stalled(1_600);
    let hoards = streams.open(BIDI, NOW).unwrap();
    streams.write_all(hoards, vec![7; 1_600].into()).unwrap();
    let id = streams.open(BIDI, NOW).unwrap();
    streams.write(id, vec![7; 92].into()).unwrap();
    streams.finish(id).unwrap();
    assert_eq!(streams.write(id, vec![7; 700].into()), Err(StreamError::Finished(id)));
    streams.reset(hoards, 0).unwrap();
    assert_eq!(events(&mut streams), []);
}

/// A few bytes of a peer open thousands of streams, which cost little until they are named.
#[test]
fn streams_far_below_the_one_of_a_frame_get_a_slot_once_they_are_named() {
    let limits = StreamLimits { bidirectional: 4_000, ..LIMITS };
    let mut streams = Streams::new(Role::Server, limits);
    streams.set_peer_limits(PEER);
    let own = |index| StreamId::new(Role::Client, BIDI, index);
    let deliver = |streams: &mut Streams, index| {
        streams.on_stream_frame(own(index), Offset(0), true, &[7], NOW).unwrap();
        events(streams)
    };
    let told = |index| [StreamEvent::Opened(own(index)), StreamEvent::Readable(own(index))];
    // A gap of what may be overtaken is opened at once.
    assert_eq!(deliver(&mut streams, MOST_OPENED).len() as u64, MOST_OPENED + 2);
    assert_eq!(streams.len() as u64, MOST_OPENED + 1);
    // Of a larger one, nothing but the stream itself.
    assert_eq!(deliver(&mut streams, 3_999), told(3_999));
    assert_eq!(streams.len() as u64, MOST_OPENED + 2);
    assert_eq!(streams.slots.len() as u64, MOST_OPENED + 2);
    assert_eq!(streams.key(own(2_000)), None);
    assert_eq!(streams.open(BIDI, NOW), Ok(StreamId(1)));
    // Those between are open all the same, in any order and by any frame.
    assert_eq!(deliver(&mut streams, 2_000), told(2_000));
    assert_eq!(deliver(&mut streams, 65), told(65));
    streams.on_max_stream_data(own(3_000), Offset(1_100), NOW).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Opened(own(3_000))]);
    assert_eq!(streams.ensure_open(own(70), NOW).map(|key| key.id), Some(own(70)));
    assert_eq!(events(&mut streams), [StreamEvent::Opened(own(70))]);
    // Over is over.
    for id in [own(2_000), own(65)] {
        streams.read(id, 9, &mut |_| {}).unwrap();
        streams.reset(id, 0).unwrap();
        let resets = frames(&mut streams);
        assert!(resets.iter().any(|frame| matches!(frame, ControlFrame::ResetStream { .. })));
        for frame in &resets {
            streams.on_frame_acked(frame);
        }
        assert_eq!(streams.key(id), None);
        streams.on_max_stream_data(id, Offset(1_200), NOW).unwrap();
        assert_eq!(events(&mut streams), []);
    }
}
