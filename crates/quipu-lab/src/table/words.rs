//! How numbers are written in the tables of comparisons: shares, rates, ratios, spreads.

use quipu_record::Spread;

/// What there is where a number is missing.
pub(super) const NOTHING: &str = "–";

/// Thousandths as a percentage: `41.5`.
pub(super) fn percent(per_mille: u64) -> String {
    format!("{}.{}", per_mille / 10, per_mille % 10)
}

/// A ratio with its interval, as far as there are both.
pub(super) fn ratio_text(ratio: Option<f64>, low: Option<f64>, high: Option<f64>) -> String {
    match (ratio, low, high) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} {low:.3}–{high:.3}"),
        (Some(ratio), ..) => format!("{ratio:.3} {NOTHING}"),
        (None, ..) => NOTHING.to_owned(),
    }
}

/// Bits per second as megabits: `9.58`.
pub(super) fn mbit(bits: u64) -> String {
    let hundredths = bits.saturating_add(5_000) / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// The ends of a spread, or nothing if all runs were the same.
pub(super) fn range(spread: Spread, print: impl Fn(u64) -> String) -> String {
    if spread.least == spread.most {
        return NOTHING.to_owned();
    }
    format!("{}–{}", print(spread.least), print(spread.most))
}

/// Millionths as a percentage of two decimals: `1.25`.
pub(super) fn hundredths(millionths: u64) -> String {
    let hundredths = millionths.saturating_add(50) / 100;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Millionths as a number of three decimals: `0.998`.
pub(super) fn thousandths(millionths: u64) -> String {
    let thousandths = millionths.saturating_add(500) / 1_000;
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}
