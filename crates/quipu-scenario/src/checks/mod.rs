//! Whether the parts of a scenario go together.
//!
//! Each part checks itself; what needs the whole is checked here.

mod hosts;
mod series;

use std::collections::BTreeSet;

use crate::choice::{HttpVersion, Push};
use crate::error::{ScenarioError, distinct};
use crate::scenario::Scenario;
use crate::transport::Start;
use crate::{networks, traffic};

pub use hosts::check_origins;

impl Scenario {
    /// Checks every value that can be checked without the registries of pages, browsers and
    /// policies.
    ///
    /// # Errors
    /// The first field that is wrong, with its value and what was expected.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// All that [`Scenario::validate`] finds wrong: of each part of the scenario at least the first.
    pub fn problems(&self) -> Vec<ScenarioError> {
        let mut problems = Vec::new();
        self.check_fields("", &mut problems);
        let told: BTreeSet<String> = problems.iter().map(ScenarioError::part).collect();
        // Whether values go together is asked of parts whose values are right by themselves.
        let related = self.related_problems().into_iter();
        problems.extend(related.filter(|problem| !told.contains(&problem.part())));
        problems
    }

    /// What values do not go with others.
    fn related_problems(&self) -> Vec<ScenarioError> {
        let mut problems = self.own_problems();
        problems.extend(self.policies.problems());
        problems.extend(self.transport.validate().err());
        if self.http.has(HttpVersion::H2Tcp) {
            problems.extend(self.transport.validate_windows().err());
        }
        problems.extend(self.raw.validate().and_then(|()| self.raw_start()).err());
        problems.extend(self.host.validate().err());
        problems.extend(hosts::problems(self));
        problems.extend(traffic::problems(&self.flows, &self.cross, &self.measure));
        let names = self.networks.iter().map(|network| network.name.as_str());
        problems.extend(distinct("networks", names).err());
        for (index, network) in self.networks.iter().enumerate() {
            problems.extend(networks::problems(network, &format!("networks[{index}]")));
        }
        problems.extend(series::validate(self).err());
        problems
    }

    /// What fields that are in no table have that does not go together.
    fn own_problems(&self) -> Vec<ScenarioError> {
        let mut problems = Vec::new();
        let mut refuse = |field: &str, value: &dyn std::fmt::Display, expected: &str| {
            problems.push(ScenarioError::invalid(field, value, expected));
        };
        if !self.has_pages() && self.flows.is_empty() {
            refuse("pages", &"empty", "at least one page, or one of `flows`");
        }
        if self.session > 1 && self.http.is_raw() {
            refuse("session", &self.session, "1 with raw streams, which are written once");
        }
        if self.push != Push::None && self.http.is_raw() {
            refuse("push", &self.push, "none with raw streams, on which nothing is requested");
        }
        if self.push != Push::None && self.http.has(HttpVersion::H3) {
            refuse("push", &self.push, "none over h3: browsers take no pushed responses there");
        }
        problems
    }

    /// Raw streams have no page before them that could be fetched.
    fn raw_start(&self) -> Result<(), ScenarioError> {
        match self.transport.start {
            start @ Start::Warm(_) if self.http.is_raw() => {
                let expected = "cold or paths-ready with raw streams";
                Err(ScenarioError::invalid("transport.start", start, expected))
            }
            _ => Ok(()),
        }
    }
}
