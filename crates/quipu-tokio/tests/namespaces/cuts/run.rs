//! One script, from the handshake to the last byte, and what is found wrong with it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use quipu_base::{Bytes, PathId};
use quipu_policy::{PathState, Registry};
use quipu_tokio::identity::{pinned, self_signed};
use quipu_tokio::uplink::{Usable, uplinks};
use quipu_tokio::{
    ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, Via, policies,
};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::heartbeat::Heartbeat;
use super::script::{Cut, Script};
use super::traffic::Way;
use super::world::{SERVER, World};

const ALPN: &[u8] = b"cuts";

/// A path is in use once so many bytes came by it: more than what probes of a path have.
const IN_USE: u64 = 40_000;

/// A link that is back is to be in use again within this time.
const AGAIN: Duration = Duration::from_secs(1);

/// What the host takes is forgiven, and this: the threads that measure it wake a millisecond late
/// themselves, and a stall is made of some ten wake-ups of tasks in both ends. Our choice.
const SLACK: Duration = Duration::from_millis(10);

/// Nothing takes so long unless it never ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one cut did.
#[derive(Clone, Debug)]
pub(crate) struct Stall {
    pub(crate) cut: Cut,
    pub(crate) longest: Duration,
    /// Three round trips and a probe timeout.
    pub(crate) limit: Duration,
    /// Time in it that the host was late.
    pub(crate) late: Duration,
    /// From when both hosts had the link again until data came by it.
    pub(crate) again: Option<Duration>,
}

impl Stall {
    /// The part of what is allowed that it took, what the host took not counted.
    pub(crate) fn part(&self) -> f64 {
        self.longest.saturating_sub(self.late).as_secs_f64() / self.limit.as_secs_f64()
    }

    fn is_too_long(&self) -> bool {
        self.longest > self.limit + self.late + SLACK
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (longest, limit, late) = (ms(self.longest), ms(self.limit), ms(self.late));
        write!(f, "{}: stalled {longest:.1} ms of {limit:.1}, host late {late:.1}", self.cut)?;
        match self.again {
            Some(again) => write!(f, ", used again after {:.1}", ms(again)),
            None => Ok(()),
        }
    }
}

/// What came of a script.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) stalls: Vec<Stall>,
    pub(crate) bytes: u64,
    /// What was lost, changed or never used again.
    pub(crate) faults: Vec<String>,
    /// What took longer than it may.
    pub(crate) delays: Vec<String>,
}

/// Runs a script; to be called once, in a network namespace of one's own.
pub(crate) fn run(seed: u64) -> Report {
    let script = Script::new(seed);
    let world = World::new(script.links);
    let there = world.server_runtime();
    let here = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut report = Report::default();
    let mut play = Play::start(seed, script, world, there.handle().clone());
    here.block_on(async {
        if let Err(fault) = play.run(&mut report).await {
            report.faults.push(fault);
        }
    });
    report
}

struct Play {
    script: Script,
    world: World,
    there: tokio::runtime::Handle,
    heartbeat: Heartbeat,
    /// To the client, and to the server.
    ways: [Way; 2],
}

/// Both ends of the connection; the server's first, which sends what goes down.
type Ends = [Connection; 2];

impl Play {
    fn start(seed: u64, script: Script, world: World, there: tokio::runtime::Handle) -> Play {
        let ways = [0, 1].map(|way| Way::new(seed * 2 + way, script.piece));
        let heartbeat = Heartbeat::start(&world);
        Play { script, world, there, heartbeat, ways }
    }

    async fn run(&mut self, report: &mut Report) -> Result<(), String> {
        let (endpoint, ends) = self.connect().await?;
        let mut transfers = Vec::new();
        for (nth, way) in self.ways.iter().enumerate() {
            let streams = self.script.streams[nth];
            if streams == 0 {
                continue;
            }
            let (sender, receiver) = (ends[nth].clone(), ends[1 - nth].clone());
            transfers.push(tokio::spawn(way.clone().send(sender, streams)));
            transfers.push(tokio::spawn(way.clone().receive(receiver, streams)));
        }
        let played = self.play(&ends, report).await;
        self.ways.iter().for_each(Way::stop);
        for transfer in transfers {
            let ended = timeout(PATIENCE, transfer).await.map_err(|_| "a transfer never ends")?;
            ended.map_err(|error| error.to_string())??;
        }
        played?;
        for way in &self.ways {
            let (sent, received) = way.moved();
            if sent != received {
                report.faults.push(format!("{received} of {sent} bytes arrived"));
            }
            report.bytes += received;
        }
        drop(endpoint);
        Ok(())
    }

    async fn connect(&self) -> Result<(Endpoint, Ends), String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let (tls, pin) = self_signed("server", &[ALPN]).unwrap();
        let policies = policies(&Registry::builtin(), self.script.policies).unwrap();
        // What was written when the script is over has to arrive soon.
        let transport = TransportConfig { send_buffer: Bytes(1 << 20), ..Default::default() };
        let transport = Arc::new(transport);
        let config = ServerConfig::new(Arc::new(tls), Arc::clone(&transport), policies.clone());
        let (bound, listens) = oneshot::channel();
        let server = self.there.spawn(async move {
            let endpoint = Endpoint::server(config).listen(SERVER.parse().unwrap()).bind().unwrap();
            // The client may have given up already.
            let _ = bound.send(());
            let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
            // The endpoint lives as long as its connection.
            (endpoint, connection)
        });
        until_up(0).await?;
        until_up(1).await?;
        listens.await.map_err(|error| text(&error))?;
        let config =
            ClientConfig::new(Arc::new(pinned(pin, &[ALPN]).unwrap()), transport, policies);
        let client = Endpoint::client().via(Via::Auto).bind().map_err(|error| text(&error))?;
        let connecting = client.connect(&config, SERVER.parse().unwrap(), "server");
        let here = timeout(PATIENCE, connecting).await.map_err(|_| "the handshake never ends")?;
        let here = here.map_err(|error| text(&error))?;
        let (server, there) = server.await.map_err(|error| text(&error))?;
        drop(server);
        Ok((client, [there, here]))
    }

    async fn play(&self, ends: &Ends, report: &mut Report) -> Result<(), String> {
        let mut windows = Vec::new();
        let mut from = self.received(ends, |_| true);
        for cut in self.script.cuts.clone() {
            for link in [0, 1] {
                self.until_used(ends, link, &from, PATIENCE)
                    .await
                    .ok_or_else(|| format!("link {link} carries nothing, before {cut}"))?;
            }
            sleep(cut.after).await;
            let limits = [0, 1].map(|way| limit(&ends[way]));
            let begin = Instant::now();
            self.world.cut(cut.link, cut.kind);
            sleep(cut.lasts).await;
            let mut again = None;
            if cut.returns {
                from = self.received(ends, |_| true);
                self.world.mend(cut.link, cut.kind);
                until_up(cut.link).await?;
                while !self.world.is_up_there(cut.link) {
                    sleep(Duration::from_millis(2)).await;
                }
                let mended = Instant::now();
                again = self.until_used(ends, cut.link, &from, PATIENCE).await;
                let late = self.heartbeat.late(mended, Instant::now());
                match again {
                    Some(time) if time <= AGAIN + late + SLACK => {}
                    Some(time) => {
                        let time = time.as_millis();
                        report.delays.push(format!("{cut}: used again after {time} ms only"));
                    }
                    None => return Err(format!("{cut}: never used again")),
                }
                from = self.received(ends, |_| true);
            }
            windows.push((cut, limits, begin, Instant::now(), again));
        }
        // What came last may have had to wait.
        sleep(Duration::from_millis(100)).await;
        for (cut, limits, begin, end, again) in windows {
            for (nth, way) in self.ways.iter().enumerate() {
                if self.script.streams[nth] == 0 {
                    continue;
                }
                let (stopped, went_on) = way.longest_gap(begin, end);
                let late = self.heartbeat.late(stopped, went_on);
                let (longest, limit) = (went_on - stopped, limits[nth]);
                let stall = Stall { cut, longest, limit, late, again };
                if stall.is_too_long() {
                    let way = ["down", "up"][nth];
                    let since = stopped.saturating_duration_since(begin).as_millis();
                    report.delays.push(format!("{way}, {since} ms after the cut: {stall}"));
                }
                report.stalls.push(stall);
            }
        }
        Ok(())
    }

    /// Bytes that came by each path, at the end that receives, of the links that `of` takes.
    fn received(&self, ends: &Ends, of: impl Fn(usize) -> bool) -> BTreeMap<(usize, PathId), u64> {
        let mut all = BTreeMap::new();
        for way in (0..2).filter(|way| self.script.streams[*way] > 0) {
            for path in ends[1 - way].paths() {
                let client = [path.route.local.ip(), path.route.remote.ip()][way];
                if of(link_of(client)) && path.state == PathState::Usable {
                    all.insert((way, path.id), path.sample.counters.bytes_received);
                }
            }
        }
        all
    }

    /// Waits until data came by `link` since `from`, in each direction that has any: for how long.
    async fn until_used(
        &self,
        ends: &Ends,
        link: usize,
        from: &BTreeMap<(usize, PathId), u64>,
        limit: Duration,
    ) -> Option<Duration> {
        let begin = Instant::now();
        while begin.elapsed() < limit {
            let now = self.received(ends, |of| of == link);
            let came = |way: usize| {
                let paths = now.iter().filter(|((of, _), _)| *of == way);
                paths
                    .map(|(key, bytes)| bytes - from.get(key).unwrap_or(&0).min(bytes))
                    .sum::<u64>()
            };
            let used = |way: usize| self.script.streams[way] == 0 || came(way) >= IN_USE;
            if used(0) && used(1) {
                return Some(begin.elapsed());
            }
            sleep(Duration::from_millis(5)).await;
        }
        None
    }
}

/// The link that an address of the client is of.
fn link_of(client: IpAddr) -> usize {
    usize::from(client == IpAddr::from([10, 1, 1, 1]))
}

/// Waits until the host says that datagrams can leave by that link. The kernel takes up to a second to
/// tell of a carrier.
pub(crate) async fn until_up(link: usize) -> Result<(), String> {
    let name = format!("v{link}");
    let is_up = || {
        let uplinks = uplinks().unwrap_or_default();
        let own = |up: &quipu_tokio::Uplink| up.interface.as_deref() == Some(&name);
        uplinks.iter().any(|uplink| own(uplink) && uplink.usable == Usable::Yes)
    };
    let begin = Instant::now();
    while !is_up() {
        if begin.elapsed() > PATIENCE {
            return Err(format!("the kernel never has link {link} up"));
        }
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// How long data may stall when a link of this sender is cut now: three round trips and one probe
/// timeout, of the path on which each is longest.
/// <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1>
fn limit(sender: &Connection) -> Duration {
    let std = |time: quipu_base::Duration| Duration::from_nanos(time.as_nanos());
    let max_ack_delay = std(TransportConfig::default().max_ack_delay);
    let samples: Vec<_> = sender.paths().into_iter().map(|path| path.sample).collect();
    let measured = || samples.iter().filter_map(|sample| Some((std(sample.srtt?), sample.rttvar)));
    let round_trip = measured().map(|(srtt, _)| srtt).max().unwrap_or_default();
    let timeout = |(srtt, var): (Duration, quipu_base::Duration)| {
        srtt + (std(var) * 4).max(Duration::from_millis(1)) + max_ack_delay
    };
    round_trip * 3 + measured().map(timeout).max().unwrap_or_default()
}
