//! An endpoint's own keys by the provider's HKDF and AEAD.

use std::sync::Arc;

use ::rustls as tls;
use tls::crypto::cipher::{AeadKey, Iv};
use tls::crypto::tls13::HkdfExpander;
use tls::quic;

use super::ConfigError;
use crate::tls::own::{ResetKey, SECRET_LENGTH, TOKEN_NONCE_LENGTH, TokenKey};
use crate::tls::{OpenError, SealError};
use crate::wire::{ConnectionId, ResetToken};

/// Bytes of the key that the public interface of `rustls` can make.
const KEY: usize = 32;
/// Bytes of the nonce of every AEAD of QUIC.
const IV: usize = 12;

/// A key for address validation tokens: [`TokenConfig::key`](crate::endpoint::TokenConfig::key).
/// Each token has an AEAD key of its own, derived from the secret and a random nonce, so that there
/// is no limit to the tokens of a secret.
///
/// # Errors
/// [`ConfigError::NoTokenSuite`] if the provider has no AEAD with keys of 32 bytes for QUIC.
pub fn token_key(
    provider: &tls::crypto::CryptoProvider,
    secret: &[u8; SECRET_LENGTH],
) -> Result<Arc<dyn TokenKey>, ConfigError> {
    let mut suites = provider.cipher_suites.iter().filter_map(|suite| suite.tls13());
    let suite = suites.find_map(|suite| {
        let quic = suite.quic.filter(|quic| quic.aead_key_len() == KEY)?;
        Some((suite, quic))
    });
    let (suite, quic) = suite.ok_or(ConfigError::NoTokenSuite)?;
    let secret = suite.hkdf_provider.extract_from_secret(Some(b"quipu token"), secret);
    Ok(Arc::new(RustlsTokenKey { secret, quic }))
}

/// A key for stateless reset tokens:
/// [`EndpointConfig::reset_key`](crate::endpoint::EndpointConfig::reset_key).
///
/// # Errors
/// [`ConfigError::NoTokenSuite`] if the provider has no suite of TLS 1.3.
pub fn reset_key(
    provider: &tls::crypto::CryptoProvider,
    secret: &[u8; SECRET_LENGTH],
) -> Result<Arc<dyn ResetKey>, ConfigError> {
    let suite = provider.cipher_suites.iter().find_map(|suite| suite.tls13());
    let hkdf = suite.ok_or(ConfigError::NoTokenSuite)?.hkdf_provider;
    Ok(Arc::new(RustlsResetKey(hkdf.extract_from_secret(Some(b"quipu reset"), secret))))
}

struct RustlsTokenKey {
    secret: Box<dyn HkdfExpander>,
    quic: &'static dyn quic::Algorithm,
}

impl RustlsTokenKey {
    /// The key of one token.
    fn of(&self, nonce: &[u8; TOKEN_NONCE_LENGTH]) -> Option<Box<dyn quic::PacketKey>> {
        let mut material = [0; KEY + IV];
        self.secret.expand_slice(&[nonce], &mut material).ok()?;
        let (key, iv) = material.split_first_chunk::<KEY>()?;
        Some(self.quic.packet_key(AeadKey::from(*key), Iv::from(*iv.first_chunk::<IV>()?)))
    }
}

impl TokenKey for RustlsTokenKey {
    fn seal(&self, nonce: &[u8; TOKEN_NONCE_LENGTH], token: &mut Vec<u8>) -> Result<(), SealError> {
        let key = self.of(nonce).ok_or(SealError)?;
        let tag = key.encrypt_in_place(0, &[], token).map_err(|_| SealError)?;
        token.extend_from_slice(tag.as_ref());
        Ok(())
    }

    fn open<'t>(
        &self,
        nonce: &[u8; TOKEN_NONCE_LENGTH],
        sealed: &'t mut [u8],
    ) -> Result<&'t [u8], OpenError> {
        let key = self.of(nonce).ok_or(OpenError)?;
        key.decrypt_in_place(0, &[], sealed).map_err(|_| OpenError)
    }
}

struct RustlsResetKey(Box<dyn HkdfExpander>);

impl ResetKey for RustlsResetKey {
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken {
        let mut token = [0; ResetToken::LENGTH];
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        // HKDF with a static key and the connection ID, as suggested there. It gives as many bytes
        // as are asked for up to 255 hashes.
        let derived = self.0.expand_slice(&[cid.as_bytes()], &mut token);
        debug_assert!(derived.is_ok());
        ResetToken::new(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::rustls::provider;

    const NONCE: [u8; TOKEN_NONCE_LENGTH] = [7; TOKEN_NONCE_LENGTH];

    fn key(secret: u8) -> Arc<dyn TokenKey> {
        token_key(&provider(), &[secret; SECRET_LENGTH]).unwrap()
    }

    #[test]
    fn a_token_opens_with_its_key_and_nonce_only() {
        let mut sealed = b"192.0.2.1".to_vec();
        key(1).seal(&NONCE, &mut sealed).unwrap();
        assert_eq!(sealed.len(), 9 + 16);
        assert!(!sealed.starts_with(b"192"));
        // A server that starts anew has another key object of the same secret.
        assert_eq!(key(1).open(&NONCE, &mut sealed.clone()), Ok(b"192.0.2.1".as_slice()));
        assert_eq!(key(2).open(&NONCE, &mut sealed.clone()), Err(OpenError));
        assert_eq!(key(1).open(&[8; TOKEN_NONCE_LENGTH], &mut sealed.clone()), Err(OpenError));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).open(&NONCE, &mut changed), Err(OpenError));
        }
        assert_eq!(key(1).open(&NONCE, &mut []), Err(OpenError));
    }

    #[test]
    fn reset_tokens_follow_from_secret_and_connection_id() {
        let token = |secret: u8, cid: &[u8]| {
            let key = reset_key(&provider(), &[secret; SECRET_LENGTH]).unwrap();
            key.reset_token(&ConnectionId::new(cid).unwrap())
        };
        let one = token(1, &[1; 8]);
        assert_eq!(one, token(1, &[1; 8]));
        assert_ne!(one, token(2, &[1; 8]));
        assert_ne!(one, token(1, &[1; 9]));
        assert_ne!(one, ResetToken::new([0; 16]));
    }

    #[test]
    fn a_provider_without_long_keys_has_no_token_key() {
        let mut provider = (*provider()).clone();
        let short = tls::CipherSuite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites.retain(|suite| suite.suite() == short);
        let key = token_key(&provider, &[0; SECRET_LENGTH]);
        assert!(matches!(key, Err(ConfigError::NoTokenSuite)));
    }
}
