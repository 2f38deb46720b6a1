use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::tls::InitialSecrets;
use crate::tls::rustls::RustlsClient;
use crate::tls::{ClientHello, KeyChange, Level, PacketKeyPair, TlsError};
use crate::wire::Writer;

/// A ClientHello is a byte of length, a byte that says whether a session ID is there, and transport
/// parameters.
#[derive(Default)]
struct FakeTls {
    started: AtomicUsize,
}

impl InitialSecrets for FakeTls {
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
        let roots = ::rustls::RootCertStore::empty();
        RustlsClient::with_roots(roots, &[]).unwrap().initial_keys(version, dcid, role)
    }
}

impl ServerTls for FakeTls {
    fn client_hello<'h>(&self, bytes: &'h [u8]) -> Result<Option<ClientHello<'h>>, TlsError> {
        let Some((length, rest)) = bytes.split_first() else { return Ok(None) };
        let Some((session_id, parameters)) =
            rest.get(..usize::from(*length)).and_then(<[u8]>::split_first)
        else {
            return Ok(None);
        };
        Ok(Some(ClientHello {
            transport_parameters: (!parameters.is_empty()).then_some(parameters),
            legacy_session_id: &[7; 32][..usize::from(*session_id)],
            ..ClientHello::default()
        }))
    }

    fn start(&self, _: &ServerStart<'_>) -> Result<Box<dyn Session>, StartError> {
        self.started.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(FakeSession))
    }
}

struct FakeSession;

impl Session for FakeSession {
    fn read(&mut self, _: Level, _: &[u8]) -> Result<(), TlsError> {
        Ok(())
    }

    fn write(&mut self, _: &mut Vec<u8>) -> Option<KeyChange> {
        None
    }

    fn is_handshaking(&self) -> bool {
        true
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        None
    }

    fn alpn(&self) -> Option<&[u8]> {
        None
    }

    fn next_packet_keys(&mut self) -> Option<PacketKeyPair> {
        None
    }

    fn change_version(&mut self, _: Version) -> Result<(), TlsError> {
        Ok(())
    }
}

fn hello(session_id: u8, parameters: &[u8]) -> Vec<u8> {
    let mut hello = vec![parameters.len() as u8 + 1, session_id];
    hello.extend(parameters);
    hello
}

/// Transport parameters of a client that chose `chosen`, if it speaks of versions.
fn client(chosen: Option<Version>) -> Vec<u8> {
    let version_information = chosen.map(|chosen| VersionInformation {
        chosen,
        available: Version::KNOWN.into_iter().collect(),
    });
    let parameters = TransportParameters {
        initial_max_streams_bidi: 1,
        version_information,
        ..TransportParameters::default()
    };
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer);
    parameters.write(&mut writer).unwrap();
    writer.written().to_vec()
}

fn origin(tls: &Arc<FakeTls>, versions: &[Version]) -> ServerOrigin {
    let config = TransportConfig { versions: versions.to_vec(), ..TransportConfig::default() };
    let parameters = TransportParameters::default();
    ServerOrigin::new(Arc::<FakeTls>::clone(tls), Arc::new(config), parameters)
}

fn read(versions: &[Version], hello: &[u8], original: Version) -> Result<Answer, TransportError> {
    let dcid = Some(ConnectionId::new(&[1; 8]).unwrap());
    let answer = origin(&Arc::default(), versions).read(hello, original, dcid)?;
    Ok(answer.expect("the ClientHello is whole"))
}

const V1: Version = Version::V1;
const V2: Version = Version::V2;

#[test]
fn a_session_is_made_once_the_client_hello_is_whole() {
    let tls = Arc::<FakeTls>::default();
    let mut origin = origin(&tls, &[V1]);
    let hello = hello(0, &client(None));
    for byte in &hello[..hello.len() - 1] {
        assert!(origin.read(&[*byte], V1, None).unwrap().is_none());
    }
    assert_eq!(tls.started.load(Ordering::Relaxed), 0);
    let answer = origin.read(&hello[hello.len() - 1..], V1, None).unwrap().unwrap();
    assert_eq!(tls.started.load(Ordering::Relaxed), 1);
    assert_eq!(answer.bytes, hello);
}

#[test]
fn a_client_hello_without_end_closes() {
    let mut origin = origin(&Arc::default(), &[V1]);
    // Announces more than it sends.
    let error = origin.read(&[255; MAX_CLIENT_HELLO + 1], V1, None).map(|_| ()).unwrap_err();
    assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
}

#[test]
fn faults_of_a_client_hello_close_before_a_session_is_made() {
    let code =
        |hello: &[u8], original| read(&[V1, V2], hello, original).map(|_| ()).unwrap_err().code;
    let parameters = client(None);
    assert_eq!(code(&hello(32, &parameters), V1), ErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(&hello(0, &[]), V1), ErrorCode::crypto(MISSING_EXTENSION));
    assert_eq!(code(&hello(0, &[0xff]), V1), ErrorCode::TRANSPORT_PARAMETER_ERROR);
    // https://www.rfc-editor.org/rfc/rfc9368#section-4
    assert_eq!(code(&hello(0, &client(Some(V2))), V1), ErrorCode::VERSION_NEGOTIATION_ERROR);
}

#[test]
fn the_most_wanted_version_that_the_client_offers_is_spoken() {
    for (ours, original, chosen, expected) in [
        (&[V1, V2][..], V1, Some(V1), V1),
        (&[V2, V1], V1, Some(V1), V2),
        (&[V1, V2], V2, Some(V2), V1),
        (&[V2, V1], V1, None, V1),
        (&[V1], V1, Some(V1), V1),
    ] {
        let answer = read(ours, &hello(0, &client(chosen)), original).unwrap();
        assert_eq!(answer.version, expected, "{ours:?} {original} {chosen:?}");
        assert_eq!(answer.initial_keys.is_some(), expected != original);
    }
}
