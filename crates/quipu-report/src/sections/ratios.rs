//! Policies by network: ratios to the first policy, in a table of colours, with intervals, and over how
//! unlike the paths are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::data::{Rows, text};
use super::{Context, Draft, swept, words};
use crate::aggregate::heat::{Unlike, heat, unlike};
use crate::document::{Choice, Control, Figure, Section, number};
use crate::results::{Cell, Ratio, Scene};
use crate::spec::{Field, Layer, Mark, Spec};
use quipu_record::Metric;

/// Columns of a table of colours: beyond this they cannot be told apart.
const MOST_COLUMNS: usize = 60;

/// Colours of ratios reach at most this far from 1, and at least [`LEAST_WIDTH`].
const MOST_WIDTH: f64 = 0.5;
/// So that a difference of nothing has no strong colour.
const LEAST_WIDTH: f64 = 0.05;

/// Ratios of page times to those of the first policy.
pub(super) fn by_network(context: &Context<'_>, draft: &mut Draft) {
    let figures = [intervals(context, draft), colours(context, draft), heat_map(context, draft)];
    let mut figures: Vec<Figure> = figures.into_iter().flatten().collect();
    figures.extend(swept::lines(context, draft));
    if figures.is_empty() {
        return;
    }
    let bases: BTreeSet<&str> = context
        .scenes
        .iter()
        .filter_map(|scene| base(scene))
        .map(|it| it.policy.as_str())
        .collect();
    let bases: Vec<&str> = bases.into_iter().collect();
    draft.section(Section {
        id: "ratios".to_owned(),
        title: "Policies by network".to_owned(),
        text: vec![format!(
            "Page times as ratios to those of the first policy, {}: geometric means over pairs of the \
             same run, which has the same links, losses and page for every policy. Below 1 is faster.",
            words::list(&bases, 3)
        )],
        figures,
        tables: Vec::new(),
    });
}

/// The policy that ratios of a scene are to.
fn base(scene: &Scene) -> Option<&Cell> {
    scene.cells.iter().find(|cell| !cell.values(Metric::PageTime).is_empty())
}

/// Ratios of `scene` to its first policy; nothing if that is the only one.
fn ratios(scene: &Scene) -> Vec<(&Cell, Ratio)> {
    let cells = scene.cells.iter();
    cells.filter_map(|cell| Some((cell, *cell.ratios.get(&Metric::PageTime)?))).collect()
}

/// Ratios with their intervals, for one scene.
fn intervals(context: &Context<'_>, draft: &mut Draft) -> Option<Figure> {
    let id = "ratio-intervals";
    let axes = context.select.columns();
    let columns = ["policy", "ratio", "low", "high", "above", "one"].map(str::to_owned);
    let mut rows = Rows::new(axes.chain(columns));
    let mut told = None;
    for scene in &context.scenes {
        let place = context.select.cells(&context.folders.results, scene);
        let found = ratios(scene);
        for (cell, ratio) in &found {
            let (low, high) = ratio.interval.unwrap_or((ratio.mean, ratio.mean));
            let above = cell.ratios.get(&Metric::PageAboveFloor);
            let above = above.map_or(Value::Null, |ratio| number(ratio.mean));
            let cells = [text(&cell.policy), number(ratio.mean), number(low), number(high), above];
            rows.row(place.iter().cloned().chain(cells).chain([Value::from(1)]));
        }
        if told.is_none() && !found.is_empty() {
            let each: Vec<String> = found
                .iter()
                .map(|(cell, it)| {
                    let above = cell.ratios.get(&Metric::PageAboveFloor);
                    let above = above.map_or(String::new(), |ratio| {
                        format!(", above the floor {}", words::ratio(ratio.mean))
                    });
                    format!(
                        "{} {}{}{above}",
                        cell.policy,
                        words::ratio(it.mean),
                        words::interval(it)
                    )
                })
                .collect();
            told = Some(format!(
                "Ratios of the page time on {} to that of {}: {}.",
                context.name(scene),
                base(scene).map(|cell| cell.policy.as_str()).unwrap_or_default(),
                words::list(&each, 12)
            ));
        }
    }
    let alt = told?;
    let tooltip = || {
        vec![
            Field::row("policy", "policy", []),
            Field::number("ratio", "ratio of page times"),
            Field::number("low", "95 % from"),
            Field::number("high", "95 % to"),
            Field::number("above", "ratio above the floor"),
        ]
    };
    let title = "page time to the first policy, ratio";
    let of = |column| Field::number(column, title).from_least();
    let spec = Spec::steps(id, 24)
        .with("y", Field::row("policy", "policy", context.policies()))
        .band(1.0 - LEAST_WIDTH, 1.0 + LEAST_WIDTH)
        .layer(
            Layer::new(Mark::rule().width(2.0))
                .with("x", of("low"))
                .with("x2", Field::end("high"))
                .with("tooltip", tooltip()),
        )
        .layer(
            Layer::new(Mark::point(70.0))
                .with("x", of("ratio"))
                .with("color", Field::name("policy", "policy", context.colours()).no_legend())
                .with("tooltip", tooltip()),
        )
        .layer(Layer::new(Mark::tick(22.0).opacity(0.35)).with("x", of("one")));
    draft.dataset(id, rows.build());
    Some(Figure {
        id: id.to_owned(),
        title: "Ratios with their intervals".to_owned(),
        caption:
            "Page time as a ratio to that of the first policy, with its 95 % interval; the faint \
                  line is 1, the band 5 % to either side, which is always shown so that small \
                  differences look small. An interval that does not contain 1 is a clear difference."
                .to_owned(),
        alt,
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls: context.select.controls(),
    })
}

/// Ratios of all policies over all networks, as colours.
fn colours(context: &Context<'_>, draft: &mut Draft) -> Option<Figure> {
    let id = "ratio-colours";
    let results = &context.folders.results;
    let select = context.select.without_network();
    let names: Vec<String> = context
        .scenes
        .iter()
        .map(|scene| match select.is_whole() {
            true => context.name(scene),
            false => scene.place.network.clone(),
        })
        .collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < 2 || distinct.len() > MOST_COLUMNS {
        return None;
    }
    let whole = select.is_whole();
    let axes: Vec<String> = if whole { Vec::new() } else { select.columns().collect() };
    let columns = ["over", "policy", "ratio", "shown"].map(str::to_owned);
    let mut rows = Rows::new(axes.into_iter().chain(columns));
    let mut width = LEAST_WIDTH;
    let mut extremes: Vec<(f64, String)> = Vec::new();
    for (scene, over) in context.scenes.iter().zip(&names) {
        let place = if whole { Vec::new() } else { select.cells(results, scene) };
        for (cell, ratio) in ratios(scene) {
            width = width.max((ratio.mean - 1.0).abs()).min(MOST_WIDTH);
            let shown = text(&format!("{:.2}", ratio.mean));
            let cells = [text(over), text(&cell.policy), number(ratio.mean), shown];
            rows.row(place.iter().cloned().chain(cells));
            extremes.push((ratio.mean, format!("{} on {}", cell.policy, context.name(scene))));
        }
    }
    let least = extremes.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let most = extremes.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let alt = format!(
        "A table of colours: {} by {}. Ratios reach from {} ({}) to {} ({}).",
        words::count(context.policies().len() as u64, "policy", "policies"),
        words::count(distinct.len() as u64, "network", "networks"),
        words::ratio(least.0),
        least.1,
        words::ratio(most.0),
        most.1
    );
    let title = "page time to the first policy, ratio";
    let over = if whole { "where" } else { "network" };
    let spec = Spec::steps(id, 24)
        .with("x", Field::row("over", over, &names).angle(-40))
        .with("y", Field::row("policy", "policy", context.policies()))
        .ratio_cells(
            width,
            vec![
                Field::row("over", over, []),
                Field::row("policy", "policy", []),
                Field::number("ratio", title),
            ],
        );
    draft.dataset(id, rows.build());
    Some(Figure {
        id: id.to_owned(),
        title: "Ratios on every network".to_owned(),
        caption: "Page time as a ratio to that of the first policy; below 1 is faster.".to_owned(),
        alt,
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls: if whole { Vec::new() } else { select.controls() },
    })
}

/// The choice of the heat map that is the fastest policy of each scene.
const FASTEST: &str = "the fastest";

/// What is chosen in the heat map: the cells of the selection, and the policy.
type Chosen = (Vec<String>, String);

/// Ratios over how unlike the two paths of networks are.
fn heat_map(context: &Context<'_>, draft: &mut Draft) -> Option<Figure> {
    let id = "heat-map";
    let results = &context.folders.results;
    let select = context.select.without_paths(&context.folders.networks);
    let whole = select.is_whole();
    let mut points: BTreeMap<Chosen, Vec<(Unlike, f64)>> = BTreeMap::new();
    let mut order: Vec<(Vec<String>, Vec<Value>)> = Vec::new();
    for scene in &context.scenes {
        let Some(at) = context.folders.networks.at(&scene.place).and_then(unlike) else { continue };
        let place = if whole { Vec::new() } else { select.cells(results, scene) };
        let key: Vec<String> = place.iter().map(Value::to_string).collect();
        if !order.iter().any(|(known, _)| *known == key) {
            order.push((key.clone(), place));
        }
        let found = ratios(scene);
        let least = found.iter().map(|(_, ratio)| ratio.mean).fold(1.0, f64::min);
        if !found.is_empty() {
            points.entry((key.clone(), FASTEST.to_owned())).or_default().push((at, least));
        }
        for (cell, ratio) in found {
            points.entry((key.clone(), cell.policy.clone())).or_default().push((at, ratio.mean));
        }
    }
    let axes: Vec<String> = if whole { Vec::new() } else { select.columns().collect() };
    let columns = ["policy", "rate", "delay", "rate_ratio", "delay_ratio", "ratio", "shown", "n"];
    let mut rows = Rows::new(axes.into_iter().chain(columns.map(str::to_owned)));
    let (mut width, mut told, mut places) = (LEAST_WIDTH, None, BTreeSet::new());
    let mut used = BTreeSet::new();
    let mut labels = (BTreeMap::new(), BTreeMap::new());
    for (key, place) in &order {
        for policy in std::iter::once(FASTEST).chain(context.policies().iter().map(String::as_str))
        {
            let Some(points) = points.get(&(key.clone(), policy.to_owned())) else { continue };
            let cells = heat(points);
            used.insert(policy.to_owned());
            for cell in &cells {
                width = width.max((cell.value - 1.0).abs()).min(MOST_WIDTH);
                places.insert((cell.rate.1.clone(), cell.delay.1.clone()));
                labels.0.insert((cell.rate.0 * 1e3) as i64, cell.rate.1.clone());
                labels.1.insert((cell.delay.0 * 1e3) as i64, cell.delay.1.clone());
                let named = [text(policy), text(&cell.rate.1), text(&cell.delay.1)];
                let numbers = [number(cell.rate.0), number(cell.delay.0), number(cell.value)];
                let shown = [text(&format!("{:.2}", cell.value)), number(cell.count as f64)];
                rows.row(place.iter().cloned().chain(named).chain(numbers).chain(shown));
            }
            if told.is_none() {
                told = cells.iter().min_by(|one, other| one.value.total_cmp(&other.value)).cloned();
            }
        }
    }
    let told = told?;
    if places.len() < 2 {
        return None;
    }
    let alt = format!(
        "A heat map with {} cells. The fastest policies gain most where the faster path has {} times \
         the rate of the other and {} times its round trip: there they need {} of the time of the \
         first policy.",
        places.len(),
        told.rate.1,
        told.delay.1,
        words::ratio(told.value)
    );
    let rates: Vec<String> = labels.0.into_values().collect();
    let delays: Vec<String> = labels.1.into_values().rev().collect();
    let (x, y) = ("rate of the faster path by the other's", "its round trip by the other's");
    let spec = Spec::steps(id, 34)
        .with("x", Field::row("rate", x, &rates).angle(0))
        .with("y", Field::row("delay", y, &delays))
        .ratio_cells(
            width,
            vec![
                Field::row("policy", "policy", []),
                Field::number("rate_ratio", x),
                Field::number("delay_ratio", y),
                Field::number("ratio", "page time to the first policy, ratio"),
                Field::number("n", "networks and pages"),
            ],
        );
    let mut controls = if whole { Vec::new() } else { select.controls() };
    let names = std::iter::once(FASTEST).chain(context.policies().iter().map(String::as_str));
    let options = names
        .filter(|name| used.contains(*name))
        .map(|name| Choice { value: name.to_owned(), label: name.to_owned() });
    controls.push(Control {
        id: "policy".to_owned(),
        label: "policy".to_owned(),
        options: options.collect(),
        default: FASTEST.to_owned(),
    });
    draft.dataset(id, rows.build());
    Some(Figure {
        id: id.to_owned(),
        title: "Ratios by rate ratio and delay ratio".to_owned(),
        caption: "Networks of two paths by the ratio of their rates towards the client and of their \
                  round trips, the path with the larger rate by the other; each cell has the geometric \
                  mean of the page time's ratio to that of the first policy. Below 1 is faster."
            .to_owned(),
        alt,
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls,
    })
}
