//! The certificate that a server shows, over TCP and QUIC alike, and which may change while it runs.

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

/// Names of HTTP over TCP, as TLS negotiates them. The first that a client offers, too, is taken.
/// <https://www.rfc-editor.org/rfc/rfc9113#section-3.2>
const OVER_TCP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How often files are looked at for changes. Our choice: whoever renews a certificate does so days before
/// the old one ends.
pub const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Certificates and key of a server, in two PEM files. Every new connection is shown what the files held when
/// they were last read: [`watch`](Self::watch).
#[derive(Debug)]
pub struct Certificates {
    files: Files,
    /// As it was made; its secret stays, whatever certificate is shown.
    identity: ServerIdentity,
    shown: RwLock<Arc<CertifiedKey>>,
    seen: Mutex<Seen>,
}

/// Where they are.
#[derive(Debug)]
struct Files {
    certificates: PathBuf,
    key: PathBuf,
}

/// What a file looked like: its time of change and its length; `None` if it was not there.
type Stamp = Option<(SystemTime, u64)>;

/// What was found when the files were last looked at.
#[derive(Debug)]
struct Seen {
    /// Of the files that were last read without an error.
    stamps: [Stamp; 2],
    /// Why they were not read since.
    error: Option<String>,
}

/// What [`Certificates::reload`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reloaded {
    /// The files are those that were read.
    Same,
    /// The files changed, and what they have is shown from now on.
    Changed,
}

impl Certificates {
    /// Those of PEM files: the certificates, the server's own first, and its private key. Tokens and
    /// stateless resets are made with a new secret: [`with_secret`](Self::with_secret).
    ///
    /// # Errors
    /// [`IdentityError`], which names the file and what is expected of it.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, IdentityError> {
        let files = Files { certificates: certificates.to_owned(), key: key.to_owned() };
        // Looked at before they are read: what is written meanwhile is read once more.
        let stamps = files.stamps();
        let identity = ServerIdentity::read(certificates, key)?;
        Self::of(files, stamps, identity)
    }

    /// Those that `folder` keeps in `certificate.pem` and `key.pem`, made for `name` and signed by themselves if
    /// they are not there, with the secret of `secret.hex`. Clients know them by their [`pin`](Self::pin), which
    /// stays the same from start to start.
    ///
    /// # Errors
    /// [`IdentityError`], as [`ServerIdentity::kept_in`].
    pub fn kept_in(folder: &Path, name: &str) -> Result<Self, IdentityError> {
        let identity = ServerIdentity::kept_in(folder, name)?;
        let files =
            Files { certificates: folder.join("certificate.pem"), key: folder.join("key.pem") };
        let stamps = files.stamps();
        Self::of(files, stamps, identity)
    }

    fn of(
        files: Files,
        stamps: [Stamp; 2],
        identity: ServerIdentity,
    ) -> Result<Self, IdentityError> {
        let shown = RwLock::new(Arc::new(identity.certified_key()?));
        Ok(Certificates { files, identity, shown, seen: Mutex::new(Seen { stamps, error: None }) })
    }

    /// The same with that secret for tokens and stateless resets.
    #[must_use]
    pub fn with_secret(self, secret: Secret) -> Self {
        Certificates { identity: self.identity.with_secret(secret), ..self }
    }

    /// The fingerprint of the certificate that is shown now, to be printed for clients.
    pub fn pin(&self) -> Pin {
        self.certificate().map_or(Pin([0; 32]), |certificate| Pin::of(&certificate))
    }

    /// The server's own certificate that is shown now. There is one.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.shown().cert.first().cloned()
    }

    fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The TLS of a server over TCP, with HTTP/2 and HTTP/1.1: TLS 1.3 alone, as over QUIC.
    ///
    /// # Errors
    /// [`IdentityError`] if TLS refuses.
    pub fn tcp(self: &Arc<Self>) -> Result<Arc<ServerConfig>, IdentityError> {
        server_config(Arc::<Self>::clone(self), &OVER_TCP)
    }

    /// The TLS of a server over QUIC, which takes the first of `alpn` that a client offers.
    ///
    /// # Errors
    /// [`IdentityError`] if TLS refuses.
    pub fn quic(self: &Arc<Self>, alpn: &[&[u8]]) -> Result<RustlsServer, IdentityError> {
        Ok(RustlsServer::new(server_config(Arc::<Self>::clone(self), alpn)?)?)
    }

    /// For [`EndpointConfig::reset_key`](quipu_tokio::EndpointConfig).
    ///
    /// # Errors
    /// [`IdentityError::Tls`] if there is no suite for it.
    pub fn reset_key(&self) -> Result<Arc<dyn ResetKey>, IdentityError> {
        self.identity.reset_key()
    }

    /// For [`TokenConfig::key`](quipu_tokio::TokenConfig).
    ///
    /// # Errors
    /// [`IdentityError::Tls`] if there is no suite for it.
    pub fn token_key(&self) -> Result<Arc<dyn TokenKey>, IdentityError> {
        self.identity.token_key()
    }

    /// Reads the files if they are others than those that were read. Blocks for as long as that takes.
    ///
    /// # Errors
    /// [`IdentityError`] if they cannot be read or do not belong together; what was shown is shown still.
    pub fn reload(&self) -> Result<Reloaded, IdentityError> {
        let stamps = self.files.stamps();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamps == seen.stamps {
            return Ok(Reloaded::Same);
        }
        // Until it succeeds: one of the files may be written later than the other.
        let identity = ServerIdentity::read(&self.files.certificates, &self.files.key)?;
        let key = Arc::new(identity.certified_key()?);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = key;
        seen.stamps = stamps;
        Ok(Reloaded::Changed)
    }

    /// Calls [`reload`](Self::reload) each time that `every` has passed, for ever, and tells `tracing` of changes,
    /// and of errors when they are others than before. To be run beside the server; [`LOOK_AFTER`] is often
    /// enough.
    pub async fn watch(self: Arc<Self>, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            let watched = Arc::clone(&self);
            // Ends early only if the runtime does.
            let _ = tokio::task::spawn_blocking(move || watched.look()).await;
        }
    }

    fn look(&self) {
        let error = match self.reload() {
            Ok(Reloaded::Same) => None,
            Ok(Reloaded::Changed) => {
                let pin = self.pin();
                tracing::info!(target: "quipu_serve", %pin, "there is another certificate");
                None
            }
            Err(error) => Some(error.to_string()),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = error.as_ref().filter(|error| seen.error.as_ref() != Some(*error)) {
            tracing::warn!(target: "quipu_serve", %error, "the old certificate is shown still");
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
    /// The same for every name that a client asks for.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}
