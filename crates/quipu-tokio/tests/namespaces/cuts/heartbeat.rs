//! How late the host is: with processors for this process, and with packets in its kernel.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use tokio::time::Instant;

use super::world::World;

/// How often each thread does what is timed.
const NAP: Duration = Duration::from_millis(4);

/// From when to when something was late.
type Log = Mutex<Vec<(Instant, Instant)>>;

/// Threads that sleep for some milliseconds at a time, and send a datagram over a link of their own
/// each time, one on each processor: what a kernel does with packets it does on the processor that
/// sent them.
pub(crate) struct Heartbeat(Arc<Log>);

impl Heartbeat {
    pub(crate) fn start(world: &World) -> Heartbeat {
        let log: Arc<Log> = Arc::default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for processor in 0..processors {
            let (here, there) = world.heartbeat_sockets();
            let began = Instant::now();
            let kept = Arc::downgrade(&log);
            std::thread::spawn(move || beat(processor, &here, began, &kept));
            let kept = Arc::downgrade(&log);
            std::thread::spawn(move || hear(&there, began, &kept));
        }
        Heartbeat(log)
    }

    /// Time between the two in which something was late.
    pub(crate) fn late(&self, from: Instant, to: Instant) -> Duration {
        total(self.0.lock().unwrap().clone(), from, to)
    }
}

/// Time between the two that some of `late` covers.
fn total(mut late: Vec<(Instant, Instant)>, from: Instant, to: Instant) -> Duration {
    late.sort_unstable();
    let (mut sum, mut counted) = (Duration::ZERO, from);
    for (begin, end) in late {
        let (begin, end) = (begin.max(counted), end.min(to));
        if end > begin {
            sum += end - begin;
            counted = end;
        }
    }
    sum
}

#[expect(clippy::disallowed_methods, reason = "what the host does to sleepers is measured")]
fn beat(processor: usize, socket: &UdpSocket, began: Instant, log: &Weak<Log>) {
    let mut own = CpuSet::new();
    // A host may forbid it: then the thread runs where it may.
    let _ = own.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &own));
    let mut before = Instant::now();
    while let Some(log) = log.upgrade() {
        std::thread::sleep(NAP);
        let now = Instant::now();
        note(&log, before + NAP, now);
        before = now;
        // The link may be full, which is heard as well.
        let _ = socket.send(&(now - began).as_nanos().to_be_bytes());
    }
}

fn hear(socket: &UdpSocket, began: Instant, log: &Weak<Log>) {
    let mut nanos = [0; 16];
    while socket.recv(&mut nanos).is_ok() {
        let nanos = u64::try_from(u128::from_be_bytes(nanos)).unwrap();
        let Some(log) = log.upgrade() else { return };
        note(&log, began + Duration::from_nanos(nanos), Instant::now());
    }
}

fn note(log: &Log, due: Instant, now: Instant) {
    if now > due + NAP / 2 {
        log.lock().unwrap().push((due, now));
    }
}

#[test]
fn time_that_is_late_twice_counts_once() {
    let begin = Instant::now();
    let at = |millis| begin + Duration::from_millis(millis);
    let late = vec![(at(40), at(60)), (at(0), at(20)), (at(50), at(55)), (at(58), at(70))];
    assert_eq!(total(late.clone(), at(10), at(65)), Duration::from_millis(10 + 25));
    assert_eq!(total(late, at(70), at(90)), Duration::ZERO);
}
