//! What a comparison says about its pages.

use quipu_base::Duration;
use quipu_web::synthetic::{Measured, Quantity, Sample};

use super::grid::{Align, Grid};
use super::screen::Screen;
use super::{bytes, time};
use crate::pages::LoadedPage;
use crate::pages::note::of_quantity;
use quipu_record::{PageNote, QuantityNote};
use quipu_scenario::{Compute, Origins};

/// One line about a page.
pub(super) fn headline(note: &PageNote, origins: Origins) -> String {
    let hosts = match (note.hosts, origins) {
        (1, _) => "1 host".to_owned(),
        (hosts, Origins::One) => format!("{hosts} hosts folded into one connection"),
        (hosts, Origins::Recorded) => format!("{hosts} hosts, each with a connection"),
    };
    let (name, objects, size) = (&note.name, note.objects, bytes(note.bytes));
    match &note.drawn {
        None => {
            let held = match note.held {
                Some(held) if held < objects => format!(" ({held} count for the page time)"),
                _ => String::new(),
            };
            format!("{name}: {objects} objects{held}, {size}, {hosts}\n")
        }
        Some(drawn) => {
            let (pages, (fewest, most)) = (drawn.pages, drawn.objects);
            let (least, largest) = (bytes(drawn.bytes.0), bytes(drawn.bytes.1));
            format!(
                "{name}: {pages} pages drawn, {fewest} to {most} objects (mean {objects}), \
                 {least} to {largest} (mean {size}), {hosts}\n"
            )
        }
    }
}

/// What was drawn, beside what the model was fitted to; nothing for a page that is always the same.
pub(super) fn drawn(note: &PageNote, screen: Screen) -> String {
    let Some(drawn) = &note.drawn else { return String::new() };
    let title =
        format!("{}: drawn pages compared with Table 1 of the ns-3 QUIC paper\n", note.name);
    format!("{}{}\n", screen.fold(&title), quantities(&drawn.quantities).on(screen))
}

/// The quantities of `sample` beside those that the ns-3 QUIC paper's Table 1 gives.
pub fn model(sample: &Sample) -> Grid {
    quantities(&Quantity::ALL.map(|quantity| of_quantity(quantity, sample.of(quantity))))
}

fn quantities(quantities: &[QuantityNote]) -> Grid {
    let titles = ["values", "mean", "paper", "std dev", "paper", "maximum", "paper"];
    let columns = std::iter::once(("quantity", Align::Left))
        .chain(titles.into_iter().map(|title| (title, Align::Right)));
    let mut grid = Grid::new(columns);
    // Notes are in the order of the table.
    for (note, quantity) in quantities.iter().zip(Quantity::ALL) {
        let Measured { mean, deviation, most } = quantity.measured();
        let ours = |value| if note.count == 0 { "–".to_owned() } else { number(value) };
        grid.row([
            quantity.name().to_owned(),
            note.count.to_string(),
            ours(note.mean),
            number(mean),
            ours(note.deviation),
            number(deviation),
            ours(note.most),
            number(most),
        ]);
    }
    grid
}

/// Whole from 1,000 on, with two decimals below.
fn number(value: f64) -> String {
    if value < 1_000.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// What of a recorded page no network makes faster, by how its recording is read; empty if nothing is.
pub fn floors(ways: &[(Compute, LoadedPage)], screen: Screen) -> String {
    if ways.iter().all(|(_, loaded)| loaded.page.page.floor().is_zero()) {
        return String::new();
    }
    let mut grid = Grid::new([
        ("", Align::Left),
        ("floor", Align::Right),
        ("% of recording", Align::Right),
        ("computing", Align::Right),
        ("timers", Align::Right),
        ("think time", Align::Right),
    ]);
    for (compute, loaded) in ways {
        let page = &loaded.page.page;
        let floor = page.floor();
        let share =
            loaded.report.load.on_load.filter(|on_load| !on_load.is_zero()).map(|on_load| {
                format!("{:.0}", 100.0 * floor.as_secs_f64() / on_load.as_secs_f64())
            });
        let objects = page.objects().iter();
        let sum = |all: Duration, one: Duration| all + one;
        let computing = objects.clone().map(|object| object.gap.computing);
        let computing = computing.fold(Duration::ZERO, sum);
        let timers = objects.clone().map(|object| object.gap.timer).fold(Duration::ZERO, sum);
        let thinking = objects.map(|object| object.think_time).fold(Duration::ZERO, sum);
        grid.row([
            compute.to_string(),
            time(floor),
            share.unwrap_or_else(|| "–".to_owned()),
            time(computing),
            time(timers),
            time(thinking),
        ]);
    }
    let title = "\nfloor (page time on an infinitely fast network), by reading of the recording\n";
    format!("{}{}", screen.fold(title), grid.on(screen))
}
