//! An emulation that runs: its hosts, and the thread that carries packets between them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use nix::sys::eventfd::{EfdFlags, EventFd};
use quipu_base::Duration;

use crate::carry::{Carried, Carrier, Order, Port, Setup};
use crate::device::{Device, DeviceKind, may_open};
use crate::error::{EmulationError, TopologyError};
use crate::host::{Cables, Host, Interface};
use crate::links::Links;
use crate::report::{Frame, Report};
use crate::scheduling;
use crate::topology::{HostId, Topology, Wiring};

/// How an emulation is to be, apart from hosts and links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the longest packet that interfaces of hosts take, 1,280 to 9,000. Default 1,500. Links may have smaller
    /// MTUs, of which hosts then are not told.
    pub mtu: u16,
    /// What interfaces are made of. Default: TUN devices if this user may open them, else virtual Ethernet.
    pub device: Option<DeviceKind>,
    /// Packets that may be under way at a time, each of which takes as much memory as the longest. Default 131,072: a
    /// second of 1.5 Gbit/s, at most 200 MB. More are dropped, and the run is void.
    pub most_packets: usize,
    /// Real-time priority of the thread that carries, 1 to 99 (`SCHED_FIFO`, see sched(7)). Default: none. Where the
    /// system refuses it, or has no `chrt`, the thread stays as it is: [`Report::scheduling`] tells.
    pub priority: Option<u8>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { mtu: 1_500, device: None, most_packets: 1 << 17, priority: None }
    }
}

impl Settings {
    /// What IPv6 needs at least: <https://www.rfc-editor.org/rfc/rfc8200#section-5>
    const LEAST_MTU: u16 = 1_280;
    /// Jumbo frames.
    const MOST_MTU: u16 = 9_000;

    fn validate(&self) -> Result<(), TopologyError> {
        let (least, most) = (Settings::LEAST_MTU, Settings::MOST_MTU);
        let is_right = (least..=most).contains(&self.mtu);
        if is_right { Ok(()) } else { Err(TopologyError::Mtu { mtu: self.mtu, least, most }) }
    }
}

/// Hosts that are connected by links, in real time. See the [crate's description](crate).
///
/// When it is dropped, all programs in its hosts are killed, and nothing is left of it.
#[derive(Debug)]
pub struct Emulation {
    // Dropped in this order: first the thread that serves the hosts' interfaces.
    carrier: CarrierThread,
    hosts: Vec<Host>,
    topology: Topology,
    device: DeviceKind,
    names: Vec<String>,
    smallest_delay: Duration,
    /// What interfaces had lost when the run began, out and in.
    dropped_before: [u64; 2],
}

/// The thread that carries. It ends when this is dropped.
#[derive(Debug)]
struct CarrierThread {
    orders: Sender<Order>,
    waker: Arc<EventFd>,
    thread: Option<JoinHandle<io::Result<io::Result<()>>>>,
}

impl Emulation {
    /// Makes hosts and interfaces, and begins to carry packets between them over `links`, whose time begins now.
    ///
    /// # Errors
    /// If hosts and links do not fit together, or the system does not let this user make what it takes: see
    /// [`enter_user_namespace`](crate::enter_user_namespace).
    pub fn start(
        topology: &Topology,
        links: Links,
        settings: &Settings,
    ) -> Result<Emulation, EmulationError> {
        settings.validate()?;
        let Wiring { ends, routes, tables, addresses, smallest_delay } = topology.wiring(&links)?;
        let hosts = topology.hosts().map(|id| {
            let interface = |path| {
                let (v4, v6) = topology.addresses(id, path);
                Interface { path, v4, v6 }
            };
            let interfaces = topology.paths_of(id).into_iter().map(interface).collect();
            Host::new(topology.name(id), interfaces)
        });
        let hosts = hosts.collect::<Result<Vec<Host>, EmulationError>>()?;
        let Interfaces { kind, devices, cables } = Interfaces::make(&hosts, settings)?;
        hosts.iter().try_for_each(|host| host.set_up(kind == DeviceKind::Veth))?;
        // Both are in order of hosts and paths.
        debug_assert_eq!(ends.len(), devices.len());
        let port = |((device, interface), routes)| Port { device, routes, interface };
        let ports = devices.into_iter().zip(tables).map(port).collect();
        let (mtu, most_packets) = (settings.mtu.into(), settings.most_packets);
        let setup = Setup { ports, routes, hosts: addresses, mtu, most_packets };
        let names = links.names().map(str::to_owned).collect();
        let carrier = CarrierThread::start(setup, links, cables, settings.priority)?;
        let mut emulation = Emulation {
            carrier,
            hosts,
            topology: topology.clone(),
            device: kind,
            names,
            smallest_delay,
            dropped_before: [0, 0],
        };
        emulation.dropped_before = emulation.interface_drops()?;
        Ok(emulation)
    }

    /// A host, unless it is one of another topology.
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(id.index())
    }

    /// All hosts, in the order in which they were added to the topology.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// What interfaces are made of.
    pub fn device(&self) -> DeviceKind {
        self.device
    }

    /// What has happened since the links began.
    ///
    /// # Errors
    /// If the thread that carries has ended, or the kernel's counts cannot be read.
    pub fn report(&self) -> Result<Report, EmulationError> {
        let carried = self.carrier.ask(Order::Report)?;
        self.frame(carried)
    }

    /// Begins anew with these links, of which there are as many: their time is zero now, and nothing is on them. Hosts
    /// and their programs notice nothing but that. Returns what has happened until then.
    ///
    /// # Errors
    /// As [`Emulation::report`], and if there are more or fewer links, or links that cannot be.
    pub fn renew(&mut self, links: Links) -> Result<Report, EmulationError> {
        let expected = self.names.len();
        if links.len() != expected {
            return Err(EmulationError::LinkCount { found: links.len(), expected });
        }
        let smallest_delay = self.topology.wiring(&links)?.smallest_delay;
        let names = links.names().map(str::to_owned).collect();
        let carried = self.carrier.ask(|answer| Order::Renew(links, answer))??;
        let report = self.frame(carried)?;
        self.dropped_before = self.interface_drops()?;
        self.smallest_delay = smallest_delay;
        self.names = names;
        Ok(report)
    }

    /// Ends the emulation: all programs in its hosts are killed, and nothing is left of it.
    ///
    /// # Errors
    /// As [`Emulation::report`]. It has ended all the same.
    pub fn stop(self) -> Result<Report, EmulationError> {
        self.report()
    }

    fn frame(&self, carried: Carried) -> Result<Report, EmulationError> {
        let [out, into] = self.interface_drops()?;
        let [out_before, into_before] = self.dropped_before;
        let frame = Frame {
            device: self.device,
            smallest_delay: self.smallest_delay,
            names: &self.names,
            interface_drops: [out.saturating_sub(out_before), into.saturating_sub(into_before)],
        };
        Ok(Report::new(&frame, carried))
    }

    /// What the interfaces of all hosts have lost since they were made, out and in.
    fn interface_drops(&self) -> Result<[u64; 2], EmulationError> {
        let drops = self.hosts.iter().try_fold([0, 0], |[out, into], host| {
            host.interface_drops().map(|[more_out, more_in]| [out + more_out, into + more_in])
        });
        drops.map_err(EmulationError::system("read the counts of interfaces"))
    }
}

/// The emulator's ends of all interfaces, in order of hosts and paths.
struct Interfaces {
    kind: DeviceKind,
    /// Each with its name in the emulator's own namespace, if it has one there.
    devices: Vec<(Box<dyn Device>, Option<String>)>,
    cables: Option<Cables>,
}

impl Interfaces {
    fn make(hosts: &[Host], settings: &Settings) -> Result<Interfaces, EmulationError> {
        let no_device = |source| EmulationError::NoDevice { kind: DeviceKind::Tun, source };
        let opened = match settings.device {
            Some(DeviceKind::Veth) => None,
            Some(DeviceKind::Tun) => Some(may_open().map_err(no_device)),
            None => may_open().ok().map(Ok),
        };
        let Some(may_open) = opened else { return Interfaces::cables(hosts, settings.mtu) };
        may_open?;
        let mut devices = Vec::new();
        for host in hosts {
            match host.open_tuns(settings.mtu) {
                Ok(opened) => devices.extend(opened.into_iter().map(|device| (device, None))),
                // Some systems let users open the file, and no more.
                Err(error)
                    if settings.device.is_none()
                        && error.kind() == io::ErrorKind::PermissionDenied
                        && devices.is_empty() =>
                {
                    return Interfaces::cables(hosts, settings.mtu);
                }
                Err(error) => return Err(no_device(error)),
            }
        }
        Ok(Interfaces { kind: DeviceKind::Tun, devices, cables: None })
    }

    fn cables(hosts: &[Host], mtu: u16) -> Result<Interfaces, EmulationError> {
        let cables = Cables::new()?;
        let made = cables.make(hosts, mtu)?;
        let devices = made.into_iter().map(|(device, name)| (device, Some(name))).collect();
        Ok(Interfaces { kind: DeviceKind::Veth, devices, cables: Some(cables) })
    }
}

impl CarrierThread {
    /// Begins to carry; in the namespace of `cables`, if there are any.
    fn start(
        setup: Setup,
        links: Links,
        cables: Option<Cables>,
        priority: Option<u8>,
    ) -> Result<Self, EmulationError> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let waker = EventFd::from_flags(flags)
            .map_err(EmulationError::system("make an event descriptor"))?;
        let waker = Arc::new(waker);
        let (orders, obeyed) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let woken = waker.clone();
        let work = move || {
            if let Some(priority) = priority {
                scheduling::prefer_this_thread(priority);
            }
            // A link is of one thread.
            match Carrier::new(setup, links, woken, obeyed) {
                Ok(carrier) => {
                    let _ = ready.send(Ok(()));
                    carrier.run()
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    Ok(())
                }
            }
        };
        let thread = match cables {
            Some(cables) => cables.namespace().run(work),
            None => thread::spawn(move || Ok(work())),
        };
        let carrier = CarrierThread { orders, waker, thread: Some(thread) };
        is_ready.recv().map_err(|_| EmulationError::Ended)??;
        Ok(carrier)
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Result<T, EmulationError> {
        let (answer, answered) = mpsc::channel();
        self.tell(order(answer))?;
        answered.recv().map_err(|_| EmulationError::Ended)
    }

    fn tell(&self, order: Order) -> Result<(), EmulationError> {
        self.orders.send(order).map_err(|_| EmulationError::Ended)?;
        self.waker.write(1).map(drop).map_err(EmulationError::system("wake the carrier"))
    }
}

impl Drop for CarrierThread {
    fn drop(&mut self) {
        // If it cannot be told, it has ended.
        let _ = self.tell(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
