//! The listening TCP socket.

use std::io;
use std::net::SocketAddr;

use quipu_tokio::tcp::{TcpError, TcpOptions, socket};
use socket2::Socket;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// Most connections that the kernel holds until they are accepted; it may allow fewer. Our choice.
const BACKLOG: i32 = 1_024;

/// Why a listener could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The port is taken.
    #[error("TCP {0} is in use; stop the other program, or choose another port")]
    InUse(SocketAddr),
    /// The caller lacks the right to bind that port.
    #[error(
        "no right to listen on TCP {0}; choose a port from 1024 on, or grant CAP_NET_BIND_SERVICE"
    )]
    NoRight(SocketAddr),
    /// The host does not have that address.
    #[error("this host has no address {}; see its addresses with `ip address`", .0.ip())]
    NotOurs(SocketAddr),
    /// The host has no sockets with these options.
    #[error(transparent)]
    Options(TcpError),
    /// Something else went wrong.
    #[error("cannot listen on TCP {address}: {source}")]
    Other {
        /// The address.
        address: SocketAddr,
        /// The error of the host.
        source: io::Error,
    },
    /// The call was made outside of a tokio runtime.
    #[error("there is no tokio runtime; call this within one that has I/O and time enabled")]
    NoRuntime,
}

impl ListenError {
    fn of(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address),
            io::ErrorKind::PermissionDenied => ListenError::NoRight(address),
            io::ErrorKind::AddrNotAvailable => ListenError::NotOurs(address),
            _ => ListenError::Other { address, source },
        }
    }
}

/// A socket that listens on one address, or on all addresses of one family, like the UDP sockets of
/// [`Endpoint::server`](quipu_tokio::Endpoint), with which it may share address and port.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    local: SocketAddr,
}

impl Listener {
    /// Listens on `address`. With port 0 the host chooses one, which is free for TCP. Connections wait in the
    /// kernel until a [`Server`](super::Server) runs.
    ///
    /// # Errors
    /// [`ListenError`], with what to do.
    pub fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        Listener::bind_with(address, &TcpOptions::default())
    }

    /// The same with `options`, which accepted connections have, too.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with(address: SocketAddr, options: &TcpOptions) -> Result<Self, ListenError> {
        if Handle::try_current().is_err() {
            return Err(ListenError::NoRuntime);
        }
        let socket = socket(address, options).map_err(|error| match error {
            TcpError::Socket(source) => ListenError::of(address, source),
            error => ListenError::Options(error),
        })?;
        let made = listening(socket, address).and_then(|socket| {
            let socket = TcpListener::from_std(socket.into())?;
            let local = socket.local_addr()?;
            Ok(Listener { socket, local })
        });
        made.map_err(|source| ListenError::of(address, source))
    }

    /// Address and port. The address may be unspecified, the port is not 0.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn socket(&self) -> &TcpListener {
        &self.socket
    }
}

fn listening(socket: Socket, address: SocketAddr) -> io::Result<Socket> {
    if address.is_ipv6() {
        // One socket for each family, as over UDP.
        socket.set_only_v6(true)?;
    }
    // Otherwise a restarted server could not bind its port for a minute. On Windows the option means sharing.
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
