//! Numbers out of the samples of a time series.

use quipu_base::{Instant, Rate};

use super::stat::stat_of;
use quipu_record::SeriesRow;
use quipu_scenario::experiment::{Column, Measure, Metric, Stat};

/// What `measure` gives for the connection `flow`, and its path `path` if one is named.
pub(super) fn number(
    rows: &[SeriesRow],
    flow: &str,
    path: Option<u32>,
    measure: &Measure,
) -> Option<f64> {
    // Round trips and states are those of paths alone.
    let needs_path =
        |column: Column| matches!(column, Column::Srtt | Column::LatestRtt | Column::MinRtt);
    let columns = measure
        .column
        .map_or(vec![], |(above, below)| std::iter::once(above).chain(below).collect::<Vec<_>>());
    let of_path = measure.state.is_some() || columns.iter().any(|column| needs_path(*column));
    let path = path.or_else(|| of_path.then_some(0));
    let first_end = rows.first()?.end;
    let from = Instant::ZERO + measure.from;
    let until = measure.until.map(|until| Instant::ZERO + until);
    let inside = |row: &&SeriesRow| {
        row.end == first_end && row.at >= from && until.is_none_or(|until| row.at < until)
    };
    let own: Vec<&SeriesRow> =
        rows.iter().filter(inside).filter(|row| &*row.flow == flow && row.path == path).collect();
    if measure.metric == Metric::State {
        return of_state(&own, measure.state.as_deref()?, measure.stat);
    }
    let own: Vec<&SeriesRow> = own
        .into_iter()
        .filter(|row| measure.state.as_deref().is_none_or(|state| row.state == Some(state)))
        .collect();
    let (above, below) = measure.column?;
    let growth = |rows: &[&SeriesRow]| {
        let (first, last) = (rows.first()?, rows.last()?);
        Some((of(last, above)? - of(first, above)?, last.at.saturating_since(first.at)))
    };
    match measure.stat {
        Stat::Rate => {
            let (grown, time) = growth(&own)?;
            let seconds = time.as_nanos() as f64 / 1e9;
            (seconds > 0.0).then(|| grown * 8.0 / seconds)
        }
        Stat::Part => {
            let mut flows: Vec<&str> = Vec::new();
            for row in rows {
                if !flows.contains(&&*row.flow) {
                    flows.push(&row.flow);
                }
            }
            let of_flow = |name: &str| {
                let all = rows.iter().filter(inside);
                let rows: Vec<&SeriesRow> =
                    all.filter(|row| &*row.flow == name && row.path.is_none()).collect();
                growth(&rows).map_or(0.0, |(grown, _)| grown)
            };
            let all: f64 = flows.iter().map(|name| of_flow(name)).sum();
            (all > 0.0).then(|| of_flow(flow) / all)
        }
        stat => {
            let value = |row: &&SeriesRow| match below {
                None => of(row, above),
                Some(below) => {
                    let below = of(row, below).filter(|below| *below != 0.0)?;
                    Some(of(row, above)? / below)
                }
            };
            stat_of(stat, &own.iter().filter_map(value).collect::<Vec<f64>>())
        }
    }
}

fn of(row: &SeriesRow, column: Column) -> Option<f64> {
    let rate = |rate: Option<Rate>| rate.map(|rate| rate.bits_per_sec() as f64);
    let bytes = |bytes: quipu_base::Bytes| Some(bytes.0 as f64);
    let time = |time: Option<quipu_base::Duration>| time.map(|time| time.as_nanos() as f64);
    match column {
        Column::Cwnd => bytes(row.cwnd),
        Column::InFlight => bytes(row.in_flight),
        Column::PacingRate => rate(row.pacing_rate),
        Column::DeliveryRate => rate(row.delivery_rate),
        Column::Bandwidth => rate(row.bandwidth),
        Column::Srtt => time(row.srtt),
        Column::LatestRtt => time(row.latest_rtt),
        Column::MinRtt => time(row.min_rtt),
        Column::QueueDown => row.queue_down.and_then(bytes),
        Column::QueueUp => row.queue_up.and_then(bytes),
        Column::BytesSent => bytes(row.bytes_sent),
        Column::BytesAcked => bytes(row.bytes_acked),
        Column::BytesLost => bytes(row.bytes_lost),
        Column::Share => row.share_ppm.map(|share| f64::from(share) / 1e6),
    }
}

/// Times of `state` in the samples of a path.
fn of_state(rows: &[&SeriesRow], state: &str, stat: Stat) -> Option<f64> {
    // Beginning and end of each time that it was there; the end may be the last sample.
    let mut times: Vec<(f64, f64)> = Vec::new();
    let mut was_there = false;
    let mut inside = 0_usize;
    for row in rows {
        let at = row.at.as_nanos() as f64;
        let is_there = row.state == Some(state);
        inside += usize::from(is_there);
        match times.last_mut() {
            Some(last) if was_there => last.1 = at,
            _ if is_there => times.push((at, at)),
            _ => {}
        }
        was_there = is_there;
    }
    let begins: Vec<f64> = times.iter().map(|(begin, _)| *begin).collect();
    match stat {
        Stat::Count => Some(times.len() as f64),
        Stat::Part => (!rows.is_empty()).then(|| inside as f64 / rows.len() as f64),
        Stat::Period => {
            let distances: Vec<f64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
            stat_of(Stat::Percentile(50), &distances)
        }
        Stat::Length => {
            let lengths: Vec<f64> = times.iter().map(|(begin, end)| end - begin).collect();
            stat_of(Stat::Percentile(50), &lengths)
        }
        _ => begins.first().copied(),
    }
}
