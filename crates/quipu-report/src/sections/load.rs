//! Loads in full: a waterfall coloured by path, and the state of every path over time.

use serde_json::Value;

use super::data::{Rows, text};
use super::{Context, Draft, words};
use crate::document::{Choice, Control, Figure, Section, number};
use crate::loads::{Loads, Replayed};
use crate::spec::{Field, Layer, Mark, Spec};

/// Objects of a waterfall.
const MOST_OBJECTS: usize = 150;
/// Characters of an object's label.
const LABEL: usize = 24;
/// A packet's bar has at least this part of the page time, so that it can be seen.
const LEAST_BAR: f64 = 0.002;
/// Series of a figure: connections beyond are left out.
const MOST_LINES: usize = 24;

/// The loads that were run again.
pub(super) fn load(context: &Context<'_>, loads: &Loads, draft: &mut Draft) {
    let Some(first) = loads.loads.first() else { return };
    let options = loads.loads.iter().map(|load| Choice {
        value: load.policy.clone(),
        label: format!("{}, run {}", load.policy, load.run),
    });
    let controls: Vec<Control> = match loads.loads.len() {
        1 => Vec::new(),
        _ => vec![Control {
            id: "policy".to_owned(),
            label: "policy".to_owned(),
            options: options.collect(),
            default: first.policy.clone(),
        }],
    };
    let mut figures: Vec<Figure> =
        waterfall(context, loads, &controls, draft).into_iter().collect();
    figures.extend(series(context, loads, &controls, draft));
    let about = match first.detail.objects.is_empty() {
        true => format!("Run {} over {}, run again to be looked at.", first.run, loads.place),
        false => format!(
            "Loads of {}: of each policy the one whose page time is the middle one, or the one that \
             was asked for. They were run again to be looked at, and had the page times of the \
             results to the nanosecond.",
            loads.place
        ),
    };
    draft.section(Section {
        id: "load".to_owned(),
        title: "One load in full".to_owned(),
        text: vec![about],
        figures,
        tables: Vec::new(),
    });
}

fn millis(duration: quipu_base::Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// Bars of all objects, coloured by the path that brought them.
fn waterfall(
    context: &Context<'_>,
    loads: &Loads,
    controls: &[Control],
    draft: &mut Draft,
) -> Option<Figure> {
    let (id, segments_id) = ("waterfall", "waterfall-segments");
    let columns =
        ["policy", "object", "url", "kind", "bytes", "requested", "first_byte", "completed"];
    let mut objects = Rows::new(columns);
    let mut segments = Rows::new(["policy", "object", "path", "from", "to", "bytes"]);
    let (mut left_out, mut any_pushed) = (0, false);
    for Replayed { policy, detail, .. } in &loads.loads {
        let end = detail.objects.iter().map(|object| millis(object.completed)).fold(0.0, f64::max);
        left_out = left_out.max(detail.objects.len().saturating_sub(MOST_OBJECTS));
        for object in detail.objects.iter().take(MOST_OBJECTS) {
            let label = label(object.object, &object.url, object.pushed);
            any_pushed |= object.pushed;
            objects.row([
                text(policy),
                text(&label),
                text(&object.url),
                text(&object.kind),
                Value::from(object.body.0),
                number(millis(object.requested)),
                number(millis(object.first_byte)),
                number(millis(object.completed)),
            ]);
            for segment in &object.segments {
                let position = usize::try_from(segment.path).unwrap_or(usize::MAX);
                let path = detail.paths.get(position).map(String::as_str).unwrap_or_default();
                let from = millis(segment.from);
                let to = millis(segment.to).max(from + LEAST_BAR * end);
                segments.row([
                    text(policy),
                    text(&label),
                    text(path),
                    number(from),
                    number(to),
                    Value::from(segment.bytes.0),
                ]);
            }
        }
    }
    let first = loads.loads.first()?;
    if objects.is_empty() {
        return None;
    }
    let alt = alt_of(first, &loads.place);
    let paths = &context.folders.results.paths;
    let time = "since the start of the page, ms";
    let y = || Field::sorted("object", "object");
    let of_object = || {
        vec![
            Field::label("url").titled("object"),
            Field::label("kind").titled("kind"),
            Field::number("bytes", "bytes"),
            Field::number("requested", "requested, ms"),
            Field::number("first_byte", "first byte, ms"),
            Field::number("completed", "complete, ms"),
        ]
    };
    let spec = Spec::steps(id, 14)
        .layer(
            Layer::new(Mark::rule().opacity(0.45))
                .with("y", y())
                .with("x", Field::number("requested", time).at_top())
                .with("x2", Field::end("completed"))
                .with("tooltip", of_object()),
        )
        .layer(
            Layer::new(Mark::thick_bar())
                .of(segments_id)
                .with("y", y())
                .with("yOffset", Field::name("path", "path", paths))
                .with("x", Field::number("from", time).at_top())
                .with("x2", Field::end("to"))
                .with("color", Field::name("path", "path", paths))
                .with(
                    "tooltip",
                    vec![
                        Field::label("object").titled("object"),
                        Field::label("path").titled("path"),
                        Field::number("from", "from, ms"),
                        Field::number("to", "to, ms"),
                        Field::number("bytes", "bytes"),
                    ],
                ),
        )
        .layer(
            Layer::new(Mark::tick(9.0).opacity(0.8))
                .with("y", y())
                .with("x", Field::number("first_byte", time).at_top())
                .with("tooltip", of_object()),
        );
    draft.dataset(id, objects.build());
    draft.dataset(segments_id, segments.build());
    let mut caption = "Thin lines reach from the request of an object to its completion, with a tick at \
                       its first byte; bars are when each path brought bytes of it, one lane for each \
                       path."
        .to_owned();
    if any_pushed {
        caption.push_str(" Objects with + were pushed: their lines begin with the promise.");
    }
    if left_out > 0 {
        let left_out = words::count(left_out as u64, "object is", "objects are");
        caption.push_str(&format!(" The last {left_out} left out."));
    }
    Some(Figure {
        id: id.to_owned(),
        title: "Waterfall".to_owned(),
        caption,
        alt,
        spec: spec.value(),
        datasets: vec![id.to_owned(), segments_id.to_owned()],
        controls: controls.to_vec(),
    })
}

/// What the waterfall of `load` shows.
fn alt_of(load: &Replayed, place: &str) -> String {
    let detail = &load.detail;
    let mut sums: Vec<(u64, &str)> = detail.paths.iter().map(|path| (0, path.as_str())).collect();
    for carried in detail.objects.iter().flat_map(|object| &object.carried) {
        let position = usize::try_from(carried.path).unwrap_or(usize::MAX);
        if let Some((sum, _)) = sums.get_mut(position) {
            *sum = sum.saturating_add(carried.bytes.0);
        }
    }
    let all = sums.iter().map(|(sum, _)| *sum as f64).sum::<f64>().max(1.0);
    let each: Vec<String> = sums
        .iter()
        .map(|(sum, path)| format!("{path} {:.1} %", 100.0 * *sum as f64 / all))
        .collect();
    format!(
        "Waterfall of {} with {}, run {}: {} complete after {}. Bytes of bodies by path: {}.",
        place,
        load.policy,
        load.run,
        words::count(detail.objects.len() as u64, "object is", "objects are"),
        words::time(detail.record.page_time.as_nanos()),
        words::list(&each, 6)
    )
}

/// A label that sorts by number and tells the end of the address, and whether the object was pushed.
fn label(object: u32, url: &str, pushed: bool) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().take(LABEL).collect();
    let mark = if pushed { " +" } else { "" };
    format!("{object:03} {name}{mark}")
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
            let line = match several {
                true => format!("{} on {}", connection.flow, path.name),
                false => path.name.clone(),
            };
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
        let x = || Field::number("ms", "since the start, ms");
        let mut spec = Spec::new(id, 220).layer(
            Layer::new(Mark::line())
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
        if loads.loads.iter().any(|load| load.detail.series_left_out > 0) {
            caption.push_str(" Further connections are left out.");
        }
        Figure {
            id: name.to_owned(),
            title: title.to_owned(),
            caption,
            alt: format!("{title} over time of {}. At the end: {ends}.", loads.place),
            spec: spec.value(),
            datasets: vec![id.to_owned()],
            controls: controls.to_vec(),
        }
    };
    all.map(figure).into_iter().collect()
}
