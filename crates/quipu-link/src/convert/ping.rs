//! What `ping` prints, with the time of each line.

use quipu_base::Duration;

use super::ConvertError;
use super::measured::{Measured, What};
use crate::columns::decimal;
use crate::table::{date, short};

/// A reply.
struct Reply {
    number: u64,
    /// When its request was sent, in nanoseconds of some clock.
    sent_at: u64,
    round_trip: u64,
}

/// Round trips of `ping`: lines with `[TIME] … icmp_seq=N … time=MS ms`, in which the time is that of Unix in seconds, or
/// a date. A number that is missing was lost; it was sent at its place between its neighbours, evenly.
pub(super) fn read(text: &str) -> Result<Measured, ConvertError> {
    let mut measured = Measured::default();
    let mut replies: Vec<Reply> = Vec::new();
    let mut sent = None;
    for (line, content) in (1..).zip(text.lines()) {
        sent = sent.or_else(|| transmitted(content));
        if !content.contains("icmp_seq=") || !content.contains("time=") {
            continue;
        }
        let reply = reply(content).ok_or_else(|| ConvertError::Line {
            line,
            found: content.chars().take(40).collect(),
            expected: "[TIME] … icmp_seq=N … time=MS ms, as `ping -D` prints",
        })?;
        match replies.last() {
            Some(last) if reply.number <= last.number => {
                measured.leave_out("replies that came twice or out of order");
            }
            _ => replies.push(reply),
        }
    }
    let Some(first) = replies.first() else {
        return Err(ConvertError::Nothing { what: "replies to pings" });
    };
    let (start, numbers) = (first.sent_at, first.number);
    let since = |sent_at: u64| Duration::from_nanos(sent_at.saturating_sub(start));
    let lost = |measured: &mut Measured, at| measured.push(at, 1, &[(What::RoundTrip, None)]);
    for (index, reply) in replies.iter().enumerate() {
        let at = since(reply.sent_at);
        let before = index.checked_sub(1).and_then(|index| replies.get(index));
        if let Some(before) = before {
            let gap = at.saturating_sub(since(before.sent_at)).as_nanos();
            let steps = reply.number - before.number;
            for step in 1..steps.min(MOST_LOST) {
                let place = u128::from(gap) * u128::from(step) / u128::from(steps);
                let place = u64::try_from(place).unwrap_or(u64::MAX);
                lost(&mut measured, since(before.sent_at) + Duration::from_nanos(place));
            }
        }
        // Clocks of replies are not exact: rows stay in order.
        let at = measured.samples.last().map_or(at, |last| at.max(last.at));
        measured.push(at, 1, &[(What::RoundTrip, Some(reply.round_trip))]);
    }
    let usual = crate::table::usual_gap(measured.samples.iter().map(|sample| sample.at));
    let last = replies.last().map_or(numbers, |reply| reply.number);
    for _ in last..sent.unwrap_or(last).min(last.saturating_add(MOST_LOST)) {
        let at = measured.samples.last().map_or(Duration::ZERO, |last| last.at) + usual;
        lost(&mut measured, at);
    }
    Ok(measured.ends_as_usual())
}

/// The most pings in a row that count as lost. Our choice.
const MOST_LOST: u64 = 10_000;

fn reply(line: &str) -> Option<Reply> {
    let (at, rest) = line.strip_prefix('[')?.split_once(']')?;
    let at = decimal(at, 9).or_else(|| date(at))?;
    let after = |mark: &str| rest.split_once(mark)?.1.split_whitespace().next();
    let round_trip = decimal(&short(after("time=")?), 6)?;
    let number = after("icmp_seq=")?.parse().ok()?;
    Some(Reply { number, sent_at: at.checked_sub(round_trip)?, round_trip })
}

/// How many were sent, in the line that tells it.
fn transmitted(line: &str) -> Option<u64> {
    line.split_once(" packets transmitted")?.0.split_whitespace().next_back()?.parse().ok()
}
