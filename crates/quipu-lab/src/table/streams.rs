//! The raw streams of a comparison: what a box plot of each shows.

use super::grid::{Align, Grid};
use super::words::ratio_text;
use super::{millis, time};
use quipu_base::Duration;
use quipu_record::RowSummary;

/// Load times of every stream with every policy, in milliseconds; empty with HTTP.
pub(super) fn boxes(rows: &[&RowSummary], base: &str) -> Grid {
    let numbers = ["runs", "minimum", "lower q.", "median", "upper q.", "maximum", "mean"];
    let columns = [("stream".to_owned(), Align::Left), ("policy".to_owned(), Align::Left)]
        .into_iter()
        .chain(numbers.map(|title| (title.to_owned(), Align::Right)))
        .chain([(format!("ratio to {base}"), Align::Left)]);
    let mut grid = Grid::new(columns);
    let streams = rows.iter().flat_map(|row| &row.streams).map(|stream| stream.stream + 1).max();
    for number in 0..streams.unwrap_or(0) {
        for row in rows {
            let Some(stream) = row.streams.iter().find(|stream| stream.stream == number) else {
                continue;
            };
            let latency = stream.latency_ns.map(|nanos| time(Duration::from_nanos(nanos)));
            let latency = latency.map(|latency| format!(", {latency}")).unwrap_or_default();
            grid.row([
                // As the papers count.
                format!("{}{latency}", number + 1),
                row.policy.clone(),
                stream.runs.to_string(),
                millis(stream.least),
                millis(stream.lower_quartile),
                millis(stream.median),
                millis(stream.upper_quartile),
                millis(stream.most),
                millis(stream.mean),
                ratio_text(stream.ratio, stream.ratio_low, stream.ratio_high),
            ]);
        }
    }
    grid
}
