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
/// What the emulator can carry to and fro on a small machine, in bytes per second.
const MOST: u64 = 300_000_000 / 8;
const DELAY: quipu_base::Duration = quipu_base::Duration::from_millis(10);

fn at(seconds: u64) -> quipu_base::Instant {
    quipu_base::Instant::ZERO + quipu_base::Duration::from_secs(seconds)
}

fn config(recording: &Recording) -> LinkConfig {
    let mut config = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    recording.put_into(&mut config, Play::default());
    LinkConfig { overhead: Bytes::ZERO, ..config.with_queue(QueueLimit::packets(500)) }
}

/// Packets that come each millisecond, more than the link sends at any time.
fn per_millisecond(fastest: u64) -> u64 {
    (2 * fastest / PACKET as u64 / 1_000).clamp(1, 400)
}

/// Packets that a link delivers in each second if it is offered more than it takes.
fn simulated(config: &LinkConfig, seconds: u64, count: u64) -> Vec<u64> {
    let mut link = Link::new(config, Seed::new(1).child("link", 0)).unwrap();
    let mut delivered = vec![0; seconds as usize];
    for milli in 0..seconds * 1_000 {
        let now = quipu_base::Instant::ZERO + quipu_base::Duration::from_millis(milli);
        for _ in 0..count {
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
fn emulated(config: &LinkConfig, seconds: u64, count: u64) -> (Vec<u64>, Vec<String>) {
    let pair = Pair::start(&[[config.clone(), LinkConfig::default()]], None);
    let [client, server] = sockets(&pair, 0);
    // The links began before the sockets were there.
    let elapsed = Duration::from_nanos(pair.emulation.report().unwrap().elapsed_ns);
    let begun = Instant::now() - elapsed;
    let sender = std::thread::spawn(move || {
        let payload = [0; PAYLOAD];
        for milli in elapsed.as_millis() as u64..seconds * 1_000 {
            let next = Duration::from_millis(milli);
            std::thread::sleep(next.saturating_sub(begun.elapsed()));
            for _ in 0..count {
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

/// Both counts of a recording, of which the emulated one is made up to three times if it is void; none if it is too
/// fast for this machine.
fn both(recording: &Recording, seconds: u64) -> Option<(Vec<u64>, Vec<u64>, Vec<String>)> {
    let config = config(recording);
    let capacity = Capacity::of(&config);
    let fastest = (0..seconds).map(|second| capacity.between(at(second), at(second + 1)).0).max();
    let count = per_millisecond(fastest.unwrap_or_default());
    if count * PACKET as u64 * 1_000 > MOST {
        return None;
    }
    let simulated = simulated(&config, seconds, count);
    let mut last = emulated(&config, seconds, count);
    for _ in 0..2 {
        if last.1.is_empty() && differing(&simulated, &last.0) == 0 {
            break;
        }
        last = emulated(&config, seconds, count);
    }
    Some((simulated, last.0, last.1))
}

#[test]
fn a_recorded_drive_delivers_in_each_second_what_it_delivers_in_the_simulator() {
    with_rights(
        "drives::a_recorded_drive_delivers_in_each_second_what_it_delivers_in_the_simulator",
        || {
            let recording = BuiltinTrace::named("us-drive-08-att").unwrap().down().unwrap();
            let (simulated, emulated, void) = both(&recording, 5).unwrap();
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
        println!(
            "| recording | packets simulated | emulated | seconds that differ by more than 1 % | run |"
        );
        for trace in BuiltinTrace::all().iter().filter(|trace| trace.name.starts_with("us-drive-"))
        {
            let seconds = 20;
            let Ok(recording) = trace.down() else { continue };
            let Some((simulated, emulated, void)) = both(&recording, seconds) else {
                println!("| `{}` | too fast | | | |", trace.name);
                continue;
            };
            let differ = differing(&simulated, &emulated);
            let sum = |counts: &[u64]| counts.iter().skip(1).sum::<u64>();
            let verdict = if void.is_empty() { "counts" } else { "void" };
            println!(
                "| `{}` | {} | {} | {differ} of {} | {verdict} |",
                trace.name,
                sum(&simulated),
                sum(&emulated),
                seconds - 1
            );
        }
    });
}
