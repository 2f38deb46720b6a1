//! Version Negotiation packets: a client begins again in a version of both.
//! <https://www.rfc-editor.org/rfc/rfc9368#section-2.1>

use quipu_base::Instant;

use super::handshake::VersionState;
use super::{CloseReason, Connection};
use crate::wire::Version;

impl Connection {
    /// The version that the connection speaks; it is certain once TLS finished.
    pub fn version(&self) -> Version {
        self.handshake.version().present()
    }

    /// A Version Negotiation packet came that names our connection ID.
    pub(super) fn on_version_negotiation(
        &mut self,
        now: Instant,
        offered: impl Iterator<Item = Version>,
    ) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-6.2
        //# A client MUST discard any Version Negotiation packet if it has received and
        //# successfully processed any other packet, including an earlier Version Negotiation
        //# packet.
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# A client that makes a connection attempt based on information received from a Version
        //# Negotiation packet MUST ignore any Version Negotiation packets it receives in response
        //# to that connection attempt.
        if !self.lifecycle.is_handshaking() || !self.handshake.may_begin_again() {
            return;
        }
        let offered: Vec<Version> = offered.collect();
        // https://www.rfc-editor.org/rfc/rfc9000#section-6.2
        //# A client MUST discard a Version Negotiation packet that lists the
        //# QUIC version selected by the client.
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# Clients MUST ignore any received Version Negotiation packets that contain the Original
        //# Version.
        if offered.contains(&self.handshake.version().original()) {
            return;
        }
        // https://www.rfc-editor.org/rfc/rfc9368#section-2.1
        //# Upon receiving the Version Negotiation packet, the client SHALL search for a version it
        //# supports in the list provided by the server.
        let wanted = self.config.versions.iter().find(|ours| offered.contains(ours)).copied();
        // https://www.rfc-editor.org/rfc/rfc9000#section-6.2
        //# A client that supports only this version of QUIC MUST abandon the current
        //# connection attempt if it receives a Version Negotiation packet, with the
        //# following two exceptions.
        // https://www.rfc-editor.org/rfc/rfc9368#section-2.1
        //# If it doesn't find one, it SHALL abort the connection attempt. Otherwise, it SHALL
        //# select a mutually supported version and send a new first flight with that version --
        //# this version is now the Negotiated Version.
        match wanted {
            Some(version) if self.begin_again(now, VersionState::after_negotiation(version)) => {}
            _ => self.lifecycle.abort(CloseReason::Version),
        }
    }
}
