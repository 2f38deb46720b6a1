//! The null TLS beside `rustls`: the same handshake, message for message, byte count for byte
//! count.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use quipu_base::{PacketNumber, PathId, Role};
use quipu_null_tls::{ConfigError, NullClient, NullServer, flight};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer};
use quipu_quic::tls::{
    ClientStart, ClientTls, EarlyData, InitialSecrets, KeyChange, KeyExchangeGroup, Keys, Level,
    ServerStart, ServerTls, Session, StartError, TlsError,
};
use quipu_quic::transport_parameters::RememberedLimits;
use quipu_quic::wire::{ConnectionId, Version};

/// A first flight of v1 to the server of that name.
fn to<'a>(server_name: &'a str, parameters: &'a [u8]) -> ClientStart<'a> {
    let (version, may_change, early_data) = (Version::V1, false, false);
    ClientStart { server_name, version, may_change, parameters, early_data }
}

/// The answer to one of v1.
fn with(parameters: &[u8]) -> ServerStart<'_> {
    let (version, limits, early_data) = (Version::V1, RememberedLimits::default(), false);
    ServerStart { version, parameters, limits, early_data }
}

/// What happened in a handshake, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Wrote(Role, Level, Vec<usize>),
    Keys(Role, Level),
    Done(Role),
}

struct End {
    role: Role,
    session: Box<dyn Session>,
    writing: Level,
    done: bool,
    one_rtt: Option<Keys>,
}

/// Bytes on their way, by level.
type Flight = Vec<(Level, Vec<u8>)>;

impl End {
    fn new(role: Role, session: Box<dyn Session>) -> End {
        End { role, session, writing: Level::Initial, done: false, one_rtt: None }
    }

    /// Writes until there is nothing left.
    fn write(&mut self, steps: &mut Vec<Step>) -> Flight {
        let mut flight = Flight::new();
        loop {
            let mut out = Vec::new();
            let change = self.session.write(&mut out);
            if !self.done && !self.session.is_handshaking() {
                self.done = true;
                steps.push(Step::Done(self.role));
            }
            if out.is_empty() && change.is_none() {
                return flight;
            }
            if !out.is_empty() {
                steps.push(Step::Wrote(self.role, self.writing, message_sizes(&out)));
                flight.push((self.writing, out));
            }
            let level = match change {
                Some(KeyChange::Handshake(_)) => Level::Handshake,
                Some(KeyChange::OneRtt(keys)) => {
                    self.one_rtt = Some(keys);
                    Level::OneRtt
                }
                None => continue,
            };
            self.writing = level;
            steps.push(Step::Keys(self.role, level));
        }
    }

    fn answer(
        &mut self,
        flight: Flight,
        piece: usize,
        steps: &mut Vec<Step>,
    ) -> Result<Flight, TlsError> {
        let mut answer = Flight::new();
        for (level, bytes) in flight {
            for part in bytes.chunks(piece) {
                self.session.read(level, part)?;
            }
            answer.extend(self.write(steps));
        }
        Ok(answer)
    }
}

/// Splits handshake bytes into messages.
fn message_sizes(mut bytes: &[u8]) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let [_, a, b, c, ..] = bytes {
        let size = 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        sizes.push(size);
        bytes = &bytes[size..];
    }
    sizes
}

struct Outcome {
    steps: Vec<Step>,
    client: End,
    server: End,
}

fn shake_hands(
    client: Box<dyn Session>,
    server: Box<dyn Session>,
    piece: usize,
) -> Result<Outcome, TlsError> {
    let (mut client, mut server) = (End::new(Role::Client, client), End::new(Role::Server, server));
    let mut steps = Vec::new();
    let mut flight = client.write(&mut steps);
    while !flight.is_empty() {
        flight = server.answer(flight, piece, &mut steps)?;
        flight = client.answer(flight, piece, &mut steps)?;
    }
    Ok(Outcome { steps, client, server })
}

/// A handshake to make twice.
#[derive(Clone, Debug)]
struct Setup {
    name: String,
    client_alpn: Vec<Vec<u8>>,
    server_alpn: Vec<Vec<u8>>,
    client_parameters: Vec<u8>,
    server_parameters: Vec<u8>,
}

fn slices(names: &[Vec<u8>]) -> Vec<&[u8]> {
    names.iter().map(Vec::as_slice).collect()
}

impl Setup {
    fn new(name: &str, client_parameters: usize, server_parameters: usize) -> Setup {
        Setup {
            name: name.to_owned(),
            client_alpn: vec![b"h3".to_vec()],
            server_alpn: vec![b"h3".to_vec()],
            client_parameters: vec![1; client_parameters],
            server_parameters: vec![2; server_parameters],
        }
    }

    /// Both ends by `rustls`, the client with resumption, and the size of the certificate. The
    /// second server knows nothing of what the first one does.
    fn real_ends(&self) -> (RustlsClient, [RustlsServer; 2], usize) {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let parameters = rcgen::CertificateParams::new(vec![self.name.clone()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let size = certificate.der().len();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let servers = [(); 2].map(|()| {
            let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            let chain = vec![certificate.der().clone()];
            RustlsServer::with_certificate(chain, key, &slices(&self.server_alpn)).unwrap()
        });
        let client = RustlsClient::with_roots(roots, &slices(&self.client_alpn)).unwrap();
        (client.with_resumption(8), servers, size)
    }

    fn null_ends(&self, certificate: usize) -> (NullClient, NullServer) {
        let client = NullClient::new(&slices(&self.client_alpn)).unwrap();
        let server = NullServer::new(&slices(&self.server_alpn)).unwrap();
        (client.with_resumption(), server.with_certificate_chain(certificate).unwrap())
    }

    /// The handshake by `rustls`, and the size of the certificate in it.
    fn real(&self, piece: usize) -> (Result<Outcome, TlsError>, usize) {
        let (client, [server, _], size) = self.real_ends();
        (self.shake_hands((&client, false), (&server, false), piece), size)
    }

    fn null(&self, certificate: usize, piece: usize) -> Result<Outcome, TlsError> {
        let (client, server) = self.null_ends(certificate);
        self.shake_hands((&client, false), (&server, false), piece)
    }

    /// A handshake; each end with early data or without.
    fn shake_hands(
        &self,
        (client, client_early): (&dyn ClientTls, bool),
        (server, server_early): (&dyn ServerTls, bool),
        piece: usize,
    ) -> Result<Outcome, TlsError> {
        let to = to(&self.name, &self.client_parameters);
        let client = client.start(&ClientStart { early_data: client_early, ..to }).unwrap();
        let with = with(&self.server_parameters);
        let server = server.start(&ServerStart { early_data: server_early, ..with }).unwrap();
        shake_hands(client, server, piece)
    }
}

fn protocols() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let names = ["h3", "quipu-h2", "hq-interop", "x"];
    proptest::sample::subsequence(names.to_vec(), 0..=4)
        .prop_shuffle()
        .prop_map(|names| names.into_iter().map(|name| name.as_bytes().to_vec()).collect())
}

fn setups() -> impl Strategy<Value = Setup> {
    let names = ["localhost", "a.example", "a-much-longer-name.of-some.example", "192.0.2.1"];
    let names = proptest::sample::select(names.to_vec());
    (names, protocols(), protocols(), 0usize..400, 0usize..400).prop_map(
        |(name, client_alpn, server_alpn, client, server)| Setup {
            client_alpn,
            server_alpn,
            ..Setup::new(name, client, server)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_handshake_has_the_steps_and_sizes_of_rustls(setup in setups(), small: bool) {
        let piece = if small { 50 } else { 100_000 };
        let (real, certificate) = setup.real(piece);
        let null = setup.null(certificate, piece);
        match (real, null) {
            (Ok(real), Ok(null)) => {
                prop_assert_eq!(real.steps, null.steps);
                prop_assert_eq!(real.client.session.alpn(), null.client.session.alpn());
                prop_assert_eq!(real.server.session.alpn(), null.server.session.alpn());
                prop_assert_eq!(
                    real.server.session.server_name(), null.server.session.server_name()
                );
                for outcome in [&real.client, &null.client] {
                    let parameters = outcome.session.peer_transport_parameters();
                    prop_assert_eq!(parameters, Some(&setup.server_parameters[..]));
                }
                for outcome in [&real.server, &null.server] {
                    let parameters = outcome.session.peer_transport_parameters();
                    prop_assert_eq!(parameters, Some(&setup.client_parameters[..]));
                }
            }
            (Err(real), Err(null)) => prop_assert_eq!(real.alert, null.alert),
            (real, null) => panic!("real {:?}, null {:?}", real.err(), null.err()),
        }
    }

    #[test]
    fn any_bytes_of_a_peer_end_in_an_error_or_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 0..100), kind in 0u8..25, size in 0u8..100,
    ) {
        let mut message = vec![kind, 0, 0, size];
        message.extend(bytes);
        let parameters = b"parameters";
        let client = NullClient::new(&[b"h3"]).unwrap();
        let server = NullServer::new(&[b"h3"]).unwrap();
        for session in
            [client.start(&to("localhost", parameters)), server.start(&with(parameters))]
        {
            let mut session = session.unwrap();
            let _ = session.read(Level::Initial, &message);
            let mut out = Vec::new();
            while session.write(&mut out).is_some() {}
            let _ = session.read(Level::Handshake, &message);
        }
    }
}

#[test]
fn the_flights_are_those_of_the_default_setup() {
    let steps = Setup::new("localhost", 80, 80).null(3_000, 100_000).unwrap().steps;
    let (client, server) = (Role::Client, Role::Server);
    let expected = [
        Step::Wrote(client, Level::Initial, vec![268]),
        Step::Wrote(server, Level::Initial, vec![flight::SERVER_HELLO]),
        Step::Keys(server, Level::Handshake),
        Step::Wrote(server, Level::Handshake, vec![103, 3_013, 72, 52]),
        Step::Keys(server, Level::OneRtt),
        Step::Keys(client, Level::Handshake),
        Step::Done(client),
        Step::Wrote(client, Level::Handshake, vec![52]),
        Step::Keys(client, Level::OneRtt),
        Step::Done(server),
        Step::Wrote(server, Level::OneRtt, vec![81, 81]),
    ];
    assert_eq!(steps, expected);
}

/// Steps of a handshake, and for client and server whether the session was resumed and what became of
/// early data.
type Went = (Vec<Step>, [(bool, EarlyData); 2]);

/// How three handshakes between the same two ends went; in the second and third the server is
/// `later`. Early data: whether the client wants it, and the server in the first and in later ones.
fn three_times(
    setup: &Setup,
    client: &dyn ClientTls,
    [first, later]: [&dyn ServerTls; 2],
    [of_client, of_first, of_later]: [bool; 3],
) -> Vec<Went> {
    let servers = [(first, of_first), (later, of_later), (later, of_later)];
    let mut went = Vec::new();
    for server in servers {
        let Outcome { steps, client, server } =
            setup.shake_hands((client, of_client), server, 100_000).unwrap();
        let outcome = |end: &End| {
            let negotiated = end.session.negotiated().unwrap();
            assert_eq!(negotiated.group, Some(KeyExchangeGroup::X25519));
            (negotiated.resumed, end.session.early_data())
        };
        went.push((steps, [outcome(&client), outcome(&server)]));
    }
    went
}

#[test]
fn a_resumed_handshake_has_the_steps_and_sizes_of_rustls() {
    let setup = Setup::new("localhost", 80, 80);
    for wants in 0..8 {
        let wants = [wants & 1 != 0, wants & 2 != 0, wants & 4 != 0];
        for forgets in [false, true] {
            let (client, [first, other], certificate) = setup.real_ends();
            let later = if forgets { &other } else { &first };
            let real = three_times(&setup, &client, [&first, later], wants);
            let (client, first) = setup.null_ends(certificate);
            let later = first.clone().with_ticket_key(u64::from(forgets));
            let null = three_times(&setup, &client, [&first, &later], wants);
            assert_eq!(null, real, "{wants:?}, forgets: {forgets}");
            let resumed = real.iter().map(|(_, [client, _])| client.0).collect::<Vec<_>>();
            assert_eq!(resumed, [false, !forgets, true]);
        }
    }
}

#[test]
fn the_flights_of_a_resumed_session_are_those_measured() {
    let setup = Setup::new("localhost", 80, 80);
    let (client, server) = setup.null_ends(3_000);
    let again = || setup.shake_hands((&client, true), (&server, true), 100_000).unwrap().steps;
    again();
    let steps = again();
    let (client, server) = (Role::Client, Role::Server);
    let expected = [
        Step::Wrote(client, Level::Initial, vec![367]),
        Step::Wrote(server, Level::Initial, vec![96]),
        Step::Keys(server, Level::Handshake),
        Step::Wrote(server, Level::Handshake, vec![103, 52]),
        Step::Keys(server, Level::OneRtt),
        Step::Keys(client, Level::Handshake),
        Step::Done(client),
        Step::Wrote(client, Level::Handshake, vec![52]),
        Step::Keys(client, Level::OneRtt),
        Step::Done(server),
        Step::Wrote(server, Level::OneRtt, vec![89, 89]),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn both_ends_agree_on_the_keys_of_early_data() {
    let setup = Setup::new("localhost", 80, 80);
    let (client, server) = setup.null_ends(300);
    setup.shake_hands((&client, true), (&server, true), 100_000).unwrap();
    let to = to(&setup.name, &setup.client_parameters);
    let mut client = client.start(&ClientStart { early_data: true, ..to }).unwrap();
    let mut hello = Vec::new();
    client.write(&mut hello);
    assert_eq!(client.remembered_parameters(), Some(&setup.server_parameters[..]));
    let with = with(&setup.server_parameters);
    let mut server = server.start(&ServerStart { early_data: true, ..with }).unwrap();
    assert!(server.zero_rtt_keys().is_none());
    server.read(Level::Initial, &hello).unwrap();
    let mut text = [3; 50];
    let sealing = client.zero_rtt_keys().unwrap().packet;
    let opening = server.zero_rtt_keys().unwrap().packet;
    sealing.seal(PathId(0), PacketNumber(9), b"header", &mut text).unwrap();
    assert_eq!(opening.open(PathId(0), PacketNumber(9), b"header", &mut text), Ok(34));
}

#[test]
fn both_ends_agree_on_keys_and_on_their_updates() {
    let Outcome { mut client, mut server, .. } =
        Setup::new("localhost", 50, 60).null(300, 100_000).unwrap();
    let opens = |from: &dyn quipu_quic::tls::PacketKey, to: &dyn quipu_quic::tls::PacketKey| {
        let mut text = [3; 50];
        from.seal(PathId(1), PacketNumber(9), b"header", &mut text).unwrap();
        to.open(PathId(1), PacketNumber(9), b"header", &mut text) == Ok(34)
    };
    let (of_client, of_server) = (client.one_rtt.unwrap(), server.one_rtt.unwrap());
    assert!(opens(&*of_client.local.packet, &*of_server.remote.packet));
    assert!(opens(&*of_server.local.packet, &*of_client.remote.packet));
    let mut old = of_server.remote.packet;
    for _ in 0..3 {
        let next_of_client = client.session.next_packet_keys().unwrap();
        let next_of_server = server.session.next_packet_keys().unwrap();
        assert!(opens(&*next_of_client.local, &*next_of_server.remote));
        assert!(opens(&*next_of_server.local, &*next_of_client.remote));
        assert!(!opens(&*next_of_client.local, &*old));
        old = next_of_server.remote;
    }
}

#[test]
fn connections_with_other_parameters_have_other_keys() {
    let keys = |client, server| {
        let outcome = Setup::new("localhost", client, server).null(300, 100_000).unwrap();
        outcome.client.one_rtt.unwrap().local.packet
    };
    let sealed = |client, server| {
        let mut text = [3; 50];
        keys(client, server).seal(PathId(0), PacketNumber(0), b"header", &mut text).unwrap();
        text
    };
    assert_eq!(sealed(50, 60), sealed(50, 60));
    assert_ne!(sealed(50, 60), sealed(51, 60));
    assert_ne!(sealed(50, 60), sealed(50, 61));
}

#[test]
fn initial_keys_follow_from_the_connection_id() {
    let client = NullClient::new(&[b"h3"]).unwrap();
    let server = NullServer::new(&[b"h3"]).unwrap();
    let dcid = ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let other = ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 9]).unwrap();
    let mut text = [0; 60];
    let sealing = client.initial_keys(Version::V1, &dcid, Role::Client).local.packet;
    sealing.seal(PathId(0), PacketNumber(0), b"header", &mut text).unwrap();
    let opens = |version, dcid| {
        let key = server.initial_keys(version, dcid, Role::Server).remote.packet;
        key.open(PathId(0), PacketNumber(0), b"header", &mut text.clone()).is_ok()
    };
    assert!(opens(Version::V1, &dcid));
    assert!(!opens(Version::V1, &other));
    assert!(!opens(Version::V2, &dcid));
}

#[test]
fn messages_out_of_order_or_at_a_wrong_level_are_refused() {
    let setup = Setup::new("localhost", 50, 60);
    let client = NullClient::new(&slices(&setup.client_alpn)).unwrap();
    let server = NullServer::new(&slices(&setup.server_alpn)).unwrap();
    let start = || End::new(Role::Server, server.start(&with(&setup.server_parameters)).unwrap());
    let mut hello = Vec::new();
    client.start(&to("localhost", &setup.client_parameters)).unwrap().write(&mut hello);

    assert_eq!(start().session.read(Level::Handshake, &hello).unwrap_err().alert, 10);
    let mut twice = start();
    assert!(twice.session.read(Level::Initial, &hello.repeat(2)).is_err());
    let mut again = start();
    again.session.read(Level::Initial, &hello).unwrap();
    assert_eq!(again.session.read(Level::Initial, &hello).unwrap_err().alert, 10);
    let finished = [[20, 0, 0, 48].as_slice(), &[0; 48]].concat();
    assert_eq!(again.session.read(Level::Handshake, &finished).unwrap_err().alert, 51);
    assert_eq!(start().session.read(Level::Initial, &finished).unwrap_err().alert, 10);
}

#[test]
fn configurations_that_no_tls_could_send_are_refused() {
    let long = [0; 256];
    let error = NullClient::new(&[&long]).unwrap_err();
    assert_eq!(error, ConfigError::ProtocolName { length: 256 });
    assert_eq!(NullServer::new(&[b""]).unwrap_err(), ConfigError::ProtocolName { length: 0 });
    let many = vec![&long[..255]; 129];
    let error = NullServer::new(&many).unwrap_err();
    assert_eq!(error, ConfigError::Protocols { length: 33_024 });
    let length = flight::MAX_CERTIFICATE_CHAIN + 1;
    let server = NullServer::new(&[b"h3"]).unwrap().with_certificate_chain(length);
    assert_eq!(server.unwrap_err(), ConfigError::CertificateChain { length });
    let client = NullClient::new(&[b"h3"]).unwrap();
    assert!(matches!(client.start(&to("", &[])), Err(StartError::ServerName(_))));
    assert!(matches!(client.start(&to("localhost", &vec![0; 65_536])), Err(StartError::Config(_))));
}
