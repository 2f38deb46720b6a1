//! What the paths of a load in full delivered over time: throughput and bytes, stacked by path.

use std::collections::BTreeMap;

use super::data::{Rows, text};
use super::{Context, Draft, words};
use crate::document::{Control, Figure, number};
use crate::loads::{Loads, Replayed};
use crate::spec::{Field, Layer, Mark, Spec};

/// Steps in time of a figure.
const STEPS: usize = 120;

/// What a load's paths delivered, by path: the bytes of each step.
struct Delivered {
    /// Length of a step in milliseconds.
    step: f64,
    /// Names and bytes.
    paths: Vec<(String, Vec<f64>)>,
}

/// Acknowledged bytes of all connections and flows of `load`.
fn delivered(load: &Replayed) -> Option<Delivered> {
    let detail = &load.detail;
    let began = detail.began_at.as_nanos() as f64 / 1e6;
    let all = || detail.series.iter().flat_map(|connection| &connection.paths);
    let ends = all().filter_map(|path| path.rows.last());
    let end = ends.map(|row| row.at.as_nanos() as f64 / 1e6 - began).fold(0.0, f64::max);
    if end <= 0.0 {
        return None;
    }
    let least = detail.every.as_nanos() as f64 / 1e6;
    let step = (end / STEPS as f64 / least).ceil().max(1.0) * least;
    let steps = (end / step).ceil() as usize;
    let mut paths: BTreeMap<u32, (String, Vec<f64>)> = BTreeMap::new();
    for path in all() {
        let (_, sums) =
            paths.entry(path.path).or_insert_with(|| (path.name.clone(), vec![0.0; steps]));
        let mut before = 0;
        for row in &path.rows {
            let at = row.at.as_nanos() as f64 / 1e6 - began;
            // A sample at the end of a step says what came within it.
            let position = (at / step).ceil() as usize;
            let bytes = row.bytes_acked.0;
            if let Some(sum) = sums.get_mut(position.saturating_sub(1)) {
                *sum += bytes.saturating_sub(before) as f64;
            }
            before = bytes;
        }
    }
    Some(Delivered { step, paths: paths.into_values().collect() })
}

/// Throughput and bytes of the paths of each load over time.
pub(super) fn traffic(
    context: &Context<'_>,
    loads: &Loads,
    controls: &[Control],
    draft: &mut Draft,
) -> Vec<Figure> {
    let id = "load-traffic";
    let mut rows = Rows::new(["policy", "path", "ms", "rate", "total"]);
    let mut ends: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for load in &loads.loads {
        let Some(Delivered { step, paths }) = delivered(load) else { continue };
        for (path, sums) in &paths {
            if !names.contains(path) {
                names.push(path.clone());
            }
            let row = |at: usize, rate: f64, total: f64| {
                let numbers = [at as f64 * step, rate, total / 1e6].map(number);
                [text(&load.policy), text(path)].into_iter().chain(numbers)
            };
            let mut total = 0.0;
            for (at, bytes) in sums.iter().enumerate() {
                // The rate of a step is drawn from its beginning.
                rows.row(row(at, bytes * 8.0 / 1e3 / step, total));
                total += bytes;
            }
            rows.row(row(sums.len(), 0.0, total));
            if std::ptr::eq(load, &raw const loads.loads[0]) {
                ends.push(format!("{path} {:.2} MB", total / 1e6));
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    draft.dataset(id, rows.build());
    let known = &context.folders.results.paths;
    let domain = if names.iter().all(|name| known.contains(name)) { known } else { &names };
    let about = "Acknowledged packets with all that is in them, as the sender knows them";
    let all = [
        ("load-throughput", "Throughput by path", "rate", "throughput, Mb/s", Mark::area_steps()),
        ("load-bytes", "Bytes by path", "total", "bytes so far, MB", Mark::area()),
    ];
    let figure = |(name, title, column, unit, mark): (&str, &str, &str, &str, Mark)| {
        let x = || Field::number("ms", "since the start").in_time();
        let layer = Layer::new(mark.opacity(0.85))
            .zoomed()
            .with("x", x())
            .with("y", Field::number(column, unit).from_zero().stacked())
            .with("color", Field::name("path", "path", domain))
            .with(
                "tooltip",
                vec![Field::label("path").titled("path"), x(), Field::number(column, unit)],
            );
        Figure {
            id: name.to_owned(),
            title: title.to_owned(),
            caption: match column {
                "rate" => format!(
                    "{about}, in up to {STEPS} steps of equal length; the paths are stacked, so that \
                     the upper edge is their sum."
                ),
                _ => format!("{about}, from the start; the paths are stacked."),
            },
            alt: format!(
                "{title} over time of {}. In the end: {}.",
                loads.place,
                words::list(&ends, 8)
            ),
            spec: Spec::new(id, 220).layer(layer).value(),
            datasets: vec![id.to_owned()],
            controls: controls.to_vec(),
        }
    };
    all.map(figure).into_iter().collect()
}
