//! One id, ready to run: its scenario and variants planned, its rules and numbers held to them.

use std::sync::Arc;

use super::agreement::{Combination, is_swept, keep_wanted};
use super::catalogue::Origin;
use super::data::{PaperNumber, numbers};
use super::error::ExperimentError;
use super::places::{Unit, places, policy_of};
use super::result_table;
use crate::run_key::{code_of, hash_of, run_keys};
use quipu_lab::plan::{Cell, Maker, Plan, PlanError, Shelf};
use quipu_lab::policies::{PolicyRow, Registry};
use quipu_lab::program::Program;
use quipu_record::Provenance;
use quipu_scenario::experiment::{Case, Experiment, Measure, OpenSetting, Part, Variant};
use quipu_scenario::{Network, Scenario, ScenarioError, Series, distinct};

/// How much is run of each id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Whether runs are few, and the quick form of each experiment is taken.
    pub quick: bool,
    /// Runs of each combination, at most; `None`: as many as the experiment says.
    pub runs: Option<u32>,
    /// Whether claims are judged with the other values of the settings that a paper leaves open, too.
    pub settings: bool,
}

impl Effort {
    /// All that an experiment says.
    pub const WHOLE: Effort = Effort { quick: false, runs: None, settings: true };
    /// Few runs.
    pub const QUICK: Effort = Effort { quick: true, ..Effort::WHOLE };

    /// Whether runs are fewer than the experiment says.
    pub fn has_few_runs(&self) -> bool {
        self.quick || self.runs.is_some()
    }

    fn limit(&self, runs: u32) -> u32 {
        self.runs.map_or(runs, |most| runs.min(most))
    }
}

/// One id, ready to run.
#[derive(Debug)]
pub struct Job {
    /// The id.
    pub case: Case,
    /// How much of it is run.
    pub effort: Effort,
    /// Hash of everything that decides the result.
    pub fingerprint: String,
    /// The scenario, its variants, and combinations of what the paper leaves open.
    pub(super) units: Vec<Unit>,
    /// Combinations in their order, of which the first is the scenario itself.
    pub(super) combinations: Vec<Combination>,
    pub(super) series: Vec<Measure>,
    pub(super) numbers: Vec<PaperNumber>,
}

impl Job {
    /// Plans everything that `case` wants `program` to run, and checks its rules. Runs are made by `maker` over
    /// emulated links, if there is one, and else simulated.
    ///
    /// # Errors
    /// If a scenario cannot be run, or a rule or number is about what is not there.
    pub fn new(
        case: Case,
        origin: &Origin,
        effort: Effort,
        registry: &Registry,
        program: &Arc<Program>,
        maker: Option<&Arc<dyn Maker>>,
    ) -> Result<Job, ExperimentError> {
        let mut shelf = Shelf::default();
        let mut plan = |scenario: Result<Scenario, ScenarioError>, variant: Option<&str>| {
            let planned = |scenario| {
                let plan = Plan::build_with(scenario, registry, &mut shelf);
                plan.map_err(|errors| *errors.first)
            };
            let mut plan =
                scenario.map_err(PlanError::from).and_then(planned).map_err(|source| {
                    let (id, variant) = (case.id.clone(), variant.map(str::to_owned));
                    ExperimentError::Plan { id, variant, source: Box::new(source) }
                })?;
            plan.program = Arc::clone(program);
            if let Some(maker) = maker {
                plan = plan.emulated(Arc::clone(maker));
            }
            Ok::<Plan, ExperimentError>(plan)
        };
        let mut units = vec![Unit::whole(None, plan(scenario(&case, None, effort), None)?)];
        for variant in &case.experiment.variants {
            let name = variant.name.as_str();
            let plan = plan(scenario(&case, Some(variant), effort), Some(name))?;
            units.push(Unit::whole(Some(name.to_owned()), plan));
        }
        let mut combinations = Vec::new();
        for chosen in chosen(&case.experiment, effort) {
            let is_own = chosen.iter().all(|value| *value == 0);
            let unit = if is_own { 0 } else { units.len() };
            if !is_own {
                let name = in_words(&case.experiment.settings, &chosen);
                let plan = plan(combined(&case, &chosen, effort), Some(&name))?;
                let mut unit = Unit::whole(None, plan);
                keep_wanted(&mut unit, &case.experiment.rules).map_err(|message| {
                    let (file, id) = (case.file.clone(), case.id.clone());
                    let message = format!("{name}: {message}");
                    ExperimentError::Rule { file, line: None, id, message }
                })?;
                units.push(unit);
            }
            combinations.push(Combination { chosen, unit });
        }
        let mut job = Job {
            case,
            effort,
            fingerprint: String::new(),
            units,
            combinations,
            series: Vec::new(),
            numbers: Vec::new(),
        };
        job.check_rules()?;
        job.check_tables()?;
        job.read_numbers(origin)?;
        job.fingerprint = job.hash()?;
        Ok(job)
    }

    fn wrong(&self, line: Option<usize>, message: String) -> ExperimentError {
        let (file, id) = (self.case.file.clone(), self.case.id.clone());
        ExperimentError::Rule { file, line, id, message }
    }

    /// Checks that each rule finds something to compare, and collects the metrics of time series.
    fn check_rules(&mut self) -> Result<(), ExperimentError> {
        for rule in self.case.experiment.rules.clone() {
            // The text has the rules of all ids of the file.
            let line = Part::named_rule(&self.case.text, &rule.name);
            let found = places(&rule, self.named_units());
            let found = found
                .map_err(|message| self.wrong(line, format!("rule {}: {message}", rule.name)))?;
            for metric in rule.metrics() {
                for (place, label) in
                    found.iter().flat_map(|place| Some((place, metric.against.as_deref()?)))
                {
                    let plan = &self.units[place.of.unit].plan;
                    policy_of(plan, place.of.spot.network, label).map_err(|message| {
                        self.wrong(line, format!("rule {}: {message}", rule.name))
                    })?;
                }
                let what = format!("rule {}", rule.name);
                let units = found.iter().map(|place| place.of.unit);
                self.sample(&what, metric, units).map_err(|message| self.wrong(line, message))?;
            }
        }
        Ok(())
    }

    /// Checks that each cell of the tables is somewhere, and collects the metrics of time series.
    fn check_tables(&mut self) -> Result<(), ExperimentError> {
        for table in self.case.experiment.tables.clone() {
            let found = result_table::places(&table, self.named_units());
            let found = found.map_err(|message| self.wrong(None, message))?;
            let what = format!("table {}", table.name);
            for point in found.iter().flatten().flat_map(result_table::Place::points) {
                let sampled = self.sample(&what, &point.metric, std::iter::once(point.unit));
                sampled.map_err(|message| self.wrong(None, message))?;
            }
        }
        Ok(())
    }

    /// Takes note that `what` wants `metric` of these units, if it is one of time series.
    fn sample(
        &mut self,
        what: &str,
        metric: &Measure,
        mut units: impl Iterator<Item = usize>,
    ) -> Result<(), String> {
        if !metric.is_of_series() {
            return Ok(());
        }
        if units.any(|unit| self.units[unit].plan.scenario.series == Series::None) {
            return Err(format!("{what}: needs `series`, such as series = \"10ms\""));
        }
        if !self.series.contains(metric) {
            self.series.push(metric.clone());
        }
        Ok(())
    }

    /// The scenario and its variants, which rules name.
    pub(super) fn named_units(&self) -> &[Unit] {
        let first = self.combinations.iter().map(|it| it.unit).filter(|unit| *unit > 0).min();
        &self.units[..first.unwrap_or(self.units.len())]
    }

    fn read_numbers(&mut self, origin: &Origin) -> Result<(), ExperimentError> {
        let file = self.case.file.clone();
        let read = |name: &str| origin.text_beside(&file, name);
        for data in &self.case.experiment.data {
            let found = numbers(data, &self.units[0].plan, &read);
            self.numbers.extend(found.map_err(|message| self.wrong(None, message))?);
        }
        Ok(())
    }

    /// What files say of the program that runs it.
    pub(super) fn provenance(&self) -> Provenance {
        let plans = self.units.iter().map(|unit| &unit.plan);
        let rows = plans.flat_map(Plan::rows);
        self.units[0].plan.program.provenance(rows.flat_map(PolicyRow::specs))
    }

    /// All runs, each with the position of its unit.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, Cell)> {
        let units = self.units.iter().enumerate();
        units.flat_map(|(unit, it)| it.cells.iter().map(move |cell| (unit, *cell)))
    }

    /// Runs of the scenario, its variants and the combinations of settings.
    pub fn runs(&self) -> usize {
        self.cells().count()
    }

    fn hash(&self) -> Result<String, ExperimentError> {
        let mut parts = vec![format!("{:?}", self.effort)];
        parts.extend([self.case.id.clone(), self.case.text.clone()]);
        for unit in &self.units {
            parts.push(code_of(&unit.plan, unit.plan.rows())?);
            parts.push(unit.plan.world.name().to_owned());
            parts.push(unit.plan.scenario.to_toml()?);
            parts.extend(unit.plan.pages.iter().map(|page| page.note.hash.clone()));
        }
        parts.push(format!("{:?}", self.numbers));
        Ok(format!("{:032x}", hash_of(&parts)))
    }

    /// The plans of its scenario, its variants and its combinations of settings.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.units.iter().map(|unit| &unit.plan)
    }

    /// Whether its runs are made one after the other, as they are not simulated.
    pub(super) fn is_made_in_turns(&self) -> bool {
        self.units.iter().any(|unit| unit.plan.maker.is_some())
    }

    /// What each run depends on, in the order of [`Job::cells`]; the same for runs
    /// that are the same. `None` for a run whose time series goes into the folder of this id.
    pub(super) fn keys(&self) -> Result<Vec<Option<u128>>, ScenarioError> {
        let mut all = Vec::new();
        let combined = self.named_units().len();
        for (index, Unit { plan, cells, .. }) in self.units.iter().enumerate() {
            if plan.scenario.series != Series::None {
                all.extend(cells.iter().map(|_| None));
                continue;
            }
            let mut wanted = cells.iter().peekable();
            for (cell, key) in plan.cells().zip(run_keys(plan)?) {
                if wanted.next_if_eq(&&cell).is_some() {
                    // Runs of combinations have no bounds.
                    all.push(Some(if index < combined { key } else { !key }));
                }
            }
        }
        Ok(all)
    }
}

/// What is run of `case`: its scenario, or a variant of it.
fn scenario(
    case: &Case,
    variant: Option<&Variant>,
    effort: Effort,
) -> Result<Scenario, ScenarioError> {
    let mut scenario = Scenario { experiment: None, sweep: None, ..case.scenario.clone() };
    let limit = &case.experiment.quick;
    if effort.quick {
        scenario = limit.set.apply(&scenario)?;
    }
    if let Some(variant) = variant {
        if !variant.pages.is_empty() {
            let known = scenario.pages.iter().map(String::as_str);
            known_all("page", &variant.pages, known)?;
            scenario.pages.retain(|page| variant.pages.contains(page));
        }
        if !variant.networks.is_empty() {
            let name = |network: &Network| network.name.clone();
            let known: Vec<String> = scenario.networks.iter().map(name).collect();
            known_all("network", &variant.networks, known.iter().map(String::as_str))?;
            scenario.networks.retain(|network| variant.networks.contains(&network.name));
        }
        scenario = variant.set.apply(&scenario)?;
    }
    if effort.quick {
        scenario.runs = scenario.runs.min(limit.runs);
    }
    scenario.runs = effort.limit(scenario.runs);
    Ok(scenario)
}

/// Combinations of settings to be run: all, none, or, if the effort is quick, those that differ from the scenario in one
/// setting.
fn chosen(experiment: &Experiment, effort: Effort) -> Vec<Vec<usize>> {
    let mut all = experiment.combinations();
    if effort.quick {
        all.retain(|chosen| chosen.iter().filter(|value| **value > 0).count() <= 1);
    }
    let is_any_swept = experiment.rules.iter().any(is_swept);
    if is_any_swept && effort.settings { all } else { Vec::new() }
}

/// The scenario of `case` with the values `chosen` of its settings.
fn combined(case: &Case, chosen: &[usize], effort: Effort) -> Result<Scenario, ScenarioError> {
    let mut scenario = scenario(case, None, effort)?;
    for (setting, value) in case.experiment.settings.iter().zip(chosen) {
        scenario = setting.values[*value].set.apply(&scenario)?;
    }
    scenario.runs = scenario.runs.min(case.experiment.settings_runs);
    Ok(scenario)
}

/// Names of settings and values: `queue 100p, window 32`.
pub(super) fn in_words(settings: &[OpenSetting], chosen: &[usize]) -> String {
    let both = settings.iter().zip(chosen);
    let names = both.map(|(it, value)| format!("{} {}", it.name, it.values[*value].name));
    names.collect::<Vec<String>>().join(", ")
}

fn known_all<'a>(
    what: &'static str,
    names: &[String],
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), ScenarioError> {
    distinct(what, names.iter().map(String::as_str))?;
    match names.iter().find(|name| !known.clone().any(|other| other == *name)) {
        None => Ok(()),
        Some(name) => Err(ScenarioError::unknown(what, name, known)),
    }
}
