//! Paths that are faster alone than with all others: when that is certain, and how it is told.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::loads::{Runs, groups};
use crate::metric::Metric;
use crate::run::RunRecord;
use crate::stats::{Comparison, Ratio, median};

/// A path alone that is faster than every policy over all paths of its network, by page time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FasterAlone {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The row of the path alone.
    pub policy: String,
    /// The path.
    pub path: String,
    /// How many paths the network has.
    pub paths: u32,
    /// Median page time of the path alone, in nanoseconds.
    pub page_time: u64,
    /// The policy over all paths that comes nearest.
    pub nearest: String,
    /// Its median page time, in nanoseconds.
    pub nearest_page_time: u64,
    /// Geometric mean of the paired ratios of the path alone to it: below 1.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval; `null` without randomness.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's 95 % interval, below 1.
    pub ratio_high: Option<f64>,
}

/// The runs of one row.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'r> {
    /// What tables call the row.
    pub policy: &'r str,
    /// The path that was the whole network, if only one was.
    pub alone: Option<&'r str>,
    /// The runs that ended well.
    pub runs: &'r Runs<'r>,
    /// Whether all planned runs did.
    pub complete: bool,
}

/// Which of the paths alone among `rows` are faster than every policy over all paths. `random` says
/// whether chance decides anything in the runs: then the 95 % interval of every paired ratio must lie
/// below 1, without it every ratio. A path whose runs did not all end well is left out.
pub fn faster_alone(
    [page, network]: [&str; 2],
    paths: u32,
    rows: &[Contender<'_>],
    comparison: &Comparison,
    random: bool,
) -> Vec<FasterAlone> {
    let time = |row: &Contender<'_>| middle(row.runs);
    let mut together: Vec<(u64, &Contender<'_>)> = rows
        .iter()
        .filter(|row| row.alone.is_none())
        .filter_map(|it| Some((time(it)?, it)))
        .collect();
    // The fastest first, as most paths alone are slower than it.
    together.sort_by_key(|(median, _)| *median);
    let of_row = |row: &Contender<'_>| {
        let (path, page_time) = (row.alone.filter(|_| row.complete)?, time(row)?);
        let mut nearest: Option<(f64, &(u64, &Contender<'_>), Ratio)> = None;
        for other in &together {
            let ratio = ratio(row.runs, other.1.runs, comparison)?;
            let most = match (random, ratio.interval) {
                (false, _) => ratio.mean,
                (true, interval) => interval?.1,
            };
            if most >= 1.0 {
                return None;
            }
            if nearest.as_ref().is_none_or(|(mean, ..)| ratio.mean > *mean) {
                nearest = Some((ratio.mean, other, ratio));
            }
        }
        let (ratio, (nearest_page_time, nearest), Ratio { interval, .. }) = nearest?;
        Some(FasterAlone {
            page: page.to_owned(),
            network: network.to_owned(),
            policy: row.policy.to_owned(),
            path: path.to_owned(),
            paths,
            page_time,
            nearest: nearest.policy.to_owned(),
            nearest_page_time: *nearest_page_time,
            ratio,
            ratio_low: interval.map(|(low, _)| low),
            ratio_high: interval.map(|(_, high)| high),
        })
    };
    rows.iter().filter_map(of_row).collect()
}

fn page_time(record: &RunRecord) -> Option<u64> {
    Metric::PageTime.of(record)
}

fn middle(runs: &Runs<'_>) -> Option<u64> {
    median(&runs.iter().filter_map(|(_, record)| page_time(record)).collect::<Vec<_>>())
}

fn ratio(runs: &Runs<'_>, base: &Runs<'_>, comparison: &Comparison) -> Option<Ratio> {
    let groups = groups(runs, base, page_time);
    comparison.ratio_of_groups(groups.iter().map(Vec::as_slice))
}

impl fmt::Display for FasterAlone {
    /// The sentence that says so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self.paths {
            2 => "both paths".to_owned(),
            paths => format!("all {paths} paths"),
        };
        let [alone, nearest] = [self.page_time, self.nearest_page_time].map(millis);
        let less = (1.0 - self.ratio) * 100.0;
        let (path, policy) = (&self.path, &self.nearest);
        write!(
            f,
            "{path} alone is faster than every policy over {all}: {alone} ms against {nearest} ms \
             with {policy} (−{less:.1} %)."
        )
    }
}

/// Nanoseconds as milliseconds of one decimal, as in the table of a comparison.
fn millis(nanos: u64) -> String {
    let tenths = nanos.saturating_add(50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use quipu_base::{Duration, Seed};

    use super::*;

    fn records(millis: &[u64]) -> Vec<RunRecord> {
        let of = |time: &u64| RunRecord {
            page_time: Duration::from_millis(*time),
            objects: vec![crate::ObjectRecord::default()],
            ..RunRecord::default()
        };
        millis.iter().map(of).collect()
    }

    /// What is told of these rows: name, path alone, page times in milliseconds.
    fn told(rows: &[(&str, Option<&str>, &[u64])], random: bool) -> Vec<String> {
        let records: Vec<Vec<RunRecord>> = rows.iter().map(|(.., times)| records(times)).collect();
        let runs: Vec<Runs<'_>> = records
            .iter()
            .map(|list| (0..).zip(list).map(|(run, record)| ((run, 0, 0), record)).collect())
            .collect();
        let rows: Vec<Contender<'_>> = rows
            .iter()
            .zip(&runs)
            .map(|(&(policy, alone, times), runs)| Contender {
                policy,
                alone,
                runs,
                complete: times.len() == 4 || !random,
            })
            .collect();
        let comparison = Comparison::new(Seed::new(1), random);
        let found = faster_alone(["page", "network"], 2, &rows, &comparison, random);
        found.iter().map(FasterAlone::to_string).collect()
    }

    #[test]
    fn a_path_is_told_if_it_beats_every_policy_beyond_doubt() {
        let rr: (_, _, &[u64]) = ("rr + minrtt", None, &[173, 175, 172, 173]);
        let ecf: (_, _, &[u64]) = ("rr + ecf", None, &[160, 161, 162, 163]);
        let lte: (_, _, &[u64]) = ("lte alone", Some("lte"), &[149, 150, 148, 149]);
        let wifi: (_, _, &[u64]) = ("wifi alone", Some("wifi"), &[200, 150, 148, 149]);
        let text = "lte alone is faster than every policy over both paths: 149.0 ms against \
                    161.5 ms with rr + ecf (−7.7 %).";
        assert_eq!(told(&[rr, ecf, lte], true), [text]);
        assert_eq!(told(&[rr, ecf, lte, wifi], true), [text], "the interval of wifi holds 1");
        let fast: (_, _, &[u64]) = ("fifo + ecf", None, &[149, 150, 148, 149]);
        assert!(told(&[rr, ecf, lte, fast], true).is_empty(), "one policy is as fast");
    }

    #[test]
    fn nothing_is_told_of_what_is_not_known() {
        let rr: (_, _, &[u64]) = ("rr + minrtt", None, &[173, 175, 172, 173]);
        let lte: (_, _, &[u64]) = ("lte alone", Some("lte"), &[149, 150, 148]);
        assert!(told(&[rr, lte], true).is_empty(), "one of its runs failed");
        let lte: (_, _, &[u64]) = ("lte alone", Some("lte"), &[149, 150, 148, 149]);
        assert!(told(&[lte], true).is_empty(), "no policy over all paths");
        assert!(
            told(&[("rr + minrtt", None, &[]), lte], true).is_empty(),
            "all of its runs failed"
        );
        let one = [("rr + minrtt", None, &[173][..]), ("lte alone", Some("lte"), &[149][..])];
        assert!(told(&one, true).is_empty(), "one run by chance");
        assert_eq!(told(&one, false).len(), 1, "one run without chance is all there is");
    }
}
