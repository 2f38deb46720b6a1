//! `summary.json` of a sweep: the entries of a comparison's, each with the fields of its point. Rows are
//! written as points come, so that they are never held in memory all at once.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::points::{Point, Sweep};
use super::todo::Todo;
use quipu_lab::plan::World;
use quipu_record::{Failure, FileError, Metric, PageNote, Provenance, Summary};

/// The file.
pub(super) const SUMMARY: &str = "summary.json";
/// Failures that are told in words.
const MOST_TOLD: usize = 10;

/// The page time of a page over a network with a policy at a point.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) point: usize,
    pub(super) page: String,
    pub(super) network: String,
    pub(super) policy: String,
    /// Median in nanoseconds.
    pub(super) median: u64,
    /// Ratio to the first policy, with its interval.
    pub(super) ratio: Option<f64>,
    pub(super) interval: Option<(f64, f64)>,
}

/// The values of a point by field, in the order of the columns, as tables have them.
struct Fields<'s>(&'s Sweep, &'s Point);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.1.values.len()))?;
        for (name, value) in self.0.fields().zip(self.1.texts()) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// An entry of a comparison's summary with the fields of its point.
#[derive(Serialize)]
struct Entry<'s, T> {
    point: usize,
    fields: Fields<'s>,
    #[serde(flatten)]
    entry: &'s T,
}

#[derive(Serialize)]
struct Head<'s> {
    #[serde(flatten)]
    provenance: &'s Provenance,
    world: &'static str,
    seed: u64,
    complete: bool,
    runs_planned: usize,
    runs_finished: usize,
    points: usize,
    fields: Vec<&'s str>,
}

/// The file, open to be written.
pub(super) struct SummaryFile<'s> {
    sweep: &'s Sweep,
    file: BufWriter<File>,
    has_rows: bool,
    pages: Vec<PageNote>,
    /// Each as it is in the file.
    failures: Vec<String>,
    sharing: Vec<String>,
    identical: Vec<String>,
    faster_alone: Vec<String>,
    told: Vec<String>,
    lines: Vec<Line>,
}

fn failed(source: std::io::Error) -> FileError {
    FileError::Write { file: SUMMARY.to_owned(), source }
}

fn json(value: &impl Serialize) -> Result<String, FileError> {
    serde_json::to_string(value).map_err(|error| failed(error.into()))
}

impl<'s> SummaryFile<'s> {
    pub(super) fn create(folder: &Path, todo: &'s Todo) -> Result<SummaryFile<'s>, FileError> {
        let (sweep, status) = (&todo.sweep, todo.status());
        let mut file = BufWriter::new(File::create(folder.join(SUMMARY)).map_err(failed)?);
        let head = Head {
            provenance: &status.provenance,
            world: World::Simulated.name(),
            seed: sweep.scenario.seed,
            complete: status.done == status.planned,
            runs_planned: status.planned,
            runs_finished: status.done,
            points: sweep.points.len(),
            fields: sweep.fields().collect(),
        };
        let head = json(&head)?;
        put(&mut file, head.strip_suffix('}').unwrap_or(&head))?;
        put(&mut file, ",\n\"rows\":[")?;
        Ok(SummaryFile {
            sweep,
            file,
            has_rows: false,
            pages: Vec::new(),
            failures: Vec::new(),
            sharing: Vec::new(),
            identical: Vec::new(),
            faster_alone: Vec::new(),
            told: Vec::new(),
            lines: Vec::new(),
        })
    }

    /// Adds what the runs of a point say.
    pub(super) fn add(
        &mut self,
        index: usize,
        point: &'s Point,
        summary: Summary,
    ) -> Result<(), FileError> {
        let sweep = self.sweep;
        let fields = || Fields(sweep, point);
        for row in &summary.rows {
            let separator = if self.has_rows { ",\n" } else { "\n" };
            self.has_rows = true;
            let text = json(&Entry { point: index, fields: fields(), entry: row })?;
            put(&mut self.file, separator)?;
            put(&mut self.file, &text)?;
            if let Some(time) = row.metric(Metric::PageTime) {
                self.lines.push(Line {
                    point: index,
                    page: row.page.clone(),
                    network: row.network.clone(),
                    policy: row.policy.clone(),
                    median: time.median,
                    ratio: time.ratio,
                    interval: time.ratio_low.zip(time.ratio_high),
                });
            }
        }
        for failure in &summary.failures {
            self.failures.push(json(&Entry { point: index, fields: fields(), entry: failure })?);
            if self.told.len() < MOST_TOLD {
                self.told.push(in_words(point, failure));
            }
        }
        for entry in &summary.sharing {
            self.sharing.push(json(&Entry { point: index, fields: fields(), entry })?);
        }
        for entry in &summary.identical {
            self.identical.push(json(&Entry { point: index, fields: fields(), entry })?);
        }
        for entry in &summary.faster_alone {
            self.faster_alone.push(json(&Entry { point: index, fields: fields(), entry })?);
        }
        for page in summary.pages {
            if !self.pages.iter().any(|known| known.name == page.name && known.hash == page.hash) {
                self.pages.push(page);
            }
        }
        Ok(())
    }

    /// Writes what is left; gives the lines of all points, and some failures in words.
    pub(super) fn finish(mut self) -> Result<(Vec<Line>, Vec<String>), FileError> {
        let pages = self.pages.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        let lists = [
            ("failures", &self.failures),
            ("pages", &pages),
            ("sharing", &self.sharing),
            ("identical", &self.identical),
            ("faster_alone", &self.faster_alone),
        ];
        put(&mut self.file, "\n]")?;
        for (name, list) in lists {
            // As in a comparison, these are left out where there is nothing to say.
            if ["sharing", "faster_alone"].contains(&name) && list.is_empty() {
                continue;
            }
            let text = match list.is_empty() {
                true => format!(",\n\"{name}\":[]"),
                false => format!(",\n\"{name}\":[\n{}\n]", list.join(",\n")),
            };
            put(&mut self.file, &text)?;
        }
        put(&mut self.file, "}\n")?;
        let flushed = self.file.flush();
        flushed.map_err(failed)?;
        Ok((self.lines, self.told))
    }
}

/// Writes `text` into the open file.
fn put(file: &mut BufWriter<File>, text: &str) -> Result<(), FileError> {
    file.write_all(text.as_bytes()).map_err(failed)
}

fn in_words(point: &Point, failure: &Failure) -> String {
    let Failure { page, network, policy, run, reason } = failure;
    let fields = match point.texts().is_empty() {
        true => String::new(),
        false => format!(" ({})", point.texts().join(", ")),
    };
    format!("{page} over {network} with {policy}{fields}, run {run}: {reason}")
}
