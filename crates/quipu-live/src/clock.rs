//! The time of a load.

use quipu_base::{Duration, Instant};
use tokio::time;

/// Counts from the start of a load.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: time::Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Clock {
        Clock { start: time::Instant::now() }
    }

    /// The time since the start.
    pub fn now(&self) -> Instant {
        let since = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::ZERO + Duration::from_nanos(since)
    }

    /// Waits until then; for ever if there is no such time.
    pub(crate) async fn sleep_until(&self, at: Option<Instant>) {
        let since = at.map(|at| std::time::Duration::from_nanos((at - Instant::ZERO).as_nanos()));
        match since.and_then(|since| self.start.checked_add(since)) {
            Some(at) => time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}
