//! Verdicts that depend on what a recording hid: the same comparison with other computing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

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
    /// Whether another reading turns what is said about `metric` of `policy` on this page and network.
    pub fn turns(&self, [page, network, policy]: [&str; 3], metric: Metric) -> bool {
        self.turned.iter().any(|it| {
            (it.page.as_str(), it.network.as_str(), it.policy.as_str(), it.metric)
                == (page, network, policy, metric)
        })
    }
}

impl RatioTo {
    /// Whether both say the same for certain: less, more, or nothing.
    pub(crate) fn agrees(self, other: RatioTo) -> bool {
        self.says() == other.says()
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
            Says::Less => "lower",
            Says::More => "higher",
            Says::Neither => "not distinguishable",
        };
        let Turned { policy, base, metric, here, compute, there, .. } = self;
        let title = metric.of_load().and_then(|of_load| of_load.shown?.ratio);
        let name = title.unwrap_or(metric.name());
        write!(
            f,
            "{policy}: {name} is {} {base} ({here}); with {compute} computing it is {} ({there})",
            match here.says() {
                Says::Neither => "not distinguishable from".to_owned(),
                _ => format!("{} than with", words(*here)),
            },
            words(*there)
        )
    }
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
            "dwrr: page is lower than with rr (0.930 0.900–0.970); \
             with low computing it is higher (1.040 1.010–1.070)"
        );
        let unclear = turned(ratio(0.93, 0.9, 0.97), ratio(1.0, 0.9, 1.07));
        assert!(!unclear.is_opposite());
        assert!(
            unclear
                .to_string()
                .ends_with("with low computing it is not distinguishable (1.000 0.900–1.070)")
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
