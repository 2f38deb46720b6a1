//! Moves datagrams, each at its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_interop_live::{Failure, facts};
use tokio::sync::{mpsc, oneshot};

use crate::fate::{Course, Fate};
use crate::session::{Proof, Session};
use crate::socket::{Received, Socket};
use crate::wire::{self, Counts};
use crate::{Plan, Rebind};

const CE: u8 = 3;

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Up,
    Down,
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Client,
    /// The server, for a session; `is_rebound`: to the address at which it sees that since the
    /// rebinding.
    Server {
        session: usize,
        is_rebound: bool,
    },
}

type Arrival = (Source, Received);

/// A datagram on its way, in order of time and number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Instant,
    number: u64,
    direction: Direction,
    session: usize,
    is_rebound: bool,
    ecn: u8,
    bytes: Vec<u8>,
}

/// What one direction did.
#[derive(Default)]
struct Seen {
    counts: Counts,
    datagrams: u64,
    bytes: u64,
    ecn: [u64; 4],
    lost: u64,
    changed: u64,
    overtaken: u64,
    marked: u64,
    unsent: u64,
}

pub(crate) struct Relay {
    plan: Plan,
    began_at: Instant,
    front: Arc<Socket>,
    sessions: Vec<Session>,
    seen: [Seen; 2],
    waiting: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    is_reached: bool,
    silent_until: Option<Instant>,
    rebound: u64,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    sender: mpsc::UnboundedSender<Arrival>,
}

impl Relay {
    pub(crate) fn start(plan: Plan) -> Result<Self, Failure> {
        let front = Socket::bind(plan.listen)?;
        facts::tell("relay", front.local()?);
        let (sender, arrivals) = mpsc::unbounded_channel();
        tokio::spawn(read(Arc::clone(&front), Source::Client, sender.clone()));
        Ok(Relay {
            plan,
            began_at: now(),
            front,
            sessions: Vec::new(),
            seen: Default::default(),
            waiting: BinaryHeap::new(),
            number: 0,
            is_reached: false,
            silent_until: None,
            rebound: 0,
            arrivals,
            sender,
        })
    }

    /// Until it is told that it is over.
    pub(crate) async fn run(mut self, mut ended: oneshot::Receiver<()>) -> Result<(), Failure> {
        loop {
            let next = self.waiting.peek().map(|Reverse(waiting)| waiting.at);
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut ended => break,
                () = due => self.send_due()?,
                Some((source, received)) = self.arrivals.recv() => self.on_arrival(source, received)?,
            }
        }
        self.tell();
        Ok(())
    }

    fn on_arrival(&mut self, source: Source, mut received: Received) -> Result<(), Failure> {
        let (direction, session, is_rebound) = match source {
            Source::Server { session, is_rebound } => (Direction::Down, session, is_rebound),
            Source::Client => (Direction::Up, self.session_of(received.from)?, false),
        };
        let is_silent = self.silent_until.is_some_and(|until| now() < until);
        let packets = wire::packets(&received.bytes);
        let length = received.bytes.len();
        let seen = &mut self.seen[direction as usize];
        seen.counts.add(&packets);
        seen.datagrams += 1;
        seen.bytes += length as u64;
        seen.ecn[usize::from(received.ecn & 3)] += 1;
        let known = &mut self.sessions[session];
        if direction == Direction::Down {
            known.proof.on_server(length);
        } else {
            known.from_client += 1;
        }
        let dropped = self.plan.drop_client.contains(&known.from_client);
        let is_dropped = direction == Direction::Up && dropped;
        let course = &mut known.courses[direction as usize];
        let fate = course.decide(self.began_at.elapsed(), length);
        let (Fate::Arrives { after, is_changed, is_overtaken, is_marked }, false, false) =
            (fate, is_dropped, is_silent)
        else {
            seen.lost += 1;
            return Ok(());
        };
        if direction == Direction::Up {
            known.proof.on_client(&packets, length);
        }
        if is_changed {
            seen.changed += 1;
            course.change(&mut received.bytes);
        }
        seen.overtaken += u64::from(is_overtaken);
        if is_marked && received.ecn != 0 {
            seen.marked += 1;
            received.ecn = CE;
        }
        self.number += 1;
        self.waiting.push(Reverse(Waiting {
            at: now() + after,
            number: self.number,
            direction,
            session,
            is_rebound,
            ecn: received.ecn,
            bytes: received.bytes,
        }));
        self.send_due()
    }

    /// The session of a client's address, a new one if it is new.
    fn session_of(&mut self, client: SocketAddr) -> Result<usize, Failure> {
        if let Some(at) = self.sessions.iter().position(|session| session.client == client) {
            return Ok(at);
        }
        let at = self.sessions.len();
        let upstream = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let source = Source::Server { session: at, is_rebound: false };
        let reader = tokio::spawn(read(Arc::clone(&upstream), source, self.sender.clone()));
        let seed = self.plan.seed.wrapping_mul(1_000).wrapping_add(2 * at as u64);
        let course = |direction| Course::new(self.plan.link.clone(), seed + direction);
        self.sessions.push(Session {
            client,
            upstream,
            reader,
            from_client: 0,
            to_client: 0,
            since_rebound: None,
            courses: [course(0), course(1)],
            proof: Proof::default(),
        });
        Ok(at)
    }

    fn send_due(&mut self) -> Result<(), Failure> {
        while let Some(Reverse(next)) = self.waiting.peek()
            && next.at <= now()
            && let Some(Reverse(due)) = self.waiting.pop()
        {
            let session = &mut self.sessions[due.session];
            let sent = match due.direction {
                Direction::Up => session.upstream.send(self.plan.to, due.ecn, &due.bytes),
                Direction::Down => self.front.send(session.client, due.ecn, &due.bytes),
            };
            self.seen[due.direction as usize].unsent += u64::from(!sent);
            if due.direction == Direction::Down {
                session.to_client += due.bytes.len() as u64;
                if let Some(since) = session.since_rebound.as_mut().filter(|_| due.is_rebound) {
                    *since += due.bytes.len() as u64;
                }
                let reached = session.to_client >= self.plan.after;
                if reached && due.session == self.plan.session && !self.is_reached {
                    self.is_reached = true;
                    self.on_reached()?;
                }
            }
        }
        Ok(())
    }

    /// So many bytes have gone to the client that what was asked for is to happen.
    fn on_reached(&mut self) -> Result<(), Failure> {
        facts::tell("reached", self.plan.after);
        self.silent_until = self.plan.silent.map(|time| now() + time);
        let Some(rebind) = self.plan.rebind else { return Ok(()) };
        let ip = match rebind {
            Rebind::Port => Ipv4Addr::LOCALHOST,
            Rebind::Address => Ipv4Addr::new(127, 0, 0, 9),
        };
        let session = &mut self.sessions[self.plan.session];
        let upstream = Socket::bind(SocketAddr::from((ip, 0)))?;
        // What is on its way to the old port is lost, as it is at a translator of addresses that forgot it.
        session.reader.abort();
        let source = Source::Server { session: self.plan.session, is_rebound: true };
        let reader = tokio::spawn(read(Arc::clone(&upstream), source, self.sender.clone()));
        (session.upstream, session.reader) = (upstream, reader);
        session.since_rebound = Some(0);
        self.rebound += 1;
        Ok(())
    }

    fn tell(&self) {
        for (name, seen) in ["up", "down"].into_iter().zip(&self.seen) {
            for (kind, count) in &seen.counts.kinds {
                facts::tell(&format!("{name}.{}", kind.name()), count);
            }
            for (version, count) in &seen.counts.versions {
                facts::tell(&format!("{name}.version.{version:#x}"), count);
            }
            let [_, ect1, ect0, ce] = seen.ecn;
            for (what, count) in [
                ("datagrams", seen.datagrams),
                ("bytes", seen.bytes),
                ("ect0", ect0),
                ("ect1", ect1),
                ("ce", ce),
                ("lost", seen.lost),
                ("changed", seen.changed),
                ("overtaken", seen.overtaken),
                ("marked", seen.marked),
                ("unsent", seen.unsent),
            ] {
                facts::tell(&format!("{name}.{what}"), count);
            }
        }
        facts::tell("sessions", self.sessions.len());
        for (at, session) in self.sessions.iter().enumerate() {
            facts::tell(&format!("session.{at}.up"), session.from_client);
            facts::tell(&format!("session.{at}.down_bytes"), session.to_client);
            if let Some(since) = session.since_rebound {
                facts::tell("rebound_down_bytes", since);
            }
        }
        let most = self.sessions.iter().map(|session| session.proof.most_percent).max();
        facts::tell("amplification_percent", most.unwrap_or(0));
        facts::tell("rebound", self.rebound);
    }
}

/// Passes on what a socket receives.
async fn read(socket: Arc<Socket>, source: Source, sender: mpsc::UnboundedSender<Arrival>) {
    loop {
        let received = match socket.receive().await {
            Ok(received) => received,
            Err(error) => {
                eprintln!("cannot receive: {error}");
                return tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        for datagram in received {
            if sender.send((source, datagram)).is_err() {
                return;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the relay works in real time")]
fn now() -> Instant {
    Instant::now()
}
