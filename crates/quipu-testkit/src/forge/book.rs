//! What a forger learns by reading all datagrams of a connection with its keys.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Instant, PacketNumber, PathId, Role};
use quipu_quic::RangeSet;
use quipu_quic::tls::{InitialSecrets, protection};
use quipu_quic::wire::header::Packet;
use quipu_quic::wire::{
    ConnectionId, Frame, Frames, PacketKind, PartialHeader, ResetToken, Version,
};

use super::packet::{Forgery, Number};
use super::tap::{SharedDirection, SharedKeys, Vault};

/// A packet number space: that of a kind of packet, and of a path for 1-RTT packets.
type Space = (PacketKind, PathId);

/// A packet that the forger received and opened.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When it came.
    pub at: Instant,
    /// The address that it was sent to.
    pub to: SocketAddr,
    /// Which packet.
    pub kind: PacketKind,
    /// The path of its number space.
    pub path: PathId,
    /// Its packet number.
    pub number: u64,
    /// Bytes of the datagram that it came in.
    pub datagram: usize,
    payload: Vec<u8>,
}

impl Heard {
    /// Its frames.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        Frames::new(&self.payload).map_while(Result::ok)
    }

    /// True if it has a frame that `test` accepts.
    pub fn has(&self, test: impl Fn(&Frame<'_>) -> bool) -> bool {
        self.frames().any(|frame| test(&frame))
    }

    /// True if it is to be acknowledged.
    pub fn is_ack_eliciting(&self) -> bool {
        self.has(|frame| frame.is_ack_eliciting())
    }
}

/// A connection ID that an end issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The path that it is of.
    pub path: PathId,
    /// Its sequence number.
    pub sequence: u64,
    /// The connection ID.
    pub id: ConnectionId,
    /// Its reset token; `None` for that of the handshake.
    pub token: Option<ResetToken>,
}

/// What is known of one end.
#[derive(Default)]
struct Side {
    /// The connection IDs that it issued, in the order in which they were seen.
    issued: Vec<Issued>,
    /// The largest packet number that it used, by space.
    largest: BTreeMap<Space, u64>,
    /// The packet numbers of what was read of it, by space.
    numbers: BTreeMap<Space, RangeSet>,
    phase: usize,
}

impl Side {
    fn issue(&mut self, issued: Issued) {
        if !self.issued.iter().any(|known| known.id == issued.id) {
            self.issued.push(issued);
        }
    }

    fn path_of(&self, id: &ConnectionId) -> Option<PathId> {
        self.issued.iter().find(|issued| issued.id == *id).map(|issued| issued.path)
    }
}

/// The connection as an end knows it that keeps every key.
pub(crate) struct Book {
    role: Role,
    vault: Vault,
    secrets: Arc<dyn InitialSecrets>,
    /// The destinations of the client's Initial packets before the server answered: Initial keys
    /// come from them.
    first_ids: Vec<ConnectionId>,
    initial: Option<SharedKeys>,
    own: Side,
    peer: Side,
}

impl Book {
    /// An empty book of the end of `role`, whose keys are in `vault`.
    pub(crate) fn new(role: Role, vault: Vault, secrets: Arc<dyn InitialSecrets>) -> Self {
        Book {
            role,
            vault,
            secrets,
            first_ids: Vec::new(),
            initial: None,
            own: Side::default(),
            peer: Side::default(),
        }
    }

    /// The keys that seal our packets of `kind` in that phase.
    pub(super) fn sealing(&self, kind: PacketKind, phase: usize) -> Option<SharedDirection> {
        Some(self.keys(kind, phase)?.local)
    }

    /// Initial keys come from this connection ID from now on.
    pub(super) fn start_with(&mut self, first: ConnectionId) {
        self.initial = Some(self.secrets.initial_keys(Version::V1, &first, self.role).into());
        self.first_ids.push(first);
    }

    /// Where a packet of `kind` on `path` goes: the peer's last connection ID of the path, and in
    /// a long header the first, or what a client thought of.
    pub(super) fn destination(&self, kind: PacketKind, path: PathId) -> Option<ConnectionId> {
        let mut of_path = self.peer.issued.iter().filter(|issued| issued.path == path);
        let issued = match kind {
            PacketKind::OneRtt => of_path.next_back(),
            _ => of_path.next(),
        };
        issued.map(|issued| issued.id).or(self.first_ids.last().copied())
    }

    /// Our connection ID in long headers.
    pub(super) fn source(&self) -> Option<ConnectionId> {
        self.own.issued.first().map(|issued| issued.id)
    }

    /// The connection IDs that the peer issued.
    pub(super) fn issued(&self) -> &[Issued] {
        &self.peer.issued
    }

    /// The connection IDs that we issued.
    pub(super) fn own_issued(&self) -> &[Issued] {
        &self.own.issued
    }

    /// We issued a connection ID.
    pub(super) fn issue(&mut self, issued: Issued) {
        self.own.issue(issued);
    }

    /// The key phase that we are in: the peer's, if it updated its keys.
    pub(super) fn phase(&self) -> usize {
        self.own.phase.max(self.peer.phase)
    }

    /// The packet number after the largest that we used.
    pub(super) fn next_number(&self, kind: PacketKind, path: PathId) -> u64 {
        self.own.largest.get(&(kind, path)).map_or(0, |largest| largest + 1)
    }

    /// We used a packet number and a phase.
    pub(super) fn on_used(&mut self, space: Space, number: u64, phase: usize) {
        let largest = self.own.largest.entry(space).or_insert(number);
        *largest = number.max(*largest);
        self.own.phase = self.own.phase.max(phase);
    }

    /// The largest packet number of the peer in that space.
    pub(super) fn largest_heard(&self, kind: PacketKind, path: PathId) -> Option<u64> {
        self.peer.largest.get(&(kind, path)).copied()
    }

    /// The packet numbers of the peer in that space, as inclusive ranges, the highest first.
    pub(super) fn heard_numbers(&self, kind: PacketKind, path: PathId) -> Vec<(u64, u64)> {
        let numbers = self.peer.numbers.get(&(kind, path)).into_iter().flat_map(RangeSet::iter);
        numbers.rev().map(|range| (range.start, range.end - 1)).collect()
    }

    /// The next key phase begins with the packets that follow, if its keys are there.
    pub(super) fn update_keys(&mut self) {
        let phase = self.phase() + 1;
        if self.sealing(PacketKind::OneRtt, phase).is_none() {
            return;
        }
        let number = self.next_number(PacketKind::OneRtt, PathId::ZERO);
        let space = (PacketKind::OneRtt, PathId::ZERO);
        self.on_used(space, number.saturating_sub(1), phase);
    }

    /// The packet sealed; its number counts as used. `None` if keys or connection IDs are missing.
    pub(crate) fn seal(&mut self, packet: &Forgery) -> Option<Vec<u8>> {
        let (kind, path) = (packet.kind, packet.path);
        let phase = match kind {
            PacketKind::OneRtt => packet.phase.unwrap_or(self.phase()),
            _ => 0,
        };
        let next = self.next_number(kind, path);
        let number = match packet.number {
            Number::Next => next,
            Number::Skip(further) => next + further,
            Number::Exact(number) => number,
        };
        let dcid = packet.dcid.or_else(|| self.destination(kind, path))?;
        let scid = packet.scid.or_else(|| self.source()).unwrap_or_default();
        let keys = self.sealing(kind, phase)?;
        let sealed = packet.seal((dcid, scid), PacketNumber(number), phase, &keys);
        self.on_used((kind, path), number, phase);
        Some(sealed)
    }

    /// True if the two ends speak multipath.
    pub(super) fn speaks_multipath(&self) -> bool {
        self.issued().iter().any(|issued| issued.path != PathId::ZERO)
    }

    /// Which end.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Reads a datagram that `sender` sent to `to`; what opened of the peer's.
    pub(crate) fn read(
        &mut self,
        at: Instant,
        sender: Role,
        to: SocketAddr,
        datagram: &[u8],
    ) -> Vec<Heard> {
        let mut bytes = datagram.to_vec();
        let (mut rest, mut heard) = (&mut bytes[..], Vec::new());
        while !rest.is_empty() {
            let side = if sender == self.role { &self.peer } else { &self.own };
            let length = side.issued.first().map_or(8, |issued| issued.id.length());
            let header = match Packet::parse(rest, length) {
                Ok(Packet::Protected(header)) => header,
                Ok(Packet::Retry { scid, .. }) => {
                    // The client's next Initial packet begins anew.
                    let (known, issued) = (self.role, scid);
                    self.initial =
                        Some(self.secrets.initial_keys(Version::V1, &issued, known).into());
                    self.first_ids.push(issued);
                    break;
                }
                _ => break,
            };
            let (packet, after) = rest.split_at_mut(header.packet_length);
            if let Some(opened) = self.open(sender, &header, packet) {
                let (path, number, payload) = opened;
                self.note(sender, &header, &payload);
                if sender != self.role {
                    let kind = header.kind;
                    let datagram = datagram.len();
                    heard.push(Heard { at, to, kind, path, number, datagram, payload });
                }
            }
            rest = after;
        }
        heard
    }

    fn keys(&self, kind: PacketKind, phase: usize) -> Option<SharedKeys> {
        match kind {
            PacketKind::Initial => self.initial.clone(),
            _ => self.vault.keys(kind, phase),
        }
    }

    fn direction(&self, sender: Role, kind: PacketKind, phase: usize) -> Option<SharedDirection> {
        let keys = self.keys(kind, phase)?;
        Some(if sender == self.role { keys.local } else { keys.remote })
    }

    /// Opens a packet in place: its path, number and frames.
    fn open(
        &mut self,
        sender: Role,
        header: &PartialHeader,
        packet: &mut [u8],
    ) -> Option<(PathId, u64, Vec<u8>)> {
        if header.kind == PacketKind::Initial && sender.is_client() && self.initial.is_none() {
            self.start_with(header.dcid);
        }
        let (side, receiver) =
            if sender == self.role { (&self.own, &self.peer) } else { (&self.peer, &self.own) };
        let path = match header.kind {
            PacketKind::OneRtt => receiver.path_of(&header.dcid).unwrap_or(PathId::ZERO),
            _ => PathId::ZERO,
        };
        let space = (header.kind, path);
        let expected = side.largest.get(&space).map_or(0, |largest| largest + 1);
        let phase = side.phase;
        let keys = self.direction(sender, header.kind, phase)?;
        let bare = protection::unprotect(packet, header.packet_number_at, &*keys.header).ok()?;
        let number = bare.packet_number.expand(PacketNumber(expected));
        let mut candidates = vec![phase];
        if header.kind == PacketKind::OneRtt && bare.key_phase != (phase % 2 == 1) {
            candidates = [Some(phase + 1), phase.checked_sub(1)].into_iter().flatten().collect();
        }
        for phase in candidates {
            let Some(keys) = self.direction(sender, header.kind, phase) else { continue };
            let mut copy = packet.to_vec();
            let opened =
                protection::open(&mut copy, bare.header_length, path, number, &*keys.packet);
            let Ok(payload) = opened else { continue };
            let payload = payload.to_vec();
            let side = if sender == self.role { &mut self.own } else { &mut self.peer };
            let largest = side.largest.entry(space).or_insert(number.0);
            *largest = number.0.max(*largest);
            side.numbers.entry(space).or_default().insert(number.0..number.0 + 1);
            if header.kind == PacketKind::OneRtt {
                side.phase = side.phase.max(phase);
            }
            return Some((path, number.0, payload));
        }
        None
    }

    /// Notes the connection IDs that a packet tells.
    fn note(&mut self, sender: Role, header: &PartialHeader, payload: &[u8]) {
        let side = if sender == self.role { &mut self.own } else { &mut self.peer };
        if header.kind != PacketKind::OneRtt {
            let path = PathId::ZERO;
            side.issue(Issued { path, sequence: 0, id: header.scid, token: None });
        }
        for frame in Frames::new(payload).map_while(Result::ok) {
            if let Frame::NewConnectionId(new) = frame {
                side.issue(Issued {
                    path: new.path.unwrap_or(PathId::ZERO),
                    sequence: new.sequence,
                    id: new.id,
                    token: Some(new.reset_token),
                });
            }
        }
    }
}
