//! One load object by object: when each was discovered, requested and complete, over which path it came, and
//! what the page waited for.

mod types;

use std::collections::BTreeSet;

use quipu_record::{Detail, ObjectDetail};
use serde_json::Value;

use super::data::{Rows, text};
use super::{Context, Draft, words};
use crate::document::{Choice, Control, Figure, number};
use crate::loads::{Loads, Replayed};
use crate::spec::{Field, Layer, Mark, Spec};

/// Objects of a waterfall: of more, the reader chooses which part is shown.
const PART: usize = 150;
/// Objects in the waterfalls of all loads together, beyond the first part of each.
const MOST_OBJECTS: usize = 6_000;
/// Characters of an object's label; the whole name is in the tooltip and in the table.
const LABEL: usize = 24;
/// A bar has at least this part of the page time, so that its colour can be seen.
const LEAST_BAR: f64 = 0.004;
/// A duration is written behind its bar up to this part of the page time, else before it, if there is as much room.
const LAST_BEHIND: f64 = 0.75;
/// Priorities of recordings, most urgent first.
const PRIORITIES: [&str; 5] = ["VeryHigh", "High", "Medium", "Low", "VeryLow"];
/// Orders of the objects.
const BY_TIME: &str = "time";
const BY_PRIORITY: &str = "priority";

/// The figures: coloured by path in order of time, and coloured by type in both orders.
pub(super) fn waterfalls(
    context: &Context<'_>,
    loads: &Loads,
    controls: &[Control],
    draft: &mut Draft,
) -> Vec<Figure> {
    let Some(first) = loads.loads.first().filter(|load| !load.detail.objects.is_empty()) else {
        return Vec::new();
    };
    let alt = alt_of(first, &loads.place);
    let controls: Vec<Control> = controls.iter().cloned().chain(choices(loads)).collect();
    vec![
        by_path(context, loads, &controls, &alt, draft),
        types::by_type(loads, &controls, &alt, draft),
    ]
}

pub(super) fn millis(duration: quipu_base::Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// The objects of a load in an order, each with its label: those first that were requested first, or
/// that are most urgent.
fn ordered<'a>(detail: &'a Detail, order: &str, most: usize) -> Vec<Row<'a>> {
    let mut objects: Vec<&ObjectDetail> = detail.objects.iter().collect();
    objects.sort_by_key(|object| {
        let urgency = PRIORITIES.iter().position(|name| *name == object.priority);
        let urgency = urgency.unwrap_or(PRIORITIES.len());
        (if order == BY_PRIORITY { urgency } else { 0 }, object.requested, object.object)
    });
    let all = objects.len();
    let labelled = objects.into_iter().enumerate().take(most);
    labelled
        .map(|(rank, object)| Row { label: label(rank, object), part: part(rank, all), object })
        .collect()
}

/// A row of a waterfall.
struct Row<'a> {
    label: String,
    /// The part that it is in.
    part: String,
    object: &'a ObjectDetail,
}

/// The part that has the object at `rank` of `all`, in words.
fn part(rank: usize, all: usize) -> String {
    let first = rank / PART * PART;
    format!("{} to {}", first + 1, (first + PART).min(all.max(1)))
}

/// How many objects of each load are shown.
fn most(loads: &Loads) -> usize {
    PART.max(MOST_OBJECTS / loads.loads.len().max(1))
}

/// Orders that loads have: that of priorities only if the recording has some.
fn orders(loads: &Loads) -> &'static [&'static str] {
    let mut objects = loads.loads.iter().flat_map(|load| &load.detail.objects);
    match objects.any(|object| !object.priority.is_empty()) {
        true => &[BY_TIME, BY_PRIORITY],
        false => &[BY_TIME],
    }
}

/// Selectors of order and part, as far as there is a choice.
fn choices(loads: &Loads) -> Vec<Control> {
    let mut controls = Vec::new();
    let mut add = |id: &str, label: &str, options: Vec<Choice>| {
        let Some(first) = options.first().filter(|_| options.len() > 1) else { return };
        let default = first.value.clone();
        controls.push(Control { id: id.to_owned(), label: label.to_owned(), options, default });
    };
    let option =
        |value: &str, label: &str| Choice { value: value.to_owned(), label: label.to_owned() };
    let labels = ["request time", "recorded priority"];
    let orders = orders(loads).iter().zip(labels);
    add("order", "in order of", orders.map(|(order, label)| option(order, label)).collect());
    let most = most(loads);
    let mut parts: Vec<String> = Vec::new();
    for load in &loads.loads {
        let all = load.detail.objects.len();
        for name in (0..all.min(most)).step_by(PART).map(|rank| part(rank, all)) {
            if !parts.contains(&name) {
                parts.push(name);
            }
        }
    }
    add("part", "objects", parts.iter().map(|part| option(part, part)).collect());
    controls
}

/// A label that sorts by rank and tells the end of the address, and whether the object was pushed.
pub(super) fn label(rank: usize, object: &ObjectDetail) -> String {
    let name: String = file_name(&object.url).chars().take(LABEL).collect();
    let mark = if object.pushed { " +" } else { "" };
    format!("{:03} {name}{mark}", rank + 1)
}

pub(super) fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// The objects that the page time waited for: the last one that held the page, what its request waited
/// for longest, and so on to the first.
pub(super) fn critical(detail: &Detail) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let last = detail.objects.iter().filter(|it| it.held);
    let mut next = last.max_by_key(|it| (it.completed, it.object));
    while let Some(object) = next.filter(|it| !found.contains(&it.object)) {
        found.insert(object.object);
        let needs = object.needs.iter().rev();
        let needs = needs.filter_map(|need| detail.objects.iter().find(|it| it.object == *need));
        // A document is parsed while it comes: what it refers to is requested before its end.
        next = needs.max_by_key(|need| need.completed.min(object.requested));
    }
    found
}

/// The first object that led to `object`.
pub(super) fn initiator<'a>(detail: &'a Detail, object: &ObjectDetail) -> Option<&'a ObjectDetail> {
    let first = object.needs.first()?;
    detail.objects.iter().find(|it| it.object == *first)
}

/// Columns that selectors choose by.
const CHOSEN: [&str; 3] = ["policy", "order", "part"];

/// Every load in every order.
fn each(loads: &Loads) -> impl Iterator<Item = (&Replayed, &'static str)> {
    let orders = orders(loads);
    loads.loads.iter().flat_map(move |load| orders.iter().map(move |order| (load, *order)))
}

/// What every row about an object says.
const COLUMNS: [&str; 17] = [
    "object",
    "url",
    "host",
    "kind",
    "priority",
    "bytes",
    "initiator",
    "discovered",
    "requested",
    "first_byte",
    "completed",
    "bound",
    "critical_from",
    "critical_to",
    "duration",
    "duration_behind",
    "duration_before",
];

/// The cells of these.
fn cells(detail: &Detail, label: &str, object: &ObjectDetail, critical: bool) -> Vec<Value> {
    let end = end(detail);
    let least = LEAST_BAR * end;
    let (found, requested) = (millis(object.discovered), millis(object.requested));
    let completed = millis(object.completed);
    let bound = millis(object.bound.tight);
    let some = |value: f64, is: bool| if is { number(value) } else { Value::Null };
    let is_behind = completed <= LAST_BEHIND * end;
    let first = if bound > 0.0 { found.min(bound) } else { found };
    let duration = object.completed.saturating_sub(object.requested);
    vec![
        text(label),
        text(&object.url),
        text(host(&object.url)),
        text(&object.kind),
        text(&object.priority),
        Value::from(object.body.0),
        text(initiator(detail, object).map_or("", |it| it.url.as_str())),
        some(found, requested - found >= least),
        number(requested),
        number(millis(object.first_byte)),
        number(completed),
        some(bound, bound > 0.0),
        some(requested, critical),
        some(completed.max(requested + least), critical),
        text(&words::time(duration.as_nanos())),
        some(completed, is_behind),
        some(first, !is_behind && first >= (1.0 - LAST_BEHIND) * end),
    ]
}

/// When the last object was complete.
fn end(detail: &Detail) -> f64 {
    detail.objects.iter().map(|object| millis(object.completed)).fold(0.0, f64::max)
}

fn tooltip() -> Vec<Field> {
    vec![
        Field::label("url").titled("object"),
        Field::label("kind").titled("type"),
        Field::label("priority").titled("priority"),
        Field::number("bytes", "bytes"),
        Field::label("initiator").titled("found in"),
        Field::number("discovered", "discovered, ms"),
        Field::number("requested", "requested, ms"),
        Field::number("first_byte", "first byte, ms"),
        Field::number("completed", "complete, ms"),
        Field::number("bound", "bound, ms"),
    ]
}

const TIME: &str = "since the start of the page";

fn at(column: &str) -> Field {
    Field::number(column, TIME).at_top().in_time()
}

/// Thin lines from discovery over the request to completion, and ticks at first bytes: what is below the bars of both
/// figures.
fn lines(spec: Spec, loads: &Loads) -> Spec {
    let line = |mark: Mark, from: &str, to: &str| {
        let layer = Layer::new(mark).with("y", Field::sorted("object", ""));
        layer.with("x", at(from)).with("x2", Field::end(to)).with("tooltip", tooltip())
    };
    let mut spec = spec.layer(line(Mark::rule().opacity(0.45), "requested", "completed").zoomed());
    // A column without any number has no place on an axis.
    if any(loads, "discovered") {
        spec = spec.layer(line(Mark::rule().dashed(), "discovered", "requested"));
    }
    spec.layer(tick(Mark::tick(12.0).thin(), "first_byte"))
}

/// A tick at `column` of each object.
fn tick(mark: Mark, column: &str) -> Layer {
    let layer = Layer::new(mark.opacity(0.8)).with("y", Field::sorted("object", ""));
    layer.with("x", at(column)).with("tooltip", tooltip())
}

/// Whether some object has a number in `column`.
fn any(loads: &Loads, column: &str) -> bool {
    let at = COLUMNS.iter().position(|name| *name == column);
    let mut details = loads.loads.iter().map(|load| &load.detail);
    details.any(|detail| {
        let has = |object: &ObjectDetail| {
            at.is_some_and(|at| cells(detail, "", object, false)[at].is_number())
        };
        detail.objects.iter().any(has)
    })
}

/// Marks above the bars: bounds, the critical path, the events of the page, and durations.
fn marks(spec: Spec, events: &str, loads: &Loads) -> Spec {
    let y = || Field::sorted("object", "");
    let critical = Layer::new(Mark::rule().styled("critical"))
        .with("y", y())
        .with("x", at("critical_from"))
        .with("x2", Field::end("critical_to"))
        .with("tooltip", tooltip());
    let duration = |mark: Mark, column: &str| {
        let layer = Layer::new(mark.styled("duration")).with("y", y()).with("x", at(column));
        layer.with("text", Field::label("duration")).with("tooltip", tooltip())
    };
    let event = Layer::new(Mark::rule().styled("event"))
        .of(events)
        .with("x", at("at"))
        .with("strokeDash", Field::name("event", "page", &EVENTS.map(str::to_owned)))
        .with("tooltip", vec![Field::label("event").titled("page"), Field::number("at", "ms")]);
    let mut spec = spec.layer(critical);
    if any(loads, "bound") {
        spec = spec.layer(tick(Mark::tick(4.0), "bound"));
    }
    // Below the labels, so that these are readable where they meet.
    spec = spec.layer(event);
    for (mark, column) in [
        (Mark::text().behind(4.0), "duration_behind"),
        (Mark::text().before(4.0), "duration_before"),
    ] {
        if any(loads, column) {
            spec = spec.layer(duration(mark, column));
        }
    }
    spec
}

/// What is a line across all objects.
const EVENTS: [&str; 4] = ["page time", "critical time", "bound", "floor"];

/// Adds the events of all loads as the dataset `id`.
fn events(loads: &Loads, id: &str, draft: &mut Draft) {
    let mut rows = Rows::new(["policy", "event", "at"]);
    for Replayed { policy, detail, .. } in &loads.loads {
        let it = &detail.record;
        let times = [it.page_time, it.critical_time, it.page_bound.tight, it.page_floor];
        for (event, time) in EVENTS.iter().zip(times) {
            if *event == EVENTS[0] || time.as_nanos() > 0 {
                rows.row([text(policy), text(event), number(millis(time))]);
            }
        }
    }
    draft.dataset(id, rows.build());
}

/// What all captions say of marks and lines.
const MARKS: &str = "Ticks are first bytes, short ticks the bounds of objects; a heavy line is on the \
    critical path, the chain of objects that the page time waited for; dashes begin where an object was \
    discovered. Next to each bar, where there is room, is the time from request to completion. Lines \
    across are the page time, which is when the load event comes, the critical time, and the bound and the \
    floor of the page.";

/// What captions say of objects that are pushed or left out.
fn further(loads: &Loads) -> String {
    let objects = || loads.loads.iter().flat_map(|load| &load.detail.objects);
    let mut further = String::new();
    if objects().any(|object| object.pushed) {
        further.push_str(" Objects with + were pushed: their lines begin with the promise.");
    }
    let left_out = loads.loads.iter().map(|load| load.detail.objects.len()).max();
    let left_out = left_out.unwrap_or_default().saturating_sub(most(loads));
    if left_out > 0 {
        let left_out = words::count(left_out as u64, "object is", "objects are");
        further.push_str(&format!(" The last {left_out} left out."));
    }
    further
}

/// Bars of all objects, coloured by the path that brought them.
fn by_path(
    context: &Context<'_>,
    loads: &Loads,
    controls: &[Control],
    alt: &str,
    draft: &mut Draft,
) -> Figure {
    let (id, segments_id, events_id) = ("waterfall", "waterfall-segments", "waterfall-events");
    let mut objects = Rows::new(CHOSEN.into_iter().chain(COLUMNS));
    let columns = ["object", "url", "path", "from", "to", "bytes"];
    let mut segments = Rows::new(CHOSEN.into_iter().chain(columns));
    for (Replayed { policy, detail, .. }, order) in each(loads) {
        let (end, critical) = (end(detail), critical(detail));
        for Row { label, part, object } in ordered(detail, order, most(loads)) {
            let cells = cells(detail, &label, object, critical.contains(&object.object));
            let chosen = || [policy, order, part.as_str()].map(text).into_iter();
            objects.row(chosen().chain(cells));
            for segment in &object.segments {
                let position = usize::try_from(segment.path).unwrap_or(usize::MAX);
                let path = detail.paths.get(position).map(String::as_str).unwrap_or_default();
                let from = millis(segment.from);
                let to = millis(segment.to).max(from + LEAST_BAR * end);
                let times = [number(from), number(to), Value::from(segment.bytes.0)];
                let names = [&label, object.url.as_str(), path].map(text);
                segments.row(chosen().chain(names).chain(times));
            }
        }
    }
    let paths = &context.folders.results.paths;
    let bars = Layer::new(Mark::thick_bar())
        .of(segments_id)
        .with("y", Field::sorted("object", ""))
        .with("yOffset", Field::name("path", "path", paths))
        .with("x", at("from"))
        .with("x2", Field::end("to"))
        .with("color", Field::name("path", "path", paths))
        .with(
            "tooltip",
            vec![
                Field::label("url").titled("object"),
                Field::label("path").titled("path"),
                Field::number("from", "from, ms"),
                Field::number("to", "to, ms"),
                Field::number("bytes", "bytes"),
            ],
        );
    let spec = Spec::steps(id, 14).named("object", "url");
    let spec = marks(lines(spec, loads).layer(bars), events_id, loads);
    draft.dataset(id, objects.build());
    draft.dataset(segments_id, segments.build());
    events(loads, events_id, draft);
    Figure {
        id: id.to_owned(),
        title: "Waterfall".to_owned(),
        caption: format!(
            "Thin lines reach from the request of an object to its completion; bars show when each path \
             delivered bytes of it, in one lane for each path. \
             {MARKS}{}",
            further(loads)
        ),
        alt: alt.to_owned(),
        spec: spec.value(),
        datasets: [id, segments_id, events_id].map(str::to_owned).to_vec(),
        controls: controls.to_vec(),
    }
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
