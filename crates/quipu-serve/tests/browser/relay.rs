//! A link between a client and a server on this machine: datagrams that cross it meet a [`Link`] of the simulator in each
//! direction, whose time is that of this machine.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_base::{Bytes, Seed};
use quipu_link::{Link, LinkConfig, LinkStats, Verdict, ecn};

/// How long a thread waits before it looks whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// A relay of UDP. Clients send to its [`address`](Self::address), and the server sees one address for each client.
pub(crate) struct Relay {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    down: Arc<Mutex<LinkStats>>,
    threads: Vec<JoinHandle<()>>,
}

/// A datagram that came to one of the links, and where it goes to from the far end.
struct Offered {
    at: Instant,
    is_up: bool,
    datagram: Datagram,
}

#[derive(Clone)]
struct Datagram {
    bytes: Vec<u8>,
    from: Arc<UdpSocket>,
    to: SocketAddr,
}

impl Relay {
    /// A path to `server` over the link `up` and back over the link `down`.
    pub(crate) fn start(server: SocketAddr, up: &LinkConfig, down: &LinkConfig) -> Relay {
        let is_over = Arc::new(AtomicBool::new(false));
        let socket = Arc::new(socket().unwrap());
        let address = socket.local_addr().unwrap();
        let (offers, offered) = mpsc::channel();
        let stats = Arc::new(Mutex::new(LinkStats::default()));
        let (configs, told) = ([up.clone(), down.clone()], stats.clone());
        let links = std::thread::spawn(move || carry(&configs, &offered, &told));
        let over = is_over.clone();
        let clients = move || take_from_clients(&socket, server, &offers, &over);
        let threads = vec![std::thread::spawn(clients), links];
        Relay { address, is_over, down: stats, threads }
    }

    /// Where clients send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the link to the clients has seen so far.
    pub(crate) fn down(&self) -> LinkStats {
        *self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Carries datagrams over the links, up and down, until nobody offers any.
fn carry(configs: &[LinkConfig; 2], offered: &Receiver<Offered>, down: &Mutex<LinkStats>) {
    let seed = Seed::new(1);
    let link = |index: usize| Link::new(&configs[index], seed.child("link", index as u64)).unwrap();
    let mut links = [link(0), link(1)];
    let begun = Instant::now();
    let since = |at: Instant| {
        let elapsed = at.saturating_duration_since(begun).as_nanos();
        quipu_base::Instant::from_nanos(u64::try_from(elapsed).unwrap())
    };
    // By time of arrival, then in order of the offers.
    let mut on_the_way: BTreeMap<(quipu_base::Instant, u64), Datagram> = BTreeMap::new();
    let mut count = 0;
    loop {
        let now = since(Instant::now());
        while let Some(next) = on_the_way.first_entry().filter(|next| next.key().0 <= now) {
            let Datagram { bytes, from, to } = next.remove();
            // A host that is gone receives nothing.
            let _ = from.send_to(&bytes, to);
        }
        let next = on_the_way.keys().next();
        let wait = next.map_or(TICK, |&(at, _)| Duration::from_nanos((at - now).as_nanos()));
        let Offered { at, is_up, datagram } = match offered.recv_timeout(wait) {
            Ok(offered) => offered,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let link = &mut links[usize::from(!is_up)];
        let size = Bytes(datagram.bytes.len() as u64);
        let verdict = link.offer(since(at), size, ecn::NOT_ECT);
        if !is_up {
            *down.lock().unwrap_or_else(PoisonError::into_inner) = *link.stats();
        }
        if let Verdict::Deliver { at, duplicate_at, .. } = verdict {
            for at in [Some(at), duplicate_at].into_iter().flatten() {
                count += 1;
                on_the_way.insert((at, count), datagram.clone());
            }
        }
    }
}

/// Takes what clients send. Each client has a socket towards the server.
fn take_from_clients(
    socket: &Arc<UdpSocket>,
    server: SocketAddr,
    offers: &Sender<Offered>,
    is_over: &Arc<AtomicBool>,
) {
    let mut clients: BTreeMap<SocketAddr, Arc<UdpSocket>> = BTreeMap::new();
    let mut threads = Vec::new();
    receive(socket, is_over, |at, bytes, client| {
        let own = clients.entry(client).or_insert_with(|| {
            let own = Arc::new(self::socket().unwrap());
            let (from_server, to_client) = (own.clone(), socket.clone());
            let (offers, is_over) = (offers.clone(), is_over.clone());
            threads.push(std::thread::spawn(move || {
                receive(&from_server, &is_over, |at, bytes, _| {
                    let datagram = Datagram { bytes, from: to_client.clone(), to: client };
                    let _ = offers.send(Offered { at, is_up: false, datagram });
                });
            }));
            own
        });
        let datagram = Datagram { bytes, from: own.clone(), to: server };
        let _ = offers.send(Offered { at, is_up: true, datagram });
    });
    for thread in threads {
        let _ = thread.join();
    }
}

/// Gives each datagram, when it came and from where to `take`, until the relay is dropped.
fn receive(
    socket: &UdpSocket,
    is_over: &AtomicBool,
    mut take: impl FnMut(Instant, Vec<u8>, SocketAddr),
) {
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        // Nothing may come for a while, and errors are those of datagrams that were sent earlier.
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            take(Instant::now(), buffer[..length].to_vec(), from);
        }
    }
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    // Bursts are to wait in the link's queue, not be lost in that of the socket. The kernel may give less.
    socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20)?;
    socket.set_read_timeout(Some(TICK))?;
    Ok(socket)
}

mod tests {
    use quipu_base::Rate;
    use quipu_link::QueueLimit;

    use super::*;
    use crate::alone;

    /// UDP payload of which 1,000 datagrams are 10 Mbit with headers.
    const PAYLOAD: usize = 1_222;

    /// Sends datagrams faster than any link here, and slowly enough for the queue of a socket.
    fn send(server: &UdpSocket, client: SocketAddr, count: usize, payload: usize) {
        for number in 0..count {
            server.send_to(&vec![0; payload], client).unwrap();
            if number % 10 == 9 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The median delay to the server, and the share of the rate that a transfer of one second to the client gets.
    fn measure(mbit: u64) -> (Duration, f64) {
        let delay = quipu_base::Duration::from_millis(20);
        let link =
            LinkConfig::new(Rate::from_mbit_per_sec(mbit), delay).with_queue(QueueLimit::Unlimited);
        let server = socket().unwrap();
        let relay = Relay::start(server.local_addr().unwrap(), &link, &link);
        let client = socket().unwrap();
        let mut buffer = [0; 2_000];
        let mut delays = Vec::new();
        let mut relayed = relay.address();
        for _ in 0..21 {
            let begun = Instant::now();
            client.send_to(b"request", relay.address()).unwrap();
            relayed = receive_from(&server, &mut buffer).1;
            delays.push(begun.elapsed());
        }
        delays.sort_unstable();
        assert!(delays[0] >= Duration::from_millis(20), "{delays:?}");
        let count = mbit as usize * 100;
        let took = std::thread::scope(|scope| {
            scope.spawn(|| send(&server, relayed, count, PAYLOAD));
            let mut arrivals = (0..count).map(|_| {
                assert_eq!(receive_from(&client, &mut buffer).0, PAYLOAD);
                Instant::now()
            });
            let first = arrivals.next().unwrap();
            arrivals.last().unwrap() - first
        });
        let bits = (count - 1) as f64 * 10_000.0;
        (delays[delays.len() / 2], bits / took.as_secs_f64() / (mbit as f64 * 1e6))
    }

    /// Waits for some seconds.
    fn receive_from(socket: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr) {
        (0..50).find_map(|_| socket.recv_from(buffer).ok()).unwrap()
    }

    #[test]
    fn a_transfer_has_the_rate_and_the_delay_of_its_link() {
        let _alone = alone();
        for mbit in [5, 20, 50] {
            // A busy machine may spoil one of them.
            let is_close = |&(delay, share): &(Duration, f64)| {
                eprintln!("{mbit} Mbit/s: {:.2} % of the rate, {delay:?} up", share * 100.0);
                delay < Duration::from_millis(22) && (share - 1.0).abs() < 0.03
            };
            assert!((0..5).map(|_| measure(mbit)).any(|found| is_close(&found)));
        }
    }

    #[test]
    fn a_full_queue_drops() {
        let _alone = alone();
        let delay = quipu_base::Duration::from_millis(1);
        let link =
            LinkConfig::new(Rate::from_mbit_per_sec(5), delay).with_queue(QueueLimit::packets(10));
        let server = socket().unwrap();
        let relay = Relay::start(server.local_addr().unwrap(), &link, &link);
        let client = socket().unwrap();
        client.send_to(b"request", relay.address()).unwrap();
        let mut buffer = [0; 2_000];
        let (_, relayed) = server.recv_from(&mut buffer).unwrap();
        send(&server, relayed, 100, 1_472);
        let mut received = 0;
        while client.recv_from(&mut buffer).is_ok() {
            received += 1;
        }
        assert!((10..60).contains(&received), "{received}");
        let stats = relay.down();
        assert_eq!((stats.offered.datagrams, stats.delivered.datagrams), (100, received));
    }
}
