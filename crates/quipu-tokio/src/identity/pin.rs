//! Pins: certificates known by their hash, without an authority.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quipu_quic::tls::CertificateDer;
use rustls::DigitallySignedStruct;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{ServerName, UnixTime};
use thiserror::Error;

use super::hex;

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
        f.write_str(&hex::write(&self.0))
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
        hex::read(text).map(Pin).ok_or(PinError)
    }
}

/// Takes one certificate, by its hash, or any: names, dates and authorities say nothing more. The server has to have
/// the certificate's key in either case.
#[derive(Debug)]
pub(super) struct Pinned {
    /// `None` for any certificate.
    pub(super) pin: Option<Pin>,
    pub(super) provider: Arc<CryptoProvider>,
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
        if self.pin.is_none_or(|pin| pin == Pin::of(end_entity)) {
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
