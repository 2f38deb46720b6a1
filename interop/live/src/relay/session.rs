//! A client's address, and how the server sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::fate::Course;
use crate::socket::Socket;
use crate::wire::{Kind, Packet};

/// A client's address and the socket by which the server is reached for it.
pub(crate) struct Session {
    pub(crate) client: SocketAddr,
    pub(crate) upstream: Arc<Socket>,
    pub(crate) reader: JoinHandle<()>,
    /// Datagrams that came from the client.
    pub(crate) from_client: u64,
    /// Bytes that went to it.
    pub(crate) to_client: u64,
    /// Those of them that the server sent to where it sees the client since the rebinding.
    pub(crate) since_rebound: Option<u64>,
    /// The link that it has to itself, up and down.
    pub(crate) courses: [Course; 2],
    pub(crate) proof: Proof,
}

/// How much a server sends before it knows that the client is at its address.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// Bytes that reached the server.
    received: u64,
    /// Bytes that it sent.
    sent: u64,
    /// It knows.
    is_given: bool,
    /// The largest that `sent` was, in hundredths of `received`.
    pub(crate) most_percent: u64,
}

impl Proof {
    /// A client's datagram reaches the server.
    pub(crate) fn on_client(&mut self, packets: &[Packet], bytes: usize) {
        self.received += bytes as u64;
        // A token, or a packet of keys that only one who reads the server's answers has.
        let proves = |kind| matches!(kind, Kind::Handshake | Kind::Short | Kind::InitialWithToken);
        self.is_given |= packets.iter().any(|(kind, _)| proves(*kind));
    }

    /// The server sent a datagram.
    pub(crate) fn on_server(&mut self, bytes: usize) {
        if !self.is_given && self.received > 0 {
            self.sent += bytes as u64;
            self.most_percent = self.most_percent.max(self.sent * 100 / self.received);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_the_address_is_proved() {
        let mut proof = Proof::default();
        proof.on_client(&[(Kind::Initial, Some(1))], 1200);
        proof.on_server(1200);
        proof.on_server(1200);
        assert_eq!(proof.most_percent, 200);
        proof.on_client(&[(Kind::Handshake, Some(1))], 100);
        proof.on_server(12_000);
        assert_eq!(proof.most_percent, 200);
    }
}
