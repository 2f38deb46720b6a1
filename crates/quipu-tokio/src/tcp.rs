//! TCP sockets of the kernel, for servers beside QUIC and for clients that are compared with it.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

/// What the kernel does on a TCP socket; by default, what the host is set to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Name of the congestion control, such as `cubic`, in place of the host's; sockets that a listening one accepts
    /// have the same. Linux alone.
    pub congestion: Option<String>,
    /// Whether to use Multipath TCP where the peer does, too: <https://www.rfc-editor.org/rfc/rfc8684>. Linux alone.
    pub multipath: bool,
}

/// A TCP socket that this host does not have.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TcpError {
    /// No such congestion control.
    #[error(
        "no congestion control {name:?} for TCP here ({source}); see /proc/sys/net/ipv4/tcp_available_congestion_control"
    )]
    Congestion {
        /// What was asked for.
        name: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// No Multipath TCP.
    #[error("no Multipath TCP here ({0}); see /proc/sys/net/mptcp/enabled")]
    Multipath(io::Error),
    /// No socket at all.
    #[error(transparent)]
    Socket(io::Error),
}

/// A socket for addresses of the family of `address`, which does not block, neither bound nor connected.
///
/// # Errors
/// If the host has none with these options.
pub fn socket(address: SocketAddr, options: &TcpOptions) -> Result<Socket, TcpError> {
    let protocol = if options.multipath { multipath()? } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol));
    let socket = socket.map_err(|source| match options.multipath {
        true => TcpError::Multipath(source),
        false => TcpError::Socket(source),
    })?;
    socket.set_nonblocking(true).map_err(TcpError::Socket)?;
    if let Some(name) = &options.congestion {
        let set = set_congestion(&socket, name);
        set.map_err(|source| TcpError::Congestion { name: name.clone(), source })?;
    }
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn multipath() -> Result<Protocol, TcpError> {
    Ok(Protocol::MPTCP)
}

#[cfg(not(target_os = "linux"))]
fn multipath() -> Result<Protocol, TcpError> {
    Err(TcpError::Multipath(io::ErrorKind::Unsupported.into()))
}

#[cfg(target_os = "linux")]
fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

#[cfg(not(target_os = "linux"))]
fn set_congestion(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_the_congestion_control_that_it_was_given_and_passes_it_on() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        // Every kernel has it.
        let options = TcpOptions { congestion: Some("reno".to_owned()), multipath: false };
        let listening = socket(any, &options).unwrap();
        listening.bind(&any.into()).unwrap();
        listening.listen(1).unwrap();
        let to = listening.local_addr().unwrap();
        let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        client.connect(&to).unwrap();
        let accepted = loop {
            match listening.accept() {
                Ok((accepted, _)) => break accepted,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert!(accepted.tcp_congestion().unwrap().starts_with(b"reno"));
        let unknown = TcpOptions { congestion: Some("vegan".to_owned()), ..options };
        let told = socket(any, &unknown).unwrap_err().to_string();
        assert!(told.contains("\"vegan\"") && told.contains("/proc/sys/"), "{told}");
    }
}
