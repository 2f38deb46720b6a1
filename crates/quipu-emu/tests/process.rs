//! Emulations of processes of their own: of one that is killed, and of an ordinary user.
//!
//! There is no harness, since it has threads. A variable says what a process is to do.

#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests, in real time")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::net::{SocketAddr, UdpSocket};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Output, Stdio};
    use std::time::Duration;

    use quipu_base::{Rate, Seed};
    use quipu_emu::{Emulation, Host, Links, Settings, Topology, enter_user_namespace};
    use quipu_link::LinkConfig;

    const ROLE: &str = "QUIPU_EMU_ROLE";
    /// Nobody in particular.
    const NOBODY: u32 = 65_534;

    pub(crate) fn main() {
        match std::env::var(ROLE).as_deref() {
            Ok("stay") => stay(),
            Ok("once") => once(),
            _ if Command::new("ip").arg("-V").output().is_err() => {
                println!("skipped: there is no `ip`, which is part of iproute2");
            }
            _ => {
                for (name, case) in [
                    ("a_killed_process_leaves_nothing_behind", killed as fn()),
                    ("an_ordinary_user_may_emulate", ordinary as fn()),
                ] {
                    case();
                    println!("test {name} ... ok");
                }
            }
        }
    }

    /// An emulation with programs of which one has left its parent, and the network namespaces of all of them in a line
    /// of output. It goes on until it is killed.
    fn stay() {
        enter_user_namespace().unwrap();
        let emulation = emulation();
        let mut shells = Vec::new();
        for host in emulation.hosts() {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "trap '' TERM; setsid sleep 1000 & readlink /proc/self/ns/net; wait"]);
            shell.stdout(Stdio::piped());
            let mut shell = host.spawn(shell).unwrap();
            let mut line = String::new();
            BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
            print!("{} ", line.trim());
            shells.push(shell);
        }
        println!();
        for mut shell in shells {
            shell.wait().unwrap();
        }
    }

    /// An emulation that carries a datagram each way.
    fn once() {
        let is_new = enter_user_namespace().unwrap();
        let emulation = emulation();
        let [client, server] = [0, 1].map(|index| &emulation.hosts()[index]);
        let [ours, theirs] = [(client, 4_000), (server, 443)].map(|(host, port)| bind(host, port));
        ours.send_to(b"well?", theirs.local_addr().unwrap()).unwrap();
        let (_, from) = theirs.recv_from(&mut [0; 10]).unwrap();
        theirs.send_to(b"well", from).unwrap();
        assert_eq!(ours.recv(&mut [0; 10]).unwrap(), 4);
        let report = emulation.stop().unwrap();
        assert_eq!((report.hidden(), report.links[1].delivered.packets), (0, 1), "{report:?}");
        println!("carried; in a new user namespace: {is_new}; by {}", report.device.name());
    }

    fn emulation() -> Emulation {
        let config =
            LinkConfig::new(Rate::from_mbit_per_sec(10), quipu_base::Duration::from_millis(1));
        let mut links = Links::new(Seed::new(1));
        let [up, down] = ["up", "down"].map(|name| links.add(name, &config).unwrap());
        let mut topology = Topology::new();
        let (client, server) = (topology.add_client().unwrap(), topology.add_server().unwrap());
        topology.add_path(0, client, server, &[up], &[down]).unwrap();
        Emulation::start(&topology, links, &Settings::default()).unwrap()
    }

    fn bind(host: &Host, port: u16) -> UdpSocket {
        let address = SocketAddr::new(host.addresses(0).unwrap().0.into(), port);
        let socket = host.run(move || UdpSocket::bind(address).unwrap()).join().unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    /// Whether this user may do any of it.
    fn may_emulate() -> bool {
        let works = |arguments: &[&str]| {
            let output = Command::new("unshare").args(arguments).arg("true").output();
            output.is_ok_and(|output| output.status.success())
        };
        let may = works(&["-n"]) || works(&["-Urn"]);
        if !may {
            println!("skipped: this user may make neither network namespaces nor user namespaces");
        }
        may
    }

    fn killed() {
        if !may_emulate() {
            return;
        }
        for _ in 0..3 {
            let mut child = this_program("stay").stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let namespaces: BTreeSet<PathBuf> =
                line.split_whitespace().map(PathBuf::from).collect();
            assert_eq!(namespaces.len(), 2, "{line}");
            // Of each host a shell, what it started, and the first process.
            assert!(processes_in(&namespaces) >= 6);
            kill(&mut child);
            let is_gone = (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                processes_in(&namespaces) == 0
            });
            assert!(is_gone, "{} processes are left", processes_in(&namespaces));
            // Whatever names and addresses it had are free.
            let output = this_program("once").output().unwrap();
            assert_carried(&output);
        }
    }

    fn ordinary() {
        if !may_emulate() {
            return;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
        if !is_root {
            return assert_carried(&this_program("once").output().unwrap());
        }
        // Nobody may enter folders of root.
        let folder = std::env::temp_dir().join(format!("quipu-emu-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let copy = folder.join("process");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let nobody = NOBODY.to_string();
        let as_nobody = |program: &[&str]| {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]).args(program);
            command.env(ROLE, "once").current_dir("/").output().unwrap()
        };
        let may = as_nobody(&["unshare", "-Urn", "true"]).status.success();
        let output = as_nobody(&[copy.to_str().unwrap()]);
        fs::remove_dir_all(&folder).unwrap();
        if !may {
            println!("skipped: ordinary users may make no user namespaces");
            return;
        }
        assert_carried(&output);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("in a new user namespace: true"), "{said}");
    }

    fn this_program(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, role);
        command
    }

    fn assert_carried(output: &Output) {
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("carried"), "{said}{errors}");
    }

    fn kill(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// How many processes are in these network namespaces.
    fn processes_in(namespaces: &BTreeSet<PathBuf>) -> usize {
        let is_in = |process: &Path| {
            fs::read_link(process.join("ns/net")).is_ok_and(|link| namespaces.contains(&link))
        };
        fs::read_dir("/proc")
            .unwrap()
            .filter(|entry| is_in(&entry.as_ref().unwrap().path()))
            .count()
    }
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}
