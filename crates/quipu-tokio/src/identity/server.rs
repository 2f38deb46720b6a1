//! What a server is known by.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use quipu_quic::tls::rustls::{
    ConfigError, RustlsServer, provider, reset_key, secure_source, token_key,
};
use quipu_quic::tls::{CertificateDer, ResetKey, SECRET_LENGTH, TokenKey};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::error::IdentityError;
use super::files::{self, Readers};
use super::hex;
use super::key_log::key_log;
use super::pin::Pin;

/// Files of a folder that keeps an identity.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const SECRET: &str = "secret.hex";

/// Length and extensions of a certificate in a list of TLS 1.3.
/// <https://www.rfc-editor.org/rfc/rfc8446#section-4.4.2>
const ENTRY: usize = 5;

/// Bytes by which a certificate may be longer than it was asked to be: signatures have no fixed length.
const FEW: usize = 8;

/// Certificate, private key and secret of a server. Clients know it by the certificate; the secret makes
/// its tokens and stateless resets, so that a server that starts anew with the same one resets the
/// connections that it had, and takes the tokens that it gave.
pub struct ServerIdentity {
    /// End entity first.
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    secret: Secret,
}

impl ServerIdentity {
    /// A new one: a key, a certificate for `name` that it signs itself, and a secret.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn generate(name: &str) -> Result<Self, IdentityError> {
        Self::generate_for(&[name])
    }

    /// The same for several names: hosts, or addresses of IPv4 or IPv6 without brackets.
    ///
    /// # Errors
    /// See [`IdentityError`]; among others if a name has letters beyond ASCII.
    pub fn generate_for(names: &[&str]) -> Result<Self, IdentityError> {
        let (certificate, key) = make(names)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let chain = vec![certificate.der().clone()];
        Ok(ServerIdentity { chain, key, secret: Secret::generate()? })
    }

    /// The same with a further certificate behind it, which nobody needs: the chain takes `bytes` in the handshake, give
    /// or take a few, as those of authorities on the Internet take some thousands. It stays as it is if it is longer.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn with_chain_of(mut self, bytes: usize) -> Result<Self, IdentityError> {
        let missing = bytes.saturating_sub(self.chain_bytes() + ENTRY);
        let filler = filler(missing)?;
        if filler.len() <= missing + FEW {
            self.chain.push(filler);
        }
        Ok(self)
    }

    /// Bytes of the chain in the handshake: the certificates, and what TLS 1.3 puts around each that follows another.
    pub fn chain_bytes(&self) -> usize {
        let certificates: usize = self.chain.iter().map(|certificate| certificate.len()).sum();
        certificates + ENTRY * self.chain.len().saturating_sub(1)
    }

    /// That of PEM files: the certificates, the server's own first, and its private key. The secret is a
    /// new one.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, IdentityError> {
        let chain = files::read_certificates(certificates)?;
        let key = files::read_key(key)?;
        Ok(ServerIdentity { chain, key, secret: Secret::generate()? })
    }

    /// The one that `folder` keeps, in the files `certificate.pem`, `key.pem` and `secret.hex`. What is
    /// not there is made, for `name`; only the owner may read key and secret.
    ///
    /// # Errors
    /// See [`IdentityError`]; among others if of certificate and key one is there.
    pub fn kept_in(folder: &Path, name: &str) -> Result<Self, IdentityError> {
        Self::kept_in_for(folder, &[name])
    }

    /// The same, made for several names as by [`generate_for`](Self::generate_for). A certificate that is there stays
    /// as it is, whatever its names.
    ///
    /// # Errors
    /// As [`kept_in`](Self::kept_in).
    pub fn kept_in_for(folder: &Path, names: &[&str]) -> Result<Self, IdentityError> {
        files::make_folder(folder)?;
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        match (certificate.exists(), key.exists()) {
            (true, true) => {}
            (true, false) => return Err(IdentityError::Half { there: certificate, missing: key }),
            (false, true) => return Err(IdentityError::Half { there: key, missing: certificate }),
            (false, false) => {
                let (made, pair) = make(names)?;
                files::write(&key, &pair.serialize_pem(), Readers::Owner)?;
                files::write(&certificate, &made.pem(), Readers::Any)?;
            }
        }
        Ok(Self::read(&certificate, &key)?.with_secret(Secret::kept_in(folder)?))
    }

    /// The same with that secret.
    #[must_use]
    pub fn with_secret(self, secret: Secret) -> Self {
        ServerIdentity { secret, ..self }
    }

    /// By which a client may know the certificate.
    pub fn pin(&self) -> Pin {
        // There is one.
        self.chain.first().map_or(Pin([0; 32]), |certificate| Pin::of(certificate))
    }

    /// The server's TLS, which takes the first of `alpn` that a client offers. If the environment variable
    /// `SSLKEYLOGFILE` names a file, the secrets of its connections are appended there, as those of clients
    /// are by [`pinned`](super::pinned).
    ///
    /// # Errors
    /// [`IdentityError::OtherKey`] if the key is not that of the certificate, or another if TLS refuses.
    pub fn tls(&self, alpn: &[&[u8]]) -> Result<RustlsServer, IdentityError> {
        let resolver = Arc::new(SingleCertAndKey::from(self.certified_key()?));
        Ok(RustlsServer::new(server_config(resolver, alpn)?)?)
    }

    /// Certificates and key, ready to sign, for a resolver of [`server_config`].
    ///
    /// # Errors
    /// [`IdentityError::OtherKey`] if the key is not that of the certificate, or another if TLS refuses.
    pub fn certified_key(&self) -> Result<CertifiedKey, IdentityError> {
        let made = CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &provider());
        made.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => IdentityError::OtherKey,
            error => IdentityError::Tls(ConfigError::Rustls(error)),
        })
    }

    /// For [`EndpointConfig::reset_key`](quipu_quic::endpoint::EndpointConfig::reset_key).
    ///
    /// # Errors
    /// [`IdentityError::Tls`] if there is no suite for it.
    pub fn reset_key(&self) -> Result<Arc<dyn ResetKey>, IdentityError> {
        Ok(reset_key(&provider(), &self.secret.0)?)
    }

    /// For [`TokenConfig::key`](quipu_quic::endpoint::TokenConfig::key).
    ///
    /// # Errors
    /// [`IdentityError::Tls`] if there is no suite for it.
    pub fn token_key(&self) -> Result<Arc<dyn TokenKey>, IdentityError> {
        Ok(token_key(&provider(), &self.secret.0)?)
    }
}

impl fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerIdentity").field("pin", &self.pin()).finish_non_exhaustive()
    }
}

/// What the tokens and stateless resets of a server are made with: 32 bytes that nobody else knows.
pub struct Secret([u8; SECRET_LENGTH]);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// [`IdentityError::Randomness`].
    pub fn generate() -> Result<Self, IdentityError> {
        let mut secret = [0; SECRET_LENGTH];
        secure_source(&provider()).fill(&mut secret)?;
        Ok(Secret(secret))
    }

    /// The one that `folder` keeps in the file `secret.hex`, made if it is not there.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn kept_in(folder: &Path) -> Result<Self, IdentityError> {
        files::make_folder(folder)?;
        let path = folder.join(SECRET);
        if !path.exists() {
            let made = Secret::generate()?;
            files::write(&path, &(hex::write(&made.0) + "\n"), Readers::Owner)?;
            return Ok(made);
        }
        let text = files::read(&path)?;
        let secret = std::str::from_utf8(&text).ok().and_then(|text| hex::read(text.trim()));
        secret.map(Secret).ok_or(IdentityError::NoSecret(path))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The TLS of a server with a new identity for `name`, which takes the first of `alpn` that a client
/// offers, and the pin for clients.
///
/// # Errors
/// See [`IdentityError`].
pub fn self_signed(name: &str, alpn: &[&[u8]]) -> Result<(RustlsServer, Pin), IdentityError> {
    let identity = ServerIdentity::generate(name)?;
    Ok((identity.tls(alpn)?, identity.pin()))
}

/// The configuration of a server that shows what `resolver` chooses, and takes the first of `alpn` that a
/// client offers: TLS 1.3 alone, over QUIC or TCP. `SSLKEYLOGFILE` as in [`ServerIdentity::tls`].
///
/// # Errors
/// See [`IdentityError`].
pub fn server_config(
    resolver: Arc<dyn ResolvesServerCert>,
    alpn: &[&[u8]],
) -> Result<Arc<rustls::ServerConfig>, IdentityError> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.key_log = key_log();
    Ok(Arc::new(config))
}

/// A certificate of about `bytes`, or the shortest if that is longer.
fn filler(bytes: usize) -> Result<CertificateDer<'static>, IdentityError> {
    // A number for examples, of an extension that says nothing: https://www.rfc-editor.org/rfc/rfc5612
    const PADDING: [u64; 9] = [1, 3, 6, 1, 4, 1, 32_473, 1, 1];
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let of = |padding: usize| {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new())?;
        let padding = rcgen::CustomExtension::from_oid_content(&PADDING, vec![0; padding]);
        params.custom_extensions = vec![padding];
        Ok::<_, IdentityError>(params.self_signed(&key)?.der().clone())
    };
    let shortest = of(0)?;
    let Some(missing) = bytes.checked_sub(shortest.len()).filter(|missing| *missing > 0) else {
        return Ok(shortest);
    };
    // Longer content makes the lengths around it longer, too.
    let longer = of(missing)?.len().saturating_sub(bytes);
    of(missing.saturating_sub(longer))
}

/// A key, and a certificate for `names` that it signs itself.
fn make(names: &[&str]) -> Result<(rcgen::Certificate, rcgen::KeyPair), IdentityError> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let params = rcgen::CertificateParams::new(names)?;
    Ok((params.self_signed(&key)?, key))
}
