//! Sessions: the handshake of one connection, and what starts one.

use std::borrow::Cow;

use ::rustls::pki_types::CertificateDer;
use quipu_base::Role;
use thiserror::Error;

use super::key::{DirectionKeys, Keys, PacketKeyPair};
use super::negotiated::Negotiated;
use crate::error::{ErrorCode, TransportError};
use crate::transport_parameters::RememberedLimits;
use crate::wire::{ConnectionId, Version};

/// An encryption level.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-2.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Keys from the client's first destination connection ID.
    Initial,
    /// Keys of an earlier connection, for what a client sends early. No handshake bytes travel
    /// here.
    ZeroRtt,
    /// Keys of the handshake.
    Handshake,
    /// The connection's keys.
    OneRtt,
}

impl Level {
    /// Every level, in the order in which a connection comes to them.
    pub const ALL: [Level; 4] = [Level::Initial, Level::ZeroRtt, Level::Handshake, Level::OneRtt];

    /// The levels at which handshake bytes travel.
    pub const MESSAGES: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];
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

/// What became of 0-RTT.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-4.6>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// The client does not ask for it.
    #[default]
    NotOffered,
    /// The client asks for it, and may send; the server has not answered.
    Offered,
    /// The server reads what the client sends early.
    Accepted,
    /// The server does not.
    Rejected,
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

    /// What became of 0-RTT. A client learns the server's answer when the handshake is over, at
    /// the latest.
    fn early_data(&self) -> EarlyData {
        EarlyData::NotOffered
    }

    /// Keys of [`Level::ZeroRtt`], which seal at a client and open at a server. A client has them
    /// from the start, while 0-RTT is [offered](EarlyData::Offered); a server once it has read a
    /// ClientHello whose 0-RTT it [accepts](EarlyData::Accepted).
    fn zero_rtt_keys(&mut self) -> Option<DirectionKeys> {
        None
    }

    /// The server's transport parameters of the connection whose session a client resumes,
    /// encoded: what it may send early keeps to them. `None` without [`Session::zero_rtt_keys`].
    fn remembered_parameters(&self) -> Option<&[u8]> {
        None
    }

    /// The server goes on in another version than that of the client's first flight: keys made
    /// from now on are those of `version`. Called at a client before it reads anything, and only if
    /// [`ClientStart::may_change`] was set.
    /// <https://www.rfc-editor.org/rfc/rfc9369#section-4.1>
    ///
    /// # Errors
    /// [`TlsError`] closes the connection.
    fn change_version(&mut self, version: Version) -> Result<(), TlsError>;

    /// What both ends agreed on; `None` until they have.
    fn negotiated(&self) -> Option<Negotiated> {
        None
    }

    /// The peer's certificates in DER, end entity first; of the session resumed, if one was.
    /// `None` until they came, and if the peer showed none.
    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        None
    }
}

/// What both ends derive from nothing but a connection ID.
pub trait InitialSecrets: Send + Sync {
    /// The keys of [`Level::Initial`] at the end of `role`. `dcid` is the destination connection
    /// ID of the client's first Initial packet, or of its first after a Retry.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-5.2>
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys;
}

/// What a client's session starts from.
#[derive(Clone, Copy, Debug)]
pub struct ClientStart<'a> {
    /// The server's name: a DNS name or an IP address.
    pub server_name: &'a str,
    /// The version of the first flight.
    pub version: Version,
    /// The server may go on in another version: see [`Session::change_version`].
    pub may_change: bool,
    /// Our transport parameters, encoded.
    pub parameters: &'a [u8],
    /// Offer 0-RTT if a session can be resumed whose server allowed it.
    pub early_data: bool,
}

/// Starts the client's sessions.
pub trait ClientTls: InitialSecrets {
    /// Starts a session.
    ///
    /// # Errors
    /// [`StartError`] if the name or the configuration is wrong.
    fn start(&self, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError>;
}

/// What a server's session starts from.
#[derive(Clone, Copy, Debug)]
pub struct ServerStart<'a> {
    /// The version of the connection, which need not be that of the client's first flight.
    pub version: Version,
    /// Our transport parameters, encoded.
    pub parameters: &'a [u8],
    /// Those of them that a client remembers for 0-RTT. A session that was made with higher ones
    /// must not be resumed: its client would use them.
    pub limits: RememberedLimits,
    /// Accept 0-RTT, and allow it to those who get tickets now.
    pub early_data: bool,
}

/// What a ClientHello says, before anything was done with it. Nothing of it is authentic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// The name of the server that the client asks for.
    pub server_name: Option<&'a str>,
    /// The application protocols that it offers, most wanted first.
    pub alpn: Vec<&'a [u8]>,
    /// Its transport parameters, encoded; `None` if they are missing.
    pub transport_parameters: Option<&'a [u8]>,
    /// The session ID of older versions of TLS, which is empty in QUIC.
    pub legacy_session_id: &'a [u8],
}

/// Starts the server's sessions.
pub trait ServerTls: InitialSecrets {
    /// Reads the ClientHello at the start of the client's handshake bytes; `None` while a part of
    /// it is missing. It is given to the session too, from its first byte on.
    ///
    /// # Errors
    /// [`TlsError`] closes the connection.
    fn client_hello<'h>(&self, bytes: &'h [u8]) -> Result<Option<ClientHello<'h>>, TlsError>;

    /// Starts a session.
    ///
    /// # Errors
    /// [`StartError`] if the configuration is wrong.
    fn start(&self, start: &ServerStart<'_>) -> Result<Box<dyn Session>, StartError>;
}
