//! Think times: what is due at the same time is answered in the order of requests, as in the simulator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_base::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::clock::Begin;

/// What is due within this time of each other is due at the same time: more than requests of one datagram are apart when they
/// are read, less than a page would notice. Our choice.
const SAME: Duration = Duration::from_micros(200);

/// Requests that are thought about, by their number in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Thinking(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    last: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    /// When it came.
    begin: Begin,
    /// How long it is thought about.
    think: Duration,
    /// Told when that is over.
    done: Arc<Notify>,
}

/// Takes a request away that is no longer waited for.
struct Place {
    thinking: Thinking,
    number: u64,
    alarm: AbortHandle,
}

impl Thinking {
    /// Thinks about a request that was there at `begin` for so long.
    pub(super) async fn about(&self, begin: Begin, think: Duration) {
        let left = left(begin, think);
        if left.is_zero() {
            return;
        }
        let done = Arc::new(Notify::new());
        let number = {
            let mut requests = self.requests();
            requests.last += 1;
            let number = requests.last;
            requests.open.insert(number, Open { begin, think, done: Arc::clone(&done) });
            number
        };
        // Whoever is due first wakes all that are due at the same time, one after the other: a request that woke by itself
        // would be answered before them.
        let thinking = self.clone();
        let alarm = tokio::spawn(async move {
            quipu_tokio::sleep(left).await;
            thinking.wake_with(number);
        });
        let _place = Place { thinking: self.clone(), number, alarm: alarm.abort_handle() };
        done.notified().await;
    }

    /// Wakes the request of that number, which is due, and all that are due at the same time.
    fn wake_with(&self, number: u64) {
        self.requests().open.retain(|of, open| {
            let is_due = *of == number || left(open.begin, open.think) <= SAME;
            if is_due {
                open.done.notify_one();
            }
            !is_due
        });
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.thinking.requests().open.remove(&self.number);
        self.alarm.abort();
    }
}

/// What is left of a think time.
fn left(begin: Begin, think: Duration) -> Duration {
    let thought = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    think.saturating_sub(Duration::from_nanos(thought))
}

#[cfg(test)]
mod tests {
    use std::time;

    use super::*;

    /// The order in which requests are answered that came so many microseconds apart, in this order, and are thought about for
    /// 50 ms.
    async fn answered(micros: &[u64]) -> Vec<usize> {
        let thinking = Thinking::default();
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let first = Begin::ago(time::Duration::from_millis(20));
        for (number, &micros) in micros.iter().enumerate() {
            let (thinking, sender) = (thinking.clone(), sender.clone());
            let begin = first.later(time::Duration::from_micros(micros));
            tokio::spawn(async move {
                thinking.about(begin, Duration::from_millis(50)).await;
                sender.send(number).expect("it is heard");
            });
        }
        drop(sender);
        let mut order = Vec::new();
        while let Some(number) = receiver.recv().await {
            order.push(number);
        }
        assert!(thinking.requests().open.is_empty());
        order
    }

    #[tokio::test]
    async fn what_is_due_at_the_same_time_is_answered_in_the_order_of_requests() {
        // The first is due last, by less than processors know.
        assert_eq!(answered(&[150, 100, 50, 0]).await, [0, 1, 2, 3]);
        assert_eq!(answered(&[20_000, 0, 10_000]).await, [1, 2, 0]);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_nothing() {
        let thinking = Thinking::default();
        let begin = Begin::now();
        tokio::select! {
            () = thinking.about(begin, Duration::from_secs(60)) => panic!("it takes a minute"),
            () = tokio::task::yield_now() => {}
        }
        assert!(thinking.requests().open.is_empty());
        // One that is over takes no time.
        thinking.about(begin, Duration::ZERO).await;
    }
}
