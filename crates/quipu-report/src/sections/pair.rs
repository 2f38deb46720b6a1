//! Two loads of the same page: both on one axis, and how the times of each object differ.

use serde_json::Value;

use super::data::{Rows, text};
use super::waterfall::{file_name, label, millis};
use super::{Context, Draft, words};
use crate::document::{Choice, Column, Control, Figure, Section, Table, number};
use crate::loads::{Loads, Replayed};
use crate::spec::{Field, Layer, Mark, Spec};
use quipu_record::ObjectDetail;

/// Objects of a figure, those that differ most.
const MOST_OBJECTS: usize = 150;
/// Rows of the table.
const MOST_ROWS: usize = 2_000;
/// Loads of which the text says how they differ from the first.
const MOST_SENTENCES: usize = 3;
/// Objects that a sentence names.
const MOST_NAMED: usize = 3;
/// Nanoseconds below which two times count as the same: what a reader sees of either is less exact.
const SAME: f64 = 1e-3;

/// Lanes of an object, from above.
const LANES: [&str; 2] = ["first", "other"];

/// An object in both loads.
struct Both<'a> {
    first: &'a ObjectDetail,
    other: &'a ObjectDetail,
}

impl Both<'_> {
    /// How much later, in milliseconds, the object is complete in the other load.
    fn later(&self) -> f64 {
        millis(self.other.completed) - millis(self.first.completed)
    }
}

/// Objects that both loads have, in order of requests of the first.
fn both<'a>(first: &'a Replayed, other: &'a Replayed) -> Vec<Both<'a>> {
    let others = &other.detail.objects;
    let pairs = first.detail.objects.iter().filter_map(|first| {
        let other = others.iter().find(|it| it.object == first.object && it.url == first.url)?;
        Some(Both { first, other })
    });
    let mut pairs: Vec<Both<'_>> = pairs.collect();
    pairs.sort_by_key(|pair| (pair.first.requested, pair.first.object));
    pairs
}

/// The same, those first that differ most.
fn by_difference<'a>(first: &'a Replayed, other: &'a Replayed) -> Vec<Both<'a>> {
    let mut pairs = both(first, other);
    pairs.sort_by(|one, next| next.later().abs().total_cmp(&one.later().abs()));
    pairs
}

/// The first load beside each of those that it is compared with.
pub(super) fn pair(context: &Context<'_>, loads: &Loads, draft: &mut Draft) {
    let Some(first) = loads.loads.first() else { return };
    let others = loads.beside.iter().filter(|other| !both(first, other).is_empty());
    let others: Vec<&Replayed> = others.collect();
    if others.is_empty() {
        return;
    }
    let same = others.iter().all(|other| other.run == first.run);
    let about = match same {
        true => format!(
            "Loads of {} in run {}, in which every policy has the same links and losses. \
             The first load is that of {}.",
            loads.place, first.run, first.policy
        ),
        false => format!("Loads of {}. The first one is {}.", loads.place, first.label),
    };
    let sentences = others.iter().take(MOST_SENTENCES).map(|other| differences(first, other));
    let text: Vec<String> = std::iter::once(about).chain(sentences).collect();
    let alt = text[1].clone();
    let figure = figure(context, first, &others, alt, draft);
    draft.section(Section {
        id: "pair".to_owned(),
        title: "Two loads side by side".to_owned(),
        text,
        figures: vec![figure],
        tables: vec![table(first, &others)],
    });
}

/// How `other` differs from `first`, with the objects that differ most.
fn differences(first: &Replayed, other: &Replayed) -> String {
    let pairs = by_difference(first, other);
    let [before, after] = [first, other].map(|load| load.detail.record.page_time.as_nanos());
    let page = match after.cmp(&before) {
        std::cmp::Ordering::Equal => format!("takes {} with both", words::time(after)),
        order => format!(
            "takes {} instead of {}, {} {}",
            words::time(after),
            words::time(before),
            words::time(after.abs_diff(before)),
            if order.is_gt() { "longer" } else { "less" }
        ),
    };
    let named: Vec<String> = pairs
        .iter()
        .filter(|pair| pair.later().abs() >= SAME)
        .take(MOST_NAMED)
        .map(|pair| {
            let size = words::time((pair.later().abs() * 1e6) as u64);
            let way = if pair.later() > 0.0 { "later" } else { "earlier" };
            format!("{} {size} {way}", file_name(&pair.first.url))
        })
        .collect();
    let count = |is: &dyn Fn(f64) -> bool| {
        pairs.iter().filter(|pair| pair.later().abs() >= SAME && is(pair.later())).count() as u64
    };
    let later = count(&|by| by > 0.0);
    let earlier = count(&|by| by < 0.0);
    let page = format!("With {} instead of {}, the page {page}.", other.policy, first.policy);
    if named.is_empty() {
        return format!("{page} All objects are complete at the same time.");
    }
    format!(
        "{page} {} complete later and {} earlier; the largest differences are {}.",
        words::count(later, "object is", "objects are"),
        words::grouped(earlier),
        words::list(&named, MOST_NAMED)
    )
}

/// Both loads on one axis, a lane for each.
fn figure(
    context: &Context<'_>,
    first: &Replayed,
    others: &[&Replayed],
    alt: String,
    draft: &mut Draft,
) -> Figure {
    const ORDERS: [(&str, &str); 2] =
        [("time", "request time"), ("difference", "largest difference")];
    let (id, events_id) = ("pair-waterfall", "pair-events");
    let columns = [
        "compared",
        "order",
        "object",
        "url",
        "kind",
        "load",
        "lane",
        "requested",
        "first_byte",
        "completed",
        "completed_first",
        "completed_other",
        "later",
    ];
    let mut rows = Rows::new(columns);
    let mut events = Rows::new(["compared", "load", "at"]);
    let mut left_out = 0;
    for other in others {
        let most = by_difference(first, other);
        left_out = left_out.max(most.len().saturating_sub(MOST_OBJECTS));
        let mut in_time: Vec<&Both<'_>> = most.iter().take(MOST_OBJECTS).collect();
        in_time.sort_by_key(|pair| (pair.first.requested, pair.first.object));
        let in_size: Vec<&Both<'_>> = most.iter().take(MOST_OBJECTS).collect();
        for ((order, _), pairs) in ORDERS.into_iter().zip([in_time, in_size]) {
            for (rank, pair) in pairs.into_iter().enumerate() {
                let label = label(rank, pair.first);
                for (lane, load, object) in
                    [(LANES[0], first, pair.first), (LANES[1], *other, pair.other)]
                {
                    let names = [
                        &other.policy,
                        order,
                        &label,
                        &pair.first.url,
                        &pair.first.kind,
                        &load.policy,
                        lane,
                    ];
                    let ends = [pair.first.completed, pair.other.completed].map(millis);
                    let times = [object.requested, object.first_byte, object.completed].map(millis);
                    let times = times.into_iter().chain(ends).chain([pair.later()]);
                    rows.row(names.map(text).into_iter().chain(times.map(number)));
                }
            }
        }
        for load in [first, other] {
            let at = number(millis(load.detail.record.page_time));
            events.row([text(&other.policy), text(&load.policy), at]);
        }
    }
    draft.dataset(id, rows.build());
    draft.dataset(events_id, events.build());
    let names: Vec<String> =
        std::iter::once(first).chain(others.iter().copied()).map(|it| it.policy.clone()).collect();
    let known = context.colours();
    let domain = if names.iter().all(|name| known.contains(name)) { known } else { &names[..] };
    let color = || Field::name("load", "load", domain);
    let at = |column: &str| Field::number(column, "since the start of the page").at_top().in_time();
    let tooltip = || {
        vec![
            Field::label("url").titled("object"),
            Field::label("kind").titled("type"),
            Field::number("completed_first", &format!("complete with {}, ms", first.policy)),
            Field::number("completed_other", "complete with the other, ms"),
            Field::number("later", "later by, ms"),
        ]
    };
    let lane = |mark: Mark, from: &str, to: &str| {
        Layer::new(mark)
            .with("y", Field::sorted("object", ""))
            .with("yOffset", Field::name("lane", "load", &LANES.map(str::to_owned)))
            .with("x", at(from))
            .with("x2", Field::end(to))
            .with("color", color())
            .with("tooltip", tooltip())
    };
    let event = Layer::new(Mark::rule().width(1.6).dashed())
        .of(events_id)
        .with("x", at("at"))
        .with("color", color())
        .with(
            "tooltip",
            vec![Field::label("load").titled("load"), Field::number("at", "page time, ms")],
        );
    let spec = Spec::steps(id, 16)
        .named("object", "url")
        .layer(lane(Mark::rule().opacity(0.6), "requested", "completed").zoomed())
        .layer(lane(Mark::thick_bar(), "first_byte", "completed"))
        .layer(event);
    let option =
        |value: &str, label: &str| Choice { value: value.to_owned(), label: label.to_owned() };
    let control = |id: &str, label: &str, options: Vec<Choice>| Control {
        id: id.to_owned(),
        label: label.to_owned(),
        default: options.first().map(|it| it.value.clone()).unwrap_or_default(),
        options,
    };
    let compared = others.iter().map(|other| option(&other.policy, &other.label)).collect();
    let orders = ORDERS.iter().map(|(value, label)| option(value, label)).collect();
    let controls =
        [control("compared", "compared with", compared), control("order", "in order of", orders)];
    let mut caption =
        "Each object has a lane for each load: a thin line from the request to the first \
                       byte, a bar from there to completion. Dashed lines across are page times."
            .to_owned();
    if left_out > 0 {
        caption.push_str(&format!(
            " {} that differ least are in the table only.",
            words::count(left_out as u64, "object", "objects")
        ));
    }
    Figure {
        id: id.to_owned(),
        title: "Both loads on one axis".to_owned(),
        caption,
        alt,
        spec: spec.value(),
        datasets: [id, events_id].map(str::to_owned).to_vec(),
        controls: controls.into_iter().filter(|control| control.options.len() > 1).collect(),
    }
}

/// Completion of every object in both loads, those first that differ most.
fn table(first: &Replayed, others: &[&Replayed]) -> Table {
    let columns = vec![
        Column::text("compared", "compared with"),
        Column::text("object", "object"),
        Column::number("later", "later by", "ms", 1),
        Column::number("ratio", "ratio", "x", 3),
        Column::number("first", "complete in the first load", "ms", 1),
        Column::number("other", "in the other", "ms", 1),
        Column::number("size", "size", "bytes", 0),
        Column::text("type", "type"),
        Column::text("url", "address"),
    ];
    let mut pairs: Vec<(&Replayed, Both<'_>)> = others
        .iter()
        .flat_map(|other| by_difference(first, other).into_iter().map(move |pair| (*other, pair)))
        .collect();
    pairs.sort_by(|(_, one), (_, next)| next.later().abs().total_cmp(&one.later().abs()));
    let rows = pairs.iter().take(MOST_ROWS).map(|(other, pair)| {
        let [before, after] = [pair.first.completed, pair.other.completed].map(millis);
        let ratio = if before > 0.0 { number(after / before) } else { Value::Null };
        vec![
            text(&other.policy),
            text(file_name(&pair.first.url)),
            number(pair.later()),
            ratio,
            number(before),
            number(after),
            Value::from(pair.first.body.0),
            text(&pair.first.kind),
            text(&pair.first.url),
        ]
    });
    Table {
        id: "pair-table".to_owned(),
        title: "Differences object by object".to_owned(),
        caption: format!(
            "When each object is complete, with {} and with the other policy or run; positive \
             differences are later. Sorted by the size of the difference.",
            first.policy
        ),
        columns,
        rows: rows.collect(),
    }
}
