//! What the foreign engines keep of address validation tokens from one connection to the next.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quipu_quic::tls::rustls::{provider, token_key};
use quipu_quic::tls::{SECRET_LENGTH, TOKEN_NONCE_LENGTH, TokenKey};

/// Tokens that a client keeps per engine. A server that has this gives tokens to its clients, and
/// takes those of other servers that have it.
#[derive(Clone, Default)]
pub struct SharedTokens {
    pub(crate) quinn: Arc<quinn_proto::TokenMemoryCache>,
    pub(crate) noq: Arc<noq_proto::TokenMemoryCache>,
}

impl fmt::Debug for SharedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedTokens")
    }
}

/// Tokens that a server gives to each client.
const PER_CLIENT: u32 = 2;

/// The server gives tokens, and takes each as often as it comes: a log of used ones is not what is
/// tested here.
pub(crate) fn quinn_server(config: &mut quinn_proto::ServerConfig) {
    let mut tokens = quinn_proto::ValidationTokenConfig::default();
    tokens.log(Arc::new(TakesAll)).sent(PER_CLIENT);
    config.token_key(Arc::new(Key::new())).validation_token_config(tokens);
}

/// The same.
pub(crate) fn noq_server(config: &mut noq_proto::ServerConfig) {
    let mut tokens = noq_proto::ValidationTokenConfig::default();
    tokens.log(Arc::new(TakesAll)).sent(PER_CLIENT);
    config.token_key(Arc::new(Key::new())).validation_token_config(tokens);
}

struct TakesAll;

impl quinn_proto::TokenLog for TakesAll {
    fn check_and_insert(
        &self,
        _nonce: u128,
        _issued: SystemTime,
        _lifetime: Duration,
    ) -> Result<(), quinn_proto::TokenReuseError> {
        Ok(())
    }
}

impl noq_proto::TokenLog for TakesAll {
    fn check_and_insert(
        &self,
        _nonce: u128,
        _issued: SystemTime,
        _lifetime: Duration,
    ) -> Result<(), noq_proto::TokenReuseError> {
        Ok(())
    }
}

/// One key for all servers.
struct Key(Arc<dyn TokenKey>);

impl Key {
    fn new() -> Self {
        Key(token_key(&provider(), &[9; SECRET_LENGTH]).expect("an AEAD with long keys"))
    }
}

/// The key of one token.
struct Nonce(Arc<dyn TokenKey>, [u8; TOKEN_NONCE_LENGTH]);

impl quinn_proto::crypto::HandshakeTokenKey for Key {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn quinn_proto::crypto::AeadKey> {
        let nonce = random_bytes.first_chunk().copied().unwrap_or_default();
        Box::new(Nonce(Arc::clone(&self.0), nonce))
    }
}

impl quinn_proto::crypto::AeadKey for Nonce {
    fn seal(
        &self,
        data: &mut Vec<u8>,
        _additional_data: &[u8],
    ) -> Result<(), quinn_proto::crypto::CryptoError> {
        self.0.seal(&self.1, data).map_err(|_| quinn_proto::crypto::CryptoError)
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _additional_data: &[u8],
    ) -> Result<&'a mut [u8], quinn_proto::crypto::CryptoError> {
        let opened = self.0.open(&self.1, data).map(<[u8]>::len);
        let length = opened.map_err(|_| quinn_proto::crypto::CryptoError)?;
        data.get_mut(..length).ok_or(quinn_proto::crypto::CryptoError)
    }
}

impl noq_proto::crypto::HandshakeTokenKey for Key {
    fn seal(
        &self,
        token_nonce: u128,
        data: &mut Vec<u8>,
    ) -> Result<(), noq_proto::crypto::CryptoError> {
        let sealed = self.0.seal(&token_nonce.to_le_bytes(), data);
        sealed.map_err(|_| noq_proto::crypto::CryptoError)
    }

    fn open<'a>(
        &self,
        token_nonce: u128,
        data: &'a mut [u8],
    ) -> Result<&'a [u8], noq_proto::crypto::CryptoError> {
        let opened = self.0.open(&token_nonce.to_le_bytes(), data);
        opened.map_err(|_| noq_proto::crypto::CryptoError)
    }
}
