//! Keys that an endpoint uses by itself, without a peer: for tokens that it will read again, and for
//! stateless resets.
//!
//! Both are made from a secret that the application gives, so that several servers behind one
//! address can share it, and a server that starts anew knows what it told clients before.

use super::key::{OpenError, SealError};
use crate::wire::{ConnectionId, ResetToken};

/// Length of the secrets that keys are made from, in bytes.
pub const SECRET_LENGTH: usize = 32;

/// Length of what makes a sealed token unique, in bytes.
pub const TOKEN_NONCE_LENGTH: usize = 16;

/// Seals address validation tokens, so that nobody else can make or read one.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4>
pub trait TokenKey: Send + Sync {
    /// Encrypts `token` in place and appends a tag. `nonce` must be random: with one key, none
    /// seals two tokens.
    ///
    /// # Errors
    /// [`SealError`] if the token is too long.
    fn seal(&self, nonce: &[u8; TOKEN_NONCE_LENGTH], token: &mut Vec<u8>) -> Result<(), SealError>;

    /// Decrypts `sealed`, which ends in the tag, in place: the token.
    ///
    /// # Errors
    /// [`OpenError`] if it was not sealed with this key and nonce.
    fn open<'t>(
        &self,
        nonce: &[u8; TOKEN_NONCE_LENGTH],
        sealed: &'t mut [u8],
    ) -> Result<&'t [u8], OpenError>;
}

/// Derives the stateless reset tokens of connection IDs.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2>
pub trait ResetKey: Send + Sync {
    /// The token of a connection ID: always the same, and not to be guessed without the key.
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken;
}
