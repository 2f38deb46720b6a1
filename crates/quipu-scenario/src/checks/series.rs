//! How many rows time series come to.

use quipu_base::Duration;

use crate::choice::SeriesEnds;
use crate::error::ScenarioError;
use crate::scenario::Scenario;
use crate::series::Series;
use crate::units::Unit;

/// Rows that the time series of one run may have: a file of about 1.5 GB.
const MOST_ROWS: u64 = 10_000_000;

/// Checks that the series of no run can have more than [`MOST_ROWS`] rows, however long it takes.
pub(super) fn validate(scenario: &Scenario) -> Result<(), ScenarioError> {
    check(scenario, usize::try_from(scenario.clients.count).unwrap_or(usize::MAX))
}

/// The same if so many connections load pages.
pub(super) fn check(scenario: &Scenario, of_pages: usize) -> Result<(), ScenarioError> {
    // What is below the least time is out of the field's own range.
    let every = scenario.series.every().filter(|every| *every >= Series::LEAST);
    let Some(every) = every else { return Ok(()) };
    let paths = scenario.networks.iter().map(|network| network.paths.len()).max().unwrap_or(0);
    let ends = match scenario.series_ends {
        SeriesEnds::Sender => 1,
        SeriesEnds::Both => 2,
    };
    let page = usize::from(!scenario.pages.is_empty());
    let connections = (page * of_pages + scenario.flows.len()).max(1);
    // One row for each path and one for the connection.
    let rows = ends * (connections as u64) * (paths as u64 + 1);
    let (limit, longest) = match page {
        0 => ("duration", scenario.duration),
        _ => ("time_limit", scenario.time_limit),
    };
    // What is sampled at the start and at the end counts too.
    let most_samples = (MOST_ROWS / rows).saturating_sub(1).max(1);
    let least = Duration::from_nanos(longest.as_nanos().div_ceil(most_samples));
    if every < least {
        return Err(ScenarioError::invalid(
            "series",
            every.print(),
            format!(
                "{} or more, for at most {MOST_ROWS} rows in a {limit} of {}, or less of that",
                least.print(),
                longest.print()
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowSpec;

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
    fn series_without_end_are_refused() {
        let told = refused(&[("series", "9999ns")]);
        assert_eq!(told, "series is 9999ns; expected 10us or more");
        assert!(refused(&[("series", "0ms")]).contains("10us or more"));
        // Three rows each, so 3,333,332 distances between samples in 600 s.
        let told = refused(&[("series", "180us")]);
        assert!(told.contains("expected 180001ns or more, for at most 10000000 rows"), "{told}");
        checked(&[("series", "180001ns")]).unwrap();
        checked(&[("series", "10us"), ("time_limit", "10s")]).unwrap();
        checked(&[("series", "10us"), ("time_limit", "10s"), ("series_ends", "both")]).unwrap();
        refused(&[("series", "10us"), ("time_limit", "20s"), ("series_ends", "both")]);
        let mut flows = Scenario { pages: Vec::new(), ..Scenario::default() };
        flows.flows = vec![FlowSpec::new("a"), FlowSpec::new("b")];
        flows.series = Series::Every(Duration::from_micros(20));
        // Six rows each.
        let told = flows.validate().unwrap_err().to_string();
        assert!(told.contains("for at most 10000000 rows in a duration of 60s"), "{told}");
        flows.duration = Duration::from_secs(30);
        flows.validate().unwrap();
    }
}
