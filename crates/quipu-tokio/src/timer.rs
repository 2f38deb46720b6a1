//! One deadline, as precise as the host can do.
//!
//! On Linux it is a timerfd: tokio's own timer counts in milliseconds, and at 100 Mbit/s a packet
//! lasts a tenth of that.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use quipu_base::Duration;
use tokio::sync::Semaphore;

use crate::clock::std_duration;

#[cfg(not(target_os = "linux"))]
pub(crate) use plain::Timer;
#[cfg(target_os = "linux")]
pub(crate) use precise::Timer;

/// How many waits are precise at a time, as each has a descriptor. Our choice.
const MOST_PRECISE: usize = 128;

/// How long before its end a wait becomes precise: tokio's are up to two milliseconds late.
const NEAR: std::time::Duration = std::time::Duration::from_millis(3);

static PRECISE: Semaphore = Semaphore::const_new(MOST_PRECISE);

/// Waits so long, as precisely as the host can: tokio's own timer counts in milliseconds. Of many waits that end at the
/// same time, some are tokio's. It goes by the host's clock, also in a runtime whose own is paused. To be called within a
/// runtime.
pub async fn sleep(delay: Duration) {
    let delay = std_duration(delay);
    let begun = tokio::time::Instant::now();
    if let Some(far) = delay.checked_sub(NEAR) {
        tokio::time::sleep(far).await;
    }
    let left = delay.saturating_sub(begun.elapsed());
    let Ok(_permit) = PRECISE.try_acquire() else { return tokio::time::sleep(left).await };
    match timer(left) {
        Ok(mut timer) => poll_fn(|cx| timer.poll_fired(cx)).await,
        Err(_) => tokio::time::sleep(left).await,
    }
}

/// A timer that fires after that.
fn timer(left: std::time::Duration) -> io::Result<Timer> {
    let left = Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    let mut timer = Timer::new()?;
    timer.set(Some(left))?;
    Ok(timer)
}

#[cfg(target_os = "linux")]
mod precise {
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use super::{Context, Duration, Poll, io};

    /// A timer that is armed or not.
    pub(crate) struct Timer {
        fd: AsyncFd<OwnedFd>,
        armed: bool,
    }

    impl Timer {
        /// A timer that is not armed. To be called within a runtime.
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an OwnedFd keeps its descriptor, as that demands"
        )]
        pub(crate) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Timer { fd: AsyncFd::new(fd)?, armed: false })
        }

        /// Fires after `delay`, or not at all. Replaces what was set before.
        pub(crate) fn set(&mut self, delay: Option<Duration>) -> io::Result<()> {
            if delay.is_none() && !self.armed {
                return Ok(());
            }
            self.armed = delay.is_some();
            // Zero would disarm it.
            let nanos = delay.map_or(0, |delay| delay.as_nanos().max(1));
            let to_i64 = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            let it_value = Timespec {
                tv_sec: to_i64(nanos / 1_000_000_000),
                tv_nsec: to_i64(nanos % 1_000_000_000),
            };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value = Itimerspec { it_interval, it_value };
            timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &value)?;
            Ok(())
        }

        /// Ready once after it fired.
        pub(crate) fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            loop {
                let Poll::Ready(Ok(mut guard)) = self.fd.poll_read_ready(cx) else {
                    return Poll::Pending;
                };
                let read = guard.try_io(|fd| {
                    let mut count = [0; 8];
                    Ok(rustix::io::read(fd.get_ref(), &mut count)?)
                });
                match read {
                    Ok(_) => return Poll::Ready(()),
                    // Set anew since it fired; readiness is cleared now.
                    Err(_would_block) => {}
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod plain {
    use std::future::Future;
    use std::pin::Pin;

    use super::{Context, Duration, Poll, io, std_duration};

    /// A timer that is armed or not.
    pub(crate) struct Timer {
        sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    }

    impl Timer {
        /// A timer that is not armed.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Timer { sleep: None })
        }

        /// Fires after `delay`, or not at all. Replaces what was set before.
        pub(crate) fn set(&mut self, delay: Option<Duration>) -> io::Result<()> {
            let Some(delay) = delay.map(std_duration) else {
                self.sleep = None;
                return Ok(());
            };
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(tokio::time::Instant::now() + delay),
                None => self.sleep = Some(Box::pin(tokio::time::sleep(delay))),
            }
            Ok(())
        }

        /// Ready once after it fired.
        pub(crate) fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let Some(sleep) = &mut self.sleep else { return Poll::Pending };
            let fired = sleep.as_mut().poll(cx);
            if fired.is_ready() {
                self.sleep = None;
            }
            fired
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn a_timer_fires_once_and_not_early() {
        let clock = Clock::start();
        let mut timer = Timer::new().unwrap();
        timer.set(Some(Duration::from_millis(5))).unwrap();
        poll_fn(|cx| timer.poll_fired(cx)).await;
        assert!(clock.now().as_nanos() >= 5_000_000);
        let again = poll_fn(|cx| timer.poll_fired(cx));
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), again).await.is_err());
    }

    #[tokio::test]
    async fn more_waits_than_may_be_precise_end_none_too_early() {
        let clock = Clock::start();
        let waits = (0..2 * MOST_PRECISE).map(|_| tokio::spawn(sleep(Duration::from_millis(30))));
        for wait in waits.collect::<Vec<_>>() {
            wait.await.unwrap();
        }
        assert!(clock.now().as_nanos() >= 30_000_000);
        assert_eq!(PRECISE.available_permits(), MOST_PRECISE);
    }

    #[tokio::test]
    async fn a_later_deadline_replaces_one_that_fired_unseen() {
        let clock = Clock::start();
        let mut timer = Timer::new().unwrap();
        timer.set(Some(Duration::ZERO)).unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        timer.set(Some(Duration::from_millis(20))).unwrap();
        poll_fn(|cx| timer.poll_fired(cx)).await;
        assert!(clock.now().as_nanos() >= 20_000_000);
        timer.set(Some(Duration::from_millis(1))).unwrap();
        timer.set(None).unwrap();
        let disarmed = poll_fn(|cx| timer.poll_fired(cx));
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(20), disarmed).await.is_err()
        );
    }
}
