//! Pictures of the page, as SVG: claims beside the paper's numbers, which cells of a figure came out, and the
//! paper's numbers against ours.

use plotters::prelude::*;

use super::canvas::{Area, INK, Refused, WIDTH, drawn};
use super::curves;
use super::figure::{Claim, Figure};
use quipu_record::verdict::{DataRow, Outcome, RuleVerdict};

/// Where rows begin, after their names.
const LEFT: i32 = 300;
const RIGHT: i32 = 20;
const ROW: i32 = 26;
const TOP: i32 = 44;
const PALE: RGBColor = RGBColor(214, 214, 214);
/// Ids from which on a figure has a picture of its cells.
const CELLS: usize = 9;
/// Claims in one picture.
const MOST_ROWS: usize = 40;

/// Tells outcomes apart, for colour-blind eyes too (after Okabe and Ito).
fn color(outcome: Outcome) -> RGBColor {
    match outcome {
        Outcome::Reproduced => RGBColor(0, 114, 178),
        Outcome::Depends => RGBColor(86, 180, 233),
        Outcome::Direction => RGBColor(230, 159, 0),
        Outcome::Not => RGBColor(213, 94, 0),
        Outcome::Unclear => RGBColor(204, 121, 167),
        Outcome::Untestable => RGBColor(160, 160, 160),
    }
}

/// The pictures of `figure`: what their names end with, and their content.
pub(super) fn all(figure: &Figure<'_>) -> Vec<(String, String)> {
    let claims = figure.claims();
    let mut all = Vec::new();
    let rows: Vec<Row<'_>> = claims.iter().filter_map(Row::of).take(MOST_ROWS).collect();
    if !rows.is_empty() {
        let height = TOP + ROW * rows.len() as i32 + 62;
        all.extend(drawn(height, |area| draw_claims(area, &rows)).map(|svg| (String::new(), svg)));
    }
    if figure.ids.len() >= CELLS && !claims.is_empty() {
        let cells = Cells::of(figure);
        let height = TOP + 30 + ROW * cells.rows.len() as i32 + 62;
        let svg = drawn(height, |area| draw_cells(area, &cells, &claims));
        all.extend(svg.map(|svg| ("-cells".to_owned(), svg)));
    }
    let numbers: Vec<(f64, f64)> =
        figure.judged().flat_map(|judged| &judged.data).filter_map(both).collect();
    if !numbers.is_empty() {
        let svg = drawn(460, |area| draw_numbers(area, &numbers));
        all.extend(svg.map(|svg| ("-numbers".to_owned(), svg)));
    }
    for table in figure.judged().flat_map(|judged| &judged.tables).filter(|table| table.curves) {
        let svg = drawn(380, |area| curves::draw(area, table));
        all.extend(svg.map(|svg| (format!("-{}", table.name.replace(' ', "-")), svg)));
    }
    all
}

/// Our number in one id.
struct Point {
    value: f64,
    interval: Option<(f64, f64)>,
    outcome: Outcome,
}

/// A claim that can stand on an axis of ratios.
struct Row<'c> {
    name: String,
    points: Vec<Point>,
    /// The range over what the paper leaves open.
    range: Option<(f64, f64)>,
    paper: Vec<f64>,
    rule: &'c RuleVerdict,
    /// What all numbers are divided by: 1 of a ratio, else the paper's number.
    by: f64,
}

impl<'c> Row<'c> {
    /// The row of `claim`, if it is about a ratio, or about a number that the paper gives.
    fn of(claim: &'c Claim<'_>) -> Option<Row<'c>> {
        let rule = claim.first;
        let is_ratio = rule.test == "ratio";
        let by = if is_ratio { 1.0 } else { rule.paper.filter(|paper| *paper > 0.0)? };
        let is_drawn = |value: &f64| value.is_finite() && *value > 0.0;
        let scaled = |value: f64| Some(value / by).filter(is_drawn);
        let both = |(low, high)| Some((scaled(low)?, scaled(high)?));
        let point = |(_, rule, outcome): &(_, &RuleVerdict, Outcome)| {
            let interval = rule.deciding_interval.and_then(both);
            Some(Point { value: scaled(rule.deciding?)?, interval, outcome: *outcome })
        };
        let points: Vec<Point> = claim.all.iter().filter_map(point).collect();
        let agreements = claim.all.iter().filter_map(|(_, rule, _)| rule.agreement.as_ref());
        let ends =
            |it: &quipu_record::verdict::Agreement| Some((scaled(it.low?)?, scaled(it.high?)?));
        let range = agreements
            .filter_map(ends)
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let mut paper: Vec<f64> =
            claim.all.iter().filter_map(|(_, rule, _)| scaled(rule.paper?)).collect();
        paper.sort_unstable_by(f64::total_cmp);
        paper.dedup();
        let mark = if is_ratio { "" } else { " ÷" };
        let name = format!("{}{mark}", shortened(&rule.name, 44));
        (!points.is_empty()).then_some(Row { name, points, range, paper, rule, by })
    }

    /// Everything that the axis must have.
    fn extent(&self) -> impl Iterator<Item = f64> {
        let points = self.points.iter().flat_map(|Point { value, interval, .. }| {
            let (low, high) = interval.unwrap_or((*value, *value));
            [*value, low, high]
        });
        let range = self.range.into_iter().flat_map(|(low, high)| [low, high]);
        points.chain(range).chain(self.paper.iter().copied())
    }
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{}…", kept.trim_end())
}

/// A logarithmic axis of ratios in pixels.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Has all of `values` and 1, with some room.
    fn of(values: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (0.9_f64, 1.1_f64);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        Axis { low: (low / 1.08).max(1e-3), high: (high * 1.08).min(1e3) }
    }

    fn at(&self, value: f64) -> i32 {
        let part = libm::log(value.clamp(self.low, self.high) / self.low)
            / libm::log(self.high / self.low);
        let width = f64::from(WIDTH as i32 - LEFT - RIGHT);
        LEFT + libm::round(part * width) as i32
    }

    /// Values that are named, so that names do not touch.
    fn ticks(&self) -> Vec<f64> {
        const ALL: [f64; 23] = [
            1.0, 0.5, 2.0, 0.1, 10.0, 0.2, 5.0, 0.75, 1.5, 0.25, 3.0, 0.05, 20.0, 0.9, 1.1, 0.8,
            1.25, 0.6, 0.3, 0.02, 50.0, 0.01, 100.0,
        ];
        let mut kept: Vec<f64> = Vec::new();
        for value in ALL.into_iter().filter(|value| (self.low..=self.high).contains(value)) {
            if kept.iter().all(|other| (self.at(*other) - self.at(value)).abs() >= 36) {
                kept.push(value);
            }
        }
        kept
    }
}

fn words<'b>(area: &Area<'b>, text: &str, at: (i32, i32), size: i32) -> Result<(), Refused<'b>> {
    area.draw(&Text::new(text.to_owned(), at, ("sans-serif", size).into_font().color(&INK)))
}

fn line<'b>(area: &Area<'b>, ends: [(i32, i32); 2], style: ShapeStyle) -> Result<(), Refused<'b>> {
    area.draw(&PathElement::new(ends.to_vec(), style))
}

/// Colours and what they mean, in a line.
fn legend<'b>(area: &Area<'b>, y: i32, with_marks: bool) -> Result<(), Refused<'b>> {
    let mut x = 10;
    for outcome in Outcome::ALL.iter().filter(|outcome| **outcome != Outcome::Untestable) {
        area.draw(&Circle::new((x, y + 6), 5, color(*outcome).filled()))?;
        words(area, outcome.name(), (x + 9, y), 12)?;
        x += 24 + 7 * outcome.name().len() as i32;
    }
    if with_marks {
        diamond(area, (x + 2, y + 6))?;
        words(area, "the paper", (x + 11, y), 12)?;
        let style = PALE.filled();
        area.draw(&Rectangle::new([(x + 82, y + 2), (x + 102, y + 10)], style))?;
        words(area, "range over settings", (x + 107, y), 12)?;
    }
    Ok(())
}

fn diamond<'b>(area: &Area<'b>, (x, y): (i32, i32)) -> Result<(), Refused<'b>> {
    let corners = vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)];
    area.draw(&Polygon::new(corners, BLACK.filled()))
}

/// Each claim in a row: the range over settings, our numbers with intervals, the threshold and the paper's number.
fn draw_claims<'b>(area: &Area<'b>, rows: &[Row<'_>]) -> Result<(), Refused<'b>> {
    let axis = Axis::of(rows.iter().flat_map(Row::extent));
    let bottom = TOP + ROW * rows.len() as i32;
    legend(area, 10, true)?;
    for tick in axis.ticks() {
        let x = axis.at(tick);
        let style = if tick == 1.0 { INK.stroke_width(1) } else { PALE.stroke_width(1) };
        line(area, [(x, TOP - 4), (x, bottom)], style)?;
        let text = tick.to_string();
        words(area, &text, (x - 3 * text.len() as i32, bottom + 4), 12)?;
    }
    let about =
        "ratio; of names with ÷ our number by the paper's. Brackets: the claim's threshold.";
    words(area, about, (LEFT, bottom + 24), 12)?;
    for (index, row) in (0..).zip(rows) {
        let y = TOP + ROW * index + ROW / 2;
        words(area, &row.name, (8, y - 6), 12)?;
        if let Some((low, high)) = row.range {
            let corners = [(axis.at(low), y - 4), (axis.at(high).max(axis.at(low) + 1), y + 4)];
            area.draw(&Rectangle::new(corners, PALE.filled()))?;
        }
        for (end, inward) in [(row.rule.at_least, 4), (row.rule.at_most, -4)] {
            let Some(end) = end.map(|end| end / row.by).filter(|end| *end > 0.0) else { continue };
            let x = axis.at(end);
            let bracket = vec![(x + inward, y - 9), (x, y - 9), (x, y + 9), (x + inward, y + 9)];
            area.draw(&PathElement::new(bracket, INK.stroke_width(1)))?;
        }
        for paper in &row.paper {
            diamond(area, (axis.at(*paper), y))?;
        }
        for Point { value, interval, outcome } in &row.points {
            let color = color(*outcome);
            if let Some((low, high)) = interval {
                line(area, [(axis.at(*low), y), (axis.at(*high), y)], color.stroke_width(2))?;
            }
            let size = if row.points.len() > 4 { 3 } else { 5 };
            area.draw(&Circle::new((axis.at(*value), y), size, color.filled()))?;
        }
    }
    Ok(())
}

/// The ids of a figure as a table: the last axis in columns, all others in rows.
struct Cells<'a> {
    rows: Vec<String>,
    columns: Vec<String>,
    /// Each id with its row and column.
    places: Vec<(&'a str, usize, usize)>,
}

impl<'a> Cells<'a> {
    fn of(figure: &Figure<'a>) -> Cells<'a> {
        let mut cells = Cells { rows: Vec::new(), columns: Vec::new(), places: Vec::new() };
        for kept in &figure.ids {
            let (row, column) = match kept.axes.split_last() {
                Some(((_, column), others)) => {
                    let others: Vec<&str> =
                        others.iter().map(|(_, value)| value.as_str()).collect();
                    (others.join(" "), column.clone())
                }
                None => (kept.judged.id.clone(), String::new()),
            };
            let (row, column) =
                (position(&mut cells.rows, row), position(&mut cells.columns, column));
            cells.places.push((&kept.judged.id, row, column));
        }
        cells
    }
}

/// The position of `name` in `names`, which have it then.
fn position(names: &mut Vec<String>, name: String) -> usize {
    let known = names.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// Each id as a cell with a square for each claim, grey where it is not judged.
fn draw_cells<'b>(
    area: &Area<'b>,
    cells: &Cells<'_>,
    claims: &[Claim<'_>],
) -> Result<(), Refused<'b>> {
    let left = 170;
    let width = (WIDTH as i32 - left - RIGHT) / cells.columns.len().max(1) as i32;
    let square = ((width - 10) / claims.len().max(1) as i32).clamp(3, 18);
    legend(area, 10, false)?;
    let top = TOP + 24;
    for (index, column) in (0..).zip(&cells.columns) {
        words(area, column, (left + width * index, TOP + 4), 12)?;
    }
    for (index, row) in (0..).zip(&cells.rows) {
        words(area, row, (8, top + ROW * index + 7), 12)?;
    }
    for (id, row, column) in &cells.places {
        let (x, y) = (left + width * *column as i32, top + ROW * *row as i32 + 4);
        for (index, claim) in (0..).zip(claims) {
            let judged = claim.all.iter().find(|(kept, ..)| kept.judged.id == *id);
            let fill = judged.map_or(PALE, |(.., outcome)| color(*outcome));
            let corner = x + square * index;
            area.draw(&Rectangle::new(
                [(corner, y), (corner + square - 2, y + 16)],
                fill.filled(),
            ))?;
        }
    }
    let names: Vec<&str> = claims.iter().map(|claim| claim.first.name.as_str()).collect();
    let bottom = top + ROW * cells.rows.len() as i32;
    words(
        area,
        &shortened(&format!("squares from the left: {}", names.join(", ")), 150),
        (8, bottom + 6),
        11,
    )?;
    words(area, "grey: not judged there", (8, bottom + 24), 11)
}

/// The paper's number and ours, where both can stand on a logarithmic axis.
fn both(row: &DataRow) -> Option<(f64, f64)> {
    let here = row.here_value.filter(|here| *here > 0.0)?;
    (row.paper_value > 0.0).then_some((row.paper_value, here))
}

/// The paper's numbers against ours: on the line they are the same.
fn draw_numbers<'b>(area: &Area<'b>, numbers: &[(f64, f64)]) -> Result<(), Refused<'b>> {
    // Times in seconds.
    let numbers: Vec<(f64, f64)> =
        numbers.iter().map(|(one, other)| (one / 1e9, other / 1e9)).collect();
    let all = || numbers.iter().flat_map(|(paper, here)| [*paper, *here]);
    let low = all().min_by(f64::total_cmp).unwrap_or(0.1) / 1.1;
    let high = all().max_by(f64::total_cmp).unwrap_or(1.0) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((low..high).log_scale(), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("the paper, s")
        .y_desc("here, s")
        .x_label_formatter(&|value| format!("{value:.2}"))
        .y_label_formatter(&|value| format!("{value:.2}"))
        .draw()?;
    chart.draw_series(std::iter::once(PathElement::new(vec![(low, low), (high, high)], INK)))?;
    let color = color(Outcome::Reproduced);
    chart
        .draw_series(numbers.iter().map(|point| Circle::new(*point, 3, color.mix(0.5).filled())))?;
    Ok(())
}
