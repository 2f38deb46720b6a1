//! From numbers of runs to an estimate with its interval.

use super::select::{Load, Sample};
use super::stat::stat_of;
use quipu_record::stats::{Comparison, RESAMPLES};
use quipu_scenario::experiment::{Measure, Stat};

/// Resamples where objects of all runs are pooled.
const POOLED_RESAMPLES: usize = 1_000;

/// A number with the interval that holds it with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// `None` if chance decides nothing, or there is one run.
    pub(super) interval: Option<(f64, f64)>,
    /// Runs, or pairs of runs. Loads of one run, by its clients or one after the other, are decided
    /// by the same chance and count as one.
    pub(super) runs: usize,
}

impl Estimate {
    /// The interval, or the number itself.
    pub(super) fn ends(&self) -> (f64, f64) {
        self.interval.unwrap_or((self.value, self.value))
    }
}

/// The number itself: `over` of all runs, or the measure's statistic of all objects if pooled.
pub(super) fn value(
    samples: &[Sample],
    measure: &Measure,
    over: Stat,
    chance: &Comparison,
) -> Result<Estimate, String> {
    let stat = if measure.pooled { measure.stat } else { over };
    let runs: Vec<&[Sample]> = by_run(samples, |sample| sample.load).collect();
    let of = |drawn: &[usize]| stat_of(stat, &values_of(&runs, drawn));
    let all: Vec<usize> = (0..runs.len()).collect();
    let value = of(&all).ok_or("nothing to take a value of")?;
    let resamples = if measure.pooled { POOLED_RESAMPLES } else { RESAMPLES };
    let interval = chance.interval(runs.len(), resamples, of);
    Ok(Estimate { value, interval, runs: runs.len() })
}

/// The items of each run, where items of one run follow one another.
fn by_run<T>(items: &[T], load: impl Fn(&T) -> Load) -> impl Iterator<Item = &[T]> {
    items.chunk_by(move |one, other| load(one).0 == load(other).0)
}

/// The numbers of those of `runs` that are `drawn`.
fn values_of(runs: &[&[Sample]], drawn: &[usize]) -> Vec<f64> {
    let samples = drawn.iter().flat_map(|index| runs[*index]);
    samples.flat_map(|sample| &sample.values).copied().collect()
}

/// The mean of the numbers of each run.
fn means(numbers: &[(Load, f64)]) -> Vec<f64> {
    let mean =
        |run: &[(Load, f64)]| run.iter().map(|(_, number)| number).sum::<f64>() / run.len() as f64;
    by_run(numbers, |(load, _)| *load).map(mean).collect()
}

/// Samples of both with the same number of run and page.
fn paired<'a>(of: &'a [Sample], to: &'a [Sample]) -> Result<Vec<(&'a Sample, &'a Sample)>, String> {
    let pair = |sample: &'a Sample| {
        let index = to.binary_search_by_key(&sample.load, |other| other.load).ok()?;
        Some((sample, &to[index]))
    };
    let pairs: Vec<_> = of.iter().filter_map(pair).collect();
    if pairs.is_empty() { Err("no two runs have the same number".to_owned()) } else { Ok(pairs) }
}

fn single(sample: &Sample) -> f64 {
    sample.values.first().copied().unwrap_or_default()
}

/// The logarithms of ratios of pairs, with the number of the run and page.
fn logs(of: &[Sample], to: &[Sample]) -> Result<Vec<(Load, f64)>, String> {
    let log = |(of, to): (&Sample, &Sample)| {
        let (value, base) = (single(of), single(to));
        if value <= 0.0 || base <= 0.0 {
            return Err(format!("run {} has a zero, which has no ratio", of.load.0));
        }
        Ok((of.load, libm::log(value / base)))
    };
    paired(of, to)?.into_iter().map(log).collect()
}

/// The geometric mean of the paired ratios; of pooled objects the ratio of their statistic.
pub(super) fn ratio(
    of: &[Sample],
    to: &[Sample],
    measures: [&Measure; 2],
    chance: &Comparison,
) -> Result<Estimate, String> {
    if measures.iter().any(|measure| measure.pooled) {
        return pooled(of, to, measures, chance, |of, to| (to != 0.0).then(|| of / to));
    }
    of_logs(&logs(of, to)?, chance)
}

/// The ratio of `of` to `to`, compared with that of `beside.0` to `beside.1` run by run.
pub(super) fn ratio_of_ratios(
    [of, to]: [&[Sample]; 2],
    beside: [&[Sample]; 2],
    chance: &Comparison,
) -> Result<Estimate, String> {
    let there = logs(beside[0], beside[1])?;
    let difference = |(load, log): (Load, f64)| {
        let index = there.binary_search_by_key(&load, |(load, _)| *load).ok()?;
        Some((load, log - there[index].1))
    };
    let logs: Vec<(Load, f64)> = logs(of, to)?.into_iter().filter_map(difference).collect();
    if logs.is_empty() {
        return Err("no two runs have the same number".to_owned());
    }
    of_logs(&logs, chance)
}

fn of_logs(logs: &[(Load, f64)], chance: &Comparison) -> Result<Estimate, String> {
    let logs = means(logs);
    let (mean, interval) = chance.mean(&logs).ok_or("nothing to compare")?;
    let interval = interval.map(|(low, high)| (libm::exp(low), libm::exp(high)));
    Ok(Estimate { value: libm::exp(mean), interval, runs: logs.len() })
}

/// The mean of the paired differences; of pooled objects the difference of their statistic.
pub(super) fn difference(
    of: &[Sample],
    to: &[Sample],
    measures: [&Measure; 2],
    chance: &Comparison,
) -> Result<Estimate, String> {
    if measures.iter().any(|measure| measure.pooled) {
        return pooled(of, to, measures, chance, |of, to| Some(of - to));
    }
    let pairs = paired(of, to)?;
    let difference = |(of, to): &(&Sample, &Sample)| (of.load, single(of) - single(to));
    let differences = means(&pairs.iter().map(difference).collect::<Vec<(Load, f64)>>());
    let (value, interval) = chance.mean(&differences).ok_or("nothing to compare")?;
    Ok(Estimate { value, interval, runs: differences.len() })
}

/// What `compare` makes of the statistics of both, each that of its own measure, runs drawn in pairs.
fn pooled(
    of: &[Sample],
    to: &[Sample],
    measures: [&Measure; 2],
    chance: &Comparison,
    compare: impl Fn(f64, f64) -> Option<f64>,
) -> Result<Estimate, String> {
    let pairs = paired(of, to)?;
    let (of, to): (Vec<Sample>, Vec<Sample>) =
        pairs.into_iter().map(|(of, to)| (of.clone(), to.clone())).unzip();
    let [of, to] = [&of, &to].map(|side| by_run(side, |it| it.load).collect::<Vec<&[Sample]>>());
    let of_drawn = |drawn: &[usize]| {
        let [of, to] = [(&of, 0), (&to, 1)]
            .map(|(runs, side)| stat_of(measures[side].stat, &values_of(runs, drawn)));
        compare(of?, to?)
    };
    let all: Vec<usize> = (0..of.len()).collect();
    let value = of_drawn(&all).ok_or("zero has no ratio")?;
    let interval = chance.interval(of.len(), POOLED_RESAMPLES, of_drawn);
    Ok(Estimate { value, interval, runs: of.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::Seed;
    use quipu_scenario::experiment::Metric;

    fn samples(values: &[f64]) -> Vec<Sample> {
        (0..)
            .zip(values)
            .map(|(run, value)| Sample { load: (run, 0, 0), values: vec![*value] })
            .collect()
    }

    fn chance() -> Comparison {
        Comparison::new(Seed::new(1), true)
    }

    fn page() -> Measure {
        Measure::plain(Metric::PageTime)
    }

    #[test]
    fn a_ratio_is_that_of_the_other_tables() {
        let (of, to) = (samples(&[2.0, 8.0, 100.0]), samples(&[1.0, 1.0, 100.0]));
        let ours = ratio(&of, &to, [&page(); 2], &chance()).unwrap();
        let theirs = chance().ratio(&[(2, 1), (8, 1), (100, 100)]).unwrap();
        assert_eq!((ours.value, ours.interval, ours.runs), (theirs.mean, theirs.interval, 3));
    }

    #[test]
    fn runs_are_paired_by_their_number() {
        let (mut of, to) = (samples(&[1.0, 2.0, 4.0]), samples(&[1.0, 1.0, 1.0]));
        of.remove(0);
        assert_eq!(ratio(&of, &to, [&page(); 2], &chance()).unwrap().runs, 2);
        let apart: Vec<Sample> =
            of.iter().map(|it| Sample { load: (it.load.0 + 5, 0, 0), ..it.clone() }).collect();
        ratio(&apart, &to, [&page(); 2], &chance()).unwrap_err();
        difference(&apart, &to, [&page(); 2], &chance()).unwrap_err();
        ratio(&samples(&[0.0]), &samples(&[1.0]), [&page(); 2], &chance()).unwrap_err();
    }

    #[test]
    fn loads_of_one_run_are_drawn_together() {
        let sample = |run, client, value| Sample { load: (run, client, 0), values: vec![value] };
        // Four clients a run, which fare alike: as much is known as of two runs.
        let clients = |values: [f64; 2]| -> Vec<Sample> {
            let of_run = |run: usize| (0..4).map(move |client| (run, client));
            let all = (0..2).flat_map(of_run);
            all.map(|(run, client)| sample(run as u32, client, values[run])).collect()
        };
        let (of, to) = (clients([2.0, 8.0]), clients([1.0, 1.0]));
        let alone = ratio(&samples(&[2.0, 8.0]), &samples(&[1.0, 1.0]), [&page(); 2], &chance());
        assert_eq!(ratio(&of, &to, [&page(); 2], &chance()), alone);
        // Each end is one run alone, drawn twice.
        let (low, high) = alone.unwrap().interval.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 8.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(
            difference(&of, &to, [&page(); 2], &chance()).unwrap().interval,
            Some((1.0, 7.0))
        );
        let found = value(&of, &page(), Stat::Mean, &chance()).unwrap();
        assert_eq!((found.value, found.interval, found.runs), (5.0, Some((2.0, 8.0)), 2));
        let measure = Measure { pooled: true, ..Measure::plain(Metric::Object) };
        let found = ratio(&of, &to, [&measure; 2], &chance()).unwrap();
        assert_eq!((found.value, found.interval, found.runs), (5.0, Some((2.0, 8.0)), 2));
    }

    #[test]
    fn differences_are_means_with_an_interval() {
        let (of, to) = (samples(&[10.0, 12.0, 14.0, 13.0]), samples(&[11.0, 14.0, 15.0, 15.0]));
        let found = difference(&of, &to, [&page(); 2], &chance()).unwrap();
        assert_eq!(found.value, -1.5);
        let (low, high) = found.interval.unwrap();
        assert!((-2.0..-1.5).contains(&low) && (-1.5..=-1.0).contains(&high), "{low} {high}");
        let (low, high) = Estimate { interval: None, ..found }.ends();
        assert_eq!((low, high), (-1.5, -1.5));
    }

    #[test]
    fn each_side_has_the_statistic_of_its_own_measure() {
        let pooled = |stat| Measure { pooled: true, stat, ..Measure::plain(Metric::Object) };
        let measures = [pooled(Stat::Max), pooled(Stat::Min)];
        let (of, to) = (samples(&[2.0, 8.0]), samples(&[4.0, 16.0]));
        let found = ratio(&of, &to, measures.each_ref(), &chance()).unwrap();
        assert_eq!(found.value, 2.0);
    }

    #[test]
    fn objects_of_all_runs_are_pooled_and_runs_drawn_whole() {
        let run = |run, values: &[f64]| Sample { load: (run, 0, 0), values: values.to_vec() };
        let of = [run(0, &[1.0, 2.0]), run(1, &[3.0, 10.0])];
        let to = [run(0, &[2.0, 2.0]), run(1, &[2.0, 2.0])];
        let measure = Measure { pooled: true, ..Measure::plain(Metric::Object) };
        let found = ratio(&of, &to, [&measure; 2], &chance()).unwrap();
        assert_eq!((found.value, found.runs), (2.0, 2));
        // Only the first run, or only the second.
        assert_eq!(found.interval, Some((0.75, 3.25)));
        let measure = Measure { stat: Stat::Percentile(50), ..measure };
        assert_eq!(value(&of, &measure, Stat::Mean, &chance()).unwrap().value, 2.5);
    }

    #[test]
    fn a_ratio_of_ratios_is_taken_run_by_run() {
        let [a, b] = [samples(&[2.0, 4.0]), samples(&[1.0, 2.0])];
        let [c, d] = [samples(&[8.0, 4.0]), samples(&[1.0, 1.0])];
        let found = ratio_of_ratios([&a, &b], [&c, &d], &chance()).unwrap();
        // (2 / 8 · 2 / 4)^(1/2)
        assert!((found.value - 0.353_553).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_value_is_a_statistic_over_runs() {
        let found = value(&samples(&[1.0, 5.0, 2.0]), &page(), Stat::Percentile(50), &chance());
        let found = found.unwrap();
        assert_eq!((found.value, found.interval), (2.0, Some((1.0, 5.0))));
        let fixed = Comparison::new(Seed::new(1), false);
        let found = value(&samples(&[1.0]), &page(), Stat::Mean, &fixed).unwrap();
        assert_eq!((found.value, found.interval), (1.0, None));
    }
}
