//! Links that follow recordings deliver in real time what the simulator's links deliver.

use std::time::{Duration, Instant};

use quipu_base::{Bytes, Seed};
use quipu_link::{
    BuiltinTrace, Capacity, Link, LinkConfig, Play, QueueLimit, Recording, Verdict, ecn,
};

use crate::setup::{Pair, sockets, with_rights};

/// Bytes of a packet, and of its payload.
const PACKET: usize = 1_500;
const PAYLOAD: usize = PACKET - 28;
const DELAY: quipu_base::Duration = quipu_base::Duration::from_millis(10);

fn config(recording: &Recording) -> LinkConfig {
    let mut config = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    recording.put_into(&mut config, Play::default());
    LinkConfig { overhead: Bytes::ZERO, ..config.with_queue(QueueLimit::packets(500)) }
}

/// Packets that come in each millisecond of each tenth of a second: a tenth more than the link carries then.
fn offered(config: &LinkConfig, seconds: u64) -> Vec<u64> {
    let capacity = Capacity::of(config);
    let tenth = |tenth: u64| quipu_base::Instant::from_nanos(tenth * 100_000_000);
    let bytes = (0..seconds * 10).map(|step| capacity.between(tenth(step), tenth(step + 1)).0);
    bytes.map(|bytes| (bytes * 11 / 10).div_ceil(100 * PACKET as u64).clamp(1, 400)).collect()
}

/// Packets that a link delivers in each second if it is offered more than it takes.
fn simulated(config: &LinkConfig, seconds: u64, offered: &[u64]) -> Vec<u64> {
    let mut link = Link::new(config, Seed::new(1).child("link", 0)).unwrap();
    let mut delivered = vec![0; seconds as usize];
    for milli in 0..seconds * 1_000 {
        let now = quipu_base::Instant::ZERO + quipu_base::Duration::from_millis(milli);
        for _ in 0..offered[(milli / 100) as usize] {
            if let Verdict::Deliver { at, .. } = link.offer(now, Bytes(PACKET as u64), ecn::NOT_ECT)
            {
                let left = at - DELAY - quipu_base::Instant::ZERO;
                if let Some(second) = delivered.get_mut((left.as_nanos() / 1_000_000_000) as usize)
                {
                    *second += 1;
                }
            }
        }
    }
    delivered
}

/// The same of an emulated link, and why the run is void, if it is.
fn emulated(config: &LinkConfig, seconds: u64, offered: &[u64]) -> (Vec<u64>, Vec<String>) {
    let pair = Pair::start(&[[config.clone(), LinkConfig::default()]], None);
    let [client, server] = sockets(&pair, 0);
    // The links began before the sockets were there.
    let elapsed = Duration::from_nanos(pair.emulation.report().unwrap().elapsed_ns);
    let begun = Instant::now() - elapsed;
    let offered = offered.to_vec();
    let sender = std::thread::spawn(move || {
        let payload = [0; PAYLOAD];
        for milli in elapsed.as_millis() as u64..seconds * 1_000 {
            let next = Duration::from_millis(milli);
            std::thread::sleep(next.saturating_sub(begun.elapsed()));
            for _ in 0..offered[(milli / 100) as usize] {
                client.send(&payload).unwrap();
            }
        }
    });
    let mut delivered = vec![0; seconds as usize];
    let mut buffer = [0; PACKET];
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    loop {
        let received = server.recv(&mut buffer);
        let left = begun.elapsed().saturating_sub(Duration::from_nanos(DELAY.as_nanos()));
        match received {
            Ok(_) => {
                if let Some(second) = delivered.get_mut(left.as_secs() as usize) {
                    *second += 1;
                }
            }
            Err(_) if sender.is_finished() => break,
            Err(_) => {}
        }
    }
    sender.join().unwrap();
    (delivered, pair.emulation.stop().unwrap().void)
}

/// How many seconds differ by more than a hundredth and two packets, of those from the second on.
fn differing(simulated: &[u64], emulated: &[u64]) -> usize {
    let differs = |(simulated, emulated): &(&u64, &u64)| {
        simulated.abs_diff(**emulated) * 100 > **simulated + 200
    };
    simulated.iter().zip(emulated).skip(1).filter(differs).count()
}

/// Both counts of a recording, of which the emulated one is made up to three times if it is void.
fn both(recording: &Recording, seconds: u64) -> (Vec<u64>, Vec<u64>, Vec<String>) {
    let config = config(recording);
    let offered = offered(&config, seconds);
    let simulated = simulated(&config, seconds, &offered);
    let mut last = emulated(&config, seconds, &offered);
    for _ in 0..2 {
        if last.1.is_empty() && differing(&simulated, &last.0) == 0 {
            break;
        }
        last = emulated(&config, seconds, &offered);
    }
    (simulated, last.0, last.1)
}

#[test]
fn a_recorded_drive_delivers_in_each_second_what_it_delivers_in_the_simulator() {
    with_rights(
        "drives::a_recorded_drive_delivers_in_each_second_what_it_delivers_in_the_simulator",
        || {
            let recording = BuiltinTrace::named("us-drive-08-att").unwrap().down().unwrap();
            let (simulated, emulated, void) = both(&recording, 5);
            assert!(simulated.iter().sum::<u64>() > 100, "{simulated:?}");
            if void.is_empty() {
                assert_eq!(differing(&simulated, &emulated), 0, "{simulated:?} {emulated:?}");
            } else {
                eprintln!("void: {void:?}");
            }
        },
    );
}

#[test]
#[ignore = "measures for minutes: docs/emulator.md"]
fn all_drives() {
    with_rights("drives::all_drives", || {
        let seconds = 20;
        println!(
            "| recording | packets simulated | emulated | fastest second | seconds that differ by more than 1 % | run |"
        );
        for trace in BuiltinTrace::all().iter().filter(|trace| trace.name.starts_with("us-drive-"))
        {
            for (direction, recording) in [("down", trace.down()), ("up", trace.up())] {
                let Ok(recording) = recording else { continue };
                let (simulated, emulated, void) = both(&recording, seconds);
                let sum = |counts: &[u64]| counts.iter().skip(1).sum::<u64>();
                let fastest =
                    simulated.iter().max().map_or(0, |packets| packets * 8 * PACKET as u64);
                println!(
                    "| `{}`, {direction} | {} | {} | {} Mbit/s | {} of {} | {} |",
                    trace.name,
                    sum(&simulated),
                    sum(&emulated),
                    fastest / 1_000_000,
                    differing(&simulated, &emulated),
                    seconds - 1,
                    if void.is_empty() { "counts" } else { "void" },
                );
            }
        }
    });
}
