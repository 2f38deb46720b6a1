//! Rights, a client and a server, and datagrams between them.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_base::{Rate, Seed};
use quipu_emu::{DeviceKind, Emulation, Host, HostId, LinkId, Links, Settings, Topology};
use quipu_link::LinkConfig;

/// Says so inside of a user namespace.
const INSIDE: &str = "QUIPU_EMU_INSIDE";

/// Runs `body`, in a process with the rights that it takes if this one has them not; `test` is the name of the test that
/// calls this. One at a time, since they compete for processors.
pub(crate) fn with_rights(test: &str, body: impl FnOnce()) {
    let works = |arguments: &[&str]| {
        Command::new("unshare")
            .args(arguments)
            .arg("true")
            .output()
            .is_ok_and(|it| it.status.success())
    };
    if Command::new("ip").arg("-V").output().is_err() {
        eprintln!("skipped: there is no `ip`, which is part of iproute2");
        return;
    }
    let is_inside = std::env::var_os(INSIDE).is_some();
    if is_inside || works(&["-n"]) {
        let _alone = alone();
        return body();
    }
    if !works(&["-Urn"]) {
        eprintln!("skipped: this user may make neither network namespaces nor user namespaces");
        return;
    }
    let _alone = alone();
    let run = Command::new("unshare")
        .arg("-Ur")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}{errors}");
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A link of so many Mbit/s, with a delay in milliseconds.
pub(crate) fn link(mbit: u64, millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), quipu_base::Duration::from_millis(millis))
}

/// Both links of each path, up and down by turns.
pub(crate) fn links(seed: u64, paths: &[[LinkConfig; 2]]) -> Links {
    let mut links = Links::new(Seed::new(seed));
    for (number, [up, down]) in paths.iter().enumerate() {
        links.add(format!("up{number}"), up).unwrap();
        links.add(format!("down{number}"), down).unwrap();
    }
    links
}

/// A client and a server, joined by these paths.
pub(crate) struct Pair {
    pub(crate) emulation: Emulation,
    client: HostId,
    server: HostId,
}

impl Pair {
    pub(crate) fn start(paths: &[[LinkConfig; 2]], device: Option<DeviceKind>) -> Pair {
        Pair::start_with(paths, &Settings { device, ..Settings::default() })
    }

    pub(crate) fn start_with(paths: &[[LinkConfig; 2]], settings: &Settings) -> Pair {
        let mut topology = Topology::new();
        let (client, server) = (topology.add_client().unwrap(), topology.add_server().unwrap());
        for number in 0..paths.len() as u8 {
            let [up, down] = [0, 1].map(|way| LinkId::new(2 * u32::from(number) + way));
            topology.add_path(number, client, server, &[up], &[down]).unwrap();
        }
        let links = links(1, paths);
        let emulation = Emulation::start(&topology, links, settings).unwrap();
        Pair { emulation, client, server }
    }

    pub(crate) fn client(&self) -> &Host {
        self.emulation.host(self.client).unwrap()
    }

    pub(crate) fn server(&self) -> &Host {
        self.emulation.host(self.server).unwrap()
    }
}

/// A host's address of IPv4 on a path, with a port.
pub(crate) fn address(host: &Host, path: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(host.addresses(path).unwrap().0), port)
}

/// A socket in a host that waits for some seconds at most.
pub(crate) fn socket(host: &Host, address: SocketAddr) -> UdpSocket {
    let socket = host.run(move || UdpSocket::bind(address).unwrap()).join().unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).unwrap();
    socket
}

/// Sockets of the client and the server on a path, whose ports are 4000 and 443.
pub(crate) fn sockets(pair: &Pair, path: u8) -> [UdpSocket; 2] {
    let client = socket(pair.client(), address(pair.client(), path, 4_000));
    let server = socket(pair.server(), address(pair.server(), path, 443));
    client.connect(server.local_addr().unwrap()).unwrap();
    server.connect(client.local_addr().unwrap()).unwrap();
    [client, server]
}

/// Tries it up to five times: a busy machine may spoil one of them. The error of the last one is told.
pub(crate) fn one_of_five(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..5 {
        match attempt() {
            Ok(()) => return,
            Err(error) => last = error,
        }
        eprintln!("again: {last}");
    }
    panic!("{last}");
}
