//! Settings: what they allow, and what is remembered for 0-RTT.

use quipu_http::field::FieldList;
use quipu_http::h3::{
    Body, BodyError, ClientConfig, ClientEvent, ErrorCode, Limits, Request, RequestError,
    RespondError, ServerConfig, Settings,
};

use crate::raw::{CONTROL, Raw, settings};
use crate::session::{Session, get, ok};

#[test]
fn ends_state_what_they_are_ready_for() {
    let limits = Limits { field_list: 5_000, blocked_streams: 7, ..Limits::default() };
    let server = ServerConfig {
        limits,
        extended_connect: true,
        grease: Some(99),
        ..ServerConfig::default()
    };
    let client = ClientConfig { grease: Some(123_456_789), ..ClientConfig::default() };
    let mut session = Session::with(1, client, server);
    session.get("/");
    session.settle();
    let stated = Settings {
        table_capacity: 4_096,
        blocked_streams: 7,
        max_field_section: Some(5_000),
        extended_connect: true,
        datagrams: false,
    };
    assert_eq!(session.client.peer_settings(), Some(&stated));
    assert_eq!(session.server.peer_settings().unwrap().max_field_section, Some(65_536));
}

#[test]
fn fields_beyond_the_peers_limit_are_not_sent() {
    let limits = Limits { field_list: 300, ..Limits::default() };
    let client = ClientConfig { limits, ..ClientConfig::default() };
    let server = ServerConfig { limits, ..ServerConfig::default() };
    let mut session = Session::with(2, client, server);
    let stream = session.get("/");
    session.settle();
    let many = (0..10).fold(get("/"), |fields, nth| fields.with("x", nth.to_string()));
    let size = many.size();
    let request = Request { fields: many, body: Body::Empty };
    let refused = session.client.request(&mut session.loopback.client, request);
    assert_eq!(refused, Err(RequestError::FieldsTooLarge { size, limit: 300 }));
    let many = (0..10).fold(ok(), |fields, nth| fields.with("x", nth.to_string()));
    let size = many.size();
    let refused = session.server.respond(&mut session.loopback.server, stream, &many, Body::Empty);
    assert_eq!(refused, Err(RespondError::FieldsTooLarge { size, limit: 300 }));
    session.respond(stream, &ok(), Body::Streamed);
    let trailers = (0..10).fold(FieldList::new(), |fields, nth| fields.with("x", nth.to_string()));
    let size = trailers.size();
    let transport = &mut session.loopback.server;
    let refused = session.server.finish(transport, stream, Some(&trailers));
    assert_eq!(refused, Err(BodyError::TrailersTooLarge { size, limit: 300 }));
    session.server.finish(transport, stream, None).unwrap();
}

#[test]
fn remembered_settings_hold_until_new_ones_come_and_may_not_shrink() {
    let remembered = Settings {
        table_capacity: 4_096,
        blocked_streams: 100,
        max_field_section: Some(300),
        extended_connect: true,
        datagrams: false,
    };
    let config = ClientConfig { remembered: Some(remembered), ..ClientConfig::default() };
    for (stated, allowed) in [
        (vec![(1, 4_096), (7, 100), (6, 300), (8, 1)], true),
        (vec![(1, 4_096), (7, 101), (6, 301), (8, 1)], true),
        (vec![(1, 4_096), (7, 100), (8, 1)], false),
        (vec![(1, 4_095), (7, 100), (6, 300), (8, 1)], false),
        (vec![(1, 4_096), (7, 99), (6, 300), (8, 1)], false),
        (vec![(1, 4_096), (7, 100), (6, 299), (8, 1)], false),
        (vec![(1, 4_096), (7, 100), (6, 300)], false),
    ] {
        let mut raw = Raw::server(config);
        raw.uni(CONTROL, &settings(&stated));
        let expected = (!allowed).then_some(ErrorCode::SETTINGS_ERROR);
        assert_eq!(raw.failed, expected, "{stated:?}");
    }
    // Before they come, what is remembered holds.
    let mut session = Session::with(3, config, ServerConfig::default());
    let many = (0..10).fold(get("/"), |fields, nth| fields.with("x", nth.to_string()));
    let request = Request { fields: many, body: Body::Empty };
    let refused = session.client.request(&mut session.loopback.client, request.clone());
    assert!(matches!(refused, Err(RequestError::FieldsTooLarge { limit: 300, .. })));
    session.client.on_early_data_rejected();
    session.client.request(&mut session.loopback.client, request).unwrap();
    session.settle();
    let failed = |event: &ClientEvent| matches!(event, ClientEvent::ConnectionFailed(_));
    assert!(!session.client_events.iter().any(failed), "{:?}", session.client_events);
}

#[test]
fn a_peer_without_streams_for_http_3_is_told_so() {
    let mut session = Session::idle(4, ClientConfig::default(), ServerConfig::default());
    session.loopback.client.stream_limit = 2;
    let error = session.client.start(&mut session.loopback.client).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GENERAL_PROTOCOL_ERROR);
}
