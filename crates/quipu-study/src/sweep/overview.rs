//! What a sweep says, as text for a terminal: how policies fare over all, and the best of each place, as
//! many as can be read.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::files::Written;
use super::points::Sweep;
use super::summary::Line;
use quipu_lab::table::{Align, Grid, Screen, millis};

/// Places that are told one by one.
const MOST_PLACES: usize = 24;
const NOTHING: &str = "–";

/// What one policy did over all places.
#[derive(Default)]
struct Tally {
    places: usize,
    best: usize,
    /// Sum of the logarithms of its ratios to the first policy.
    logs: f64,
    ratios: Vec<f64>,
    /// Places where the whole interval is below or above 1.
    better: usize,
    worse: usize,
}

/// The overview of `sweep`, of which `written` is in the folder called `folder`.
pub fn overview(sweep: &Sweep, written: &Written, folder: &str, screen: Screen) -> String {
    let mut text = String::new();
    let places: Vec<&[Line]> = written.lines.chunk_by(is_same_place).collect();
    if !places.is_empty() {
        let _ = writeln!(text, "{}", policies(&places).on(screen));
        text.push_str(&best(sweep, &places, folder, screen));
    }
    let status = &written.status;
    let mut lines = String::new();
    let _ = writeln!(
        lines,
        "{} points, {} of {} runs in {folder}{}: runs, objects and paths as CSV and Parquet",
        status.points,
        status.done,
        status.planned,
        match status.world.as_str() {
            "" | "simulated" => String::new(),
            world => format!(" ({world})"),
        },
    );
    for failure in &written.failures {
        let _ = writeln!(lines, "failed: {failure}");
    }
    if status.failed > written.failures.len() {
        let more = status.failed - written.failures.len();
        let _ = writeln!(lines, "and {more} more failed: see summary.json");
    }
    text + &screen.fold(&lines)
}

fn is_same_place(one: &Line, next: &Line) -> bool {
    (one.point, &one.page, &one.network) == (next.point, &next.page, &next.network)
}

/// The line with the least median; the first of equals.
fn best_of(place: &[Line]) -> Option<&Line> {
    place.iter().min_by_key(|line| line.median)
}

fn policies(places: &[&[Line]]) -> Grid {
    let mut order: Vec<&str> = Vec::new();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for place in places {
        let least = best_of(place).map(|line| line.median);
        for line in *place {
            let tally = tallies.entry(&line.policy).or_insert_with(|| {
                order.push(&line.policy);
                Tally::default()
            });
            tally.places += 1;
            tally.best += usize::from(Some(line.median) == least);
            if let Some(ratio) = line.ratio {
                tally.logs += libm::log(ratio);
                tally.ratios.push(ratio);
            }
            tally.better += usize::from(line.interval.is_some_and(|(_, high)| high < 1.0));
            tally.worse += usize::from(line.interval.is_some_and(|(low, _)| low > 1.0));
        }
    }
    let base = places.first().and_then(|place| place.first()).map_or("", |line| &line.policy);
    let mut grid = Grid::new([
        ("policy".to_owned(), Align::Left),
        ("places".to_owned(), Align::Right),
        ("best in".to_owned(), Align::Right),
        (format!("page time to {base}"), Align::Right),
        ("least".to_owned(), Align::Right),
        ("most".to_owned(), Align::Right),
        ("faster in".to_owned(), Align::Right),
        ("slower in".to_owned(), Align::Right),
    ]);
    for policy in order {
        let Some(tally) = tallies.get(policy) else { continue };
        let number = |ratio: Option<f64>| ratio.map_or(NOTHING.to_owned(), |it| format!("{it:.3}"));
        let count = tally.ratios.len();
        let has_ratios = (count > 0).then_some(());
        let counted = |count: usize| has_ratios.map_or(NOTHING.to_owned(), |()| count.to_string());
        grid.row([
            policy.to_owned(),
            tally.places.to_string(),
            tally.best.to_string(),
            number(has_ratios.map(|()| libm::exp(tally.logs / count as f64))),
            number(tally.ratios.iter().copied().min_by(f64::total_cmp)),
            number(tally.ratios.iter().copied().max_by(f64::total_cmp)),
            counted(tally.better),
            counted(tally.worse),
        ]);
    }
    grid
}

fn best(sweep: &Sweep, places: &[&[Line]], folder: &str, screen: Screen) -> String {
    let fields = sweep.fields().map(|field| (field.to_owned(), Align::Left));
    let mut columns: Vec<(String, Align)> = fields.collect();
    columns.extend(["page", "network", "best policy"].map(|it| (it.to_owned(), Align::Left)));
    columns.extend(
        ["page ms", "to the first", "95 % interval"].map(|it| (it.to_owned(), Align::Right)),
    );
    let mut grid = Grid::new(columns);
    // Where the most is to be gained first; in the order of the file among equals.
    let mut order: Vec<&[Line]> = places.to_vec();
    let gain = |place: &[Line]| best_of(place).and_then(|line| line.ratio).unwrap_or(1.0);
    order.sort_by(|one, other| gain(one).total_cmp(&gain(other)));
    for line in order.iter().take(MOST_PLACES).filter_map(|place| best_of(place)) {
        let ratio = line.ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.3}"));
        let interval = line.interval;
        let interval =
            interval.map_or(NOTHING.to_owned(), |(low, high)| format!("{low:.3}–{high:.3}"));
        let texts = sweep.points.get(line.point).map_or(&[][..], |point| point.texts());
        let mut row = texts.to_vec();
        row.extend([line.page.clone(), line.network.clone(), line.policy.clone()]);
        row.extend([millis(line.median), ratio, interval]);
        grid.row(row);
    }
    let more = places.len().saturating_sub(MOST_PLACES);
    let text = match more {
        0 => "The best policy of each place\n".to_owned(),
        _ => {
            format!("Where the best policy gains most: {MOST_PLACES} of {} places\n", places.len())
        }
    };
    let mut text = screen.fold(&text);
    text.push_str(&grid.on(screen));
    if more > 0 {
        let _ = writeln!(text, "{more} more in {folder}/summary.json");
    }
    text.push('\n');
    text
}
