//! The connections of an endpoint, with all that finds them: connection IDs, deadlines, and who has
//! something to send.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use quipu_base::{Instant, PathId};
use smallvec::SmallVec;

use super::admission::{Gate, Source};
use super::deadlines::Deadlines;
use super::resets::PeerTokens;
use super::routes::{Routes, Target};
use super::slab::{ConnectionHandle, Slab};
use super::{Closed, Held};
use crate::connection::{Arrival, Connection, ConnectionEvent, Drain, EndpointEvent};
use crate::outbox::Outbox;
use crate::stream::Spares;
use crate::wire::{ConnectionId, ResetToken};

/// A connection and what the endpoint keeps of it.
struct Slot {
    connection: Connection,
    /// Reset tokens of the peer that count.
    reset_tokens: Vec<ResetToken>,
    deadline: Option<Instant>,
    /// It waits to be polled.
    dirty: bool,
    /// The application has its handle.
    handed_out: bool,
    client: Option<Client>,
}

/// Where the client of a connection is that it opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) source: Source,
    /// It proved to be there.
    pub(super) validated: bool,
}

/// All connections. What is done about one takes the same time however many there are, up to the
/// depth of a tree.
pub(super) struct Table {
    slots: Slab<Slot>,
    routes: Routes,
    peer_tokens: PeerTokens,
    deadlines: Deadlines,
    dirty: VecDeque<ConnectionHandle>,
    /// Connections with paths whose sockets take nothing at present.
    blocked: BTreeSet<ConnectionHandle>,
    gate: Gate,
    spares: Spares,
    /// Connections that the last poll looked at, whose events were not taken yet.
    polled: Vec<ConnectionHandle>,
    /// What becomes of connections that are over.
    closed: Closed,
    /// Those that are to be handed over.
    leaving: Vec<(ConnectionHandle, Connection)>,
}

impl Table {
    pub(super) fn new(closed: Closed) -> Self {
        Table {
            slots: Slab::new(),
            routes: Routes::default(),
            peer_tokens: PeerTokens::new(),
            deadlines: Deadlines::default(),
            dirty: VecDeque::new(),
            blocked: BTreeSet::new(),
            gate: Gate::default(),
            spares: Spares::new(),
            polled: Vec::new(),
            closed,
            leaving: Vec::new(),
        }
    }

    /// Takes a connection in, which has these connection IDs on its first path. `client`: who opened
    /// it, if we did not. `None` if no handle is left.
    pub(super) fn insert(
        &mut self,
        connection: Connection,
        cids: &[ConnectionId],
        client: Option<Client>,
    ) -> Option<ConnectionHandle> {
        let slot = Slot {
            connection,
            reset_tokens: Vec::new(),
            deadline: None,
            dirty: false,
            handed_out: client.is_none(),
            client,
        };
        let handle = self.slots.insert(slot)?;
        for cid in cids {
            self.routes.insert(*cid, Target { handle, path: PathId::ZERO });
        }
        if let Some(client) = client {
            self.gate.on_accepted(client.source, client.validated);
        }
        self.touch(handle);
        Some(handle)
    }

    /// Drops a connection.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) -> Option<Connection> {
        let slot = self.slots.remove(handle)?;
        for cid in slot.connection.destinations() {
            self.routes.remove(&cid, handle);
        }
        for token in &slot.reset_tokens {
            self.peer_tokens.remove(token, handle);
        }
        self.deadlines.replace(handle, slot.deadline, None);
        self.blocked.remove(&handle);
        if let Some(client) = slot.client {
            self.gate.on_gone(client.source, client.validated);
        }
        if self.slots.len() == 0 {
            self.spares.clear();
        }
        Some(slot.connection)
    }

    pub(super) fn get(&self, handle: ConnectionHandle) -> Option<&Connection> {
        Some(&self.slots.get(handle)?.connection)
    }

    /// A connection, to call it; it is polled next.
    pub(super) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.touch(handle);
        Some(&mut self.slots.get_mut(handle)?.connection)
    }

    /// The application gets the handle. `false` if the connection is gone.
    pub(super) fn hand_out(&mut self, handle: ConnectionHandle) -> bool {
        let slot = self.slots.get_mut(handle);
        slot.map(|slot| slot.handed_out = true).is_some()
    }

    /// A datagram for a connection came.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        Target { handle, path }: Target,
        arrival: Arrival,
        datagram: &mut [u8],
    ) {
        self.touch(handle);
        if let Some(slot) = self.slots.get_mut(handle) {
            slot.connection.take_spare(&mut self.spares);
            slot.connection.handle_datagram(now, arrival, path, datagram);
        }
    }

    /// The same in the first `length` bytes of `buffer`, which the connection may exchange.
    pub(super) fn deliver_buffer(
        &mut self,
        now: Instant,
        Target { handle, path }: Target,
        arrival: Arrival,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        let mut spares = std::mem::take(&mut self.spares);
        if let Some(connection) = self.get_mut(handle) {
            connection.handle_buffer(now, arrival, path, (buffer, length), &mut spares);
        }
        self.spares = spares;
    }

    /// A datagram of no connection came from `remote` and ends in `token`: the connection that it
    /// resets.
    pub(super) fn reset(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        token: &ResetToken,
    ) -> Option<ConnectionHandle> {
        let candidates: SmallVec<[_; 2]> = self.peer_tokens.candidates(token).collect();
        let meant = candidates.into_iter().find(|handle| {
            let slot = self.slots.get_mut(*handle);
            slot.is_some_and(|slot| slot.connection.on_reset_token(now, remote, token.as_bytes()))
        })?;
        self.touch(meant);
        Some(meant)
    }

    /// Whose a connection ID is.
    pub(super) fn target(&mut self, cid: &ConnectionId) -> Option<Target> {
        self.routes.get(cid)
    }

    /// True if a connection has that connection ID.
    pub(super) fn is_taken(&self, cid: &ConnectionId) -> bool {
        self.routes.contains(cid)
    }

    /// The counts that limits are held against.
    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Counts what it holds.
    pub(super) fn count(&self, held: &mut Held) {
        held.connections = self.slots.len();
        held.unvalidated = self.gate.unvalidated();
        held.sources = self.gate.sources();
        held.connection_ids = self.routes.len();
        held.reset_tokens = self.peer_tokens.len();
        held.deadlines = self.deadlines.len();
        held.looked_at = self.slots.looked_at();
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.slots.handles()
    }

    /// When the first connection wants to be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(handle) = self.deadlines.take_due(now) {
            if let Some(slot) = self.slots.get_mut(handle) {
                slot.deadline = None;
                slot.connection.handle_timeout(now);
            }
            self.touch(handle);
        }
    }

    /// The next connection that is to be handed over.
    pub(super) fn poll_closed(&mut self) -> Option<(ConnectionHandle, Connection)> {
        self.leaving.pop()
    }

    /// The next event of a connection that the last poll looked at.
    pub(super) fn poll_event(&mut self) -> Option<(ConnectionHandle, ConnectionEvent)> {
        while let Some(&handle) = self.polled.last() {
            // Taking an event changes nothing that is to be sent, so the connection is not polled again.
            let event = self.slots.get_mut(handle).and_then(|slot| slot.connection.poll());
            let Some(event) = event else {
                self.polled.pop();
                continue;
            };
            if matches!(event, ConnectionEvent::Closed(_)) {
                // It may be over now, and goes when it is polled.
                self.touch(handle);
            }
            return Some((handle, event));
        }
        None
    }

    /// Writes the datagrams of all connections that can go now.
    pub(super) fn poll_transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Drain {
        self.polled.clear();
        while let Some(&handle) = self.dirty.front() {
            let Table { slots, routes, gate, .. } = self;
            if let Some(slot) = slots.get_mut(handle) {
                // Whoever is told of a connection ID may use it at once.
                slot.settle_events(handle, routes, gate);
                let drain = slot.connection.poll_transmit(now, outbox);
                slot.dirty = drain == Drain::Full;
                // Also of a connection that is not done, or its deadline would be stale.
                let is_over = self.settle(handle);
                if is_over {
                    let connection = self.remove(handle);
                    if self.closed == Closed::HandedOver {
                        self.leaving.extend(connection.map(|connection| (handle, connection)));
                    }
                } else {
                    self.polled.push(handle);
                }
                match drain {
                    Drain::Full => return Drain::Full,
                    Drain::Blocked if !is_over => _ = self.blocked.insert(handle),
                    Drain::Blocked | Drain::Rest if self.blocked.is_empty() => {}
                    Drain::Blocked | Drain::Rest => _ = self.blocked.remove(&handle),
                }
            }
            self.dirty.pop_front();
        }
        if self.blocked.is_empty() { Drain::Rest } else { Drain::Blocked }
    }

    /// A route that was blocked takes datagrams again.
    pub(super) fn handle_unblocked(&mut self) {
        for handle in std::mem::take(&mut self.blocked) {
            self.touch(handle);
        }
    }

    /// A connection is to be polled.
    fn touch(&mut self, handle: ConnectionHandle) {
        if let Some(slot) = self.slots.get_mut(handle)
            && !std::mem::replace(&mut slot.dirty, true)
        {
            self.dirty.push_back(handle);
        }
    }

    /// Brings all up to date after a connection was polled. True if it is over and can be dropped.
    fn settle(&mut self, handle: ConnectionHandle) -> bool {
        let Table { slots, routes, gate, peer_tokens, deadlines, spares, .. } = self;
        let Some(slot) = slots.get_mut(handle) else { return false };
        slot.settle_events(handle, routes, gate);
        slot.connection.give_spent(spares);
        if let Some(tokens) = slot.connection.take_reset_tokens() {
            for before in std::mem::replace(&mut slot.reset_tokens, tokens.to_vec()) {
                peer_tokens.remove(&before, handle);
            }
            for token in &slot.reset_tokens {
                peer_tokens.insert(token, handle);
            }
        }
        let deadline = slot.connection.poll_timeout();
        deadlines.replace(handle, slot.deadline, deadline);
        slot.deadline = deadline;
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2
        //# Once its closing or draining state ends, an endpoint SHOULD discard all connection
        //# state.
        let over =
            slot.connection.is_closed() && (!slot.handed_out || slot.connection.has_told_its_end());
        over && self.closed != Closed::Kept
    }
}

impl Slot {
    /// Takes over what the connection tells its endpoint.
    #[inline(always)]
    fn settle_events(&mut self, handle: ConnectionHandle, routes: &mut Routes, gate: &mut Gate) {
        while let Some(event) = self.connection.poll_endpoint_event() {
            self.settle_event(event, handle, routes, gate);
        }
    }

    fn settle_event(
        &mut self,
        event: EndpointEvent,
        handle: ConnectionHandle,
        routes: &mut Routes,
        gate: &mut Gate,
    ) {
        match event {
            EndpointEvent::Issued(cid, path) => {
                if !routes.insert(cid, Target { handle, path }) {
                    // https://www.rfc-editor.org/rfc/rfc9000#section-5.1
                    //# As a trivial example, this means the same connection ID MUST NOT be
                    //# issued more than once on the same connection.
                    // Nor on another; the peer was not told of it yet.
                    self.connection.replace_cid(path, cid);
                }
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
            //# When an endpoint issues a connection ID, it MUST accept packets that carry
            //# this connection ID for the duration of the connection or until its peer
            //# invalidates the connection ID via a RETIRE_CONNECTION_ID frame (Section
            //# 19.16).
            EndpointEvent::Retired(cid) => routes.remove(&cid, handle),
            EndpointEvent::Validated => {
                if let Some(client) = self.client.as_mut().filter(|client| !client.validated) {
                    client.validated = true;
                    gate.on_validated(client.source);
                }
            }
        }
    }
}
