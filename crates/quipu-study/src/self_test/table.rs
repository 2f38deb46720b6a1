//! The cases of a test, as a table and as a file.

use quipu_lab::table::{Align, Grid};
use quipu_record::stats::quantile_of_numbers;

use super::{Case, Inference, Knowledge, METRICS};

/// A range is so much wider on either side: loads of one page differ by it by the order of packets alone.
const GRAIN: f64 = 0.02;

/// Cases of one kind, with one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Rates of the recordings, Mbit/s; zeros for whichever.
    pub recorded: Vec<u64>,
    /// Rates of the loads, Mbit/s.
    pub replayed: Reach,
    /// What the recordings tell.
    pub knowledge: Knowledge,
    /// How pages are inferred.
    pub inference: Inference,
    /// Name of the metric.
    pub metric: &'static str,
    /// Number of cases.
    pub cases: usize,
    /// Error of the inferred page as a share of the truth: its median and its 90th percentile.
    pub error: (f64, f64),
    /// The median of predicted over true.
    pub ratio: f64,
    /// The share of cases in which low to high holds the truth, and the median of high over low.
    pub range: Option<(f64, f64)>,
}

/// Rates of loads, as against those of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// This one, Mbit/s.
    At(u64),
    /// Those within a factor of five of the recording's, or between those of two.
    Near,
    /// Those beyond.
    Far,
}

/// True if a load is near enough to a recording that what the network hid can be known.
fn is_near(recorded: &[u64], replayed: u64) -> bool {
    match *recorded {
        [recorded] => recorded.max(replayed) <= 5 * recorded.min(replayed),
        [slow, .., fast] => (slow..=fast).contains(&replayed),
        [] => false,
    }
}

/// A row for each kind of cases, in a fixed order.
pub fn rows(cases: &[Case]) -> Vec<Row> {
    let mut kinds: Vec<_> = cases
        .iter()
        .map(|case| (case.knowledge, case.inference, case.recorded.clone(), case.replayed))
        .collect();
    kinds.sort();
    kinds.dedup();
    let mut rows = Vec::new();
    for (knowledge, inference, recorded, replayed) in kinds {
        let of_kind: Vec<&Case> = cases
            .iter()
            .filter(|case| {
                (case.knowledge, case.inference, case.replayed) == (knowledge, inference, replayed)
                    && case.recorded == recorded
            })
            .collect();
        for (metric, name) in METRICS.into_iter().enumerate() {
            let row = row(&of_kind, metric);
            rows.push(Row {
                recorded: recorded.clone(),
                replayed: Reach::At(replayed),
                knowledge,
                inference,
                metric: name,
                ..row
            });
        }
    }
    for knowledge in [Knowledge::Initiators, Knowledge::Times] {
        for inference in [Inference::AsRecorded, Inference::TakenOut] {
            for (joined, reach) in
                [(1, Reach::Near), (1, Reach::Far), (2, Reach::Near), (2, Reach::Far)]
            {
                let all: Vec<&Case> = cases
                    .iter()
                    .filter(|case| (case.knowledge, case.inference) == (knowledge, inference))
                    .filter(|case| case.recorded.len() == joined)
                    .filter(|case| is_near(&case.recorded, case.replayed) == (reach == Reach::Near))
                    .collect();
                if all.is_empty() {
                    continue;
                }
                for (metric, name) in METRICS.into_iter().enumerate() {
                    let row = row(&all, metric);
                    let recorded = vec![0; joined];
                    let replayed = reach;
                    rows.push(Row {
                        recorded,
                        replayed,
                        knowledge,
                        inference,
                        metric: name,
                        ..row
                    });
                }
            }
        }
    }
    rows
}

fn row(cases: &[&Case], metric: usize) -> Row {
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let at = |values: &[f64], per_mille| quantile_of_numbers(values, per_mille).unwrap_or(f64::NAN);
    let ratio = |case: &&Case| case.likely[metric] / case.truth[metric].max(1.0);
    let ratios = sorted(cases.iter().map(ratio).collect());
    let errors = sorted(ratios.iter().map(|ratio| (ratio - 1.0).abs()).collect());
    let ranges: Vec<(f64, f64, f64)> = cases
        .iter()
        .filter_map(|case| {
            let (low, high) = case.range?;
            let all = [low[metric], case.likely[metric], high[metric]];
            let low = all.into_iter().fold(f64::INFINITY, f64::min) * (1.0 - GRAIN);
            let high = all.into_iter().fold(0.0, f64::max) * (1.0 + GRAIN);
            Some((low, case.truth[metric], high))
        })
        .collect();
    let holds = ranges.iter().filter(|(low, truth, high)| low <= truth && truth <= high).count();
    let widths = sorted(ranges.iter().map(|(low, _, high)| high / low.max(1.0)).collect());
    Row {
        recorded: Vec::new(),
        replayed: Reach::Near,
        knowledge: Knowledge::Times,
        inference: Inference::TakenOut,
        metric: METRICS[metric],
        cases: cases.len(),
        error: (at(&errors, 500), at(&errors, 900)),
        ratio: at(&ratios, 500),
        range: (!ranges.is_empty()).then(|| (holds as f64 / ranges.len() as f64, at(&widths, 500))),
    }
}

impl Row {
    fn cells(&self) -> [String; 10] {
        let knowledge = match self.knowledge {
            Knowledge::Initiators => "initiators",
            Knowledge::Times => "times alone",
        };
        let inference = match self.inference {
            Inference::AsRecorded => "as recorded",
            Inference::TakenOut => "taken out",
        };
        let rate = |rate: &u64| if *rate == 0 { "any".to_owned() } else { rate.to_string() };
        let recorded = self.recorded.iter().map(rate).collect::<Vec<_>>().join("+");
        let replayed = match self.replayed {
            Reach::At(rate) => rate.to_string(),
            Reach::Near => "near".to_owned(),
            Reach::Far => "far".to_owned(),
        };
        let per_cent = |share: f64| format!("{:.1} %", share * 100.0);
        let (holds, width) = match self.range {
            Some((holds, width)) => (per_cent(holds), format!("{width:.2}")),
            None => (String::new(), String::new()),
        };
        [
            knowledge.to_owned(),
            inference.to_owned(),
            recorded,
            replayed,
            self.metric.to_string(),
            per_cent(self.error.0),
            per_cent(self.error.1),
            format!("{:.3}", self.ratio),
            holds,
            width,
        ]
    }
}

/// The rows as a table: those over all pairs of rates, or with `all` each pair too.
pub fn table(rows: &[Row], all: bool) -> Grid {
    let left = ["known", "waits"].map(|title| (title, Align::Left));
    let middle = [("at", Align::Right), ("over", Align::Right), ("metric", Align::Left)];
    let right = ["median", "90 %", "ratio", "in range", "width"].map(|title| (title, Align::Right));
    let grid = Grid::new(left.into_iter().chain(middle).chain(right));
    // The ratio says which way errors lie.
    let mut grid = grid.optional([(7, 0)]);
    for row in rows.iter().filter(|row| all || !matches!(row.replayed, Reach::At(_))) {
        grid.row(row.cells());
    }
    grid
}

/// All cases, a line each: times in ms.
pub fn to_csv(cases: &[Case]) -> String {
    let mut text = "page,recorded_mbit,replayed_mbit,initiators,inference,metric,truth_ms,likely_ms,low_ms,high_ms\n".to_owned();
    for case in cases {
        let recorded: Vec<String> = case.recorded.iter().map(u64::to_string).collect();
        for (metric, name) in METRICS.into_iter().enumerate() {
            let ms = |times: [f64; 3]| format!("{:.3}", times[metric] / 1e6);
            let range = case.range.map(|(low, high)| (ms(low), ms(high))).unwrap_or_default();
            text.push_str(&format!(
                "{},{},{},{},{},{name},{},{},{},{}\n",
                case.page,
                recorded.join("+"),
                case.replayed,
                case.knowledge == Knowledge::Initiators,
                if case.inference == Inference::TakenOut { "taken out" } else { "as recorded" },
                ms(case.truth),
                ms(case.likely),
                range.0,
                range.1,
            ));
        }
    }
    text
}
