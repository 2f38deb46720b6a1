//! Values that change at set times: the steps of a scenario, or what somebody recorded.

use std::fmt;
use std::sync::Arc;

use quipu_base::{Duration, Instant};

/// How a recording is played: where in it a run begins, and what comes after its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Play {
    /// Time of the recording at which a run begins.
    pub from: Duration,
    /// What follows the recording's end.
    pub at_end: AtEnd,
}

/// What a link does when the recording that it follows is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// The recording starts again, from its start.
    #[default]
    Loop,
    /// The last value holds for good.
    Hold,
    /// Nothing leaves the link any more. What does not set how fast a link sends holds.
    Stop,
}

/// A value over time, the same from the instant of one change to that of the next.
///
/// Clones share the values.
#[derive(Clone, PartialEq)]
pub struct Timeline<T> {
    /// Strictly in order of time; the first at zero.
    values: Arc<[(Duration, T)]>,
    /// Time of one round: above the last value's time.
    length: Duration,
    play: Play,
}

impl<T: Copy> Timeline<T> {
    /// `first`, and from each instant of `changes` on the value beside it, for good. Changes come
    /// in order of time; of several at one time the last one counts, and one at a time before that
    /// of an earlier one counts as at that one's time.
    pub fn of_steps(first: T, changes: impl IntoIterator<Item = (Duration, T)>) -> Self {
        let mut values = vec![(Duration::ZERO, first)];
        for (time, value) in changes {
            let time = values.last().map_or(time, |(last, _)| time.max(*last));
            values.pop_if(|(last, _)| *last == time);
            values.push((time, value));
        }
        let last = values.last().map_or(Duration::ZERO, |(time, _)| *time);
        let play = Play { from: Duration::ZERO, at_end: AtEnd::Hold };
        Timeline { values: values.into(), length: last + Duration::from_nanos(1), play }
    }

    /// A recording of `length` that begins with `first`, as it is from its start, once and again.
    pub(crate) fn recorded(
        first: T,
        changes: impl IntoIterator<Item = (Duration, T)>,
        length: Duration,
    ) -> Self {
        let steps = Timeline::of_steps(first, changes);
        Timeline { length: length.max(steps.length), play: Play::default(), ..steps }
    }

    /// The same values, played in another way.
    #[must_use]
    pub fn played(mut self, play: Play) -> Self {
        self.play = play;
        self
    }

    /// The same times with other values.
    #[must_use]
    pub fn map<U>(&self, value: impl Fn(T) -> U) -> Timeline<U> {
        let values = self.values.iter().map(|&(time, old)| (time, value(old))).collect();
        Timeline { values, length: self.length, play: self.play }
    }

    /// How it is played.
    pub fn play(&self) -> Play {
        self.play
    }

    /// Time of one round, above zero.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The values of one round in order of time, each with the time from which it holds; at least
    /// one, the first at zero.
    pub fn values(&self) -> impl Iterator<Item = (Duration, T)> + '_ {
        self.values.iter().copied()
    }

    /// The value at `at`, counted from the start of the run.
    pub fn value_at(&self, at: Instant) -> T {
        let mut cursor = Cursor::new(self);
        cursor.seek(at);
        cursor.value
    }

    /// When it is over, if nothing comes after it: with [`AtEnd::Stop`].
    pub fn ends_at(&self) -> Option<Instant> {
        let rest = self.length.saturating_sub(self.play.from);
        (self.play.at_end == AtEnd::Stop).then(|| Instant::ZERO + rest)
    }

    /// The value at `time` of a round: its place, and itself with the time from which it holds.
    pub(crate) fn piece(&self, time: Duration) -> (usize, (Duration, T)) {
        let later = self.values.partition_point(|(at, _)| *at <= time);
        // The first value is at zero.
        let index = later.saturating_sub(1);
        (index, self.values[index])
    }

    /// The time of the recording at `at`: in which round, and where in it.
    pub(crate) fn position(&self, at: Instant) -> (u64, Duration) {
        match self.play.at_end {
            AtEnd::Loop => {
                // Both together may be beyond what an instant holds.
                let time = u128::from(at.as_nanos()) + u128::from(self.play.from.as_nanos());
                let length = u128::from(self.length.as_nanos());
                let rounds = u64::try_from(time / length).unwrap_or(u64::MAX);
                // A remainder is below the length, which is a u64.
                (rounds, Duration::from_nanos((time % length) as u64))
            }
            // Behind the end all is as at the end.
            AtEnd::Hold | AtEnd::Stop => {
                (0, Duration::from_nanos((at + self.play.from.min(self.length)).as_nanos()))
            }
        }
    }
}

impl<T> fmt::Debug for Timeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline")
            .field("values", &self.values.len())
            .field("length", &self.length)
            .field("play", &self.play)
            .finish()
    }
}

/// A place in a [`Timeline`], which goes forward.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<T> {
    timeline: Timeline<T>,
    /// Complete rounds before this one.
    rounds: u64,
    /// Place of the value in its round.
    index: usize,
    value: T,
    /// When the next value holds; [`Instant::FAR_FUTURE`] if there is none.
    next_at: Instant,
}

impl<T: Copy> Cursor<T> {
    /// At the start of the run.
    pub(crate) fn new(timeline: &Timeline<T>) -> Self {
        let timeline = timeline.clone();
        // There is a first value.
        let value = timeline.values[0].1;
        let mut cursor =
            Cursor { timeline, rounds: 0, index: 0, value, next_at: Instant::FAR_FUTURE };
        cursor.go_to(Instant::ZERO);
        cursor
    }

    /// The value that holds.
    #[inline]
    pub(crate) fn value(&self) -> T {
        self.value
    }

    /// When the next value holds; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Which value it is, counted from the start of the recording.
    pub(crate) fn number(&self) -> u64 {
        self.rounds
            .saturating_mul(self.timeline.values.len() as u64)
            .saturating_add(self.index as u64)
    }

    /// The timeline in which it is.
    pub(crate) fn timeline(&self) -> &Timeline<T> {
        &self.timeline
    }

    /// To the value at `now`, if the cursor is not past it. True if that is another place.
    #[inline]
    pub(crate) fn seek(&mut self, now: Instant) -> bool {
        let moves = self.next_at <= now && self.next_at != Instant::FAR_FUTURE;
        if moves {
            self.go_to(now);
        }
        moves
    }

    /// To the next value, if there is one.
    pub(crate) fn advance(&mut self) {
        self.index += 1;
        if self.index == self.timeline.values.len() {
            (self.index, self.rounds) = (0, self.rounds.saturating_add(1));
        }
        self.settle();
    }

    /// To the same value, `rounds` rounds later. Of a timeline that starts again.
    pub(crate) fn skip_rounds(&mut self, rounds: u64) {
        self.rounds = self.rounds.saturating_add(rounds);
        self.settle();
    }

    fn go_to(&mut self, now: Instant) {
        let (rounds, time) = self.timeline.position(now);
        (self.rounds, self.index) = (rounds, self.timeline.piece(time).0);
        self.settle();
    }

    /// Looks up the value, and when the next one holds.
    fn settle(&mut self) {
        let Timeline { values, length, play } = &self.timeline;
        self.value = values[self.index].1;
        let next = match (values.get(self.index + 1), play.at_end) {
            (Some((time, _)), _) => Some((self.rounds, *time)),
            // One value alone never changes.
            (None, AtEnd::Loop) if values.len() > 1 => {
                Some((self.rounds.saturating_add(1), Duration::ZERO))
            }
            (None, _) => None,
        };
        self.next_at = next.map_or(Instant::FAR_FUTURE, |(rounds, time)| {
            let nanos = u128::from(rounds) * u128::from(length.as_nanos());
            let nanos = nanos + u128::from(time.as_nanos());
            let nanos = nanos.saturating_sub(u128::from(play.from.as_nanos()));
            u64::try_from(nanos).map_or(Instant::FAR_FUTURE, Instant::from_nanos)
        });
    }
}

#[cfg(test)]
mod tests;
