//! How late the runtime's timer fires: a timerfd that a task of tokio waits for, as this crate has it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_getres,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Times that are waited.
const WAITS: u64 = 2_000;

/// Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// Resolution of the clock; 0 where that is a nanosecond.
    pub(super) tick: u64,
    /// Median.
    pub(super) late: u64,
    /// 90th percentile.
    pub(super) p90: u64,
}

/// Waits for 0.2 to 2.2 ms again and again.
#[expect(clippy::disallowed_methods, reason = "it measures the host's time")]
#[expect(deprecated, reason = "as in the runtime: an OwnedFd keeps its descriptor")]
pub(super) async fn measure() -> io::Result<Timer> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let fd: OwnedFd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let fd = AsyncFd::new(fd)?;
    let mut late = Vec::new();
    for wait in 0..WAITS {
        // Times of no common measure, so that none falls in with a tick.
        let delay = Duration::from_nanos(200_000 + wait * 999_983 % 2_000_000);
        let begin = Instant::now();
        let nanos = i64::from(delay.subsec_nanos());
        let it_value = Timespec { tv_sec: 0, tv_nsec: nanos };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Itimerspec { it_interval, it_value };
        timerfd_settime(fd.get_ref(), TimerfdTimerFlags::empty(), &value)?;
        loop {
            let mut guard = fd.readable().await?;
            let read = guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0; 8])?));
            if let Ok(read) = read {
                read?;
                break;
            }
        }
        late.push(begin.elapsed().saturating_sub(delay).as_nanos() as u64);
    }
    late.sort_unstable();
    let resolution = clock_getres(ClockId::Monotonic).tv_nsec.unsigned_abs();
    Ok(Timer {
        tick: if resolution > 1 { resolution } else { 0 },
        late: late[late.len() / 2],
        p90: late[late.len() * 9 / 10],
    })
}
