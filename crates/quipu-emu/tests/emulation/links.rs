//! What links do to datagrams: the same as in the simulator.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use quipu_base::{Bytes, Seed};
use quipu_emu::{Described, Links, MakeError};
use quipu_link::radio::{
    AccessPoint, Channel, Medium, Motion, PathLoss, Position, Station, Timing,
};
use quipu_link::{AnyLink, Aqm, FqCoDel, Link, LinkConfig, Outage, QueueLimit, Verdict, ecn};

use crate::setup::{Pair, address, link, links, one_of_five, socket, sockets, with_rights};

/// Sends datagrams that begin with their number, 1 ms apart.
fn send_numbers(from: &UdpSocket, count: u64, payload: usize) {
    let mut datagram = vec![0; payload];
    for number in 0..count {
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        from.send(&datagram).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The numbers that come until nothing comes for a while.
fn numbers(to: &UdpSocket) -> Vec<u64> {
    to.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = [0; 2_000];
    std::iter::from_fn(|| {
        to.recv(&mut buffer).ok()?;
        Some(u64::from_be_bytes(buffer[..8].try_into().unwrap()))
    })
    .collect()
}

/// The numbers of those of `count` datagrams that a link delivers which is asked by itself.
fn delivered_by_itself(config: &LinkConfig, seed: u64, count: u64) -> Vec<u64> {
    let config = LinkConfig { overhead: Bytes(28), ..config.clone() };
    let mut link = Link::new(&config, Seed::new(seed).child("link", 0)).unwrap();
    let mut delivers = |number: &u64| {
        let now = quipu_base::Instant::from_nanos(number * 1_000_000);
        matches!(link.offer(now, Bytes(100), ecn::NOT_ECT), Verdict::Deliver { .. })
    };
    (0..count).filter(|number| delivers(number)).collect()
}

#[test]
fn the_seed_decides_which_packets_are_lost() {
    with_rights("links::the_seed_decides_which_packets_are_lost", || {
        let lossy = link(100, 5).with_loss(0.2);
        let mut pair = Pair::start(&[[lossy.clone(), link(100, 5)]], None);
        let [client, server] = sockets(&pair, 0);
        for seed in [1, 2, 1] {
            pair.emulation.renew(links(seed, &[[lossy.clone(), link(100, 5)]])).unwrap();
            send_numbers(&client, 200, 100);
            assert_eq!(numbers(&server), delivered_by_itself(&lossy, seed, 200), "seed {seed}");
        }
        let report = pair.emulation.stop().unwrap();
        assert_eq!(report.links[0].offered.packets, 200);
        assert_eq!(report.links[0].offered.bytes, 200 * 128);
        assert!(report.links[0].dropped_by_loss.packets > 20);
        assert_eq!(report.hidden(), 0, "{report:?}");
    });
}

/// The bits of [`ecn`] with which the next datagram came.
fn receive_ecn(to: &UdpSocket) -> Option<u8> {
    let mut buffer = [0; 2_000];
    let mut space = nix::cmsg_space!(u8);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let socket = std::os::fd::AsRawFd::as_raw_fd(to);
    let received = recvmsg::<()>(socket, &mut parts, Some(&mut space), MsgFlags::empty()).ok()?;
    received.cmsgs().unwrap().find_map(|message| match message {
        ControlMessageOwned::Ipv4Tos(tos) => Some(tos & 0b11),
        _ => None,
    })
}

#[test]
fn a_full_queue_marks_the_headers_of_packets_that_can_be_marked() {
    with_rights("links::a_full_queue_marks_the_headers_of_packets_that_can_be_marked", || {
        let marking =
            link(5, 1).with_mark(QueueLimit::packets(3)).with_queue(QueueLimit::packets(50));
        let pair = Pair::start(&[[marking, link(5, 1)]], None);
        let [client, server] = sockets(&pair, 0);
        setsockopt(&server, sockopt::IpRecvTos, &true).unwrap();
        server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        for (sent, is_marked) in [(ecn::ECT_0, true), (ecn::NOT_ECT, false)] {
            socket2::SockRef::from(&client).set_tos_v4(sent.into()).unwrap();
            for _ in 0..20 {
                client.send(&[7; 1_472]).unwrap();
            }
            let found: Vec<u8> = std::iter::from_fn(|| receive_ecn(&server)).collect();
            assert_eq!((found.len(), found[0]), (20, sent), "{found:?}");
            assert_eq!(found[19], if is_marked { ecn::CE } else { sent }, "{found:?}");
        }
        let report = pair.emulation.stop().unwrap();
        assert!((5..20).contains(&report.links[0].marked.packets), "{report:?}");
    });
}

#[test]
fn a_managed_queue_separates_flows() {
    with_rights("links::a_managed_queue_separates_flows", || {
        let managed = link(5, 1).with_aqm(Aqm::FqCoDel(FqCoDel::default()));
        let pair = Pair::start(&[[managed, link(5, 1)]], None);
        let [bulk, server] = sockets(&pair, 0);
        let other = socket(pair.server(), address(pair.server(), 0, 444));
        let request = socket(pair.client(), address(pair.client(), 0, 4_001));
        one_of_five(|| {
            // 100 packets of 2.4 ms each.
            for _ in 0..100 {
                bulk.send(&[7; 1_472]).unwrap();
            }
            let sent_at = Instant::now();
            request.send_to(b"now", other.local_addr().unwrap()).unwrap();
            other.recv(&mut [0; 10]).unwrap();
            let took = sent_at.elapsed();
            let came = numbers(&server).len();
            if took < Duration::from_millis(60) && came > 50 {
                return Ok(());
            }
            Err(format!("{took:?}, {came} of the other flow"))
        });
        let report = pair.emulation.stop().unwrap();
        assert_eq!(report.links[0].waiting.packets, 0, "{report:?}");
    });
}

/// A station 10 m from its access point, and the links between them: up, then down.
fn over_radio() -> Result<Vec<AnyLink>, MakeError> {
    let seed = Seed::new(1);
    let channel = Channel::new(36).ok_or("no such channel")?;
    let medium = Medium::new(channel, PathLoss::default(), Timing::Standard)?;
    let at = |x| Position::new(x, 0.0);
    let station = Station::new(Motion::Fixed(at(10.0)), seed.child("station", 0));
    let [down, up] = medium.join(&AccessPoint::at(at(0.0)), &station, seed.child("pair", 0))?;
    let config = LinkConfig { overhead: Bytes::ZERO, ..LinkConfig::default() };
    let link = |index, way| AnyLink::over_radio(&config, seed.child("link", index), way);
    Ok(vec![link(0, up)?, link(1, down)?])
}

#[test]
fn a_function_makes_links_over_the_radio() {
    with_rights("links::a_function_makes_links_over_the_radio", || {
        let mut pair = Pair::start(&[[link(10, 1), link(10, 1)]], None);
        let described = ["up", "down"].map(|name| Described {
            name: name.to_owned(),
            least_delay: quipu_base::Duration::ZERO,
        });
        pair.emulation.renew(Links::made_by(described.to_vec(), over_radio)).unwrap();
        let [client, server] = sockets(&pair, 0);
        for (from, to) in [(&client, &server), (&server, &client)] {
            from.send(b"over the air").unwrap();
            assert_eq!(to.recv(&mut [0; 20]).unwrap(), 12);
        }
        let failing = Links::made_by(described.to_vec(), || Err("no radio".into()));
        let error = pair.emulation.renew(failing).unwrap_err();
        assert_eq!(error.to_string(), "cannot make the links: no radio");
        // The links before stay.
        client.send(b"still there").unwrap();
        assert_eq!(server.recv(&mut [0; 20]).unwrap(), 11);
        let report = pair.emulation.stop().unwrap();
        assert_eq!(report.smallest_delay_ns, 0);
        assert_eq!(report.links[0].delivered.packets, 2);
    });
}

#[test]
fn an_outage_takes_what_comes_in_it() {
    with_rights("links::an_outage_takes_what_comes_in_it", || {
        let at = |millis: u64| quipu_base::Instant::from_nanos(millis * 1_000_000);
        let cut = link(100, 5).with_outage(Outage::between(at(200), at(1_200)));
        let mut pair = Pair::start(&[[cut.clone(), link(100, 5)]], None);
        let [client, server] = sockets(&pair, 0);
        pair.emulation.renew(links(1, &[[cut, link(100, 5)]])).unwrap();
        let begun = Instant::now();
        let mut sent = Vec::new();
        for number in 0..150u64 {
            sent.push(begun.elapsed());
            client.send(&number.to_be_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        let found = numbers(&server);
        // Those near its edges may have either fate.
        let slack = Duration::from_millis(100);
        let (from, until) = (Duration::from_millis(200), Duration::from_millis(1_200));
        for (number, at) in sent.iter().enumerate() {
            let arrived = found.contains(&(number as u64));
            if *at + slack < from || *at > until + slack {
                assert!(arrived, "{number} at {at:?}");
            } else if *at > from + slack && *at + slack < until {
                assert!(!arrived, "{number} at {at:?}");
            }
        }
        let report = pair.emulation.stop().unwrap();
        assert_eq!(report.links[0].delivered.packets, found.len() as u64);
        assert!(report.links[0].dropped_by_outage.packets > 0);
    });
}
