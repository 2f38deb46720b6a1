//! `[sweep]`: which fields of a scenario take which values.
//!
//! Each key is a field with a list of values, and all lists together span a grid. `[sweep.random]`
//! draws values instead. Fields that move together stand in one table of `[[sweep.zip]]`.

mod amount;
mod read;
mod schema;

use std::ops::Range;

use quipu_base::Seed;
use toml::Value;

pub use amount::Amount;
pub(super) use schema::schema;

use super::document::Document;
use super::finding::{Finding, Findings, Place};
use super::input::{Inputs, count_from};

/// What a file says of a sweep.
#[derive(Clone, Debug, Default)]
pub struct SweepSpec {
    axes: Vec<Axis>,
    random: Option<Random>,
    document: Option<Document>,
}

/// Fields that take their values together: mostly one.
#[derive(Clone, Debug)]
struct Axis {
    fields: Vec<SweptField>,
    /// For each field as many values.
    values: Vec<Vec<Value>>,
    /// Whether it stands in `[[sweep.zip]]`.
    zipped: bool,
}

#[derive(Clone, Debug)]
struct Random {
    count: u32,
    seed: u64,
    fields: Vec<(SweptField, Draw)>,
}

/// Where a value is drawn from.
#[derive(Clone, Debug)]
enum Draw {
    List(Vec<Value>),
    Range { from: Amount, to: Amount, log: bool },
}

/// What a column of a sweep sets.
#[derive(Clone, Debug)]
pub struct SweptField {
    /// What tables call it: the path of the field, or a name of its own.
    pub name: String,
    /// Paths of the fields that get the value.
    pub sets: Vec<String>,
    /// A path of the field that the value is a multiple of.
    pub times: Option<String>,
    /// As it was written: its key.
    key: String,
    /// Bytes of the key in the file.
    span: Range<usize>,
}

/// A value of each field of a sweep, in their order.
pub type PointValues = Vec<Value>;

impl SweepSpec {
    /// The sweep that `document` has; `None` if it has none.
    ///
    /// # Errors
    /// All that is wrong with its form, with places.
    pub fn read(document: &Document) -> Result<Option<SweepSpec>, Findings> {
        let root = document.parse();
        let root =
            root.map_err(|all| Findings::new(all).unwrap_or_else(|| document.unreadable()))?;
        let Some(given) = root.get_ref().get("sweep") else { return Ok(None) };
        let mut spec = read::sweep(document, given)?;
        spec.each_value(&mut |path, value| count_from(path, value, document.folder()));
        Ok(Some(spec))
    }

    /// The same with the copies of `inputs` in place of the files that its values name with their content.
    #[must_use]
    pub fn with_inputs(&self, inputs: &mut Inputs) -> SweepSpec {
        let mut kept = self.clone();
        kept.each_value(&mut |path, value| inputs.keep_value(path, value));
        kept
    }

    /// Calls `visit` for each value that is listed, with the first field that it sets.
    pub fn each_value(&mut self, visit: &mut dyn FnMut(&str, &mut Value)) {
        let mut all = |field: &SweptField, values: &mut [Value]| {
            let path = field.sets.first().map_or("", String::as_str);
            values.iter_mut().for_each(|value| visit(path, value));
        };
        for axis in &mut self.axes {
            for (field, values) in axis.fields.iter().zip(&mut axis.values) {
                all(field, values);
            }
        }
        for (field, draw) in self.random.iter_mut().flat_map(|random| &mut random.fields) {
            if let Draw::List(values) = draw {
                all(field, values);
            }
        }
    }

    /// Its fields, in the order of columns.
    pub fn fields(&self) -> impl Iterator<Item = &SweptField> {
        let random = self.random.iter().flat_map(|random| &random.fields);
        self.axes.iter().flat_map(|axis| &axis.fields).chain(random.map(|(field, _)| field))
    }

    /// How many points it has; `None` if that is beyond counting.
    pub fn count(&self) -> Option<usize> {
        let samples = self.random.as_ref().map_or(1, |random| random.count as usize);
        let lengths = self.axes.iter().map(|axis| axis.values.first().map_or(1, Vec::len));
        lengths.chain([samples]).try_fold(1_usize, |all, count| all.checked_mul(count))
    }

    /// All points: the first list of the file changes least often, samples most often.
    pub fn points(&self) -> Vec<PointValues> {
        let mut points: Vec<PointValues> = vec![Vec::new()];
        for axis in &self.axes {
            let count = axis.values.first().map_or(0, Vec::len);
            let step = |point: &PointValues, index: usize| -> PointValues {
                let own = axis.values.iter().filter_map(|values| values.get(index));
                point.iter().chain(own).cloned().collect()
            };
            let with_axis = points
                .iter()
                .flat_map(|point| (0..count).map(move |index| step(point, index)))
                .collect();
            points = with_axis;
        }
        let Some(random) = &self.random else { return points };
        let samples: Vec<PointValues> =
            (0..random.count).map(|index| random.sample(index)).collect();
        let with_sample = |point: &PointValues| {
            let point = point.clone();
            samples.iter().map(move |sample| point.iter().chain(sample).cloned().collect())
        };
        points.iter().flat_map(with_sample).collect()
    }

    /// `finding`, of the scenario of a point, at the field of the sweep that it comes from, if there
    /// is one.
    pub fn placed(&self, finding: Finding) -> Finding {
        let Some(document) = &self.document else { return finding };
        if finding.place != Place::Unknown {
            return finding;
        }
        let covers = |field: &&SweptField| field.sets.iter().any(|set| covers(set, &finding.field));
        let span = self.fields().find(covers).map(|field| field.span.clone());
        match span {
            Some(span) => finding.at(Place::File(document.spot(span))),
            None => {
                let spot = document.locate(&finding.field);
                finding.at(Place::File(spot))
            }
        }
    }

    /// The same with everything written out, as a part of a scenario file.
    pub fn to_toml(&self) -> String {
        let mut text = "[sweep]\n".to_owned();
        let key = |name: &str| Value::String(name.to_owned()).to_string();
        let table = |field: &SweptField, mut entries: toml::Table| {
            let texts = |list: &[String]| list.iter().cloned().map(Value::String).collect();
            if field.sets != [field.name.clone()] {
                entries.insert("fields".to_owned(), Value::Array(texts(&field.sets)));
            }
            if let Some(times) = &field.times {
                entries.insert("times".to_owned(), Value::String(times.clone()));
            }
            Value::Table(entries)
        };
        let listed = |field: &SweptField, values: &[Value]| {
            let list = Value::Array(values.to_vec());
            let entries: toml::Table = [("values".to_owned(), list.clone())].into_iter().collect();
            match table(field, entries) {
                Value::Table(entries) if entries.len() == 1 => list,
                other => other,
            }
        };
        let grid = self.axes.iter().filter(|axis| !axis.zipped);
        for (field, values) in grid.flat_map(|axis| axis.fields.iter().zip(&axis.values)) {
            text.push_str(&format!("{} = {}\n", key(&field.name), listed(field, values)));
        }
        for axis in self.axes.iter().filter(|axis| axis.zipped) {
            text.push_str("\n[[sweep.zip]]\n");
            for (field, values) in axis.fields.iter().zip(&axis.values) {
                text.push_str(&format!("{} = {}\n", key(&field.name), listed(field, values)));
            }
        }
        if let Some(random) = &self.random {
            let Random { count, seed, fields } = random;
            text.push_str(&format!("\n[sweep.random]\ncount = {count}\nseed = {seed}\n"));
            for (field, draw) in fields {
                let value = match draw {
                    Draw::List(values) => listed(field, values),
                    Draw::Range { from, to, log } => {
                        let scale = Value::String(if *log { "log" } else { "linear" }.to_owned());
                        let ends = [("from", from.value()), ("to", to.value()), ("scale", scale)];
                        let ends = ends.into_iter().map(|(key, value)| (key.to_owned(), value));
                        table(field, ends.collect())
                    }
                };
                text.push_str(&format!("{} = {value}\n", key(&field.name)));
            }
        }
        text
    }
}

impl Random {
    /// The values of sample `index`: each field has a random stream of its own, so that neither more
    /// samples nor further fields change those that there are.
    fn sample(&self, index: u32) -> PointValues {
        let seed = Seed::new(self.seed).child("sample", u64::from(index));
        let draw = |(field, draw): &(SweptField, Draw)| {
            let number = seed.number(&field.name, 0);
            match draw {
                Draw::List(values) => {
                    // Upper half of a product: below the length.
                    let at = (u128::from(number) * values.len() as u128) >> 64;
                    values[usize::try_from(at).unwrap_or_default()].clone()
                }
                // 53 bits: what a float holds, from 0 to below 1.
                Draw::Range { from, to, log } => {
                    let at = (number >> 11) as f64 / (1_u64 << 53) as f64;
                    from.between(*to, at, *log).rounded().value()
                }
            }
        };
        self.fields.iter().map(draw).collect()
    }
}

/// Whether what is said of `field`, such as `networks[0].paths[1].down`, may come from the path `set`,
/// such as `networks.*.paths.1.down.rate`.
fn covers(set: &str, field: &str) -> bool {
    if field.is_empty() {
        return false;
    }
    let field = field.replace('[', ".").replace(']', "");
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    // Elements of lists are named here and numbered there.
    let alike = |(set, found): (&str, &str)| set == "*" || set == found || is_number(found);
    set.split('.').zip(field.split('.')).all(alike)
}

#[cfg(test)]
mod tests;
