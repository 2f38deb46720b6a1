//! What a trial says.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration, Instant, Rate, Role};
use quipu_link::{Duplicate, LinkConfig, Reorder};
use quipu_quic::{AckFrequencyConfig, AckRequest, DatagramConfig, TransportConfig};

use crate::{Middlebox, Rebinding, SizeLimit};

/// Two ends, the paths between them, and what happens there.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The links; the handshake's path first. The client opens the others when the handshake is
    /// confirmed.
    pub paths: Vec<PathSetup>,
    /// Receive window of a stream, in kB.
    pub stream_window: u64,
    /// Receive window of the connection, in kB.
    pub connection_window: u64,
    /// Streams of each direction that the peer may have open.
    pub max_streams: u64,
    /// The policies of client and server, as [`policies`](crate::policies) reads them.
    pub policies: [String; 2],
    /// Both ends ask for fewer acknowledgements.
    pub ack_requests: bool,
    /// Datagrams that the outbox takes at a time.
    pub batch: usize,
    /// When the operations begin, in ms; the handshake begins at zero.
    pub begin: u64,
    /// What happens, in order. Only [`Op::Advance`] takes time.
    pub ops: Vec<Op>,
    /// The client resumes a session, so that it may send early; true if the server still knows of it.
    pub early: Option<bool>,
    /// At last the ends drop their connections instead of closing them.
    pub drops: bool,
    /// All streams have to be done so long after the last operation and the last outage, in ms.
    pub limit: u64,
}

/// One path: the same link in both directions, but for the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSetup {
    /// Rate in Mbit/s.
    pub mbit: u64,
    /// One-way delay in ms.
    pub delay: u64,
    /// Further delay in ms from client to server.
    pub up: u64,
    /// Chance of loss, per mille.
    pub loss: u16,
    /// One datagram in twenty is 15 ms late, and one in twenty comes twice.
    pub disorder: bool,
}

/// Which way over a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
    /// Both.
    Both,
}

/// One operation. Streams are counted back from the one that the end learnt of last, paths of an
/// end from its lowest; what cannot be done then is not done.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// An end opens a stream.
    Open(Role, bool),
    /// Bytes are appended to a stream: end, stream, amount.
    Write(Role, usize, u32),
    /// A stream is ended.
    Finish(Role, usize),
    /// A stream is given up by its sender.
    Reset(Role, usize),
    /// A stream is refused by its receiver.
    Stop(Role, usize),
    /// An end stops reading a stream.
    Pause(Role, usize),
    /// An end goes on reading a stream.
    Resume(Role, usize),
    /// A stream becomes a control stream.
    Control(Role, usize),
    /// Datagrams are sent: end, how many, bytes of each.
    Datagrams(Role, u64, usize),
    /// Priorities are edited.
    Priority(Role, Edit),
    /// The client opens another path over a link.
    OpenPath(usize),
    /// An end abandons a path.
    Abandon(Role, usize),
    /// An end wants a path spared (true) or used.
    Backup(Role, usize, bool),
    /// A link goes down in so many ms from now, for so many ms; `None`: for good.
    Outage(usize, Direction, u64, Option<u64>),
    /// An end begins the next key phase.
    UpdateKeys(Role),
    /// An end changes its policies.
    Policies(Role, String),
    /// The client's addresses of a link appear as others from now on: other ports, or (true) another
    /// host's.
    Rebind(usize, bool),
    /// The client moves a path to another of its addresses on a link: path, link, and whether the
    /// address in use is gone (true) or the new one has to be proved first.
    Move(usize, usize, bool),
    /// An end forgets its connection, as a host that restarts does. It has the key to reset it.
    Restart(Role),
    /// Somebody with the keys of an end sends random packets to the other: how many, and which.
    Forge(Role, u64, u64),
    /// A link carries no longer UDP payload from now on.
    Narrow(usize, u64),
    /// An end's socket takes nothing over a link for so many ms.
    Block(Role, usize, u64),
    /// An end asks whether the other is there, on a path.
    Ping(Role, usize),
    /// An end's clock leaps ahead by so many ms.
    Leap(Role, u64),
    /// An end's clock stands for so many ms.
    Stand(Role, u64),
    /// An end closes the connection.
    Close(Role),
    /// So many ms pass.
    Advance(u64),
}

/// An edit of priorities. Nodes have small numbers; node 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A new node: node, parent, weight, exclusive.
    Insert(u64, u64, u16, bool),
    /// A node moves: node, parent, weight, exclusive.
    Move(u64, u64, u16, bool),
    /// A node's weight.
    Weight(u64, u16),
    /// A node leaves.
    Remove(u64),
    /// A node speaks for a stream.
    Attach(u64, usize),
    /// Urgency of a stream, and whether parts of it are of use.
    Urgency(usize, u8, bool),
    /// Latency in ms that a stream's data may have.
    Deadline(usize, u64),
    /// Size told of a stream, in bytes.
    Size(usize, u64),
}

impl Trial {
    /// A trial without operations over these paths: default windows and policies, operations
    /// from 400 ms on, all done within five minutes.
    pub fn new(paths: Vec<PathSetup>) -> Self {
        Trial {
            paths,
            stream_window: 6_000,
            connection_window: 15_000,
            max_streams: 100,
            policies: [String::new(), String::new()],
            ack_requests: false,
            batch: usize::MAX,
            begin: 400,
            ops: Vec::new(),
            early: None,
            drops: false,
            limit: 300_000,
        }
    }

    /// The same with these operations.
    #[must_use]
    pub fn with_ops(mut self, ops: impl IntoIterator<Item = Op>) -> Self {
        self.ops.extend(ops);
        self
    }

    /// True if a link goes down and never comes back.
    pub fn cuts_for_good(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Outage(.., None)))
    }

    /// True if a datagram may be lost other than in a full queue, or what is to be sent cannot be: an
    /// end that closes while its socket takes nothing may be over before it could say so.
    pub fn loses(&self) -> bool {
        self.paths.iter().any(|path| path.loss > 0)
            || self.ops.iter().any(|op| matches!(op, Op::Outage(..) | Op::Block(..)))
            || self.rebinds()
    }

    /// True if an address of the client ever appears as another, or is given up at once for another.
    pub(crate) fn rebinds(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Rebind(..) | Op::Move(_, _, true)))
    }

    /// True if an address of the client ever appears as another, or is given up for another.
    pub(crate) fn moves(&self) -> bool {
        self.rebinds() || self.ops.iter().any(|op| matches!(op, Op::Move(..)))
    }

    /// True if a link ever carries less than before.
    pub(crate) fn narrows(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Narrow(..)))
    }

    /// True if somebody uses the keys of that end.
    pub(crate) fn forges(&self, role: Role) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Forge(of, ..) if *of == role))
    }

    /// True if somebody uses the keys of an end: then it need not be understood by the other, which
    /// has to keep the rules all the same.
    pub(crate) fn is_hostile(&self) -> bool {
        [Role::Client, Role::Server].into_iter().any(|role| self.forges(role))
    }

    /// What stands before the client, whose addresses are these, per link.
    pub(crate) fn middlebox(&self, addresses: &[Vec<SocketAddr>]) -> Middlebox {
        let mut at = Instant::ZERO + Duration::from_millis(self.begin);
        let mut middlebox = Middlebox::default();
        for op in &self.ops {
            match *op {
                Op::Advance(millis) => at += Duration::from_millis(millis),
                Op::Rebind(link, other_host) => {
                    let nth = middlebox.rebindings.len() as u16;
                    for &inside in addresses.get(link).into_iter().flatten() {
                        let mut outside = inside;
                        outside.set_port(inside.port() + 100 + nth);
                        if other_host {
                            outside.set_ip([10, 3, link as u8, (nth % 250) as u8].into());
                        }
                        middlebox.rebindings.push(Rebinding { at, inside, outside });
                    }
                }
                Op::Narrow(link, most) => {
                    for &inside in addresses.get(link).into_iter().flatten() {
                        let inside = Some(inside);
                        middlebox.limits.push(SizeLimit { at, inside, most: Bytes(most) });
                    }
                }
                _ => {}
            }
        }
        middlebox
    }

    /// Settings of both ends. Nothing but a lost close makes use of the idle timeout.
    pub(crate) fn transport(&self) -> TransportConfig {
        TransportConfig {
            stream_window: Bytes(self.stream_window * 1000),
            connection_window: Bytes(self.connection_window * 1000),
            // Some writes take a part.
            send_buffer: Bytes(self.connection_window * 500),
            max_unsent: Bytes(self.connection_window * 200),
            max_streams: self.max_streams,
            idle_timeout: Duration::from_secs(250),
            datagrams: Some(DatagramConfig::default()),
            early_data: self.early.is_some(),
            ack_frequency: Some(AckFrequencyConfig {
                request: self.ack_requests.then(AckRequest::default),
                ..AckFrequencyConfig::default()
            }),
            ..TransportConfig::default()
        }
    }
}

impl PathSetup {
    /// A path that loses nothing, of so many Mbit/s and ms one way.
    pub const fn new(mbit: u64, delay: u64) -> Self {
        PathSetup { mbit, delay, up: 0, loss: 0, disorder: false }
    }

    /// The link from client to server.
    pub(crate) fn up(self) -> LinkConfig {
        PathSetup { delay: self.delay + self.up, ..self }.down()
    }

    /// The link from server to client.
    pub(crate) fn down(self) -> LinkConfig {
        let rate = Rate::from_mbit_per_sec(self.mbit);
        let mut link = LinkConfig::new(rate, Duration::from_millis(self.delay))
            .with_loss(f64::from(self.loss) / 1000.0);
        if self.disorder {
            link.reorder = Some(Reorder { share: 0.05, extra: Duration::from_millis(15) });
            link.duplicate = Some(Duplicate { share: 0.05, after: Duration::from_millis(3) });
        }
        link
    }
}

impl Direction {
    /// True if datagrams from client to server are meant.
    pub(crate) fn is_up(self) -> bool {
        self != Direction::Down
    }

    /// True if datagrams from server to client are meant.
    pub(crate) fn is_down(self) -> bool {
        self != Direction::Up
    }
}
