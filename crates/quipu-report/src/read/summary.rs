//! The summary and the status of a result folder, as far as they can be read.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_record::{ComputingRange, FasterAlone, Metric, Turned, read_at_most};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as Unknown, StrDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::notices::{Notices, clean};
use crate::results::{Place, Ratio, Results};

use super::tables::Folder;

/// The fields of an entry: texts, numbers or truth values.
pub(crate) type Fields = BTreeMap<String, Value>;

/// `summary.json`; what is missing is empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) program: String,
    pub(crate) profile: String,
    pub(crate) world: String,
    pub(crate) seed: u64,
    pub(crate) complete: Option<bool>,
    pub(crate) runs_planned: u64,
    pub(crate) runs_finished: u64,
    pub(crate) failures: Vec<Failure>,
    pub(crate) pages: Vec<Page>,
    rows: Vec<Row>,
    pub(crate) identical: Vec<Identical>,
    pub(crate) sharing: Vec<Sharing>,
    faster_alone: Vec<Alone>,
    computing_range: Option<ComputingRange>,
}

/// A path alone that is faster than every policy over all paths.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Alone {
    #[serde(flatten)]
    found: FasterAlone,
    fields: Fields,
}

/// A run that failed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Failure {
    pub(crate) page: String,
    pub(crate) network: String,
    pub(crate) policy: String,
    pub(crate) run: u64,
    pub(crate) reason: String,
    pub(crate) fields: Fields,
}

/// What a page is made of.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) objects: f64,
    pub(crate) bytes: f64,
    pub(crate) hosts: u64,
}

/// Policies that gave the same in every run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Identical {
    pub(crate) page: String,
    pub(crate) network: String,
    pub(crate) policies: Vec<String>,
    pub(crate) fields: Fields,
}

/// How evenly flows share links.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sharing {
    pub(crate) page: String,
    pub(crate) network: String,
    pub(crate) policy: String,
    pub(crate) fields: Fields,
    pub(crate) fairness_down: Option<Spread>,
    pub(crate) fairness_up: Option<Spread>,
}

/// Jain's index over the runs, in millionths.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spread {
    pub(crate) median: u64,
    pub(crate) least: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Row {
    page: String,
    network: String,
    policy: String,
    choice: String,
    fields: Fields,
    metrics: Vec<MetricRow>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct MetricRow {
    /// `None` of another version's metric.
    #[serde(deserialize_with = "known_metric")]
    metric: Option<Metric>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
}

/// A metric by its name in summaries, or `None` if there is none of that name.
fn known_metric<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Metric>, D::Error> {
    let name = String::deserialize(from)?;
    let metric = Metric::deserialize(StrDeserializer::<Unknown>::new(&name));
    Ok(metric.ok())
}

/// `status.json` of a sweep.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) planned: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) program: String,
    pub(crate) profile: String,
}

/// Bytes of a JSON file that are read.
const MOST_BYTES: u64 = 1 << 28;

/// Reads the JSON file `file` of a folder. `None` if it is not there, or with a notice if it is not as
/// it should be.
pub(crate) fn json<T: DeserializeOwned>(
    folder: &Path,
    label: &str,
    file: &str,
    notices: &mut Notices,
) -> Option<T> {
    let name = if label.is_empty() { file.to_owned() } else { format!("{label}/{file}") };
    let path = folder.join(file);
    let text = match read_at_most(&path, MOST_BYTES) {
        Ok(Some(text)) => text,
        Ok(None) => {
            notices.add(format!("{name} is too large; expected at most {MOST_BYTES} bytes."));
            return None;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            notices.add(format!("{name} cannot be read: {error}."));
            return None;
        }
    };
    match serde_json::from_slice(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            notices.add(format!(
                "{name} is not as this version writes it and is left out: {}.",
                clean(&error.to_string())
            ));
            None
        }
    }
}

impl Summary {
    /// Puts the ratios of the rows into the cells that tables have, and what each policy is in full; and
    /// which paths are faster alone into their scenes.
    pub(crate) fn fill(&self, folder: &Folder<'_>, results: &mut Results) {
        for row in &self.rows {
            let place = place(results, folder, &row.page, &row.network, &row.fields);
            let Some(scene) = results.position(&place) else { continue };
            let cells = &mut results.scenes[scene].cells;
            let policy = clean(&row.policy);
            let Some(cell) = cells.iter_mut().find(|cell| cell.policy == policy) else { continue };
            cell.choice = clean(&row.choice);
            for it in &row.metrics {
                let Some(metric) = it.metric else { continue };
                let Some(mean) = it.ratio.filter(|mean| mean.is_finite()) else { continue };
                let interval = it.ratio_low.zip(it.ratio_high);
                cell.ratios.insert(metric, Ratio { mean, interval });
            }
        }
        for found in self.computing_range.iter().flat_map(|range| &range.turned) {
            let fields = Fields::default();
            let place = place(results, folder, &found.page, &found.network, &fields);
            let Some(scene) = results.position(&place) else { continue };
            results.scenes[scene].turned.push(Turned {
                policy: clean(&found.policy),
                base: clean(&found.base),
                compute: clean(&found.compute),
                ..found.clone()
            });
        }
        for Alone { found, fields } in &self.faster_alone {
            let place = place(results, folder, &found.page, &found.network, fields);
            let Some(scene) = results.position(&place) else { continue };
            results.scenes[scene].faster_alone.push(FasterAlone {
                policy: clean(&found.policy),
                path: clean(&found.path),
                nearest: clean(&found.nearest),
                ..found.clone()
            });
        }
    }
}

/// The place with these names, in a folder with fields of its own.
pub(crate) fn place(
    results: &Results,
    folder: &Folder<'_>,
    page: &str,
    network: &str,
    fields: &Fields,
) -> Place {
    let values = results.fields.iter().map(|field| {
        let fixed = folder.fixed.iter().find(|(name, _)| name == field).map(|(_, value)| value);
        let told = fields.get(field).map(|value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            value => value.to_string(),
        });
        clean(&fixed.cloned().or(told).unwrap_or_default())
    });
    Place { page: clean(page), network: clean(network), fields: values.collect() }
}
