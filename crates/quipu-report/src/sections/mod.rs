//! The parts of a report: sentences, figures and tables.
//!
//! Each part takes the [`Context`] and adds its section and datasets to the [`Draft`], or nothing if
//! the results say nothing of it.

mod data;
mod distribution;
mod flows;
mod legends;
mod load;
mod methods;
mod network;
mod object_ratios;
mod objects;
mod pair;
mod ratios;
mod select;
mod shares;
mod states;
mod streams;
mod summary;
mod swept;
mod times;
mod traffic;
mod verdicts;
mod waterfall;
mod words;

use serde_json::Value;

use self::select::Select;
use crate::aggregate::ratios::{Standing, standing};
use crate::document::{Column, Dataset, Document, Figure, Program, Section};
use crate::loads::Loads;
use crate::notices::Notices;
use crate::read::{Folders, Kind};
use crate::results::{Place, Scene};
use quipu_record::Metric;

/// What all parts look at.
pub(crate) struct Context<'a> {
    pub(crate) folders: &'a Folders,
    /// Scenes with loads of pages.
    pub(crate) scenes: Vec<&'a Scene>,
    /// How these are told apart.
    select: Select,
    /// Who is fastest in each of them by page time; `None` where there is nothing to compare.
    standings: Vec<Option<Standing>>,
    /// For page, network and each field: whether scenes have several values.
    several: Vec<bool>,
}

/// A document in the making.
#[derive(Default)]
pub(crate) struct Draft {
    document: Document,
}

/// Policies in all scenes together that figures show: beyond this the file grows, and curves have too
/// few points.
const MOST_CELLS: usize = 4_000;

/// The report of `folders`.
pub(crate) fn document(folders: &Folders, loads: &Loads, mut notices: Notices) -> Document {
    let context = Context::new(folders, &mut notices);
    let mut draft = Draft::default();
    verdicts::verdicts(folders, &mut draft);
    times::page_time(&context, &mut draft);
    times::object_time(&context, &mut draft);
    ratios::by_network(&context, &mut draft);
    times::critical_time(&context, &mut draft);
    shares::shares(&context, &mut draft);
    times::bound(&context, &mut draft);
    load::load(&context, loads, &mut draft);
    pair::pair(&context, loads, &mut draft);
    flows::flows(folders, &mut draft);
    streams::streams(folders, &mut draft);
    network::networks(&context, &mut draft);
    methods::failures(&context, &mut draft);
    methods::repeat(folders, &mut draft);
    methods::methods(&context, &mut draft);
    let mut document = draft.document;
    settle(&mut document);
    legends::settle(&mut document);
    document.summary = summary::summary(&context);
    document.title = title(folders);
    document.subtitle = subtitle(&context);
    document.generated_by = program(folders);
    document.world = folders.world.clone();
    document.notices = notices.lines();
    document
}

/// Makes selectors begin with the first choice that their figure has rows for: what its text is about.
fn settle(document: &mut Document) {
    let datasets = &document.datasets;
    for figure in document.sections.iter_mut().flat_map(|section| &mut section.figures) {
        let first = figure.datasets.first().and_then(|name| datasets.get(name)?.objects().next());
        let Some(first) = first else { continue };
        for control in &mut figure.controls {
            if let Some(Value::String(value)) = first.get(&control.id) {
                control.default.clone_from(value);
            }
        }
    }
}

impl<'a> Context<'a> {
    fn new(folders: &'a Folders, notices: &mut Notices) -> Context<'a> {
        Context::of(folders, folders.results.pages().collect(), notices)
    }

    /// What figures about `scenes` look at.
    fn of(folders: &'a Folders, mut scenes: Vec<&'a Scene>, notices: &mut Notices) -> Context<'a> {
        let mut cells = 0;
        let fits = |scene: &&&Scene| {
            cells += scene.cells.len();
            cells <= MOST_CELLS
        };
        let shown = scenes.iter().take_while(fits).count().max(1);
        if shown < scenes.len() {
            notices.add(format!(
                "There are {} combinations of page, network and fields; figures show the first \
                 {shown}, and the files have all.",
                scenes.len()
            ));
            scenes.truncate(shown);
        }
        let select = Select::new(&folders.results, &scenes);
        let standings =
            scenes.iter().map(|scene| standing(scene, Metric::PageTime, folders.seed)).collect();
        let several = several(&scenes);
        Context { folders, scenes, select, standings, several }
    }

    /// Cells of scenes that figures show.
    fn cells(&self) -> usize {
        self.scenes.iter().map(|scene| scene.cells.len()).sum()
    }

    /// What a scene is called.
    fn name(&self, scene: &Scene) -> String {
        select::name(&self.folders.results, &scene.place)
    }

    /// Columns of a table that tell scenes apart: those that have several values.
    fn place_columns(&self) -> Vec<Column> {
        let columns = place_columns(self.folders);
        self.several
            .iter()
            .zip(columns)
            .filter(|(several, _)| **several)
            .map(|(_, it)| it)
            .collect()
    }

    /// Cells of a row about `scene` in these columns.
    fn place_cells(&self, scene: &Scene) -> Vec<Value> {
        let cells = place_cells(&scene.place);
        self.several.iter().zip(cells).filter(|(several, _)| **several).map(|(_, it)| it).collect()
    }

    /// Names of all policies.
    fn policies(&self) -> &[String] {
        &self.folders.results.policies
    }

    /// Names that have the same colour in every figure: of all policies, or none if they are more than
    /// a legend can show; then each figure has colours for those that it shows.
    fn colours(&self) -> &[String] {
        /// Entries of a legend.
        const MOST: usize = 12;
        if self.policies().len() <= MOST { self.policies() } else { &[] }
    }
}

/// Columns of page, network and each field.
fn place_columns(folders: &Folders) -> Vec<Column> {
    let named = [Column::text("page", "page"), Column::text("network", "network")];
    let fields = folders.results.fields.iter();
    let fields = fields.map(|field| Column::text(&select::column(field), field));
    named.into_iter().chain(fields).collect()
}

/// For page, network and each field: whether `scenes` have several values.
fn several(scenes: &[&Scene]) -> Vec<bool> {
    let Some(first) = scenes.first() else { return Vec::new() };
    let first = place_names(&first.place);
    let differs = |position: usize| {
        let value = |scene: &&Scene| place_names(&scene.place).get(position) != first.get(position);
        scenes.iter().any(value)
    };
    (0..first.len()).map(differs).collect()
}

/// Page, network and fields of `place`.
fn place_names(place: &Place) -> Vec<&String> {
    [&place.page, &place.network].into_iter().chain(&place.fields).collect()
}

/// The same as cells of a row.
fn place_cells(place: &Place) -> Vec<Value> {
    place_names(place).into_iter().map(|name| Value::from(name.clone())).collect()
}

impl Draft {
    /// Adds a section, unless it is empty.
    fn section(&mut self, section: Section) {
        if !section.figures.is_empty() || !section.tables.is_empty() || !section.text.is_empty() {
            self.document.sections.push(section);
        }
    }

    /// Adds the numbers of a figure.
    fn dataset(&mut self, name: &str, dataset: Dataset) {
        self.document.datasets.insert(name.to_owned(), dataset);
    }
}

/// A figure of the dataset of the same name as `id`.
fn figure(
    id: &str,
    title: &str,
    caption: String,
    alt: String,
    spec: &crate::spec::Spec,
    select: &Select,
) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption,
        alt,
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls: select.controls(),
    }
}

fn title(folders: &Folders) -> String {
    let what = match folders.kind {
        Kind::Result => "Results",
        Kind::Sweep => "Sweep",
        Kind::Reproduce => "Reproduction",
        Kind::Several => "Results",
    };
    format!("{what}: {}", folders.name)
}

/// How much was run, in words.
fn subtitle(context: &Context<'_>) -> String {
    let results = &context.folders.results;
    let distinct = |names: Vec<&str>| {
        let set: std::collections::BTreeSet<&str> = names.into_iter().collect();
        set.into_iter().filter(|name| !name.is_empty()).count() as u64
    };
    let scenes = &results.scenes;
    let pages = distinct(scenes.iter().map(|scene| scene.place.page.as_str()).collect());
    let networks = distinct(scenes.iter().map(|scene| scene.place.network.as_str()).collect());
    let cells = scenes.iter().flat_map(|scene| &scene.cells);
    let loads: usize = cells.map(|cell| cell.loads.len()).sum();
    let mut parts = Vec::new();
    if pages > 0 {
        parts.push(words::count(loads as u64, "page load", "page loads"));
        parts.push(words::count(pages, "page", "pages"));
    } else {
        parts.push(words::count(loads as u64, "run", "runs"));
    }
    parts.push(words::count(networks, "network", "networks"));
    parts.push(words::count(results.policies.len() as u64, "policy", "policies"));
    for (position, field) in results.fields.iter().enumerate() {
        let values = scenes.iter().filter_map(|scene| scene.place.fields.get(position));
        let values = distinct(values.map(String::as_str).collect());
        parts.push(words::count(
            values,
            &format!("value of {field}"),
            &format!("values of {field}"),
        ));
    }
    parts.join(" · ")
}

/// The program that wrote most of the folders.
fn program(folders: &Folders) -> Program {
    let most = folders.programs.iter().max_by_key(|(_, count)| **count);
    most.map(|(program, _)| program.clone()).unwrap_or_default()
}
