//! What TLS tells the application, and the keys in use.

use quipu_base::{Duration, Instant};

use super::Connection;
use crate::tls::{CertificateDer, Negotiated};

impl Connection {
    /// The application protocol agreed on, once TLS has.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.handshake.session()?.alpn()
    }

    /// The name of the server that the client asks for, once the ClientHello came; `None` at a
    /// client. It is authentic once the handshake is over.
    /// <https://www.rfc-editor.org/rfc/rfc6066#section-3>
    pub fn server_name(&self) -> Option<&str> {
        self.handshake.session()?.server_name()
    }

    /// The peer's certificates in DER, end entity first, of the session resumed if one was; `None`
    /// until they came, and if the peer showed none. TLS has verified them once the handshake is
    /// over.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.handshake.session()?.peer_certificates()
    }

    /// Cipher suite and group of the key exchange, and whether a session was resumed; `None` until
    /// both ends agreed.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.handshake.session()?.negotiated()
    }

    /// Begins the next key phase; `false` if the present one is not acknowledged yet, or keys of the
    /// one before are still kept.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-6>
    pub fn update_keys(&mut self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.1
        //# An endpoint MUST NOT initiate a key update prior to having confirmed the handshake
        //# (Section 4.1.2).
        self.lifecycle.is_confirmed() && self.handshake.update_keys()
    }

    /// How often the next key phase began, at whichever end's wish.
    pub fn key_updates(&self) -> u64 {
        self.handshake.keys().updates()
    }

    /// Begins the next key phase before the keys wear out.
    pub(super) fn renew_keys(&mut self, now: Instant) {
        if let Err(error) = self.handshake.renew_keys() {
            self.fault(now, error);
        }
    }

    /// Sets when old keys go: packets that were overtaken have had time to come.
    pub(super) fn set_key_timer(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.5
        //# An endpoint SHOULD retain old read keys for no more than three times the PTO after
        //# having received a packet protected using the new keys.
        // https://www.rfc-editor.org/rfc/rfc10069#section-2.5
        //# When this specification is used, endpoints SHOULD wait for at least three times the
        //# largest Probe Timeout (PTO) (see Section 6.2 of [QUIC-RECOVERY]) among all the paths
        //# before initiating a new key update after receiving an acknowledgment that confirms the
        //# receipt of the previous key update.
        let kept: Duration = self.longest_probe_timeout().saturating_mul(3);
        self.handshake.discard_old_keys_at(now + kept);
    }
}
