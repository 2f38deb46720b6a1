//! The tokens of a server: how it makes, checks and counts them.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>

use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Duration, Instant};

use super::replay::UsedTokens;
use crate::address_token::{self, Claim, TokenIssuer};
use crate::config::ConfigError;
use crate::random::Randomness;
use crate::tls::{TOKEN_NONCE_LENGTH, TokenKey};
use crate::wire::{ConnectionId, Version};

/// The tokens of a server. Without a key it has none: clients above
/// [`Admission::max_unvalidated`](super::Admission::max_unvalidated) are refused instead of being asked
/// for one.
#[derive(Clone)]
pub struct TokenConfig {
    /// Seals tokens. Servers that share an address share it, and a server that starts anew with the
    /// same key takes the tokens of before. Default none.
    pub key: Option<Arc<dyn TokenKey>>,
    /// Opens tokens of the key that was in use before this one, so that keys can change. Default
    /// none.
    pub previous_key: Option<Arc<dyn TokenKey>>,
    /// Tokens of Retry packets are valid for so long. Default 10 s; our choice.
    pub retry_lifetime: Duration,
    /// Tokens for later connections are valid for so long; above zero. Default 14 days; our choice.
    pub lifetime: Duration,
    /// Tokens for later connections that a client gets with each connection, 0 to 8. Default 2, so
    /// that a client whose connection fails has another; our choice.
    pub per_connection: u8,
    /// Bytes of each of two filters that remember which tokens were used; they fill up with about
    /// half a token per byte. Zero: tokens for later connections are good for any number of
    /// connections. Servers that share a key remember apart from each other: each takes a token once.
    /// Default 64 KiB; our choice.
    pub replay_filter: usize,
    /// Unix time at [`Instant::ZERO`], so that servers agree on the age of tokens; a driver whose
    /// clock drifts sets it anew with [`Endpoint::set_unix_time`](crate::Endpoint::set_unix_time).
    /// Default 0.
    pub unix_time: Duration,
}

impl Default for TokenConfig {
    fn default() -> Self {
        TokenConfig {
            key: None,
            previous_key: None,
            retry_lifetime: Duration::from_secs(10),
            lifetime: Duration::from_secs(14 * 24 * 60 * 60),
            per_connection: 2,
            replay_filter: 64 << 10,
            unix_time: Duration::ZERO,
        }
    }
}

impl TokenConfig {
    /// Tokens that `key` seals.
    pub fn with_key(key: Arc<dyn TokenKey>) -> Self {
        TokenConfig { key: Some(key), ..TokenConfig::default() }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field whose value cannot be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |field, value: &dyn std::fmt::Display, expected| {
            Err(ConfigError { field, value: value.to_string(), expected })
        };
        if self.lifetime.is_zero() {
            return wrong("tokens.lifetime", &self.lifetime, "above 0");
        }
        if self.per_connection > 8 {
            return wrong("tokens.per_connection", &self.per_connection, "0 to 8");
        }
        Ok(())
    }
}

/// What the token in a client's first packet says of its address.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    /// There is none.
    Absent,
    /// It is not valid, or not any more: the client is treated as if it had none.
    Invalid,
    /// It comes from an earlier connection, in a NEW_TOKEN frame: the client has that IP address.
    FromConnection,
    /// It comes from our Retry packet: the client has that address and port.
    FromRetry,
}

impl TokenState {
    /// True if the client proved its address.
    pub const fn is_valid(self) -> bool {
        matches!(self, TokenState::FromConnection | TokenState::FromRetry)
    }
}

/// A token that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) state: TokenState,
    /// Of a token of a Retry packet: destination of the client's first packet.
    pub(super) original_dcid: Option<ConnectionId>,
    /// It is a Retry packet's, but not valid: the client takes no other.
    pub(super) is_failed_retry: bool,
    /// How it is remembered once it is used: when it was made, and its nonce.
    mark: Option<(Duration, [u8; TOKEN_NONCE_LENGTH])>,
}

impl Checked {
    const fn plain(state: TokenState) -> Self {
        Checked { state, original_dcid: None, is_failed_retry: false, mark: None }
    }
}

/// The tokens of a server: makes and checks them.
pub(super) struct Tokens {
    config: TokenConfig,
    used: UsedTokens,
}

impl Tokens {
    pub(super) fn new(config: TokenConfig) -> Self {
        let used = UsedTokens::new(config.replay_filter, config.lifetime);
        Tokens { config, used }
    }

    /// True if clients can be asked for a token.
    pub(super) fn can_retry(&self) -> bool {
        self.config.key.is_some()
    }

    /// It is `unix_time` now.
    pub(super) fn set_unix_time(&mut self, now: Instant, unix_time: Duration) {
        self.config.unix_time = unix_time.saturating_sub(now - Instant::ZERO);
    }

    /// What seals tokens for later connections, if any are made.
    pub(super) fn issuer(&self) -> Option<Arc<TokenIssuer>> {
        let TokenConfig { per_connection, unix_time, .. } = self.config;
        let key = Arc::clone(self.config.key.as_ref().filter(|_| per_connection > 0)?);
        Some(Arc::new(TokenIssuer { key, unix_time, per_connection }))
    }

    /// A token for a Retry packet of `version` from `retry_source`.
    pub(super) fn for_retry(
        &self,
        now: Instant,
        version: Version,
        address: SocketAddr,
        original_dcid: ConnectionId,
        retry_source: ConnectionId,
        random: &mut dyn Randomness,
    ) -> Option<Vec<u8>> {
        let made_at = self.unix_time(now);
        let claim = Claim::Retry { made_at, version, address, original_dcid, retry_source };
        address_token::seal(&**self.config.key.as_ref()?, &claim, random).ok()
    }

    /// Looks at the token of a client's packet of `version` to `dcid`.
    pub(super) fn check(
        &mut self,
        now: Instant,
        version: Version,
        address: SocketAddr,
        dcid: &ConnectionId,
        token: &[u8],
    ) -> Checked {
        if token.is_empty() {
            return Checked::plain(TokenState::Absent);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# When a server receives an Initial packet with an address validation token, it MUST
        //# attempt to validate the token, unless it has already completed address validation.
        let invalid = Checked::plain(TokenState::Invalid);
        let Some((nonce, claim)) = self.open(token) else { return invalid };
        let unix_time = self.unix_time(now);
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# Thus, a token SHOULD have an expiration time, which could be either an explicit
        //# expiration time or an issued timestamp that can be used to dynamically calculate the
        //# expiration time.
        let is_fresh = |made_at: Duration, lifetime: Duration| {
            // Clocks of servers that share a key differ a little.
            let latest = unix_time + self.config.retry_lifetime;
            made_at <= latest && unix_time.saturating_sub(made_at) <= lifetime
        };
        // https://www.rfc-editor.org/rfc/rfc9369#section-5
        //# Servers MUST validate the originating version of any session ticket or token and not
        //# accept one issued from a different version.
        let is_of = |issued: Version| issued == version;
        match claim {
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
            //# Servers SHOULD ensure that tokens sent in Retry packets are only accepted for a
            //# short time, as they are returned immediately by clients.
            Claim::Retry { made_at, version, address: claimed, original_dcid, retry_source } => {
                let valid = claimed == address
                    && is_of(version)
                    && retry_source == *dcid
                    && is_fresh(made_at, self.config.retry_lifetime)
                    && !self.used.contains(unix_time, &nonce);
                if valid {
                    let mark = Some((made_at, nonce));
                    let state = TokenState::FromRetry;
                    let original_dcid = Some(original_dcid);
                    Checked { state, original_dcid, is_failed_retry: false, mark }
                } else {
                    Checked { is_failed_retry: true, ..invalid }
                }
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
            //# Tokens that are provided in NEW_TOKEN frames (Section 19.7) need to be valid for
            //# longer but SHOULD NOT be accepted multiple times.
            Claim::Connection { made_at, version, address: claimed } => {
                let valid = claimed == address.ip()
                    && is_of(version)
                    && is_fresh(made_at, self.config.lifetime)
                    && !self.used.contains(unix_time, &nonce);
                if valid {
                    let mark = Some((made_at, nonce));
                    Checked { mark, ..Checked::plain(TokenState::FromConnection) }
                } else {
                    invalid
                }
            }
        }
    }

    /// A client with that token was accepted.
    pub(super) fn on_used(&mut self, now: Instant, token: &Checked) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.3
        //# Servers SHOULD provide mitigations for this attack by limiting the usage and lifetime of
        //# address validation tokens; see Section 8.1.3.
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
        //# To protect against such attacks, servers MUST ensure that replay of tokens is prevented
        //# or limited.
        if let Some((made_at, nonce)) = token.mark {
            self.used.insert(self.unix_time(now), made_at, &nonce);
        }
    }

    fn open(&self, token: &[u8]) -> Option<([u8; TOKEN_NONCE_LENGTH], Claim)> {
        let keys = [&self.config.key, &self.config.previous_key];
        keys.into_iter().flatten().find_map(|key| address_token::open(&**key, token))
    }

    fn unix_time(&self, now: Instant) -> Duration {
        self.config.unix_time + (now - Instant::ZERO)
    }
}

#[cfg(test)]
mod tests;
