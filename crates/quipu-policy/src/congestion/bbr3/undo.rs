//! The state before a loss, for the case that it was none.

use quipu_base::{Bytes, Instant, Rate};

use super::bounds::ShortTerm;
use super::{Bbr3, State};
use crate::congestion::LostInfo;

/// What losses change, as it was before them.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.11.1>
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeLoss {
    /// When the first of the losses was found.
    lost_at: Instant,
    state: State,
    cwnd: Bytes,
    short_term: ShortTerm,
    long_term: Option<Bytes>,
    was_full: bool,
}

impl Bbr3 {
    /// Packets were lost: the state is kept once for each round of losses, as the engine counts them.
    pub(super) fn keep_before_loss(&mut self, lost: &LostInfo<'_>) {
        let begins = |before: &BeforeLoss| lost.newest_sent_at > before.lost_at;
        if self.before_loss.as_ref().is_none_or(begins) {
            self.before_loss = Some(BeforeLoss {
                lost_at: lost.now,
                state: self.state,
                cwnd: self.cwnd,
                short_term: self.short_term,
                long_term: self.long_term.limit(),
                was_full: self.was_full,
            });
        }
    }

    /// The losses found since `since` were none: limits are what they were, and a probe goes on.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.11.2>
    pub(super) fn undo_loss(&mut self, since: Instant) {
        let Some(before) = self.before_loss.take_if(|before| before.lost_at == since) else {
            return;
        };
        self.signals.take_congestion();
        self.full_pipe.restart(Rate::ZERO);
        self.short_term.raise_to(&before.short_term);
        self.long_term.lift_to(before.long_term);
        self.recovery.cancel();
        self.cwnd = self.cwnd.max(before.cwnd);
        if self.state == State::ProbeRtt || self.state == before.state {
            return;
        }
        match before.state {
            State::Startup => {
                self.was_full = before.was_full;
                self.state = State::Startup;
            }
            State::Up => {
                let rate = self.last_sample.map_or(Rate::ZERO, |sample| sample.rate);
                self.enter_up(rate);
            }
            _ => {}
        }
    }
}
