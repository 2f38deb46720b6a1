//! Whether clients, origins and servers go with the rest of a scenario, and with its pages.

use std::fmt;

use super::series;
use crate::choice::Origins;
use crate::error::ScenarioError;
use crate::hosts::Clients;
use crate::limits::{MOST_CONNECTIONS, MOST_ORIGINS};
use crate::scenario::Scenario;

/// What is wrong with clients, origins and servers of a scenario.
pub(super) fn problems(scenario: &Scenario) -> Vec<ScenarioError> {
    let mut problems = Vec::new();
    let mut refuse = |field: &str, value: &dyn fmt::Display, expected: &str| {
        problems.push(ScenarioError::invalid(field, value, expected));
    };
    if scenario.clients != Clients::default() && !scenario.has_pages() {
        let expected = "1 without pages; flows have clients of their own";
        refuse("clients", &scenario.clients.count, expected);
    }
    let recorded = scenario.origins == Origins::Recorded;
    if recorded && scenario.http.is_raw() {
        let expected = "one with raw streams, which one server writes";
        refuse("origins", &scenario.origins, expected);
    }
    if !scenario.servers.is_empty() && !recorded {
        refuse("servers", &scenario.servers.len(), "none unless origins = \"recorded\"");
    }
    problems.extend(scenario.clients.validate().err());
    problems
}

/// Checks that a run in which each client needs `origins` connections, for the page called `page`, is not
/// too large.
///
/// # Errors
/// If the page has too many origins, the clients need too many connections, or the time series of all of
/// them would have too many rows.
pub fn check_origins(scenario: &Scenario, page: &str, origins: usize) -> Result<(), ScenarioError> {
    let told = |count: usize| format!("recorded, and page {page} has {count}");
    if origins > MOST_ORIGINS {
        return Err(ScenarioError::invalid("origins", told(origins), "pages with at most 512"));
    }
    let connections = usize::try_from(scenario.clients.count).unwrap_or(usize::MAX);
    if connections.saturating_mul(origins) > MOST_CONNECTIONS {
        let told = format!("{} with {origins} connections each", scenario.clients.count);
        return Err(ScenarioError::invalid("clients", told, "at most 10000 connections in all"));
    }
    series::check(scenario, connections * origins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        Scenario::from_toml(text, "a.toml").unwrap()
    }

    fn refused(text: &str) -> String {
        scenario(text).validate().unwrap_err().to_string()
    }

    #[test]
    fn hosts_that_make_no_sense_are_refused_by_field() {
        assert_eq!(refused("clients = 0"), "clients.count is 0; expected 1 to 1000");
        assert_eq!(refused("clients = 1001"), "clients.count is 1001; expected 1 to 1000");
        let told = refused("clients = { count = 2, servers = 3 }");
        assert_eq!(told, "clients.servers is 3; expected 1 to 2, the number of clients");
        assert!(refused("clients = { count = 2, spread = \"2000000s\" }").contains("1000000s"));
        assert!(refused("clients = 2\npages = []\n[[flows]]\nname = \"a\"").contains("1 without"));
        assert!(refused("origins = \"recorded\"\nhttp = \"raw\"").contains("raw streams"));
        let server = "servers = [{ hosts = \"a\", delay = \"1ms\" }]";
        assert!(refused(server).contains("unless origins = \"recorded\""));
        let far = "origins = \"recorded\"\nservers = [{ hosts = \"a\", delay = \"11s\" }]";
        assert_eq!(refused(far), "servers[0].delay is 11s; expected at most 10s");
        let error = Scenario::from_toml("clients = \"many\"", "a.toml").unwrap_err().to_string();
        assert!(error.contains("a whole number"), "{error}");
        let error = Scenario::from_toml("origins = \"recordd\"", "a.toml").unwrap_err();
        assert!(error.to_string().contains("did you mean `recorded`?"), "{error}");
    }

    #[test]
    fn runs_of_too_many_connections_are_refused() {
        let scenario = scenario("clients = 100");
        check_origins(&scenario, "p", 100).unwrap();
        let told = check_origins(&scenario, "p", 101).unwrap_err().to_string();
        assert!(told.contains("100 with 101 connections each"), "{told}");
        let told = check_origins(&scenario, "p", 513).unwrap_err().to_string();
        assert!(told.contains("page p has 513; expected pages with at most 512"), "{told}");
    }
}
