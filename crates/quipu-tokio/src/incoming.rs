//! Clients that wait for the application's decision.

use std::net::SocketAddr;
use std::sync::Arc;

use quipu_quic::Route;
use quipu_quic::endpoint::{ServerConfig, TokenState};

use crate::connection::Connection;
use crate::error::AcceptError;
use crate::state::Shared;

/// A client that wants a connection, of which nothing is kept but its first datagrams. One that is
/// dropped without a decision is refused.
#[must_use = "a client waits for a decision"]
pub struct Incoming {
    shared: Arc<Shared>,
    /// Taken by the decision.
    inner: Option<quipu_quic::endpoint::Incoming>,
    route: Route,
    token: TokenState,
    may_retry: bool,
    server_name: Option<String>,
}

impl Incoming {
    pub(crate) fn new(shared: Arc<Shared>, inner: quipu_quic::endpoint::Incoming) -> Self {
        Incoming {
            route: inner.route(),
            token: inner.token(),
            may_retry: inner.may_retry(),
            server_name: inner.server_name().map(str::to_owned),
            shared,
            inner: Some(inner),
        }
    }

    /// The client's address, which may be forged unless [`Incoming::is_address_proved`].
    pub fn remote_address(&self) -> SocketAddr {
        self.route.remote
    }

    /// The address that the client sent to.
    pub fn local_address(&self) -> SocketAddr {
        self.route.local
    }

    /// True if the client showed a valid token.
    pub fn is_address_proved(&self) -> bool {
        self.token.is_valid()
    }

    /// True unless the client has followed a Retry already.
    pub fn may_retry(&self) -> bool {
        self.may_retry
    }

    /// The name of the server that the client asks for, if its first datagram tells.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Lets the client in; returns when the handshake is complete. Cancelling closes the connection.
    ///
    /// # Errors
    /// See [`AcceptError`].
    pub async fn accept(self) -> Result<Connection, AcceptError> {
        self.admit(None, false).await
    }

    /// The same with that configuration instead of the endpoint's.
    ///
    /// # Errors
    /// See [`AcceptError`].
    pub async fn accept_with(self, config: &ServerConfig) -> Result<Connection, AcceptError> {
        self.admit(Some(config), false).await
    }

    /// The same, but if the transport has [`early_data`](quipu_quic::TransportConfig::early_data) and the
    /// client sends in 0-RTT, this returns at once: streams may be read and answered before the handshake is
    /// complete. While [`Connection::is_early`], what came may be a replay: act on it only if it makes no
    /// difference how often, or wait for [`Connection::confirmed`]. Cancelling closes the connection.
    ///
    /// # Errors
    /// See [`AcceptError`].
    pub async fn accept_early(self) -> Result<Connection, AcceptError> {
        self.admit(None, true).await
    }

    async fn admit(
        mut self,
        config: Option<&ServerConfig>,
        is_early: bool,
    ) -> Result<Connection, AcceptError> {
        let inner = self.inner.take().ok_or(AcceptError::Gone)?;
        let admitted = self.shared.act(|state, now| {
            let handle = state.engine.admit(now, inner, config)?;
            Some((handle, state.add_connection(handle)))
        });
        let (handle, signals) = admitted.ok_or(AcceptError::Gone)?;
        let connection = Connection::new(Arc::clone(&self.shared), handle, signals);
        match is_early {
            true => connection.connected_or_early().await?,
            false => connection.connected().await?,
        }
        Ok(connection)
    }

    /// Asks the client to prove its address and come again. False if it cannot be asked, since
    /// [`ServerConfig::tokens`] has no key or it was asked before. It is forgotten either way.
    pub fn retry(mut self) -> bool {
        let Some(inner) = self.inner.take() else { return false };
        self.shared.act(|state, now| state.engine.retry(now, inner))
    }

    /// Tells the client that it is not let in.
    pub fn refuse(mut self) {
        self.refuse_now();
    }

    /// Forgets the client without a word.
    pub fn ignore(mut self) {
        if let Some(inner) = self.inner.take() {
            self.shared.act(|state, now| state.engine.ignore(now, inner));
        }
    }

    fn refuse_now(&mut self) {
        if let Some(inner) = self.inner.take() {
            self.shared.act(|state, now| state.engine.refuse(now, inner));
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.refuse_now();
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("route", &self.route).finish_non_exhaustive()
    }
}
