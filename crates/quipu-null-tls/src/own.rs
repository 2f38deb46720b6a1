//! An endpoint's own keys without cryptography: for virtual time only.

use quipu_quic::tls::{
    OpenError, ResetKey, SECRET_LENGTH, SealError, TOKEN_NONCE_LENGTH, TokenKey,
};
use quipu_quic::wire::{ConnectionId, ResetToken};

use crate::key::Secret;

/// As of every AEAD of QUIC v1.
const TAG: usize = 16;

/// Seals address validation tokens with a tag that another key, nonce or token does not have. What
/// they say can be read, and whoever wants to can make one.
#[derive(Clone, Debug)]
pub struct NullTokenKey(Secret);

/// Derives stateless reset tokens that differ by key and connection ID. Whoever wants to can guess
/// them.
#[derive(Clone, Debug)]
pub struct NullResetKey(Secret);

impl NullTokenKey {
    /// The key of a secret.
    pub fn new(secret: &[u8; SECRET_LENGTH]) -> Self {
        NullTokenKey(Secret::of(secret))
    }

    fn tag(&self, nonce: &[u8; TOKEN_NONCE_LENGTH], token: &[u8]) -> [u8; TAG] {
        doubled(self.0.and(Secret::of(nonce)).and(Secret::of(token)))
    }
}

impl NullResetKey {
    /// The key of a secret.
    pub fn new(secret: &[u8; SECRET_LENGTH]) -> Self {
        NullResetKey(Secret::of(secret))
    }
}

fn doubled(secret: Secret) -> [u8; TAG] {
    let mut bytes = [0; TAG];
    bytes[..8].copy_from_slice(&secret.to_bytes());
    bytes[8..].copy_from_slice(&secret.and(secret).to_bytes());
    bytes
}

impl TokenKey for NullTokenKey {
    fn seal(&self, nonce: &[u8; TOKEN_NONCE_LENGTH], token: &mut Vec<u8>) -> Result<(), SealError> {
        let tag = self.tag(nonce, token);
        token.extend_from_slice(&tag);
        Ok(())
    }

    fn open<'t>(
        &self,
        nonce: &[u8; TOKEN_NONCE_LENGTH],
        sealed: &'t mut [u8],
    ) -> Result<&'t [u8], OpenError> {
        let (token, tag) = sealed.split_last_chunk::<TAG>().ok_or(OpenError)?;
        if *tag == self.tag(nonce, token) { Ok(token) } else { Err(OpenError) }
    }
}

impl ResetKey for NullResetKey {
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken {
        ResetToken::new(doubled(self.0.and(Secret::of(cid.as_bytes()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_with_its_key_and_nonce_only() {
        let key = |secret| NullTokenKey::new(&[secret; SECRET_LENGTH]);
        let mut sealed = b"token".to_vec();
        key(1).seal(&[3; TOKEN_NONCE_LENGTH], &mut sealed).unwrap();
        let open = |secret, nonce, mut sealed: Vec<u8>| {
            key(secret).open(&[nonce; TOKEN_NONCE_LENGTH], &mut sealed).map(<[u8]>::to_vec)
        };
        assert_eq!(open(1, 3, sealed.clone()), Ok(b"token".to_vec()));
        assert_eq!(open(2, 3, sealed.clone()), Err(OpenError));
        assert_eq!(open(1, 4, sealed.clone()), Err(OpenError));
        sealed[0] ^= 1;
        assert_eq!(open(1, 3, sealed), Err(OpenError));
        assert_eq!(open(1, 3, Vec::new()), Err(OpenError));
    }

    #[test]
    fn reset_tokens_differ_by_key_and_connection_id() {
        let token = |secret, cid: &[u8]| {
            let key = NullResetKey::new(&[secret; SECRET_LENGTH]);
            *key.reset_token(&ConnectionId::new(cid).unwrap()).as_bytes()
        };
        assert_eq!(token(1, &[1; 8]), token(1, &[1; 8]));
        assert_ne!(token(1, &[1; 8]), token(2, &[1; 8]));
        assert_ne!(token(1, &[1; 8]), token(1, &[2; 8]));
    }
}
