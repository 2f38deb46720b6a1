//! Tokens for later connections: a server gives them, a client keeps them.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3>

use std::sync::Arc;

use quipu_base::{Instant, PathId};

use super::Connection;
use crate::address_token::TokenIssuer;
use crate::token_store::TokenStore;

/// Where the tokens of a connection come from, or go to.
#[derive(Default)]
pub(crate) struct AddressTokens {
    /// Makes tokens: a server's, if it gives any.
    pub(crate) issuer: Option<Arc<TokenIssuer>>,
    /// Keeps tokens of the server of that name: a client's.
    pub(crate) store: Option<(Arc<dyn TokenStore>, String)>,
}

impl Connection {
    /// The client's address is validated: it gets tokens for later connections from there.
    pub(super) fn give_tokens(&mut self, now: Instant) {
        let Some(issuer) = self.tokens.issuer.clone() else { return };
        let path = self.shared.paths.by_id(PathId::ZERO);
        let Some(route) = path.and_then(|path| path.addresses.proved()) else { return };
        let address = route.remote.ip();
        for _ in 0..issuer.per_connection {
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.7
            //# The token MUST NOT be empty.
            // It has a nonce and a tag at least.
            let version = self.version();
            let Ok(token) = issuer.issue(now, version, address, &mut *self.random) else { return };
            self.control.tell_token(token.into());
        }
    }

    /// The server gave a token.
    pub(super) fn on_new_token(&mut self, token: &[u8]) {
        if let Some((store, server_name)) = &self.tokens.store {
            store.store(server_name, self.handshake.version().present(), token);
        }
    }
}
