//! Flows that fill links: who gets how much.

use serde_json::Value;

use super::data::{Rows, text};
use super::streams::{BOX_COLUMNS, box_cells, grouped};
use super::{Context, Draft, words};
use crate::aggregate::boxes::boxed;
use crate::document::{Column, Figure, Section, Table, number};
use crate::notices::Notices;
use crate::read::Folders;
use crate::results::{Cell, Flow, Scene};
use crate::spec::{Field, Layer, Mark, Spec};

/// Rows of a table.
const MOST_ROWS: usize = 2_000;

/// Goodput and shares of flows, use of links.
pub(super) fn flows(folders: &Folders, draft: &mut Draft) {
    let has = |scene: &&Scene| scene.cells.iter().any(|cell| !cell.flows.is_empty());
    let scenes: Vec<&Scene> = folders.results.scenes.iter().filter(has).collect();
    if scenes.is_empty() {
        return;
    }
    let context = Context::of(folders, scenes, &mut Notices::default());
    let figures: Vec<Figure> =
        [goodput(&context, draft), shares(&context, draft)].into_iter().flatten().collect();
    draft.section(Section {
        id: "flows".to_owned(),
        title: "Flows".to_owned(),
        text: vec![
            "Goodput is what the receiver of a flow read in order, over the time that the flow lived \
             in the window that was measured."
                .to_owned(),
        ],
        figures,
        tables: vec![table_of_flows(&context), table_of_links(&context)]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect(),
    });
}

/// The middle of the runs, in Mb/s.
fn median(flow: &Flow) -> Option<f64> {
    quipu_record::stats::median(&flow.goodput).map(|rate| rate as f64 / 1e6)
}

/// A flow with its direction, if there are both.
fn label(flow: &Flow) -> String {
    match flow.direction.as_str() {
        "down" => flow.name.clone(),
        direction => format!("{} ({direction})", flow.name),
    }
}

fn names(context: &Context<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let cells = context.scenes.iter().flat_map(|scene| &scene.cells);
    for flow in cells.flat_map(|cell| &cell.flows) {
        let label = label(flow);
        if !names.contains(&label) {
            names.push(label);
        }
    }
    names
}

/// What the flows of the first scene get.
fn alt(context: &Context<'_>, what: &str) -> String {
    let Some(scene) = context.scenes.first() else { return String::new() };
    let of = |cell: &Cell| -> Vec<String> {
        let flows = cell.flows.iter();
        flows
            .filter_map(|flow| Some(format!("{} {:.2} Mb/s", label(flow), median(flow)?)))
            .collect()
    };
    let each: Vec<String> = scene
        .cells
        .iter()
        .map(|cell| format!("{}: {}", cell.policy, words::list(&of(cell), 6)))
        .collect();
    format!("{what} on {}. Medians: {}.", context.name(scene), each.join("; "))
}

/// The selectors, and one of the policy if there are several.
fn goodput(context: &Context<'_>, draft: &mut Draft) -> Option<Figure> {
    let id = "flow-goodput";
    let columns = ["policy", "flow"].into_iter().chain(BOX_COLUMNS).map(str::to_owned);
    let select = &context.select;
    let mut rows = Rows::new(select.columns().chain(columns));
    for scene in &context.scenes {
        let place = select.cells(&context.folders.results, scene);
        for cell in &scene.cells {
            for flow in &cell.flows {
                let Some(numbers) = boxed(&flow.goodput) else { continue };
                let named = [text(&cell.policy), text(&label(flow))].into_iter();
                rows.row(place.iter().cloned().chain(named).chain(box_cells(&numbers, 1e6)));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    draft.dataset(id, rows.build());
    let names = names(context);
    let x = Field::number("median", "goodput, Mb/s").from_zero();
    let spec = grouped(context, id, &Field::name("flow", "flow", &names), &x);
    Some(Figure {
        id: id.to_owned(),
        title: "Goodput of each flow".to_owned(),
        caption: "Goodput over the runs, in Mb/s. The box holds the middle half, the tick is the \
                  median, and whiskers reach to values at most 1.5 boxes away."
            .to_owned(),
        alt: alt(context, "Goodput of flows"),
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls: select.controls(),
    })
}

/// Shares of flows of all bytes of their direction.
fn shares(context: &Context<'_>, draft: &mut Draft) -> Option<Figure> {
    let id = "flow-shares";
    let columns = ["policy", "flow", "share"].map(str::to_owned);
    let select = &context.select;
    let mut rows = Rows::new(select.columns().chain(columns));
    let mut several = false;
    for scene in &context.scenes {
        let place = select.cells(&context.folders.results, scene);
        for cell in &scene.cells {
            let down: Vec<&Flow> = cell.flows.iter().filter(|it| it.direction == "down").collect();
            several |= down.len() > 1;
            let all = down.iter().fold(0_u64, |all, flow| all.saturating_add(flow.bytes));
            for flow in down.iter().filter(|_| all > 0) {
                let share = number(flow.bytes as f64 / all as f64);
                let cells = [text(&cell.policy), text(&label(flow)), share];
                rows.row(place.iter().cloned().chain(cells));
            }
        }
    }
    if !several || rows.is_empty() {
        return None;
    }
    draft.dataset(id, rows.build());
    let names = names(context);
    let share = Field::number("share", "share of the bytes of all flows down");
    let spec = Spec::steps(id, 24).layer(
        Layer::new(Mark::bar(0.8))
            .with("x", share.domain(0.0, 1.0).axis_format("%").stacked())
            .with("y", Field::row("policy", "policy", context.policies()))
            .with("color", Field::name("flow", "flow", &names))
            .with(
                "tooltip",
                vec![
                    Field::label("policy").titled("policy"),
                    Field::label("flow").titled("flow"),
                    Field::number("share", "share").format(".1%"),
                ],
            ),
    );
    Some(Figure {
        id: id.to_owned(),
        title: "Shares of the flows".to_owned(),
        caption: "Share of each flow of the bytes of all flows towards clients, over all runs."
            .to_owned(),
        alt: alt(context, "Shares of flows; goodput"),
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls: select.controls(),
    })
}

fn table_of_flows(context: &Context<'_>) -> Table {
    let mut columns = context.place_columns();
    columns.extend([
        Column::text("policy", "policy"),
        Column::text("flow", "flow"),
        Column::text("direction", "direction"),
        Column::text("congestion", "congestion control"),
        Column::number("goodput", "goodput, median", "Mb/s", 2),
        Column::number("rtt", "round trip, median", "ms", 1),
        Column::number("jain", "Jain's index of all flows", "", 3),
    ]);
    let mut rows = Vec::new();
    for scene in &context.scenes {
        for cell in &scene.cells {
            let sharing =
                context.folders.sharing.iter().find(|(place, sharing)| {
                    *place == scene.place && sharing.policy == cell.policy
                });
            for flow in &cell.flows {
                let spread = sharing.and_then(|(_, it)| match flow.direction.as_str() {
                    "up" => it.fairness_up,
                    _ => it.fairness_down,
                });
                let rtt = quipu_record::stats::median(&flow.rtt);
                let mut row = context.place_cells(scene);
                let names = [&cell.policy, &flow.name, &flow.direction, &flow.congestion];
                row.extend(names.map(|name| Value::from(name.clone())));
                row.push(median(flow).map_or(Value::Null, number));
                row.push(rtt.map_or(Value::Null, crate::document::millis));
                row.push(spread.map_or(Value::Null, |it| number(it.median as f64 / 1e6)));
                rows.push(row);
            }
        }
    }
    rows.truncate(MOST_ROWS);
    Table {
        id: "flow-table".to_owned(),
        title: "Flows".to_owned(),
        caption:
            "Jain's index is 1 if all flows of a direction get the same, and 1 by their number \
                  if one gets all; the median over the runs."
                .to_owned(),
        columns,
        rows,
    }
}

fn table_of_links(context: &Context<'_>) -> Table {
    let mut columns = context.place_columns();
    columns.extend([
        Column::text("policy", "policy"),
        Column::text("path", "path"),
        Column::text("direction", "direction"),
        Column::number("used", "used", "%", 1),
        Column::number("dropped", "datagrams that did not arrive", "", 0),
    ]);
    let mut rows = Vec::new();
    for scene in &context.scenes {
        for cell in &scene.cells {
            for link in cell.links.iter().filter(|link| link.capacity > 0) {
                let mut row = context.place_cells(scene);
                let names = [&cell.policy, &link.name, &link.direction];
                row.extend(names.map(|name| Value::from(name.clone())));
                row.push(number(100.0 * link.delivered as f64 / link.capacity as f64));
                row.push(Value::from(link.dropped));
                rows.push(row);
            }
        }
    }
    rows.truncate(MOST_ROWS);
    Table {
        id: "link-table".to_owned(),
        title: "Links".to_owned(),
        caption: "What left each link, as part of what its rate allowed, over all runs.".to_owned(),
        columns,
        rows,
    }
}
