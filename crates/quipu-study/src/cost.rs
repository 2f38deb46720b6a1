//! What decisions cost: the processor's time that a policy takes while it serves an experiment.
//!
//! Such times depend on the machine and on what else it does, so they stand apart from all other
//! results, which are the same everywhere: nothing of a run depends on its being timed. The clock is
//! the caller's, as nothing here may read one.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::{self, Clock, Instruments, Meter, RunError, Taken};

/// Reads of the clock, one right after the other, by which the cost of one is known.
const CLOCK_SAMPLES: usize = 20_001;

/// Nanoseconds over the runs: the least, the middle and the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nanos {
    /// The run in which it was least.
    pub least: f64,
    /// The middle run.
    pub median: f64,
    /// The run in which it was most.
    pub most: f64,
}

/// What one policy took with one page over one network.
#[derive(Clone, Debug, PartialEq)]
pub struct CostRow {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// Decisions of the middle run.
    pub decisions: u64,
    /// Packets of the middle run.
    pub packets: u64,
    /// Per decision, without what it takes to note events.
    pub per_decision: Nanos,
    /// Per packet sent: all decisions and all events over all packets.
    pub per_packet: Nanos,
}

/// What policies took.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// What reading the clock takes, in nanoseconds; subtracted from each answer and each note.
    pub clock: u64,
    /// Runs of each row.
    pub runs: u32,
    /// By page, network and policy, in the order of the plan.
    pub rows: Vec<CostRow>,
}

/// Runs every cell of `plan`, one after the other on this thread, and takes the time of the policies
/// of the servers. The first runs of all rows come before the second ones, so that a slow spell of
/// the machine falls on all rows alike. `progress` is called after each run with the number done.
///
/// # Errors
/// The first run that fails.
pub fn measure(plan: &Plan, clock: &Clock, progress: &dyn Fn(usize)) -> Result<Costs, RunError> {
    let meter = Meter::new(Arc::clone(clock));
    let instruments = Instruments::default().with_meter(meter.clone());
    let overhead = clock_cost(clock);
    let mut cells: Vec<(usize, Cell)> = Vec::new();
    let mut places: Vec<Cell> = Vec::new();
    for cell in plan.cells() {
        if cell.run == 0 {
            places.push(cell);
        }
        cells.push((places.len().saturating_sub(1), cell));
    }
    cells.sort_by_key(|(place, cell)| (cell.run, *place));
    let mut taken: Vec<Vec<Taken>> = vec![Vec::new(); places.len()];
    for (done, (place, cell)) in (1..).zip(cells) {
        run::measure(plan, cell, &instruments, None)?;
        taken[place].push(meter.take());
        progress(done);
    }
    let rows = places.iter().zip(&taken).map(|(cell, taken)| row(plan, *cell, taken, overhead));
    Ok(Costs { clock: overhead, runs: plan.scenario.runs, rows: rows.collect() })
}

/// The middle of many reads of the clock, in nanoseconds.
fn clock_cost(clock: &Clock) -> u64 {
    let mut costs: Vec<u64> = (0..CLOCK_SAMPLES)
        .map(|_| {
            let began = clock();
            clock().saturating_sub(began)
        })
        .collect();
    costs.sort_unstable();
    costs[CLOCK_SAMPLES / 2]
}

fn row(plan: &Plan, cell: Cell, taken: &[Taken], clock: u64) -> CostRow {
    let network = &plan.networks[cell.network];
    let per = |part: &dyn Fn(&Taken) -> (u64, u64)| {
        let mut nanos: Vec<f64> = taken
            .iter()
            .map(|taken| {
                let (time, count) = part(taken);
                time as f64 / count.max(1) as f64
            })
            .collect();
        nanos.sort_unstable_by(f64::total_cmp);
        Nanos {
            least: nanos.first().copied().unwrap_or(0.0),
            median: nanos.get(nanos.len() / 2).copied().unwrap_or(0.0),
            most: nanos.last().copied().unwrap_or(0.0),
        }
    };
    let deciding =
        |taken: &Taken| taken.deciding.saturating_sub(clock.saturating_mul(taken.decisions));
    let noting = |taken: &Taken| taken.noting.saturating_sub(clock.saturating_mul(taken.events));
    let middle = |count: &dyn Fn(&Taken) -> u64| {
        let mut counts: Vec<u64> = taken.iter().map(count).collect();
        counts.sort_unstable();
        counts.get(counts.len() / 2).copied().unwrap_or(0)
    };
    CostRow {
        page: plan.pages.get(cell.page).map_or_else(String::new, |page| page.note.name.clone()),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        decisions: middle(&|taken| taken.decisions),
        packets: middle(&|taken| taken.packets),
        per_decision: per(&|taken| (deciding(taken), taken.decisions)),
        per_packet: per(&|taken| (deciding(taken) + noting(taken), taken.packets)),
    }
}

impl fmt::Display for Costs {
    /// A table in Markdown for each page and network.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut part = None;
        for row in &self.rows {
            if part != Some((&row.page, &row.network)) {
                part = Some((&row.page, &row.network));
                writeln!(f, "\n**{} over {}**\n", row.page, row.network)?;
                writeln!(f, "| policy | decisions | ns per decision | packets | ns per packet |")?;
                writeln!(f, "| --- | ---: | ---: | ---: | ---: |")?;
            }
            let spread = |nanos: &Nanos| {
                format!("{:.0} ({:.0}–{:.0})", nanos.median, nanos.least, nanos.most)
            };
            let mut line = String::new();
            write!(
                line,
                "| {} | {} | {} | {} | {} |",
                row.policy,
                row.decisions,
                spread(&row.per_decision),
                row.packets,
                spread(&row.per_packet)
            )?;
            writeln!(f, "{line}")?;
        }
        let (runs, clock) = (self.runs, self.clock);
        writeln!(f, "\nMiddle (least–most) of {runs} runs; {clock} ns for each read of the clock")?;
        writeln!(f, "are subtracted.")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use quipu_scenario::Scenario;

    const SCENARIO: &str = r#"
        pages = ["pw-pats-traditional"]
        runs = 2
        [policies]
        stream = ["rr"]
        path = ["minrtt"]
        joint = ["pw-pats"]
        baselines = false
        [[networks]]
        name = "two"
        paths = [
            { name = "a", down = { rate = "10mbit", delay = "5ms" } },
            { name = "b", down = { rate = "10mbit", delay = "9ms" } },
        ]
    "#;

    fn plan() -> Plan {
        Plan::new(Scenario::from_toml(SCENARIO, "test").unwrap()).unwrap()
    }

    /// Ten nanoseconds pass between two reads while the clock itself is measured, thirty later.
    fn clock() -> Clock {
        let reads = AtomicU64::new(0);
        Arc::new(move || {
            let read = reads.fetch_add(1, Ordering::Relaxed);
            let calm = 2 * CLOCK_SAMPLES as u64;
            10 * read.min(calm) + 30 * read.saturating_sub(calm)
        })
    }

    #[test]
    fn what_the_clock_takes_is_subtracted() {
        let costs = measure(&plan(), &clock(), &|_| {}).unwrap();
        assert_eq!((costs.clock, costs.runs, costs.rows.len()), (10, 2, 2));
        for row in &costs.rows {
            let exact = Nanos { least: 20.0, median: 20.0, most: 20.0 };
            assert_eq!(row.per_decision, exact, "{row:?}");
            // 1.3 MB in packets of 1,350 B.
            assert!(row.packets > 970 && row.decisions >= row.packets, "{row:?}");
            // Each packet was at least placed and sent.
            assert!(row.per_packet.median >= 60.0, "{row:?}");
        }
        let text = costs.to_string();
        assert!(text.contains("**pw-pats-traditional over two**"), "{text}");
        assert!(text.contains("| rr + minrtt |"), "{text}");
    }

    #[test]
    fn a_run_is_the_same_with_its_policies_timed() {
        let plan = plan();
        let meter = Meter::new(clock());
        let timed = Instruments::default().with_meter(meter.clone());
        for cell in plan.cells() {
            let records = run::measure(&plan, cell, &timed, None).unwrap();
            assert_eq!(records, run::measure(&plan, cell, &Instruments::default(), None).unwrap());
            assert!(meter.take().decisions > 0);
        }
    }
}
