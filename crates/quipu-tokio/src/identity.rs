//! Certificates without an authority: a server makes its own, and a client knows it by its pin.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quipu_quic::tls::CertificateDer;
use quipu_quic::tls::rustls::{ConfigError, RustlsClient, RustlsServer, provider};
use rustls::DigitallySignedStruct;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName, UnixTime};
use thiserror::Error;

/// SHA-256 of a certificate in DER, by which a client knows a server. As text, 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; 32]);

impl Pin {
    /// The pin of that certificate.
    pub fn of(certificate: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut pin = [0; 32];
        pin.copy_from_slice(digest.as_ref());
        Pin(pin)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected 64 hexadecimal digits, the SHA-256 of the server's certificate")]
pub struct PinError;

impl FromStr for Pin {
    type Err = PinError;

    /// Hexadecimal digits, with or without colons.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut digits = text.chars().filter(|sign| *sign != ':').map(|sign| sign.to_digit(16));
        let mut digit = || digits.next().flatten();
        let mut pin = [0; 32];
        for byte in &mut pin {
            let (high, low) = (digit().ok_or(PinError)?, digit().ok_or(PinError)?);
            *byte = u8::try_from(high << 4 | low).map_err(|_| PinError)?;
        }
        if digits.next().is_some() { Err(PinError) } else { Ok(Pin(pin)) }
    }
}

/// Why an identity was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// No key or certificate.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS refuses it.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// rustls refuses it.
    #[error("rustls refuses the configuration: {0}")]
    Rustls(#[from] rustls::Error),
}

/// A server that signs its own certificate, for `name`, with a key of its own. Returns its TLS, which
/// takes the first of `alpn` that a client offers, and the pin for clients.
///
/// # Errors
/// See [`IdentityError`].
pub fn self_signed(name: &str, alpn: &[&[u8]]) -> Result<(RustlsServer, Pin), IdentityError> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let params = rcgen::CertificateParams::new(vec![name.to_owned()])?;
    let certificate = params.self_signed(&key)?.der().clone();
    let pin = Pin::of(&certificate);
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((RustlsServer::with_certificate(vec![certificate], key.into(), alpn)?, pin))
}

/// A client that trusts the server with that pin, whatever its name, and no other. If the environment
/// variable `SSLKEYLOGFILE` names a file, the secrets of its connections are appended there, for tools
/// that decrypt recorded packets:
/// <https://www.ietf.org/archive/id/draft-ietf-tls-keylogfile-05.html>.
///
/// # Errors
/// See [`IdentityError`].
pub fn pinned(pin: Pin, alpn: &[&[u8]]) -> Result<RustlsClient, IdentityError> {
    let provider = provider();
    let verifier = Arc::new(Pinned { pin, provider: Arc::clone(&provider) });
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok(RustlsClient::new(Arc::new(config))?)
}

/// Takes one certificate, by its hash: names, dates and authorities say nothing more.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Pin::of(end_entity);
        if found == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = rustls::CertificateError::ApplicationVerificationFailure;
        Err(rustls::Error::InvalidCertificate(unknown))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_as_it_is_printed_or_with_colons() {
        let pin = Pin::of(b"abc");
        let text = pin.to_string();
        // https://www.rfc-editor.org/rfc/rfc6234#section-8.5
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse(), Ok(pin));
        let pairs: Vec<&str> = (0..32).map(|at| &text[2 * at..2 * at + 2]).collect();
        assert_eq!(pairs.join(":").to_uppercase().parse(), Ok(pin));
        for wrong in ["", "ba78", &text[1..], &format!("{text}0"), &text.replace('b', "g")] {
            assert_eq!(wrong.parse::<Pin>(), Err(PinError), "{wrong:?}");
        }
    }
}
