//! When datagrams arrive.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use quipu_emu::DeviceKind;

use crate::setup::{Pair, link, one_of_five, sockets, with_rights};

/// How long datagrams of 200 bytes with headers take, in order of length.
fn delays(from: &UdpSocket, to: &UdpSocket, count: usize) -> Vec<Duration> {
    let mut buffer = [0; 2_000];
    let mut delays: Vec<Duration> = (0..count)
        .map(|_| {
            let sent_at = Instant::now();
            from.send(&[7; 172]).unwrap();
            assert_eq!(to.recv(&mut buffer).unwrap(), 172);
            sent_at.elapsed()
        })
        .collect();
    delays.sort_unstable();
    delays
}

fn have_that_of_the_link(kind: DeviceKind) {
    let pair = Pair::start(&[[link(100, 10), link(50, 5)]], Some(kind));
    let [client, server] = sockets(&pair, 0);
    // 200 bytes take 16 us at 100 Mbit/s, and 32 us at 50 Mbit/s.
    for (from, to, wanted) in [(&client, &server, 10_016), (&server, &client, 5_032)] {
        let wanted = Duration::from_micros(wanted);
        one_of_five(|| {
            let found = delays(from, to, 51);
            assert!(found[0] >= wanted, "{found:?}");
            let median = found[25];
            eprintln!("{}: {median:?}, the link's is {wanted:?}", kind.name());
            if median - wanted < Duration::from_micros(200) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        });
    }
    let report = pair.emulation.stop().unwrap();
    assert_eq!(report.device, kind);
    assert!(report.lateness.packets >= 102, "{report:?}");
    assert_eq!(report.hidden(), 0, "{report:?}");
    assert_eq!(report.smallest_delay_ns, 5_000_000);
}

#[test]
fn datagrams_take_the_time_of_their_link_over_tun() {
    with_rights("delay::datagrams_take_the_time_of_their_link_over_tun", || {
        // Ordinary users may open no such device on most systems.
        if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun")
        {
            eprintln!("skipped: this user may not open /dev/net/tun: {error}");
            return;
        }
        have_that_of_the_link(DeviceKind::Tun);
    });
}

#[test]
fn datagrams_take_the_time_of_their_link_over_veth() {
    with_rights("delay::datagrams_take_the_time_of_their_link_over_veth", || {
        have_that_of_the_link(DeviceKind::Veth);
    });
}
