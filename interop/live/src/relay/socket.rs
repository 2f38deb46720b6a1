//! A UDP socket of the relay, with ECN.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;

use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Bytes that one call takes, at most.
const BUFFER: usize = 1 << 16;

pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

/// A datagram that came.
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) ecn: u8,
    pub(crate) bytes: Vec<u8>,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Arc<Self>> {
        let socket = std::net::UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // With it, quinn-udp has no room for the marks of datagrams that the kernel joined.
        let _ = setsockopt(&socket, ReceiveTimestampns, &false);
        // Senders of tests are not to lose more than they are meant to.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), 4 << 20);
        Ok(Arc::new(Socket { io: UdpSocket::from_std(socket)?, state }))
    }

    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// The datagrams that one call brings.
    pub(crate) async fn receive(&self) -> io::Result<Vec<Received>> {
        let mut buffer = vec![0; BUFFER];
        let mut metas = [RecvMeta::default()];
        loop {
            self.io.readable().await?;
            let receive = || {
                let mut pieces = [IoSliceMut::new(&mut buffer)];
                self.state.recv(UdpSockRef::from(&self.io), &mut pieces, &mut metas)
            };
            match self.io.try_io(Interest::READABLE, receive) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Of a datagram that was sent before to a port that is closed: nobody is told.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        let [meta] = metas;
        let ecn = meta.ecn.map_or(0, |ecn| ecn as u8);
        let filled = buffer.get(..meta.len).unwrap_or_default();
        let pieces = filled.chunks(meta.stride.max(1));
        Ok(pieces.map(|bytes| Received { from: meta.addr, ecn, bytes: bytes.to_vec() }).collect())
    }

    /// False if it did not leave.
    pub(crate) fn send(&self, to: SocketAddr, ecn: u8, bytes: &[u8]) -> bool {
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(ecn),
            contents: bytes,
            segment_size: None,
            src_ip: None,
        };
        self.state.try_send(UdpSockRef::from(&self.io), &transmit).is_ok()
    }
}
