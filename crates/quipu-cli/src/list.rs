//! `quipu pages`, `networks`, `traces`, `browsers`, `transports` and `schedulers`.

use quipu_lab::policies::Registry;
use quipu_lab::policy::conformance;
use quipu_lab::table::{Align, Grid};
use quipu_lab::{pages, policies};
use quipu_scenario::Profile;

use crate::failure::Failure;

pub(crate) fn pages() -> Result<(), Failure> {
    let mut grid = Grid::new([("page", Align::Left), ("what it is", Align::Left)]);
    for (name, about) in pages::builtin_pages() {
        grid.row([name, about]);
    }
    crate::print(&grid.to_string())
}

pub(crate) fn networks() -> Result<(), Failure> {
    let mut grid = Grid::new([
        ("network", Align::Left),
        ("paths", Align::Left),
        ("what it stands for", Align::Left),
    ]);
    for network in quipu_scenario::builtin_networks() {
        let paths: Vec<String> = network.paths.iter().map(|path| path.summary()).collect();
        grid.row([network.name, paths.join(", "), network.about]);
    }
    crate::print(&grid.to_string())
}

pub(crate) fn traces() -> Result<(), Failure> {
    let mut grid = Grid::new([
        ("trace", Align::Left),
        ("Mbit/s down", Align::Right),
        ("up", Align::Right),
        ("one-way delay", Align::Right),
        ("lost pings", Align::Right),
        ("length", Align::Right),
        ("what it is", Align::Left),
    ]);
    for trace in quipu_scenario::builtin_traces() {
        let rate = |index: usize| match trace.rates {
            Some(rates) => format!("{:.1}", rates[index].bits_per_sec() as f64 / 1e6),
            None => "–".to_owned(),
        };
        let (delay, lost) = match trace.pings {
            Some((delay, pings, lost)) => {
                (format!("{} ms", delay.as_millis()), format!("{lost} of {pings}"))
            }
            None => ("–".to_owned(), "–".to_owned()),
        };
        let length = format!("{} s", trace.length.as_millis() / 1_000);
        let name = trace.name.to_owned();
        grid.row([name, rate(0), rate(1), delay, lost, length, trace.about.to_owned()]);
    }
    crate::print(&grid.to_string())
}

pub(crate) fn browsers() -> Result<(), Failure> {
    let mut grid = Grid::new([
        ("browser", Align::Left),
        ("priorities", Align::Left),
        ("what it does", Align::Left),
    ]);
    for (name, priorities, about) in pages::browsers() {
        grid.row([name.to_owned(), priorities, about]);
    }
    crate::print(&grid.to_string())
}

pub(crate) fn transports(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        let mut grid = Grid::new([("transport", Align::Left), ("what it stands for", Align::Left)]);
        for profile in Profile::ALL {
            grid.row([profile.to_string(), profile.about().to_owned()]);
        }
        return crate::print(&grid.to_string());
    };
    let profile: Profile = name.parse().map_err(Failure::usage)?;
    let mut text = format!("{profile}: {}\nsource: {}\n", profile.about(), profile.source());
    if !profile.values().is_empty() {
        let columns = ["otherwise than quipu", "value", "from"];
        let mut grid = Grid::new(columns.map(|title| (title, Align::Left)));
        for value in profile.values() {
            grid.row([value.field, value.value, value.source].map(str::to_owned));
        }
        text.push_str(&format!("\n{grid}"));
    }
    if !profile.not_modelled().is_empty() {
        text.push_str("\nnot modelled:\n");
    }
    for line in profile.not_modelled() {
        text.push_str(&format!("- {line}\n"));
    }
    crate::print(&text)
}

pub(crate) fn schedulers(name: Option<&str>, registry: &Registry) -> Result<(), Failure> {
    let text = match name {
        Some(name) => policies::explain(registry, name).map_err(Failure::usage)?,
        None => registry.list(),
    };
    crate::print(&text)
}

/// Random scripts that [`check`] runs.
const SCRIPTS: u32 = 400;

pub(crate) fn check(text: &str, registry: &Registry) -> Result<(), Failure> {
    let mut unsound = 0;
    for (layer, verdict) in policies::check(registry, text, SCRIPTS).map_err(Failure::usage)? {
        let conformance::Verdict { scripts, decisions, refused, faults } = &verdict;
        let finding = if verdict.is_sound() { "keeps" } else { "breaks" };
        crate::print(&format!(
            "{text} ({layer}) {finding} the rules of the seam: {scripts} random scripts, {decisions} \
             decisions, {refused} refused\n"
        ))?;
        for fault in faults {
            crate::print(&format!("  {fault}\n"))?;
        }
        unsound += usize::from(!verdict.is_sound());
    }
    match unsound {
        0 => Ok(()),
        _ => Err(Failure::Run(format!("{text} does not keep the rules of the seam"))),
    }
}
