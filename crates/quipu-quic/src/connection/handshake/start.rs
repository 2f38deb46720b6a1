//! What TLS starts from: at a client once for each version it tries, at a server once the whole
//! ClientHello is there.

use std::sync::Arc;

use quipu_base::Role;

use super::version;
use crate::config::TransportConfig;
use crate::error::{ErrorCode, TransportError};
use crate::tls::{ClientStart, ClientTls, Keys, ServerStart, ServerTls, Session, StartError};
use crate::transport_parameters::{RememberedLimits, TransportParameters, VersionInformation};
use crate::wire::{ConnectionId, Version};

/// The alert `missing_extension`. <https://www.rfc-editor.org/rfc/rfc9001#section-8.2>
const MISSING_EXTENSION: u8 = 109;

/// Bytes of a ClientHello at most: our choice, with room for several large key shares.
const MAX_CLIENT_HELLO: usize = 16 * 1024;

/// Where the handshake of a connection begins.
pub(crate) enum Start {
    /// With a session that has a ClientHello to send.
    Client {
        /// What the session was made from.
        from: ClientOrigin,
        /// The session.
        session: Box<dyn Session>,
    },
    /// With the ClientHello that comes.
    Server(ServerOrigin),
}

/// What the sessions of a client's connection are made from.
pub(crate) struct ClientOrigin {
    tls: Arc<dyn ClientTls>,
    server_name: Box<str>,
    config: Arc<TransportConfig>,
    parameters: TransportParameters,
}

impl ClientOrigin {
    /// A connection to the server of that name, whose `parameters` are ours but for the version.
    pub(crate) fn new(
        tls: Arc<dyn ClientTls>,
        server_name: &str,
        config: Arc<TransportConfig>,
        parameters: TransportParameters,
    ) -> Self {
        ClientOrigin { tls, server_name: server_name.into(), config, parameters }
    }

    /// Starts a session whose first flight is of that version.
    pub(crate) fn start(&self, version: Version) -> Result<Box<dyn Session>, StartError> {
        let mut parameters = self.parameters.clone();
        parameters.version_information =
            version::information(&self.config, version, parameters.reserved);
        self.tls.start(&ClientStart {
            server_name: &self.server_name,
            version,
            may_change: self.may_change(),
            parameters: &parameters.encode(),
            early_data: self.config.early_data,
        })
    }

    /// True if the server may go on in another version.
    fn may_change(&self) -> bool {
        self.config.versions.len() > 1
    }

    /// True if the server may go on in that version.
    pub(super) fn allows(&self, version: Version) -> bool {
        self.may_change() && self.config.versions.contains(&version)
    }

    /// The keys of Initial packets.
    pub(crate) fn initial_keys(&self, version: Version, dcid: &ConnectionId) -> Keys {
        self.tls.initial_keys(version, dcid, Role::Client)
    }
}

/// What the session of a server's connection is made from, once the ClientHello is there.
pub(crate) struct ServerOrigin {
    tls: Arc<dyn ServerTls>,
    config: Arc<TransportConfig>,
    parameters: TransportParameters,
    /// The client's handshake bytes so far.
    bytes: Vec<u8>,
}

/// A session that a ClientHello started.
pub(super) struct Answer {
    pub(super) session: Box<dyn Session>,
    /// The ClientHello, from its first byte on.
    pub(super) bytes: Vec<u8>,
    pub(super) version: Version,
    /// Keys of Initial packets, if they change with the version.
    pub(super) initial_keys: Option<Keys>,
}

impl ServerOrigin {
    /// A connection with a client, in which `parameters` are ours but for the version.
    pub(crate) fn new(
        tls: Arc<dyn ServerTls>,
        config: Arc<TransportConfig>,
        parameters: TransportParameters,
    ) -> Self {
        ServerOrigin { tls, config, parameters, bytes: Vec::new() }
    }

    /// Takes handshake bytes of the client, in order; starts the session when the ClientHello is
    /// whole. `original`: the version of the packets; `dcid`: what Initial keys are made of.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        original: Version,
        dcid: Option<ConnectionId>,
    ) -> Result<Option<Answer>, TransportError> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > MAX_CLIENT_HELLO {
            let code = ErrorCode::CRYPTO_BUFFER_EXCEEDED;
            return Err(TransportError::new(code, "a ClientHello that is too long"));
        }
        let Some(hello) = self.tls.client_hello(&self.bytes)? else { return Ok(None) };
        // https://www.rfc-editor.org/rfc/rfc9001#section-8.4
        //# A server SHOULD treat the receipt of a TLS ClientHello with a non-empty
        //# legacy_session_id field as a connection error of type PROTOCOL_VIOLATION.
        if !hello.legacy_session_id.is_empty() {
            return Err(TransportError::protocol_violation("a ClientHello with a session ID"));
        }
        let encoded = hello.transport_parameters.ok_or_else(missing_parameters)?;
        let client = TransportParameters::read(encoded, Role::Client)?;
        let version = self.choose(original, client.version_information.as_ref())?;
        let mut parameters = self.parameters.clone();
        parameters.version_information =
            version::information(&self.config, version, parameters.reserved);
        let session = self.tls.start(&ServerStart {
            version,
            parameters: &parameters.encode(),
            limits: RememberedLimits::of(&parameters),
            early_data: self.config.early_data,
        });
        // https://www.rfc-editor.org/rfc/rfc9368#section-2.3
        //# if the server is unable to convert the first flight, it MUST abort the handshake.
        let session = session
            .map_err(|error| TransportError::new(ErrorCode::INTERNAL_ERROR, error.to_string()))?;
        let dcid = dcid.filter(|_| version != original);
        let initial_keys = dcid.map(|dcid| self.tls.initial_keys(version, &dcid, Role::Server));
        let bytes = std::mem::take(&mut self.bytes);
        Ok(Some(Answer { session, bytes, version, initial_keys }))
    }

    /// The version to go on in.
    fn choose(
        &self,
        original: Version,
        client: Option<&VersionInformation>,
    ) -> Result<Version, TransportError> {
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        // Servers may complete the handshake even if the Version Information is missing.
        let Some(client) = client else { return Ok(original) };
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# When the server then processes the client's Version Information, the server MUST
        //# validate that the client's Chosen Version matches the version in use for the connection.
        //# If the two differ, the server MUST close the connection with a version negotiation
        //# error. [...] Subsequently, if the server receives the client's Version Information over
        //# QUIC version 1 (as indicated by the Version field of the Long Header packets that
        //# carried the transport parameters) and the client's Chosen Version is not set to
        //# 0x00000001, the server MUST close the connection with a version negotiation error.
        if client.chosen != original {
            let code = ErrorCode::VERSION_NEGOTIATION_ERROR;
            return Err(TransportError::new(code, "the client chose another version"));
        }
        // https://www.rfc-editor.org/rfc/rfc9368#section-2.3
        //# In order to perform compatible version negotiation, the server MUST select one of these
        //# versions that it (1) supports and (2) knows the client's Chosen Version is compatible
        //# with.
        // https://www.rfc-editor.org/rfc/rfc9369#section-4
        //# Endpoints that support both versions SHOULD support compatible version negotiation to
        //# avoid a round trip.
        let wanted = version::most_wanted(&self.config, client.available.iter().copied());
        Ok(wanted.unwrap_or(original))
    }
}

/// The peer's transport parameters did not come.
pub(super) fn missing_parameters() -> TransportError {
    // https://www.rfc-editor.org/rfc/rfc9001#section-8.2
    //# Endpoints MUST send the quic_transport_parameters extension; endpoints that receive
    //# ClientHello or EncryptedExtensions messages without the quic_transport_parameters
    //# extension MUST close the connection with an error of type 0x016d (equivalent to a fatal TLS
    //# missing_extension alert, see Section 4.8).
    TransportError::new(ErrorCode::crypto(MISSING_EXTENSION), "no transport parameters")
}

#[cfg(test)]
mod tests;
