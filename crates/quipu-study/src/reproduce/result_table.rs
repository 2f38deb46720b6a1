//! Tables of results: the number of each cell.

use super::compare::{self, Estimate};
use super::places::{Point, Spot, Unit, moved, network_of, page_of, policy_of, unit_of};
use super::select::Runs;
use super::verdict::chance_of;
use quipu_record::threshold::{Amount, Dimension};
use quipu_record::verdict;
use quipu_scenario::experiment::{Line, ResultTable, Side, Stat};

/// What a cell looks at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    of: Point,
    /// What it is compared with.
    to: Option<Point>,
    over: Stat,
}

/// What the cells of `table` look at, row by row.
///
/// # Errors
/// If a name is unknown, or neither row nor column says which of several things is meant.
pub(super) fn places(table: &ResultTable, units: &[Unit]) -> Result<Vec<Vec<Place>>, String> {
    let of_row = |row: &Line| {
        let cell = |column: &Line| {
            let wrong = |reason: String| {
                format!("table {}: {}, {}: {reason}", table.name, row.name, column.name)
            };
            place(table, [row, column], units).map_err(wrong)
        };
        table.columns.iter().map(cell).collect()
    };
    table.rows.iter().map(of_row).collect()
}

fn place(table: &ResultTable, lines: [&Line; 2], units: &[Unit]) -> Result<Place, String> {
    let sides = lines.iter().filter_map(|line| line.of.as_ref());
    let said = |field: fn(&Side) -> Option<&String>| sides.clone().find_map(field);
    let unit = said(|side| side.variant.as_ref()).map_or(Ok(0), |name| unit_of(units, name))?;
    let plan = &units[unit].plan;
    let pages = plan.pages.iter().map(|page| page.note.name.as_str());
    let page = one_of("page", said(|side| side.page.as_ref()), pages)?;
    let page = page_of(plan, page)?;
    let networks = plan.networks.iter().map(|it| it.network.name.as_str());
    let network = one_of("network", said(|side| side.network.as_ref()), networks)?;
    let network = network_of(plan, network)?;
    let policies = plan.networks[network].policies.iter().map(|row| row.label.as_str());
    let policy = one_of("policy", said(|side| side.policy.as_ref()), policies)?;
    let policy = policy_of(plan, network, policy)?;
    let metric = sides.clone().find_map(|side| side.metric.as_ref()).unwrap_or(&table.metric);
    let of = Point { unit, spot: Spot { page, network, policy }, metric: metric.clone() };
    let to = table.to.as_ref().map(|side| moved(&of, side, units, metric)).transpose()?;
    // What is compared with itself is the number.
    let to = to.filter(|to| *to != of);
    let over = lines.iter().find_map(|line| line.over).unwrap_or(Stat::Percentile(50));
    Ok(Place { of, to, over })
}

/// The one that is `said`, or the only one that there is; the empty name if there is none.
fn one_of<'a>(
    what: &str,
    said: Option<&'a String>,
    mut names: impl Iterator<Item = &'a str>,
) -> Result<&'a str, String> {
    if let Some(name) = said {
        return Ok(name);
    }
    match (names.next(), names.next()) {
        (only, None) => Ok(only.unwrap_or_default()),
        (Some(one), Some(other)) => {
            let rest: Vec<&str> = [one, other].into_iter().chain(names).collect();
            Err(format!("neither row nor column says which {what}; there are {}", rest.join(", ")))
        }
        (None, Some(only)) => Ok(only),
    }
}

impl Place {
    /// Everything that it looks at.
    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        std::iter::once(&self.of).chain(&self.to)
    }
}

/// The numbers of `table`.
pub(super) fn numbers(
    table: &ResultTable,
    units: &[Unit],
    runs: &[Runs<'_>],
) -> verdict::ResultTable {
    // Jobs are made of tables whose places are all there.
    let places = places(table, units).unwrap_or_default();
    let cell = |place: &Place| {
        let found = estimate(place, units, runs)?;
        let dimension = match place.to {
            Some(_) => Dimension::Plain,
            None => place.of.metric.dimension(),
        };
        let text = Amount { value: found.value, dimension }.to_string();
        Some(verdict::TableCell { text, value: found.value, interval: found.interval })
    };
    let row = |(row, places): (&Line, &Vec<Place>)| verdict::TableRow {
        name: row.name.clone(),
        cells: places.iter().map(cell).collect(),
    };
    verdict::ResultTable {
        name: table.name.clone(),
        head: table.head.clone(),
        curves: table.curves,
        dimension: table.metric.dimension(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        rows: table.rows.iter().zip(&places).map(row).collect(),
    }
}

/// The number of a cell; `None` if nothing is there.
fn estimate(place: &Place, units: &[Unit], runs: &[Runs<'_>]) -> Option<Estimate> {
    let samples = |point: &Point| runs[point.unit].samples(point.spot, &point.metric).ok();
    let metric = &place.of.metric;
    let chance = chance_of(place.points(), units);
    let of = samples(&place.of)?;
    match &place.to {
        None => compare::value(&of, metric, place.over, &chance).ok(),
        Some(to) => compare::ratio(&of, &samples(to)?, [metric, &to.metric], &chance).ok(),
    }
}
