//! From a file to its points: a plan for each combination of values.

use std::sync::Arc;

use toml::Value;

use quipu_lab::plan::{Maker, Plan, Shelf, World};
use quipu_lab::policies::{PolicyRow, Registry};
use quipu_lab::program::Program;
use quipu_record::Value as Cell;
use quipu_record::nearest;
use quipu_record::{Column, Kind, Provenance, known_columns};
use quipu_scenario::{
    Amount, Document, Finding, Findings, Inputs, Origin, PointValues, Scenario, ScenarioError,
    Series, SweepSpec, SweptField, pin, without_folders,
};
use quipu_scenario::{PROFILE, put_at};

/// Points that a sweep may have.
const MOST_POINTS: usize = 20_000;
/// Runs that a sweep may have.
const MOST_RUNS: usize = 20_000_000;
/// Findings that are looked for before no more points are planned.
const MOST_FINDINGS: usize = 100;

/// A file with a table `[sweep]`, ready to run.
#[derive(Debug)]
pub struct Sweep {
    /// The scenario without the sweep.
    pub scenario: Scenario,
    /// What is swept.
    pub spec: SweepSpec,
    /// All points, in the order of the file.
    pub points: Vec<Point>,
    pub(super) columns: Vec<Column>,
    /// Positions of the fields that make other networks.
    pub(super) of_networks: Vec<usize>,
}

/// One combination of values.
#[derive(Debug)]
pub struct Point {
    /// The value of each field, in the order of the columns.
    pub values: PointValues,
    /// What it is as text, for each field.
    texts: Vec<String>,
    /// Its runs.
    pub plan: Plan,
}

impl Sweep {
    /// The same, run by `program`.
    #[must_use]
    pub fn made_by(mut self, program: &Arc<Program>) -> Sweep {
        for point in &mut self.points {
            point.plan.program = Arc::clone(program);
        }
        self
    }

    /// The same with runs that `maker` makes over emulated links.
    #[must_use]
    pub fn emulated(mut self, maker: &Arc<dyn Maker>) -> Sweep {
        for point in &mut self.points {
            point.plan = point.plan.clone().emulated(Arc::clone(maker));
        }
        self
    }

    /// In which world its runs are made.
    pub(super) fn world(&self) -> World {
        self.points.first().map(|point| point.plan.world).unwrap_or_default()
    }

    /// Whether its runs are made one after the other, as they are not simulated.
    pub(super) fn is_made_in_turns(&self) -> bool {
        self.points.iter().any(|point| point.plan.maker.is_some())
    }

    /// The program that runs it.
    pub(super) fn program(&self) -> Arc<Program> {
        self.points.first().map(|point| Arc::clone(&point.plan.program)).unwrap_or_default()
    }

    /// What files say of this program.
    pub(super) fn provenance(&self) -> Provenance {
        let rows = self.points.iter().flat_map(|point| point.plan.rows());
        self.program().provenance(rows.flat_map(PolicyRow::specs))
    }

    /// The sweep in `document`; its policies are those of `registry`. `None` if it has no table
    /// `[sweep]`.
    ///
    /// # Errors
    /// All that is wrong, with places, before anything runs.
    pub fn read(document: &Document, registry: &Registry) -> Result<Option<Sweep>, Findings> {
        let origin = Origin::from(document.clone());
        let explained = |findings: Vec<Finding>| {
            origin.explain(findings).unwrap_or_else(|| document.unreadable())
        };
        let Some(mut spec) = SweepSpec::read(document)? else { return Ok(None) };
        let scenario = document.scenario().map_err(|error| explained(error.findings()))?;
        let scenario = Scenario { experiment: None, sweep: None, ..scenario.pinned() };
        spec.each_value(&mut pin);
        let mut findings = Vec::new();
        if scenario.series != Series::None {
            let expected =
                "no time series in a sweep: `quipu load --series` writes that of one run";
            findings.push(Finding::new("series", "a series", expected));
        }
        let count = spec.count().unwrap_or(usize::MAX);
        if count > MOST_POINTS {
            let found = format!("{count} points");
            findings.push(Finding::new("sweep", found, format!("at most {MOST_POINTS}")));
        }
        findings.extend(clashes(&spec));
        if !findings.is_empty() {
            let placed = findings.into_iter().map(|finding| spec.placed(finding));
            return Err(explained(placed.collect()));
        }
        let base = Value::Table(scenario.to_table().map_err(|error| explained(error.findings()))?);
        let mut shelf = Shelf::default();
        let mut points = Vec::with_capacity(count);
        let mut runs = 0_usize;
        for values in spec.points() {
            match plan(&spec, &base, &values, registry, &mut shelf) {
                Ok(plan) => {
                    runs += plan.cells().count();
                    let texts = spec.fields().zip(&values);
                    let texts = texts.map(|(field, value)| field_text(field, value)).collect();
                    points.push(Point { values, texts, plan });
                }
                Err(found) => findings.extend(found.into_iter().map(|it| spec.placed(it))),
            }
            if findings.len() > MOST_FINDINGS {
                break;
            }
        }
        if runs > MOST_RUNS {
            let found = format!("{runs} runs");
            findings.push(spec.placed(Finding::new(
                "sweep",
                found,
                format!("at most {MOST_RUNS}"),
            )));
        }
        if !findings.is_empty() {
            return Err(explained(findings));
        }
        let columns = spec.fields().enumerate().map(|(index, field)| {
            let values = points.iter().filter_map(|point| point.values.get(index));
            Column::new(field.name.clone(), kind_of(values))
        });
        let columns = columns.collect();
        let is_of_networks =
            |field: &SweptField| field.sets.iter().any(|it| it.starts_with("networks"));
        let of_networks = spec.fields().enumerate().filter(|(_, field)| is_of_networks(field));
        let of_networks = of_networks.map(|(index, _)| index).collect();
        Ok(Some(Sweep { scenario, spec, points, columns, of_networks }))
    }

    /// Names of the fields, in the order of the columns.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// Runs of all points.
    pub fn runs(&self) -> usize {
        self.points.iter().map(|point| point.plan.cells().count()).sum()
    }

    /// The complete file, defaults written out, with the copies of `inputs` in place of files that it names.
    ///
    /// # Errors
    /// If the scenario cannot be written out.
    pub fn to_toml(&self, inputs: &mut Inputs) -> Result<String, ScenarioError> {
        let scenario = self.scenario.with_inputs(inputs).to_toml()?;
        Ok(format!("{scenario}\n{}", self.spec.with_inputs(inputs).to_toml()))
    }
}

impl Point {
    /// The value of each field as text, in the order of the columns.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The same as values of a table with `columns`.
    pub(super) fn cells<'p>(&'p self, columns: &[Column]) -> Vec<Cell<'p>> {
        let values = self.values.iter().zip(&self.texts).zip(columns);
        let cell =
            |((value, text), column): ((&Value, &'p String), &Column)| match (value, column.kind) {
                (Value::Integer(number), Kind::Whole) => {
                    Cell::Whole(u64::try_from(*number).unwrap_or(0))
                }
                (Value::Integer(number), Kind::Number) => Cell::Number(*number as f64),
                (Value::Float(number), Kind::Number) => Cell::Number(*number),
                (Value::Boolean(flag), Kind::Flag) => Cell::Flag(*flag),
                _ => Cell::Text(text),
            };
        values.map(cell).collect()
    }
}

/// The value of `field` as tables show it: files by their names alone.
fn field_text(field: &SweptField, value: &Value) -> String {
    let path = field.sets.first().map_or("", String::as_str);
    text_of(&without_folders(path, value.clone()))
}

/// A value as tables show it; a list by its parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // As tables have numbers: `1`, `0.5`.
        Value::Float(number) => number.to_string(),
        Value::Array(list) => list.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// What all of `values` are.
fn kind_of<'v>(values: impl Iterator<Item = &'v Value> + Clone) -> Kind {
    let all = |is: fn(&Value) -> bool| values.clone().all(is);
    if all(|value| value.as_integer().is_some_and(|number| number >= 0)) {
        Kind::Whole
    } else if all(|value| value.is_integer() || value.is_float()) {
        Kind::Number
    } else if all(Value::is_bool) {
        Kind::Flag
    } else {
        Kind::Text
    }
}

/// Columns that tables have already, or twice.
fn clashes(spec: &SweepSpec) -> Vec<Finding> {
    let known = known_columns();
    let taken = |field: &&SweptField| known.contains(&field.name.as_str());
    let finding = |field: &SweptField| {
        let expected = "a name that no column of results has";
        Finding::new(format!("sweep.{}", field.name), format!("`{}`", field.name), expected)
    };
    spec.fields().filter(taken).map(finding).collect()
}

/// The plan of one point, or what is wrong with it.
fn plan(
    spec: &SweepSpec,
    base: &Value,
    values: &[Value],
    registry: &Registry,
    shelf: &mut Shelf,
) -> Result<Plan, Vec<Finding>> {
    let mut root = base.clone();
    let mut findings = Vec::new();
    let mut fields: Vec<(&SweptField, &Value)> = spec.fields().zip(values).collect();
    fields.sort_by_key(|(field, _)| !field.sets.iter().any(|path| path == PROFILE));
    for (field, value) in fields {
        findings.extend(set(&mut root, field, value).err().map(|finding| *finding));
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let scenario = match Scenario::from_table(&root) {
        Ok(scenario) => scenario,
        Err(error) => return Err(vec![blamed(spec, base, values, &error)]),
    };
    Plan::build_with(scenario, registry, shelf)
        .map_err(|errors| errors.iter().flat_map(|error| error.findings()).collect())
}

/// Puts `value` where `field` says.
fn set(root: &mut Value, field: &SweptField, value: &Value) -> Result<(), Box<Finding>> {
    let Some(times) = &field.times else {
        return field.sets.iter().try_for_each(|path| {
            if put_at(root, path, value) { Ok(()) } else { Err(no_field(root, path).into()) }
        });
    };
    let Some(factor) = Amount::read(value) else {
        let found = value.to_string();
        return Err(Finding::new(times, found, "a number of times").into());
    };
    // A star in it stands for the same element as the first star of the field.
    let alternatives = match times.split_once(".*.") {
        None => vec![(times.clone(), None)],
        Some((list, _)) => {
            let length = at_path(root, list).and_then(Value::as_array).map_or(0, Vec::len);
            let with = |index: usize| (times.replacen('*', &index.to_string(), 1), Some(index));
            (0..length).map(with).collect()
        }
    };
    for (of, index) in alternatives {
        let amount = at_path(root, &of).and_then(Amount::read);
        let Some(product) = amount.and_then(|amount| amount.times(factor)) else {
            let expected = "a field with a number, a rate, a time or a size to multiply";
            let found = at_path(root, &of).map_or("no such field".to_owned(), text_of);
            return Err(Finding::new(of, found, expected).into());
        };
        for path in &field.sets {
            let path = index.map_or(path.clone(), |at| path.replacen('*', &at.to_string(), 1));
            if !put_at(root, &path, &product.value()) {
                return Err(no_field(root, &path).into());
            }
        }
    }
    Ok(())
}

/// The value at `path`, without stars.
fn at_path<'v>(root: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(root, |value, part| match value {
        Value::Table(table) => table.get(part),
        Value::Array(list) => {
            let named = |item: &&Value| item.get("name").and_then(Value::as_str) == Some(part);
            list.iter().find(named).or_else(|| list.get(part.parse::<usize>().ok()?))
        }
        _ => None,
    })
}

/// Tells which part of `path` is not there.
fn no_field(root: &Value, path: &str) -> Finding {
    let mut value = Some(root);
    let mut known: Vec<String> = Vec::new();
    let mut missing = path;
    for part in path.split('.') {
        let Some(here) = value else { break };
        (known, value) = match here {
            Value::Table(table) => {
                let next = if part == "*" { table.values().next() } else { table.get(part) };
                (table.keys().cloned().collect(), next)
            }
            Value::Array(list) => {
                let name =
                    |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
                let next = if part == "*" { list.first() } else { at_path(here, part) };
                let positions = (0..list.len()).map(|index| index.to_string());
                (list.iter().filter_map(name).chain(positions).collect(), next)
            }
            _ => (Vec::new(), None),
        };
        missing = part;
    }
    let found = format!("no such field: `{missing}`");
    let names = known.iter().map(String::as_str);
    let expected = match known.is_empty() {
        true => "a path to a field, where elements of lists have names or positions".to_owned(),
        false => format!("one of {}", known.join(", ")),
    };
    Finding::new(path, found, expected).near(nearest(missing, names))
}

/// What is wrong with a value that the scenario does not take: told of the field that is wrong by
/// itself, or else of the sweep.
fn blamed(spec: &SweepSpec, base: &Value, values: &[Value], error: &toml::de::Error) -> Finding {
    for (field, value) in spec.fields().zip(values) {
        let mut root = base.clone();
        if set(&mut root, field, value).is_err() {
            continue;
        }
        if let Err(error) = Scenario::from_table(&root) {
            let path = field.sets.first().unwrap_or(&field.name);
            let found = format!("{value}: {}", error.message().replace('\n', ", "));
            return Finding::new(path, found, "");
        }
    }
    Finding::new("sweep", error.message().replace('\n', ", "), "")
}

#[cfg(test)]
mod tests;
