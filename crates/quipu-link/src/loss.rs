//! Which datagrams chance takes: each by itself, or several in a row.

use quipu_base::{Instant, Random, Seed};

use crate::chance::{Chance, Probability};
use crate::config::{check_correlation, check_probability};
use crate::correlated::{CorrelatedNumbers, of_u32_max};
use crate::timeline::Cursor;
use crate::{InvalidConfig, Timeline};

/// Which datagrams are lost.
///
/// ```
/// use quipu_link::{GilbertElliott, LinkConfig, Loss};
///
/// // 1 % of the datagrams, each by itself.
/// let plain = LinkConfig::default().with_loss(0.01);
/// assert_eq!(plain.loss, Loss::Independent(0.01));
/// // 1.5 % of the datagrams, with a correlation of one half from one to the next.
/// let bursts = LinkConfig::default().with_loss(GilbertElliott::with_share(0.015, 0.5));
/// assert!(bursts.validate().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each datagram by itself, with this chance, 0 to 1. As netem's `loss random PERCENT`.
    Independent(f64),
    /// As netem's `loss random PERCENT CORRELATION`: a datagram is lost if its number, a mean of a
    /// fresh one and of the one before it with the correlation as weight, is in the lowest `share`
    /// of all numbers.
    ///
    /// **Far fewer than `share` are lost**, for such means gather around the middle. With a
    /// correlation of one half, a share of 25 % loses 5/72 = 6.9 %, one of 12.5 % loses
    /// 1/288 = 0.35 %, and one of 1.5 % under two datagrams in a thousand million: the numbers
    /// follow Fabius' function. netem's manual calls the option deprecated. It is here for
    /// networks that were set up with it; for a share that holds, take
    /// [`GilbertElliott::with_share`].
    Correlated {
        /// The share of the numbers that mean loss, 0 to 1.
        share: f64,
        /// The weight of the number before, 0 to below 1.
        correlation: f64,
    },
    /// As netem's `loss gemodel`: a good and a bad state, each with a chance of loss of its own.
    GilbertElliott(GilbertElliott),
}

/// A link that changes between a good and a bad state, with a chance of loss in each.
///
/// Gilbert, "Capacity of a Burst-Noise Channel" (1960), and Elliott, "Estimates of Error Rates for
/// Codes on Burst-Noise Channels" (1963), both in the Bell System Technical Journal. The state
/// before a datagram decides on its loss, then the state may change; the first datagram meets the
/// good state. All four as in netem's `loss gemodel P R 1-H 1-K`, in that order, and each 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Chance, per datagram, that the good state turns bad: p.
    pub good_to_bad: f64,
    /// Chance, per datagram, that the bad state turns good: r. The bad state lasts for 1 / r
    /// datagrams on average.
    pub bad_to_good: f64,
    /// Chance that a datagram is lost in the bad state: 1 - h.
    pub loss_in_bad: f64,
    /// Chance that a datagram is lost in the good state: 1 - k.
    pub loss_in_good: f64,
}

impl Loss {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is no probability, or no correlation below one.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match *self {
            Loss::Independent(share) => check_probability("loss", share),
            Loss::Correlated { share, correlation } => {
                check_probability("loss.share", share)?;
                check_correlation("loss.correlation", correlation)
            }
            Loss::GilbertElliott(model) => {
                check_probability("loss.good_to_bad", model.good_to_bad)?;
                check_probability("loss.bad_to_good", model.bad_to_good)?;
                check_probability("loss.loss_in_bad", model.loss_in_bad)?;
                check_probability("loss.loss_in_good", model.loss_in_good)
            }
        }
    }
}

/// None is lost.
impl Default for Loss {
    fn default() -> Self {
        Loss::Independent(0.0)
    }
}

/// Each datagram by itself, with this chance.
impl From<f64> for Loss {
    fn from(share: f64) -> Self {
        Loss::Independent(share)
    }
}

impl From<GilbertElliott> for Loss {
    fn from(model: GilbertElliott) -> Self {
        Loss::GilbertElliott(model)
    }
}

impl GilbertElliott {
    /// Everything is lost in the bad state and nothing in the good one: netem's defaults for 1-H
    /// and 1-K. Runs of losses are 1 / `bad_to_good` datagrams long on average.
    pub const fn new(good_to_bad: f64, bad_to_good: f64) -> Self {
        GilbertElliott { good_to_bad, bad_to_good, loss_in_bad: 1.0, loss_in_good: 0.0 }
    }

    /// The model of two chances that loses `share` of the datagrams, 0 to 1, and in which the
    /// correlation between the loss of a datagram and of the next one is `correlation`, 0 to
    /// below 1: p = (1 - c) s and r = (1 - c) (1 - s). With a correlation of zero, each datagram
    /// is lost by itself.
    pub fn with_share(share: f64, correlation: f64) -> Self {
        let fresh = 1.0 - correlation;
        GilbertElliott::new(fresh * share, fresh * (1.0 - share))
    }

    /// The share of the datagrams that is lost in the long run, 0 to 1. If neither state ever
    /// changes, that of the good one.
    pub fn share(&self) -> f64 {
        let bad = self.share_of_bad();
        // Not above one, which rounding could make of it.
        ((1.0 - bad) * self.loss_in_good + bad * self.loss_in_bad).min(1.0)
    }

    /// How many datagrams in a row are lost on average, counting only where one is: at least 1,
    /// infinity if a run of losses need never end, and 0 if none is ever lost.
    pub fn mean_burst(&self) -> f64 {
        let share = self.share();
        if share == 0.0 {
            return 0.0;
        }
        let bad = self.share_of_bad();
        let (good_arrives, bad_arrives) = (1.0 - self.loss_in_good, 1.0 - self.loss_in_bad);
        let after_good = (1.0 - self.good_to_bad) * good_arrives + self.good_to_bad * bad_arrives;
        let after_bad = (1.0 - self.bad_to_good) * bad_arrives + self.bad_to_good * good_arrives;
        // As many runs end as there are losses with an arrival right after.
        let ends =
            (1.0 - bad) * self.loss_in_good * after_good + bad * self.loss_in_bad * after_bad;
        // Rounding, again.
        (share / ends).max(1.0)
    }

    /// The share of the datagrams that meets the bad state, in the long run.
    fn share_of_bad(&self) -> f64 {
        let changes = self.good_to_bad + self.bad_to_good;
        if changes > 0.0 { self.good_to_bad / changes } else { 0.0 }
    }
}

/// A [`Loss`] at work.
#[derive(Debug)]
pub(crate) enum LossProcess {
    Independent(Chance),
    Correlated {
        /// Lost at this number or below; `None`: never.
        highest_lost: Option<u32>,
        numbers: CorrelatedNumbers,
    },
    GilbertElliott(Channel),
    OverTime(Box<LossOverTime>),
}

impl LossProcess {
    /// What becomes of `losses`, which must be valid, or if there are none of `loss`.
    pub(crate) fn over_time(losses: Option<&Timeline<Loss>>, loss: Loss, seed: Seed) -> Self {
        match losses {
            Some(losses) => LossProcess::OverTime(Box::new(LossOverTime::new(losses, seed))),
            None => LossProcess::new(loss, seed),
        }
    }

    /// `loss` must be valid. Draws from the streams `link.loss` of `seed`.
    fn new(loss: Loss, seed: Seed) -> Self {
        const NAME: &str = "link.loss";
        match loss {
            Loss::Independent(share) => {
                LossProcess::Independent(Chance::new(share, seed.stream(NAME, 0)))
            }
            Loss::Correlated { share, correlation } => LossProcess::Correlated {
                highest_lost: Some(of_u32_max(share)).filter(|&highest| highest != 0),
                numbers: CorrelatedNumbers::new(correlation, seed, NAME),
            },
            Loss::GilbertElliott(model) => LossProcess::GilbertElliott(Channel::new(
                model,
                seed.stream(NAME, 0),
                seed.stream(NAME, 1),
            )),
        }
    }

    /// Whether the next datagram is lost, which is offered at `now`.
    #[inline]
    pub(crate) fn draw(&mut self, now: Instant) -> bool {
        match self {
            LossProcess::Independent(chance) => chance.draw(),
            LossProcess::Correlated { highest_lost, numbers } => {
                let number = numbers.draw();
                highest_lost.is_some_and(|highest| number <= highest)
            }
            LossProcess::GilbertElliott(channel) => channel.draw(),
            LossProcess::OverTime(losses) => losses.draw(now),
        }
    }
}

/// A loss that changes at set times. What holds when a datagram is offered decides on it, as in
/// netem, which loses datagrams in front of its queue.
///
/// Independent losses all draw from one stream, one number per datagram: the n-th datagram meets
/// the same chance whenever it comes. Any other model starts anew when its time comes.
#[derive(Debug)]
pub(crate) struct LossOverTime {
    cursor: Cursor<Loss>,
    seed: Seed,
    independent: Random,
    /// The model that holds, if it is not [`Loss::Independent`].
    model: Option<LossProcess>,
}

impl LossOverTime {
    fn new(losses: &Timeline<Loss>, seed: Seed) -> Self {
        let independent = seed.stream("link.loss", 0);
        let mut losses =
            LossOverTime { cursor: Cursor::new(losses), seed, independent, model: None };
        losses.take();
        losses
    }

    /// Begins with the loss that holds.
    fn take(&mut self) {
        self.model = match self.cursor.value() {
            Loss::Independent(_) => None,
            model => {
                let seed = self.seed.child("link.loss.change", self.cursor.number());
                Some(LossProcess::new(model, seed))
            }
        };
    }

    fn draw(&mut self, now: Instant) -> bool {
        if self.cursor.seek(now) {
            self.take();
        }
        let share = match self.cursor.value() {
            Loss::Independent(share) => share,
            Loss::Correlated { .. } | Loss::GilbertElliott(_) => 0.0,
        };
        let alone = Probability::new(share).draw(&mut self.independent);
        self.model.as_mut().map_or(alone, |model| model.draw(now))
    }
}

/// The two states at work.
#[derive(Debug)]
pub(crate) struct Channel {
    is_bad: bool,
    good: State,
    bad: State,
    losses: Random,
    changes: Random,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// That a datagram is lost.
    loses: Probability,
    /// That the other state is next.
    ends: Probability,
}

impl Channel {
    fn new(model: GilbertElliott, losses: Random, changes: Random) -> Self {
        let state =
            |loses, ends| State { loses: Probability::new(loses), ends: Probability::new(ends) };
        Channel {
            is_bad: false,
            good: state(model.loss_in_good, model.good_to_bad),
            bad: state(model.loss_in_bad, model.bad_to_good),
            losses,
            changes,
        }
    }

    fn draw(&mut self) -> bool {
        let state = if self.is_bad { self.bad } else { self.good };
        self.is_bad ^= state.ends.draw(&mut self.changes);
        state.loses.draw(&mut self.losses)
    }
}

#[cfg(test)]
mod tests;
