//! The dynamic table across a connection.

use bytes::Bytes;
use proptest::prelude::*;
use quipu_http::h3::{
    Body, ClientConfig, ClientEvent, ErrorCode, Limits, Request, ServerConfig, TableUse,
};

use crate::session::{Session, get, ok};

#[test]
fn large_heads_that_return_take_a_few_octets() {
    let mut session = Session::started(1);
    let agent = "Mozilla/5.0 (X11; Linux x86_64) a user agent as long as those of browsers are";
    let cookie = "session=0123456789abcdef0123456789abcdef; theme=dark; consent=all";
    let fields =
        |nth: usize| get(&format!("/{nth}")).with("user-agent", agent).with("cookie", cookie);
    for nth in 0..100 {
        let stream = session.request(Request { fields: fields(nth), body: Body::Empty });
        session.settle();
        let answer = ok().with("content-security-policy", "default-src 'self'; img-src *");
        session.respond(stream, &answer, Body::Empty);
        session.settle();
    }
    let [client, server] = [session.client.table_use(), session.server.table_use()];
    assert!(client.references > 150, "{client:?}");
    assert!(server.references > 80, "{server:?}");
    assert_eq!((client.inserted, server.inserted), (server.received, client.received));
}

#[test]
fn ends_without_a_table_understand_each_other() {
    let limits = Limits { decoding_table: 0, blocked_streams: 0, ..Limits::default() };
    let client = ClientConfig { limits, ..ClientConfig::default() };
    let server = ServerConfig { limits, ..ServerConfig::default() };
    let mut session = Session::with(2, client, server);
    for _ in 0..3 {
        let stream = session.get("/");
        session.settle();
        session.respond(stream, &ok().with("x", "y"), Body::Empty);
        session.settle();
        assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream }));
    }
    assert_eq!(session.client.table_use(), TableUse::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Heads that wait for the table, streams that are cancelled while they wait, small tables that
    /// evict: whatever the order of delivery, each head that arrives is the one that was sent.
    #[test]
    fn heads_survive_any_order_of_delivery_and_any_cancellation(
        seed in any::<u64>(),
        table in prop_oneof![Just(0_u32), 64..400_u32, Just(4_096)],
        blocked in 0_u16..6,
        steps in proptest::collection::vec((0_u8..9, 0_u8..10, 0_usize..20), 1..60),
    ) {
        let limits = Limits {
            decoding_table: table,
            blocked_streams: blocked,
            ..Limits::default()
        };
        let client = ClientConfig { limits, ..ClientConfig::default() };
        let server = ServerConfig { limits, ..ServerConfig::default() };
        let mut session = Session::with(seed >> 1, client, server);
        let mut sent = Vec::new();
        let mut cancelled = Vec::new();
        for (name, value, moves) in steps {
            let fields = get("/")
                .with(format!("name-{name}"), format!("value-{}", value % 4))
                .with("other", format!("{}", name % 3));
            let stream = session.request(Request { fields: fields.clone(), body: Body::Empty });
            sent.push((stream, fields));
            for _ in 0..moves {
                session.step();
            }
            if value == 9 {
                session.client.cancel(&mut session.loopback.client, stream, ErrorCode::REQUEST_CANCELLED);
                cancelled.push(stream);
            }
        }
        session.settle();
        for (stream, fields) in &sent {
            let head = session.server_events.iter().find_map(|event| match event {
                quipu_http::h3::ServerEvent::RequestHead { stream: s, fields, .. } if s == stream => {
                    Some(fields)
                }
                _ => None,
            });
            match head {
                Some(head) => prop_assert_eq!(head, fields),
                None => prop_assert!(cancelled.contains(stream)),
            }
        }
        for (stream, _) in sent.iter().filter(|(stream, _)| !cancelled.contains(stream)) {
            session.respond(*stream, &ok().with("x", "y"), Body::Whole(Bytes::from_static(b"z")));
        }
        session.settle();
        prop_assert_eq!(session.client.active(), 0);
        prop_assert_eq!(session.server.active(), 0);
    }
}
