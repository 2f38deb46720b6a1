//! What the processes in the namespaces do. Each is a test of this program that runs on request only.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use quipu_base::Bytes;
use quipu_policy::{PathState, Registry};
use quipu_tokio::identity::{Pin, pinned, self_signed};
use quipu_tokio::uplink::{Usable, uplinks};
use quipu_tokio::{
    ClientConfig, Connection, Endpoint, PathInfo, ServerConfig, TransportConfig, Uplink, Via,
    policies,
};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::network::{give_ends, ip, make_links, set_up};

/// The variable that says who cuts the second link.
pub(crate) const CUT: &str = "QUIPU_TEST_CUT";

const ALPN: &[u8] = b"cut";
const SIZE: usize = 16 << 20;
/// No read may take longer. Our choice: a path that fell silent is left after a probe timeout.
const MOST: Duration = Duration::from_secs(2);

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// A server in a namespace of its own, and how to talk to it.
struct Server {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Server {
        let mut child = Command::new("unshare")
            .arg("-n")
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "roles::server", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Server { child, commands, answers }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    /// The rest of the next line that begins so.
    fn answer(&mut self, start: &str) -> String {
        let mut line = String::new();
        while self.answers.read_line(&mut line).unwrap() > 0 {
            if let Some(at) = line.find(start) {
                return line[at + start.len()..].trim().to_owned();
            }
            line.clear();
        }
        unreachable!("the server said nothing of {start}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by the other tests, in a namespace"]
fn client() {
    let Ok(cut) = std::env::var(CUT) else { return };
    make_links();
    let mut server = Server::start();
    server.answer("ready");
    give_ends(server.child.id());
    server.tell("begin");
    set_up("v0", "10.0.1.1/24");
    set_up("v1", "10.0.2.1/24");
    // The default route by which datagrams would leave but for the device that a socket is bound to.
    ip("route add default via 10.0.1.2 dev v0 metric 100");
    ip("route add default via 10.0.2.2 dev v1 metric 200");
    let pin: Pin = server.answer("pin ").parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let experience = experience(pin, &cut, &mut server);
        timeout(Duration::from_secs(15), experience).await.expect("the client ends in time");
    });
}

async fn experience(pin: Pin, cut: &str, server: &mut Server) {
    let tls = Arc::new(pinned(pin, &[ALPN]).unwrap());
    let policies = policies(&Registry::builtin(), "").unwrap();
    let max_paths = if cut == "only" { 1 } else { TransportConfig::default().max_paths };
    let transport = TransportConfig { max_paths, ..TransportConfig::default() };
    let config = ClientConfig::new(tls, Arc::new(transport), policies);
    // The kernel tells of a carrier up to a second late.
    while uplinks().unwrap().iter().filter(|uplink| uplink.usable == Usable::Yes).count() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if cut == "replaced" {
        ip("link set v1 down");
    }
    let builder = Endpoint::client().via(Via::Auto);
    let builder = match cut {
        // Less than what waits in front of the link.
        "blocked" => builder.kernel_buffer(Bytes(30_000)),
        _ => builder,
    };
    let endpoint = builder.bind().unwrap();
    let names: Vec<_> = endpoint.uplinks().iter().map(|up| up.interface.clone().unwrap()).collect();
    assert_eq!(names, if cut == "replaced" { &["v0"][..] } else { &["v0", "v1"] });
    let address = "10.0.1.2:4433".parse().unwrap();
    let connection = endpoint.connect(&config, address, "server").await.unwrap();
    if matches!(cut, "only" | "replaced") {
        moved(&connection, cut == "replaced").await;
        connection.close(0, b"");
        endpoint.wait_idle_for(quipu_base::Duration::from_secs(1)).await;
        return;
    }
    both_usable(&connection).await;
    let mut uncut = !matches!(cut, "none" | "blocked" | "told");
    download(&connection, |at| {
        if at > SIZE / 3 && std::mem::take(&mut uncut) {
            let carried = carried(&connection);
            assert!(carried.iter().all(|bytes| *bytes > 1 << 20), "{carried:?}");
            match cut {
                "server" => server.tell("cut"),
                _ => ip("link set v1 down"),
            }
        }
    })
    .await;
    if cut == "none" {
        let carried = carried(&connection);
        assert!(carried.iter().all(|bytes| *bytes > 1 << 20), "{carried:?}");
    }
    if cut == "blocked" {
        upload(&connection, server).await;
        let sent = endpoint.stats().sent;
        assert!(sent.blocked > 10, "{sent:?}");
        let of_path = |path: &PathInfo| path.sample.counters.bytes_sent;
        let carried: Vec<u64> = connection.paths().iter().map(of_path).collect();
        assert!(carried.iter().all(|bytes| *bytes > 1 << 20), "{carried:?}");
    }
    if cut == "back" {
        timeout(Duration::from_secs(4), one_path(&connection)).await.unwrap();
        ip("link set v1 up");
        ip("route add default via 10.0.2.2 dev v1 metric 200");
        timeout(Duration::from_secs(4), both_usable(&connection)).await.unwrap();
        download(&connection, |_| {}).await;
        let carried = carried(&connection);
        assert!(carried[1] > 1 << 20, "{carried:?}");
    }
    if cut == "told" {
        told(&connection, server).await;
    }
    connection.close(0, b"");
    endpoint.wait_idle_for(quipu_base::Duration::from_secs(1)).await;
}

/// Downloads [`SIZE`] bytes; `read` hears of how many came so far.
async fn download(connection: &Connection, mut read: impl FnMut(usize)) {
    let (mut send, mut receive) = connection.open_bidirectional().await.unwrap();
    send.write_all(b"go").await.unwrap();
    send.finish().unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while let Some(came) = timeout(MOST, receive.read(&mut buffer)).await.unwrap().unwrap() {
        assert!((at..).zip(&buffer[..came]).all(|(at, found)| *found == byte(at)), "at {at}");
        at += came;
        read(at);
    }
    assert_eq!(at, SIZE);
}

/// The uplink of the only path goes down in the middle of a transfer, and the other carries the rest. `later`: that
/// comes only then.
async fn moved(connection: &Connection, later: bool) {
    let mut uncut = true;
    download(connection, |at| {
        if at > SIZE / 3 && std::mem::take(&mut uncut) {
            assert_eq!(connection.paths().len(), 1);
            ip("link set v0 down");
            if later {
                ip("link set v1 up");
                ip("route add default via 10.0.2.2 dev v1 metric 200");
            }
        }
    })
    .await;
    let of_v1 = |path: &PathInfo| path.interface.as_deref() == Some("v1");
    let paths = connection.paths();
    let path = paths.iter().find(|path| of_v1(path)).unwrap();
    assert!(path.sample.counters.bytes_received > 1 << 20, "{paths:?}");
    // Then there is nothing to do: uplinks are looked at once a second.
    let before = clock_gettime(ClockId::ProcessCPUTime);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let busy = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime) - before).unwrap();
    assert!(busy < Duration::from_millis(300), "{busy:?} on processors");
}

/// Uploads [`SIZE`] bytes, which the server compares.
async fn upload(connection: &Connection, server: &mut Server) {
    let mut send = connection.open_unidirectional().await.unwrap();
    let data: Vec<u8> = (0..SIZE).map(byte).collect();
    send.write_all(&data).await.unwrap();
    send.finish().unwrap();
    send.delivered().await.unwrap();
    assert_eq!(server.answer("uploaded "), "whole");
}

/// Nothing is sent: that a link has no carrier any more, and later has it again, only the kernel tells.
async fn told(connection: &Connection, server: &mut Server) {
    // Soon enough to be no look at the uplinks by chance, of which there is one a second.
    let at_once = Duration::from_millis(300);
    for _ in 0..3 {
        server.tell("cut");
        server.answer("cut");
        // The kernel itself may take a second.
        timeout(Duration::from_secs(4), v1(Usable::Down)).await.expect("the carrier is lost");
        timeout(at_once, one_path(connection)).await.expect("the path is abandoned at once");
        server.tell("join");
        server.answer("joined");
        timeout(Duration::from_secs(4), both_usable(connection)).await.expect("it is back");
    }
}

async fn v1(usable: Usable) {
    let is_so =
        |uplink: &Uplink| uplink.interface.as_deref() == Some("v1") && uplink.usable == usable;
    while !uplinks().unwrap().iter().any(is_so) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn one_path(connection: &Connection) {
    while connection.paths().len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn both_usable(connection: &Connection) {
    while usable(connection) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn usable(connection: &Connection) -> usize {
    connection.paths().iter().filter(|path| path.state == PathState::Usable).count()
}

/// Bytes that came by each path.
fn carried(connection: &Connection) -> Vec<u64> {
    connection.paths().iter().map(|path| path.sample.counters.bytes_received).collect()
}

#[test]
#[ignore = "run by the other tests, in a namespace"]
fn server() {
    if std::env::var(CUT).is_err() {
        return;
    }
    println!("ready");
    let mut commands = BufReader::new(std::io::stdin()).lines();
    assert_eq!(commands.next().unwrap().unwrap(), "begin");
    ip("link set lo up");
    set_up("w0", "10.0.1.2/24");
    set_up("w1", "10.0.2.2/24");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (tls, pin) = self_signed("server", &[ALPN]).unwrap();
        let policies = policies(&Registry::builtin(), "").unwrap();
        let transport = Arc::new(TransportConfig::default());
        let config = ServerConfig::new(Arc::new(tls), transport, policies);
        let builder = Endpoint::server(config).listen("0.0.0.0:4433".parse().unwrap());
        let endpoint = builder.bind().unwrap();
        println!("pin {pin}");
        std::thread::spawn(move || {
            while let Some(Ok(line)) = commands.next() {
                match line.as_str() {
                    "cut" => ip("link set w1 down"),
                    _ => ip("link set w1 up"),
                }
                println!("{}", if line == "cut" { "cut" } else { "joined" });
            }
        });
        let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
        let data: Vec<u8> = (0..SIZE).map(byte).collect();
        let (uploads, expected) = (connection.clone(), data.clone());
        tokio::spawn(async move {
            while let Ok(mut receive) = uploads.accept_unidirectional().await {
                let read = receive.read_to_limit(SIZE).await.unwrap();
                println!("uploaded {}", if read == expected { "whole" } else { "changed" });
            }
        });
        while let Ok((mut send, _receive)) = connection.accept_bidirectional().await {
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
        }
    });
}
