//! Two hosts in one process: the client's namespace is that of the process, the server's that of one
//! of its threads. So one clock tells when what happened.
//!
//! A third link is for [heartbeats](super::heartbeat) alone. The client has `v0` with 10.1.0.1 and
//! `v1` with 10.1.1.1, by each of which a default route leads to the server: `w0` with 10.1.0.2 and
//! `w1` with 10.1.1.2. It serves at 10.0.0.1, which is on neither.

use std::net::UdpSocket;
use std::sync::mpsc;

use nix::sched::{CloneFlags, unshare};
use quipu_tokio::Uplink;
use quipu_tokio::uplink::{Usable, uplinks};
use tokio::runtime::{Builder, Runtime};

use super::script::{Kind, Shape};
use crate::network::ip;

pub(crate) const SERVER: &str = "10.0.0.1:4433";

/// A hardware address that nobody has: whatever is sent there, nobody takes.
const NOBODY: &str = "02:00:00:00:00:99";

type Task = Box<dyn FnOnce() + Send>;

/// The server's namespace.
struct There {
    /// Number of its thread.
    thread: String,
    tasks: mpsc::Sender<Task>,
}

impl There {
    fn start() -> There {
        let (tasks, waiting) = mpsc::channel::<Task>();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            tell.send(own.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
            while let Ok(task) = waiting.recv() {
                task();
            }
        });
        There { thread: told.recv().unwrap(), tasks }
    }

    /// Runs `task` there and waits for it.
    fn run<R: Send + 'static>(&self, task: impl FnOnce() -> R + Send + 'static) -> R {
        let (tell, told) = mpsc::channel();
        self.tasks.send(Box::new(move || drop(tell.send(task())))).unwrap();
        told.recv().expect("the task ends")
    }

    fn ip(&self, arguments: String) {
        self.run(move || ip(&arguments));
    }
}

/// The links between both.
pub(crate) struct World {
    there: There,
    shapes: [Shape; 2],
}

impl World {
    /// To be called once, in a network namespace of one's own.
    pub(crate) fn new(shapes: [Shape; 2]) -> World {
        ip("link set lo up");
        let world = World { there: There::start(), shapes };
        world.there.ip("link set lo up".to_owned());
        world.there.ip("address add 10.0.0.1/32 dev lo".to_owned());
        world.join(0);
        world.join(1);
        world.join_heartbeats();
        world
    }

    /// A link that is never cut, and faster than the others.
    fn join_heartbeats(&self) {
        ip("link add beats type veth peer name heard");
        ip(&format!("link set heard netns {}", self.there.thread));
        self.there.ip("address add 10.2.0.2/24 dev heard".to_owned());
        self.there.ip("link set heard up".to_owned());
        ip("address add 10.2.0.1/24 dev beats");
        ip("link set beats up");
        limit("beats", Shape { rate: 1_000, queue: 20 });
    }

    /// Two sockets, the client's and the server's, over that link.
    pub(crate) fn heartbeat_sockets(&self) -> (UdpSocket, UdpSocket) {
        let there = self.there.run(|| UdpSocket::bind("10.2.0.2:0").unwrap());
        let here = UdpSocket::bind("10.2.0.1:0").unwrap();
        here.connect(there.local_addr().unwrap()).unwrap();
        (here, there)
    }

    /// A runtime whose sockets are the server's.
    pub(crate) fn server_runtime(&self) -> Runtime {
        self.there
            .run(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
    }

    /// Makes a link.
    fn join(&self, link: usize) {
        let there = &self.there;
        ip(&format!("link add v{link} type veth peer name w{link}"));
        ip(&format!("link set w{link} netns {}", there.thread));
        there.ip(format!("address add 10.1.{link}.2/24 dev w{link}"));
        there.ip(format!("link set w{link} up"));
        limit(&format!("v{link}"), self.shapes[link]);
        let shape = self.shapes[link];
        there.run(move || limit(&format!("w{link}"), shape));
        ip(&format!("address add 10.1.{link}.1/24 dev v{link}"));
        ip(&format!("link set v{link} up"));
        route(link);
        ask_neighbours_often(&format!("v{link}"));
        there.run(move || ask_neighbours_often(&format!("w{link}")));
    }

    /// True if the server's host says that its end has a carrier. It may be told later than the client's,
    /// and throws away what it sends before.
    pub(crate) fn is_up_there(&self, link: usize) -> bool {
        let name = format!("w{link}");
        self.there.run(move || {
            let is_up = |uplink: &Uplink| {
                uplink.interface.as_ref() == Some(&name) && uplink.usable != Usable::Down
            };
            uplinks().unwrap_or_default().iter().any(is_up)
        })
    }

    pub(crate) fn cut(&self, link: usize, kind: Kind) {
        let up = format!("neigh replace 10.1.{link}.2 lladdr {NOBODY} nud permanent dev v{link}");
        let down = format!("neigh replace 10.1.{link}.1 lladdr {NOBODY} nud permanent dev w{link}");
        match kind {
            Kind::Carrier => self.there.ip(format!("link set w{link} down")),
            Kind::Down => ip(&format!("link set v{link} down")),
            Kind::Device => ip(&format!("link del v{link}")),
            Kind::Address => ip(&format!("address del 10.1.{link}.1/24 dev v{link}")),
            Kind::Silent => {
                ip(&up);
                self.there.ip(down);
            }
            Kind::SilentUp => ip(&up),
            Kind::SilentDown => self.there.ip(down),
        }
    }

    pub(crate) fn mend(&self, link: usize, kind: Kind) {
        let up = format!("neigh del 10.1.{link}.2 dev v{link}");
        let down = format!("neigh del 10.1.{link}.1 dev w{link}");
        match kind {
            Kind::Carrier => self.there.ip(format!("link set w{link} up")),
            Kind::Down => {
                ip(&format!("link set v{link} up"));
                route(link);
            }
            Kind::Device => self.join(link),
            Kind::Address => {
                ip(&format!("address add 10.1.{link}.1/24 dev v{link}"));
                route(link);
            }
            Kind::Silent => {
                ip(&up);
                self.there.ip(down);
            }
            Kind::SilentUp => ip(&up),
            Kind::SilentDown => self.there.ip(down),
        }
    }
}

/// The default route by that link, as a host's network manager sets it.
fn route(link: usize) {
    ip(&format!("route replace default via 10.1.{link}.2 dev v{link} metric {}00", link + 1));
}

/// The kernel repeats its question for a neighbour after a second. The first may be lost where a carrier
/// has just come back, and then nothing can leave by that link meanwhile: here it is repeated sooner.
fn ask_neighbours_often(end: &str) {
    let path = format!("/proc/sys/net/ipv4/neigh/{end}/retrans_time_ms");
    std::fs::write(&path, "100").expect(&path);
}

fn limit(end: &str, Shape { rate, queue }: Shape) {
    let limit =
        format!("qdisc add dev {end} root tbf rate {rate}mbit burst 16kb latency {queue}ms");
    let output = std::process::Command::new("tc").args(limit.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tc {limit}: {error}");
}
