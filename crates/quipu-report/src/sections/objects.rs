//! The table of all objects of loads in full.

use quipu_record::{Detail, ObjectDetail};
use serde_json::Value;

use super::data::text;
use super::waterfall::{critical, file_name, host, initiator, millis};
use crate::document::{Column, Table, number};
use crate::loads::{Loads, Replayed};

/// Rows of the table.
const MOST_ROWS: usize = 2_000;

/// All that is known of every object, a row each.
pub(super) fn table(loads: &Loads) -> Option<Table> {
    let several = loads.loads.len() > 1;
    let mut columns: Vec<Column> =
        several.then(|| Column::text("policy", "policy")).into_iter().collect();
    columns.extend([
        Column::text("object", "object"),
        Column::text("type", "type"),
        Column::number("size", "size", "bytes", 0),
        Column::text("priority", "priority"),
        Column::text("host", "host"),
        Column::text("initiator", "found in"),
        Column::number("discovered", "discovered", "ms", 1),
        Column::number("requested", "requested", "ms", 1),
        Column::number("first_byte", "first byte", "ms", 1),
        Column::number("completed", "complete", "ms", 1),
        Column::number("bound", "bound", "ms", 1),
        Column::text("critical", "critical path"),
        Column::text("url", "address"),
    ]);
    let mut rows = Vec::new();
    for Replayed { policy, detail, .. } in &loads.loads {
        let critical = critical(detail);
        for (label, object) in ordered_all(detail) {
            let mut row: Vec<Value> = several.then(|| text(policy)).into_iter().collect();
            let time = |time| number(millis(time));
            let found_in = initiator(detail, object).map_or("", |it| file_name(&it.url));
            row.extend([
                text(&label),
                text(&object.kind),
                Value::from(object.body.0),
                text(&object.priority),
                text(host(&object.url)),
                text(found_in),
                time(object.discovered),
                time(object.requested),
                time(object.first_byte),
                time(object.completed),
                time(object.bound.tight),
                text(if critical.contains(&object.object) { "yes" } else { "" }),
                text(&object.url),
            ]);
            rows.push(row);
        }
    }
    rows.truncate(MOST_ROWS);
    (!rows.is_empty()).then(|| Table {
        id: "load-objects".to_owned(),
        title: "Objects of these loads".to_owned(),
        caption: "Times count from the start of the page. An object is discovered when all that its \
                  request waits for is there; computing and timers may follow until it is requested. \
                  Priorities are those of the recording."
            .to_owned(),
        columns,
        rows,
    })
}

/// All objects in the order of their requests, each with its whole name.
fn ordered_all(detail: &Detail) -> Vec<(String, &ObjectDetail)> {
    let mut objects: Vec<&ObjectDetail> = detail.objects.iter().collect();
    objects.sort_by_key(|object| (object.requested, object.object));
    let named = objects.into_iter().enumerate();
    named.map(|(rank, it)| (format!("{:03} {}", rank + 1, file_name(&it.url)), it)).collect()
}
