//! Sessions to resume, each bound to what it was made under.
//!
//! A server must not accept a ticket of another version, and must not accept 0-RTT of a client that
//! remembers higher limits than those of now. `rustls` knows of neither, so both are kept beside
//! the session; one that does not fit is not resumed.

use std::sync::Arc;

use ::rustls as tls;
use tls::server::{ProducesTickets, StoresServerSessions};

use crate::transport_parameters::RememberedLimits;
use crate::wire::Version;

/// What sessions are made under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) version: Version,
    pub(super) limits: RememberedLimits,
    /// 0-RTT is allowed.
    pub(super) early_data: bool,
}

/// Bytes of terms before a session.
const TERMS: usize = 4 + RememberedLimits::SIZE;

impl Terms {
    /// A session with its terms before it.
    fn bind(&self, session: &[u8]) -> Vec<u8> {
        let mut bound = Vec::with_capacity(TERMS + session.len());
        bound.extend(self.version.0.to_be_bytes());
        bound.extend(self.limits.to_bytes());
        bound.extend_from_slice(session);
        bound
    }

    /// The session behind its terms, if it may be resumed under these.
    // https://www.rfc-editor.org/rfc/rfc9369#section-5
    //# Servers MUST validate the originating version of any session ticket or token and not accept
    //# one issued from a different version.
    fn unbind(&self, bound: &[u8]) -> Option<Vec<u8>> {
        let (version, rest) = bound.split_first_chunk::<4>()?;
        let (limits, session) = rest.split_first_chunk::<{ RememberedLimits::SIZE }>()?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
        //# A server MUST reject 0-RTT data if the restored values for transport parameters cannot
        //# be supported.
        let fits = u32::from_be_bytes(*version) == self.version.0
            && self.limits.cover(&RememberedLimits::from_bytes(limits));
        fits.then(|| session.to_vec())
    }
}

/// A configuration whose sessions are bound to `terms`.
pub(super) fn bound(config: &tls::ServerConfig, terms: Terms) -> tls::ServerConfig {
    let mut config = config.clone();
    config.session_storage = Arc::new(BoundStore { store: config.session_storage, terms });
    config.ticketer = Arc::new(BoundTickets { tickets: config.ticketer, terms });
    // https://www.rfc-editor.org/rfc/rfc9001#section-4.6.1
    //# Servers MUST NOT send the early_data extension with a max_early_data_size field set to any
    //# value other than 0xffffffff.
    config.max_early_data_size = if terms.early_data { u32::MAX } else { 0 };
    config
}

/// Sessions that the server keeps.
#[derive(Debug)]
struct BoundStore {
    store: Arc<dyn StoresServerSessions>,
    terms: Terms,
}

impl StoresServerSessions for BoundStore {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.store.put(key, self.terms.bind(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.terms.unbind(&self.store.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        // https://www.rfc-editor.org/rfc/rfc9001#section-9.2
        //# Endpoints MUST implement and use the replay protections described in [TLS13], however it
        //# is recognized that these protections are imperfect.
        // https://www.rfc-editor.org/rfc/rfc8446#section-8.1
        // Single-use tickets: a session that was resumed is gone, so that its 0-RTT is accepted once.
        self.terms.unbind(&self.store.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.store.can_cache()
    }
}

/// Sessions that clients keep, sealed.
#[derive(Debug)]
struct BoundTickets {
    tickets: Arc<dyn ProducesTickets>,
    terms: Terms,
}

impl ProducesTickets for BoundTickets {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.tickets.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.tickets.encrypt(&self.terms.bind(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.terms.unbind(&self.tickets.decrypt(cipher)?)
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Bytes;

    use super::*;

    #[test]
    fn a_session_is_resumed_in_its_version_and_under_limits_no_lower() {
        let limits = |data| RememberedLimits { data: Bytes(data), ..RememberedLimits::default() };
        let terms = |version, data| Terms { version, limits: limits(data), early_data: true };
        let bound = terms(Version::V1, 5).bind(b"session");
        for (now, resumed) in [
            (terms(Version::V1, 5), true),
            (terms(Version::V1, 6), true),
            (terms(Version::V1, 4), false),
            (terms(Version::V2, 5), false),
        ] {
            assert_eq!(now.unbind(&bound), resumed.then(|| b"session".to_vec()), "{now:?}");
        }
        assert_eq!(terms(Version::V1, 5).unbind(b"older"), None);
    }
}
