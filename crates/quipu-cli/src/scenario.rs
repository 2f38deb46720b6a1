//! From options to a scenario, and to where its results go.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use quipu_lab::plan::Plan;
use quipu_record::Output;
use quipu_scenario::units::Unit;
use quipu_scenario::{
    Columns, Compute, Document, Finding, Network, Origin, PROFILE, PathSpec, Scenario,
    ScenarioError, Series, SweepSpec, find_network, resolve_field,
};

use crate::args::{ComparedOptions, ScenarioOptions};
use crate::failure::Failure;
use crate::own::Own;

/// A scenario, and where its values come from.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) scenario: Scenario,
    origin: Origin,
}

impl Given {
    /// The scenario in `file`, or the default one.
    pub(crate) fn load(file: Option<&Path>) -> Result<Given, Failure> {
        let Some(file) = file else {
            return Ok(Given { scenario: Scenario::default(), origin: Origin::default() });
        };
        let document = Document::read(file).map_err(Failure::usage)?;
        let scenario = document.scenario().map_err(Failure::usage)?;
        if SweepSpec::read(&document).is_ok_and(|sweep| sweep.is_some()) {
            let file = file.display();
            note(&format!("the table [sweep] of {file} is ignored; `quipu sweep {file}` runs it"));
        }
        Ok(Given { scenario, origin: Origin::from(document) })
    }

    /// Sets pages and networks, if there are any, which `--page` and `--network` gave.
    pub(crate) fn choose(&mut self, pages: &[String], networks: &[String]) -> Result<(), Failure> {
        if !pages.is_empty() {
            self.scenario.pages = pages.to_vec();
            self.origin.set("pages", "--page");
        }
        if !networks.is_empty() {
            let found: Result<Vec<Network>, ScenarioError> =
                networks.iter().map(|name| find_network(name)).collect();
            self.origin.set("networks", "--network");
            self.scenario.networks =
                found.map_err(|error| self.refused(error.at("networks").findings()))?;
        }
        Ok(())
    }

    /// Sets the network whose paths `links` describe, if there are any, which `--link` gave.
    pub(crate) fn link(&mut self, links: &[String]) -> Result<(), Failure> {
        if links.is_empty() {
            return Ok(());
        }
        let paths = links.iter().map(|text| {
            text.parse::<PathSpec>()
                .map_err(|error| Failure::Usage(format!("--link {text}: {error}")))
        });
        self.scenario.networks = vec![Network::from_links(paths.collect::<Result<_, _>>()?)];
        self.origin.set("networks", "--link");
        Ok(())
    }

    /// Sets `field`, if there is a value, which `option` gave.
    pub(crate) fn set(
        &mut self,
        field: &str,
        option: &str,
        value: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(value) = value else { return Ok(()) };
        let path = resolve_field(field).map_err(Failure::usage)?;
        self.origin.set(&path, format!("{option} {value}"));
        match self.scenario.with_field(&path, value) {
            Ok(scenario) => self.scenario = scenario,
            Err(error) => return Err(self.refused(error.findings())),
        }
        Ok(())
    }

    /// Names the columns of the CSV traces that links follow, if `--trace-columns` gave any.
    pub(crate) fn name_columns(&mut self, columns: Option<&str>) -> Result<(), Failure> {
        let Some(text) = columns else { return Ok(()) };
        let refused = |error: &dyn Display| Failure::Usage(format!("--trace-columns: {error}"));
        let columns: Columns = text.parse().map_err(|error| refused(&error))?;
        let mut any = false;
        for network in &mut self.scenario.networks {
            any |= network.name_columns(&columns);
        }
        match any {
            true => Ok(()),
            false => Err(refused(&"no link follows a CSV file whose columns have no names yet")),
        }
    }

    /// Sets policies and runs, as far as they are given.
    pub(crate) fn compare(&mut self, options: &ComparedOptions) -> Result<(), Failure> {
        let fields = [
            ("runs", "--runs", &options.runs),
            ("policies.stream", "--stream", &options.stream),
            ("policies.path", "--path", &options.path),
            ("policies.joint", "--joint", &options.joint),
        ];
        let mut fields = fields.into_iter();
        fields.try_for_each(|(field, option, value)| self.set(field, option, value.as_deref()))
    }

    /// Sets all fields that `assignments`, of the form `KEY=VALUE`, name.
    pub(crate) fn assign(&mut self, assignments: &[String]) -> Result<(), Failure> {
        for assignment in assignments {
            let Some((field, value)) = assignment.split_once('=') else {
                return Err(Failure::Usage(format!("--set {assignment}: expected KEY=VALUE")));
            };
            self.set(field, &format!("--{field}"), Some(value))?;
        }
        Ok(())
    }

    /// The plan of the scenario, with the policies of this program, which runs it.
    pub(crate) fn plan(self, own: &Own<'_>) -> Result<Plan, Failure> {
        let mut plan = Plan::build(self.scenario, own.registry).map_err(|errors| {
            let findings = errors.iter().flat_map(|error| error.findings());
            explained(&self.origin, findings.collect())
        })?;
        plan.program = Arc::clone(&own.program);
        Ok(plan)
    }

    /// [`Given::plan`], with what is to be known of the recordings of files told on standard error.
    pub(crate) fn told_plan(self, own: &Own<'_>) -> Result<Plan, Failure> {
        let plan = self.plan(own)?;
        plan.notices().for_each(|notice| note(&notice));
        Ok(plan)
    }

    /// The plan, and with `range` the same for other readings of recordings.
    pub(crate) fn plans(self, own: &Own<'_>, range: bool) -> Result<Plans, Failure> {
        let readings = [Compute::Low, Compute::Likely, Compute::High].into_iter();
        let others: Vec<Given> = readings
            .filter(|compute| range && *compute != self.scenario.compute)
            .map(|compute| {
                let mut other = self.clone();
                other.scenario.compute = compute;
                other
            })
            .collect();
        let plan = self.told_plan(own)?;
        let mut unlike = Vec::new();
        for other in others {
            let compute = other.scenario.compute;
            unlike.extend(other.plan(own)?.where_unlike(&plan).map(|other| (compute, other)));
        }
        Ok(Plans { plan, range: range.then_some(unlike) })
    }

    /// The scenario, if all is right that can be known without pages, browsers and policies.
    pub(crate) fn checked(self) -> Result<Scenario, Failure> {
        let problems = self.scenario.problems();
        match problems.is_empty() {
            true => Ok(self.scenario),
            false => {
                let findings = problems.iter().flat_map(|error| error.findings());
                Err(explained(&self.origin, findings.collect()))
            }
        }
    }

    fn refused(&self, findings: Vec<Finding>) -> Failure {
        explained(&self.origin, findings)
    }
}

/// What is to be run.
pub(crate) struct Plans {
    pub(crate) plan: Plan,
    /// The same for other readings of those recordings that allow any, if they are asked for.
    pub(crate) range: Option<Vec<(Compute, Plan)>>,
}

/// Tells what is no error, but may surprise.
fn note(message: &str) {
    eprintln!("note: {message}");
}

fn explained(origin: &Origin, findings: Vec<Finding>) -> Failure {
    match origin.explain(findings) {
        Some(findings) => Failure::usage(findings),
        None => Failure::Usage("the scenario cannot be run".to_owned()),
    }
}

/// The scenario that the options describe, not yet checked as a whole.
pub(crate) fn build(options: &ScenarioOptions) -> Result<Given, Failure> {
    let mut given = Given::load(options.scenario.as_deref())?;
    given.choose(&options.page, &options.network)?;
    given.link(&options.link)?;
    given.name_columns(options.trace_columns.as_deref())?;
    let fields = [
        // The one on which others depend.
        (PROFILE, "--transport", &options.transport),
        ("browser", "--browser", &options.browser),
        ("priorities", "--priorities", &options.priorities),
        ("policies.ack", "--ack", &options.ack),
        ("policies.congestion", "--congestion", &options.congestion),
        ("discovery", "--discovery", &options.discovery),
        ("compute", "--compute", &options.compute),
        ("compute_scale", "--compute-scale", &options.compute_scale),
        ("http", "--http", &options.http),
        ("transport.tls", "--tls", &options.tls),
        ("transport.start", "--start", &options.start),
        ("host", "--host", &options.host),
        ("seed", "--seed", &options.seed),
        ("series", "--series", &options.series),
    ];
    for (field, option, value) in fields {
        given.set(field, option, value.as_deref())?;
    }
    given.assign(&options.set)?;
    Ok(given)
}

/// Makes sure of a folder for results, if there is one, and that a time series has one to go to.
pub(crate) fn prepare_output(
    scenario: &Scenario,
    folder: Option<&Path>,
    force: bool,
) -> Result<Option<Output>, Failure> {
    match folder {
        Some(folder) => Output::prepare(folder, force).map(Some).map_err(Failure::usage),
        None if scenario.series == Series::None => Ok(None),
        None => Err(Failure::Usage(format!(
            "series is {}, but there is no folder for it; give one with --out DIR",
            scenario.series.print()
        ))),
    }
}
