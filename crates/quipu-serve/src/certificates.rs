//! The server's certificate, shared by TCP and QUIC, which may be renewed while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use quipu_quic::tls::rustls::RustlsServer;
use quipu_quic::tls::{ResetKey, TokenKey};
use quipu_tokio::identity::{IdentityError, Pin, Secret, ServerIdentity, server_config};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// ALPN names of HTTP over TCP, most preferred first.
/// <https://www.rfc-editor.org/rfc/rfc9113#section-3.2>
const OVER_TCP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Default interval at which files are checked for changes. Our choice.
pub const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Certificate chain and private key of a server, from two PEM files. As a [`ResolvesServerCert`] it gives every new
/// connection the chain that was last read; [`watch`](Self::watch) re-reads files that change.
#[derive(Debug)]
pub struct Certificates {
    /// `None` if they were made for this run alone.
    files: Option<Files>,
    /// The identity of the start. Its secret remains in use when certificates change.
    identity: ServerIdentity,
    shown: RwLock<Arc<CertifiedKey>>,
    seen: Mutex<Seen>,
}

/// The paths of the two files.
#[derive(Debug)]
struct Files {
    certificates: PathBuf,
    key: PathBuf,
}

/// Modification time and length of a file; `None` if it did not exist.
type Stamp = Option<(SystemTime, u64)>;

/// The result of the last check.
#[derive(Debug)]
struct Seen {
    /// Of the files that were last read successfully.
    stamps: [Stamp; 2],
    /// The error of the last check, if it failed.
    error: Option<String>,
}

/// The result of [`Certificates::reload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reloaded {
    /// The files have not changed.
    Same,
    /// The files have changed; new connections get the new certificate.
    Changed,
}

impl Certificates {
    /// Reads a certificate chain, end entity first, and its private key from PEM files. Tokens and stateless resets
    /// use a new random secret; see [`with_secret`](Self::with_secret).
    ///
    /// # Errors
    /// [`IdentityError`], which names the file and what was expected in it.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, IdentityError> {
        let files = Files { certificates: certificates.to_owned(), key: key.to_owned() };
        // Taken before reading, so that a change during the read is noticed by the next check.
        let stamps = files.stamps();
        let identity = ServerIdentity::read(certificates, key)?;
        Self::of(Some(files), stamps, identity)
    }

    /// Reads `certificate.pem`, `key.pem` and `secret.hex` in `folder`. On first use they are created, with a
    /// self-signed certificate for `name`. Clients can pin the certificate: [`pin`](Self::pin) is the same after each
    /// restart.
    ///
    /// # Errors
    /// [`IdentityError`], as [`ServerIdentity::kept_in`].
    pub fn kept_in(folder: &Path, name: &str) -> Result<Self, IdentityError> {
        Self::kept_in_for(folder, &[name])
    }

    /// The same for several names, as [`ServerIdentity::kept_in_for`].
    ///
    /// # Errors
    /// [`IdentityError`], as there.
    pub fn kept_in_for(folder: &Path, names: &[&str]) -> Result<Self, IdentityError> {
        let identity = ServerIdentity::kept_in_for(folder, names)?;
        let files =
            Files { certificates: folder.join("certificate.pem"), key: folder.join("key.pem") };
        let stamps = files.stamps();
        Self::of(Some(files), stamps, identity)
    }

    /// One made for `name` and signed by itself, which nothing keeps: clients know it for this run alone.
    ///
    /// # Errors
    /// [`IdentityError`] if the host has no randomness, or the name cannot be in a certificate.
    pub fn generate(name: &str) -> Result<Self, IdentityError> {
        Self::generate_for(&[name])
    }

    /// The same for several names, as [`ServerIdentity::generate_for`].
    ///
    /// # Errors
    /// [`IdentityError`], as there.
    pub fn generate_for(names: &[&str]) -> Result<Self, IdentityError> {
        Self::of(None, [None; 2], ServerIdentity::generate_for(names)?)
    }

    /// The same with a chain of about `bytes`, as [`ServerIdentity::with_chain_of`].
    ///
    /// # Errors
    /// [`IdentityError`], as there.
    pub fn generate_chain_for(names: &[&str], bytes: usize) -> Result<Self, IdentityError> {
        Self::of(None, [None; 2], ServerIdentity::generate_for(names)?.with_chain_of(bytes)?)
    }

    fn of(
        files: Option<Files>,
        stamps: [Stamp; 2],
        identity: ServerIdentity,
    ) -> Result<Self, IdentityError> {
        let shown = RwLock::new(Arc::new(identity.certified_key()?));
        Ok(Certificates { files, identity, shown, seen: Mutex::new(Seen { stamps, error: None }) })
    }

    /// Uses `secret` for tokens and stateless resets.
    #[must_use]
    pub fn with_secret(self, secret: Secret) -> Self {
        Certificates { identity: self.identity.with_secret(secret), ..self }
    }

    /// Fingerprint (SHA-256) of the current certificate, to be printed for clients.
    pub fn pin(&self) -> Pin {
        self.certificate().map_or(Pin([0; 32]), |certificate| Pin::of(&certificate))
    }

    /// SHA-256 of the current certificate's key (its `SubjectPublicKeyInfo` in DER), by which Chromium's option
    /// `--ignore-certificate-errors-spki-list` knows a server; `None` if the certificate's key cannot be read.
    pub fn key_hash(&self) -> Option<[u8; 32]> {
        let shown = self.shown();
        Some(Pin::of(&shown.key.public_key()?).0)
    }

    /// The current end-entity certificate.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.shown().cert.first().cloned()
    }

    fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The TLS configuration for TCP: ALPN `h2` and `http/1.1`, and TLS 1.3 only, as over QUIC.
    ///
    /// # Errors
    /// [`IdentityError`] if `rustls` rejects the configuration.
    pub fn tcp(self: &Arc<Self>) -> Result<Arc<ServerConfig>, IdentityError> {
        server_config(Arc::<Self>::clone(self), &OVER_TCP)
    }

    /// The TLS configuration for QUIC with the names of `alpn`, most preferred first.
    ///
    /// # Errors
    /// [`IdentityError`] if `rustls` rejects the configuration.
    pub fn quic(self: &Arc<Self>, alpn: &[&[u8]]) -> Result<RustlsServer, IdentityError> {
        Ok(RustlsServer::new(server_config(Arc::<Self>::clone(self), alpn)?)?)
    }

    /// For [`EndpointConfig::reset_key`](quipu_tokio::EndpointConfig).
    ///
    /// # Errors
    /// [`IdentityError::Tls`] if the provider has no suite for it.
    pub fn reset_key(&self) -> Result<Arc<dyn ResetKey>, IdentityError> {
        self.identity.reset_key()
    }

    /// For [`TokenConfig::key`](quipu_tokio::TokenConfig).
    ///
    /// # Errors
    /// [`IdentityError::Tls`] if the provider has no suite for it.
    pub fn token_key(&self) -> Result<Arc<dyn TokenKey>, IdentityError> {
        self.identity.token_key()
    }

    /// Re-reads the files if their modification time or length has changed. Blocks on the file system.
    ///
    /// # Errors
    /// [`IdentityError`] if they cannot be read or do not belong together; the previous certificate remains in use,
    /// and the next call tries again.
    pub fn reload(&self) -> Result<Reloaded, IdentityError> {
        let Some(files) = &self.files else { return Ok(Reloaded::Same) };
        let stamps = files.stamps();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamps == seen.stamps {
            return Ok(Reloaded::Same);
        }
        // Tried again until it succeeds, since the two files are not replaced at the same instant.
        let identity = ServerIdentity::read(&files.certificates, &files.key)?;
        let key = Arc::new(identity.certified_key()?);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = key;
        seen.stamps = stamps;
        Ok(Reloaded::Changed)
    }

    /// Calls [`reload`](Self::reload) at this interval until the future is dropped, and reports changes and new errors
    /// to `tracing`. Run it in a task next to the server, for example every [`LOOK_AFTER`].
    pub async fn watch(self: Arc<Self>, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            let watched = Arc::clone(&self);
            // Fails only when the runtime shuts down.
            let _ = tokio::task::spawn_blocking(move || watched.look()).await;
        }
    }

    fn look(&self) {
        let error = match self.reload() {
            Ok(Reloaded::Same) => None,
            Ok(Reloaded::Changed) => {
                let pin = self.pin();
                tracing::info!(target: "quipu_serve", %pin, "the certificate was reloaded");
                None
            }
            Err(error) => Some(error.to_string()),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = error.as_ref().filter(|error| seen.error.as_ref() != Some(*error)) {
            let kept = "cannot reload the certificate; the previous one remains in use";
            tracing::warn!(target: "quipu_serve", %error, "{kept}");
        }
        seen.error = error;
    }
}

impl Files {
    fn stamps(&self) -> [Stamp; 2] {
        [&self.certificates, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

impl ResolvesServerCert for Certificates {
    /// The same certificate for every server name.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}
