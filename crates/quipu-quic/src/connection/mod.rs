//! One connection, sans-IO.
//!
//! Four doors: datagrams in ([`Connection::handle_datagram`]), "time has come" in
//! ([`Connection::handle_timeout`]), datagrams out ([`Connection::poll_transmit`]), next deadline
//! out ([`Connection::poll_timeout`]). Events for the application leave through
//! [`Connection::poll`].
//!
//! After any input or call of the application: `poll_transmit`, then `poll` until `None`, then arm
//! `poll_timeout`. Extra calls are harmless.
//!
//! The parts, each with state of its own: TLS, keys and packet number spaces of the handshake
//! (`handshake`), connection IDs (`cids`), addresses that the ends were told (`places`), path
//! identifiers (`plan`), control frames (`control`),
//! events (`events`), life, close and idle timeout (`lifecycle`), the policies (`scheduler`), paths
//! (`path`), recovery (`recovery`), acknowledgements on request (`ack_terms`), streams (`stream`) and the queues of datagrams (`datagrams`). What
//! crosses parts is here: what the application asks for (`streams`, `priorities`, `datagrams`,
//! `pings`, `farewell`), receiving (`receive`, `frames`), what recovery settled (`acks`), sending
//! (`transmit`, `data`, `packet`), sizes of datagrams (`mtu`), time (`timers`), silent paths
//! (`probes`) and the path machinery (`paths`). `inspect` and `sample` only look.

use std::sync::Arc;

use quipu_base::{Instant, Role, StreamDirection};
use quipu_policy::{Event, Policies};
use smallvec::SmallVec;

use crate::config::{PreferredAddresses, TransportConfig};
use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::path::PathTable;
use crate::random::Randomness;
use crate::recorder::{Recorder, Recording, StreamSide, StreamState};
use crate::route::Route;
use crate::stream::{Edge, StreamLimits, Streams};
use crate::wire::{ConnectionId, ResetToken, Version};

mod ack_terms;
mod acks;
mod attempts;
mod calls;
mod cids;
mod control;
mod data;
mod datagrams;
mod early;
mod events;
mod farewell;
mod frames;
mod grease;
mod handshake;
mod inspect;
mod lifecycle;
mod mtu;
mod packet;
mod paths;
mod pings;
mod places;
mod plan;
mod priorities;
mod probes;
mod receive;
mod record;
mod sample;
mod scheduler;
mod silence;
mod spaces;
mod streams;
mod timers;
mod tls;
mod tokens;
mod transmit;
mod versions;

pub use calls::Calls;
pub(crate) use cids::{FirstIds, IdSource, PreferredId};
pub use datagrams::SendDatagramError;
pub(crate) use events::EndpointEvent;
pub use events::{ConnectionEvent, Migration};
pub(crate) use grease::reserved_parameter;
pub(crate) use handshake::{ClientOrigin, KeyRing, ServerOrigin, Start, parameters};
pub use lifecycle::CloseReason;
pub use paths::{MigrateError, OpenPathError};
pub use priorities::EditError;
pub use receive::Arrival;
pub use sample::PathSample;
pub use scheduler::SchedulerCounters;
pub(crate) use tokens::AddressTokens;
pub use transmit::Drain;

use ack_terms::AckTerms;
use acks::Scratch;
use cids::ConnectionIds;
use control::ControlQueue;
use early::Early;
use events::Events;
use grease::QuicBits;
use handshake::Handshake;
use lifecycle::Lifecycle;
use places::Places;
use plan::PathPlan;
use scheduler::{Scheduler, Shared};
use silence::Silence;
use transmit::Rest;

/// A packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Initial,
    Handshake,
    /// 1-RTT packets of the path in that slot.
    Data(u8),
}

impl Space {
    /// The slot of the path that carries it.
    const fn slot(self) -> u8 {
        match self {
            Space::Initial | Space::Handshake => 0,
            Space::Data(slot) => slot,
        }
    }
}

/// Where this end wants to be reached if it is a server.
fn own_places(role: Role, config: &TransportConfig) -> PreferredAddresses {
    if role.is_client() { PreferredAddresses::default() } else { config.preferred_address }
}

/// Everything a new connection needs.
pub(crate) struct Setup {
    pub(crate) role: Role,
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) policies: Policies,
    /// Where TLS begins.
    pub(crate) start: Start,
    /// That of the client's first flight.
    pub(crate) version: Version,
    /// Keys of Initial packets.
    pub(crate) keys: KeyRing,
    pub(crate) route: Route,
    /// The peer is known to be at that address.
    pub(crate) validated: bool,
    /// The connection ends if TLS has not finished by then.
    pub(crate) handshake_until: Option<Instant>,
    pub(crate) first_ids: FirstIds,
    pub(crate) remote_cid: ConnectionId,
    pub(crate) random: Box<dyn Randomness>,
    pub(crate) id_source: IdSource,
    pub(crate) tokens: AddressTokens,
    /// What a client shows in its first packet: the token of an earlier connection, or nothing.
    pub(crate) token: Vec<u8>,
    /// Takes note of what happens.
    pub(crate) recorder: Option<Box<dyn Recorder>>,
}

/// A connection. See the [module](self) for how to drive it.
pub struct Connection {
    role: Role,
    config: Arc<TransportConfig>,
    shared: Shared,
    scheduler: Scheduler,
    handshake: Handshake,
    early: Early,
    ids: ConnectionIds,
    recording: Recording,
    control: ControlQueue,
    datagrams: Datagrams,
    ack_terms: AckTerms,
    quic_bits: QuicBits,
    lifecycle: Lifecycle,
    plan: PathPlan,
    places: Places,
    silence: Silence,
    events: Events,
    tokens: AddressTokens,
    random: Box<dyn Randomness>,
    scratch: Scratch,
    rest: Rest,
    /// Datagrams dropped because they could not be read or made no sense.
    dropped: u64,
}

impl Connection {
    pub(crate) fn new(now: Instant, setup: Setup) -> Self {
        let Setup { role, config, policies, start, version, keys, route, .. } = setup;
        let streams = Streams::new(
            role,
            StreamLimits {
                stream_window: config.stream_window.0,
                connection_window: config.connection_window.0,
                bidirectional: config.max_streams,
                unidirectional: config.max_streams,
                cancels: config.cancels,
                send_buffer: config.send_buffer.0,
                unsent: config.max_unsent.0,
            },
        );
        let mut connection = Connection {
            role,
            shared: Shared {
                paths: PathTable::default(),
                streams,
                priorities: quipu_policy::Priorities::new(),
            },
            scheduler: Scheduler::new(policies, setup.recorder.is_some()),
            handshake: Handshake::new(role, start, version, keys, setup.token),
            early: Early::default(),
            ids: ConnectionIds::new(setup.id_source, setup.first_ids, setup.remote_cid),
            recording: Recording::new(setup.recorder),
            control: ControlQueue::default(),
            ack_terms: AckTerms::new(&config),
            quic_bits: QuicBits::default(),
            datagrams: Datagrams::new(config.datagrams.unwrap_or_default()),
            lifecycle: Lifecycle::new(now, &config, setup.handshake_until),
            plan: PathPlan::new(config.max_paths),
            places: Places::new(route, own_places(role, &config)),
            silence: Silence::default(),
            events: Events::default(),
            tokens: setup.tokens,
            random: setup.random,
            scratch: Scratch::default(),
            rest: Rest::default(),
            dropped: 0,
            config,
        };
        connection.record_start(now, route, &setup.first_ids);
        connection.add_first_path(now, route, setup.validated);
        if role.is_client() {
            connection.advance_tls(now);
            connection.begin_early();
        }
        connection
    }

    /// Which end this is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// True once TLS finished.
    pub fn is_connected(&self) -> bool {
        self.lifecycle.connected_at().is_some()
    }

    /// When TLS finished.
    pub fn connected_at(&self) -> Option<Instant> {
        self.lifecycle.connected_at()
    }

    /// When both ends knew that TLS finished; paths may be opened from then on.
    pub fn confirmed_at(&self) -> Option<Instant> {
        self.lifecycle.confirmed_at()
    }

    /// True once nothing is sent or read any more and the state can be dropped.
    pub fn is_closed(&self) -> bool {
        self.lifecycle.is_closed()
    }

    /// Why the connection ended, once it did.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.lifecycle.reason()
    }

    /// The next event for the application.
    pub fn poll(&mut self) -> Option<ConnectionEvent> {
        if let Some(event) = self.events.next() {
            return Some(event);
        }
        if let Some(event) = self.shared.streams.pop_event() {
            return Some(event.into());
        }
        self.events.end(self.lifecycle.reason())
    }

    /// True if the application knows that the connection ended: it was told, or ended it itself.
    pub(crate) fn has_told_its_end(&self) -> bool {
        let own = matches!(self.lifecycle.reason(), Some(CloseReason::Application { .. }));
        own || self.events.is_end_told()
    }

    /// The peer's reset tokens that count, if they are others than when this was last asked.
    pub(crate) fn take_reset_tokens(&mut self) -> Option<SmallVec<[ResetToken; 2]>> {
        self.ids.remote_mut().take_reset_tokens()
    }

    /// The connection IDs that its endpoint knows for it; others may have some of them, too.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = ConnectionId> {
        self.ids.destinations()
    }

    #[inline]
    pub(crate) fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.events.next_for_endpoint()
    }

    /// Closes the connection; the peer's application is told `code` and `reason`.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        // https://www.rfc-editor.org/rfc/rfc10069#section-2.6
        //# When this specification is used, these states SHOULD instead persist for at least
        //# three times the largest PTO among all paths.
        let timeout = self.longest_probe_timeout();
        let frame = lifecycle::CloseFrame::Application { code, reason: reason.to_vec() };
        self.lifecycle.close(now, timeout, frame, CloseReason::Application { code });
    }

    /// Turns what changed on streams into events for the policies.
    #[inline]
    fn flush_edges(&mut self, now: Instant) {
        if self.shared.streams.has_edges() {
            self.tell_edges(now);
        }
    }

    fn tell_edges(&mut self, now: Instant) {
        while let Some(edge) = self.shared.streams.pop_edge() {
            self.rest.end();
            let event = match edge {
                Edge::Opened(key) => {
                    self.record_stream(now, key.id, StreamSide::Sending, StreamState::Open);
                    if key.id.direction() == StreamDirection::Bidirectional {
                        self.record_stream(now, key.id, StreamSide::Receiving, StreamState::Open);
                    }
                    Event::Opened(key)
                }
                Edge::Sized(key) => Event::Sized(key),
                Edge::Written(key) => Event::Written(key),
                Edge::Ready(key) => Event::Ready(key),
                Edge::Stopped(key) => Event::Stopped(key),
                Edge::Reprioritised(key) => Event::Reprioritised(key),
                Edge::Closed(key) => {
                    self.shared.priorities.detach(key);
                    self.record_stream(now, key.id, StreamSide::Sending, StreamState::Closed);
                    Event::Closed(key)
                }
            };
            self.scheduler.tell_joint(now, &self.shared, event);
        }
    }

    /// The peer broke the protocol: the connection closes.
    fn fault(&mut self, now: Instant, error: TransportError) {
        let timeout = self.longest_probe_timeout();
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
        //# An endpoint that wishes to communicate a fatal connection error MUST use a
        //# CONNECTION_CLOSE frame if it is able.
        // https://www.rfc-editor.org/rfc/rfc9000#section-11
        //# An endpoint that detects an error SHOULD signal the existence of that error to its
        //# peer.
        // https://www.rfc-editor.org/rfc/rfc9000#section-11.1
        //# Errors that result in the connection being unusable, such as an obvious violation of
        //# protocol semantics or corruption of state that affects an entire connection, MUST be
        //# signaled using a CONNECTION_CLOSE frame (Section 19.19).
        let frame = lifecycle::CloseFrame::Transport(error.clone());
        self.lifecycle.close(now, timeout, frame, CloseReason::PeerFault(error));
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("lifecycle", &self.lifecycle)
            .finish_non_exhaustive()
    }
}
