//! Verdicts that depend on what a recording hid: the same comparison with other computing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::summary::{MetricSummary, RowSummary, Summary};

/// What became of a comparison when as little and as much as the recordings allow was taken for computing and thinking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComputingRange {
    /// The values of `compute` that were tried beside the comparison's own, such as `low` and `high`.
    pub with: Vec<String>,
    /// Pages of which they are something else; of others nothing was hidden.
    pub pages: Vec<String>,
    /// What is not the same with them.
    pub turned: Vec<Turned>,
}

/// A verdict about a policy that another reading of the recording turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// The policy that it is compared with.
    pub base: String,
    /// What is compared.
    pub metric: Metric,
    /// What the comparison says.
    pub here: RatioTo,
    /// The other value of `compute`.
    pub compute: String,
    /// What it says then.
    pub there: RatioTo,
}

/// A ratio to another policy, and its 95 % interval if chance decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioTo {
    /// Geometric mean of the paired ratios.
    pub ratio: f64,
    /// Lower end of the interval.
    pub ratio_low: Option<f64>,
    /// Upper end of the interval.
    pub ratio_high: Option<f64>,
}

/// What a ratio says for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Less,
    More,
    Neither,
}

impl ComputingRange {
    /// Whether another reading turns what is said about `metric` of `row`.
    pub fn turns(&self, row: &RowSummary, metric: Metric) -> bool {
        self.turned.iter().any(|it| {
            (&it.page, &it.network, &it.policy, it.metric)
                == (&row.page, &row.network, &row.policy, metric)
        })
    }
}

impl RatioTo {
    fn of(summary: &MetricSummary) -> Option<RatioTo> {
        let MetricSummary { ratio, ratio_low, ratio_high, .. } = *summary;
        Some(RatioTo { ratio: ratio?, ratio_low, ratio_high })
    }

    fn says(self) -> Says {
        let (least, most) = self.ratio_low.zip(self.ratio_high).unwrap_or((self.ratio, self.ratio));
        match (most < 1.0, least > 1.0) {
            (true, _) => Says::Less,
            (_, true) => Says::More,
            _ => Says::Neither,
        }
    }
}

impl fmt::Display for RatioTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ratio_low.zip(self.ratio_high) {
            Some((low, high)) => write!(f, "{:.3} {low:.3}–{high:.3}", self.ratio),
            None => write!(f, "{:.3}", self.ratio),
        }
    }
}

impl Turned {
    /// Whether it says the opposite, not merely nothing for certain.
    pub fn is_opposite(&self) -> bool {
        let (here, there) = (self.here.says(), self.there.says());
        here != Says::Neither && there != Says::Neither
    }
}

impl fmt::Display for Turned {
    /// One sentence without place and full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |ratio: RatioTo| match ratio.says() {
            Says::Less => "less",
            Says::More => "more",
            Says::Neither => "no other for certain",
        };
        let Turned { policy, base, metric, here, compute, there, .. } = self;
        let name = metric.name();
        write!(
            f,
            "{policy}: {name} is {} than with {base} ({here}); with {compute} computing {} ({there})",
            words(*here),
            words(*there)
        )
    }
}

/// What is not the same in `others`, the same comparison with other values of `compute`, by these; rows that are in one alone
/// are passed over. Metrics are those whose ratios tables show.
pub fn computing_range(base: &Summary, others: &[(String, Summary)]) -> ComputingRange {
    let mut range = ComputingRange {
        with: others.iter().map(|(compute, _)| compute.clone()).collect(),
        ..ComputingRange::default()
    };
    for note in &base.pages {
        let has =
            |(_, other): &(String, Summary)| other.pages.iter().any(|it| it.name == note.name);
        if others.iter().any(has) {
            range.pages.push(note.name.clone());
        }
    }
    let mut first: Option<&RowSummary> = None;
    for row in &base.rows {
        // Ratios are to the first row of each block.
        if first.is_none_or(|it| (&it.page, &it.network) != (&row.page, &row.network)) {
            first = Some(row);
        }
        let Some(first) = first else { continue };
        for (compute, other) in others {
            let same = |it: &&RowSummary| {
                (&it.page, &it.network, &it.policy) == (&row.page, &row.network, &row.policy)
            };
            let Some(there) = other.rows.iter().find(same) else { continue };
            for (metric, of_load) in Metric::of_loads() {
                let is_shown = of_load.shown.is_some_and(|shown| shown.ratio.is_some());
                let ratio = |row: &RowSummary| RatioTo::of(row.metric(metric)?);
                let Some((here, there)) = ratio(row).zip(ratio(there)).filter(|_| is_shown) else {
                    continue;
                };
                if here.says() != there.says() {
                    range.turned.push(Turned {
                        page: row.page.clone(),
                        network: row.network.clone(),
                        policy: row.policy.clone(),
                        base: first.policy.clone(),
                        metric,
                        here,
                        compute: compute.clone(),
                        there,
                    });
                }
            }
        }
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(ratio: f64, ratio_low: f64, ratio_high: f64) -> RatioTo {
        RatioTo { ratio, ratio_low: Some(ratio_low), ratio_high: Some(ratio_high) }
    }

    fn turned(here: RatioTo, there: RatioTo) -> Turned {
        Turned {
            page: "cnn".to_owned(),
            network: "wifi+lte".to_owned(),
            policy: "dwrr".to_owned(),
            base: "rr".to_owned(),
            metric: Metric::PageTime,
            here,
            compute: "low".to_owned(),
            there,
        }
    }

    #[test]
    fn a_turn_is_told_in_words() {
        let opposite = turned(ratio(0.93, 0.9, 0.97), ratio(1.04, 1.01, 1.07));
        assert!(opposite.is_opposite());
        assert_eq!(
            opposite.to_string(),
            "dwrr: page_time is less than with rr (0.930 0.900–0.970); \
             with low computing more (1.040 1.010–1.070)"
        );
        let unclear = turned(ratio(0.93, 0.9, 0.97), ratio(1.0, 0.9, 1.07));
        assert!(!unclear.is_opposite());
        assert!(
            unclear
                .to_string()
                .ends_with("with low computing no other for certain (1.000 0.900–1.070)")
        );
    }

    #[test]
    fn without_chance_the_ratio_alone_says_it() {
        let exact = |ratio| RatioTo { ratio, ratio_low: None, ratio_high: None };
        assert_eq!(
            [exact(0.99), exact(1.0), exact(1.01)].map(RatioTo::says),
            [Says::Less, Says::Neither, Says::More]
        );
    }
}
