//! Tokens that a client keeps for later connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::wire::Version;

/// Where a client keeps the tokens that servers gave it with NEW_TOKEN frames. A token proves the
/// client's address to the server, and saves a round trip where the server asks for one.
///
/// A token ties a connection to the one that it came with. An application that moves to another
/// network and does not want to be recognised there uses another store.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3>
pub trait TokenStore: Send + Sync {
    /// The server of that name gave a token with a connection of that version.
    fn store(&self, server_name: &str, version: Version, token: &[u8]);

    /// Takes out a token for a connection of that version to the server of that name: one of another
    /// version proves nothing. <https://www.rfc-editor.org/rfc/rfc9369#section-5>
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
    //# A client SHOULD NOT reuse a token from a NEW_TOKEN frame for different connection attempts.
    fn take(&self, server_name: &str, version: Version) -> Option<Vec<u8>>;
}

/// Servers of which tokens are kept, at most; our choice.
const MAX_SERVERS: usize = 256;
/// Tokens of a server that are kept, at most; our choice.
const MAX_TOKENS: usize = 4;
/// Bytes of a token that is kept, at most; our choice. A token must fit into the first packet.
const MAX_LENGTH: usize = 512;

/// A [`TokenStore`] in memory: four tokens of each of 256 servers, the newest first. When it is full,
/// it forgets the server that it has known for the longest time.
#[derive(Debug, Default)]
pub struct TokenCache {
    servers: Mutex<Servers>,
}

/// Tokens with their versions, the newest last.
type Tokens = VecDeque<(Version, Vec<u8>)>;

#[derive(Debug, Default)]
struct Servers {
    /// The tokens of each, and when it became known.
    tokens: BTreeMap<String, (u64, Tokens)>,
    by_age: BTreeMap<u64, String>,
    next: u64,
}

impl Servers {
    fn forget(&mut self, server_name: &str) {
        if let Some((age, _)) = self.tokens.remove(server_name) {
            self.by_age.remove(&age);
        }
    }
}

impl TokenStore for TokenCache {
    fn store(&self, server_name: &str, version: Version, token: &[u8]) {
        if token.is_empty() || token.len() > MAX_LENGTH {
            return;
        }
        // Each change below leaves the maps as they should be.
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = &mut *servers;
        if !servers.tokens.contains_key(server_name) {
            if servers.tokens.len() >= MAX_SERVERS
                && let Some((_, oldest)) = servers.by_age.pop_first()
            {
                servers.tokens.remove(&oldest);
            }
            let age = servers.next;
            servers.next += 1;
            servers.by_age.insert(age, server_name.to_owned());
            servers.tokens.insert(server_name.to_owned(), (age, VecDeque::new()));
        }
        if let Some((_, tokens)) = servers.tokens.get_mut(server_name) {
            if tokens.len() >= MAX_TOKENS {
                tokens.pop_front();
            }
            tokens.push_back((version, token.to_vec()));
        }
    }

    fn take(&self, server_name: &str, version: Version) -> Option<Vec<u8>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, tokens) = servers.tokens.get_mut(server_name)?;
        let newest = tokens.iter().rposition(|(of, _)| *of == version)?;
        let token = tokens.remove(newest).map(|(_, token)| token);
        if tokens.is_empty() {
            servers.forget(server_name);
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: Version = Version::V1;

    #[test]
    fn a_token_is_of_one_version() {
        let cache = TokenCache::default();
        cache.store("a.test", V1, b"one");
        cache.store("a.test", Version::V2, b"two");
        assert_eq!(cache.take("a.test", V1).as_deref(), Some(b"one".as_slice()));
        assert_eq!(cache.take("a.test", V1), None);
        assert_eq!(cache.take("a.test", Version::V2).as_deref(), Some(b"two".as_slice()));
    }

    #[test]
    fn the_newest_token_is_taken_first_and_once() {
        let cache = TokenCache::default();
        for byte in 0..6 {
            cache.store("a.test", V1, &[byte; 3]);
        }
        cache.store("b.test", V1, b"other");
        for byte in (2..6).rev() {
            assert_eq!(cache.take("a.test", V1), Some(vec![byte; 3]));
        }
        assert_eq!(cache.take("a.test", V1), None);
        assert_eq!(cache.take("b.test", V1).as_deref(), Some(b"other".as_slice()));
        assert_eq!(cache.take("c.test", V1), None);
    }

    #[test]
    fn what_servers_can_fill_is_bounded() {
        let cache = TokenCache::default();
        for server in 0..1_000 {
            for _ in 0..10 {
                cache.store(&server.to_string(), V1, &[7; MAX_LENGTH]);
                cache.store(&server.to_string(), V1, &[7; MAX_LENGTH + 1]);
            }
        }
        let servers = cache.servers.lock().unwrap();
        assert_eq!((servers.tokens.len(), servers.by_age.len()), (MAX_SERVERS, MAX_SERVERS));
        assert!(servers.tokens.values().all(|(_, tokens)| tokens.len() == MAX_TOKENS));
        assert!(servers.tokens.contains_key("999") && !servers.tokens.contains_key("743"));
    }
}
