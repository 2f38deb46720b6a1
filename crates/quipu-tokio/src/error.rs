//! What can go wrong, one enum for each operation. Each says what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use quipu_base::PathId;
use quipu_quic::ConfigError;
use quipu_quic::connection::{
    CloseReason, EditError, MigrateError as EngineMigrateError, OpenPathError,
};
use quipu_quic::endpoint::ConnectError as EngineError;
use thiserror::Error;

use crate::icmp::Hint;
use crate::uplink::UplinkError;

/// Why a socket was not bound, or an endpoint not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The port is taken.
    #[error("{0} is in use; stop the other program, or choose another port")]
    InUse(SocketAddr),
    /// The caller may not have that port.
    #[error("no right to bind {0}; choose a port from 1024 on, or grant CAP_NET_BIND_SERVICE")]
    NoRight(SocketAddr),
    /// The host does not have that address.
    #[error("this host has no address {}; see its addresses with `ip address`", .0.ip())]
    NotOurs(SocketAddr),
    /// The caller may not choose an interface.
    #[error("no right to leave by interface {0:?}; this needs Linux 5.7, or CAP_NET_RAW")]
    NoDeviceRight(String),
    /// The interface went.
    #[error("there is no interface {0:?} any more")]
    DeviceGone(String),
    /// Something else went wrong with an address.
    #[error("cannot open a UDP socket on {address}: {source}")]
    Address {
        /// Which.
        address: SocketAddr,
        /// What the host said.
        source: io::Error,
    },
    /// Something else went wrong with an interface.
    #[error("cannot leave by interface {interface:?}: {source}")]
    Device {
        /// Which.
        interface: String,
        /// What the host said.
        source: io::Error,
    },
    /// There is no such uplink.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No timer.
    #[error("cannot make a timer: {0}")]
    Timer(#[source] io::Error),
    /// It is not called within a runtime of tokio.
    #[error("there is no tokio runtime; call this within one that has I/O and time enabled")]
    NoRuntime,
}

impl BindError {
    pub(crate) fn of_address(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(address),
            io::ErrorKind::PermissionDenied => BindError::NoRight(address),
            io::ErrorKind::AddrNotAvailable => BindError::NotOurs(address),
            _ => BindError::Address { address, source },
        }
    }

    #[cfg_attr(
        not(any(target_os = "linux", target_os = "macos", target_os = "ios")),
        expect(dead_code, reason = "no socket is bound to a device there")
    )]
    pub(crate) fn of_device(interface: String, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => BindError::NoDeviceRight(interface),
            _ if is_gone(&source) => BindError::DeviceGone(interface),
            _ => BindError::Device { interface, source },
        }
    }
}

/// True if the host says that the interface or its address is no more.
fn is_gone(error: &io::Error) -> bool {
    // ENODEV has no kind of its own.
    cfg!(unix) && error.raw_os_error() == Some(19)
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// As the engine says.
    #[error("{}", Explained(.0))]
    Closed(CloseReason),
    /// The runtime that drove the endpoint is gone.
    #[error("the endpoint is gone; keep its runtime until all connections have ended")]
    EndpointGone,
}

impl ConnectionError {
    /// True if what had come can still be read: only the application itself gives that up.
    pub(crate) fn leaves_unread(&self) -> bool {
        match self {
            ConnectionError::Closed(CloseReason::Application { .. })
            | ConnectionError::EndpointGone => false,
            ConnectionError::Closed(_) => true,
        }
    }

    /// True if the peer said nothing for too long.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(
            self,
            ConnectionError::Closed(CloseReason::HandshakeTimeout | CloseReason::IdleTimeout)
        )
    }

    /// The code with which an application closed the connection, ours or the peer's.
    pub fn application_code(&self) -> Option<u64> {
        match self {
            ConnectionError::Closed(
                CloseReason::Application { code } | CloseReason::PeerApplication { code, .. },
            ) => Some(*code),
            _ => None,
        }
    }
}

/// A reason with what to do about it.
struct Explained<'a>(&'a CloseReason);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.0;
        match (reason, reason.tls_alert().map(|alert| alert.0)) {
            (CloseReason::Version, _) => {
                write!(f, "{reason}; both ends need one version of QUIC in their settings")
            }
            (CloseReason::StatelessReset, _) => {
                write!(f, "{reason}: it lost its state, as after a restart; connect again")
            }
            (_, Some(NO_APPLICATION_PROTOCOL)) => {
                write!(f, "{reason}; both ends need one application protocol (ALPN) in common")
            }
            (_, Some(alert)) if is_about_certificates(alert) => {
                write!(f, "{reason}; the client has to trust the server's certificate")
            }
            _ => reason.fmt(f),
        }
    }
}

/// <https://www.rfc-editor.org/rfc/rfc7301#section-3.2>
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// <https://www.rfc-editor.org/rfc/rfc8446#section-6>
fn is_about_certificates(alert: u8) -> bool {
    matches!(alert, 42..=46 | 48 | 113 | 116)
}

/// Why there is no connection to a server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The configuration or the server's name is wrong.
    #[error(transparent)]
    Config(#[from] EngineError),
    /// The host knows no route.
    #[error("no route to {remote}: {source}; is this host connected?")]
    NoRoute {
        /// The server's address.
        remote: SocketAddr,
        /// What the host said.
        source: io::Error,
    },
    /// No uplink has an address of that family.
    #[error("no uplink has an address that reaches {0}; name one of its family")]
    NoUplink(SocketAddr),
    /// The server's host says that nobody has the port; see [`Endpoint::connect`](crate::Endpoint::connect).
    #[error(
        "nothing listens at {0} (UDP port unreachable); is the server started, and does no firewall \
         reject UDP there?"
    )]
    NobodyListens(SocketAddr),
    /// Nothing came back, and the network said why.
    #[error(
        "no answer from {remote} by {tried}: {reason}; is the server's host on, and is there a route \
         to it?"
    )]
    Unreachable {
        /// The server's address.
        remote: SocketAddr,
        /// The addresses that were left by.
        tried: String,
        /// What the network said, and by whom.
        reason: String,
    },
    /// Nothing came back, by any uplink.
    #[error(
        "no answer from {remote} by {tried}; does a server listen there, and does every firewall \
         let UDP pass?"
    )]
    NoAnswer {
        /// The server's address.
        remote: SocketAddr,
        /// The addresses that were left by.
        tried: String,
    },
    /// The server's certificate is not trusted.
    #[error("the certificate of {remote} is not trusted: {reason}; check the name and the root")]
    Certificate {
        /// The server's address.
        remote: SocketAddr,
        /// What is wrong with it.
        reason: String,
    },
    /// The server offers none of the application protocols.
    #[error("{0} speaks none of our application protocols (ALPN); ask it for another")]
    Alpn(SocketAddr),
    /// The server lets nobody in.
    #[error("{0} refuses the connection: too busy, or closed to this client; try again later")]
    Refused(SocketAddr),
    /// It ended in another way.
    #[error("no connection to {remote}: {source}")]
    Lost {
        /// The server's address.
        remote: SocketAddr,
        /// How.
        source: ConnectionError,
    },
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl ConnectError {
    /// A handshake with `remote`, by the addresses `tried`, ended like that. `hint`: what the network said.
    pub(crate) fn of(
        error: ConnectionError,
        hint: Option<&Hint>,
        remote: SocketAddr,
        tried: &str,
    ) -> Self {
        let tried = tried.to_owned();
        if let Some(hint) = hint.filter(|_| error.is_timeout()) {
            return ConnectError::Unreachable { remote, tried, reason: hint.to_string() };
        }
        let ConnectionError::Closed(reason) = &error else {
            return ConnectError::Lost { remote, source: error };
        };
        match (reason, reason.tls_alert().map(|alert| alert.0)) {
            (CloseReason::HandshakeTimeout | CloseReason::IdleTimeout, _) => {
                ConnectError::NoAnswer { remote, tried }
            }
            (_, Some(NO_APPLICATION_PROTOCOL)) => ConnectError::Alpn(remote),
            // The alert alone does not tell a wrong signature from one of the handshake.
            (CloseReason::PeerFault(fault), Some(alert))
                if is_about_certificates(alert)
                    || fault.reason.starts_with("invalid peer certificate") =>
            {
                ConnectError::Certificate { remote, reason: fault.reason.clone().into_owned() }
            }
            (CloseReason::PeerTransport { code: 0x02, .. }, _) => ConnectError::Refused(remote),
            _ => ConnectError::Lost { remote, source: error },
        }
    }
}

/// Why a client was not let in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// It waited too long, or its configuration is refused.
    #[error("the client waited too long for a decision, or TLS refuses the configuration")]
    Gone,
    /// The handshake failed.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Why a stream could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer gave up sending.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// It was stopped by this end.
    #[error("the stream was stopped")]
    Stopped,
    /// The connection ended.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Why a stream could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer wants no more.
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// It was finished or reset by this end.
    #[error("the stream was finished or reset")]
    Finished,
    /// The connection ended.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Stopped => io::ErrorKind::NotConnected,
            ReadError::Lost(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            WriteError::Finished | WriteError::Lost(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}

/// Why there is no further path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PathError {
    /// No socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The engine refuses.
    #[error(transparent)]
    Open(#[from] OpenPathError),
    /// Nothing came back on the path.
    #[error("no answer on path {} from {local}; does every firewall let UDP pass?", .path.0)]
    NoAnswer {
        /// Which path.
        path: PathId,
        /// The address that was left by.
        local: SocketAddr,
    },
    /// The uplink has no address of the server's family.
    #[error("the uplink has no address that reaches {0}")]
    NoUplink(SocketAddr),
    /// There is no such path, or it is the last one.
    #[error("path {} does not exist, or is the last one", .0.0)]
    NoPath(PathId),
    /// The connection ended.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Why a path is not moved.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// No socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The engine refuses.
    #[error(transparent)]
    Migrate(#[from] EngineMigrateError),
    /// The uplink has no address of the server's family.
    #[error("the uplink has no address that reaches {0}")]
    NoUplink(SocketAddr),
    /// There is no such path.
    #[error("path {} does not exist", .0.0)]
    NoPath(PathId),
    /// The connection ended.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Why priorities could not be edited.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditPriorityError {
    /// The engine refuses.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The connection ended.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

#[cfg(test)]
mod tests {
    use quipu_quic::error::{ErrorCode, TransportError};

    use super::*;

    #[test]
    fn errors_of_handshakes_say_what_to_do() {
        let remote: SocketAddr = "192.0.2.1:443".parse().unwrap();
        let of =
            |reason| ConnectError::of(ConnectionError::Closed(reason), None, remote, "10.0.0.2");
        let silent = of(CloseReason::HandshakeTimeout).to_string();
        assert!(silent.contains("by 10.0.0.2") && silent.contains("firewall"), "{silent}");
        let alert = |alert| TransportError::new(ErrorCode::crypto(alert), "unknown issuer");
        let issuer = of(CloseReason::PeerFault(alert(48)));
        assert!(
            matches!(&issuer, ConnectError::Certificate { reason, .. } if reason == "unknown issuer")
        );
        let reason = String::new();
        let alpn = of(CloseReason::PeerTransport { code: 0x178, reason: reason.clone() });
        assert!(matches!(alpn, ConnectError::Alpn(_)));
        let refused = of(CloseReason::PeerTransport { code: 2, reason });
        assert!(matches!(refused, ConnectError::Refused(_)));
        let version = of(CloseReason::Version).to_string();
        assert!(version.contains("version of QUIC in their settings"), "{version}");
    }

    #[test]
    fn errors_of_sockets_say_what_to_do() {
        let address: SocketAddr = "192.0.2.1:443".parse().unwrap();
        let of = |kind: io::ErrorKind| BindError::of_address(address, kind.into()).to_string();
        assert!(of(io::ErrorKind::AddrInUse).contains("choose another port"));
        assert!(of(io::ErrorKind::PermissionDenied).contains("CAP_NET_BIND_SERVICE"));
        assert!(of(io::ErrorKind::AddrNotAvailable).contains("no address 192.0.2.1;"));
    }
}
