//! The tables of two worlds that are compared.

use quipu_lab::table::{Align, Cell, Grid, Tone};

use super::{Agreement, Causes, Difference};

/// Page and critical times of both worlds, in ms, and what differs.
pub fn differences(agreement: &Agreement) -> Grid {
    let names = ["network", "page", "policy", "metric"];
    let numbers =
        ["loads", "emulated", "simulated", "difference", "95 %", "with costs", "difference"];
    let mut grid = grid(&names, &numbers).optional([(8, 0)]);
    for it in &agreement.differences {
        let Difference { emulated, simulated, with_costs, .. } = *it;
        let tone = if it.agrees() { Tone::Plain } else { Tone::Bad };
        let interval = it
            .interval
            .map_or(String::new(), |(low, high)| format!("{} to {}", percent(low), percent(high)));
        grid.row([
            Cell::from(it.network.clone()),
            Cell::from(it.page.clone()),
            Cell::from(it.policy.clone()),
            Cell::from(it.metric.name()),
            Cell::from(it.pairs.to_string()),
            Cell::from(millis(emulated as f64)),
            Cell::from(millis(simulated as f64)),
            Cell::toned(percent(it.difference), tone),
            Cell::from(interval),
            Cell::from(millis(with_costs as f64)),
            Cell::toned(percent(it.difference_with_costs), tone),
        ]);
    }
    grid
}

/// Where the difference of page times comes from, in ms.
pub fn causes(agreement: &Agreement) -> Grid {
    let times = ["page ms", "handshake", "timers", "waking", "batches", "datagrams"];
    let numbers = [&times[..], &["client's packets", "lost"]].concat();
    let mut grid = grid(&["network", "page", "policy"], &numbers);
    for it in &agreement.causes {
        let Causes { difference, connect, timers, waking, batches, datagrams, .. } = *it;
        let times = [difference, connect, timers, waking, batches, datagrams]
            .map(|time| signed(time as f64));
        let counts = [it.packets, it.lost].map(|count| format!("{count:+}"));
        let names = [&it.network, &it.page, &it.policy].map(String::clone);
        grid.row(names.into_iter().chain(times).chain(counts));
    }
    grid
}

/// A table with columns of names, and behind them of numbers.
fn grid(names: &[&str], numbers: &[&str]) -> Grid {
    let names = names.iter().map(|&title| (title, Align::Left));
    Grid::new(names.chain(numbers.iter().map(|&title| (title, Align::Right))))
}

fn millis(nanos: f64) -> String {
    format!("{:.1}", nanos / 1e6)
}

fn signed(nanos: f64) -> String {
    format!("{:+.2}", nanos / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}
