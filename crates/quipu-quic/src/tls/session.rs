//! Sessions: the handshake of one connection, and what starts one.

use std::borrow::Cow;

use quipu_base::Role;
use thiserror::Error;

use super::key::{Keys, PacketKeyPair};
use crate::error::{ErrorCode, TransportError};
use crate::wire::ConnectionId;

/// An encryption level. 0-RTT is not among them: its packets carry no handshake bytes, and we
/// neither send nor accept them.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-2.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Keys from the client's first destination connection ID.
    Initial,
    /// Keys of the handshake.
    Handshake,
    /// The connection's keys.
    OneRtt,
}

impl Level {
    /// Every level, in the order in which a connection comes to them.
    pub const ALL: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];
}

/// The handshake failed; closes the connection with a crypto error.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.8>
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("TLS alert {alert}: {reason}")]
pub struct TlsError {
    /// Description of the alert, <https://www.rfc-editor.org/rfc/rfc8446#section-6>.
    pub alert: u8,
    /// What happened, for people.
    pub reason: Cow<'static, str>,
}

impl From<TlsError> for TransportError {
    fn from(error: TlsError) -> Self {
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.8
        //# As QUIC provides alternative mechanisms for connection termination and the TLS
        //# connection is only closed if an error is encountered, a QUIC endpoint MUST treat any
        //# alert from TLS as if it were at the "fatal" level.
        TransportError::new(ErrorCode::crypto(error.alert), error.reason)
    }
}

/// A session could not be started: the configuration does not allow it. Never goes on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server's name is neither a DNS name nor an IP address.
    #[error("server name {0:?}, expected a DNS name or an IP address")]
    ServerName(String),
    /// The implementation refuses its configuration.
    #[error("TLS refuses its configuration: {0}")]
    Config(String),
}

/// New keys, and with them a new level for the handshake bytes that follow.
pub enum KeyChange {
    /// Keys of [`Level::Handshake`].
    Handshake(Keys),
    /// Keys of [`Level::OneRtt`], first phase.
    OneRtt(Keys),
}

/// The handshake of one connection.
///
/// The connection reassembles the handshake bytes of each level, gives them to
/// [`Session::read`], and then calls [`Session::write`] until it gives neither bytes nor keys.
pub trait Session: Send {
    /// Takes handshake bytes of the peer, which were sent at `level`: in order, without gaps, in
    /// pieces of any size.
    ///
    /// # Errors
    /// [`TlsError`] closes the connection; also if the bytes belong to a level that is over or
    /// has not begun.
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TlsError>;

    /// Appends handshake bytes for the peer to `out`, and returns new keys.
    ///
    /// The bytes of a call belong to the level **before** the keys that the same call returns:
    /// [`Level::Initial`] until [`KeyChange::Handshake`], then [`Level::Handshake`] until
    /// [`KeyChange::OneRtt`], then [`Level::OneRtt`]. Call after the start and after each
    /// [`Session::read`], again and again until a call gives neither bytes nor keys.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// True until both ends' Finished messages are there: at a client until the server's is
    /// verified, at a server until the client's is.
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters, encoded; `None` until they came. They are authentic once
    /// the handshake is over.
    fn peer_transport_parameters(&self) -> Option<&[u8]>;

    /// The application protocol that was agreed on; `None` until it was.
    fn alpn(&self) -> Option<&[u8]>;

    /// The payload keys of the next key phase, the first call giving those of the second phase;
    /// `None` before [`KeyChange::OneRtt`].
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-6.1>
    fn next_packet_keys(&mut self) -> Option<PacketKeyPair>;

    /// The name of the server that the client asked for; `None` at a client, and until it came.
    fn server_name(&self) -> Option<&str> {
        None
    }
}

/// What both ends derive from nothing but a connection ID.
pub trait InitialSecrets: Send + Sync {
    /// The keys of [`Level::Initial`] at the end of `role`. `dcid` is the destination connection
    /// ID of the client's first Initial packet, or of its first after a Retry.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-5.2>
    fn initial_keys(&self, dcid: &ConnectionId, role: Role) -> Keys;
}

/// Starts the client's sessions.
pub trait ClientTls: InitialSecrets {
    /// Starts a session with the server of that name. `parameters` are our transport parameters,
    /// encoded.
    ///
    /// # Errors
    /// [`StartError`] if the name or the configuration is wrong.
    fn start(&self, server_name: &str, parameters: &[u8]) -> Result<Box<dyn Session>, StartError>;
}

/// Starts the server's sessions.
pub trait ServerTls: InitialSecrets {
    /// Starts a session. `parameters` are our transport parameters, encoded.
    ///
    /// # Errors
    /// [`StartError`] if the configuration is wrong.
    fn start(&self, parameters: &[u8]) -> Result<Box<dyn Session>, StartError>;
}
