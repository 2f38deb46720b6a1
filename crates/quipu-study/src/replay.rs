//! Loads of results run again, to be shown in full.

use std::path::Path;

use quipu_lab::detail::{Options, RunName, find, plan_of, replay};
use quipu_lab::plan::{Plan, World};
use quipu_lab::policies::Registry;
use quipu_record::{Detail, LoadPlace, Replay, Replays, ResultFolder, read_at_most};
use quipu_scenario::Document;
use serde::Deserialize;

use crate::sweep::{Point, Sweep};

/// Bytes of a scenario that are read.
const MOST_BYTES: u64 = 1 << 24;

/// The file of a sweep.
const SWEEP: &str = "sweep.toml";

/// Runs loads again with the policies of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Replayer<'a>(pub &'a Registry);

impl Replays for Replayer<'_> {
    fn open(&self, folder: &ResultFolder<'_>) -> Result<Box<dyn Replay + '_>, String> {
        let plan = plan(folder, self.0)?;
        match world(folder.path)?.as_str() {
            name if name == World::Live.name() => {
                return Err("the loads were made over real uplinks".to_owned());
            }
            name if name == World::Emulated.name() => {
                return Err("the loads were made in real time, over emulated links".to_owned());
            }
            _ => {}
        }
        Ok(Box::new(Planned(plan)))
    }
}

struct Planned(Plan);

impl Replay for Planned {
    fn replay(&self, load: &LoadPlace<'_>) -> Result<Detail, String> {
        let small =
            |number: u64| u32::try_from(number).map_err(|_| format!("there is no run {number}"));
        let name = RunName {
            page: load.page,
            network: load.network,
            policy: load.policy,
            run: small(load.run)?,
        };
        let place = find(&self.0, &name).map_err(|error| error.to_string())?;
        let (visit, client) = (small(load.visit)?, small(load.client)?);
        let options = Options { visit, client, ..Options::default() };
        let detail = replay(&self.0, place, &options).map_err(|error| error.to_string())?;
        if let Some(recorded) = load.page_time {
            detail.compare(recorded).map_err(|it| it.to_string())?;
        }
        Ok(detail)
    }
}

/// The world that the summary of results names; empty if there is no summary.
fn world(folder: &Path) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Named {
        world: String,
    }
    let file = folder.join("summary.json");
    if !file.is_file() {
        return Ok(String::new());
    }
    let text = read(&file).map_err(|why| format!("summary.json cannot be read: {why}"))?;
    let named: Result<Named, _> = serde_json::from_str(&text);
    named.map(|named| named.world).map_err(|error| format!("summary.json: {error}"))
}

/// The plan of the runs in `folder`.
fn plan(folder: &ResultFolder<'_>, registry: &Registry) -> Result<Plan, String> {
    let is_sweep = folder.path.join(SWEEP).is_file();
    let file = if is_sweep { SWEEP } else { "scenario.toml" };
    let name = match folder.label {
        "" => file.to_owned(),
        label => format!("{label}/{file}"),
    };
    let text =
        read(&folder.path.join(file)).map_err(|why| format!("{name} cannot be read: {why}"))?;
    let document = Document::new(text, &name).in_folder(folder.path);
    if !is_sweep {
        return plan_of(&document, registry).map_err(|error| error.to_string());
    }
    let sweep = Sweep::read(&document, registry)
        .map_err(|findings| findings.to_string())?
        .ok_or_else(|| format!("{name} has no table [sweep]"))?;
    let fields: Vec<String> = sweep.fields().map(str::to_owned).collect();
    let is = |point: &Point| {
        let mut values = fields.iter().zip(point.texts());
        values.all(|(field, text)| {
            folder.fields.iter().any(|(known, there)| known == field && there == text)
        })
    };
    let point = sweep.points.into_iter().find(is);
    point.map(|point| point.plan).ok_or_else(|| format!("{name} has no such point"))
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = read_at_most(file, MOST_BYTES).map_err(|error| error.to_string())?;
    let bytes =
        bytes.ok_or_else(|| format!("it is too large; expected at most {MOST_BYTES} bytes"))?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
