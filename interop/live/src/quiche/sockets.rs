//! Sockets of an end, and datagrams between them and its connections.

use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::{Duration, Instant};

use quiche::{Connection, RecvInfo};
use quipu_interop_live::Failure;
use tokio::net::UdpSocket;

use crate::settings::MAX_DATAGRAM;

/// A wait, at most.
const WAIT: Duration = Duration::from_secs(1);

pub(crate) struct Sockets {
    // With the address by which quiche knows it.
    all: Vec<(SocketAddr, UdpSocket)>,
    buffer: Vec<u8>,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        Sockets { all: Vec::new(), buffer: vec![0; MAX_DATAGRAM] }
    }

    /// Opens one more, and returns where it is.
    pub(crate) async fn bind(&mut self, address: SocketAddr) -> Result<SocketAddr, Failure> {
        let socket = UdpSocket::bind(address).await?;
        let local = socket.local_addr()?;
        self.all.push((local, socket));
        Ok(local)
    }

    /// Waits until a datagram is there, or until `deadline`.
    pub(crate) async fn wait(&self, deadline: Option<Instant>) -> Result<(), Failure> {
        let readable = std::future::poll_fn(|cx| {
            for (_, socket) in &self.all {
                if let Poll::Ready(ready) = socket.poll_recv_ready(cx) {
                    return Poll::Ready(ready);
                }
            }
            Poll::Pending
        });
        let left = deadline.map_or(WAIT, |deadline| deadline.duration_since(Instant::now()));
        match tokio::time::timeout(left.min(WAIT), readable).await {
            Ok(ready) => Ok(ready?),
            Err(_) => Ok(()),
        }
    }

    /// The next datagram that is there. The bytes are its reader's to change.
    pub(crate) fn receive(&mut self) -> Result<Option<(&mut [u8], RecvInfo)>, Failure> {
        for (local, socket) in &self.all {
            match socket.try_recv_from(&mut self.buffer) {
                Ok((bytes, from)) => {
                    let info = RecvInfo { from, to: *local };
                    return Ok(self.buffer.get_mut(..bytes).map(|datagram| (datagram, info)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The other end is not there any more; its connection will time out.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Sends one datagram.
    pub(crate) async fn send(
        &self,
        from: SocketAddr,
        to: SocketAddr,
        datagram: &[u8],
    ) -> Result<(), Failure> {
        let socket = self.all.iter().find(|(local, _)| *local == from);
        let (_, socket) = socket.ok_or_else(|| format!("there is no socket at {from}"))?;
        match socket.send_to(datagram, to).await {
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sends all that a connection has to send now.
    pub(crate) async fn flush(&self, connection: &mut Connection) -> Result<(), Failure> {
        let mut datagram = vec![0; connection.max_send_udp_payload_size()];
        loop {
            match connection.send(&mut datagram) {
                Ok((bytes, info)) => {
                    let sent = datagram.get(..bytes).unwrap_or_default();
                    self.send(info.from, info.to, sent).await?;
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
