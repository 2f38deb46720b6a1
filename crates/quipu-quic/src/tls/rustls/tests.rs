use quipu_base::{PacketNumber, PathId};

use super::keys::RustlsPacketKey;
use super::session::UNEXPECTED_MESSAGE;
use super::*;
use crate::tls::{KeyChange, Level, OpenError, PacketKey, SealError, protection};
use crate::transport_parameters::RememberedLimits;
use crate::wire::header::{LongHeader, LongKind};
use crate::wire::{TruncatedPacketNumber, Writer};

mod resumption;
mod versions;

const ALPN: &[&[u8]] = &[b"h3"];

/// A client and a server whose Ed25519 certificate it trusts.
fn pair(client_alpn: &[&[u8]], server_alpn: &[&[u8]]) -> (RustlsClient, RustlsServer) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let mut roots = tls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let der = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let chain = vec![certificate.der().clone()];
    let server = RustlsServer::with_certificate(chain, der, server_alpn).unwrap();
    (RustlsClient::with_roots(roots, client_alpn).unwrap(), server)
}

/// What one end wrote: bytes by level, and keys.
#[derive(Default)]
struct Flight {
    bytes: Vec<(Level, Vec<u8>)>,
    handshake: Option<Keys>,
    one_rtt: Option<Keys>,
}

struct End {
    session: Box<dyn Session>,
    writing: Level,
}

impl End {
    fn flight(&mut self) -> Flight {
        let mut flight = Flight::default();
        loop {
            let mut out = Vec::new();
            let change = self.session.write(&mut out);
            if out.is_empty() && change.is_none() {
                return flight;
            }
            if !out.is_empty() {
                flight.bytes.push((self.writing, out));
            }
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.writing = Level::Handshake;
                    flight.handshake = Some(keys);
                }
                Some(KeyChange::OneRtt(keys)) => {
                    self.writing = Level::OneRtt;
                    flight.one_rtt = Some(keys);
                }
                None => {}
            }
        }
    }

    /// Feeds each level's bytes, and answers after each, as a connection does.
    fn answer(&mut self, from: &Flight, piece: usize) -> Result<Flight, TlsError> {
        let mut answer = Flight::default();
        for (level, bytes) in &from.bytes {
            for bytes in bytes.chunks(piece) {
                self.session.read(*level, bytes)?;
            }
            let more = self.flight();
            answer.bytes.extend(more.bytes);
            answer.handshake = answer.handshake.or(more.handshake);
            answer.one_rtt = answer.one_rtt.or(more.one_rtt);
        }
        Ok(answer)
    }
}

fn to<'a>(server_name: &'a str, parameters: &'a [u8]) -> ClientStart<'a> {
    let (version, may_change, early_data) = (Version::V1, false, false);
    ClientStart { server_name, version, may_change, parameters, early_data }
}

fn with(parameters: &[u8]) -> ServerStart<'_> {
    let (version, limits, early_data) = (Version::V1, RememberedLimits::default(), false);
    ServerStart { version, parameters, limits, early_data }
}

fn start(
    (client, client_start): (&RustlsClient, &ClientStart<'_>),
    (server, server_start): (&RustlsServer, &ServerStart<'_>),
) -> (End, End) {
    let end = |session| End { session, writing: Level::Initial };
    (end(client.start(client_start).unwrap()), end(server.start(server_start).unwrap()))
}

fn ends(client: &RustlsClient, server: &RustlsServer) -> (End, End) {
    let to = to("localhost", b"parameters of the client");
    start((client, &to), (server, &with(b"parameters of the server")))
}

fn levels(flight: &Flight) -> Vec<Level> {
    flight.bytes.iter().map(|(level, _)| *level).collect()
}

/// Seals with one end's keys and opens with the other's.
fn crosses(from: &dyn PacketKey, to: &dyn PacketKey, path: PathId, number: u64) -> bool {
    let mut text = *b"some plaintext and its tag......";
    from.seal(path, PacketNumber(number), b"header", &mut text).unwrap();
    to.open(path, PacketNumber(number), b"header", &mut text) == Ok(16)
        && text.starts_with(b"some plaintext a")
}

#[test]
fn a_handshake_gives_bytes_at_their_levels_and_keys_that_fit() {
    for piece in [1, 7, 10_000] {
        let (client, server) = pair(ALPN, ALPN);
        let (mut client, mut server) = ends(&client, &server);
        let hello = client.flight();
        assert_eq!(levels(&hello), [Level::Initial]);
        let answer = server.answer(&hello, piece).unwrap();
        assert_eq!(levels(&answer), [Level::Initial, Level::Handshake]);
        assert!(server.session.is_handshaking());
        let finished = client.answer(&answer, piece).unwrap();
        assert_eq!(levels(&finished), [Level::Handshake]);
        assert!(!client.session.is_handshaking());
        let tickets = server.answer(&finished, piece).unwrap();
        assert_eq!(levels(&tickets), [Level::OneRtt]);
        assert!(!server.session.is_handshaking());
        assert!(levels(&client.answer(&tickets, piece).unwrap()).is_empty());

        assert_eq!(client.session.alpn(), Some(&b"h3"[..]));
        assert_eq!(server.session.alpn(), Some(&b"h3"[..]));
        assert_eq!(server.session.server_name(), Some("localhost"));
        let parameters = client.session.peer_transport_parameters();
        assert_eq!(parameters, Some(&b"parameters of the server"[..]));
        let parameters = server.session.peer_transport_parameters();
        assert_eq!(parameters, Some(&b"parameters of the client"[..]));

        let (of_server, of_client) = (answer.one_rtt.unwrap(), finished.one_rtt.unwrap());
        for path in [PathId(0), PathId(3)] {
            let (from, to) = (&*of_client.local.packet, &*of_server.remote.packet);
            assert!(crosses(from, to, path, 7));
            let (from, to) = (&*of_server.local.packet, &*of_client.remote.packet);
            assert!(crosses(from, to, path, 7));
        }
    }
}

#[test]
fn key_updates_agree_and_old_keys_fail() {
    let (client, server) = pair(ALPN, ALPN);
    let (mut client, mut server) = ends(&client, &server);
    assert!(client.session.next_packet_keys().is_none());
    let answer = server.answer(&client.flight(), 10_000).unwrap();
    let finished = client.answer(&answer, 10_000).unwrap();
    let mut old = answer.one_rtt.unwrap().remote.packet;
    assert!(crosses(&*finished.one_rtt.unwrap().local.packet, &*old, PathId(1), 1));
    for _ in 0..3 {
        let of_client = client.session.next_packet_keys().unwrap();
        let of_server = server.session.next_packet_keys().unwrap();
        assert!(crosses(&*of_client.local, &*of_server.remote, PathId(1), 1));
        assert!(crosses(&*of_server.local, &*of_client.remote, PathId(1), 1));
        assert!(!crosses(&*of_client.local, &*old, PathId(1), 1));
        old = of_server.remote;
    }
}

#[test]
fn handshake_bytes_at_a_level_that_is_not_read_are_refused() {
    let (client, server) = pair(ALPN, ALPN);
    let (mut client, mut server) = ends(&client, &server);
    let hello = client.flight();
    let error = server.session.read(Level::Handshake, &hello.bytes[0].1).unwrap_err();
    assert_eq!(error.alert, UNEXPECTED_MESSAGE);
    let answer = server.answer(&hello, 10_000).unwrap();
    assert!(server.session.read(Level::Initial, b"x").is_err());
    assert!(server.session.read(Level::OneRtt, b"x").is_err());
    client.answer(&answer, 10_000).unwrap();
    assert!(client.session.read(Level::Handshake, b"x").is_err());
}

#[test]
fn no_common_protocol_ends_in_the_alert_for_it() {
    let (client, server) = pair(&[b"h3"], &[b"other"]);
    let (mut client, mut server) = ends(&client, &server);
    let error = server.answer(&client.flight(), 10_000).err().unwrap();
    assert_eq!(error.alert, 120);
}

/// The suites that a ClientHello offers. <https://www.rfc-editor.org/rfc/rfc8446#section-4.1.2>
fn offered(hello: &[u8]) -> Vec<u16> {
    // Type, length, version and random, then an ID with its length.
    let id = 4 + 2 + 32;
    let at = id + 1 + usize::from(hello[id]);
    let length = usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    let suites = &hello[at + 2..][..length];
    suites.chunks(2).map(|suite| u16::from_be_bytes([suite[0], suite[1]])).collect()
}

#[test]
fn the_suite_of_initial_packets_need_not_be_offered() {
    let chacha20 = tls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    let (client, server) = pair(ALPN, ALPN);
    let mut only = (*provider()).clone();
    only.cipher_suites.retain(|suite| suite.suite() == chacha20);
    let roots = tls::RootCertStore::empty();
    let config = tls::ClientConfig::builder_with_provider(Arc::new(only))
        .with_protocol_versions(&[&tls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    assert!(matches!(RustlsClient::new(Arc::clone(&config)), Err(ConfigError::NoInitialSuite)));
    let narrow = RustlsClient::with_initial(config, &provider()).unwrap();
    let offers = |client| {
        let (mut client, _) = ends(client, &server);
        offered(&client.flight().bytes[0].1)
    };
    assert_eq!(offers(&narrow), [u16::from(chacha20)]);
    assert_eq!(offers(&client).len(), 3);
}

#[test]
fn a_server_name_that_is_none_is_refused() {
    let (client, _) = pair(ALPN, ALPN);
    let error = client.start(&to("no name", &[])).err().unwrap();
    assert_eq!(error, StartError::ServerName("no name".to_owned()));
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-a.2>
#[test]
fn the_client_initial_of_rfc_9001_a2_is_sealed() {
    let dcid = ConnectionId::new(&unhex("8394c8f03e515708")).unwrap();
    let (client, server) = pair(ALPN, ALPN);
    let crypto = unhex(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
         04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
         616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
         04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
         baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
         0d0010000e0403050306030203080408050806002d00020101001c00024001003\
         900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075\
         300901100f088394c8f03e51570806048000ffff",
    );
    let mut packet = vec![0; 1200];
    let mut writer = Writer::new(&mut packet);
    let number = TruncatedPacketNumber::with_length(PacketNumber(2), 4);
    let kind = LongKind::Initial { token: &[] };
    let header = LongHeader {
        kind,
        version: Version::V1,
        dcid,
        scid: ConnectionId::EMPTY,
        packet_number: number,
    };
    let layout = header.write(&mut writer).unwrap();
    writer.put_bytes(&crypto).unwrap();
    let keys = client.initial_keys(Version::V1, &dcid, Role::Client);
    protection::seal(&mut packet, &layout, PathId::ZERO, PacketNumber(2), &keys.local).unwrap();
    let start = "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b";
    assert_eq!(packet[..38], unhex(start)[..]);
    assert_eq!(packet[1184..], unhex("e221af44860018ab0856972e194cd934")[..]);

    let keys = server.initial_keys(Version::V1, &dcid, Role::Server).remote;
    let header =
        protection::unprotect(&mut packet, layout.packet_number_at, &*keys.header).unwrap();
    assert_eq!((header.packet_number, header.header_length), (number, layout.header_length()));
    assert!(header.reserved_bits_clear);
    let (length, path) = (header.header_length, PathId::ZERO);
    let plain = protection::open(&mut packet, length, path, PacketNumber(2), &*keys.packet);
    assert!(plain.unwrap().starts_with(&crypto));
}

/// <https://www.rfc-editor.org/rfc/rfc9001#section-a.3>
#[test]
fn the_server_initial_of_rfc_9001_a3_opens() {
    let mut packet = unhex(
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a\
         5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3\
         dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84\
         022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4\
         2158407dd074ee",
    );
    let (client, _) = pair(ALPN, ALPN);
    let dcid = ConnectionId::new(&unhex("8394c8f03e515708")).unwrap();
    let keys = client.initial_keys(Version::V1, &dcid, Role::Client).remote;
    let Ok(crate::wire::header::Packet::Protected(partial)) =
        crate::wire::header::Packet::parse(&packet, 0)
    else {
        panic!("not a packet")
    };
    assert_eq!(partial.packet_length, packet.len());
    let at = partial.packet_number_at;
    let header = protection::unprotect(&mut packet, at, &*keys.header).unwrap();
    assert_eq!(header.packet_number.bits(), 1);
    let (length, path) = (header.header_length, PathId::ZERO);
    let plain = protection::open(&mut packet, length, path, PacketNumber(1), &*keys.packet);
    let plain = plain.unwrap();
    assert_eq!(plain[..9], unhex("020000000006 00405a")[..]);
}

/// The example of <https://www.rfc-editor.org/rfc/rfc10069#section-2.4>: this IV gives this nonce. A key whose
/// IV is that nonce opens, as packet 0 of path 0, what the path sealed.
#[test]
fn the_nonce_of_path_3_and_packet_54321_is_that_of_rfc_10069() {
    use tls::crypto::cipher::{AeadKey, Iv};
    let suites = provider().cipher_suites.clone();
    let suite = suites
        .iter()
        .find(|suite| suite.suite() == tls::CipherSuite::TLS13_AES_256_GCM_SHA384)
        .unwrap();
    let algorithm = suite.tls13().unwrap().quic.unwrap();
    let iv: [u8; 12] = unhex("6b26114b9cba2b63a9e8dd4f").try_into().unwrap();
    let nonce: [u8; 12] = unhex("6b2611489cba2b63a9e8097e").try_into().unwrap();
    let key = || AeadKey::from([0x42; 32]);
    let by_path = RustlsPacketKey(algorithm.packet_key(key(), Iv::from(iv)));
    // A packet number of zero leaves the nonce equal to the IV.
    let by_nonce = RustlsPacketKey(algorithm.packet_key(key(), Iv::from(nonce)));
    let mut text = [7; 40];
    by_path.seal(PathId(3), PacketNumber(54321), b"header", &mut text).unwrap();
    let sealed = text;
    assert_eq!(by_nonce.open(PathId(0), PacketNumber(0), b"header", &mut text), Ok(24));
    assert_eq!(text[..24], [7; 24]);
    for (path, number) in [(PathId(2), 54321), (PathId(0), 54321), (PathId(3), 54320)] {
        let mut text = sealed;
        let opened = by_path.open(path, PacketNumber(number), b"header", &mut text);
        assert_eq!(opened, Err(OpenError));
    }
}

#[test]
fn a_buffer_without_room_for_the_tag_is_not_sealed() {
    let (client, _) = pair(ALPN, ALPN);
    let keys = client.initial_keys(Version::V1, &ConnectionId::EMPTY, Role::Client);
    let mut short = [0; 15];
    let sealed = keys.local.packet.seal(PathId(0), PacketNumber(0), &[], &mut short);
    assert_eq!(sealed, Err(SealError));
    let opened = keys.remote.packet.open(PathId(0), PacketNumber(0), &[], &mut short);
    assert_eq!(opened, Err(OpenError));
}
