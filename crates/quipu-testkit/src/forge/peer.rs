//! The forging peer: it speaks an authentic handshake, and then sends what it likes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Duration, Instant, PathId, Role};
use quipu_quic::connection::CloseReason;
use quipu_quic::tls::InitialSecrets;
use quipu_quic::wire::frame::NewConnectionId;
use quipu_quic::wire::{ConnectionId, Frame, PacketKind, ResetToken};
use quipu_quic::{Arrival, Connection, Route};

use super::book::{Book, Heard, Issued};
use super::end::{End, Sent, Setup, Work, first_address};
use super::packet::{Datagram, Forgery, initial, one_rtt};
use super::pair::Pair;
use super::tap::Vault;
use crate::{client_address, server_address};

/// One way, in the handshake that the forger makes with an honest engine.
const DELAY: Duration = Duration::from_millis(5);
/// Answers that are kept until they are taken; older ones go.
const MOST_HEARD: usize = 4096;

/// A hostile peer of one honest end, the victim. What it sends arrives at once; what the victim
/// sends is opened and kept until [`Forge::heard`] takes it.
pub struct Forge {
    now: Instant,
    role: Role,
    victim: End,
    book: Book,
    heard: Vec<Heard>,
    /// Datagrams that the victim sent and that nobody took.
    wire: Vec<Sent>,
    /// Bytes of UDP payload from each address to the victim, and back.
    flows: BTreeMap<SocketAddr, [u64; 2]>,
    /// Acknowledges everything at once.
    acknowledges: bool,
    /// Answers challenges.
    answers: bool,
}

impl Forge {
    /// A forger whose handshake with a victim of `role` is confirmed at both ends.
    ///
    /// # Panics
    /// If the two cannot connect.
    pub fn against(role: Role, setup: &Setup) -> Self {
        Forge::instead_of(role.peer(), Pair::connected(setup, DELAY), setup)
    }

    /// Takes the place of the end of `role`, which knows all that this end knew.
    pub fn instead_of(role: Role, pair: Pair, setup: &Setup) -> Self {
        let (client, server, log, now) = pair.into_parts();
        let (own, victim) = if role.is_client() { (client, server) } else { (server, client) };
        let mut forge = Forge::new(now, role, victim, own.vault().clone(), setup);
        for (at, flight) in log {
            forge.book.read(at, flight.from, flight.route.remote, &flight.bytes);
        }
        forge
    }

    /// A client of which the server has not heard yet. It has no keys but those of Initial
    /// packets.
    pub fn stranger(setup: &Setup) -> Self {
        let victim = End::server(setup);
        Forge::new(Instant::ZERO, Role::Client, victim, Vault::default(), setup)
    }

    fn new(now: Instant, role: Role, victim: End, vault: Vault, setup: &Setup) -> Self {
        let secrets: Arc<dyn InitialSecrets> = setup.tls.client();
        Forge {
            now,
            role,
            victim,
            book: Book::new(role, vault, secrets),
            heard: Vec::new(),
            wire: Vec::new(),
            flows: BTreeMap::new(),
            acknowledges: false,
            answers: false,
        }
    }

    /// The same, which acknowledges all that it hears at once.
    #[must_use]
    pub fn acknowledging(self) -> Self {
        Forge { acknowledges: true, ..self }
    }

    /// The same, which answers challenges that reach its own addresses.
    #[must_use]
    pub fn answering(self) -> Self {
        Forge { answers: true, ..self }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The victim.
    pub fn victim(&self) -> &End {
        &self.victim
    }

    /// The same, for what its application does; [`Forge::listen`] afterwards.
    pub fn victim_mut(&mut self) -> &mut End {
        &mut self.victim
    }

    /// The victim's connection.
    ///
    /// # Panics
    /// If it has none.
    pub fn connection(&self) -> &Connection {
        self.victim.connection().expect("the victim has a connection")
    }

    /// Lets the victim's application do something with its connection, and hears what is sent.
    ///
    /// # Panics
    /// If it has no connection.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        let now = self.now;
        let result = self.victim.act(|connection| act(connection, now));
        let result = result.expect("the victim has a connection");
        self.listen();
        result
    }

    /// Why the victim's connection ended, if it did.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.victim.close_reason()
    }

    /// What the victim did so far.
    pub fn work(&self) -> Work {
        self.victim.work()
    }

    /// What the victim does while `attack` runs.
    pub fn cost(&mut self, attack: impl FnOnce(&mut Self)) -> Work {
        let before = self.work();
        attack(self);
        self.work().since(before)
    }

    /// The connection IDs that the victim issued, in order.
    pub fn issued(&self) -> &[Issued] {
        self.book.issued()
    }

    /// The connection IDs that the forger's end issued.
    pub fn own_issued(&self) -> &[Issued] {
        self.book.own_issued()
    }

    /// The packet number that comes next on a path.
    pub fn next_number(&self, path: u32) -> u64 {
        self.book.next_number(PacketKind::OneRtt, PathId(path))
    }

    /// The largest packet number heard on a path.
    pub fn largest_heard(&self, path: u32) -> Option<u64> {
        self.book.largest_heard(PacketKind::OneRtt, PathId(path))
    }

    /// Bytes of UDP payload that came from `address` so far, and that went there.
    pub fn flow(&self, address: SocketAddr) -> [u64; 2] {
        self.flows.get(&address).copied().unwrap_or_default()
    }

    /// The packet numbers heard on a path, as inclusive ranges, the highest first.
    pub fn heard_numbers(&self, path: u32) -> Vec<(u64, u64)> {
        self.book.heard_numbers(PacketKind::OneRtt, PathId(path))
    }

    /// The next key phase begins with the packets that follow, if its keys are there.
    pub fn update_keys(&mut self) {
        self.book.update_keys();
    }

    /// Initial packets have keys from this connection ID from now on.
    pub fn start_with(&mut self, first: ConnectionId) {
        self.book.start_with(first);
    }

    /// The datagram as it goes on the wire, with where it says it comes from; its packet numbers
    /// count as used. `None` if keys or connection IDs are missing.
    pub fn seal(&mut self, datagram: &Datagram) -> Option<(Arrival, Vec<u8>)> {
        let mut bytes = Vec::new();
        for packet in &datagram.packets {
            bytes.extend(self.book.seal(packet)?);
        }
        bytes.extend_from_slice(&datagram.tail);
        let route = Route::new(
            datagram.to.unwrap_or_else(|| first_address(self.role.peer())),
            datagram.from.unwrap_or_else(|| first_address(self.role)),
        );
        Some((Arrival { route, ecn: datagram.ecn }, bytes))
    }

    /// Sends a datagram and hears what the victim answers at once; false if it could not be sealed.
    pub fn send(&mut self, datagram: impl Into<Datagram>) -> bool {
        let Some((arrival, mut bytes)) = self.seal(&datagram.into()) else { return false };
        self.deliver(arrival, &mut bytes);
        true
    }

    /// Sends these frames in one 1-RTT packet on path 0.
    pub fn say<'a>(&mut self, frames: impl IntoIterator<Item = Frame<'a>>) -> bool {
        self.send(one_rtt().frames(frames))
    }

    /// These bytes arrive, and what the victim answers is heard.
    pub fn deliver(&mut self, arrival: Arrival, bytes: &mut [u8]) {
        self.flows.entry(arrival.route.remote).or_default()[0] += bytes.len() as u64;
        self.victim.receive(self.now, arrival, bytes);
        self.listen();
    }

    /// Hears what the victim sends now.
    pub fn listen(&mut self) {
        // An answer may be answered, but not for ever.
        for _ in 0..8 {
            let sent = self.victim.run(self.now);
            if sent.is_empty() {
                return;
            }
            self.hear(sent.into_iter().map(|sent| (self.now, sent)).collect());
        }
    }

    /// Time passes: the victim serves its deadlines.
    pub fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        let mut last = None;
        while let Some(at) = self.victim.deadline()
            && at <= until
            && self.victim.stuck().is_none()
        {
            self.now = self.now.max(at);
            let sent = self.victim.wait(self.now, self.now);
            self.hear(sent);
            // A deadline that stands is told by `End::stuck`, if the victim is at fault.
            if last == Some((self.now, self.victim.deadline())) {
                break;
            }
            last = Some((self.now, self.victim.deadline()));
        }
        self.now = self.now.max(until);
    }

    /// What was heard since this was last asked.
    pub fn heard(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.heard)
    }

    /// The datagrams that the victim sent since this was last asked.
    pub fn sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.wire)
    }

    /// Frames that were heard since this was last asked and that `pick` takes.
    pub fn heard_of<T>(&mut self, pick: impl Fn(&Frame<'_>) -> Option<T>) -> Vec<T> {
        let heard = self.heard();
        heard.iter().flat_map(|packet| packet.frames().filter_map(|frame| pick(&frame))).collect()
    }

    /// Acknowledges all packets of a path that were heard.
    pub fn acknowledge(&mut self, path: u32) {
        let numbers = self.heard_numbers(path);
        let named = self.speaks_multipath().then_some(path);
        if !numbers.is_empty() {
            self.send(one_rtt().ack(named, &numbers));
        }
    }

    /// Issues a connection ID for a path.
    pub fn issue(&mut self, path: u32, sequence: u64) -> ConnectionId {
        let mut bytes = [0xf0; 8];
        bytes[..4].copy_from_slice(&path.to_be_bytes());
        bytes[4..].copy_from_slice(&(sequence as u32).to_be_bytes());
        let id = ConnectionId::new(&bytes).expect("eight bytes");
        let reset_token = ResetToken::new([bytes[7]; ResetToken::LENGTH]);
        let named = self.speaks_multipath().then_some(PathId(path));
        self.say([Frame::NewConnectionId(NewConnectionId {
            path: named,
            sequence,
            retire_prior_to: 0,
            id,
            reset_token,
        })]);
        self.book.issue(Issued { path: PathId(path), sequence, id, token: Some(reset_token) });
        id
    }

    /// The first Initial packet of a client of this connection ID, padded to a full datagram, with
    /// whatever `hello` is in its CRYPTO frame.
    pub fn first_packet(
        &mut self,
        dcid: ConnectionId,
        scid: ConnectionId,
        hello: &[u8],
    ) -> Forgery {
        self.start_with(dcid);
        let crypto = Frame::Crypto { offset: quipu_base::Offset::ZERO, data: hello };
        initial().to(dcid).by(scid).frame(crypto).padded(1200)
    }

    /// True if datagrams to `address` reach the forger: what goes elsewhere is heard too, as all keys
    /// are known, but must not be answered.
    fn owns(&self, address: SocketAddr) -> bool {
        match self.role {
            Role::Client => (0..16).any(|path| client_address(path) == address),
            Role::Server => address == server_address(),
        }
    }

    /// True if the two ends speak multipath.
    pub fn speaks_multipath(&self) -> bool {
        self.book.speaks_multipath()
    }

    /// What it knows of the connection.
    pub(super) fn book_mut(&mut self) -> &mut Book {
        &mut self.book
    }

    /// Reads what the victim sent, answers, and keeps it.
    fn hear(&mut self, sent: Vec<(Instant, Sent)>) {
        let from = self.heard.len();
        for (at, datagram) in sent {
            let to: SocketAddr = datagram.route.remote;
            self.flows.entry(to).or_default()[1] += datagram.bytes.len() as u64;
            self.heard.extend(self.book.read(at, self.role.peer(), to, &datagram.bytes));
            self.wire.push(datagram);
        }
        self.respond(from);
        let excess = self.heard.len().saturating_sub(MOST_HEARD);
        self.heard.drain(..excess);
        let excess = self.wire.len().saturating_sub(MOST_HEARD);
        self.wire.drain(..excess);
    }

    /// Acknowledges and answers what was heard, from that place of the list on.
    fn respond(&mut self, from: usize) {
        let news = self.heard.get(from..).unwrap_or_default();
        let mut replies = Vec::new();
        if self.acknowledges {
            let eliciting = news.iter().filter(|packet| packet.kind == PacketKind::OneRtt);
            let mut paths: Vec<u32> =
                eliciting.filter(|packet| packet.is_ack_eliciting()).map(|p| p.path.0).collect();
            paths.sort_unstable();
            paths.dedup();
            for path in paths {
                let named = self.speaks_multipath().then_some(path);
                replies.push((one_rtt().ack(named, &self.heard_numbers(path)), None));
            }
        }
        if self.answers {
            for packet in news {
                for frame in packet.frames() {
                    if let Frame::PathChallenge { data } = frame
                        && self.owns(packet.to)
                    {
                        let reply = one_rtt().on(packet.path.0);
                        let reply = reply.frame(Frame::PathResponse { data }).padded(1200);
                        replies.push((reply, Some(packet.to)));
                    }
                }
            }
        }
        for (reply, from) in replies {
            let mut datagram = Datagram::from(reply);
            datagram.from = from;
            if let Some((arrival, mut bytes)) = self.seal(&datagram) {
                self.flows.entry(arrival.route.remote).or_default()[0] += bytes.len() as u64;
                self.victim.receive(self.now, arrival, &mut bytes);
            }
        }
    }
}
