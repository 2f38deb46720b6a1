//! Delays and losses that somebody measured over time, as CSV.

use quipu_base::Duration;

use crate::columns::{Column, Columns, Quantity};
use crate::table::{self, Kind, Rows, SeriesError, Sheet};
use crate::{Loss, Play, Timeline};

/// Round trips over the time of a recording, with the pings that never came back; or delays in one
/// direction.
///
/// Half of a round trip is the delay in each direction, rounded down: which half was the slower one
/// nobody knows. A ping's delay holds until the next one that came back, the first one's also
/// before it; the last one holds for as long as pings usually are apart, by the median.
#[derive(Clone, Debug, PartialEq)]
pub struct PingSeries {
    /// One-way delay, `None` where it was lost; strictly in order of time, at least one delay.
    rows: Vec<(Duration, Option<Duration>)>,
    length: Duration,
}

impl PingSeries {
    /// Pings whose losses are told together: those of five seconds. Our choice: with five pings a
    /// second, as in the recordings that ship, a lost one in a window is 4 %.
    pub const WINDOW: Duration = Duration::from_secs(5);

    /// As [`Self::read`], with the usual names of columns.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str) -> Result<Self, SeriesError> {
        Self::read(text, &Columns::default())
    }

    /// Reads the round trips in the column `rtt_ms`, or if there is none, the delays of one
    /// direction in `delay_ms`: up to 100 s, empty where a ping was lost. In milliseconds, unless `columns` names
    /// another unit.
    ///
    /// The form of the text is that of [`RateSeries::read`](crate::RateSeries::read).
    ///
    /// # Errors
    /// At the first line that is wrong, or if there is no delay at all.
    pub fn read(text: &str, columns: &Columns) -> Result<Self, SeriesError> {
        let sheet = Sheet::new(text)?;
        let usual = |name, ways| sheet.place(name).map(|_| (Column::new(name), ways));
        let named = columns.rtt.clone().map(|column| (column, 2));
        let found = named
            .or_else(|| columns.delay.clone().map(|column| (column, 1)))
            .or_else(|| usual("rtt_ms", 2))
            .or_else(|| usual("delay_ms", 1));
        let (column, ways) = found.ok_or_else(|| sheet.no_column("rtt_ms` or `delay_ms"))?;
        let most = (100_000_000_000, "100000 ms");
        let kind = Kind { quantity: Quantity::Time, unit: "ms", most, optional: true };
        let Rows { rows, length } = table::read(&sheet, columns.time.as_ref(), &column, &kind)?;
        if rows.iter().all(|(_, nanos)| nanos.is_none()) {
            return Err(SeriesError::NoValue { column: column.name });
        }
        let delay = |nanos: u64| Duration::from_nanos(nanos / ways);
        let rows = rows.into_iter().map(|(time, nanos)| (time, nanos.map(delay))).collect();
        Ok(PingSeries { rows, length })
    }

    /// Time of one round.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The lower median of the delays in one direction.
    pub fn median(&self) -> Duration {
        let mut delays: Vec<Duration> = self.rows.iter().filter_map(|(_, delay)| *delay).collect();
        delays.sort_unstable();
        delays.get(delays.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// Pings, and those of them that were lost.
    pub fn pings(&self) -> (usize, usize) {
        (self.rows.len(), self.rows.iter().filter(|(_, delay)| delay.is_none()).count())
    }

    /// The delay in one direction over time: what
    /// [`LinkConfig::delays`](crate::LinkConfig::delays) takes.
    pub fn delays(&self, play: Play) -> Timeline<Duration> {
        let known =
            || self.rows.iter().filter_map(|(time, delay)| delay.map(|delay| (*time, delay)));
        let first = known().next().map_or(Duration::ZERO, |(_, delay)| delay);
        Timeline::recorded(first, known(), self.length).played(play)
    }

    /// The loss in one direction over time: what
    /// [`LinkConfig::losses`](crate::LinkConfig::losses) takes.
    ///
    /// Of each window of [`Self::WINDOW`] it counts the share of lost pings, which both directions
    /// have together, and each has `1 - sqrt(1 - share)`. A window without pings has the loss of
    /// the one before.
    pub fn losses(&self, play: Play) -> Timeline<Loss> {
        let window = Self::WINDOW.as_nanos();
        let mut losses: Vec<(Duration, Loss)> = Vec::new();
        for rows in self
            .rows
            .chunk_by(|(one, _), (next, _)| one.as_nanos() / window == next.as_nanos() / window)
        {
            let Some((time, _)) = rows.first() else { continue };
            let from = Duration::from_nanos(time.as_nanos() / window * window);
            let lost = rows.iter().filter(|(_, delay)| delay.is_none()).count();
            let share = lost as f64 / rows.len() as f64;
            losses.push((from, Loss::Independent(1.0 - (1.0 - share).sqrt())));
        }
        let first = losses.first().map_or(Loss::default(), |(_, loss)| *loss);
        Timeline::recorded(first, losses, self.length).played(play)
    }
}

/// Reads the losses in the column `loss_percent`, 0 to 100, or in the one that `columns` names, as the share of each
/// datagram's chance over time. The form of the text is that of
/// [`RateSeries::read`](crate::RateSeries::read). Before the first row nothing is lost.
///
/// # Errors
/// At the first line that is wrong, or if there is no row.
pub fn read_losses(
    text: &str,
    columns: &Columns,
    play: Play,
) -> Result<Timeline<Loss>, SeriesError> {
    const WHOLE: u64 = 1_000_000_000;
    let most = (WHOLE, "100, as per cent");
    let kind = Kind { quantity: Quantity::Share, unit: "%", most, optional: false };
    let column = columns.loss.clone().unwrap_or_else(|| Column::new("loss_percent"));
    let sheet = Sheet::new(text)?;
    let Rows { rows, length } = table::read(&sheet, columns.time.as_ref(), &column, &kind)?;
    let losses = rows.into_iter().map(|(time, share)| {
        (time, Loss::Independent(share.unwrap_or_default() as f64 / WHOLE as f64))
    });
    Ok(Timeline::recorded(Loss::default(), losses, length).played(play))
}

/// True if `text` has a column of losses, which [`read_losses`] reads.
pub fn has_losses(text: &str) -> bool {
    table::has_column(text, "loss_percent")
}

/// The shortest of a timeline's delays.
pub(crate) fn least(delays: &Timeline<Duration>) -> Duration {
    delays.values().map(|(_, delay)| delay).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use quipu_base::Instant;

    use super::*;
    use crate::AtEnd;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    const PINGS: &str = "time_s,rtt_ms\n0.2,\n0.4,80\n0.6,\n0.8,100.5\n";

    #[test]
    fn half_of_a_round_trip_is_the_delay_until_the_next_ping_that_came_back() {
        let pings = PingSeries::parse(PINGS).unwrap();
        assert_eq!((pings.length(), pings.pings()), (Duration::from_secs(1), (4, 2)));
        assert_eq!(pings.median(), Duration::from_millis(40));
        let delays = pings.delays(Play::default());
        let micros =
            [0, 399, 400, 799, 800, 999, 1_000].map(|time| delays.value_at(at(time)).as_micros());
        assert_eq!(micros, [40_000, 40_000, 40_000, 40_000, 50_250, 50_250, 40_000]);
        assert_eq!(least(&delays), Duration::from_millis(40));
        let one_way = PingSeries::parse("time_s,delay_ms\n0,80\n").unwrap();
        assert_eq!(one_way.median(), Duration::from_millis(80));
    }

    #[test]
    fn lost_pings_are_a_share_of_their_window_that_both_directions_make() {
        // 3 of 4 lost in the first five seconds, none of 2 in the second, all in the fourth.
        let text = "time_s,rtt_ms\n1,\n2,\n3,9\n4,\n5,9\n9,9\n15,\n16,\n";
        let losses = PingSeries::parse(text).unwrap().losses(Play::default());
        let share = |time: u64| match losses.value_at(at(time)) {
            Loss::Independent(share) => share,
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 4_999, 5_000, 14_999, 15_000].map(share), [0.5, 0.5, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn losses_are_read_as_shares() {
        let text = "time_s,loss_percent,x\n1,0.4,a\n2,100,b\n";
        let play = Play { from: Duration::ZERO, at_end: AtEnd::Hold };
        let losses = read_losses(text, &Columns::default(), play).unwrap();
        let at = [0, 1_000, 2_000, 9_000].map(|time| losses.value_at(at(time)));
        assert_eq!(at, [0.0, 0.004, 1.0, 1.0].map(Loss::Independent));
        assert!(has_losses(text) && !has_losses(PINGS));
        let error = read_losses("time_s,loss_percent\n0,101\n", &Columns::default(), play);
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "line 2: `loss_percent` is 101, expected at most 100, as per cent");
    }

    #[test]
    fn texts_that_are_no_pings_are_refused() {
        let error = |text: &str| PingSeries::parse(text).unwrap_err().to_string();
        let none = "line 1: no column `rtt_ms` or `delay_ms`, expected it among `time_s`, `mbps`";
        assert_eq!(error("time_s,mbps\n0,1\n"), none);
        for empty in ["time_s,rtt_ms\n", "time_s,rtt_ms\n0,\n1,\n"] {
            assert_eq!(error(empty), "no value in column `rtt_ms`, expected at least one");
        }
        let late = "line 2: `rtt_ms` is 100000.1, expected at most 100000 ms";
        assert_eq!(error("time_s,rtt_ms\n0,100000.1\n"), late);
        assert!(error("time_s,rtt_ms\n0,fast\n").starts_with("line 2: `rtt_ms` is `fast`"));
    }
}
