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
    pub async fn sleep_until(&self, at: Option<Instant>) {
        match at {
            Some(at) => quipu_tokio::sleep(at.saturating_since(self.now())).await,
            None => std::future::pending().await,
        }
    }
}
