//! What failed, how to repeat the results, and what the numbers mean.

use serde_json::Value;

use super::distribution::BOX;
use super::{Context, Draft, place_cells, place_columns, words};
use crate::aggregate::samples::MOST_EXACT;
use crate::document::{Column, Section, Table};
use crate::notices::clean;
use crate::read::{Folders, Kind};
use crate::results::Cell;
use quipu_record::Metric;

/// Failures in the table.
const MOST_FAILURES: usize = 500;

/// Runs that failed, and why.
pub(super) fn failures(context: &Context<'_>, draft: &mut Draft) {
    let folders = context.folders;
    let failures = &folders.failures;
    let of_ids: Vec<(&str, &String)> = folders
        .judged
        .iter()
        .flat_map(|judged| judged.failures.iter().map(|why| (judged.id.as_str(), why)))
        .collect();
    if failures.is_empty() && of_ids.is_empty() {
        return;
    }
    let mut columns = place_columns(folders);
    columns.extend([
        Column::text("policy", "policy"),
        Column::number("run", "run", "", 0),
        Column::text("reason", "reason"),
    ]);
    let width = columns.len();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (place, failure) in failures.iter().take(MOST_FAILURES) {
        let mut row = place_cells(place);
        row.push(Value::from(clean(&failure.policy)));
        row.push(Value::from(failure.run));
        row.push(Value::from(clean(&failure.reason)));
        rows.push(row);
    }
    if rows.is_empty() {
        for (id, why) in of_ids.iter().take(MOST_FAILURES) {
            let mut row = vec![Value::Null; width];
            row[0] = Value::from(*id);
            row[width - 1] = Value::from(clean(why));
            rows.push(row);
        }
    }
    let all = failures.len().max(of_ids.len()) as u64;
    draft.section(Section {
        id: "failures".to_owned(),
        title: "Failures".to_owned(),
        text: vec![format!(
            "{}. Figures leave failed runs out.",
            words::count(all, "run failed", "runs failed")
        )],
        figures: Vec::new(),
        tables: vec![Table {
            id: "failure-table".to_owned(),
            title: "Runs that failed".to_owned(),
            caption: "Each with its reason.".to_owned(),
            columns,
            rows,
        }],
    });
}

/// How to get the same results.
pub(super) fn repeat(folders: &Folders, draft: &mut Draft) {
    let name = &folders.name;
    let mut text = Vec::new();
    match folders.kind {
        Kind::Result => {
            text.push(format!("quipu run {name}/scenario.toml --out {name}-again"));
            text.push(
                "The file has every setting, defaults written out. The same version gives the same \
                 bytes on any machine and any number of threads."
                    .to_owned(),
            );
        }
        Kind::Sweep => {
            text.push(format!("quipu sweep {name}/sweep.toml --out {name}-again"));
            text.push(
                "The file has every setting and every swept field. The same version gives the same \
                 bytes on any machine and any number of threads."
                    .to_owned(),
            );
        }
        Kind::Reproduce => {
            let ids: Vec<&str> = folders.judged.iter().map(|judged| judged.id.as_str()).collect();
            match ids.as_slice() {
                [one] => text.push(format!("quipu reproduce {one} --out {name}-again")),
                _ => text.push(format!("quipu reproduce --out {name}-again")),
            }
            text.push(
                "Each id has a folder with its tables and its scenario.toml, which has every setting; \
                 its variants have folders in it."
                    .to_owned(),
            );
        }
        Kind::Several => {
            for source in folders.sources.iter().take(10) {
                let label = &source.label;
                text.push(format!("quipu run {name}/{label}/scenario.toml --out {label}-again"));
            }
        }
    }
    text.push(format!(
        "quipu report {name} --load PAGE,NETWORK,POLICY,RUN shows another load in full, and with a second \
         --load compares two; quipu report {name} --specs FOLDER writes the figures as Vega-Lite files for notebooks. The numbers of all \
         runs and objects are in CSV files in {name}."
    ));
    draft.section(Section {
        id: "repeat".to_owned(),
        title: "How to repeat".to_owned(),
        text,
        ..Section::default()
    });
}

/// What the numbers are and how they came about.
pub(super) fn methods(context: &Context<'_>, draft: &mut Draft) {
    let folders = context.folders;
    let text = paragraphs(context, draft);
    let mut columns = vec![Column::text("network", "network"), Column::text("path", "path")];
    columns.extend([
        Column::number("down", "rate down", "Mb/s", 1),
        Column::number("up", "rate up", "Mb/s", 1),
        Column::number("trip", "round trip", "ms", 1),
        Column::number("loss", "loss down", "%", 2),
    ]);
    let scaled = |value: Option<u64>, by: f64| {
        value.map_or(Value::Null, |value| crate::document::number(value as f64 / by))
    };
    let all = folders.networks.all();
    let rows = all.iter().flat_map(|(network, paths)| {
        paths.iter().map(move |path| {
            vec![
                Value::from(network.clone()),
                Value::from(path.name.clone()),
                scaled(path.down_rate, 1e6),
                scaled(path.up_rate, 1e6),
                scaled(path.round_trip, 1e6),
                scaled(path.down_loss, 1e4),
            ]
        })
    });
    let networks = Table {
        id: "network-table".to_owned(),
        title: "Networks".to_owned(),
        caption: "Paths of each network. Recorded links have their mean; cells are empty where a value is unknown."
            .to_owned(),
        columns,
        rows: rows.take(1_000).collect(),
    };
    let pages = Table {
        id: "page-table".to_owned(),
        title: "Pages".to_owned(),
        caption: "Contents of each page; for randomly drawn pages the mean.".to_owned(),
        columns: vec![
            Column::text("page", "page"),
            Column::number("objects", "objects", "", 0),
            Column::number("bytes", "size", "bytes", 0),
            Column::number("hosts", "hosts", "", 0),
        ],
        rows: folders
            .pages
            .iter()
            .take(1_000)
            .map(|page| {
                vec![
                    Value::from(clean(&page.name)),
                    crate::document::number(page.objects),
                    crate::document::number(page.bytes),
                    Value::from(page.hosts),
                ]
            })
            .collect(),
    };
    let choices = choices(context);
    draft.section(Section {
        id: "methods".to_owned(),
        title: "Methods".to_owned(),
        text,
        figures: Vec::new(),
        tables: [pages, networks, choices]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect(),
    });
}

/// The world of results that were measured over real uplinks.
const LIVE: &str = "live";

/// The world of results that were measured in real time over modelled links.
const EMULATED: &str = "emulated";

/// What is so of these results, and nothing of what they have not.
fn paragraphs(context: &Context<'_>, draft: &Draft) -> Vec<String> {
    let folders = context.folders;
    let cells = || folders.results.scenes.iter().flat_map(|scene| &scene.cells);
    let has = |metric: Metric| !context.scenes.is_empty() && has_metric(context, metric);
    let world = match folders.world.as_str() {
        "" => "The results do not say whether they were simulated.".to_owned(),
        "simulated" => "World: simulated. Times are virtual: links and hosts are models, and no socket is used. The \
                        protocol, HTTP and the policies are this program's own code."
            .to_owned(),
        LIVE => "World: live. Times are those of this client's clock, over real uplinks and with a real server; what \
                 the page asks for when is the browser's model. Bytes and bounds of the server's end are not known."
            .to_owned(),
        EMULATED => "World: emulated. Times are those of this machine's clock: client and server are processes with \
                     sockets, and packets between them meet the simulator's links in real time. What the page asks \
                     for when is the browser's model. Bytes and bounds of the server's end are not known."
            .to_owned(),
        world => format!("World: {world}."),
    };
    // The same file tells world and seed.
    let mut text = vec![match (folders.world.as_str(), folders.sources.len()) {
        ("", _) => world,
        (_, 1) => format!("{world} The seed is {}.", folders.seed),
        _ => format!("{world} The seed of the first folder is {}.", folders.seed),
    }];
    let ratios = || cells().flat_map(|cell| cell.ratios.values());
    if ratios().next().is_some() {
        let mut about = match folders.world.as_str() {
            LIVE => {
                "Runs were interleaved: those with the same number were made one after the other, in an order \
                 drawn from the seed."
            }
            EMULATED => {
                "Runs were interleaved, in an order drawn from the seed; those with the same number meet links with \
                 the same chance, in real time. Runs in which packets were too late or lost elsewhere are void, and \
                 count as failed."
            }
            _ => "A run with the same number has the same links, losses and page for every policy.",
        }
        .to_owned();
        about.push_str(" Ratios are therefore of pairs: the geometric mean over the pairs");
        about.push_str(match ratios().any(|ratio| ratio.interval.is_some()) {
            true => {
                ", with a 95 % interval from 10,000 resamples of the runs. Where an interval contains 1, \
                 the report says that the policies cannot be distinguished."
            }
            false => ". There are no intervals, because there is only one run or nothing is random.",
        });
        if cells().any(|cell| cell.loads.iter().any(|load| load.client > 0)) {
            about
                .push_str(" The clients of a run share its random events and count as one sample.");
        }
        text.push(about);
    }
    let known: Vec<&str> =
        MEASURES.iter().filter(|(metric, _)| has(*metric)).map(|(_, what)| *what).collect();
    let mut known = known.join(" ");
    let bounded =
        |cell: &Cell| cell.loads.iter().any(|load| load.bound(Metric::PageTime).is_some());
    if cells().any(bounded) {
        known.push_str(" Bound: a time that no scheduler can be below.");
    }
    if !known.is_empty() {
        text.push(known);
    }
    let figures = draft.document.sections.iter().flat_map(|section| &section.figures);
    let mut drawn = Vec::new();
    if figures.clone().any(|figure| figure.id.ends_with("-curves")) {
        drawn.push(
            "Curves show every value if there are few, and otherwise evenly spaced quantiles.",
        );
    }
    if figures.clone().any(|figure| figure.caption.contains(BOX)) {
        drawn.push("Quartiles in box plots are linearly interpolated.");
    }
    if cells().any(|cell| cell.objects.count() > MOST_EXACT as u64) {
        drawn.push("In curves of more than 20,000 objects, times are accurate to 0.4 %.");
    }
    if !drawn.is_empty() {
        text.push(drawn.join(" "));
    }
    text
}

/// What measures are, each told where it was measured.
const MEASURES: [(Metric, &str); 5] = [
    (
        Metric::PageTime,
        "Page time: from the first request to the last byte of the last object that the load waits for.",
    ),
    (
        Metric::CriticalTime,
        "Critical time: until the document, blocking style sheets and blocking scripts are complete.",
    ),
    (Metric::ObjectIndex, "ObjectIndex: mean over the objects of the time to their completion."),
    (Metric::ByteIndex, "ByteIndex: integral over time of the share of bytes that is missing."),
    (
        Metric::PageAboveFloor,
        "Floor: the page time on an infinitely fast network, which consists of server think time and \
         computing; only the part above it depends on the network.",
    ),
];

fn has_metric(context: &Context<'_>, metric: Metric) -> bool {
    let loads = context.scenes.iter().flat_map(|scene| &scene.cells).flat_map(|cell| &cell.loads);
    loads.clone().any(|load| load.get(metric).is_some_and(|value| value > 0))
}

/// What policies are in full.
fn choices(context: &Context<'_>) -> Table {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let cells = context.folders.results.scenes.iter().flat_map(|scene| &scene.cells);
    for cell in cells.filter(|cell| !cell.choice.is_empty()) {
        let row = vec![Value::from(cell.policy.clone()), Value::from(cell.choice.clone())];
        if rows.len() < 200 && !rows.contains(&row) {
            rows.push(row);
        }
    }
    Table {
        id: "policy-table".to_owned(),
        title: "Policies".to_owned(),
        caption: "Every layer and parameter of each policy.".to_owned(),
        columns: vec![Column::text("policy", "policy"), Column::text("choice", "in full")],
        rows,
    }
}
