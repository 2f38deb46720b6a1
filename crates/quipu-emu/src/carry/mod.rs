//! The thread that carries packets: it takes them from devices, asks links, waits, and hands them over.

mod guard;
mod network;
mod pool;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use quipu_base::{Duration, Instant};
use quipu_link::LinkStats;

use crate::clock::{Clock, processor_time};
use crate::device::{Device, Statistics};
use crate::error::EmulationError;
use crate::lateness::{Lateness, Recorder};
use crate::links::Links;
use crate::packet;
use crate::scheduling::Scheduling;

use guard::Guard;
pub(crate) use network::Route;
use network::{Due, Network};
use pool::Pool;

/// Packets that are taken from a device before others have their turn.
const BATCH: usize = 32;
/// More packets do not wait in front of a device, unless a host sends as fast as they are taken.
const MOST_WAITING: usize = 1 << 16;
/// Events that one look at the devices may tell.
const EVENTS: usize = 64;

/// What [`Epoll`] calls the timer and the waker; devices have their numbers.
const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// A device, and the routes of what comes from it.
pub(crate) struct Port {
    pub(crate) device: Box<dyn Device>,
    /// By number of the host at the far end.
    pub(crate) routes: Vec<Option<u32>>,
    /// Its interface in the carrier's own namespace, if it has one there.
    pub(crate) interface: Option<String>,
}

/// What a carrier is made of.
pub(crate) struct Setup {
    pub(crate) ports: Vec<Port>,
    pub(crate) routes: Vec<Route>,
    /// The hosts that have an address, by address.
    pub(crate) hosts: Vec<(IpAddr, u32)>,
    /// Bytes of the longest packet.
    pub(crate) mtu: usize,
    /// Packets that may be under way at a time.
    pub(crate) most_packets: usize,
}

/// What a carrier is told.
pub(crate) enum Order {
    /// What it has done since the beginning.
    Report(Sender<Carried>),
    /// To tell that and begin anew with these links, of which there are as many.
    Renew(Links, Sender<Result<Carried, EmulationError>>),
    /// To end.
    Stop,
}

/// What a carrier has done since the beginning of a run.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) elapsed: Duration,
    pub(crate) processor: Duration,
    pub(crate) scheduling: Scheduling,
    pub(crate) lateness: Lateness,
    pub(crate) counts: Counts,
    pub(crate) links: Vec<LinkStats>,
    pub(crate) under_way: usize,
}

/// Packets that no link has seen, or no host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Those to which no route leads.
    pub(crate) unrouted: u64,
    /// Those that are no IP packets.
    pub(crate) unreadable: u64,
    /// Those that were longer than the interface's MTU.
    pub(crate) oversized: u64,
    /// Those that found too many others under way, and copies that did.
    pub(crate) no_room: u64,
    /// Those that a host did not take.
    pub(crate) failed_sends: u64,
    /// Those that a host did not take because its interface was down.
    pub(crate) interface_down: u64,
    /// Those that got lost in the kernel before a packet socket.
    pub(crate) unread: u64,
    /// Devices that can be read no longer.
    pub(crate) lost_devices: u64,
}

/// See the [module's description](self).
pub(crate) struct Carrier {
    clock: Clock,
    network: Network,
    ports: Vec<Taking>,
    hosts: Vec<(IpAddr, u32)>,
    mtu: usize,
    epoll: Epoll,
    timer: TimerFd,
    /// When the timer fires, and for what.
    armed: Option<(Instant, Instant)>,
    guard: Guard,
    waker: Arc<EventFd>,
    orders: Receiver<Order>,
    lateness: Recorder,
    counts: Counts,
    processor_before: Duration,
    scheduling_before: Scheduling,
}

/// A port, and what it has done.
struct Taking {
    port: Port,
    /// Packets read, and those of its interface at the beginning of the run.
    read: u64,
    before: u64,
}

impl Carrier {
    /// A carrier that looks at `orders` whenever `waker` is written to. Its time begins now.
    ///
    /// # Errors
    /// If the system has not what it needs.
    pub(crate) fn new(
        setup: Setup,
        links: Links,
        waker: Arc<EventFd>,
        orders: Receiver<Order>,
    ) -> Result<Self, EmulationError> {
        let Setup { ports, routes, mut hosts, mtu, most_packets } = setup;
        hosts.sort_unstable();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(EmulationError::system("make an epoll instance"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)
            .map_err(EmulationError::system("make a timer"))?;
        let watch = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        let mut added = epoll.add(&timer, watch(TIMER)).and(epoll.add(&*waker, watch(WAKER)));
        for (number, port) in ports.iter().enumerate() {
            added = added.and(epoll.add(port.device.descriptor(), watch(number as u64)));
        }
        added.map_err(EmulationError::system("watch a device"))?;
        // A byte more tells packets that are too long.
        let pool = Pool::new(mtu + 1, most_packets);
        let lateness = Recorder::new().map_err(|_| EmulationError::Ended)?;
        let mut carrier = Carrier {
            clock: Clock::start(),
            network: Network::new(pool, links.make().map_err(EmulationError::Links)?, routes),
            ports: ports.into_iter().map(|port| Taking { port, read: 0, before: 0 }).collect(),
            hosts,
            mtu,
            epoll,
            timer,
            armed: None,
            guard: Guard::new(),
            waker,
            orders,
            lateness,
            counts: Counts::default(),
            processor_before: Duration::ZERO,
            scheduling_before: Scheduling::default(),
        };
        carrier.begin();
        Ok(carrier)
    }

    /// Carries until it is told to stop.
    ///
    /// # Errors
    /// If the system lets it wait no longer.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            self.hand_over();
            let timeout = self.set_timer()?;
            let count = match self.epoll.wait(&mut events, timeout) {
                Err(Errno::EINTR) => 0,
                count => count?,
            };
            for event in &events[..count] {
                match event.data() {
                    TIMER => {
                        if let Some((fires_at, _)) = self.armed.take() {
                            self.guard.woken_after(self.clock.now().saturating_since(fires_at));
                        }
                        // It fires once, and the next look may be the one that finds nothing.
                        let _ = self.timer.wait();
                    }
                    WAKER => {
                        let _ = self.waker.read();
                        while let Ok(order) = self.orders.try_recv() {
                            if !self.obey(order) {
                                return Ok(());
                            }
                        }
                    }
                    number => self.take_from(number as usize, BATCH),
                }
            }
        }
    }

    /// Whether it is to go on.
    fn obey(&mut self, order: Order) -> bool {
        // Whoever asked may have gone.
        match order {
            Order::Stop => return false,
            Order::Report(answer) => {
                let _ = answer.send(self.report());
            }
            Order::Renew(links, answer) => {
                let carried = self.report();
                let renewed = links.make().map(|links| {
                    self.network.renew(links);
                    self.begin();
                    carried
                });
                let _ = answer.send(renewed.map_err(EmulationError::Links));
            }
        }
        true
    }

    /// A run begins.
    fn begin(&mut self) {
        self.counts = Counts::default();
        self.lateness.clear();
        self.armed = None;
        let statistics = self.own_statistics();
        for (port, received) in self.ports.iter_mut().zip(statistics) {
            (port.read, port.before) = (0, received.unwrap_or(0));
        }
        self.processor_before = processor_time();
        self.scheduling_before = Scheduling::of_this_thread();
        self.clock = Clock::start();
    }

    /// What has come to the interfaces in the carrier's own namespace, by port.
    fn own_statistics(&self) -> Vec<Option<u64>> {
        let interfaces: Vec<_> = self.ports.iter().map(|it| it.port.interface.as_deref()).collect();
        if interfaces.iter().all(Option::is_none) {
            return vec![None; interfaces.len()];
        }
        let all = Statistics::read().unwrap_or_default();
        let received = |name: &str| all.get(name).map(|statistics| statistics.received);
        interfaces.into_iter().map(|name| name.and_then(received)).collect()
    }

    fn report(&mut self) -> Carried {
        // First the counts, then what they count: what comes between is no loss.
        let statistics = self.own_statistics();
        for (number, received) in statistics.iter().enumerate() {
            if received.is_some() {
                self.take_from(number, MOST_WAITING);
            }
        }
        let missed = |(port, received): (&Taking, &Option<u64>)| {
            let received = received.map_or(0, |received| received.saturating_sub(port.before));
            received.saturating_sub(port.read)
        };
        self.counts.unread = self.ports.iter().zip(&statistics).map(missed).sum();
        Carried {
            elapsed: self.clock.now().saturating_since(Instant::ZERO),
            processor: processor_time().saturating_sub(self.processor_before),
            scheduling: Scheduling::of_this_thread().since(&self.scheduling_before),
            lateness: self.lateness.summary(),
            counts: Counts { no_room: self.counts.no_room + self.network.no_room(), ..self.counts },
            links: self.network.stats().copied().collect(),
            under_way: self.network.under_way(),
        }
    }

    /// Hands over all that is due.
    fn hand_over(&mut self) {
        loop {
            let now = self.clock.now();
            let Some(Due { packet, at, to }) = self.network.take_due(now) else { return };
            self.lateness.record(at, now);
            let bytes = self.network.packet(packet).bytes();
            match self.ports[to].port.device.send(bytes) {
                Ok(()) => {}
                Err(error) if is_down(&error) => self.counts.interface_down += 1,
                Err(_) => self.counts.failed_sends += 1,
            }
            self.network.discard(packet);
        }
    }

    /// Sets the timer for what is next. Returns how long to wait for it or for something to come: until then, or not at
    /// all.
    fn set_timer(&mut self) -> io::Result<EpollTimeout> {
        let Some(next) = self.network.next_at() else { return Ok(EpollTimeout::NONE) };
        let guard = self.guard.time();
        if next.saturating_since(self.clock.now()) <= guard {
            return Ok(EpollTimeout::ZERO);
        }
        if self.armed.is_none_or(|(_, armed_for)| armed_for != next) {
            let fires_at = Instant::from_nanos(next.as_nanos().saturating_sub(guard.as_nanos()));
            let expiration = Expiration::OneShot(self.clock.of_host(fires_at));
            self.timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            self.armed = Some((fires_at, next));
        }
        Ok(EpollTimeout::NONE)
    }

    /// Takes at most `most` packets from a device.
    fn take_from(&mut self, number: usize, most: usize) {
        for _ in 0..most {
            let Some(id) = self.network.empty_packet() else {
                return self.take_in_vain(number);
            };
            let Some(taking) = self.ports.get_mut(number) else { return self.network.discard(id) };
            let packet = self.network.packet(id);
            match taking.port.device.receive(&mut packet.buffer) {
                Ok(length) => {
                    packet.length = length;
                    taking.read += 1;
                }
                Err(error) => {
                    self.network.discard(id);
                    return self.look_at(number, &error);
                }
            }
            self.send(number, id);
        }
    }

    /// Lets a packet of a device go, if it leads anywhere.
    fn send(&mut self, number: usize, id: pool::PacketId) {
        let now = self.clock.now();
        let bytes = self.network.packet(id).bytes();
        let header = packet::read(bytes);
        let is_too_long = bytes.len() > self.mtu;
        let route = header.and_then(|header| {
            let place =
                self.hosts.binary_search_by_key(&header.to, |(address, _)| *address).ok()?;
            let (_, host) = self.hosts[place];
            Some((*self.ports[number].port.routes.get(host as usize)?.as_ref()?, header))
        });
        match route {
            _ if is_too_long => self.counts.oversized += 1,
            Some((route, header)) => return self.network.send(now, id, route, header),
            None if header.is_none() => self.counts.unreadable += 1,
            None => self.counts.unrouted += 1,
        }
        self.network.discard(id);
    }

    /// Reads a packet for which there is no room.
    fn take_in_vain(&mut self, number: usize) {
        let Some(taking) = self.ports.get_mut(number) else { return };
        // Whatever does not fit is dropped, too.
        match taking.port.device.receive(&mut [0; 64]) {
            Ok(_) => {
                taking.read += 1;
                self.counts.no_room += 1;
            }
            Err(error) => self.look_at(number, &error),
        }
    }

    /// A device that is gone is not looked at any more: it would always seem to have something.
    fn look_at(&mut self, number: usize, error: &io::Error) {
        let has_none = matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::NetworkDown
        );
        if !has_none {
            self.counts.lost_devices += 1;
            let _ = self.epoll.delete(self.ports[number].port.device.descriptor());
        }
    }
}

/// Whether a host did not take a packet because its interface is down.
fn is_down(error: &io::Error) -> bool {
    let down = [Errno::EIO, Errno::ENETDOWN, Errno::ENXIO];
    down.iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}
