//! The dependency tree that the server rebuilds in its transport.

use quipu_base::{Duration, StreamId};
use quipu_http::h2::ClientEvent;
use quipu_http::h2::{
    Body, Client, ErrorCode, Failure, FrameStreamId, Limits, Request, RequestError, ServerConfig,
    StreamPriority,
};
use quipu_policy::{NodeId, NodeKey, Priorities};

use crate::loopback::Loopback;
use crate::session::{Session, get, ok};

fn id(value: u64) -> FrameStreamId {
    FrameStreamId::try_from(value).unwrap()
}

fn at(parent: u64, weight: u16, exclusive: bool) -> StreamPriority {
    StreamPriority { parent: id(parent), weight, exclusive }
}

fn prioritised(priority: StreamPriority) -> Request {
    Request { fields: get("/"), body: Body::Empty, priority: Some(priority) }
}

/// All nodes but the root as (name, parent, weight), by name; the root is 0.
fn nodes(tree: &Priorities) -> Vec<(u64, u64, u16)> {
    let name = |key| match tree.node(key).unwrap().id {
        NodeId::ROOT => 0,
        NodeId(name) => name,
    };
    let mut nodes: Vec<_> = (1..1000)
        .map(NodeKey)
        .filter_map(|key| tree.node(key))
        .map(|node| (node.id.0, name(node.parent), node.weight))
        .collect();
    nodes.sort_unstable();
    nodes
}

const FIREFOX_GROUPS: [(u64, u64, u16); 6] =
    [(3, 0, 201), (5, 0, 101), (7, 0, 1), (9, 7, 1), (11, 3, 1), (13, 0, 241)];

#[test]
fn firefox_groups_and_requests_make_its_tree() {
    for seed in 0..20 {
        let mut session = Session::idle(seed, ServerConfig::default());
        let groups =
            FIREFOX_GROUPS.map(|(node, parent, weight)| (id(node), at(parent, weight, false)));
        session.client.start(&mut session.loopback.client, &groups).unwrap();
        for (parent, weight) in [(13, 32), (3, 32), (3, 32), (11, 22), (11, 42), (5, 22), (9, 2)] {
            session.request(prioritised(at(parent, weight, false)));
        }
        session.settle();
        let mut expected = FIREFOX_GROUPS.to_vec();
        expected.extend([
            (4, 13, 32),
            (8, 3, 32),
            (12, 3, 32),
            (16, 11, 22),
            (20, 11, 42),
            (24, 5, 22),
            (28, 9, 2),
        ]);
        expected.sort_unstable();
        assert_eq!(nodes(&session.loopback.server.tree), expected);
    }
}

/// Each request depends exclusively on the newest open one of its level or above, as Chrome does it.
#[test]
fn chrome_requests_make_one_chain_in_order_of_level_and_age() {
    const WEIGHTS: [u16; 5] = [256, 220, 183, 147, 110];
    let levels = [0, 3, 3, 0, 1, 4, 2, 3, 0, 1];
    let mut session = Session::started(3);
    let mut open: Vec<(usize, StreamId)> = Vec::new();
    for level in levels {
        let parent = open.iter().rposition(|&(other, _)| other <= level);
        let parent_stream = parent.map_or(0, |at| open[at].1.0);
        let stream = session.request(prioritised(at(parent_stream, WEIGHTS[level], true)));
        // Kept sorted by level, and by age within one.
        open.insert(parent.map_or(0, |at| at + 1), (level, stream));
    }
    session.settle();
    let mut expected: Vec<_> = open
        .iter()
        .enumerate()
        .map(|(at, &(level, stream))| {
            let parent = at.checked_sub(1).map_or(0, |before| open[before].1.0);
            (stream.0, parent, WEIGHTS[level])
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(nodes(&session.loopback.server.tree), expected);
}

#[test]
fn requests_move_when_the_client_says_so() {
    let mut session = Session::started(4);
    let first = session.request(prioritised(at(0, 100, false)));
    let second = session.request(prioritised(at(4, 50, false)));
    session.settle();
    let (first, second) = (id(first.0), id(second.0));
    session.client.prioritise(&mut session.loopback.client, first, at(8, 7, true)).unwrap();
    session.settle();
    assert_eq!(nodes(&session.loopback.server.tree), [(4, 8, 7), (8, 0, 50)]);
    let error = session.client.prioritise(&mut session.loopback.client, second, at(8, 7, true));
    assert_eq!(error, Err(RequestError::SelfDependency(second)));
    let error = session.client.prioritise(&mut session.loopback.client, second, at(0, 257, true));
    assert_eq!(error, Err(RequestError::Weight(257)));
}

#[test]
fn a_closed_request_keeps_its_node_for_two_round_trips() {
    let mut session = Session::started(5);
    let stream = session.request(prioritised(at(0, 100, false)));
    session.settle();
    session.respond(stream, &ok(), Body::Empty);
    session.settle();
    assert_eq!(session.server.active(), 0);
    assert_eq!(nodes(&session.loopback.server.tree), [(4, 0, 100)]);
    let due = session.server.poll_timeout().unwrap();
    assert!(due <= session.now + Duration::from_millis(100));
    let early = quipu_base::Instant::from_nanos(due.as_nanos() - 1);
    session.server.handle_timeout(&mut session.loopback.server, early);
    assert_eq!(session.loopback.server.tree.len(), 2);
    session.server.handle_timeout(&mut session.loopback.server, due);
    assert!(session.loopback.server.tree.is_empty());
    assert_eq!(session.server.poll_timeout(), None);
}

/// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>
#[test]
fn a_request_that_depends_on_itself_is_reset() {
    let mut session = Session::started(6);
    let stream = session.request(prioritised(at(0, 100, false)));
    session.settle();
    // PRIORITY of 4 on 4.
    session.inject(&[0, 0, 5, 2, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0]);
    session.settle();
    let failure = Failure::Reset(ErrorCode::PROTOCOL_ERROR.to_quic());
    assert_eq!(session.client_events, [ClientEvent::ResponseFailed { stream, failure }]);
    // HEADERS with priority of 8 on 8.
    session.inject(&[0, 0, 6, 1, 0x25, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0x82]);
    session.settle();
    assert_eq!(session.server.active(), 0);
    assert_eq!(session.client_events.len(), 1);
}

#[test]
fn a_client_starts_only_on_stream_zero_and_once() {
    let mut loopback = Loopback::new();
    let mut client = Client::new(Limits::default());
    let bad = [(id(3), at(3, 16, false))];
    let error = client.start(&mut loopback.client, &bad);
    assert_eq!(error, Err(RequestError::SelfDependency(id(3))));
    let early = client.request(&mut loopback.client, prioritised(at(0, 1, false)));
    assert_eq!(early, Err(RequestError::NotOpen));
    client.start(&mut loopback.client, &[]).unwrap();
    assert_eq!(client.start(&mut loopback.client, &[]), Err(RequestError::NoStream));
}
