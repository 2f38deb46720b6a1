//! Hosts: their networks, and the programs in them.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use quipu_base::Seed;
use quipu_emu::{DeviceKind, Emulation, EmulationError, Links, Settings, Topology};

use crate::setup::{Pair, address, link, links, socket, sockets, with_rights};

/// What a shell writes that runs `script` in a host.
fn output(host: &quipu_emu::Host, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    let mut child = host.spawn(command).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{script}: {text}");
    text
}

#[test]
fn programs_see_an_interface_for_each_path_and_no_other() {
    with_rights("hosts::programs_see_an_interface_for_each_path_and_no_other", || {
        for device in [None, Some(DeviceKind::Veth)] {
            let paths = [[link(10, 1), link(10, 1)], [link(10, 1), link(10, 1)]];
            let pair = Pair::start(&paths, device);
            let listed = output(pair.client(), "ip -brief address");
            let names: Vec<&str> =
                listed.lines().filter_map(|line| line.split(['@', ' ']).next()).collect();
            assert_eq!(names, ["lo", "path0", "path1"], "{listed}");
            for wanted in ["10.0.0.1/16", "10.1.0.1/16", "fd71:7569:7075:1::1/64"] {
                assert!(listed.contains(wanted), "{listed}");
            }
            let routes = output(pair.server(), "ip route");
            assert!(
                routes.contains("default dev path0") && routes.contains("10.1.255.1"),
                "{routes}"
            );
            let report = pair.emulation.stop().unwrap();
            assert!(report.void.is_empty() || report.hidden() == 0, "{report:?}");
        }
    });
}

#[test]
fn an_address_of_a_server_is_reached_over_all_paths_in_both_versions() {
    with_rights("hosts::an_address_of_a_server_is_reached_over_all_paths_in_both_versions", || {
        let paths = [[link(10, 2), link(10, 2)], [link(10, 2), link(10, 2)]];
        let pair = Pair::start(&paths, None);
        let (v4, v6) = pair.server().addresses(0).unwrap();
        for remote in [IpAddr::V4(v4), IpAddr::V6(v6)] {
            let server = socket(pair.server(), SocketAddr::new(remote, 443));
            for path in [0, 1] {
                let (v4, v6) = pair.client().addresses(path).unwrap();
                let own = if remote.is_ipv4() { IpAddr::V4(v4) } else { IpAddr::V6(v6) };
                let client = socket(pair.client(), SocketAddr::new(own, 0));
                // As clients with several uplinks do: else the default route would be taken.
                let name = format!("path{path}");
                socket2::SockRef::from(&client).bind_device(Some(name.as_bytes())).unwrap();
                client.send_to(b"there", SocketAddr::new(remote, 443)).unwrap();
                let mut buffer = [0; 10];
                let (_, from) = server.recv_from(&mut buffer).unwrap();
                assert_eq!(from.ip(), own);
                server.send_to(b"back", from).unwrap();
                assert_eq!(client.recv(&mut buffer).unwrap(), 4);
            }
        }
        let report = pair.emulation.stop().unwrap();
        // Of each version a request and an answer by each path.
        let delivered: Vec<u64> = report.links.iter().map(|link| link.delivered.packets).collect();
        assert_eq!(delivered, [2, 2, 2, 2], "{report:?}");
    });
}

#[test]
fn clients_share_the_links_that_their_paths_have_in_common() {
    with_rights("hosts::clients_share_the_links_that_their_paths_have_in_common", || {
        let mut links = Links::new(Seed::new(1));
        let mut topology = Topology::new();
        let server = topology.add_server().unwrap();
        let [up, down] = ["up", "down"].map(|name| links.add(name, &link(10, 5)).unwrap());
        let clients = [0, 1].map(|number| {
            let own = links.add(format!("access{number}"), &link(10, 10)).unwrap();
            let client = topology.add_client().unwrap();
            topology.add_path(0, client, server, &[own, up], &[down]).unwrap();
            client
        });
        let emulation = Emulation::start(&topology, links, &Settings::default()).unwrap();
        let host = |id| emulation.host(id).unwrap();
        let server = socket(host(server), address(host(server), 0, 443));
        let own = clients.map(|client| socket(host(client), address(host(client), 0, 4_000)));
        let mut buffer = [0; 10];
        for client in &own {
            client.send_to(b"there", server.local_addr().unwrap()).unwrap();
            let (_, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(from, client.local_addr().unwrap());
            server.send_to(b"back", from).unwrap();
            client.recv(&mut buffer).unwrap();
        }
        // No path leads from client to client.
        own[0].send_to(b"you", own[1].local_addr().unwrap()).unwrap();
        own[1].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(own[1].recv(&mut buffer).is_err());
        let report = emulation.stop().unwrap();
        let delivered: Vec<u64> = report.links.iter().map(|link| link.delivered.packets).collect();
        assert_eq!((delivered, report.unrouted), (vec![2, 2, 1, 1], 1));
        assert_eq!(report.smallest_delay_ns, 5_000_000);
    });
}

#[test]
fn packets_of_any_kind_do_no_harm() {
    with_rights("hosts::packets_of_any_kind_do_no_harm", || {
        let pair = Pair::start(&[[link(10, 1), link(10, 1)]], Some(DeviceKind::Veth));
        let to = pair.server().addresses(0).unwrap().0.octets();
        let whole = |first: u8, rest: &[u8]| {
            let mut packet = vec![first, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1];
            packet.extend(to);
            packet.extend(rest);
            packet
        };
        let hostile = [
            Vec::new(),
            vec![0x45],
            // A header longer than the packet, one of no length, one of no version.
            whole(0x4f, &[]),
            whole(0x40, &[1; 20]),
            whole(0xf5, &[1; 20]),
            // Ports that are not there, and a header of TCP that is cut off.
            whole(0x45, &[1]),
            [&whole(0x45, &[])[..9], &[6, 0, 0, 10, 0, 0, 1], &to, &[1; 3]].concat(),
            // Options of IPv6 behind options, to the end and behind it.
            [&[0x60, 0, 0, 0, 0, 16, 0, 64][..], &[0xfd; 32], &[0, 200].repeat(8)].concat(),
        ];
        // A packet socket sends whatever it is given.
        let sending = pair.client().run(move || send_raw(&hostile));
        sending.join().unwrap().unwrap();
        let [client, server] = sockets(&pair, 0);
        client.send(b"well?").unwrap();
        assert_eq!(server.recv(&mut [0; 10]).unwrap(), 5);
        let report = pair.emulation.stop().unwrap();
        assert!(report.unreadable >= 4, "{report:?}");
        assert!(report.hidden() == 0, "{report:?}");
    });
}

/// Sends frames with these payloads by the interface of path 0.
fn send_raw(payloads: &[Vec<u8>]) {
    use nix::ifaddrs::getifaddrs;
    use nix::sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, send, socket,
    };
    use std::os::fd::AsRawFd;
    let all = SockProtocol::EthAll;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, all).unwrap();
    let interface = getifaddrs()
        .unwrap()
        .filter(|found| found.interface_name == "path0")
        .find_map(|found| found.address?.as_link_addr().copied());
    bind(socket.as_raw_fd(), &interface.unwrap()).unwrap();
    for payload in payloads {
        let header = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0];
        send(socket.as_raw_fd(), &[&header, &payload[..]].concat(), MsgFlags::empty()).unwrap();
    }
}

#[test]
fn what_programs_start_ends_with_the_emulation() {
    with_rights("hosts::what_programs_start_ends_with_the_emulation", || {
        let pair = Pair::start(&[[link(10, 1), link(10, 1)]], None);
        let mut command = Command::new("sh");
        // It leaves its session, and ignores what can be ignored.
        command.args(["-c", "trap '' TERM HUP INT; setsid sleep 1000 & echo $!; wait"]);
        let mut child = pair.client().spawn(stdout_of(command)).unwrap();
        // The grandchild, as this process sees it.
        let children = || {
            let of = format!("/proc/{0}/task/{0}/children", child.id());
            std::fs::read_to_string(of).unwrap_or_default().trim().to_owned()
        };
        let found = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            Some(children()).filter(|children| !children.is_empty())
        });
        let grandchild = format!("/proc/{}", found.unwrap());
        assert!(std::path::Path::new(&grandchild).exists());
        pair.emulation.stop().unwrap();
        assert!(!child.wait().unwrap().success());
        let is_gone = || !std::path::Path::new(&grandchild).exists();
        assert!((0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            is_gone()
        }));
    });
}

fn stdout_of(mut command: Command) -> Command {
    command.stdout(Stdio::piped());
    command
}

#[test]
fn two_emulations_have_the_same_names_and_addresses_at_a_time() {
    with_rights("hosts::two_emulations_have_the_same_names_and_addresses_at_a_time", || {
        let paths = [[link(10, 1), link(10, 1)]];
        let pairs = [(); 2].map(|()| Pair::start(&paths, None));
        let ends = pairs.each_ref().map(|pair| sockets(pair, 0));
        for [client, server] in &ends {
            client.send(b"well?").unwrap();
            assert_eq!(server.recv(&mut [0; 10]).unwrap(), 5);
        }
        for pair in pairs {
            let report = pair.emulation.stop().unwrap();
            assert_eq!(report.links[0].delivered.packets, 1);
        }
    });
}

#[test]
fn links_are_renewed_by_as_many() {
    with_rights("hosts::links_are_renewed_by_as_many", || {
        let paths = [[link(10, 1), link(10, 1)]];
        let mut pair = Pair::start(&paths, None);
        let more = links(1, &[[link(10, 1), link(10, 1)], [link(10, 1), link(10, 1)]]);
        let error = pair.emulation.renew(more).unwrap_err();
        assert!(matches!(error, EmulationError::LinkCount { found: 4, expected: 2 }), "{error}");
        let report = pair.emulation.renew(links(2, &paths)).unwrap();
        assert_eq!(report.links.len(), 2);
    });
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let settings = Settings { mtu: 1_000, ..Settings::default() };
    let error = Emulation::start(&Topology::new(), Links::new(Seed::new(1)), &settings);
    let message = error.map(drop).unwrap_err().to_string();
    assert_eq!(message, "mtu is 1000, expected 1280 to 9000: IPv6 needs that");
}
