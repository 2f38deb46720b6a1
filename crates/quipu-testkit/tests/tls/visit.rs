//! Visits of a client at a server that it may know, with requests that it makes as soon as it may.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use quipu_base::{Duration, Instant, Role, StreamDirection, StreamId};
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::connection::CloseReason;
use quipu_quic::tls::EarlyData;
use quipu_quic::wire::PacketKind;
use quipu_quic::wire::header::Packet;
use quipu_quic::{Connection, ConnectionEvent, TransportConfig};
use quipu_testkit::forge::{Application, Fate, Flight, Pair, Setup};
use quipu_testkit::{ALPN, Identity, SharedTls, Tls};

use crate::DELAY;

/// Bytes of a request and of its answer.
pub(crate) const REQUEST: usize = 3_000;
pub(crate) const ANSWER: usize = 40_000;

/// TLS of ends that know each other, and the same client with a server that has forgotten it.
pub(crate) struct Acquaintance {
    pub(crate) tls: Tls,
    pub(crate) forgetful: Tls,
}

pub(crate) fn acquaintances() -> [Acquaintance; 2] {
    let identity = Identity::generate().expect("a certificate");
    let real = SharedTls::new(&identity, true).expect("a valid identity");
    let forgetful = real.with_forgetful_server(&identity).expect("a valid identity");
    let client = NullClient::new(&[ALPN]).expect("a valid name").with_resumption();
    let server = NullServer::new(&[ALPN]).expect("a valid name");
    let other = server.clone().with_ticket_key(1);
    [
        Acquaintance {
            tls: Tls::SharedNull(client.clone(), server),
            forgetful: Tls::SharedNull(client, other),
        },
        Acquaintance { tls: Tls::Shared(real), forgetful: Tls::Shared(forgetful) },
    ]
}

/// Tests null TLS, and rustls. `setup`: without TLS.
pub(crate) fn each(setup: &Setup, test: impl Fn(&Setup, &Tls)) {
    for Acquaintance { tls, forgetful } in acquaintances() {
        println!("{}", if matches!(tls, Tls::Shared(_)) { "rustls" } else { "null TLS" });
        test(&Setup { tls, ..setup.clone() }, &forgetful);
    }
}

/// Both ends with early data.
pub(crate) fn early() -> Setup {
    let transport = TransportConfig { early_data: true, ..TransportConfig::default() };
    Setup { client: transport.clone(), server: transport, ..Setup::default() }
}

/// What an application saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) outcomes: Vec<(Instant, EarlyData)>,
    pub(crate) connected: Option<Instant>,
    /// When the first bytes came, and whether they might be a copy.
    pub(crate) first: Option<(Instant, bool)>,
    pub(crate) received: BTreeMap<StreamId, Vec<u8>>,
    pub(crate) ended: Vec<StreamId>,
}

pub(crate) type Book = Rc<RefCell<Seen>>;

/// What a stream carries from the end of `role`.
pub(crate) fn content(stream: StreamId, role: Role, length: usize) -> Vec<u8> {
    let first = stream.0 as usize * 7 + usize::from(role.is_client());
    (first..first + length).map(|number| (number % 251) as u8).collect()
}

pub(crate) fn write(connection: &mut Connection, now: Instant, stream: StreamId, length: usize) {
    let bytes = content(stream, connection.role(), length).into();
    connection.write_all(now, stream, bytes).expect("it is open");
    connection.finish(now, stream).expect("it is open");
}

/// Notes what an end is told, and reads; true once the peer's half of a stream has ended.
pub(crate) fn read(
    seen: &Book,
    connection: &mut Connection,
    now: Instant,
    event: &ConnectionEvent,
) -> Option<StreamId> {
    let mut seen = seen.borrow_mut();
    match event {
        ConnectionEvent::EarlyData(outcome) => seen.outcomes.push((now, *outcome)),
        ConnectionEvent::Connected => seen.connected = Some(now),
        ConnectionEvent::Readable(stream) => {
            let early = connection.is_early();
            seen.first.get_or_insert((now, early));
            let received = seen.received.entry(*stream).or_default();
            let read = connection.read(now, *stream, &mut |bytes| received.extend(bytes));
            if read.is_ok_and(|read| read.end) {
                seen.ended.push(*stream);
                return Some(*stream);
            }
        }
        _ => {}
    }
    None
}

/// Answers each request.
pub(crate) fn serve(seen: &Book) -> Application {
    let seen = Rc::clone(seen);
    Box::new(move |connection, now, event| {
        if let Some(stream) = read(&seen, connection, now, event) {
            write(connection, now, stream, ANSWER);
        }
    })
}

/// Makes so many requests, as soon as it may.
pub(crate) fn ask(seen: &Book, requests: usize) -> Application {
    let (seen, mut left) = (Rc::clone(seen), requests);
    Box::new(move |connection, now, event| {
        let _ = read(&seen, connection, now, event);
        if let ConnectionEvent::EarlyData(EarlyData::Offered)
        | ConnectionEvent::Connected
        | ConnectionEvent::StreamsAvailable(_) = event
        {
            while left > 0
                && let Some(stream) = connection.open_stream(now, StreamDirection::Bidirectional)
            {
                write(connection, now, stream, REQUEST);
                left -= 1;
            }
        }
    })
}

/// One visit of the client at the server.
pub(crate) struct Visit {
    pub(crate) pair: Pair,
    pub(crate) client: Book,
    pub(crate) server: Book,
    requests: usize,
}

impl Visit {
    pub(crate) fn new(setup: &Setup, requests: usize) -> Self {
        let mut pair = Pair::new(setup, DELAY);
        let (client, server) = (Book::default(), Book::default());
        pair.client().serve(ask(&client, requests));
        pair.server().serve(serve(&server));
        Visit { pair, client, server, requests }
    }

    /// Both ends know each other afterwards.
    pub(crate) fn first(setup: &Setup) {
        Visit::new(setup, 1).run();
    }

    /// Runs until all is said, and checks that it arrived.
    pub(crate) fn run(&mut self) {
        self.pair.run(Duration::from_secs(3));
        let reasons = [Role::Client, Role::Server].map(|role| self.close_reason(role));
        assert_eq!(reasons, [None, None]);
        for (seen, from, length) in
            [(&self.server, Role::Client, REQUEST), (&self.client, Role::Server, ANSWER)]
        {
            let seen = seen.borrow();
            let streams: Vec<_> = (0..self.requests as u64).map(|nth| StreamId(4 * nth)).collect();
            assert_eq!(seen.received.keys().copied().collect::<Vec<_>>(), streams);
            for (stream, bytes) in &seen.received {
                assert!(*bytes == content(*stream, from, length), "{stream:?} of the {from:?}");
                let ends = seen.ended.iter().filter(|ended| *ended == stream).count();
                assert_eq!(ends, 1, "{stream:?} of the {from:?}");
            }
        }
    }

    pub(crate) fn close_reason(&mut self, role: Role) -> Option<CloseReason> {
        self.pair.end(role).close_reason().cloned()
    }

    pub(crate) fn intercept(
        &mut self,
        on_wire: impl FnMut(Instant, Duration, Flight) -> Fate + 'static,
    ) {
        self.pair.intercept(on_wire);
    }

    pub(crate) fn outcomes(&self, role: Role) -> Vec<EarlyData> {
        let seen = if role.is_client() { &self.client } else { &self.server };
        seen.borrow().outcomes.iter().map(|(_, outcome)| *outcome).collect()
    }

    /// The kinds of packets that the client sent, in order.
    pub(crate) fn kinds(&self) -> Vec<PacketKind> {
        let flights = self.pair.log().iter().filter(|(_, flight)| flight.from.is_client());
        flights.flat_map(|(_, flight)| kinds(&flight.bytes)).collect()
    }

    #[track_caller]
    pub(crate) fn assert_accepted(&self) {
        assert_eq!(self.outcomes(Role::Client), [EarlyData::Offered, EarlyData::Accepted]);
        assert_eq!(self.outcomes(Role::Server), [EarlyData::Accepted]);
        assert!(self.server.borrow().first.is_some_and(|(_, early)| early));
    }

    #[track_caller]
    pub(crate) fn assert_rejected(&self) {
        assert_eq!(self.outcomes(Role::Client), [EarlyData::Offered, EarlyData::Rejected]);
        assert_eq!(self.outcomes(Role::Server), []);
        assert!(self.server.borrow().first.is_some_and(|(_, early)| !early));
        assert!(self.kinds().contains(&PacketKind::ZeroRtt));
    }
}

/// The kinds of the packets of a datagram.
pub(crate) fn kinds(mut datagram: &[u8]) -> Vec<PacketKind> {
    let mut found = Vec::new();
    while let Ok(Packet::Protected(header)) = Packet::parse(datagram, 8) {
        found.push(header.kind);
        datagram = &datagram[header.packet_length..];
    }
    found
}

pub(crate) fn after(time: Duration) -> Instant {
    Instant::ZERO + time
}
