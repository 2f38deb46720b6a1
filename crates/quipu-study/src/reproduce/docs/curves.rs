//! Pictures of tables: a curve for each column over the rows.

use plotters::prelude::*;

use super::canvas::{Area, INK, Refused};
use quipu_record::threshold::Dimension;
use quipu_record::verdict::{ResultTable, TableCell, TableRow};

/// Tells curves apart, for colour-blind eyes too (after Okabe and Ito).
const COLORS: [RGBColor; 8] = [
    BLACK,
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(150, 150, 150),
];

/// Where each row is on the axis: at the number that its name is, or one after the other.
fn places(table: &ResultTable) -> Vec<f64> {
    let numbers: Option<Vec<f64>> = table.rows.iter().map(|row| row.name.parse().ok()).collect();
    numbers.unwrap_or_else(|| (0..table.rows.len()).map(|index| index as f64).collect())
}

/// The numbers of `table`, a curve for each column; times in seconds.
pub(super) fn draw<'b>(area: &Area<'b>, table: &ResultTable) -> Result<(), Refused<'b>> {
    let by = if table.dimension == Dimension::Time { 1e9 } else { 1.0 };
    let unit = match table.dimension {
        Dimension::Time => ", s",
        Dimension::Size => ", B",
        Dimension::Rate => ", bit/s",
        Dimension::Energy => ", J",
        Dimension::Plain => "",
    };
    let places = places(table);
    let ends = |cell: &TableCell| {
        let (low, high) = cell.interval.unwrap_or((cell.value, cell.value));
        (low / by, cell.value / by, high / by)
    };
    let cells = table.rows.iter().flat_map(|row| row.cells.iter().flatten());
    let most = cells.map(|cell| ends(cell).2).max_by(f64::total_cmp).unwrap_or(1.0);
    let first = places.iter().copied().min_by(f64::total_cmp).unwrap_or_default();
    let last = places.iter().copied().max_by(f64::total_cmp).unwrap_or(1.0);
    let room = ((last - first) * 0.03).max(0.1);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(first - room..last + room, 0.0..most * 1.05)?;
    let name_at = |place: &f64| {
        let at = places.iter().position(|other| (other - place).abs() < 1e-9);
        at.map_or(String::new(), |index| table.rows[index].name.clone())
    };
    let of_numbers = table.rows.iter().all(|row| row.name.parse::<f64>().is_ok());
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(&table.head)
        .y_desc(format!("{}{unit}", table.name))
        .x_labels(if of_numbers { 10 } else { table.rows.len() })
        .x_label_formatter(&|place| match of_numbers {
            true => place.to_string(),
            false => name_at(place),
        })
        .draw()?;
    for (index, column) in table.columns.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let cells = table.rows.iter().zip(&places).filter_map(|(row, place)| {
            let (low, value, high) = ends(row.cells.get(index)?.as_ref()?);
            Some((*place, low, value, high))
        });
        let all: Vec<(f64, f64, f64, f64)> = cells.collect();
        for (place, low, _, high) in all.iter().filter(|(_, low, _, high)| low < high) {
            let bar = vec![(*place, *low), (*place, *high)];
            chart.draw_series(std::iter::once(PathElement::new(bar, color.stroke_width(1))))?;
        }
        let curve: Vec<(f64, f64)> =
            all.iter().map(|(place, _, value, _)| (*place, *value)).collect();
        let dots = curve.iter().map(|point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(dots)?;
        let stroke = color.stroke_width(2);
        chart
            .draw_series(std::iter::once(PathElement::new(curve.clone(), stroke)))?
            .label(column)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], stroke));
    }
    // Where there is room.
    let sum = |row: Option<&TableRow>| -> f64 {
        row.into_iter().flat_map(|row| row.cells.iter().flatten()).map(|cell| cell.value).sum()
    };
    let corner = match sum(table.rows.last()) > sum(table.rows.first()) {
        true => SeriesLabelPosition::UpperLeft,
        false => SeriesLabelPosition::UpperRight,
    };
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(INK)
        .position(corner)
        .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> ResultTable {
        let row = |name: &&str| TableRow { name: (*name).to_owned(), cells: Vec::new() };
        ResultTable {
            name: "page".to_owned(),
            head: String::new(),
            curves: true,
            dimension: Dimension::Time,
            columns: Vec::new(),
            rows: names.iter().map(row).collect(),
        }
    }

    #[test]
    fn rows_stand_at_their_numbers_or_one_after_the_other() {
        assert_eq!(places(&table(&["1", "2.5", "10"])), [1.0, 2.5, 10.0]);
        assert_eq!(places(&table(&["1", "1 / 200", "x"])), [0.0, 1.0, 2.0]);
    }
}
