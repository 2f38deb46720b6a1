//! Links that send as a recorded one did: packet-delivery traces in Mahimahi's form.

use std::fmt;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, Rate};

use crate::{AtEnd, Play, QueueLimit};

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// The instants at which a link may send up to 1,500 bytes each: its opportunities.
///
/// The form is that of Mahimahi, <http://mahimahi.mit.edu/>: one number on each line, the
/// milliseconds from the start at which an opportunity is. Numbers never go down; one that is
/// there twice gives two opportunities. After the last one the trace starts again, with time 0 at
/// the last number, unless it is [played](Self::played) in another way.
///
/// What an opportunity carries is counted in bytes, in order: several small datagrams may share
/// one, and a datagram that does not fit goes on in the next one and leaves with its last byte. An
/// opportunity that finds nothing waiting is lost. A datagram offered at the very instant of an
/// opportunity is late for it.
///
/// Mahimahi's own 1,504 bytes count the header of its network device; here an IP packet counts as
/// it is, with [`LinkConfig::overhead`](crate::LinkConfig::overhead).
///
/// Clones share the numbers.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds, none below the one before. At least one; the last is above zero.
    times: Arc<[u32]>,
    play: Play,
}

/// Why a text is no packet-delivery trace. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryTraceError {
    /// A number is below the one before.
    #[error("line {line}: {found} ms, expected not less than {before} ms, as in the line before")]
    Backwards {
        /// Where it is.
        line: usize,
        /// The number.
        found: u32,
        /// The one before.
        before: u32,
    },
    /// There is no line.
    #[error("the trace is empty, expected a line for each 1,500 bytes")]
    Empty,
    /// The last number is 0, so that no time passes.
    #[error("line {line}: 0 ms at the end of the trace, expected a number above 0")]
    NoTime {
        /// The last line.
        line: usize,
    },
    /// A line is not one whole number in range.
    #[error("line {line}: `{found}`, expected milliseconds, a whole number up to {}", u32::MAX)]
    NotMilliseconds {
        /// Where it is.
        line: usize,
        /// The line's first 24 characters.
        found: String,
    },
    /// There are more lines than a trace may have.
    #[error("line {line}: expected not more than {} lines", DeliveryTrace::MOST_OPPORTUNITIES)]
    TooLong {
        /// The first line too many.
        line: usize,
    },
}

impl DeliveryTrace {
    /// What one opportunity carries at most: 1,500 bytes, headers included.
    pub const OPPORTUNITY: Bytes = QueueLimit::PACKET;

    /// The most lines that a trace may have: 16,777,216, two minutes at 1.6 Gbit/s. Our choice.
    pub const MOST_OPPORTUNITIES: usize = 1 << 24;

    /// Reads a trace from the text of its file, which may begin with a byte order mark and whose lines may end in CR LF.
    ///
    /// # Errors
    /// At the first line that is wrong, or if all of it makes no trace.
    pub fn parse(text: &str) -> Result<Self, DeliveryTraceError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut times = Vec::new();
        let mut before = 0;
        for (line, content) in (1..).zip(text.lines()) {
            if line > Self::MOST_OPPORTUNITIES {
                return Err(DeliveryTraceError::TooLong { line });
            }
            let time = milliseconds(content).ok_or_else(|| {
                let found = content.chars().take(24).collect();
                DeliveryTraceError::NotMilliseconds { line, found }
            })?;
            if time < before {
                return Err(DeliveryTraceError::Backwards { line, found: time, before });
            }
            times.push(time);
            before = time;
        }
        match times.last() {
            None => Err(DeliveryTraceError::Empty),
            Some(0) => Err(DeliveryTraceError::NoTime { line: times.len() }),
            Some(_) => Ok(DeliveryTrace { times: times.into(), play: Play::default() }),
        }
    }

    /// The same recording, played in another way. A link refuses [`AtEnd::Hold`]: opportunities
    /// have no last value.
    #[must_use]
    pub fn played(mut self, play: Play) -> Self {
        self.play = play;
        self
    }

    /// How it is played.
    pub fn play(&self) -> Play {
        self.play
    }

    /// When it is over, if it does not start again.
    pub fn ends_at(&self) -> Option<Instant> {
        let rest = self.length().saturating_sub(self.play.from);
        self.stops().then(|| Instant::ZERO + rest)
    }

    fn stops(&self) -> bool {
        self.play.at_end != AtEnd::Loop
    }

    /// Opportunities in one round, at least one.
    pub fn opportunities(&self) -> usize {
        self.times.len()
    }

    /// Time of one round, above zero: that of the last opportunity.
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.length_millis())
    }

    /// Bits per second over a whole round, rounded down, but above zero.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.times.len() as u128 * u128::from(Self::OPPORTUNITY.0) * 8;
        let per_second = bits * 1_000 / u128::from(self.length_millis());
        Rate::from_bits_per_sec(u64::try_from(per_second).unwrap_or(u64::MAX).max(1))
    }

    /// Opportunities after the start of the run up to and with `at`, over as many rounds as that
    /// takes; saturating.
    pub fn opportunities_by(&self, at: Instant) -> u64 {
        let of_round = self.times.len() as u64;
        let [before, by] = [Instant::ZERO, at].map(|at| match self.after(at) {
            (1.., _) if self.stops() => of_round,
            (rounds, position) => rounds.saturating_mul(of_round).saturating_add(position as u64),
        });
        // One at the very start carries nothing.
        by - before
    }

    /// The first opportunity after `at`: complete rounds before it, and its place in its round.
    fn after(&self, at: Instant) -> (u64, usize) {
        let millis = (at + self.play.from).as_nanos() / NANOS_PER_MILLISECOND;
        let (rounds, rest) = (millis / self.length_millis(), millis % self.length_millis());
        // The rest is below the last number, so that there is one above it.
        (rounds, self.times.partition_point(|time| u64::from(*time) <= rest))
    }

    fn length_millis(&self) -> u64 {
        self.times.last().map_or(1, |last| u64::from(*last))
    }
}

impl fmt::Debug for DeliveryTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveryTrace")
            .field("opportunities", &self.opportunities())
            .field("length", &self.length())
            .finish()
    }
}

/// Digits alone: no sign, no blank.
fn milliseconds(line: &str) -> Option<u32> {
    let digits = line.bytes().all(|byte| byte.is_ascii_digit());
    line.parse().ok().filter(|_| digits)
}

/// Gives the opportunities of a trace to one datagram after the other.
///
/// Datagrams leave in order, so which opportunity carries a datagram's last byte is known when it
/// is handed over.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: DeliveryTrace,
    /// Complete rounds before the current opportunity.
    rounds: u64,
    /// Place of the current opportunity in its round.
    position: usize,
    /// When it is.
    at: Instant,
    /// What it can still carry.
    room: u64,
    /// There is one round alone.
    stops: bool,
}

impl Opportunities {
    pub(crate) fn new(trace: &DeliveryTrace) -> Self {
        let stops = trace.stops();
        // At zero, so that the first datagram looks for its opportunity.
        let at = Instant::ZERO;
        Opportunities { trace: trace.clone(), rounds: 0, position: 0, at, room: 0, stops }
    }

    /// When the last byte of `bytes` leaves that are handed over at `now`;
    /// [`Instant::FAR_FUTURE`] if it never does.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, bytes: Bytes) -> Instant {
        if self.at <= now {
            let (rounds, position) = self.trace.after(now);
            self.go_to(rounds, position);
            self.room = DeliveryTrace::OPPORTUNITY.0;
        }
        let rest = bytes.0.saturating_sub(self.room);
        if rest == 0 {
            self.room -= bytes.0;
        } else {
            self.skip(rest.div_ceil(DeliveryTrace::OPPORTUNITY.0));
            // What the last opportunity carries of the rest is taken off it.
            let last = (rest - 1) % DeliveryTrace::OPPORTUNITY.0 + 1;
            self.room = DeliveryTrace::OPPORTUNITY.0 - last;
        }
        // The first opportunity of a second round may be at the instant of the last of the first.
        if self.stops && self.rounds > 0 { Instant::FAR_FUTURE } else { self.at }
    }

    /// The opportunity that carries the first byte of something that comes at `now`.
    pub(crate) fn next_at(&self, now: Instant) -> Instant {
        if now < self.at {
            return self.free_at();
        }
        let (rounds, position) = self.trace.after(now);
        self.unless_stopped(rounds, position)
    }

    /// The opportunity that carries the next byte of what came before the current one.
    pub(crate) fn free_at(&self) -> Instant {
        if self.room > 0 {
            return self.at;
        }
        let next = self.position + 1;
        if next < self.trace.opportunities() {
            self.unless_stopped(self.rounds, next)
        } else {
            self.unless_stopped(self.rounds.saturating_add(1), 0)
        }
    }

    fn unless_stopped(&self, rounds: u64, position: usize) -> Instant {
        if self.stops && rounds > 0 { Instant::FAR_FUTURE } else { self.time_of(rounds, position) }
    }

    /// To the opportunity that is `count` after the current one.
    fn skip(&mut self, count: u64) {
        let opportunities = self.trace.opportunities() as u64;
        // A count of opportunities is at most 2^64 / 1,500, and the position below 2^24.
        let place = self.position as u64 + count;
        let (rounds, position) = if place < opportunities {
            (self.rounds, place)
        } else {
            (self.rounds.saturating_add(place / opportunities), place % opportunities)
        };
        self.go_to(rounds, position as usize);
    }

    fn go_to(&mut self, rounds: u64, position: usize) {
        (self.rounds, self.position) = (rounds, position);
        self.at = self.time_of(rounds, position);
    }

    // A call of it would cost links without a trace some instructions, too.
    #[inline(always)]
    fn time_of(&self, rounds: u64, position: usize) -> Instant {
        let in_round = self.trace.times.get(position).map_or(0, |time| u64::from(*time));
        let millis = rounds.saturating_mul(self.trace.length_millis()).saturating_add(in_round);
        match millis.saturating_mul(NANOS_PER_MILLISECOND) {
            u64::MAX => Instant::FAR_FUTURE,
            nanos => Instant::from_nanos(nanos) - self.trace.play.from,
        }
    }
}

#[cfg(test)]
mod tests;
