//! The figures of docs/emulator.md: `cargo test --release -p quipu-emu --test emulation measure -- --ignored --nocapture`.
//! They take two minutes.

use std::process::Command;
use std::time::{Duration, Instant};

use quipu_base::Seed;
use quipu_emu::{Emulation, Links, Report, Settings, Topology};
use quipu_link::{LinkConfig, QueueLimit};
use socket2::Protocol;

use crate::setup::{Pair, link, sockets, with_rights};
use crate::tcp::{CEILING, download};

/// What a row says of the emulator.
fn of_the_emulator(report: &Report) -> String {
    let late = |nanos: u64| nanos as f64 / 1_000.0;
    let (p50, p99) = (late(report.lateness.p50_ns), late(report.lateness.p99_ns));
    let verdict = if report.is_void() { "void" } else { "counts" };
    let cpu = report.processor_ns as f64 / 1_000.0 / report.lateness.packets as f64;
    format!(
        "{p50:.0} | {p99:.0} | {cpu:.0} | {:.0} % | {} | {verdict} |",
        report.load() * 100.0,
        report.scheduling
    )
}

/// With `QUIPU_EMU_PRIORITY`, the thread that carries has this priority.
fn start(paths: &[[LinkConfig; 2]]) -> Pair {
    let priority = std::env::var("QUIPU_EMU_PRIORITY").ok().map(|it| it.parse().unwrap());
    Pair::start_with(paths, &Settings { priority, ..Settings::default() })
}

/// The share of the ceiling that a download has over a link of so many Mbit/s.
fn over_one(mbit: u64, time: Duration) -> (f64, Report) {
    let link = link(mbit, 10).with_queue(QueueLimit::bandwidth_delay(2.0));
    let pair = start(&[[link.clone(), link]]);
    let (rate, report) = download(pair, Protocol::TCP, time);
    (rate / (mbit as f64 * 1e4 * CEILING), report)
}

/// The share of the sum that a download by Multipath TCP has over two.
fn over_two(mbit: [u64; 2], time: Duration) -> (f64, Report) {
    let paths = [(mbit[0], 10), (mbit[1], 30)].map(|(mbit, millis)| {
        let link = link(mbit, millis).with_queue(QueueLimit::bandwidth_delay(2.0));
        [link.clone(), link]
    });
    let pair = start(&paths);
    let (second, _) = pair.server().addresses(1).unwrap();
    let limits = "limits set subflow 4 add_addr_accepted 4".to_owned();
    let endpoint = format!("endpoint add {second} dev path1 signal");
    for (host, arguments) in
        [(pair.client(), &limits), (pair.server(), &limits), (pair.server(), &endpoint)]
    {
        let mut command = Command::new("ip");
        command.arg("mptcp").args(arguments.split(' '));
        assert!(host.spawn(command).unwrap().wait().unwrap().success(), "{arguments}");
    }
    let (rate, report) = download(pair, Protocol::MPTCP, time);
    assert!(report.links[3].delivered.packets > 100, "the second path is not used");
    (rate / ((mbit[0] + mbit[1]) as f64 * 1e4 * CEILING), report)
}

/// Prints a row, and holds it to `least` per cent unless it is void.
fn row(name: &str, (share, report): &(f64, Report), least: f64) {
    println!("| {name} | {share:.1} % | {}", of_the_emulator(report));
    assert!(report.is_void() || *share >= least, "{name}: {share:.1} % of the ceiling");
}

const HEAD: &str = "| download | of the ceiling | late p50, us | late p99, us | us of CPU per packet | load | class | run |";

#[test]
#[ignore = "measures for a minute"]
fn downloads() {
    with_rights("measure::downloads", || {
        println!("{HEAD}");
        let ten_seconds = Duration::from_secs(10);
        for mbit in [10, 50, 100, 200] {
            row(&format!("cubic, {mbit} Mbit/s"), &over_one(mbit, ten_seconds), 95.0);
        }
        row("MPTCP, 100 and 50 Mbit/s", &over_two([100, 50], ten_seconds), 90.0);
    });
}

/// The same at rates that a machine with other work keeps up with.
#[test]
#[ignore = "measures for some seconds"]
fn a_few_downloads() {
    with_rights("measure::a_few_downloads", || {
        println!("{HEAD}");
        let some_seconds = Duration::from_secs(4);
        for mbit in [10, 50] {
            row(&format!("cubic, {mbit} Mbit/s"), &over_one(mbit, some_seconds), 95.0);
        }
        row("MPTCP, 20 and 10 Mbit/s", &over_two([20, 10], some_seconds), 90.0);
    });
}

#[test]
#[ignore = "measures for some seconds"]
fn datagrams() {
    with_rights("measure::datagrams", || {
        println!(
            "| packets/s | delay - 10 ms p50, us | p99, us | late p50, us | late p99, us | us of CPU per packet | load | class | run |"
        );
        for per_millisecond in [1, 8] {
            // 200 bytes take 1.6 us.
            let pair = start(&[[link(1_000, 10), link(1_000, 10)]]);
            let [client, server] = sockets(&pair, 0);
            let begun = Instant::now();
            let sender = std::thread::spawn(move || {
                let mut datagram = [0; 172];
                for millis in 0..5_000 {
                    let next = Duration::from_millis(millis);
                    std::thread::sleep(next.saturating_sub(begun.elapsed()));
                    for _ in 0..per_millisecond {
                        let nanos = begun.elapsed().as_nanos() as u64;
                        datagram[..8].copy_from_slice(&nanos.to_be_bytes());
                        client.send(&datagram).unwrap();
                    }
                }
            });
            let mut delays: Vec<f64> = (0..5_000 * per_millisecond)
                .map(|_| {
                    let mut datagram = [0; 172];
                    server.recv(&mut datagram).unwrap();
                    let sent_at = u64::from_be_bytes(datagram[..8].try_into().unwrap());
                    (begun.elapsed().as_nanos() as u64 - sent_at) as f64 / 1_000.0 - 10_000.0
                })
                .collect();
            sender.join().unwrap();
            delays.sort_unstable_by(f64::total_cmp);
            let (p50, p99) = (delays[delays.len() / 2], delays[delays.len() / 100 * 99]);
            let report = pair.emulation.stop().unwrap();
            let rest = of_the_emulator(&report);
            println!("| {},000 | {p50:.0} | {p99:.0} | {rest}", per_millisecond);
        }
    });
}

#[test]
#[ignore = "measures for some seconds"]
fn starts() {
    with_rights("measure::starts", || {
        for clients in [1, 50] {
            let mut topology = Topology::new();
            let server = topology.add_server().unwrap();
            let mut links = Links::new(Seed::new(1));
            let [up, down] = ["up", "down"].map(|name| links.add(name, &link(10, 5)).unwrap());
            for _ in 0..clients {
                let client = topology.add_client().unwrap();
                for path in [0, 1] {
                    topology.add_path(path, client, server, &[up], &[down]).unwrap();
                }
            }
            let begun = Instant::now();
            let emulation = Emulation::start(&topology, links, &Settings::default()).unwrap();
            let started = begun.elapsed();
            emulation.stop().unwrap();
            println!(
                "{clients} clients: {started:?} to start, {:?} to stop",
                begun.elapsed() - started
            );
        }
    });
}
