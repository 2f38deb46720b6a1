//! What a connection has to tell: the application and its endpoint.

use std::collections::VecDeque;
use std::net::SocketAddr;

use quipu_base::{Duration, PathId, StreamDirection, StreamId};
use quipu_policy::PathStatus;

use super::CloseReason;
use crate::datagrams::DatagramId;
use crate::route::Route;
use crate::stream::StreamEvent;
use crate::tls::EarlyData;
use crate::wire::ConnectionId;

/// What a connection tells the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// TLS finished: streams may be opened.
    Connected,
    /// Both ends know that it did: paths may be opened.
    Confirmed,
    /// 0-RTT: a client may [send early](EarlyData::Offered), and learns what the server did with it;
    /// a server reads what a client [sent early](EarlyData::Accepted). After
    /// [`EarlyData::Rejected`], what was written is sent again, on the same streams; if it depends on
    /// what the server was before, reset them.
    EarlyData(EarlyData),
    /// The peer opened a stream.
    StreamOpened(StreamId),
    /// Bytes or the end can be read.
    Readable(StreamId),
    /// All that was written to an unfinished stream has been sent once: time to write more.
    Drained(StreamId),
    /// There is room again for bytes of a stream of which a [write](super::Connection::write) took a
    /// part only.
    Writable(StreamId),
    /// The peer has all that was written and the end.
    Finished(StreamId),
    /// The peer wants no more of a stream; it was reset with the peer's code.
    Stopped(StreamId, u64),
    /// The peer gave up sending on a stream, with this code.
    Reset(StreamId, u64),
    /// More streams may be opened.
    StreamsAvailable(StreamDirection),
    /// A path became usable.
    PathUp(PathId),
    /// A path stopped answering while another went on.
    PathSuspect(PathId),
    /// A suspect path answered.
    PathRevived(PathId),
    /// The peer prefers, or no longer prefers, that a path be spared.
    PathStatus(PathId, PathStatus),
    /// A path was abandoned, by either end.
    PathGone(PathId),
    /// The peer answered a [PING](crate::Connection::ping) on a path, so long after the PING left.
    Pong(PathId, Duration),
    /// Full datagrams on a path have that many bytes of UDP payload from now on: the path was found to
    /// carry them, or to carry no more.
    DatagramSize(PathId, u16),
    /// Datagrams can be [read](crate::Connection::read_datagram); told once until all were.
    DatagramReceived,
    /// Half of the queue is free again for datagrams, of which one
    /// [was not taken](crate::Connection::offer_datagram).
    DatagramRoom,
    /// The peer received the packet with a datagram.
    DatagramAcked(DatagramId),
    /// The packet with a datagram is taken for lost. It may be acknowledged after all, later.
    DatagramLost(DatagramId),
    /// A datagram never left: newer ones took its room, or no path carries its size any more.
    DatagramDropped(DatagramId),
    /// The packets of a path go by other addresses from now on: this end moved it, or the peer
    /// moved or its address was rebound, or the path returns because the new address was not proved
    /// to be the peer's.
    PathMigrated(Box<Migration>),
    /// A path stays where it is: the addresses that it was to move to did not work.
    MigrationFailed(PathId),
    /// The peer proved that it receives at an address, to which a path has moved.
    PeerAddress {
        /// Which.
        path: PathId,
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The connection ended.
    Closed(CloseReason),
}

/// A path that goes by other addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Which path.
    pub path: PathId,
    /// Its addresses until now.
    pub old: Route,
    /// Its addresses from now on.
    pub new: Route,
}

/// What a connection tells its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndpointEvent {
    /// Datagrams to that connection ID are for this path.
    Issued(ConnectionId, PathId),
    /// They are for nobody any more.
    Retired(ConnectionId),
    /// The client proved that it is at its address.
    Validated,
}

impl From<StreamEvent> for ConnectionEvent {
    fn from(event: StreamEvent) -> Self {
        match event {
            StreamEvent::Opened(stream) => ConnectionEvent::StreamOpened(stream),
            StreamEvent::Readable(stream) => ConnectionEvent::Readable(stream),
            StreamEvent::Drained(stream) => ConnectionEvent::Drained(stream),
            StreamEvent::Writable(stream) => ConnectionEvent::Writable(stream),
            StreamEvent::Finished(stream) => ConnectionEvent::Finished(stream),
            StreamEvent::Stopped { stream, code } => ConnectionEvent::Stopped(stream, code),
            StreamEvent::Reset { stream, code } => ConnectionEvent::Reset(stream, code),
            StreamEvent::Available(direction) => ConnectionEvent::StreamsAvailable(direction),
        }
    }
}

/// Events that wait to be polled, in the order in which they came to be.
#[derive(Debug, Default)]
pub(super) struct Events {
    application: VecDeque<ConnectionEvent>,
    endpoint: VecDeque<EndpointEvent>,
    end_told: bool,
}

impl Events {
    /// The application is to know.
    pub(super) fn tell(&mut self, event: ConnectionEvent) {
        self.application.push_back(event);
    }

    /// The application is to know what the peer wants of a path now: what it wanted before and the
    /// application has not heard of is of no interest, so that a peer cannot make a list grow.
    pub(super) fn tell_status(&mut self, path: PathId, status: PathStatus) {
        let of_path = |event: &ConnectionEvent| matches!(event, ConnectionEvent::PathStatus(other, _) if *other == path);
        self.application.retain(|event| !of_path(event));
        self.tell(ConnectionEvent::PathStatus(path, status));
    }

    /// The endpoint is to know.
    pub(super) fn tell_endpoint(&mut self, event: EndpointEvent) {
        self.endpoint.push_back(event);
    }

    /// The next event for the application, the end excepted.
    pub(super) fn next(&mut self) -> Option<ConnectionEvent> {
        let next = self.application.pop_front();
        if next.is_none() && self.application.capacity() > 0 {
            self.application.shrink_to_fit();
        }
        next
    }

    /// The next event for the endpoint.
    #[inline]
    pub(super) fn next_for_endpoint(&mut self) -> Option<EndpointEvent> {
        if self.endpoint.capacity() == 0 {
            return None;
        }
        let next = self.endpoint.pop_front();
        if next.is_none() && self.endpoint.capacity() > 0 {
            // There are many when connection IDs are issued for all paths, and hardly any later.
            self.endpoint.shrink_to_fit();
        }
        next
    }

    /// True once the application was told the end.
    pub(super) fn is_end_told(&self) -> bool {
        self.end_told
    }

    /// The end, told once: after all that came before it.
    pub(super) fn end(&mut self, reason: Option<&CloseReason>) -> Option<ConnectionEvent> {
        let reason = reason.filter(|_| !self.end_told)?;
        self.end_told = true;
        Some(ConnectionEvent::Closed(reason.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_once() {
        let mut events = Events::default();
        assert_eq!(events.end(None), None);
        let reason = CloseReason::IdleTimeout;
        assert_eq!(events.end(Some(&reason)), Some(ConnectionEvent::Closed(reason.clone())));
        assert_eq!(events.end(Some(&reason)), None);
    }
}
