//! How finely a run's state is written out over time.

use quipu_base::Duration;

use super::error::ScenarioError;
use super::form::pattern::time;
use super::form::text::unit;
use super::form::{Bounds, Kind, Limit, Names, Numbers, Text, amounts};
use super::units::Unit;

/// Whether a run's state is written out over time, and how finely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Series {
    /// It is not.
    #[default]
    None,
    /// At the start and then every so long.
    Every(Duration),
}

impl Series {
    /// The least time between two samples.
    pub const LEAST: Duration = Duration::from_micros(10);

    /// The time between two samples, if any are taken.
    pub fn every(self) -> Option<Duration> {
        match self {
            Series::None => None,
            Series::Every(time) => Some(time),
        }
    }
}

impl Unit for Series {
    const EXPECTED: &'static str = "none, or a time such as 10ms";

    fn parse(text: &str) -> Option<Self> {
        if text == "none" { Some(Series::None) } else { Duration::parse(text).map(Series::Every) }
    }

    fn print(&self) -> String {
        self.every().map_or_else(|| "none".to_owned(), |time| time.print())
    }
}

/// How finely time series are written.
static SERIES: Text = Text {
    name: "time or `none`",
    expected: Series::EXPECTED,
    pattern: concat!("^ *(none|0|", time!(), ") *$"),
    accepts: unit::<Series>,
    numbers: Numbers::Zero,
    names: Names::None,
    examples: &["none", "10ms"],
    refused: &["often", "10"],
};

amounts! {
    Series: SERIES,
}

/// The range of the time between two samples, if any are taken.
impl Limit<Series> for Bounds<Duration> {
    fn narrow(&self, kind: Kind) -> Kind {
        Limit::<Duration>::narrow(self, kind)
    }

    fn check(&self, value: &Series, path: &str, problems: &mut Vec<ScenarioError>) {
        if let Some(time) = value.every() {
            Limit::<Duration>::check(self, &time, path, problems);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn checked(fields: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::default();
        for (field, value) in fields {
            scenario = scenario.with_field(field, value)?;
        }
        scenario.validate().map(|()| scenario)
    }

    fn refused(fields: &[(&str, &str)]) -> String {
        checked(fields).unwrap_err().to_string()
    }

    #[test]
    fn a_resolution_is_read_printed_and_none_at_first() {
        assert_eq!(Scenario::default().series, Series::None);
        let scenario = checked(&[("series", "10ms"), ("series-ends", "both")]).unwrap();
        assert_eq!(scenario.series.every(), Some(Duration::from_millis(10)));
        let text = scenario.to_toml().unwrap();
        assert!(text.contains("series = \"10ms\"\nseries_ends = \"both\"\n"), "{text}");
        assert_eq!(Scenario::from_toml(&text, "scenario.toml").unwrap(), scenario);
        let scenario = scenario.with_field("series", "none").unwrap();
        assert_eq!(scenario.series, Series::None);
        assert!(refused(&[("series", "often")]).contains("expected none, or a time such as 10ms"));
        assert!(refused(&[("series_ends", "bothh")]).contains("did you mean `both`?"));
    }
}
