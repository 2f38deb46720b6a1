use super::*;

/// Queues with room for so many datagrams of 36 bytes.
fn room_for(sent: u64, received: u64) -> Datagrams {
    let bytes = |count: u64| quipu_base::Bytes(100 * count);
    Datagrams::new(DatagramConfig {
        send_queue: bytes(sent),
        receive_queue: bytes(received),
        ..DatagramConfig::default()
    })
}

fn send(datagrams: &mut Datagrams, length: usize) -> (DatagramId, Vec<u64>) {
    let mut dropped = Vec::new();
    let id = datagrams.send(Bytes::from(vec![0; length]), |id| dropped.push(id.0));
    (id, dropped)
}

#[test]
fn the_oldest_make_room_and_are_named() {
    let mut datagrams = room_for(3, 0);
    for expected in 0..3 {
        assert_eq!(send(&mut datagrams, 36), (DatagramId(expected), vec![]));
    }
    assert_eq!(send(&mut datagrams, 36), (DatagramId(3), vec![0]));
    assert_eq!(send(&mut datagrams, 136), (DatagramId(4), vec![1, 2]));
    assert_eq!(datagrams.counters.dropped_unsent, 3);
    assert_eq!(datagrams.on_written(), Some(DatagramId(3)));
    assert_eq!(datagrams.next().map(Bytes::len), Some(136));
    assert_eq!(datagrams.drop_next(), Some(DatagramId(4)));
    assert!(datagrams.is_idle());
    assert_eq!((datagrams.on_written(), datagrams.drop_next()), (None, None));
    assert_eq!((datagrams.counters.sent, datagrams.counters.dropped_unsent), (1, 4));
    assert_eq!(datagrams.queues.unwrap().outgoing.held, 0);
}

#[test]
fn room_is_told_once_half_of_the_queue_is_free() {
    let mut datagrams = room_for(4, 0);
    assert!(datagrams.has_room(1_000), "what is alone has room");
    for _ in 0..4 {
        assert!(datagrams.has_room(36));
        send(&mut datagrams, 36);
    }
    assert!(!datagrams.room_to_tell(), "nobody asked");
    assert!(!datagrams.has_room(0) && !datagrams.room_to_tell());
    datagrams.on_written();
    assert!(!datagrams.room_to_tell(), "a quarter is free");
    datagrams.drop_next();
    assert!(datagrams.room_to_tell() && !datagrams.room_to_tell());
    assert!(!datagrams.has_room(1_000) && datagrams.has_room(36));
    assert!(!datagrams.room_to_tell(), "there was room at last");
}

#[test]
fn one_datagram_is_kept_however_large_it_is() {
    let mut datagrams = room_for(1, 1);
    assert_eq!(send(&mut datagrams, 1_000).1, []);
    assert_eq!(send(&mut datagrams, 0).1, [0]);
    assert_eq!(datagrams.next().map(Bytes::len), Some(0));
    assert!(datagrams.receive(&[1; 1_000]));
    assert!(!datagrams.receive(&[2; 500]));
    assert_eq!(datagrams.read().as_deref(), Some(&[2; 500][..]));
    assert_eq!(datagrams.read(), None);
    assert_eq!((datagrams.counters.received, datagrams.counters.dropped_unread), (2, 1));
}

#[test]
fn empty_datagrams_take_room_too() {
    let mut datagrams = room_for(1, 1);
    for _ in 0..10_000 {
        send(&mut datagrams, 0);
        datagrams.receive(&[]);
    }
    let queues = datagrams.queues.unwrap();
    assert_eq!((queues.outgoing.waiting.len(), queues.incoming.waiting.len()), (1, 1));
}

#[test]
fn the_application_is_told_once_until_it_read_all() {
    let mut datagrams = room_for(1, 10);
    assert!(datagrams.receive(b"a"));
    assert!(!datagrams.receive(b"b"));
    assert_eq!(datagrams.read().as_deref(), Some(&b"a"[..]));
    assert!(!datagrams.receive(b"c"), "there was something left to read");
    assert_eq!(datagrams.read().as_deref(), Some(&b"b"[..]));
    assert_eq!(datagrams.read().as_deref(), Some(&b"c"[..]));
    assert!(!datagrams.receive(b"d"), "it has not seen the end yet");
    assert_eq!(datagrams.read().as_deref(), Some(&b"d"[..]));
    assert_eq!(datagrams.read(), None);
    assert!(datagrams.receive(b"e"));
}

#[test]
fn every_fourth_packet_is_for_streams() {
    let mut datagrams = room_for(1, 1);
    let mut row = String::new();
    for _ in 0..9 {
        let streams = datagrams.gives_way();
        row.push(if streams { 's' } else { 'd' });
        datagrams.on_packet(!streams);
    }
    assert_eq!(row, "dddsdddsd");
}
