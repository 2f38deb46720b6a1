//! The connections of HTTP/1.1, each with one request at a time, and the requests that wait for one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::client::conn::http1;
use quipu_policy::Urgency;
use tokio::sync::{oneshot, watch};

use super::TcpFailure;
use super::body::Zeros;
use super::connection::Connector;

type Sender = http1::SendRequest<Zeros>;

/// The connections to a server.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    connector: Connector,
    most: usize,
    state: Arc<Mutex<State>>,
}

/// Level of urgency, and number of the request: the least is the next.
type Rank = (u8, u64);

#[derive(Debug, Default)]
struct State {
    idle: Vec<Sender>,
    /// All of them, those that are being made included.
    open: usize,
    /// Those that are being made.
    opening: usize,
    waiting: BTreeMap<Rank, oneshot::Sender<Result<Lease, TcpFailure>>>,
    /// Requests so far.
    requests: u64,
}

/// A request that waits for a connection.
pub(super) struct Waiting {
    pool: Pool,
    rank: Rank,
    granted: oneshot::Receiver<Result<Lease, TcpFailure>>,
}

/// A connection for one request and its response.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Pool,
    sender: Option<Sender>,
}

impl Pool {
    /// With one connection, and at most so many later.
    pub(super) async fn start(connector: Connector, most: usize) -> Result<Pool, TcpFailure> {
        let sender = connector.http1().await?;
        let state = State { idle: vec![sender], open: 1, ..State::default() };
        Ok(Pool { connector, most, state: Arc::new(Mutex::new(state)) })
    }

    /// Lets a request of that level wait for a connection, of which another one is made if there may be more.
    pub(super) fn wait(&self, level: u8) -> Waiting {
        let (grant, granted) = oneshot::channel();
        let rank = self.with(|state| {
            let rank = (level, state.requests);
            state.requests += 1;
            state.waiting.insert(rank, grant);
            rank
        });
        self.assign();
        Waiting { pool: self.clone(), rank, granted }
    }

    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        call(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives idle connections to those that wait, and makes others for the rest.
    fn assign(&self) {
        let (mut grants, mut missing) = (Vec::new(), 0);
        self.with(|state| {
            state.idle.retain(|sender| {
                let is_closed = sender.is_closed();
                state.open -= usize::from(is_closed);
                !is_closed
            });
            while !state.idle.is_empty()
                && let Some((_, grant)) = state.waiting.pop_first()
            {
                grants.push((grant, state.idle.pop()));
            }
            let wanted = state.waiting.len().saturating_sub(state.opening);
            missing = wanted.min(self.most.max(1).saturating_sub(state.open));
            state.open += missing;
            state.opening += missing;
        });
        for (grant, sender) in grants {
            // Where nobody waits any more, the next has it.
            if let Err(Ok(lease)) = grant.send(Ok(Lease { pool: self.clone(), sender })) {
                lease.give_back();
            }
        }
        for _ in 0..missing {
            tokio::spawn(self.clone().open());
        }
    }

    /// Makes another connection. What fails, fails for the next that waits.
    async fn open(self) {
        let made = self.connector.http1().await;
        let failed = self.with(|state| {
            state.opening -= 1;
            match made {
                Ok(sender) => {
                    state.idle.push(sender);
                    None
                }
                Err(error) => {
                    state.open -= 1;
                    state.waiting.pop_first().map(|(_, grant)| (grant, error))
                }
            }
        });
        if let Some((grant, error)) = failed {
            let _ = grant.send(Err(error));
        }
        self.assign();
    }
}

impl Waiting {
    /// The connection, once this is the most urgent request that waits. `urgency` may change until then.
    pub(super) async fn lease(
        &mut self,
        urgency: &mut watch::Receiver<Option<Urgency>>,
    ) -> Result<Lease, TcpFailure> {
        loop {
            tokio::select! {
                granted = &mut self.granted => return granted.unwrap_or(Err(TcpFailure::Ended)),
                Ok(()) = urgency.changed() => {
                    let urgency = *urgency.borrow_and_update();
                    if let Some(Urgency { level, .. }) = urgency {
                        self.move_to(level);
                    }
                }
            }
        }
    }

    fn move_to(&mut self, level: u8) {
        let (before, rank) = (self.rank, (level, self.rank.1));
        let moved = self.pool.with(|state| {
            let grant = state.waiting.remove(&before);
            let is_waiting = grant.is_some();
            state.waiting.extend(grant.map(|grant| (rank, grant)));
            is_waiting
        });
        if moved {
            self.rank = rank;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pool.with(|state| drop(state.waiting.remove(&self.rank)));
    }
}

impl Lease {
    /// The connection.
    pub(super) fn sender(&mut self) -> Option<&mut Sender> {
        self.sender.as_mut()
    }

    /// Gives the connection to the next once the response is read to its end.
    pub(super) fn give_back(mut self) {
        let Some(mut sender) = self.sender.take() else { return };
        let pool = self.pool.clone();
        tokio::spawn(async move {
            let is_ready = sender.ready().await.is_ok();
            pool.with(|state| match is_ready {
                true => state.idle.push(sender),
                false => state.open -= 1,
            });
            pool.assign();
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // In the middle of a response it carries no other.
        if self.sender.take().is_some() {
            self.pool.with(|state| state.open -= 1);
            if tokio::runtime::Handle::try_current().is_ok() {
                self.pool.assign();
            }
        }
    }
}
