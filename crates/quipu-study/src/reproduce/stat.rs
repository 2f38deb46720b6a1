//! Statistics of numbers, as rules name them.

use quipu_record::stats::quantile_of_numbers;
use quipu_scenario::experiment::Stat;

/// One number of `values`; `None` of nothing, and for what needs times.
pub(super) fn stat_of(stat: Stat, values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    match stat {
        Stat::Count => Some(count),
        _ if values.is_empty() => None,
        Stat::Mean => Some(values.iter().sum::<f64>() / count),
        Stat::Min => values.iter().copied().min_by(f64::total_cmp),
        Stat::Max => values.iter().copied().max_by(f64::total_cmp),
        Stat::First => values.first().copied(),
        Stat::Last => values.last().copied(),
        Stat::Percentile(percent) => {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            quantile_of_numbers(&sorted, u16::from(percent) * 10)
        }
        Stat::Rate | Stat::Part | Stat::Period | Stat::Length => None,
        Stat::Deviation | Stat::LogMean | Stat::LogDeviation => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        for (stat, expected) in [
            (Stat::Percentile(50), 2.5),
            (Stat::Percentile(0), 1.0),
            (Stat::Percentile(100), 4.0),
            (Stat::Percentile(25), 1.75),
            (Stat::Mean, 2.5),
            (Stat::Min, 1.0),
            (Stat::Max, 4.0),
            (Stat::First, 4.0),
            (Stat::Last, 2.0),
            (Stat::Count, 4.0),
        ] {
            assert_eq!(stat_of(stat, &values), Some(expected), "{stat}");
        }
        assert_eq!(stat_of(Stat::Mean, &[]), None);
    }
}
