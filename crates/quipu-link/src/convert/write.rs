//! Measurements in the forms that links follow.

use quipu_base::Duration;

use super::ConvertError;
use super::measured::{Direction, Measured, What};
use crate::DeliveryTrace;

impl What {
    pub(super) fn column(self) -> &'static str {
        match self {
            What::Rate => "mbps",
            What::Down => "down_mbps",
            What::Up => "up_mbps",
            What::RoundTrip => "rtt_ms",
            What::Loss => "loss_percent",
        }
    }

    /// Places behind the point that make the unit of its column that of its values.
    fn decimals(self) -> usize {
        match self {
            What::Rate | What::Down | What::Up | What::RoundTrip => 6,
            What::Loss => 7,
        }
    }
}

impl Measured {
    /// As CSV that links read: `time_s`, and a column for each rate, round trips and losses, as far as they are there.
    /// With several tests, or files, the column `test` counts them.
    pub fn to_csv(&self) -> String {
        let columns: Vec<What> = What::ALL.into_iter().filter(|what| self.has(*what)).collect();
        let has_tests = self.samples.iter().any(|sample| sample.test > 1);
        let mut text = "time_s".to_owned();
        for column in &columns {
            text.push(',');
            text.push_str(column.column());
        }
        text.push_str(if has_tests { ",test\n" } else { "\n" });
        for sample in &self.samples {
            text.push_str(&decimal(sample.at.as_nanos(), 9));
            for column in &columns {
                text.push(',');
                if let Some(value) = sample.values[*column as usize] {
                    text.push_str(&decimal(value, column.decimals()));
                }
            }
            if has_tests {
                text.push_str(&format!(",{}", sample.test));
            }
            text.push('\n');
        }
        text
    }

    /// The rates of one direction in Mahimahi's form: an opportunity in the millisecond in which 1,500 more bytes are
    /// complete. If none is in the last one, an opportunity there keeps the length.
    ///
    /// # Errors
    /// If there are no such rates, or more opportunities than a trace may have.
    pub fn to_mahimahi(&self, direction: Direction) -> Result<String, ConvertError> {
        /// Bits of an opportunity, times nanoseconds of a second.
        const OPPORTUNITY: u128 = DeliveryTrace::OPPORTUNITY.0 as u128 * 8 * 1_000_000_000;
        let what = self.rate_of(direction)?;
        let millis = |nanos: u128| nanos.div_ceil(1_000_000);
        let length = millis(u128::from(self.length().as_nanos()));
        let mut lines = Lines::default();
        let mut waiting: u128 = 0;
        for (from, to, rate) in self.spans(what) {
            let nanos = |time: Duration| u128::from(time.as_nanos());
            let (mut at, to, rate) = (nanos(from), nanos(to), u128::from(rate));
            if rate == 0 {
                continue;
            }
            loop {
                let ready = at + OPPORTUNITY.saturating_sub(waiting).div_ceil(rate);
                if ready > to {
                    break;
                }
                waiting = waiting + (ready - at) * rate - OPPORTUNITY;
                at = ready;
                lines.put(millis(at).min(length))?;
            }
            waiting += to.saturating_sub(at) * rate;
        }
        match lines.last {
            0 => return Err(ConvertError::Nothing { what: "1,500 bytes" }),
            last if last < length => lines.put(length)?,
            _ => {}
        }
        Ok(lines.text)
    }
}

/// Lines of a packet-delivery trace.
#[derive(Default)]
struct Lines {
    text: String,
    count: usize,
    last: u128,
}

impl Lines {
    fn put(&mut self, at: u128) -> Result<(), ConvertError> {
        self.count += 1;
        if self.count > DeliveryTrace::MOST_OPPORTUNITIES {
            return Err(ConvertError::TooLong);
        }
        self.last = at;
        self.text.push_str(&at.to_string());
        self.text.push('\n');
        Ok(())
    }
}

/// `value` over ten to the power of `decimals`, without zeros at the end.
fn decimal(value: u64, decimals: usize) -> String {
    let digits = format!("{value:0>width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}
