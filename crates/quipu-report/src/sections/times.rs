//! Times of pages, objects and what blocks, and how far they are from their bounds.

use serde_json::Value;

use super::distribution::{Begin, Boxes, Curves, boxes, curves};
use super::{Context, Draft, object_ratios, words};
use crate::document::{Column, Section, Table, millis, number};
use crate::results::Cell;
use quipu_record::{Dimension, Metric};

/// Nanoseconds in a millisecond.
const MILLI: f64 = 1e6;

/// Rows of a table: beyond this it is no help, and the numbers lie in the files.
const MOST_ROWS: usize = 2_000;

/// Page time: curves, boxes, and a table of medians.
pub(super) fn page_time(context: &Context<'_>, draft: &mut Draft) {
    let about = Curves {
        id: "page-time-curves",
        title: "Distribution of the page time",
        what: "page time",
        of: "loads",
    };
    let (curve, single) =
        curves(context, draft, &about, |cell| cell.values(Metric::PageTime).into_iter().collect())
            .parts();
    let about = Boxes {
        id: "page-time-boxes",
        title: "Page time of each policy",
        what: "page time, ms",
        note: "Further left is better.",
        unit: MILLI,
        axis: Begin::Zero,
    };
    let box_plot = boxes(context, draft, &about, |cell| cell.values(Metric::PageTime));
    let figures: Vec<_> = curve.into_iter().chain(box_plot).collect();
    if figures.is_empty() {
        return;
    }
    draft.section(Section {
        id: "page-time".to_owned(),
        title: "Page time".to_owned(),
        text: with(
            "The time from the first request to the last byte of the last object that the load waits \
             for.",
            single,
        ),
        figures,
        tables: vec![medians(context)],
    });
}

/// The paragraphs `about` a section, and why it has no distribution.
fn with(about: &str, single: Option<String>) -> Vec<String> {
    std::iter::once(about.to_owned()).chain(single).collect()
}

/// Medians of all that is measured, a row for each policy in each scene.
fn medians(context: &Context<'_>) -> Table {
    // What comparisons show, but for the page time, which has columns of its own.
    let others: Vec<(Metric, &str)> = Metric::of_loads()
        .filter(|(metric, of)| of.shown.is_some() && *metric != Metric::PageTime)
        .filter_map(|(metric, of)| Some((metric, of.column?)))
        .collect();
    let mut columns = context.place_columns();
    columns.push(Column::text("policy", "policy"));
    // What is asked first stands first: a table is wider than a page.
    columns.push(Column::number("page_time", "page time, median", "ms", 1));
    columns.push(Column::number("ratio", "ratio", "x", 3));
    columns.push(Column::number("ratio_low", "from", "x", 3));
    columns.push(Column::number("ratio_high", "to", "x", 3));
    columns.push(Column::number("over_bound", "page time to its bound", "x", 2));
    columns.push(Column::number("loads", "loads", "", 0));
    columns.push(Column::number("page_time_p95", "page time, 95 %", "ms", 1));
    for &(metric, column) in &others {
        let (unit, digits) = match metric.dimension() {
            Dimension::Time => ("ms", 1),
            Dimension::Size => ("bytes", 0),
            Dimension::Energy => ("µJ", 0),
            Dimension::Rate | Dimension::Plain => ("", 0),
        };
        let id = column.trim_end_matches("_ns");
        columns.push(Column::number(id, metric.entry().words, unit, digits));
    }
    let mut rows = Vec::new();
    let mut left_out = 0;
    for scene in &context.scenes {
        for cell in &scene.cells {
            if rows.len() >= MOST_ROWS {
                left_out += 1;
                continue;
            }
            let mut row = context.place_cells(scene);
            row.push(Value::from(cell.policy.clone()));
            let page = cell.values(Metric::PageTime);
            row.push(time(quipu_record::stats::median(&page)));
            let ratio = cell.ratios.get(&Metric::PageTime);
            let interval = ratio.and_then(|ratio| ratio.interval);
            let plain = |value: Option<f64>| value.map_or(Value::Null, number);
            row.push(plain(ratio.map(|ratio| ratio.mean)));
            row.push(plain(interval.map(|(low, _)| low)));
            row.push(plain(interval.map(|(_, high)| high)));
            row.push(plain(over_bound(cell)));
            row.push(Value::from(cell.loads.len()));
            row.push(time(quipu_record::stats::p95(&page)));
            for &(metric, _) in &others {
                let median = quipu_record::stats::median(&cell.values(metric));
                row.push(match metric.dimension() {
                    Dimension::Time => time(median),
                    _ => median.map_or(Value::Null, Value::from),
                });
            }
            rows.push(row);
        }
    }
    let mut caption =
        "Medians over the loads; the ratio is that of the page time to the first policy's, the geometric \
         mean over pairs of the same run, with its 95 % interval from 10,000 resamples."
            .to_owned();
    if left_out > 0 {
        let left_out = words::count(left_out, "more row is", "more rows are");
        caption.push_str(&format!(" {left_out} only in the files."));
    }
    Table {
        id: "page-time-table".to_owned(),
        title: "Medians and ratios".to_owned(),
        caption,
        columns,
        rows,
    }
}

fn time(nanos: Option<u64>) -> Value {
    nanos.map_or(Value::Null, millis)
}

/// The middle of the loads' ratios of page time to bound.
pub(super) fn over_bound(cell: &Cell) -> Option<f64> {
    let over = scaled(&cell.over_bound(Metric::PageTime));
    quipu_record::stats::median(&over).map(|median| median as f64 / MILLIONTHS)
}

/// Millionths in one.
const MILLIONTHS: f64 = 1e6;

/// Ratios in millionths.
fn scaled(ratios: &[f64]) -> Vec<u64> {
    // Ratios of times: not negative.
    ratios.iter().map(|ratio| (ratio * MILLIONTHS).round() as u64).collect()
}

/// Times of objects: curves over all objects of all loads.
pub(super) fn object_time(context: &Context<'_>, draft: &mut Draft) {
    let about = Curves {
        id: "object-time-curves",
        title: "Distribution of the object time",
        what: "object time",
        of: "objects",
    };
    let (curve, single) = curves(context, draft, &about, |cell| cell.objects.clone()).parts();
    let about = Boxes {
        id: "object-index-boxes",
        title: "ObjectIndex of each policy",
        what: "ObjectIndex, ms",
        note: "The ObjectIndex of a load is the mean over its objects. Further left is better.",
        unit: MILLI,
        axis: Begin::Zero,
    };
    let box_plot = boxes(context, draft, &about, |cell| cell.values(Metric::ObjectIndex));
    if curve.is_none() && single.is_none() {
        return;
    }
    let ratios = object_ratios::figure(context, draft);
    draft.section(Section {
        id: "object-time".to_owned(),
        title: "Object time".to_owned(),
        text: with(
            "The time from the start of the page to the completion of an object, over all objects of \
             all loads.",
            single,
        ),
        figures: curve.into_iter().chain(box_plot).chain(ratios).collect(),
        tables: object_ratios::table(context).into_iter().collect(),
    });
}

/// Critical time: curves and boxes.
pub(super) fn critical_time(context: &Context<'_>, draft: &mut Draft) {
    let known = |cell: &Cell| -> Vec<u64> {
        cell.values(Metric::CriticalTime).into_iter().filter(|time| *time > 0).collect()
    };
    let about = Curves {
        id: "critical-time-curves",
        title: "Distribution of the critical time",
        what: "critical time",
        of: "loads",
    };
    let (curve, single) =
        curves(context, draft, &about, |cell| known(cell).into_iter().collect()).parts();
    let about = Boxes {
        id: "critical-time-boxes",
        title: "Critical time of each policy",
        what: "critical time, ms",
        note: "Further left is better.",
        unit: MILLI,
        axis: Begin::Zero,
    };
    let box_plot = boxes(context, draft, &about, known);
    if curve.is_none() && single.is_none() {
        return;
    }
    draft.section(Section {
        id: "critical-time".to_owned(),
        title: "Critical time".to_owned(),
        text: with(
            "The time until the document, blocking style sheets and blocking scripts are complete: \
             what a browser needs before it can show anything.",
            single,
        ),
        figures: curve.into_iter().chain(box_plot).collect(),
        tables: Vec::new(),
    });
}

/// How far page and critical time are from what no scheduler can beat.
pub(super) fn bound(context: &Context<'_>, draft: &mut Draft) {
    let note = "1 is the bound, which no scheduler can beat; the band is 5 % above it.";
    let about = Boxes {
        id: "page-bound-boxes",
        title: "Page time as a multiple of its bound",
        what: "page time by its bound",
        note,
        unit: MILLIONTHS,
        axis: Begin::One,
    };
    let page = boxes(context, draft, &about, |cell| scaled(&cell.over_bound(Metric::PageTime)));
    let about = Boxes {
        id: "critical-bound-boxes",
        title: "Critical time as a multiple of its bound",
        what: "critical time by its bound",
        note,
        unit: MILLIONTHS,
        axis: Begin::One,
    };
    let critical =
        boxes(context, draft, &about, |cell| scaled(&cell.over_bound(Metric::CriticalTime)));
    let figures: Vec<_> = page.into_iter().chain(critical).collect();
    if figures.is_empty() {
        return;
    }
    draft.section(Section {
        id: "bound".to_owned(),
        title: "Distance to the bound".to_owned(),
        text: vec![
            "The bound is a time that no scheduler can beat. It follows from the rates and delays of the \
             paths, the discovery of objects, the handshake and the first windows. A policy at 1 cannot \
             be improved on. All policies over the same paths share one bound; a path alone has its \
             own, which may be lower."
                .to_owned(),
        ],
        figures,
        tables: Vec::new(),
    });
}
