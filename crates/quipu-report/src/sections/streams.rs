//! Raw streams: how long each takes, as box plots over the runs; and boxes in groups, which flows have too.

use super::data::{Rows, text};
use super::{Context, Draft, words};
use crate::aggregate::boxes::{BoxNumbers, boxed};
use crate::document::{Section, number, short};
use crate::notices::Notices;
use crate::read::Folders;
use crate::results::Scene;
use crate::spec::{Field, Layer, Mark, Spec};

/// Columns of the numbers of a box.
pub(super) const BOX_COLUMNS: [&str; 8] =
    ["n", "least", "low", "q1", "median", "q3", "high", "most"];

/// The cells of these, in units of `unit`.
pub(super) fn box_cells(numbers: &BoxNumbers, unit: f64) -> [serde_json::Value; 8] {
    let BoxNumbers { least, low, lower_quartile, median, upper_quartile, high, most, count } =
        *numbers;
    let values = [least, low, lower_quartile, median, upper_quartile, high, most];
    let [least, low, q1, median, q3, high, most] = values.map(|value| number(value / unit));
    [number(count as f64), least, low, q1, median, q3, high, most]
}

/// Box plots of the rows of `dataset`, one for each name of the column of `group` in the row of each policy.
pub(super) fn grouped(context: &Context<'_>, dataset: &str, group: &Field, x: &Field) -> Spec {
    let of = |column: &str| x.clone().of_column(column);
    let tooltip = || {
        let mut fields = vec![Field::label("policy").titled("policy"), group.clone()];
        for (column, title) in [
            ("median", "median"),
            ("q1", "lower quartile"),
            ("q3", "upper quartile"),
            ("least", "least"),
            ("most", "largest"),
            ("n", "runs"),
        ] {
            fields.push(Field::number(column, title));
        }
        fields
    };
    Spec::steps(dataset, 34)
        .with("y", Field::row("policy", "policy", context.policies()))
        .with("yOffset", group.clone())
        .layer(
            Layer::new(Mark::rule())
                .with("x", of("low"))
                .with("x2", Field::end("high"))
                .with("tooltip", tooltip()),
        )
        .layer(
            Layer::new(Mark::bar(0.7))
                .with("x", of("q1"))
                .with("x2", Field::end("q3"))
                .with("color", group.clone())
                .with("tooltip", tooltip()),
        )
        .layer(Layer::new(Mark::tick(9.0)).with("x", of("median")).with("tooltip", tooltip()))
}

/// Times of raw streams.
pub(super) fn streams(folders: &Folders, draft: &mut Draft) {
    let has = |scene: &&Scene| scene.cells.iter().any(|cell| !cell.streams.is_empty());
    let scenes: Vec<&Scene> = folders.results.scenes.iter().filter(has).collect();
    if scenes.is_empty() {
        return;
    }
    let context = Context::of(folders, scenes, &mut Notices::default());
    let id = "stream-times";
    let columns = ["policy", "stream"].into_iter().chain(BOX_COLUMNS).map(str::to_owned);
    let mut rows = Rows::new(context.select.columns().chain(columns));
    let mut names: Vec<(u64, String)> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for (at, scene) in context.scenes.iter().enumerate() {
        let place = context.select.cells(&folders.results, scene);
        for cell in &scene.cells {
            for (stream, times) in &cell.streams {
                let Some(numbers) = boxed(times) else { continue };
                let name = format!("stream {stream}");
                if !names.iter().any(|(known, _)| known == stream) {
                    names.push((*stream, name.clone()));
                }
                if at == 0 {
                    let median = short(numbers.median / 1e6);
                    told.push(format!("{name} with {} {median} ms", cell.policy));
                }
                let cells = [text(&cell.policy), text(&name)].into_iter();
                rows.row(place.iter().cloned().chain(cells).chain(box_cells(&numbers, 1e6)));
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    names.sort();
    let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
    draft.dataset(id, rows.build());
    let x = Field::number("median", "time to the last byte, ms").from_zero();
    let spec = grouped(&context, id, &Field::name("stream", "stream", &names), &x);
    draft.section(Section {
        id: "streams".to_owned(),
        title: "Streams".to_owned(),
        text: Vec::new(),
        figures: vec![super::figure(
            id,
            "Time of each stream",
            "From the start of the page to the last byte of each raw stream, over all runs. The box holds \
             the middle half, the tick is the median, and whiskers reach to values at most 1.5 boxes away."
                .to_owned(),
            format!(
                "Box plots of the times of streams on {}. Medians: {}.",
                context.name(context.scenes[0]),
                words::list(&told, 12)
            ),
            &spec,
            &context.select,
        )],
        tables: Vec::new(),
    });
}
