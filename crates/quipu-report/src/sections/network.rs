//! Networks drawn: server, client, and the paths between them with what each can do.

use std::collections::BTreeSet;

use super::data::{Rows, text};
use super::{Context, Draft, words};
use crate::document::{Choice, Control, Figure, Section, number};
use crate::read::NetworkPath;
use crate::spec::{Field, Layer, Mark, Spec};

/// Networks to choose from.
const MOST_NETWORKS: usize = 60;
/// How wide the hosts at either end are, as a part of the paths' length.
const END: f64 = 0.12;
/// Millionths in a percent.
const PERCENT: f64 = 1e4;

/// What `path` can do, in words.
fn told(path: &NetworkPath) -> String {
    let rate = |rate: u64| format!("{} Mb/s", crate::document::short(rate as f64 / 1e6));
    let mut parts = Vec::new();
    match (path.down_rate, path.up_rate) {
        (Some(down), Some(up)) => parts.push(format!("{} down, {} up", rate(down), rate(up))),
        (Some(down), None) => parts.push(format!("{} down", rate(down))),
        (None, _) => parts.push("no fixed rate".to_owned()),
    }
    if let Some(trip) = path.round_trip {
        parts.push(format!("round trip {}", words::time(trip)));
    }
    match path.down_loss {
        Some(0) => parts.push("no random loss".to_owned()),
        Some(loss) => {
            parts.push(format!("{} % lost down", crate::document::short(loss as f64 / PERCENT)));
        }
        None => {}
    }
    // Three short lines fit a phone.
    let (rates, rest) = parts.split_at(1);
    let queue = path.down_queue.map(|queue| format!("queue {:.0} kB", queue as f64 / 1e3));
    let lines = [rates.concat(), rest.join(" · "), queue.unwrap_or_default()];
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The networks of all scenes.
pub(super) fn networks(context: &Context<'_>, draft: &mut Draft) {
    let id = "network-paths";
    let mut rows = Rows::new(["network", "name", "about", "down", "from", "to", "middle"]);
    let mut shown: Vec<String> = Vec::new();
    let mut alt = None;
    let mut names = BTreeSet::new();
    let all = context.folders.networks.all();
    for (network, paths) in all.iter().take(MOST_NETWORKS) {
        let mut each = Vec::new();
        for path in *paths {
            let down =
                path.down_rate.map_or(serde_json::Value::Null, |rate| number(rate as f64 / 1e6));
            let about = told(path);
            each.push(format!("{}: {}", path.name, about.replace('\n', ", ")));
            let ends = [0.0, 1.0, 0.5].map(number);
            let cells = [text(network), text(&path.name), text(&about), down];
            rows.row(cells.into_iter().chain(ends));
            names.insert(path.name.clone());
        }
        if !each.is_empty() {
            shown.push(network.clone());
            alt.get_or_insert(format!(
                "{network}: {} between server and client. {}.",
                words::count(each.len() as u64, "path", "paths"),
                words::list(&each, 12)
            ));
        }
    }
    let Some(alt) = alt else { return };
    draft.dataset(id, rows.build());
    let ends_id = "network-ends";
    let mut ends = Rows::new(["end", "left", "right", "centre"]);
    for (name, left) in [("server", -END), ("client", 1.0)] {
        let [left, right, centre] = [left, left + END, left + END / 2.0].map(number);
        ends.row([text(name), left, right, centre]);
    }
    draft.dataset(ends_id, ends.build());
    let results = &context.folders.results;
    let paths = &results.paths;
    let row = || Field::row("name", "", paths);
    let x = |column: &str| Field::number(column, "").domain(-END, 1.0 + END).without_axis();
    let line = Layer::new(Mark::rule().width(5.0))
        .with("y", row())
        .with("x", x("from"))
        .with("x2", Field::end("to"))
        .with("color", Field::name("name", "path", paths).no_legend())
        .with(
            "tooltip",
            vec![Field::label("name").titled("path"), Field::label("about").titled("link")],
        );
    let told = Layer::new(Mark::text().above(38.0).in_lines())
        .with("y", row())
        .with("x", x("middle"))
        .with("text", Field::label("about"));
    let host = Layer::new(Mark::rect().styled("end"))
        .of(ends_id)
        .with("x", x("left"))
        .with("x2", Field::end("right"))
        .with("tooltip", vec![Field::label("end").titled("host")]);
    let named = Layer::new(Mark::text())
        .of(ends_id)
        .with("x", x("centre"))
        .with("text", Field::label("end"));
    let spec = Spec::steps(id, 84).layer(host).layer(named).layer(line).layer(told);
    let mut caption = "Server on the left, client on the right, and the paths between them: rates towards \
                       the client (down) and the server (up), round trip without queues and jitter, \
                       random loss towards the client, and what the queue of the slowest link towards the \
                       client holds."
        .to_owned();
    if all.len() > MOST_NETWORKS {
        let more = words::count((all.len() - MOST_NETWORKS) as u64, "network is", "networks are");
        caption.push_str(&format!(" {more} left out; `networks.csv` has all."));
    }
    let options: Vec<Choice> =
        shown.iter().map(|name| Choice { value: name.clone(), label: name.clone() }).collect();
    let control = Control {
        id: "network".to_owned(),
        label: "network".to_owned(),
        default: shown[0].clone(),
        options,
    };
    draft.section(Section {
        id: "networks".to_owned(),
        title: "Networks".to_owned(),
        text: Vec::new(),
        figures: vec![Figure {
            id: id.to_owned(),
            title: "Paths between server and client".to_owned(),
            caption,
            alt,
            spec: spec.value(),
            datasets: [id, ends_id].map(str::to_owned).to_vec(),
            controls: if shown.len() > 1 { vec![control] } else { Vec::new() },
        }],
        tables: Vec::new(),
    });
}
