//! A client with some connections, which does all that clients do, in any order.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_base::{Random, Role};
use quipu_policy::{PathState, PathStatus, Registry};
use quipu_quic::endpoint::ClientConfig;
use quipu_quic::tls::ClientTls;
use quipu_testkit::forge::{Draw, Insider, Tap, Vault};
use quipu_tokio::identity::pinned;
use quipu_tokio::tokio;
use quipu_tokio::tokio::task::JoinSet;
use quipu_tokio::tokio::time::{Instant, sleep, sleep_until, timeout};
use quipu_tokio::{Connection, Endpoint, Via, policies};

use crate::noise::Request;
use crate::relay::Relay;
use crate::server::RIGHT;
use crate::world::{ALPN, Failure, NAME, STALL, TICK, World, add, count, transport};

/// How long a client that ends waits for its server to hear of it.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a client is like.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) number: u64,
    /// Connections at a time.
    pub(crate) connections: usize,
    pub(crate) hostile: bool,
}

impl Device {
    /// Lives again and again, as another client each time, until `ends`.
    pub(crate) async fn live(self, world: Arc<World>, round: u64, ends: Instant) {
        let mut draw = world.seed.stream("device", round << 32 | self.number);
        while Instant::now() < ends {
            let lasts = Duration::from_millis(5_000 + draw.below(40_000));
            let until = ends.min(Instant::now() + lasts);
            count(&world.counts.lives);
            if let Err(error) = self.life(&world, &mut draw, until).await {
                println!("client {}: {error}", self.number);
                sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// One client, from its first datagram to its last.
    async fn life(
        self,
        world: &Arc<World>,
        draw: &mut Random,
        until: Instant,
    ) -> Result<(), Failure> {
        let mut tls: Arc<dyn ClientTls> = Arc::new(pinned(world.pin, &[ALPN])?);
        let mut insider = None;
        if self.hostile {
            let vault = Vault::default();
            let tap = Arc::new(Tap::new(tls, vault.clone()));
            let boldness = [0, 0, 1, 5, 30][draw.below(5) as usize];
            insider = Some(Insider::new(Role::Client, vault, tap.clone(), boldness));
            tls = tap;
        }
        let relay = Relay::start(world, fork(draw), insider).await?;
        let paths = 1 + draw.below(2);
        let path_policy = ["path=minrtt", "path=path-rr", "path=ecf"][draw.below(3) as usize];
        let policies = policies(&Registry::builtin(), path_policy)?;
        let config = ClientConfig::new(tls, transport(world.idle, true), policies);
        let mut builder = Endpoint::client();
        for nth in 0..paths {
            builder = builder.via(self.uplink(nth));
        }
        let client = Client {
            world: Arc::clone(world),
            endpoint: builder.bind()?,
            device: self,
            lost: Arc::new(AtomicBool::new(self.hostile)),
            config,
            until,
        };
        client.run(&relay, draw).await;
        Ok(())
    }

    /// An address that is no other client's.
    fn uplink(self, nth: u64) -> Via {
        let [.., high, low] = self.number.to_be_bytes();
        Via::Address(IpAddr::V4(Ipv4Addr::new(127, 1 + nth as u8, high, low.max(1))))
    }
}

/// A stream of random numbers of its own.
fn fork(draw: &mut Random) -> Random {
    quipu_base::Seed::new(draw.below(u64::MAX)).stream("fork", 0)
}

/// A client that lives.
struct Client {
    world: Arc<World>,
    endpoint: Endpoint,
    device: Device,
    /// It was cut off, or is hostile: what happens to it from then on is no fault.
    lost: Arc<AtomicBool>,
    config: ClientConfig,
    until: Instant,
}

impl Client {
    async fn run(self, relay: &Relay, draw: &mut Random) {
        let Ok(address) = relay.address() else { return };
        let mut connecting = JoinSet::new();
        for _ in 0..self.device.connections {
            let (endpoint, config) = (self.endpoint.clone(), self.config.clone());
            connecting.spawn(async move { endpoint.connect(&config, address, NAME).await });
        }
        let (mut held, mut users) = (Vec::new(), JoinSet::new());
        while let Some(connected) = connecting.join_next().await {
            match connected {
                Ok(Ok(connection)) => {
                    count(&self.world.counts.connections);
                    let user = User {
                        world: Arc::clone(&self.world),
                        connection: connection.clone(),
                        lost: Arc::clone(&self.lost),
                        until: self.until,
                    };
                    users.spawn(user.run(fork(draw)));
                    held.push(connection);
                }
                Ok(Err(error)) if !self.device.hostile => {
                    count(&self.world.counts.failed_handshakes);
                    println!("client {}: no connection: {error}", self.device.number);
                }
                _ => {}
            }
        }
        self.wander(relay, &held, draw).await;
        if draw.happens(30) || self.device.hostile {
            // Gone without a word: the server finds out by itself.
            count(&self.world.counts.cuts);
            self.lost.store(true, Ordering::Relaxed);
            relay.set_dark(true);
            users.shutdown().await;
            drop(held);
            self.leave();
            return;
        }
        while users.join_next().await.is_some() {}
        drop(held);
        let _ = timeout(FAREWELL, self.endpoint.wait_idle()).await;
        self.leave();
    }

    /// What it still has to close is waited for before memory is compared.
    fn leave(self) {
        self.world.leaving.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            self.endpoint.wait_idle().await;
            self.world.leaving.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Moves about until it is time to end.
    async fn wander(&self, relay: &Relay, held: &[Connection], draw: &mut Random) {
        let counts = &self.world.counts;
        loop {
            let next = Instant::now() + Duration::from_millis(1_000 + draw.below(6_000));
            sleep_until(next.min(self.until)).await;
            if next >= self.until {
                return;
            }
            let connection =
                &held[draw.below(held.len().max(1) as u64) as usize % held.len().max(1)..].first();
            match draw.below(10) {
                0 | 1 => {
                    count(&counts.rebinds);
                    relay.rebind(false).await;
                }
                2 | 3 => {
                    count(&counts.moves);
                    relay.rebind(true).await;
                }
                4 => {
                    count(&counts.outages);
                    relay.set_dark(true);
                    let lasts = self.world.idle.as_millis() as u64 / 8;
                    sleep(Duration::from_millis(draw.below(lasts))).await;
                    relay.set_dark(false);
                }
                _ => {
                    if let Some(connection) = connection {
                        self.change_paths(connection, draw).await;
                    }
                }
            }
        }
    }

    /// Opens a path, abandons one, or asks the server to spare one.
    async fn change_paths(&self, connection: &Connection, draw: &mut Random) {
        let counts = &self.world.counts;
        let paths = connection.paths();
        let usable = paths.iter().filter(|path| path.state == PathState::Usable);
        let usable: Vec<_> = usable.map(|path| path.id).collect();
        let any = usable.get(draw.below(usable.len().max(1) as u64) as usize).copied();
        match (draw.below(4), any) {
            (0, Some(path)) if usable.len() > 1 => {
                if connection.remove_path(path).is_ok() {
                    count(&counts.paths_abandoned);
                }
            }
            (1, Some(path)) => {
                let status = [PathStatus::Available, PathStatus::Backup][draw.below(2) as usize];
                // It may have gone meanwhile, as below.
                let _ = connection.set_path_status(path, status);
                let _ = connection.ping(path);
            }
            _ => {
                let via = self.device.uplink(draw.below(4));
                let opened = timeout(Duration::from_secs(3), connection.add_path(via)).await;
                if let Ok(Ok(_)) = opened {
                    count(&counts.paths_opened);
                }
            }
        }
    }
}

/// Who uses a connection.
struct User {
    world: Arc<World>,
    connection: Connection,
    lost: Arc<AtomicBool>,
    until: Instant,
}

/// What became of a transfer.
enum Fault {
    Stalled,
    Broken(String),
    Corrupt,
}

impl User {
    async fn run(self, mut draw: Random) {
        loop {
            let pause = draw.below(self.world.idle.as_millis() as u64 / 2);
            let next = Instant::now() + Duration::from_millis(pause);
            sleep_until(next.min(self.until)).await;
            if next >= self.until {
                return;
            }
            let fault = self.transfer(&mut draw).await;
            let counts = &self.world.counts;
            if self.lost.load(Ordering::Relaxed) {
                if fault.is_err() {
                    return;
                }
                continue;
            }
            match fault {
                Ok(bytes) => {
                    count(&counts.transfers);
                    add(&counts.bytes, bytes);
                }
                Err(fault) => {
                    let (counter, what) = match fault {
                        Fault::Stalled => (&counts.stalls, "stalled".to_owned()),
                        Fault::Broken(error) => (&counts.broken, error),
                        Fault::Corrupt => (&counts.corrupt, "other bytes".to_owned()),
                    };
                    count(counter);
                    let paths = self.connection.paths();
                    println!("a transfer: {what}");
                    for path in paths {
                        let sample = path.sample;
                        println!("    {} {:?} {:?}", path.id.0, path.state, sample);
                    }
                    return;
                }
            }
        }
    }

    /// Asks for something, and checks the answer. Returns the bytes both ways.
    async fn transfer(&self, draw: &mut Random) -> Result<usize, Fault> {
        let up = (1 << draw.below(14)) + draw.below(1 << 10) as usize;
        let down = (1 << draw.below(17)) + draw.below(1 << 10) as usize;
        let request = Request { up, down, key: draw.below(u64::MAX) };
        let noise = &self.world.noise;
        let (mut send, mut receive) = self.in_time(self.connection.open_bidirectional()).await?;
        let ask = [&request.to_bytes()[..], noise.piece(request.key, up)].concat();
        self.in_time(send.write_bytes(ask.into())).await?;
        send.finish().map_err(|error| Fault::Broken(error.to_string()))?;
        let expected = noise.piece(request.back(), down);
        let (mut buffer, mut at) = (vec![0; 16 << 10], 0);
        while let Some(read) = self.in_time(receive.read(&mut buffer)).await? {
            let mut got = &buffer[..read];
            if at == 0 && got.first() != Some(&RIGHT) {
                return Err(Fault::Corrupt);
            }
            got = if at == 0 { &got[1..] } else { got };
            let from = at.max(1) - 1;
            if expected.get(from..from + got.len()) != Some(got) {
                return Err(Fault::Corrupt);
            }
            at += read;
        }
        if at == down + 1 { Ok(up + down) } else { Err(Fault::Corrupt) }
    }

    /// A step that has to come within [`STALL`].
    async fn in_time<R, E: ToString>(
        &self,
        step: impl Future<Output = Result<R, E>>,
    ) -> Result<R, Fault> {
        let ticks = || self.world.ticks.load(Ordering::Relaxed);
        let begin = ticks();
        tokio::pin!(step);
        let result = loop {
            match timeout(TICK * 10, &mut step).await {
                Ok(result) => break result.map_err(|error| Fault::Broken(error.to_string())),
                Err(_) if ticks() - begin >= STALL.max(self.patience()) => {
                    break Err(Fault::Stalled);
                }
                Err(_) => {}
            }
        };
        if !self.lost.load(Ordering::Relaxed) {
            let pause = &self.world.counts.longest_pause;
            pause.fetch_max(ticks() - begin, Ordering::Relaxed);
        }
        result
    }

    /// Probe timeouts that a transfer bridges, in ticks: round trips of a busy machine are long.
    fn patience(&self) -> u64 {
        let timeout = |path: quipu_tokio::PathInfo| {
            let sample = path.sample;
            sample.srtt.unwrap_or_default().as_nanos() + 4 * sample.rttvar.as_nanos()
        };
        let longest = self.connection.paths().into_iter().map(timeout).max().unwrap_or(0);
        4 * longest / TICK.as_nanos() as u64
    }
}
