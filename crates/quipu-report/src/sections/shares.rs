//! How much went over each path.

use serde_json::Value;

use super::data::{Rows, text};
use super::{Context, Draft, figure, words};
use crate::document::{Section, number};
use crate::spec::{Field, Layer, Mark, Spec};

/// Shares of paths of what the server sent.
pub(super) fn shares(context: &Context<'_>, draft: &mut Draft) {
    let id = "path-shares";
    let results = &context.folders.results;
    let columns = ["policy", "path", "share", "bytes"].map(str::to_owned);
    let mut rows = Rows::new(context.select.columns().chain(columns));
    let mut told = None;
    for scene in &context.scenes {
        let place = context.select.cells(results, scene);
        let mut each = Vec::new();
        for cell in &scene.cells {
            let all: u64 = cell.sent.iter().fold(0, |all, (_, sent)| all.saturating_add(*sent));
            if all == 0 {
                continue;
            }
            let mut parts = Vec::new();
            for (path, sent) in &cell.sent {
                let share = *sent as f64 / all as f64;
                let per_load = sent / (cell.loads.len().max(1) as u64);
                let cells = [text(&cell.policy), text(path), number(share), Value::from(per_load)];
                rows.row(place.iter().cloned().chain(cells));
                parts.push(format!("{path} {:.1} %", 100.0 * share));
            }
            each.push(format!("{} {}", cell.policy, words::list(&parts, 4)));
        }
        if told.is_none() && !each.is_empty() {
            told = Some(format!(
                "Shares of the paths on {}: {}.",
                context.name(scene),
                words::list(&each, 12).replace(" and ", ", ")
            ));
        }
    }
    let Some(alt) = told else { return };
    let spec = Spec::steps(id, 24).layer(
        Layer::new(Mark::bar(0.8))
            .with(
                "x",
                Field::number("share", "share of the bytes that the server sent")
                    .domain(0.0, 1.0)
                    .axis_format("%")
                    .stacked(),
            )
            .with("y", Field::row("policy", "policy", context.policies()))
            .with("color", Field::name("path", "path", &results.paths))
            .with(
                "tooltip",
                vec![
                    Field::row("policy", "policy", []),
                    Field::row("path", "path", []),
                    Field::number("share", "share").format(".1%"),
                    Field::number("bytes", "bytes per load"),
                ],
            ),
    );
    draft.dataset(id, rows.build());
    let caption =
        "Share of each path of all bytes that the server sent, what it sent again included.";
    let drawn = figure(id, "Shares of the paths", caption.to_owned(), alt, &spec, &context.select);
    draft.section(Section {
        id: "paths".to_owned(),
        title: "Paths".to_owned(),
        figures: vec![drawn],
        ..Section::default()
    });
}
