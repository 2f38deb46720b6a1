//! Loads in full: waterfalls, and the state of every path over time.

use serde_json::Value;

use super::data::{Rows, text};
use super::waterfall::{self, millis};
use super::{Context, Draft, objects, states, traffic, words};
use crate::document::{Choice, Control, Figure, Section, number};
use crate::loads::Loads;
use crate::spec::{Field, Layer, Mark, Spec};

/// Series of a figure: connections beyond are left out.
const MOST_LINES: usize = 24;

/// The loads that were run again.
pub(super) fn load(context: &Context<'_>, loads: &Loads, draft: &mut Draft) {
    let Some(first) = loads.loads.first() else { return };
    let options = loads
        .loads
        .iter()
        .map(|load| Choice { value: load.policy.clone(), label: load.label.clone() });
    let controls: Vec<Control> = match loads.loads.len() {
        1 => Vec::new(),
        _ => vec![Control {
            id: "policy".to_owned(),
            label: "policy".to_owned(),
            options: options.collect(),
            default: first.policy.clone(),
        }],
    };
    let mut figures = waterfall::waterfalls(context, loads, &controls, draft);
    figures.extend(traffic::traffic(context, loads, &controls, draft));
    figures.extend(series(context, loads, &controls, draft));
    let about = match first.detail.objects.is_empty() {
        true => format!("Run {} over {}, re-run to show it in detail.", first.run, loads.place),
        false => format!(
            "Loads of {}: for each policy the run with the median page time, or the requested load. \
             The report re-ran them to show them in detail; their page times equal those of the \
             results to the nanosecond.",
            loads.place
        ),
    };
    draft.section(Section {
        id: "load".to_owned(),
        title: "One load in full".to_owned(),
        text: vec![about],
        figures,
        tables: objects::table(loads).into_iter().collect(),
    });
}

/// Window, round trip, rate and queue of every path over time.
fn series(
    context: &Context<'_>,
    loads: &Loads,
    controls: &[Control],
    draft: &mut Draft,
) -> Vec<Figure> {
    let id = "load-series";
    let columns = ["policy", "line", "ms", "window", "in_flight", "rtt", "rate", "queue"];
    let mut rows = Rows::new(columns);
    let mut lines: Vec<String> = Vec::new();
    let mut ends: Vec<String> = Vec::new();
    for load in &loads.loads {
        let detail = &load.detail;
        let several = detail.series.len() > 1;
        let paths = detail.series.iter().flat_map(|it| it.paths.iter().map(move |path| (it, path)));
        for (connection, path) in paths.take(MOST_LINES) {
            let line = words::line_of(several, &connection.flow, &path.name);
            if !lines.contains(&line) {
                lines.push(line.clone());
            }
            let mut before: Option<(f64, u64)> = None;
            for row in &path.rows {
                let at = (row.at.as_nanos() as f64 - detail.began_at.as_nanos() as f64) / 1e6;
                let acked = row.bytes_acked.0;
                let rate = before.filter(|(then, _)| at > *then).map(|(then, bytes)| {
                    acked.saturating_sub(bytes) as f64 * 8.0 / 1e3 / (at - then)
                });
                before = Some((at, acked));
                let optional = |value: Option<f64>| value.map_or(Value::Null, number);
                rows.row([
                    text(&load.policy),
                    text(&line),
                    number(at),
                    number(row.cwnd.0 as f64 / 1e3),
                    number(row.in_flight.0 as f64 / 1e3),
                    optional(row.srtt.map(millis)),
                    optional(rate),
                    optional(row.queue_down.map(|queue| queue.0 as f64 / 1e3)),
                ]);
            }
            if std::ptr::eq(load, &raw const loads.loads[0])
                && let Some(last) = path.rows.last()
            {
                let rtt =
                    last.srtt.map(|rtt| format!(", round trip {}", words::time(rtt.as_nanos())));
                let (window, rtt) = (last.cwnd.0 as f64 / 1e3, rtt.unwrap_or_default());
                ends.push(format!("{line} window {window:.0} kB{rtt}"));
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    draft.dataset(id, rows.build());
    let states = states::states(loads, MOST_LINES, draft);
    let ends = words::list(&ends, 8);
    let known = &context.folders.results.paths;
    let domain = if lines.iter().all(|line| known.contains(line)) { known } else { &lines };
    let all = [
        ("load-window", "Congestion window", "window", "congestion window, kB"),
        ("load-rtt", "Round-trip time", "rtt", "smoothed round trip, ms"),
        ("load-rate", "Rate", "rate", "acknowledged, Mb/s"),
        ("load-queue", "Queue", "queue", "queue towards the client, kB"),
    ];
    let figure = |(name, title, column, unit): (&str, &str, &str, &str)| {
        let color = || Field::name("line", "path", domain);
        let x = || Field::number("ms", "since the start").in_time();
        let mut spec = Spec::new(id, 220).layer(
            Layer::new(Mark::line())
                .zoomed()
                .with("x", x())
                .with("y", Field::number(column, unit).from_zero())
                .with("color", color())
                .with("strokeDash", color())
                .with(
                    "tooltip",
                    vec![Field::label("line").titled("path"), x(), Field::number(column, unit)],
                ),
        );
        let mut caption = match column {
            "window" => {
                "Congestion window of the sender on each path; the faint line is what is in \
                         flight."
                    .to_owned()
            }
            "rtt" => "Smoothed round-trip time of each path, as the sender knows it.".to_owned(),
            "rate" => "Bytes acknowledged on each path between two samples.".to_owned(),
            _ => "Queue of each path's own link towards the client, headers included.".to_owned(),
        };
        if column == "window" {
            spec = spec.layer(
                Layer::new(Mark::line().width(1.0).opacity(0.45))
                    .with("x", x())
                    .with("y", Field::number("in_flight", unit).from_zero())
                    .with("color", color()),
            );
        }
        let mut datasets = vec![id.to_owned()];
        if let Some(back) = states.as_ref().filter(|_| ["window", "rate"].contains(&column)) {
            spec = spec.behind(back.clone());
            datasets.push(states::ID.to_owned());
            caption.push_str(states::CAPTION);
        }
        if loads.loads.iter().any(|load| load.detail.series_left_out > 0) {
            caption.push_str(" Further connections are left out.");
        }
        Figure {
            id: name.to_owned(),
            title: title.to_owned(),
            caption,
            alt: format!("{title} over time of {}. At the end: {ends}.", loads.place),
            spec: spec.value(),
            datasets,
            controls: controls.to_vec(),
        }
    };
    all.map(figure).into_iter().collect()
}
