//! One UDP socket: bound, with what the kernel can do for it.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use quipu_base::Bytes;
use quipu_quic::Route;
use socket2::{Domain, Protocol, SockRef, Socket as Plain, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::error::BindError;
#[cfg(target_os = "linux")]
use crate::icmp;
use crate::icmp::Report;
use crate::uplink::Uplink;

/// Bytes that the kernel is asked to keep in each direction, which it cuts down to what it allows.
/// Our choice: 10 ms at 3 Gbit/s.
pub(crate) const KERNEL_BUFFER: Bytes = Bytes(4 << 20);

/// Whether other sockets of this user may have the same address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// None may.
    Alone,
    /// Later ones may. Where there are some already, it is in use.
    First,
    /// Those before and after may.
    Next,
}

/// A socket of an endpoint.
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Address and port it is bound to; the address may be unspecified.
    local: SocketAddr,
    /// What a client's socket leaves by.
    uplink: Option<Uplink>,
    errors: Mutex<Errors>,
}

/// What is heard of datagrams that did not arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    /// Those who want to hear.
    listeners: usize,
    /// Something was heard.
    any: bool,
}

impl Socket {
    /// A server's socket: one address, or all of a family. To be called within a runtime.
    pub(crate) fn listen(
        address: SocketAddr,
        buffer: Bytes,
        sharing: Sharing,
    ) -> Result<Self, BindError> {
        Self::bind(address, None, buffer, sharing)
    }

    /// A client's socket, which leaves by `uplink` and nothing else, on a port that the host chooses.
    pub(crate) fn leave_by(uplink: Uplink, buffer: Bytes) -> Result<Self, BindError> {
        let address = match (uplink.address, uplink.index) {
            (IpAddr::V6(ip), Some(index)) if ip.is_unicast_link_local() => {
                SocketAddr::V6(SocketAddrV6::new(ip, 0, 0, index.get()))
            }
            (ip, _) => SocketAddr::new(ip, 0),
        };
        Self::bind(address, Some(uplink), buffer, Sharing::Alone)
    }

    fn bind(
        address: SocketAddr,
        uplink: Option<Uplink>,
        buffer: Bytes,
        sharing: Sharing,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::of_address(address, source);
        let plain = Plain::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP));
        let plain = plain.map_err(failed)?;
        if address.is_ipv6() {
            // One socket for each family: a socket of both has no ECN on some systems.
            plain.set_only_v6(true).map_err(failed)?;
        }
        if let Some(uplink) = &uplink {
            // A source address alone would leave by the default route.
            bind_device(&plain, uplink)?;
        }
        // Linux lets a port be shared that was not when it was bound. Otherwise a port that the host chooses
        // may be one that sockets share already.
        let shares_later = sharing == Sharing::First && cfg!(target_os = "linux");
        if sharing != Sharing::Alone && !shares_later {
            share_port(&plain).map_err(failed)?;
        }
        plain.set_nonblocking(true).map_err(failed)?;
        // Smaller ones work, too.
        let buffer = usize::try_from(buffer.0).unwrap_or(usize::MAX);
        let _ = plain.set_recv_buffer_size(buffer);
        let _ = plain.set_send_buffer_size(buffer);
        plain.bind(&address.into()).map_err(failed)?;
        if shares_later {
            share_port(&plain).map_err(failed)?;
        }
        Self::of(std::net::UdpSocket::from(plain), uplink).map_err(failed)
    }

    fn of(socket: std::net::UdpSocket, uplink: Option<Uplink>) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        receive_no_timestamps(&socket);
        let io = UdpSocket::from_std(socket)?;
        let local = io.local_addr()?;
        Ok(Socket { io, state, local, uplink, errors: Mutex::default() })
    }

    /// The same socket, as if it were new to the runtime, if errors were heard and nobody hears any more. To
    /// be called within a runtime.
    ///
    /// An error that the kernel keeps looks to the runtime as if the socket were closed for writing, which
    /// it then takes to be so for good: whoever waits for room in a full socket would not sleep.
    pub(crate) fn renewed(&self) -> Option<Self> {
        let errors = *self.errors();
        if errors.listeners > 0 || !errors.any {
            return None;
        }
        // Nobody is to hear of it.
        let _ = self.io.take_error();
        let same = SockRef::from(&self.io).try_clone().ok()?;
        Self::of(same.into(), self.uplink.clone()).ok()
    }

    fn errors(&self) -> MutexGuard<'_, Errors> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if calls may fail because of what became of datagrams that were sent before.
    pub(crate) fn hears(&self) -> bool {
        self.errors().listeners > 0
    }

    /// True if a call may have failed so because of what the network said of a datagram before.
    pub(crate) fn may_be_report(&self, error: &io::Error) -> bool {
        let kinds = [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::HostUnreachable,
            io::ErrorKind::NetworkUnreachable,
            io::ErrorKind::PermissionDenied,
        ];
        kinds.contains(&error.kind()) && self.hears()
    }

    /// One more wants to hear what becomes of datagrams.
    pub(crate) fn add_listener(&self) {
        let mut errors = self.errors();
        errors.listeners += 1;
        if errors.listeners == 1 {
            self.set_hearing(true);
        }
    }

    /// One does not any more. True if the socket is to be [renewed](Socket::renewed).
    pub(crate) fn remove_listener(&self) -> bool {
        let mut errors = self.errors();
        errors.listeners = errors.listeners.saturating_sub(1);
        if errors.listeners == 0 {
            self.set_hearing(false);
        }
        errors.listeners == 0 && errors.any
    }

    #[cfg(target_os = "linux")]
    fn set_hearing(&self, hears: bool) {
        // Where the kernel refuses, nothing is heard, and handshakes time out.
        let _ = icmp::hear(&self.io, self.local.is_ipv4(), hears);
    }

    #[cfg(not(target_os = "linux"))]
    fn set_hearing(&self, _hears: bool) {}

    /// The next that the network says of a datagram of this socket. Cancelling loses none.
    #[cfg(target_os = "linux")]
    pub(crate) async fn next_report(&self) -> Report {
        loop {
            if self.io.ready(Interest::ERROR).await.is_err() {
                // The runtime is shutting down.
                std::future::pending::<()>().await;
            }
            self.errors().any = true;
            if let Ok(Some(report)) = self.io.try_io(Interest::ERROR, || icmp::receive(&self.io)) {
                return report;
            }
        }
    }

    /// Nothing is heard on this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn next_report(&self) -> Report {
        std::future::pending().await
    }

    /// Address and port that it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// What a client's socket leaves by.
    pub(crate) fn uplink(&self) -> Option<&Uplink> {
        self.uplink.as_ref()
    }

    /// The route from here to `remote`.
    pub(crate) fn route_to(&self, remote: SocketAddr) -> Route {
        let route = Route::new(self.local, remote);
        match self.uplink.as_ref().and_then(|uplink| uplink.index) {
            Some(index) => route.through(index),
            None => route,
        }
    }

    /// True if datagrams of `route` leave here.
    pub(crate) fn serves(&self, route: &Route) -> bool {
        let same_port = self.local.port() == route.local.port();
        let same_family = self.local.is_ipv4() == route.local.is_ipv4();
        let same_ip = self.local.ip() == route.local.ip() || self.local.ip().is_unspecified();
        same_port && same_family && same_ip
    }

    /// Datagrams that the kernel takes in one call, at most.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// The route by which a datagram came.
    pub(crate) fn route_of(&self, meta: &RecvMeta) -> Route {
        let ip = meta.dst_ip.filter(|_| self.local.ip().is_unspecified());
        let local = SocketAddr::new(ip.unwrap_or(self.local.ip()), self.local.port());
        let route = Route::new(local, meta.addr);
        match meta.interface_index.and_then(std::num::NonZeroU32::new) {
            Some(index) => route.through(index).canonical(),
            None => route,
        }
    }

    /// Ready when datagrams may have come.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(ready!(self.io.poll_recv_ready(cx)).is_ok())
    }

    /// Ready when datagrams may be taken.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(ready!(self.io.poll_send_ready(cx)).is_ok())
    }

    /// Takes the datagrams that came, as many as the buffers hold.
    pub(crate) fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> io::Result<usize> {
        let receive = || self.state.recv(UdpSockRef::from(&self.io), buffers, metas);
        self.io.try_io(Interest::READABLE, receive)
    }

    /// Passes datagrams of one route to the kernel: all of `segment` bytes, but the last may be
    /// shorter.
    pub(crate) fn send(
        &self,
        route: &Route,
        ecn: u8,
        segment: usize,
        datagrams: &[u8],
    ) -> Result<(), Refusal> {
        let src_ip = self.local.ip().is_unspecified().then_some(route.local.ip());
        let transmit = Transmit {
            destination: route.destination(),
            ecn: quinn_udp::EcnCodepoint::from_bits(ecn),
            contents: datagrams,
            segment_size: (segment < datagrams.len()).then_some(segment),
            src_ip: src_ip.filter(|ip| !ip.is_unspecified()),
        };
        match self.try_send(&transmit) {
            // It may be of a datagram before, of which the kernel tells once.
            Err(Refusal::Failed(_)) if self.hears() => self.try_send(&transmit),
            sent => sent,
        }
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> Result<(), Refusal> {
        let mut asked = false;
        let send = || {
            asked = true;
            self.state.try_send(UdpSockRef::from(&self.io), transmit)
        };
        let sent = self.io.try_io(Interest::WRITABLE, send);
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock if asked => Refusal::Full,
            io::ErrorKind::WouldBlock => Refusal::NotReady,
            _ => Refusal::Failed(error),
        })
    }
}

/// Why datagrams did not leave.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The socket is new, or took nothing before, and has not been said to take any since.
    NotReady,
    /// The kernel holds all it may for the socket.
    Full,
    /// They never will.
    Failed(io::Error),
}

/// The wildcard addresses of both families with that port.
pub(crate) fn wildcards(port: u16) -> [SocketAddr; 2] {
    let v4 = std::net::Ipv4Addr::UNSPECIFIED;
    [SocketAddr::new(v4.into(), port), SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)]
}

/// quinn-udp asks for the time at which each datagram came, and leaves 96 bytes for all that the
/// kernel says of it. Of datagrams that the kernel joined that is 112 bytes, and the ECN mark comes
/// last. Nobody reads the time.
#[cfg(target_os = "linux")]
fn receive_no_timestamps(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
    // Without it, marks of datagrams that came one by one are still read.
    let _ = setsockopt(socket, ReceiveTimestampns, &false);
}

#[cfg(not(target_os = "linux"))]
fn receive_no_timestamps(_socket: &std::net::UdpSocket) {}

#[cfg(unix)]
fn share_port(plain: &Plain) -> io::Result<()> {
    plain.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_port(_plain: &Plain) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "sockets cannot share a port on this system"))
}

#[cfg(target_os = "linux")]
fn bind_device(plain: &Plain, uplink: &Uplink) -> Result<(), BindError> {
    let Some(name) = &uplink.interface else { return Ok(()) };
    plain
        .bind_device(Some(name.as_bytes()))
        .map_err(|source| BindError::of_device(name.clone(), source))
}

#[cfg(any(target_os = "macos", target_os = "ios"))]
fn bind_device(plain: &Plain, uplink: &Uplink) -> Result<(), BindError> {
    let (Some(name), Some(index)) = (&uplink.interface, uplink.index) else { return Ok(()) };
    let bound = match uplink.address {
        IpAddr::V4(_) => plain.bind_device_by_index_v4(Some(index)),
        IpAddr::V6(_) => plain.bind_device_by_index_v6(Some(index)),
    };
    bound.map_err(|source| BindError::of_device(name.clone(), source))
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn bind_device(_plain: &Plain, _uplink: &Uplink) -> Result<(), BindError> {
    // The host's routes decide, which follow the address on some of these systems.
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_socket_that_heard_errors_is_renewed_and_can_wait_for_room_again() {
        let here = "127.0.0.1:0".parse().unwrap();
        let socket = Socket::listen(here, KERNEL_BUFFER, Sharing::Alone).unwrap();
        let nobody = "127.0.0.1:1".parse().unwrap();
        socket.io.writable().await.unwrap();
        assert!(socket.renewed().is_none(), "nothing was heard");
        socket.add_listener();
        socket.send(&socket.route_to(nobody), 0, 1000, b"anybody?").unwrap();
        let report = socket.next_report().await;
        assert_eq!((report.remote, &report.quoted[..]), (nobody, &b"anybody?"[..]));
        assert_eq!(report.hint.to_string(), "port unreachable, says 127.0.0.1");
        // The next goes, although the kernel has something to say.
        socket.send(&socket.route_to(nobody), 0, 1000, b"nobody").unwrap();
        assert!(socket.renewed().is_none(), "somebody hears");
        assert!(socket.remove_listener());
        let closed = socket.io.ready(Interest::WRITABLE).await.unwrap().is_write_closed();
        let renewed = socket.renewed().unwrap();
        drop(socket);
        let ready = renewed.io.ready(Interest::WRITABLE).await.unwrap();
        assert!(closed && !ready.is_write_closed());
        assert!(!renewed.remove_listener() && renewed.renewed().is_none());
        // Nothing is heard any more.
        renewed.send(&renewed.route_to(nobody), 0, 1000, b"nobody").unwrap();
        let receiver = Socket::listen(here, KERNEL_BUFFER, Sharing::Alone).unwrap();
        renewed.send(&renewed.route_to(receiver.local()), 0, 1000, b"here").unwrap();
        receiver.io.readable().await.unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_the_network_says_of_a_datagram_spoils_no_other() {
        let here = "127.0.0.1:0".parse().unwrap();
        let peer = std::net::UdpSocket::bind(here).unwrap();
        // Each is told that nobody has a port, and has not read so yet.
        let told = async || {
            let socket = Socket::listen(here, KERNEL_BUFFER, Sharing::Alone).unwrap();
            let nobody = "127.0.0.1:1".parse().unwrap();
            socket.add_listener();
            socket.io.writable().await.unwrap();
            socket.send(&socket.route_to(nobody), 0, 1000, b"anybody?").unwrap();
            socket.io.ready(Interest::ERROR).await.unwrap();
            socket
        };
        let sender = told().await;
        sender.send(&sender.route_to(peer.local_addr().unwrap()), 0, 1000, b"sent").unwrap();
        let mut sent = [0; 4];
        assert_eq!((peer.recv(&mut sent).unwrap(), &sent), (4, b"sent"));

        let receiver = told().await;
        peer.send_to(b"datagram", receiver.local()).unwrap();
        receiver.io.readable().await.unwrap();
        let (mut buffer, mut metas) = ([0; 1 << 16], [RecvMeta::default()]);
        let mut receive = || receiver.receive(&mut [IoSliceMut::new(&mut buffer)], &mut metas);
        let error = receive().unwrap_err();
        assert!(receiver.may_be_report(&error), "{error:?}");
        assert_eq!(receive().unwrap(), 1);
        receiver.remove_listener();
        assert!(!receiver.may_be_report(&error));
    }

    #[tokio::test]
    async fn datagrams_that_the_kernel_joins_keep_their_ecn_mark() {
        let here = "127.0.0.1:0".parse().unwrap();
        let [sender, receiver] =
            [(); 2].map(|()| Socket::listen(here, KERNEL_BUFFER, Sharing::Alone).unwrap());
        if sender.max_segments() < 4 {
            return;
        }
        sender.io.writable().await.unwrap();
        sender.send(&sender.route_to(receiver.local()), 2, 1000, &[7; 4000]).unwrap();
        let (mut buffer, mut metas) = ([0; 1 << 16], [RecvMeta::default()]);
        let mut received = 0;
        while received < 4000 {
            receiver.io.readable().await.unwrap();
            let got = receiver.receive(&mut [IoSliceMut::new(&mut buffer)], &mut metas);
            if got.is_ok() {
                assert_eq!(metas[0].ecn, Some(quinn_udp::EcnCodepoint::Ect0));
                received += metas[0].len;
            }
        }
    }
}
