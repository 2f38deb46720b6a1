//! PIE: drops on arrival by chance, with a probability that is moved so that the wait comes to the
//! target.
//!
//! The scheme of <https://www.rfc-editor.org/rfc/rfc8033#section-4>, with these of the choices that
//! it leaves: the wait is measured by timestamps, not estimated from a dequeue rate (section 4.3
//! allows both); marks in place of drops up to a probability of 10 % (section 5.1); the rise of the
//! probability is capped (section 5.5). PIE is always active (section 5.3 is optional), and drops
//! are not derandomized (section 5.4 is too).

use quipu_base::{Bytes, Duration, Instant, Random, Seed};
use rand_core::Rng;

use super::waiting::{Fifo, Waiting};
use super::{AqmLimit, Pie};
use crate::{DropReason, QueueLimit};

/// Weight of the wait's distance from the target, per second.
/// <https://www.rfc-editor.org/rfc/rfc8033#section-4.2>
const ALPHA: f64 = 0.125;
/// Weight of the wait's change, per second.
const BETA: f64 = 1.25;
/// What is left of the probability at each look when there is no congestion.
const DECAY: f64 = 0.98;
/// Up to this probability marks stand for drops.
/// <https://www.rfc-editor.org/rfc/rfc8033#section-5.1>
const MARKS_UP_TO: f64 = 0.1;
/// Fewer bytes than this in the queue lose none: two packets.
const SMALL_QUEUE: Bytes = QueueLimit::PACKET.saturating_mul(2);
/// After a pause of more looks than this only the last ones are made up for: 25 minutes of the
/// default's, in which all has long come to rest. Our choice.
const MOST_LOOKS_AT_ONCE: u64 = 100_000;

/// One queue under PIE.
#[derive(Debug)]
pub(crate) struct PieQueue {
    fifo: Fifo,
    limit: AqmLimit,
    control: Controller,
    random: Random,
}

/// The drop probability, and what moves it.
#[derive(Debug)]
struct Controller {
    target: Duration,
    update: Duration,
    burst: Duration,
    /// 0 to 1.
    probability: f64,
    /// What the last datagram waited; zero if none waits behind it.
    wait: Duration,
    /// The same at the last look.
    old_wait: Duration,
    /// For how long nothing is dropped yet.
    burst_left: Duration,
    next_look_at: Instant,
}

impl PieQueue {
    pub(crate) fn new(config: &Pie, seed: Seed) -> Self {
        PieQueue {
            fifo: Fifo::default(),
            limit: config.limit,
            control: Controller::new(config),
            random: seed.stream("link.pie", 0),
        }
    }

    pub(crate) fn enqueue(&mut self, now: Instant, mut waiting: Waiting) -> Result<(), DropReason> {
        self.control.look(now);
        let drawn = self.draw();
        if !self.fifo.admits(waiting.bytes, &self.limit) {
            return Err(DropReason::QueueFull);
        }
        let Controller { probability, .. } = self.control;
        if self.control.may_drop(self.fifo.bytes())
            && drawn < probability
            && !(probability <= MARKS_UP_TO && waiting.mark())
        {
            return Err(DropReason::Managed);
        }
        self.fifo.push(waiting);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, now: Instant) -> Option<Waiting> {
        self.control.look(now);
        let first = self.fifo.pop()?;
        let waits_more = !self.fifo.is_empty();
        self.control.wait = if waits_more { now - first.enqueued_at } else { Duration::ZERO };
        Some(first)
    }

    /// Draws for a datagram that was offered and never comes here.
    pub(crate) fn pass(&mut self) {
        self.draw();
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// From zero to below one, in steps of 2^-53.
    fn draw(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Controller {
    fn new(config: &Pie) -> Self {
        Controller {
            target: config.target,
            update: config.update,
            burst: config.burst,
            probability: 0.0,
            wait: Duration::ZERO,
            old_wait: Duration::ZERO,
            burst_left: config.burst,
            next_look_at: Instant::ZERO + config.update,
        }
    }

    /// Whether a datagram that finds `queued` may be dropped.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc8033#section-4.1>
    fn may_drop(&self, queued: Bytes) -> bool {
        let calm = self.old_wait < self.target.divided_by(2) && self.probability < 0.2;
        self.burst_left.is_zero() && !calm && queued > SMALL_QUEUE
    }

    /// Makes up for all looks up to `now`. Nothing has changed since the last datagram came or left,
    /// so that they see what they would have seen at their time.
    fn look(&mut self, now: Instant) {
        if now < self.next_look_at {
            return;
        }
        // Above zero, as the config was checked.
        let update = self.update.as_nanos().max(1);
        let looks = (now - self.next_look_at).as_nanos() / update + 1;
        for _ in 0..looks.min(MOST_LOOKS_AT_ONCE) {
            self.adjust();
        }
        self.next_look_at += self.update.saturating_mul(looks);
    }

    /// <https://www.rfc-editor.org/rfc/rfc8033#section-4.2>
    fn adjust(&mut self) {
        let [wait, old_wait, target] =
            [self.wait, self.old_wait, self.target].map(Duration::as_secs_f64);
        let mut change = ALPHA * (wait - target) + BETA * (wait - old_wait);
        change /= match self.probability {
            p if p < 0.000_001 => 2_048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        // https://www.rfc-editor.org/rfc/rfc8033#section-5.5
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        self.probability += change;
        if self.wait.is_zero() && self.old_wait.is_zero() {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        // https://www.rfc-editor.org/rfc/rfc8033#section-4.4
        self.burst_left = self.burst_left.saturating_sub(self.update);
        let half = self.target.divided_by(2);
        if self.probability == 0.0 && self.wait < half && self.old_wait < half {
            self.burst_left = self.burst;
        }
        self.old_wait = self.wait;
    }
}

#[cfg(test)]
mod tests {
    use super::super::waiting::tests::datagram;
    use super::*;
    use crate::ecn::ECT_0;

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn controller() -> Controller {
        Controller::new(&Pie::default())
    }

    #[test]
    fn the_probability_moves_as_the_formula_says() {
        let mut control = controller();
        control.wait = Duration::from_millis(31);
        control.adjust();
        // (0.125 × 16 ms + 1.25 × 31 ms) / 2048.
        assert!((control.probability - 0.04075 / 2_048.0).abs() < 1e-15);
        control.adjust();
        // 19.9 millionths by now: 0.125 × 16 ms / 128.
        let expected = 0.04075 / 2_048.0 + 0.002 / 128.0;
        assert!((control.probability - expected).abs() < 1e-15);
        // From 10 % on, at most two points more.
        (control.probability, control.wait) = (0.1, Duration::from_millis(500));
        control.adjust();
        assert!((control.probability - 0.12).abs() < 1e-15);
        // And less as fast as it may: 0.125 × -15 ms + 1.25 × -500 ms.
        control.wait = Duration::ZERO;
        control.adjust();
        assert_eq!(control.probability, 0.0);
    }

    #[test]
    fn without_congestion_the_probability_decays() {
        let mut control = Controller { probability: 0.5, ..controller() };
        control.adjust();
        assert!((control.probability - (0.5 - 0.001_875) * 0.98).abs() < 1e-15);
        let looks = (1..10_000).find(|_| {
            control.adjust();
            control.probability == 0.0
        });
        assert!(looks.is_some());
        assert_eq!(control.burst_left, Duration::from_millis(150));
    }

    #[test]
    fn looks_are_made_up_for_one_by_one() {
        let at_rest = |control: &mut Controller, from: u64, until: u64, step: usize| {
            for at in (from..=until).step_by(step) {
                control.look(millis(at));
            }
            (control.probability, control.burst_left, control.next_look_at)
        };
        let busy = || Controller { wait: Duration::from_millis(40), ..controller() };
        let often = at_rest(&mut busy(), 0, 3_000, 1);
        let seldom = at_rest(&mut busy(), 0, 3_000, 1_500);
        assert_eq!(often, seldom);
        assert!(often.0 > 0.01 && often.1.is_zero());
        // A thousand years are over at once.
        let mut control = busy();
        control.look(Instant::FAR_FUTURE);
        assert_eq!(control.probability, 1.0);
    }

    #[test]
    fn a_burst_passes_and_a_queue_that_stays_is_dropped_from() {
        let mut queue = PieQueue::new(&Pie::default(), Seed::new(1));
        let mut lost_at = Vec::new();
        // A datagram more each 2 ms than leaves each 4 ms.
        for step in 0..1_000 {
            let now = millis(step * 2);
            if queue.enqueue(now, datagram(0, 1_500, now)).is_err() {
                lost_at.push(now);
            }
            if step % 2 == 0 {
                queue.dequeue(now);
            }
        }
        assert!(lost_at.len() > 10, "{}", lost_at.len());
        assert!(lost_at[0] > millis(150), "{}", lost_at[0]);
    }

    #[test]
    fn marks_stand_for_drops_while_the_probability_is_low() {
        let busy = |probability| {
            let mut queue = PieQueue::new(&Pie::default(), Seed::new(1));
            queue.control = Controller {
                probability,
                old_wait: Duration::from_millis(50),
                burst_left: Duration::ZERO,
                next_look_at: Instant::FAR_FUTURE,
                ..controller()
            };
            let mut kept = 0;
            for _ in 0..1_000 {
                let waiting = Waiting { ecn: ECT_0, ..datagram(0, 1_500, Instant::ZERO) };
                kept += u32::from(queue.enqueue(Instant::ZERO, waiting).is_ok());
            }
            let mut marked = 0;
            while let Some(sent) = queue.dequeue(Instant::ZERO) {
                marked += u32::from(sent.marked);
            }
            (kept, marked)
        };
        let (kept, marked) = busy(0.1);
        assert_eq!(kept, 1_000);
        assert!((70..130).contains(&marked), "{marked}");
        let (kept, marked) = busy(0.3);
        assert!((650..750).contains(&kept), "{kept}");
        assert_eq!(marked, 0);
    }

    #[test]
    fn each_datagram_offered_draws_once() {
        let drawn = |offers: &[bool]| {
            let limit = AqmLimit::of_datagrams(1);
            let mut queue = PieQueue::new(&Pie { limit, ..Pie::default() }, Seed::new(1));
            for &comes in offers {
                if comes {
                    let _ = queue.enqueue(Instant::ZERO, datagram(0, 1_500, Instant::ZERO));
                } else {
                    queue.pass();
                }
            }
            queue.draw()
        };
        assert_eq!(drawn(&[true, true, true]), drawn(&[false, true, false]));
        assert_ne!(drawn(&[true, true, true]), drawn(&[true, true]));
    }
}
