//! What the transport of a connection agreed on, and what may be asked of it beside streams and paths.

use quipu_base::PathId;
use quipu_quic::tls::EarlyData;
use quipu_quic::wire::Version;

use crate::connection::Connection;
use crate::error::{BindError, MigrateError};
use crate::path;
use crate::uplink::{Via, resolve};

impl Connection {
    /// The version of QUIC; `None` once the connection is gone.
    pub fn version(&self) -> Option<Version> {
        self.look(|connection, _| connection.version())
    }

    /// What became of early data (0-RTT); `None` once the connection is gone.
    pub fn early_data(&self) -> Option<EarlyData> {
        self.look(|connection, _| connection.early_data())
    }

    /// True at a server while all that came may be a replay: it came in 0-RTT, and the handshake, which
    /// nobody can replay, is not complete. See [`Incoming::accept_early`](crate::Incoming::accept_early).
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-9.2>
    pub fn is_early(&self) -> bool {
        self.look(|connection, _| connection.is_early()).unwrap_or(false)
    }

    /// Begins the next key phase. False if that is not possible now: the handshake is not confirmed,
    /// the present phase not acknowledged, keys of the one before are still kept, or the connection has
    /// ended. <https://www.rfc-editor.org/rfc/rfc9001#section-6>
    pub fn update_keys(&self) -> bool {
        let updated = self
            .shared()
            .with_connection(self.handle(), |connection, _, now| connection.update_keys(now));
        updated.unwrap_or(false)
    }

    /// How often the next key phase began, at whichever end's wish; `None` once the connection is gone.
    pub fn key_updates(&self) -> Option<u64> {
        self.look(|connection, _| connection.key_updates())
    }

    /// Moves a path of a client to another port of the host, or another address of it: the first one of
    /// `via` that is of the server's family. Data goes on at the present addresses until the new ones are
    /// validated; [`PathEvent::Migrated`](crate::PathEvent::Migrated) tells that the path has moved.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-9>
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub fn migrate_path(&self, path: PathId, via: Via) -> Result<(), MigrateError> {
        let route = self.look(|connection, _| connection.route(path)).flatten();
        let remote = route.ok_or(MigrateError::NoPath(path))?.remote;
        let uplinks = resolve(&[via]).map_err(BindError::from)?;
        let uplink = uplinks.into_iter().find(|up| up.address.is_ipv4() == remote.is_ipv4());
        let uplink = uplink.ok_or(MigrateError::NoUplink(remote))?;
        // A socket of its own: another port, even if the address is the same.
        let route = path::route_anew(self.shared(), uplink, remote)?;
        self.shared().with_connection(self.handle(), |connection, _, now| {
            connection.migrate(now, path, route)
        })??;
        Ok(())
    }
}
