//! Figures of distributions: curves and boxes of a quantity for each policy.

use serde_json::Value;

use super::data::{Rows, text};
use super::{Context, Draft, figure, words};
use crate::aggregate::boxes::{BoxNumbers, boxed};
use crate::aggregate::curve::curve;
use crate::aggregate::samples::Samples;
use crate::document::{Figure, millis, number, short};
use crate::results::{Cell, Scene};
use crate::spec::{Field, Layer, Mark, Spec};

/// Points of all curves of a figure together: they share this number, so that many curves are coarse.
const POINTS: usize = 60_000;
/// Points of one curve.
const MOST_POINTS: usize = 200;
/// Points of one curve if there are very many.
const LEAST_POINTS: usize = 12;

/// Longest span, as a factor, that a linear axis shows well. Our choice.
const LINEAR_SPAN: f64 = 20.0;

/// What captions of box plots say of boxes.
pub(super) const BOX: &str = "The box holds the middle half";

/// Multiples up to here are shaded as near to one.
const NEAR_ONE: f64 = 1.05;

/// What a figure of curves is about.
pub(super) struct Curves<'a> {
    pub(super) id: &'a str,
    /// Title of the figure.
    pub(super) title: &'a str,
    /// What is measured, for titles of axes: `page time`.
    pub(super) what: &'a str,
    /// What is counted: `loads`.
    pub(super) of: &'a str,
}

/// What there is to say of how values are distributed.
pub(super) enum Distribution {
    /// Values differ: curves.
    Drawn(Figure),
    /// No policy has two different values anywhere: a sentence that says so.
    Single(String),
    /// There are no values.
    Nothing,
}

impl Distribution {
    /// As the figures and the sentences of a section.
    pub(super) fn parts(self) -> (Option<Figure>, Option<String>) {
        match self {
            Distribution::Drawn(figure) => (Some(figure), None),
            Distribution::Single(sentence) => (None, Some(sentence)),
            Distribution::Nothing => (None, None),
        }
    }
}

/// Distribution functions of `samples`, one for each policy. One value is no distribution: scenes in which
/// no policy has two different ones are left out.
pub(super) fn curves(
    context: &Context<'_>,
    draft: &mut Draft,
    curves: &Curves<'_>,
    samples: impl Fn(&Cell) -> Samples,
) -> Distribution {
    let results = &context.folders.results;
    let most = (POINTS / context.cells().max(1)).clamp(LEAST_POINTS, MOST_POINTS);
    let axes = context.select.columns();
    let mut rows = Rows::new(axes.chain(["policy", "ms", "part"].map(str::to_owned)));
    let (mut log, mut zero) = (false, false);
    let mut told = None;
    // Values of the policy that has most, and whether some policy has the same one in all of several.
    let (mut values, mut upright) = (0, false);
    for scene in &context.scenes {
        let of_cell = |cell: &Cell| samples(cell);
        let samples: Vec<Samples> = scene.cells.iter().map(of_cell).collect();
        values = samples.iter().map(Samples::count).fold(values, u64::max);
        if !samples.iter().any(Samples::varies) {
            continue;
        }
        let place = context.select.cells(results, scene);
        let mut span: Option<(u64, u64)> = None;
        let mut medians = Vec::new();
        for (cell, samples) in scene.cells.iter().zip(&samples) {
            upright |= samples.count() > 0 && !samples.varies();
            let points = curve(samples, most);
            let policy = text(&cell.policy);
            for (value, part) in &points {
                let point = [policy.clone(), millis(*value), number(*part)];
                rows.row(place.iter().cloned().chain(point));
            }
            if let (Some((least, _)), Some((largest, _))) = (points.first(), points.last()) {
                let (low, high) = span.unwrap_or((*least, *largest));
                span = Some((low.min(*least), high.max(*largest)));
            }
            medians.extend(samples.quantile(0.5).map(|median| (median, cell.policy.as_str())));
        }
        zero |= span.is_some_and(|(low, _)| low == 0);
        log |= span.is_some_and(|(low, high)| low > 0 && high as f64 / low as f64 > LINEAR_SPAN);
        if told.is_none() && !medians.is_empty() {
            told = Some(alt_of_curves(context, scene, curves, medians));
        }
    }
    let Some(alt) = told else { return without_curves(values, curves) };
    // Nothing has no place on a logarithmic axis.
    let log = log && !zero;
    let (id, what) = (curves.id, curves.what);
    let policy = || Field::name("policy", "policy", context.colours());
    let spec = Spec::new(id, 320).layer(
        Layer::new(Mark::steps())
            .with("x", Field::number("ms", &format!("{what}, ms")).log_if(log))
            .with(
                "y",
                Field::number("part", &format!("share of the {}", curves.of))
                    .domain(0.0, 1.0)
                    .axis_format("%"),
            )
            .with("color", policy())
            .with("strokeDash", policy())
            .with(
                "tooltip",
                vec![
                    Field::row("policy", "policy", []),
                    Field::number("ms", &format!("{what}, ms")),
                    Field::number("part", &format!("share of the {}", curves.of)).format(".1%"),
                ],
            ),
    );
    draft.dataset(id, rows.build());
    let mut caption = format!(
        "Share of the {} whose {what} is at most the value on the horizontal axis{}. Further left is \
         better.",
        curves.of,
        if log { ", on a logarithmic axis" } else { "" }
    );
    if upright {
        caption.push_str(" A vertical line is a policy with only one value.");
    }
    Distribution::Drawn(figure(id, curves.title, caption, alt, &spec, &context.select))
}

/// Why there are no curves, if the policy with most values has `most`.
fn without_curves(most: u64, curves: &Curves<'_>) -> Distribution {
    let Curves { what, of, .. } = curves;
    match most {
        0 => Distribution::Nothing,
        1 => Distribution::Single(format!(
            "Each policy has only one value of the {what}, so no distribution is drawn."
        )),
        _ => Distribution::Single(format!(
            "All {of} of a policy have the same {what}, so no distribution is drawn."
        )),
    }
}

/// What the curves of the first scene show.
fn alt_of_curves(
    context: &Context<'_>,
    scene: &Scene,
    curves: &Curves<'_>,
    mut medians: Vec<(u64, &str)>,
) -> String {
    medians.sort_unstable();
    let each: Vec<String> = medians
        .iter()
        .map(|(median, policy)| format!("{policy} {}", words::time(*median)))
        .collect();
    format!(
        "Distribution functions of the {} on {} for {}. Medians: {}.",
        curves.what,
        context.name(scene),
        words::count(medians.len() as u64, "policy", "policies"),
        words::list(&each, 12)
    )
}

/// What a figure of boxes is about.
pub(super) struct Boxes<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    /// What is measured, with unit: `page time, ms`.
    pub(super) what: &'a str,
    /// What is better, or what else the caption must say.
    pub(super) note: &'a str,
    /// By what values are divided to have the unit.
    pub(super) unit: f64,
    /// Where the axis begins.
    pub(super) axis: Begin,
}

/// Where an axis begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At zero: of times.
    Zero,
    /// At one, or a little below what is shown: of multiples. What is near to one is shaded.
    One,
    /// Near to one on either side, which is shaded: of ratios.
    Around,
}

/// Box plots of `values`, one for each policy; nothing if there are no values.
pub(super) fn boxes(
    context: &Context<'_>,
    draft: &mut Draft,
    boxes: &Boxes<'_>,
    values: impl Fn(&Cell) -> Vec<u64>,
) -> Option<Figure> {
    boxes_of(context, draft, boxes, |_, cell| values(cell))
}

/// The same of values that depend on the other policies of their scene.
pub(super) fn boxes_of(
    context: &Context<'_>,
    draft: &mut Draft,
    boxes: &Boxes<'_>,
    values: impl Fn(&Scene, &Cell) -> Vec<u64>,
) -> Option<Figure> {
    let results = &context.folders.results;
    let numbers = ["n", "least", "low", "q1", "median", "q3", "high", "most"];
    let mut columns: Vec<String> = context.select.columns().collect();
    columns.push("policy".to_owned());
    columns.extend(numbers.map(str::to_owned));
    let mut rows = Rows::new(columns);
    let mut told = None;
    let mut varies = false;
    for scene in &context.scenes {
        let place = context.select.cells(results, scene);
        let mut seen = Vec::new();
        for cell in &scene.cells {
            let Some(numbers) = boxed(&values(scene, cell)) else { continue };
            varies |= numbers.least < numbers.most;
            let cells = [text(&cell.policy), number(numbers.count as f64)];
            let cells = cells.into_iter().chain(cells_of(&numbers, boxes.unit));
            rows.row(place.iter().cloned().chain(cells));
            seen.push((cell.policy.as_str(), numbers));
        }
        if told.is_none() && !seen.is_empty() {
            told = Some(alt_of_boxes(context, scene, boxes, &seen));
        }
    }
    let alt = told?;
    let what = boxes.what;
    let y = || Field::row("policy", "policy", context.policies());
    let of = |column| match boxes.axis {
        Begin::Zero => Field::number(column, what).from_zero(),
        Begin::One | Begin::Around => Field::number(column, what).from_least(),
    };
    let tooltip = || {
        let named = [
            ("median", "median"),
            ("q1", "lower quartile"),
            ("q3", "upper quartile"),
            ("least", "least"),
            ("most", "largest"),
        ];
        let mut fields = vec![Field::row("policy", "policy", [])];
        fields.extend(named.map(|(column, title)| Field::number(column, title)));
        fields.push(Field::number("n", "values"));
        fields
    };
    let color = || Field::name("policy", "policy", context.colours()).no_legend();
    let plain = Spec::steps(boxes.id, 26).with("y", y());
    let banded = match boxes.axis {
        Begin::Zero => plain,
        Begin::One => plain.band(1.0, NEAR_ONE),
        Begin::Around => plain.band(2.0 - NEAR_ONE, NEAR_ONE),
    };
    if !varies {
        let point = Layer::new(Mark::point(70.0)).with("x", of("median"));
        let spec = banded.layer(point.with("color", color()).with("tooltip", tooltip()));
        draft.dataset(boxes.id, rows.build());
        let caption = format!(
            "{}: the only value of each policy, in all its runs. {}",
            sentence(what),
            boxes.note
        );
        return Some(figure(boxes.id, boxes.title, caption, alt, &spec, &context.select));
    }
    let spec = banded
        .layer(
            Layer::new(Mark::rule())
                .with("x", of("low"))
                .with("x2", Field::end("high"))
                .with("tooltip", tooltip()),
        )
        .layer(
            Layer::new(Mark::bar(0.6).opacity(0.75))
                .with("x", of("q1"))
                .with("x2", Field::end("q3"))
                .with("color", color())
                .with("tooltip", tooltip()),
        )
        .layer(Layer::new(Mark::tick(16.0)).with("x", of("median")).with("tooltip", tooltip()))
        .layer(Layer::new(Mark::point(12.0)).with("x", of("least")).with("tooltip", tooltip()))
        .layer(Layer::new(Mark::point(12.0)).with("x", of("most")).with("tooltip", tooltip()));
    draft.dataset(boxes.id, rows.build());
    let caption = format!(
        "{}. {BOX}, the line in it is the median, whiskers reach to values at \
         most 1.5 boxes away, points are the least and the largest value. {}",
        sentence(what),
        boxes.note
    );
    let caption = caption.trim_end().to_owned();
    Some(figure(boxes.id, boxes.title, caption, alt, &spec, &context.select))
}

fn cells_of(numbers: &BoxNumbers, unit: f64) -> [Value; 7] {
    let BoxNumbers { least, low, lower_quartile, median, upper_quartile, high, most, .. } =
        *numbers;
    [least, low, lower_quartile, median, upper_quartile, high, most].map(|it| number(it / unit))
}

/// What the boxes of the first scene show.
fn alt_of_boxes(
    context: &Context<'_>,
    scene: &Scene,
    boxes: &Boxes<'_>,
    seen: &[(&str, BoxNumbers)],
) -> String {
    let of = |value: f64| short(value / boxes.unit);
    let (one, list) = (context.name(scene), 12);
    if seen.iter().all(|(_, it)| it.least == it.most) {
        let each: Vec<String> =
            seen.iter().map(|(policy, it)| format!("{policy} {}", of(it.median))).collect();
        let each = words::list(&each, list);
        return format!("Points of {} on {one}, one for each policy: {each}.", boxes.what);
    }
    let each: Vec<String> = seen
        .iter()
        .map(|(policy, it)| {
            let (lower, upper) = (of(it.lower_quartile), of(it.upper_quartile));
            format!("{policy} {} (middle half {lower} to {upper})", of(it.median))
        })
        .collect();
    format!("Box plots of {} on {one}. Medians: {}.", boxes.what, words::list(&each, list))
}

/// `text` with a capital letter.
pub(super) fn sentence(text: &str) -> String {
    let mut signs = text.chars();
    let first = signs.next().map(|sign| sign.to_uppercase().collect::<String>());
    first.unwrap_or_default() + signs.as_str()
}
