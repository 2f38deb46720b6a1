//! Everything that is wrong with a scenario file, not only the first.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::sweep::Sweep;
use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_scenario::{Document, Finding, Findings, Origin, Readable};

/// Checks `document`, the pages that it names and the policies, which are those of `registry`; and
/// its experiment, if it has one, with the scenario of each combination of its axes' values. The
/// plans of these, mostly one.
///
/// What is wrong in form is left out then, or the whole of its table where that cannot be, so that
/// the other tables are checked too: each that is wrong by itself has a finding at least.
///
/// # Errors
/// All findings, in order of their places.
pub fn check(document: &Document, registry: &Registry) -> Result<Vec<Plan>, Findings> {
    // A file whose experiment has axes is a scenario for each of their values, and none without.
    let cases = match quipu_scenario::experiment::cases(document.text(), document.file()) {
        Ok(cases) if cases.iter().any(|case| !case.values.is_empty()) => cases,
        Ok(_) => return check_sweep(document, registry),
        Err(error) => {
            let findings = match check_one(document, registry) {
                Ok(_) => error.findings(),
                // What is wrong with the scenario may be all that is wrong with the experiment.
                Err(findings) => return Err(findings),
            };
            let origin = Origin::from(document.clone());
            return Err(origin.explain(findings).unwrap_or_else(|| document.unreadable()));
        }
    };
    let mut plans = Vec::new();
    let mut findings = Vec::new();
    for case in cases {
        match check_one(&Document::new(case.text, document.file()), registry) {
            Ok(plan) => plans.push(plan),
            Err(found) => findings.extend(found.into_vec()),
        }
    }
    Findings::new(findings).map_or(Ok(plans), Err)
}

/// The scenario, and if the file has a sweep, every point of it.
fn check_sweep(document: &Document, registry: &Registry) -> Result<Vec<Plan>, Findings> {
    let plan = check_one(document, registry);
    match (plan, Sweep::read(document, registry)) {
        (Ok(plan), Ok(None)) => Ok(vec![plan]),
        (Ok(_), Ok(Some(sweep))) => Ok(sweep.points.into_iter().map(|point| point.plan).collect()),
        (Ok(_), Err(findings)) | (Err(findings), Ok(_)) => Err(findings),
        (Err(own), Err(of_sweep)) => {
            // What is wrong with the scenario is wrong at every point.
            let mut all = own.into_vec();
            let is_of_sweep = |finding: &Finding| part(&finding.field) == "sweep";
            all.extend(of_sweep.into_vec().into_iter().filter(is_of_sweep));
            Findings::new(all).map_or_else(|| Err(document.unreadable()), Err)
        }
    }
}

/// The same without regard to the experiment.
fn check_one(document: &Document, registry: &Registry) -> Result<Plan, Findings> {
    let Readable { scenario, mut findings } = document.readable()?;
    let flagged: BTreeSet<String> =
        findings.iter().map(|finding| part(&finding.field).to_owned()).collect();
    let is_clean = findings.is_empty();
    let errors = match scenario {
        None => Vec::new(),
        Some(scenario) => match Plan::build(scenario, registry) {
            Ok(plan) if is_clean => return Ok(plan),
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().flat_map(|error| error.findings()).collect(),
        },
    };
    let is_own = |field: &str| {
        let part = part(field);
        !flagged.contains(part) && !sources(part).iter().any(|source| flagged.contains(*source))
    };
    let origin = Origin::from(document.clone());
    let errors = errors.into_iter().filter(|finding| is_clean || is_own(&finding.field));
    findings.extend(origin.explain(errors).into_iter().flat_map(Findings::into_vec));
    match Findings::new(findings) {
        Some(findings) => Err(findings),
        // Something was wrong with the form, so that there is a finding; told again to be safe.
        None => Err(document.unreadable()),
    }
}

/// What the plans of a file amount to, such as `2 pages x 1 network x 7 policies x 30 runs`, with
/// the number of plans in front if there are several.
pub fn summary(plans: &[Plan]) -> String {
    let networks = || plans.iter().flat_map(|plan| &plan.networks);
    let policies = networks().map(|network| network.policies.len());
    let runs = networks().map(|network| network.runs as usize);
    let several = (plans.len() > 1).then(|| format!("{} scenarios", plans.len()));
    let parts = [
        counted(span(plans.iter().map(|plan| plan.pages.len())), "page", "pages"),
        counted(span(plans.iter().map(|plan| plan.networks.len())), "network", "networks"),
        counted(span(policies), "policy", "policies"),
        counted(span(runs), "run", "runs"),
    ];
    several.into_iter().chain(parts).collect::<Vec<_>>().join(" x ")
}

fn span(counts: impl Iterator<Item = usize> + Clone) -> RangeInclusive<usize> {
    counts.clone().min().unwrap_or_default()..=counts.max().unwrap_or_default()
}

fn counted(counts: RangeInclusive<usize>, one: &str, several: &str) -> String {
    match counts.into_inner() {
        (1, 1) => format!("1 {one}"),
        (least, most) if least == most => format!("{least} {several}"),
        (least, most) => format!("{least} to {most} {several}"),
    }
}

/// The field of the scenario itself that `field` is of.
fn part(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or_default()
}

/// The parts of a scenario on which it depends whether `part` is right.
fn sources(part: &str) -> &'static [&'static str] {
    match part {
        "pages" => &["flows", "raw", "http"],
        "flows" | "cross" => &["networks"],
        "clients" => &["pages", "origins"],
        "servers" => &["origins", "pages"],
        "origins" => &["http", "pages"],
        "series" => &["networks", "flows", "pages", "duration", "time_limit"],
        "raw" | "session" | "transport" => &["http", "raw"],
        "policies" => &["http", "networks", "flows", "pages"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
