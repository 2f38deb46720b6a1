//! The kernel's TCP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use quipu_emu::{DeviceKind, Report};
use quipu_link::QueueLimit;
use socket2::{Domain, Protocol, Socket, Type};

use crate::setup::{Pair, address, link, one_of_five, with_rights};

/// Share of a link's rate that TCP has for data: 1,448 of 1,500 bytes, since timestamps are on.
pub(crate) const CEILING: f64 = 1_448.0 / 1_500.0;

/// Sends to whoever connects until that hears no more.
fn send(listener: &Socket) {
    let (mut stream, _) = listener.accept().unwrap();
    let data = vec![7; 1 << 16];
    while stream.write_all(&data).is_ok() {}
}

/// Listens at all addresses: subflows come to others than the first.
fn listener(port: u16, protocol: Protocol) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
    // What the machine has as default is not in each network.
    socket.set_tcp_congestion(b"cubic").unwrap();
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    socket.bind(&address.into()).unwrap();
    socket.listen(1).unwrap();
    socket
}

/// Bits per second that come in `time`, after a second to become fast in.
fn receive(from: SocketAddr, protocol: Protocol, time: Duration) -> f64 {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
    socket.set_recv_buffer_size(4 << 20).unwrap();
    socket.connect(&from.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut read_until = |until: Instant| {
        let mut bytes = 0;
        while Instant::now() < until {
            bytes += stream.read(&mut buffer).unwrap();
        }
        bytes
    };
    read_until(Instant::now() + Duration::from_secs(1));
    let begun = Instant::now();
    let bytes = read_until(begun + time);
    bytes as f64 * 8.0 / begun.elapsed().as_secs_f64()
}

/// Bits per second that a download has from the server's address on path 0, and what happened.
pub(crate) fn download(pair: Pair, protocol: Protocol, time: Duration) -> (f64, Report) {
    let from = address(pair.server(), 0, 80);
    let listener =
        pair.server().run(move || listener(from.port(), protocol)).join().unwrap().unwrap();
    // It ends with the client's connection.
    pair.server().run(move || send(&listener));
    let rate = pair.client().run(move || receive(from, protocol, time)).join().unwrap().unwrap();
    (rate, pair.emulation.stop().unwrap())
}

/// What a download reaches of the ceiling.
fn share(mbit: u64, device: Option<DeviceKind>) -> f64 {
    let link = link(mbit, 10).with_queue(QueueLimit::bandwidth_delay(2.0));
    let pair = Pair::start(&[[link.clone(), link]], device);
    let (rate, report) = download(pair, Protocol::TCP, Duration::from_secs(2));
    assert!(report.links[1].delivered.bytes > 0);
    assert_eq!(report.hidden_drops.oversized, 0);
    let share = rate / (mbit as f64 * 1e6 * CEILING);
    let late = report.lateness.p99_ns / 1_000;
    eprintln!("{mbit} Mbit/s: {:.1} % of the ceiling; late p99 {late} us", share * 100.0);
    share
}

fn fills_its_link(mbit: u64, device: Option<DeviceKind>) {
    one_of_five(|| {
        let share = share(mbit, device);
        // More than all would be a link that is too fast, or what had come before while the machine was busy.
        if (0.95..1.01).contains(&share) { Ok(()) } else { Err(format!("{mbit} Mbit/s: {share}")) }
    });
}

#[test]
fn cubic_fills_a_link_of_10_mbit() {
    with_rights("tcp::cubic_fills_a_link_of_10_mbit", || fills_its_link(10, None));
}

#[test]
fn cubic_fills_a_link_of_50_mbit() {
    with_rights("tcp::cubic_fills_a_link_of_50_mbit", || fills_its_link(50, None));
}

#[test]
fn cubic_fills_a_link_over_veth() {
    with_rights("tcp::cubic_fills_a_link_over_veth", || fills_its_link(50, Some(DeviceKind::Veth)));
}
