//! Ratios of page times over a field of a sweep, with their intervals as bands.

use super::data::{Rows, text};
use super::{Context, Draft, select, words};
use crate::document::{Figure, number};
use crate::spec::{Field, Layer, Mark, Spec};
use quipu_record::Metric;

/// A line has at least so many points.
const LEAST_VALUES: usize = 3;

/// The number that `value` begins with, if it is a number with or without a unit behind it.
fn number_of(value: &str) -> Option<f64> {
    let end = value.find(|sign: char| !(sign.is_ascii_digit() || "+-.e".contains(sign)));
    value[..end.unwrap_or(value.len())].parse().ok().filter(|number: &f64| number.is_finite())
}

/// Ratios to the first policy over each field that has several numbers.
pub(super) fn lines(context: &Context<'_>, draft: &mut Draft) -> Vec<Figure> {
    let fields = context.folders.results.fields.iter().enumerate();
    fields.filter_map(|(position, field)| over(context, position, field, draft)).collect()
}

fn over(context: &Context<'_>, position: usize, field: &str, draft: &mut Draft) -> Option<Figure> {
    let results = &context.folders.results;
    let column = select::column(field);
    let id = format!("swept-{}", column.replace('_', "-"));
    let mut values: Vec<(f64, &str)> = Vec::new();
    for scene in &context.scenes {
        let value = scene.place.fields.get(position).filter(|value| !value.is_empty())?;
        let number = number_of(value)?;
        if !values.iter().any(|(known, _)| *known == number) {
            values.push((number, value));
        }
    }
    // Numbers of different units are not on one axis.
    let unit = |value: &str| value.trim_start_matches(|it: char| !it.is_alphabetic()).to_owned();
    if values.len() < LEAST_VALUES || values.iter().any(|(_, it)| unit(it) != unit(values[0].1)) {
        return None;
    }
    let rest = context.select.without_field(position)?;
    let mut columns: Vec<String> = rest.columns().collect();
    columns.extend(["policy", "value", "ratio", "low", "high"].map(str::to_owned));
    let mut rows = Rows::new(columns);
    let mut extremes: Vec<(f64, String)> = Vec::new();
    for scene in &context.scenes {
        let place = rest.cells(results, scene);
        let text_of = scene.place.fields.get(position)?;
        let value = number_of(text_of)?;
        for cell in &scene.cells {
            let Some(ratio) = cell.ratios.get(&Metric::PageTime) else { continue };
            let (low, high) = ratio.interval.unwrap_or((ratio.mean, ratio.mean));
            let numbers = [value, ratio.mean, low, high].map(number);
            rows.row(place.iter().cloned().chain([text(&cell.policy)]).chain(numbers));
            extremes.push((ratio.mean, format!("{} at {field} {text_of}", cell.policy)));
        }
    }
    let least = extremes.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let most = extremes.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let alt = format!(
        "Lines over {} values of {field}. Ratios reach from {} ({}) to {} ({}).",
        values.len(),
        words::ratio(least.0),
        least.1,
        words::ratio(most.0),
        most.1
    );
    let title = "page time to the first policy, ratio";
    let x = || Field::number("value", field).from_least();
    let y = |column: &str| Field::number(column, title).from_least();
    let policy = || Field::name("policy", "policy", context.colours());
    let tooltip = vec![
        Field::label("policy").titled("policy"),
        Field::number("value", field),
        Field::number("ratio", "ratio of page times"),
        Field::number("low", "95 % from"),
        Field::number("high", "95 % to"),
    ];
    let band = Layer::new(Mark::area().opacity(0.18))
        .with("x", x())
        .with("y", y("low"))
        .with("y2", Field::end("high"))
        .with("color", policy());
    let line = Layer::new(Mark::line())
        .with("x", x())
        .with("y", y("ratio"))
        .with("color", policy())
        .with("strokeDash", policy());
    let point = Layer::new(Mark::point(40.0))
        .with("x", x())
        .with("y", y("ratio"))
        .with("color", policy())
        .with("tooltip", tooltip);
    // Never so close that a difference of nothing fills the plot.
    let spec = Spec::new(&id, 280).band_across(0.95, 1.05).layer(band).layer(line).layer(point);
    draft.dataset(&id, rows.build());
    Some(Figure {
        title: format!("Ratios over {field}"),
        caption: "Page time as a ratio to that of the first policy; the coloured band is its 95 % interval, \
                  the grey one 5 % to either side of 1. Below 1 is faster."
            .to_owned(),
        alt,
        spec: spec.value(),
        datasets: vec![id.clone()],
        controls: rest.controls(),
        id,
    })
}
