//! The certificate that servers show.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_serve::{Certificates, Reloaded};
use quipu_tokio::identity::{Pin, ServerIdentity, pinned_config};
use tempfile::TempDir;

use crate::client::{NAME, Running, soon};
use crate::setup::Site;

/// Certificate and key that are others than those of `folder`, written over them.
fn renew(folder: &Path) -> Pin {
    let other = TempDir::new().unwrap();
    let identity = ServerIdentity::kept_in(other.path(), NAME).unwrap();
    for file in ["certificate.pem", "key.pem"] {
        fs::copy(other.path().join(file), folder.join(file)).unwrap();
    }
    identity.pin()
}

#[test]
fn a_folder_keeps_its_certificate_from_start_to_start() {
    let folder = TempDir::new().unwrap();
    let first = Certificates::kept_in(folder.path(), NAME).unwrap();
    let second = Certificates::kept_in(folder.path(), NAME).unwrap();
    assert_eq!(first.pin(), second.pin());
    assert_eq!(first.pin(), Pin::of(&first.certificate().unwrap()));
    assert_eq!(first.reload().unwrap(), Reloaded::Same);
}

#[test]
fn given_files_are_read_and_errors_name_them() {
    let folder = TempDir::new().unwrap();
    let kept = Certificates::kept_in(folder.path(), NAME).unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|file| folder.path().join(file));
    assert_eq!(Certificates::read(&certificate, &key).unwrap().pin(), kept.pin());
    let error = |certificate: &Path, key: &Path| {
        Certificates::read(certificate, key).unwrap_err().to_string()
    };
    let swapped = error(&key, &certificate);
    assert!(swapped.contains("key.pem") && swapped.contains("BEGIN CERTIFICATE"), "{swapped}");
    let no_key = error(&certificate, &certificate);
    assert!(no_key.contains("certificate.pem") && no_key.contains("PRIVATE KEY"), "{no_key}");
    let missing = error(&certificate, &folder.path().join("none.pem"));
    assert!(missing.starts_with("cannot read ") && missing.contains("none.pem"), "{missing}");
    let other = TempDir::new().unwrap();
    Certificates::kept_in(other.path(), NAME).unwrap();
    let mixed = error(&certificate, &other.path().join("key.pem"));
    assert!(mixed.contains("not that of the certificate"), "{mixed}");
}

#[test]
fn changed_files_are_read_again_once_both_fit() {
    let folder = TempDir::new().unwrap();
    let certificates = Certificates::kept_in(folder.path(), NAME).unwrap();
    let old = certificates.pin();
    let new = renew(folder.path());
    let key = fs::read(folder.path().join("key.pem")).unwrap();
    // Half written, then half renewed, then gone.
    fs::write(folder.path().join("key.pem"), &key[..40]).unwrap();
    certificates.reload().unwrap_err();
    let other = TempDir::new().unwrap();
    ServerIdentity::kept_in(other.path(), NAME).unwrap();
    fs::copy(other.path().join("key.pem"), folder.path().join("key.pem")).unwrap();
    certificates.reload().unwrap_err();
    fs::remove_file(folder.path().join("key.pem")).unwrap();
    certificates.reload().unwrap_err();
    assert_eq!(certificates.pin(), old);
    fs::write(folder.path().join("key.pem"), key).unwrap();
    assert_eq!(certificates.reload().unwrap(), Reloaded::Changed);
    assert_eq!(certificates.pin(), new);
    assert_eq!(certificates.reload().unwrap(), Reloaded::Same);
}

/// The certificates that a client sees which knows the server by its pin alone.
fn seen_by_pin(certificates: &Arc<Certificates>) -> Vec<usize> {
    let tls = pinned_config(certificates.pin(), &[b"h2"]).unwrap();
    let name = NAME.try_into().unwrap();
    let mut client = rustls::ClientConnection::new(tls, name).unwrap();
    let mut server = rustls::ServerConnection::new(certificates.tcp().unwrap()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut wire = wire.as_slice();
        while !wire.is_empty() {
            client.read_tls(&mut wire).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    client.peer_certificates().unwrap().iter().map(|certificate| certificate.len()).collect()
}

#[test]
fn a_chain_is_about_as_long_as_was_asked_for_and_known_by_the_same_pin() {
    for bytes in [1_000, 3_000, 20_000] {
        let made = Certificates::generate_chain_for(&[NAME], bytes).unwrap();
        let seen = seen_by_pin(&Arc::new(made));
        // Five bytes of lengths stand before the second.
        let chain = seen.iter().sum::<usize>() + 5;
        assert_eq!(seen.len(), 2);
        assert!(chain.abs_diff(bytes) <= 8, "{chain} of {bytes}");
    }
    let alone = Certificates::generate_chain_for(&[NAME], 100).unwrap();
    assert_eq!(seen_by_pin(&Arc::new(alone)).len(), 1, "there is no room for a second");
}

#[tokio::test]
async fn new_connections_see_a_renewed_certificate_and_old_ones_go_on() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::start(site.files.clone(), |server| server);
    let certificates = Arc::clone(&server.certificates);
    let watch = tokio::spawn(Arc::clone(&certificates).watch(Duration::from_millis(5)));
    let mut old = server.http2().await;
    old.get("/a.txt").await.is(200, "abc");
    let new = renew(server.folder());
    soon(async {
        while certificates.pin() != new {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let stream = server.tls(&[b"h2"]).await;
    let shown = stream.get_ref().1.peer_certificates().unwrap();
    assert_eq!(Pin::of(&shown[0]), new);
    old.get("/a.txt").await.is(200, "abc");
    // A broken file changes nothing.
    fs::write(server.folder().join("certificate.pem"), "none").unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let stream = server.tls(&[b"h2"]).await;
    let shown = stream.get_ref().1.peer_certificates().unwrap();
    assert_eq!(Pin::of(&shown[0]), new);
    watch.abort();
}

#[test]
fn quic_and_tcp_have_a_configuration_each_with_the_same_certificate() {
    let folder = TempDir::new().unwrap();
    let certificates = Arc::new(Certificates::kept_in(folder.path(), NAME).unwrap());
    assert_eq!(certificates.tcp().unwrap().alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    certificates.quic(&[b"h3"]).unwrap();
    certificates.reset_key().unwrap();
    certificates.token_key().unwrap();
}
