//! The network between a client and the server: a translator of addresses that forgets, and everybody who
//! sits on the way.
//!
//! A client's sockets send to its relay, which has a socket towards the server for each. Others who see the
//! datagrams copy, change and repeat them; a hostile client forges more.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_base::{Random, Role};
use quipu_testkit::forge::{Draw, Insider};
use quipu_tokio::tokio;
use quipu_tokio::tokio::net::UdpSocket;
use quipu_tokio::tokio::task::JoinHandle;
use rand_core::Rng;

use crate::world::{World, any_address, count};

/// Datagrams that may be repeated.
const KEPT: usize = 8;

/// How often in 1,000 a datagram is lost, and how often somebody does something to it.
const LOSS: u64 = 3;
const MEDDLE: u64 = 20;

/// The network of one client. Dropped, it is gone.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    front: JoinHandle<()>,
    forger: Option<JoinHandle<()>>,
}

struct Shared {
    world: Arc<World>,
    /// Where the client sends to.
    front: UdpSocket,
    state: Mutex<State>,
}

struct State {
    /// By the client's address.
    flows: BTreeMap<SocketAddr, Flow>,
    draw: Random,
    /// Nothing passes.
    dark: bool,
    insider: Option<Insider>,
    kept: VecDeque<Vec<u8>>,
}

/// A way to the server.
struct Flow {
    socket: Arc<UdpSocket>,
    back: JoinHandle<()>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.back.abort();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.front.abort();
        if let Some(forger) = &self.forger {
            forger.abort();
        }
        // Each has a task that holds the rest.
        self.shared.state().flows.clear();
    }
}

impl Relay {
    /// A network; with `insider` the client is hostile.
    pub(crate) async fn start(
        world: &Arc<World>,
        draw: Random,
        insider: Option<Insider>,
    ) -> std::io::Result<Self> {
        let hostile = insider.is_some();
        let state =
            State { flows: BTreeMap::new(), draw, dark: false, insider, kept: VecDeque::new() };
        let front = UdpSocket::bind("127.0.0.1:0").await?;
        let shared = Arc::new(Shared { world: Arc::clone(world), front, state: Mutex::new(state) });
        let front = tokio::spawn(Arc::clone(&shared).carry_up());
        let forger = hostile.then(|| tokio::spawn(Arc::clone(&shared).forge()));
        Ok(Relay { shared, front, forger })
    }

    /// Where the client finds the server.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.shared.front.local_addr()
    }

    /// Nothing passes any more, or all does again.
    pub(crate) fn set_dark(&self, dark: bool) {
        self.shared.state().dark = dark;
    }

    /// All flows leave by new ports, or from new addresses.
    pub(crate) async fn rebind(&self, elsewhere: bool) {
        let known: Vec<_> = {
            let state = self.shared.state();
            let local = |flow: &Flow| flow.socket.local_addr().ok();
            state.flows.iter().map(|(client, flow)| (*client, local(flow))).collect()
        };
        for (client, local) in known {
            let address = match local {
                Some(local) if !elsewhere => local.ip(),
                _ => any_address(&mut self.shared.state().draw),
            };
            let Ok(socket) = UdpSocket::bind((address, 0)).await else { continue };
            self.shared.open(client, Arc::new(socket));
        }
    }
}

/// Where something goes.
enum To {
    Server(Arc<UdpSocket>),
    Client(SocketAddr),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `client` sends leaves by `socket` from now on.
    fn open(self: &Arc<Self>, client: SocketAddr, socket: Arc<UdpSocket>) {
        let back = tokio::spawn(Arc::clone(self).carry_down(client, Arc::clone(&socket)));
        self.state().flows.insert(client, Flow { socket, back });
    }

    async fn carry_up(self: Arc<Self>) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            // An error is of a datagram that was sent before.
            let Ok((length, client)) = self.front.recv_from(&mut buffer).await else { continue };
            let known = self.state().flows.get(&client).map(|flow| Arc::clone(&flow.socket));
            let socket = match known {
                Some(socket) => socket,
                None => {
                    let address = any_address(&mut self.state().draw);
                    let Ok(socket) = UdpSocket::bind((address, 0)).await else { continue };
                    let socket = Arc::new(socket);
                    self.open(client, Arc::clone(&socket));
                    socket
                }
            };
            self.pass(Role::Client, &To::Server(socket), &buffer[..length]).await;
        }
    }

    async fn carry_down(self: Arc<Self>, client: SocketAddr, socket: Arc<UdpSocket>) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match socket.recv_from(&mut buffer).await {
                Ok((length, from)) if from == self.world.server => {
                    self.pass(Role::Server, &To::Client(client), &buffer[..length]).await;
                }
                // A translator lets nobody else in.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Passes on what `sender` sent, unless it is lost, with what others add.
    async fn pass(&self, sender: Role, to: &To, datagram: &[u8]) {
        let (more, elsewhere) = {
            let mut state = self.state();
            let state = &mut *state;
            let counts = &self.world.counts;
            count(&counts.datagrams);
            if let Some(insider) = &mut state.insider {
                insider.hear(sender, datagram);
            }
            if state.dark || state.draw.below(1_000) < LOSS {
                count(&counts.dropped);
                return;
            }
            let mut more = Vec::new();
            let mut elsewhere = None;
            if state.draw.below(1_000) < MEDDLE {
                match state.draw.below(6) {
                    0 => {
                        count(&counts.duplicated);
                        more.push(datagram.to_vec());
                    }
                    1 => {
                        count(&counts.mutated);
                        more.push(mutated(datagram, &mut state.draw));
                    }
                    2 => {
                        count(&counts.replayed);
                        more.extend(state.kept.pop_front());
                    }
                    3 => {
                        count(&counts.garbage);
                        more.push(garbage(&mut state.draw));
                    }
                    4 => {
                        count(&counts.spoofed);
                        elsewhere = Some(any_address(&mut state.draw));
                    }
                    _ => {
                        if state.kept.len() == KEPT {
                            state.kept.pop_front();
                        }
                        state.kept.push_back(datagram.to_vec());
                    }
                }
            }
            (more, elsewhere)
        };
        if let Some(address) = elsewhere
            && matches!(to, To::Server(_))
            && let Ok(socket) = UdpSocket::bind((address, 0)).await
        {
            // Nobody is there to answer. It overtakes the real one, but not in the handshake: a
            // server sends to the first address that it hears of, and cannot know better.
            let is_long = datagram.first().is_some_and(|first| first & 0x80 != 0);
            if is_long {
                self.send(to, datagram).await;
            }
            let _ = socket.send_to(datagram, self.world.server).await;
            if is_long {
                return;
            }
        }
        self.send(to, datagram).await;
        for datagram in &more {
            self.send(to, datagram).await;
        }
    }

    async fn send(&self, to: &To, datagram: &[u8]) {
        // What cannot be sent is lost.
        let _ = match to {
            To::Server(socket) => socket.send_to(datagram, self.world.server).await,
            To::Client(client) => self.front.send_to(datagram, client).await,
        };
    }

    /// A hostile client's packets, beside those of its honest engine.
    async fn forge(self: Arc<Self>) {
        loop {
            let (packets, socket, pause) = {
                let mut state = self.state();
                let State { insider, draw, flows, .. } = &mut *state;
                let pause = draw.below(20_000);
                let number = 1 + draw.below(4);
                let packets: Vec<_> = insider
                    .as_mut()
                    .map(|insider| (0..number).filter_map(|_| insider.forge(draw)).collect())
                    .unwrap_or_default();
                let nth = draw.below(flows.len() as u64) as usize;
                (packets, flows.values().nth(nth).map(|flow| Arc::clone(&flow.socket)), pause)
            };
            if let Some(socket) = socket {
                for packet in packets {
                    count(&self.world.counts.forged);
                    self.send(&To::Server(Arc::clone(&socket)), &packet).await;
                }
            }
            tokio::time::sleep(Duration::from_micros(pause)).await;
        }
    }
}

/// The datagram with some bits turned, or cut off.
fn mutated(datagram: &[u8], draw: &mut impl Draw) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    if draw.happens(30) {
        bytes.truncate(draw.below(bytes.len() as u64 + 1) as usize);
        return bytes;
    }
    for _ in 0..=draw.below(4) {
        let at = draw.below(bytes.len() as u64) as usize;
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << draw.below(8);
        }
    }
    bytes
}

/// Any bytes.
pub(crate) fn garbage(draw: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; 1 + draw.below(1_400) as usize];
    draw.fill_bytes(&mut bytes);
    bytes
}
