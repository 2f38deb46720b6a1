//! A forger beside a real connection, which knows its keys and hears all its datagrams.

use std::sync::Arc;

use quipu_base::{Instant, Role};
use quipu_quic::tls::InitialSecrets;

use super::author::Author;
use super::book::Book;
use super::draw::Draw;
use super::tap::Vault;
use crate::client_address;

/// Forges packets of one end of a connection whose datagrams go elsewhere, such as over sockets. The end
/// itself goes on beside it.
pub struct Insider {
    book: Book,
    boldness: u64,
}

impl Insider {
    /// A forger of the end of `role`, whose keys are in `vault`; Initial keys come from `secrets`.
    ///
    /// `boldness`: how often, in percent, a frame is one for which the other end must close.
    pub fn new(role: Role, vault: Vault, secrets: Arc<dyn InitialSecrets>, boldness: u64) -> Self {
        Insider { book: Book::new(role, vault, secrets), boldness }
    }

    /// Reads a datagram that `sender` sent. It has to hear all from the first on.
    pub fn hear(&mut self, sender: Role, datagram: &[u8]) {
        // What it learns does not depend on when and where.
        self.book.read(Instant::ZERO, sender, client_address(0), datagram);
    }

    /// A packet, sealed; `None` while it has no keys.
    pub fn forge(&mut self, draw: &mut impl Draw) -> Option<Vec<u8>> {
        let packet = Author::new(&mut self.book, self.boldness).packet(draw);
        self.book.seal(&packet)
    }
}
