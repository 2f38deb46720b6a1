//! Hosts: namespaces with interfaces, in which programs run.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command};
use std::thread::JoinHandle;

use crate::device::{Device, Statistics, Tun, Veth};
use crate::error::EmulationError;
use crate::namespace::{Namespace, Processes, ip, set};

/// Packets that wait in front of a TUN device. The kernel's default, 500, is a queue of its own.
const QUEUE: u32 = 20_000;

/// What the kernel is told before there are interfaces: a packet may come in by another interface than an answer would
/// leave by, addresses of IPv6 are good at once, and connections of TCP begin without what earlier ones learned.
const SETTINGS: [(&str, &str); 7] = [
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

/// An interface of a host, as it is to be.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// Index of its path.
    pub(crate) path: u8,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// A client or server: programs that run in it have an interface for each of its paths, `path0`, `path1` and so on, and
/// no other but loopback.
///
/// It has the processes of the machine's file system, users and host name, and resolves names as the machine does:
/// give programs addresses.
#[derive(Debug)]
pub struct Host {
    name: String,
    interfaces: Vec<Interface>,
    namespace: Namespace,
    processes: Processes,
}

impl Interface {
    pub(crate) fn name(&self) -> String {
        name_of(self.path)
    }
}

fn name_of(path: u8) -> String {
    format!("path{path}")
}

impl Host {
    /// A host without interfaces.
    pub(crate) fn new(name: String, interfaces: Vec<Interface>) -> Result<Host, EmulationError> {
        let namespace = Namespace::new(&name)?;
        namespace
            .call(|host| SETTINGS.iter().try_for_each(|&(key, value)| set(host, key, value)))?;
        let processes = Processes::new(&namespace)?;
        Ok(Host { name, interfaces, namespace, processes })
    }

    /// Its name, such as `client0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Indices of the paths of which it has an end.
    pub fn paths(&self) -> impl Iterator<Item = u8> {
        self.interfaces.iter().map(|interface| interface.path)
    }

    /// Its addresses on path `path`, if it has an end of it.
    pub fn addresses(&self, path: u8) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let interface = self.interfaces.iter().find(|interface| interface.path == path)?;
        Some((interface.v4, interface.v6))
    }

    /// Starts a program in the host. It is killed, with all that it started, when the emulation stops or this process
    /// ends, however it ends. Process numbers that it sees are those of the host; `/proc` is that of the machine.
    ///
    /// # Errors
    /// As [`Command::spawn`], and if the host has been stopped.
    pub fn spawn(&self, command: Command) -> io::Result<Child> {
        self.processes.spawn(command)
    }

    /// Runs `work` on a new thread of this process in the host's network: sockets that it opens are the host's, and may
    /// be used elsewhere. What of it still runs when the emulation stops goes on, and hears nothing any more.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<io::Result<T>> {
        self.namespace.run(work)
    }

    /// Moves the calling thread into the host's network: sockets that it opens from then on are the host's, and so are
    /// those of threads that it starts.
    ///
    /// # Errors
    /// If this process may not.
    pub fn enter(&self) -> io::Result<()> {
        self.namespace.enter()
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Number of a process in its network.
    pub(crate) fn process(&self) -> u32 {
        self.processes.first()
    }

    /// Makes its interfaces TUN devices: the emulator's ends of all.
    ///
    /// # Errors
    /// Of opening alone.
    pub(crate) fn open_tuns(&self, mtu: u16) -> io::Result<Vec<Box<dyn Device>>> {
        let names: Vec<String> = self.interfaces.iter().map(Interface::name).collect();
        let open = move || {
            let opened = names
                .iter()
                .map(|name| -> io::Result<Box<dyn Device>> { Ok(Box::new(Tun::open(name, mtu)?)) });
            opened.collect()
        };
        self.processes.call(open)?
    }

    /// Gives its interfaces, which must be there, addresses and routes, and takes them up.
    pub(crate) fn set_up(&self, is_veth: bool) -> Result<(), EmulationError> {
        let mut commands = String::from("link set lo up\n");
        for interface in &self.interfaces {
            let Interface { path, v4, v6 } = interface;
            let (name, metric) = (interface.name(), 100 + u32::from(*path));
            // Whole packets come to packet sockets only if nothing is left to a network card.
            let plain = if is_veth { " arp off gso_max_segs 1" } else { "" };
            commands += &format!(
                "link set {name} txqueuelen {QUEUE}{plain}\n\
                 address add {v4}/16 dev {name}\n\
                 link set {name} up\n\
                 route add default dev {name} metric {metric}\n"
            );
            if has_ipv6() {
                commands += &format!(
                    "address add {v6}/64 dev {name} nodad\n\
                     route add ::/0 dev {name} metric {metric}\n"
                );
            }
        }
        self.namespace.call(move |host| ip(host, &commands))
    }

    /// Packets that its interfaces have lost since they were made, on the way out and in.
    pub(crate) fn interface_drops(&self) -> io::Result<[u64; 2]> {
        let all = self.processes.call(Statistics::read)??;
        let ours = all.iter().filter(|(name, _)| name.starts_with("path"));
        Ok(ours.fold([0, 0], |[out, into], (_, counts)| {
            [out + counts.send_drops, into + counts.receive_drops]
        }))
    }
}

fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

/// The emulator's end of a pair of virtual Ethernet devices, and its name.
pub(crate) type Cable = (Box<dyn Device>, String);

/// The emulator's ends of virtual Ethernet devices, in a namespace in which nothing else is.
#[derive(Debug)]
pub(crate) struct Cables(Namespace);

impl Cables {
    pub(crate) fn new() -> Result<Cables, EmulationError> {
        let namespace = Namespace::new("the emulator")?;
        // Nothing speaks on them but the hosts.
        namespace.call(|host| set(host, "net/ipv6/conf/default/disable_ipv6", "1"))?;
        Ok(Cables(namespace))
    }

    /// Makes the interfaces of all hosts: the emulator's ends, and their names, host by host.
    pub(crate) fn make(&self, hosts: &[Host], mtu: u16) -> Result<Vec<Cable>, EmulationError> {
        let mut commands = String::new();
        let mut names = Vec::new();
        for host in hosts {
            for interface in host.interfaces() {
                let (ours, theirs) = (format!("end{}", names.len()), interface.name());
                let (our_address, their_address) = (mac(Veth::OURS), mac(Veth::HOST));
                let process = host.process();
                commands += &format!(
                    "link add {ours} address {our_address} mtu {mtu} type veth peer name {theirs} address \
                     {their_address} mtu {mtu} netns {process}\n\
                     link set {ours} arp off gso_max_segs 1 txqueuelen {QUEUE} up\n"
                );
                names.push(ours);
            }
        }
        self.0.call(move |host| {
            ip(host, &commands)?;
            let open = |name: String| -> Result<Cable, EmulationError> {
                let device =
                    Veth::open(&name).map_err(EmulationError::system("open a packet socket"))?;
                Ok((Box::new(device), name))
            };
            names.into_iter().map(open).collect()
        })
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.0
    }
}

fn mac(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}
