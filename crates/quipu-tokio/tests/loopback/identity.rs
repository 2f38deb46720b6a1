//! What a server is known by, and what of it outlives a restart.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use quipu_quic::connection::CloseReason;
use quipu_quic::endpoint::{EndpointConfig, TokenConfig};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer};
use quipu_tokio::identity::{
    IdentityError, Secret, ServerIdentity, pinned, server_config, trusting, trusting_anyone,
};
use quipu_tokio::{ClientConfig, ConnectError, ConnectionError, Endpoint, ServerConfig};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::setup::{ALPN, NAME, Setup, limited};

fn server(identity: &ServerIdentity) -> ServerConfig {
    let Setup { server, .. } = Setup::new();
    let tls = Arc::new(identity.tls(&[ALPN]).unwrap());
    ServerConfig { tls, ..server }.with_tokens(TokenConfig::with_key(identity.token_key().unwrap()))
}

fn client(tls: RustlsClient) -> ClientConfig {
    ClientConfig { tls: Arc::new(tls), ..Setup::new().client }
}

fn listen(identity: &ServerIdentity, address: &str) -> (Endpoint, SocketAddr) {
    let reset_key = Some(identity.reset_key().unwrap());
    let config = EndpointConfig { reset_key, ..EndpointConfig::default() };
    let server = Endpoint::server(server(identity)).config(config);
    let server = server.listen(address.parse().unwrap()).bind().unwrap();
    let address = server.local_addresses()[0];
    (server, address)
}

/// A handshake of a client with that TLS, for that name, with a server of that identity.
async fn connect(
    identity: &ServerIdentity,
    tls: RustlsClient,
    name: &str,
) -> Result<(), ConnectError> {
    let (server, address) = listen(identity, "127.0.0.1:0");
    // It fails if the client's does.
    let accept = async { server.accept().await.unwrap().accept().await.map(drop) };
    let endpoint = Endpoint::client().bind().unwrap();
    let config = client(tls);
    let connect = endpoint.connect(&config, address, name);
    tokio::join!(accept, connect).1.map(drop)
}

#[tokio::test]
async fn what_a_folder_keeps_is_the_same_after_a_restart() {
    limited(async {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("deep/identity");
        let first = ServerIdentity::kept_in(&kept, NAME).unwrap();
        let again = ServerIdentity::kept_in(&kept, "another.test").unwrap();
        assert_eq!(first.pin(), again.pin());
        connect(&again, pinned(first.pin(), &[ALPN]).unwrap(), "any.test").await.unwrap();
        let certificate = kept.join("certificate.pem");
        connect(&again, trusting(&certificate, &[ALPN]).unwrap(), NAME).await.unwrap();
        // An authority answers for names, a pin does not.
        let other = connect(&again, trusting(&certificate, &[ALPN]).unwrap(), "any.test").await;
        assert!(matches!(other, Err(ConnectError::Certificate { .. })), "{other:?}");
        connect(&again, trusting_anyone(&[ALPN]).unwrap(), "any.test").await.unwrap();
        let files: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 3, "nothing else is left behind");
    })
    .await;
}

/// Shows what it holds.
#[derive(Debug)]
struct Shown(Mutex<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.lock().unwrap()))
    }
}

#[tokio::test]
async fn a_server_may_show_another_certificate_while_it_runs() {
    limited(async {
        let identities = [(); 2].map(|()| ServerIdentity::generate(NAME).unwrap());
        let [first, second] = identities.each_ref().map(|identity| identity.certified_key());
        let shown = Arc::new(Shown(Mutex::new(Arc::new(first.unwrap()))));
        let config = server_config(Arc::<Shown>::clone(&shown), &[ALPN]).unwrap();
        let tls = Arc::new(RustlsServer::new(config).unwrap());
        let server = Endpoint::server(ServerConfig { tls, ..Setup::new().server });
        let server = server.listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
        let address = server.local_addresses()[0];
        let endpoint = Endpoint::client().bind().unwrap();
        let connect = async |identity: &ServerIdentity| {
            let accept = async { server.accept().await.unwrap().accept().await.map(drop) };
            let config = client(pinned(identity.pin(), &[ALPN]).unwrap());
            let connect = endpoint.connect(&config, address, NAME);
            tokio::join!(accept, connect).1
        };
        connect(&identities[0]).await.unwrap();
        *shown.0.lock().unwrap() = Arc::new(second.unwrap());
        connect(&identities[1]).await.unwrap();
        connect(&identities[0]).await.unwrap_err();
    })
    .await;
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_keys() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("identity");
    ServerIdentity::kept_in(&kept, NAME).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept) & 0o077, 0);
    for file in ["key.pem", "secret.hex"] {
        assert_eq!(mode(&kept.join(file)) & 0o177, 0, "{file}");
    }
}

#[tokio::test]
async fn a_certificate_of_an_authority_is_read_from_files() {
    limited(async {
        let folder = tempfile::tempdir().unwrap();
        let at = |file: &str| folder.path().join(file);
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).unwrap();
        let issuer = rcgen::Issuer::new(params, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new([NAME.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(at("authority.pem"), authority.pem()).unwrap();
        fs::write(at("chain.pem"), certificate.pem() + &authority.pem()).unwrap();
        fs::write(at("key.pem"), key.serialize_pem()).unwrap();
        let identity = ServerIdentity::read(&at("chain.pem"), &at("key.pem")).unwrap();
        connect(&identity, trusting(&at("authority.pem"), &[ALPN]).unwrap(), NAME).await.unwrap();
        connect(&identity, pinned(identity.pin(), &[ALPN]).unwrap(), NAME).await.unwrap();
        // The authority's key is not that of the certificate.
        fs::write(at("other.pem"), issuer.key().serialize_pem()).unwrap();
        let other = ServerIdentity::read(&at("chain.pem"), &at("other.pem")).unwrap();
        assert!(matches!(other.tls(&[ALPN]), Err(IdentityError::OtherKey)));
    })
    .await;
}

#[test]
fn files_that_are_none_of_what_they_should_be_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    let message = |result: Result<ServerIdentity, IdentityError>| result.unwrap_err().to_string();
    let kept = || message(ServerIdentity::kept_in(folder.path(), NAME));
    ServerIdentity::kept_in(folder.path(), NAME).unwrap();
    fs::write(at("secret.hex"), "123").unwrap();
    assert!(kept().contains("secret.hex: expected 64 hexadecimal digits"), "{}", kept());
    fs::remove_file(at("key.pem")).unwrap();
    assert!(kept().contains("key.pem; restore it, or remove both"), "{}", kept());
    fs::write(at("key.pem"), "no key").unwrap();
    assert!(kept().contains("key.pem: no private key; expected"), "{}", kept());
    fs::write(at("certificate.pem"), "").unwrap();
    assert!(kept().contains("certificate.pem: no certificate; expected"), "{}", kept());
    fs::write(at("certificate.pem"), vec![b'-'; (1 << 20) + 1]).unwrap();
    assert!(kept().contains("certificate.pem has more than 1 MiB"), "{}", kept());
    let missing = message(ServerIdentity::read(&at("none.pem"), &at("key.pem")));
    assert!(missing.contains("cannot read") && missing.contains("none.pem"), "{missing}");
}

#[tokio::test]
async fn a_server_that_started_anew_resets_the_connections_that_it_had() {
    limited(async {
        let folder = tempfile::tempdir().unwrap();
        let identity = ServerIdentity::kept_in(folder.path(), NAME).unwrap();
        let endpoint = Endpoint::client().bind().unwrap();
        let config = client(pinned(identity.pin(), &[ALPN]).unwrap());
        // The first server has a runtime of its own, which ends without a word.
        let (told, address) = tokio::sync::oneshot::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let first = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap();
            let connection = runtime.block_on(async {
                let (server, address) = listen(&identity, "127.0.0.1:0");
                told.send(address).unwrap();
                let connection = server.accept().await.unwrap().accept().await.unwrap();
                stopped.await.unwrap();
                connection
            });
            runtime.shutdown_background();
            drop(connection);
        });
        let address = address.await.unwrap();
        let connection = endpoint.connect(&config, address, NAME).await.unwrap();
        connection.confirmed().await.unwrap();
        stop.send(()).unwrap();
        first.join().unwrap();
        let kept = ServerIdentity::kept_in(folder.path(), NAME).unwrap();
        let _second = listen(&kept, &address.to_string());
        let mut stream = connection.open_unidirectional().await.unwrap();
        // Longer than the shortest datagram that is answered.
        stream.write_bytes(vec![0; 1000].into()).await.unwrap();
        let reason = connection.closed().await;
        assert_eq!(reason, ConnectionError::Closed(CloseReason::StatelessReset));
        assert!(reason.to_string().contains("connect again"), "{reason}");
    })
    .await;
}

#[test]
fn a_secret_is_not_printed() {
    assert_eq!(format!("{:?}", Secret::generate().unwrap()), "Secret(..)");
}
