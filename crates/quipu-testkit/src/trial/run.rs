//! Running a trial.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use quipu_base::{Duration, Instant, PathId, Role, Seed};
use quipu_link::Outage;
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::connection::CloseReason;
use quipu_sim::{Envelope, Interface, Node, NodeId, World, WorldConfig, address};

use super::ending::{
    SILENCE, agree, closed, done, incomplete, is_farewell_to_nobody, missing, restless,
};
use super::node::{SharedBook, TrialNode};
use super::watch::{Watch, Wire, amplified};
use super::{Direction, Op, Rule, Trial, Violation};
use crate::forge::{Author, Book, Draw, Meter, Pair, Setup, unmetered};
use crate::{ALPN, Tls, server_address};

/// Addresses of the client for each link: as many paths can be opened there over time.
const ADDRESSES: u16 = 4;

/// After this long without work all is quiet: six challenges that nobody answers, probe timeouts,
/// the drain of abandoned paths and the last acknowledgements are over.
const SETTLING: Duration = Duration::from_secs(70);

/// A client whose path was rebound asks as often until the server has found it.
const MOST_LOST: usize = 10;

/// As often an end may take [`SILENCE`] longer: a path that looked like a black hole is tried with
/// larger and larger datagrams, one at a time.
const PATIENCE: usize = 150;

/// Longer than the idle timeout, and than three probe timeouts that were doubled as often as there was time
/// for in it.
const PARTING: Duration = Duration::from_secs(1_200);

/// How a trial went.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// When every stream was done; `None` if the connection was closed before.
    pub done_at: Option<Instant>,
    /// Hash of the times, links and sizes of all datagrams sent.
    pub trace: u64,
    /// Why client and server say the connection ended.
    pub closed: [Option<CloseReason>; 2],
}

/// A trial at work.
struct Stage<'a> {
    trial: &'a Trial,
    world: World<TrialNode, Wire>,
    client: NodeId,
    server: NodeId,
    /// Of those who use the keys of an end.
    books: Vec<SharedBook>,
    watch: Watch,
}

impl Trial {
    /// Runs the trial: its operations, the end of all streams, silence, and a close.
    ///
    /// # Errors
    /// The first rule that was broken.
    ///
    /// # Panics
    /// If the trial names links or policies that do not exist.
    pub fn run(&self) -> Result<Report, Violation> {
        self.run_metered(unmetered)
    }

    /// The same, which measures the memory of what is dropped.
    ///
    /// # Errors
    /// The first rule that was broken.
    ///
    /// # Panics
    /// If the trial names links or policies that do not exist.
    pub fn run_metered(&self, meter: Meter) -> Result<Report, Violation> {
        let mut stage = Stage::new(self);
        let mut now = Instant::ZERO + Duration::from_millis(self.begin);
        stage.run_to(now)?;
        for op in &self.ops {
            match op {
                Op::Advance(millis) => {
                    now += Duration::from_millis(*millis);
                    stage.run_to(now)?;
                }
                op => stage.apply(op),
            }
        }
        let healed = self.outages().iter().filter_map(|(_, _, outage)| outage.until).max();
        let limit = healed.map_or(now, |at| at.max(now)) + Duration::from_millis(self.limit);
        let done_at = stage.wind_up(limit)?;
        if done_at.is_some() && !self.cuts_for_good() {
            stage.come_to_rest(healed)?;
        }
        let closed = stage.part(meter)?;
        Ok(Report { done_at, trace: stage.world.observer().trace, closed })
    }

    /// When which link is down.
    fn outages(&self) -> Vec<(usize, Direction, Outage)> {
        let mut now = Instant::ZERO + Duration::from_millis(self.begin);
        let mut outages = Vec::new();
        for op in &self.ops {
            match *op {
                Op::Advance(millis) => now += Duration::from_millis(millis),
                Op::Outage(link, direction, wait, millis) => {
                    let from = now + Duration::from_millis(wait);
                    let end = |millis: u64| from + Duration::from_millis(millis.max(1));
                    let outage = millis.map_or(Outage::for_good(from), |millis| {
                        Outage::between(from, end(millis))
                    });
                    outages.push((link, direction, outage));
                }
                _ => {}
            }
        }
        outages
    }
}

/// TLS of client and server, which know each other from an earlier connection if the client is to send
/// early.
fn acquainted(trial: &Trial) -> (NullClient, NullServer) {
    let client = NullClient::new(&[ALPN]).expect("a valid name");
    let server = NullServer::new(&[ALPN]).and_then(|server| server.with_certificate_chain(3000));
    let server = server.expect("a valid chain");
    let Some(is_known) = trial.early else { return (client, server) };
    let client = client.with_resumption();
    let tls = Tls::SharedNull(client.clone(), server.clone());
    let (ours, theirs) = (trial.transport(), trial.transport());
    Pair::connected(
        &Setup { tls, client: ours, server: theirs, ..Setup::default() },
        Duration::from_millis(1),
    );
    (client, if is_known { server } else { server.with_ticket_key(1) })
}

impl<'a> Stage<'a> {
    fn new(trial: &'a Trial) -> Self {
        let here = |link: u8, nth: u16| address(1, link, 50_000 + nth);
        let addresses: Vec<Vec<SocketAddr>> = (0..=u8::MAX)
            .take(trial.paths.len())
            .map(|link| (0..ADDRESSES).map(|nth| here(link, nth)).collect())
            .collect();
        let tls = acquainted(trial);
        let config = WorldConfig::new(Seed::new(1));
        let mut world = World::with_observer(config, Wire::new(server_address()));
        let client = world.add_node(TrialNode::new(trial, Role::Client, &addresses, &tls));
        let server = world.add_node(TrialNode::new(trial, Role::Server, &addresses, &tls));
        let there = Interface { node: server, address: server_address() };
        let (outages, middlebox) = (trial.outages(), trial.middlebox(&addresses));
        for (index, (setup, of_link)) in trial.paths.iter().zip(&addresses).enumerate() {
            let (mut up, mut down) = (setup.up(), setup.down());
            for &(_, direction, outage) in outages.iter().filter(|(link, ..)| *link == index) {
                if direction.is_up() {
                    up.outages.push(outage);
                }
                if direction.is_down() {
                    down.outages.push(outage);
                }
            }
            let up = world.add_link(&up).expect("a valid link");
            let down = world.add_link(&down).expect("a valid link");
            let rebound = middlebox.rebindings.iter();
            let rebound = rebound.filter(|rebinding| of_link.contains(&rebinding.inside));
            let seen = rebound.map(|rebinding| rebinding.outside);
            for address in of_link.iter().copied().chain(seen) {
                let here = Interface { node: client, address };
                world.add_route(here, there, &[up]).expect("a new route");
                world.add_route(there, here, &[down]).expect("a new route");
            }
        }
        let books = [client, server].into_iter().filter_map(|node| {
            let vault = world.node(node).vault.clone()?;
            let role = if node == client { Role::Client } else { Role::Server };
            let secrets = Arc::new(NullClient::new(&[ALPN]).expect("a valid name"));
            Some(Rc::new(RefCell::new(Book::new(role, vault, secrets))))
        });
        let books: Vec<SharedBook> = books.collect();
        for node in [client, server] {
            world.update(node, |node, _| node.be_seen_by(&books));
        }
        Stage { trial, world, client, server, books, watch: Watch::default() }
    }

    fn ends(&self) -> [(Role, &TrialNode); 2] {
        let (client, server) = (self.world.node(self.client), self.world.node(self.server));
        [(Role::Client, client), (Role::Server, server)]
    }

    fn broken(&self, role: Option<Role>, rule: Rule) -> Violation {
        Violation { now: self.world.now(), role, rule }
    }

    /// Runs while `condition` holds, at most to `until`, and checks after every event. True if the
    /// condition no longer holds.
    fn run_while(
        &mut self,
        until: Instant,
        mut condition: impl FnMut(&TrialNode, &TrialNode) -> bool,
    ) -> Result<bool, Violation> {
        let mut found: Option<(Option<Role>, Rule)> = None;
        let mut met = false;
        let (client, server) = (self.client, self.server);
        let watch = &mut self.watch;
        let end = self.world.run_while(until, |world| {
            let (client, server) = (world.node(client), world.node(server));
            for (role, node) in [(Role::Client, client), (Role::Server, server)] {
                if let Some(rule) = watch.check(role, node) {
                    found = Some((Some(role), rule));
                    return false;
                }
            }
            if self.trial.is_hostile() {
                // What is forged is on no wire.
            } else if let Some(rule) = amplified(world.observer()) {
                found = Some((Some(Role::Server), rule));
                return false;
            }
            met = !condition(client, server);
            !met
        });
        match (end, found) {
            (Err(error), _) => Err(self.broken(None, error.into())),
            (Ok(_), Some((role, rule))) => Err(self.broken(role, rule)),
            (Ok(_), None) => Ok(met),
        }
    }

    fn run_to(&mut self, until: Instant) -> Result<(), Violation> {
        self.run_while(until, |_, _| true)?;
        // The present moves on to `until`; no event is left before.
        let end = self.world.run_until(until);
        end.map(|_| ()).map_err(|error| self.broken(None, error.into()))
    }

    fn apply(&mut self, op: &Op) {
        let role = match op {
            Op::Open(role, _)
            | Op::Write(role, ..)
            | Op::Finish(role, _)
            | Op::Reset(role, _)
            | Op::Stop(role, _)
            | Op::Pause(role, _)
            | Op::Resume(role, _)
            | Op::Control(role, _)
            | Op::Datagrams(role, ..)
            | Op::Priority(role, _)
            | Op::Abandon(role, _)
            | Op::Backup(role, ..)
            | Op::UpdateKeys(role)
            | Op::Policies(role, _)
            | Op::Block(role, ..)
            | Op::Ping(role, _)
            | Op::Restart(role)
            | Op::Leap(role, _)
            | Op::Stand(role, _)
            | Op::Close(role) => *role,
            Op::OpenPath(_) | Op::Move(..) => Role::Client,
            Op::Forge(role, count, seed) => return self.forge(*role, *count, *seed),
            Op::Outage(..) | Op::Rebind(..) | Op::Narrow(..) | Op::Advance(_) => return,
        };
        let node = if role.is_client() { self.client } else { self.server };
        self.world.update(node, |node, now| node.apply(now, op));
    }

    /// Random packets of the end of `role` come to the other.
    fn forge(&mut self, role: Role, count: u64, seed: u64) {
        let Some(book) = self.books.iter().find(|book| book.borrow().role() == role).cloned()
        else {
            return;
        };
        let victim = if role.is_client() { self.server } else { self.client };
        let mut draw = Seed::new(seed).stream("forged", 0);
        let boldness = draw.below(4) * 5;
        for _ in 0..count {
            let sealed = {
                let book = &mut *book.borrow_mut();
                let packet = Author::new(book, boldness).packet(&mut draw);
                book.seal(&packet)
            };
            let addresses = &self.world.node(self.client).addresses;
            let (Some(mut bytes), false) = (sealed, addresses.is_empty()) else { continue };
            let (_, client) = addresses[draw.below(addresses.len() as u64) as usize];
            let (local, remote) = match role {
                Role::Client => (server_address(), client),
                Role::Server => (client, server_address()),
            };
            let envelope = Envelope { local, remote, ecn: 0 };
            let arrive =
                |node: &mut TrialNode, now| node.handle_datagram(now, &envelope, &mut bytes);
            self.world.update(victim, arrive);
        }
    }

    /// All streams are ended and read. When that was done, if the connection lived: a client that
    /// is rebound before the server's first flight comes is not found.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-9>
    fn wind_up(&mut self, limit: Instant) -> Result<Option<Instant>, Violation> {
        for node in [self.client, self.server] {
            self.world.update(node, |node, now| node.wind_up(now));
        }
        self.run_while(limit, |client, server| {
            let is_lost = client.is_lost || server.is_lost;
            !(is_lost || closed(client, server) || done(client, server))
        })?;
        let [(_, client), (_, server)] = self.ends();
        let reached = client.connection().is_some_and(|connection| connection.is_connected());
        if client.is_lost || server.is_lost {
            // Time to hear of it.
            self.run_while(limit.min(self.world.now() + SILENCE), |client, server| {
                !closed(client, server)
            })?;
            return Ok(None);
        }
        let is_over = closed(client, server);
        if is_over || self.trial.is_hostile() || !reached && self.trial.rebinds() {
            return Ok(None);
        }
        if !done(client, server) {
            return Err(self.broken(None, Rule::Unfinished { what: missing(client, server) }));
        }
        match incomplete(client, server) {
            Some(rule) => Err(self.broken(None, rule)),
            None => Ok(Some(self.world.now())),
        }
    }

    /// Nothing is left to do: nothing waits, and nothing is sent.
    fn come_to_rest(&mut self, healed: Option<Instant>) -> Result<(), Violation> {
        let now = self.world.now();
        if self.trial.moves() {
            // The server learns where an idle path leads only from what comes by it, and it went back to
            // the address before if all that it sent to the new one was lost.
            self.run_to(healed.map_or(now, |at| at.max(now)))?;
            for _ in 0..MOST_LOST {
                let paths = self.ends()[0].1.connection().map_or(0, |c| c.path_views().count());
                (0..paths).for_each(|nth| self.apply(&Op::Ping(Role::Client, nth)));
                self.run_to(self.world.now() + SETTLING)?;
                if self.disagreement().is_none() {
                    break;
                }
            }
        }
        let now = self.world.now();
        self.run_to(healed.map_or(now, |at| at.max(now)) + SETTLING)?;
        let [(_, client), (_, server)] = self.ends();
        if closed(client, server) {
            // Each abandoned the other's last path.
            return Ok(());
        }
        let restless = |stage: &Self| {
            stage
                .ends()
                .into_iter()
                .find_map(|(role, node)| Some((role, restless(node, stage.world.now())?)))
        };
        for _ in 0..PATIENCE {
            if restless(self).is_none() {
                break;
            }
            self.run_to(self.world.now() + SILENCE)?;
        }
        let [(_, client), (_, server)] = self.ends();
        if closed(client, server) && self.trial.narrows() {
            // An end still tried how large datagrams may be when the connection had been idle for long.
            return Ok(());
        }
        if let Some((role, what)) = restless(self) {
            return Err(self.broken(Some(role), Rule::Restless { what }));
        }
        let sent = self.world.observer().sent;
        let [client, server] = self.ends().map(|(_, node)| {
            let paths = node.connection().into_iter().flat_map(|c| c.path_views());
            paths.map(|view| view.key.id).collect::<Vec<_>>()
        });
        if client != server {
            return Err(self.broken(None, Rule::Paths { client, server }));
        }
        if let Some(rule) = self.disagreement() {
            return Err(self.broken(None, rule));
        }
        self.run_to(self.world.now() + SILENCE)?;
        let more = self.world.observer().sent - sent;
        if more > 0 {
            let what = format!("{more} datagrams sent");
            return Err(self.broken(None, Rule::Restless { what }));
        }
        Ok(())
    }

    /// Something about the paths that the ends, or an end and its application, see differently.
    fn disagreement(&self) -> Option<Rule> {
        let now = self.world.now();
        let [(_, client), (_, server)] = self.ends();
        for node in [client, server] {
            let told: Vec<PathId> = node.news.live().collect();
            let paths = node.connection()?.path_views().map(|view| view.key.id);
            let there: BTreeSet<PathId> = paths.collect();
            if let Some(path) = there.symmetric_difference(&told.into_iter().collect()).next() {
                let what = format!("it is there: {}", there.contains(path));
                return Some(Rule::Told { path: *path, what });
            }
        }
        let server = server.connection()?;
        server.path_views().find_map(|view| {
            let path = view.key.id;
            let (client, server) = (client.seen_at(now, path)?, server.route(path)?.remote);
            (client != server).then_some(Rule::Routes { path, client, server })
        })
    }

    /// The client closes, unless somebody did, or both ends drop the connection: their reasons.
    fn part(&mut self, meter: Meter) -> Result<[Option<CloseReason>; 2], Violation> {
        if self.trial.drops {
            self.forget(meter)?;
            return Ok([None, None]);
        }
        self.apply(&Op::Close(Role::Client));
        self.run_to(self.world.now() + PARTING)?;
        let [client, server] = self.ends().map(|(_, node)| {
            node.connection().filter(|c| c.is_closed()).and_then(|c| c.close_reason().cloned())
        });
        let lost = self.ends().map(|(_, node)| node.is_lost);
        let said = [client.as_ref(), server.as_ref()];
        let is_right = match lost {
            _ if self.trial.is_hostile() => {
                // Whatever happened, it is over.
                self.ends().into_iter().all(|(_, node)| {
                    node.connection().is_none_or(quipu_quic::Connection::is_closed)
                })
            }
            [false, false] => agree(said[0], said[1], self.trial.loses()),
            lost => {
                let mut survivors = said.into_iter().zip(lost).filter(|(_, lost)| !lost);
                survivors.all(|(reason, _)| is_farewell_to_nobody(reason))
            }
        };
        if !is_right {
            return Err(self.broken(None, Rule::Farewell { client, server }));
        }
        self.forget(meter)?;
        Ok([client, server])
    }

    fn forget(&mut self, meter: Meter) -> Result<(), Violation> {
        for (role, node) in [(Role::Client, self.client), (Role::Server, self.server)] {
            if let Some(rule) = self.world.update(node, |node, _| node.forget(meter)) {
                return Err(self.broken(Some(role), rule));
            }
        }
        Ok(())
    }
}
