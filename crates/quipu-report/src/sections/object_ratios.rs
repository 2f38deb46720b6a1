//! Objects one by one over all runs: the time of each as a ratio to that with the first policy.

use serde_json::Value;

use super::distribution::{Begin, Boxes, boxes_of};
use super::{Context, Draft, waterfall, words};
use crate::document::{Column, Figure, Table, number};
use crate::results::{Cell, Scene};

/// Rows of the table.
const MOST_ROWS: usize = 2_000;
/// Millionths in one.
const MILLIONTHS: f64 = 1e6;

/// The cell that ratios are to.
fn base(scene: &Scene) -> Option<&Cell> {
    scene.cells.iter().find(|cell| !cell.object_means.is_empty())
}

/// Ratios of the objects of `cell` to those of the first cell of `scene`, by position of the object; none of
/// that cell itself.
fn ratios<'a>(scene: &'a Scene, cell: &'a Cell) -> Vec<(&'a str, f64)> {
    let Some(base) = base(scene).filter(|base| base.policy != cell.policy) else {
        return Vec::new();
    };
    let means = cell.object_means.iter();
    means
        .filter_map(|(object, mean)| {
            Some((mean.url.as_str(), mean.ratio(base.object_means.get(object)?)?))
        })
        .collect()
}

/// Box plots of the ratios of all objects, one for each policy.
pub(super) fn figure(context: &Context<'_>, draft: &mut Draft) -> Option<Figure> {
    let about = Boxes {
        id: "object-ratio-boxes",
        title: "Object times as ratios to the first policy",
        what: "object time to that of the first policy, ratio",
        note: "Each value is one object: the geometric mean over pairs of the same run. Below 1 is \
               earlier; the band is 5 % to either side of 1.",
        unit: MILLIONTHS,
        axis: Begin::Around,
    };
    // Ratios of times: not negative.
    boxes_of(context, draft, &about, |scene, cell| {
        ratios(scene, cell).iter().map(|(_, ratio)| (ratio * MILLIONTHS).round() as u64).collect()
    })
}

/// The ratios of all objects, those first that are furthest from 1.
pub(super) fn table(context: &Context<'_>) -> Option<Table> {
    let mut found: Vec<(f64, Vec<Value>)> = Vec::new();
    for scene in &context.scenes {
        for cell in &scene.cells {
            for (url, ratio) in ratios(scene, cell) {
                let mut row = context.place_cells(scene);
                row.push(Value::from(cell.policy.clone()));
                row.push(Value::from(waterfall::file_name(url)));
                row.push(number(ratio));
                row.push(Value::from(url));
                found.push((libm::log(ratio).abs(), row));
            }
        }
    }
    found.sort_by(|(one, _), (next, _)| next.total_cmp(one));
    let left_out = found.len().saturating_sub(MOST_ROWS);
    let mut caption =
        "The time of each object to that with the first policy, those first that differ \
                       most; the geometric mean over pairs of the same run."
            .to_owned();
    if left_out > 0 {
        let rows = words::count(left_out as u64, "row that differs", "rows that differ");
        caption.push_str(&format!(" {rows} less are left out."));
    }
    let mut columns = context.place_columns();
    columns.extend([
        Column::text("policy", "policy"),
        Column::text("object", "object"),
        Column::number("ratio", "ratio", "x", 3),
        Column::text("url", "address"),
    ]);
    let rows: Vec<_> = found.into_iter().take(MOST_ROWS).map(|(_, row)| row).collect();
    (!rows.is_empty()).then(|| Table {
        id: "object-ratio-table".to_owned(),
        title: "Objects that differ most from the first policy".to_owned(),
        caption,
        columns,
        rows,
    })
}
