//! What an endpoint's engine was given, recorded live and given to a fresh engine again, without sockets
//! and clock. It comes to the same decisions and sends the same datagrams: what failed on a host once
//! is looked at as often as needed, and a test shows that sockets and virtual time run one code.
//!
//! A [`Recording`] is handed to [`ClientBuilder::record_inputs`](crate::ClientBuilder::record_inputs) or
//! its like of a server. It notes datagrams with time, addresses, interface and ECN mark, timer calls,
//! calls of the application, random draws, and what the sockets had room for. Without one, nothing is
//! noted and each call costs a branch.
//!
//! TLS draws on its own: a replay repeats the datagrams if its configurations do, with the null TLS of
//! virtual time or with a provider of `rustls` that draws the same again. The policies have to come from
//! the same [factory](quipu_quic::endpoint::PolicyFactory), which has their seed.
//!
//! It holds all that was sent and received, keys and secrets of the application included, and grows with
//! it until [`Recording::take`]: not for production.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_base::Instant;
use quipu_quic::endpoint::{ClientConfig, EndpointConfig, Incoming, ServerConfig};
use quipu_quic::random::{NoRandomness, SecureSource};
use quipu_quic::recorder::RecorderFactory;
use quipu_quic::wire::ConnectionId;
use quipu_quic::{ConfigError, Outbox, Route, Transmit};
use thiserror::Error;

use crate::engine::{Engine, Parts};

pub use crate::recording::{Call, Input, Recorded, Recording, Sent, Step};

/// Gives what was drawn, in order.
struct Redrawing(Mutex<VecDeque<Vec<u8>>>);

impl SecureSource for Redrawing {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        let mut draws = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = draws.pop_front().filter(|drawn| drawn.len() == bytes.len());
        bytes.copy_from_slice(&drawn.ok_or(NoRandomness)?);
        Ok(())
    }
}

/// An outbox that answers as another one did.
struct Answering {
    at: Instant,
    answers: RefCell<VecDeque<bool>>,
    sent: Vec<Sent>,
    buffer: Vec<u8>,
}

impl Answering {
    fn answer(&self, otherwise: bool) -> bool {
        // It is asked for more only if the engine decides otherwise than then.
        self.answers.borrow_mut().pop_front().unwrap_or(otherwise)
    }
}

impl Outbox for Answering {
    fn has_room(&self) -> bool {
        self.answer(false)
    }

    fn is_blocked(&self, _route: &Route) -> bool {
        self.answer(true)
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.buffer.resize(self.buffer.len().max(size), 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        let bytes = self.buffer.get(..transmit.len).unwrap_or_default().to_vec();
        self.sent.push(Sent { at: self.at, transmit, bytes });
    }
}

/// What a replay is made of, besides the recording: the same as the endpoint was.
#[derive(Clone, Default)]
pub struct Setup {
    /// What all connections share.
    pub config: EndpointConfig,
    /// What a client's connections are opened with. All have the same.
    pub client: Option<ClientConfig>,
    /// What a server lets clients in with. All have the same.
    pub server: Option<ServerConfig>,
    /// Connections have recorders that this makes, which see what those saw that recorded live.
    pub recorders: Option<RecorderFactory>,
}

/// A recording that does not fit its setup: the engine went another way.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// An engine cannot be made of the setup.
    #[error("the setup is invalid: {0}")]
    Config(#[from] ConfigError),
    /// A client's recording has a connection, and the setup no configuration for it.
    #[error("step {0} opens a connection; set Setup::client")]
    NoClient(usize),
    /// An input is for a connection or a client that is not there.
    #[error("step {0} is for a connection that this engine does not have")]
    NoConnection(usize),
}

/// Gives a fresh engine what was recorded, at the times of then. Returns the datagrams that leave, in
/// order.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(recorded: &Recorded, setup: &Setup) -> Result<Vec<Sent>, ReplayError> {
    let (begin, unix_time) = recorded.unix_time.unwrap_or_default();
    let parts = Parts {
        config: setup.config.clone(),
        source: Arc::new(Redrawing(Mutex::new(recorded.draws.clone().into()))),
        server: setup.server.clone().map(|server| (server, unix_time)),
        recorders: setup.recorders.clone(),
    };
    let mut replay = Replay {
        engine: Engine::new(parts, begin, None)?,
        client: setup.client.as_ref(),
        waiting: BTreeMap::new(),
        sent: Vec::new(),
    };
    for (nth, step) in recorded.steps.iter().enumerate() {
        replay.step(nth, step.clone())?;
    }
    Ok(replay.sent)
}

struct Replay<'a> {
    engine: Engine,
    client: Option<&'a ClientConfig>,
    /// Clients that the application has and has not decided about.
    waiting: BTreeMap<ConnectionId, Incoming>,
    sent: Vec<Sent>,
}

impl Replay<'_> {
    fn step(&mut self, nth: usize, Step { at, input }: Step) -> Result<(), ReplayError> {
        let none = ReplayError::NoConnection(nth);
        let engine = &mut self.engine;
        let mut taken = |of| self.waiting.remove(&of).ok_or(none.clone());
        match input {
            Input::Datagram(arrival, mut bytes) => engine.handle_datagram(at, arrival, &mut bytes),
            Input::Timeout => engine.handle_timeout(at),
            Input::Unblocked => engine.handle_unblocked(at),
            Input::Connect { server_name, route } => {
                let config = self.client.ok_or(ReplayError::NoClient(nth))?;
                // One that failed then fails again.
                let _ = engine.connect(at, config, &server_name, route);
            }
            Input::PollIncoming => {
                let incoming = engine.poll_incoming(at).ok_or(none)?;
                self.waiting.insert(incoming.destination(), incoming);
            }
            Input::Admit(of) => _ = engine.admit(at, taken(of)?, None),
            Input::Retry(of) => _ = engine.retry(at, taken(of)?),
            Input::Refuse(of) => engine.refuse(at, taken(of)?),
            Input::Ignore(of) => engine.ignore(at, taken(of)?),
            Input::Call(handle, call) => engine.call(at, handle).ok_or(none)?.repeat(at, call),
            Input::Transmit(answers) => {
                let answers = RefCell::new(answers.into());
                let sent = std::mem::take(&mut self.sent);
                let mut outbox = Answering { at, answers, sent, buffer: Vec::new() };
                engine.poll_transmit(at, &mut outbox);
                self.sent = outbox.sent;
                while engine.poll_event().is_some() || engine.poll_closed().is_some() {}
            }
        }
        Ok(())
    }
}
