//! `quipu pages`, `networks`, `traces`, `browsers`, `transports` and `schedulers`.

use quipu_lab::policies::Registry;
use quipu_lab::policy::conformance;
use quipu_lab::policy::registry::{Entry, Layer};
use quipu_lab::table::{Align, Grid, Tone};
use quipu_lab::{pages, policies};
use quipu_record::Metric;
use quipu_scenario::{Profile, ScenarioError};

use crate::failure::Failure;
use crate::own::Own;
use crate::terminal::{Format, Terminal};

pub(crate) fn pages(format: Format, terminal: Terminal) -> Result<(), Failure> {
    let mut grid = Grid::new([("page", Align::Left), ("description", Align::Left)]);
    for (name, about) in pages::builtin_pages() {
        grid.row([name, about]);
    }
    terminal.print_grid(&grid, format)
}

pub(crate) fn networks(format: Format, terminal: Terminal) -> Result<(), Failure> {
    let mut grid =
        Grid::new([("network", Align::Left), ("paths", Align::Left), ("description", Align::Left)]);
    for network in quipu_scenario::builtin_networks() {
        let paths: Vec<String> = network.paths.iter().map(|path| path.summary()).collect();
        grid.row([network.name, paths.join(", "), network.about]);
    }
    terminal.print_grid(&grid, format)
}

pub(crate) fn traces(format: Format, terminal: Terminal) -> Result<(), Failure> {
    let mut grid = Grid::new([
        ("trace", Align::Left),
        ("Mbit/s down", Align::Right),
        ("up", Align::Right),
        ("one-way delay", Align::Right),
        ("ping loss", Align::Right),
        ("length", Align::Right),
        ("description", Align::Left),
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
    terminal.print_grid(&grid, format)
}

pub(crate) fn browsers(format: Format, terminal: Terminal) -> Result<(), Failure> {
    let mut grid = Grid::new([
        ("browser", Align::Left),
        ("priorities", Align::Left),
        ("description", Align::Left),
    ]);
    for (name, priorities, about) in pages::browsers() {
        grid.row([name.to_owned(), priorities, about]);
    }
    terminal.print_grid(&grid, format)
}

/// What columns of tables mean.
pub(crate) fn columns(format: Format, terminal: Terminal) -> Result<(), Failure> {
    let titles = ["column", "metric", "description"].map(|title| (title, Align::Left));
    let mut grid = Grid::new(titles);
    for (metric, of_load) in Metric::of_loads() {
        let title = of_load.shown.map_or("–", |shown| shown.median);
        let about: Vec<&str> = metric.entry().about.split_whitespace().collect();
        grid.row([title, metric.name(), about.join(" ").trim_end_matches('.')]);
    }
    for (title, about) in [
        ("p95", "95 % of the runs do not exceed it"),
        (
            "page/bound, critical/bound",
            "median over the runs of the time divided by its lower bound",
        ),
        ("% wifi/lte", "share of each path in what the server sent"),
        ("lte alone", "a row: the same scenario over a network of that path and nothing else"),
    ] {
        grid.row([title, "–", about]);
    }
    terminal.print_grid(&grid, format)
}

pub(crate) fn transports(
    name: Option<&str>,
    format: Format,
    terminal: Terminal,
) -> Result<(), Failure> {
    let Some(name) = name else {
        let mut grid = Grid::new([("transport", Align::Left), ("description", Align::Left)]);
        for profile in Profile::ALL {
            grid.row([profile.to_string(), profile.about().to_owned()]);
        }
        return terminal.print_grid(&grid, format);
    };
    let profile: Profile = name.parse().map_err(Failure::usage)?;
    let text = format!("{profile}: {}\nsource: {}\n", profile.about(), profile.source());
    terminal.print(&text)?;
    let mut text = String::new();
    if !profile.values().is_empty() {
        let columns = ["otherwise than quipu", "value", "from"];
        let mut grid = Grid::new(columns.map(|title| (title, Align::Left)));
        for value in profile.values() {
            grid.row([value.field, value.value, value.source].map(str::to_owned));
        }
        crate::print("\n")?;
        terminal.print_grid(&grid, Format::Table)?;
    }
    if !profile.not_modelled().is_empty() {
        text.push_str("\nnot modelled:\n");
    }
    for line in profile.not_modelled() {
        text.push_str(&format!("- {line}\n"));
    }
    terminal.print(&text)
}

/// All policies, or those of one layer, or all about one.
pub(crate) fn schedulers(
    name: Option<&str>,
    layer: Option<&str>,
    format: Format,
    own: &Own<'_>,
) -> Result<(), Failure> {
    if let Some(name) = name {
        let text = policies::explain(own.registry, name).map_err(Failure::usage)?;
        return own.terminal.print(&text);
    }
    let layers: Vec<Layer> = match layer {
        None => Layer::ALL
            .into_iter()
            .filter(|layer| own.registry.of(*layer).next().is_some())
            .collect(),
        Some(name) => vec![layer_named(name)?],
    };
    if format != Format::Table {
        return own.terminal.print_grid(&of_layers(own.registry, &layers), format);
    }
    for (index, layer) in layers.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let title = own.terminal.screen.toned(&layer.to_string(), Tone::Strong);
        own.terminal.print(&format!("{gap}{title}: {}\n", layer.question()))?;
        own.terminal.print_grid(&of_layer(own.registry, *layer), format)?;
    }
    Ok(())
}

fn layer_named(name: &str) -> Result<Layer, Failure> {
    let found = Layer::ALL.into_iter().find(|layer| layer.to_string() == name);
    let names = Layer::ALL.iter().map(ToString::to_string);
    let names: Vec<String> = names.collect();
    found.ok_or_else(|| {
        let names = names.iter().map(String::as_str);
        Failure::Usage(format!("--layer: {}", ScenarioError::unknown("layer", name, names)))
    })
}

/// What stands in the columns behind the name of a policy.
fn cells(entry: &Entry) -> [String; 5] {
    let names: Vec<&str> = entry.params.iter().map(|param| param.name).collect();
    let parameters = if names.is_empty() { "–".to_owned() } else { names.join(", ") };
    let Entry { name, about, confidence, source, .. } = entry;
    [
        (*name).to_owned(),
        (*about).to_owned(),
        parameters,
        confidence.to_string(),
        (*source).to_owned(),
    ]
}

const TITLES: [&str; 5] = ["name", "description", "parameters", "confidence", "source"];

fn of_layer(registry: &Registry, layer: Layer) -> Grid {
    let mut grid = Grid::new(TITLES.map(|title| (title, Align::Left)));
    // The sources are long; `quipu schedulers NAME` has them.
    grid = grid.optional([(4, 0), (3, 1), (2, 2)]);
    registry.of(layer).for_each(|entry| grid.row(cells(entry)));
    grid
}

fn of_layers(registry: &Registry, layers: &[Layer]) -> Grid {
    let titles = std::iter::once("layer").chain(TITLES);
    let mut grid = Grid::new(titles.map(|title| (title, Align::Left)));
    for layer in layers {
        for entry in registry.of(*layer) {
            grid.row(std::iter::once(layer.to_string()).chain(cells(entry)));
        }
    }
    grid
}

/// Random scripts that [`check`] runs.
const SCRIPTS: u32 = 400;

pub(crate) fn check(text: &str, own: &Own<'_>) -> Result<(), Failure> {
    let mut unsound = 0;
    for (layer, verdict) in policies::check(own.registry, text, SCRIPTS).map_err(Failure::usage)? {
        let conformance::Verdict { scripts, decisions, refused, faults } = &verdict;
        let finding = if verdict.is_sound() { "keeps" } else { "breaks" };
        own.terminal.print(&format!(
            "{text} ({layer}) {finding} the rules of the seam: {scripts} random scripts, {decisions} \
             decisions, {refused} refused\n"
        ))?;
        for fault in faults {
            own.terminal.print(&format!("  {fault}\n"))?;
        }
        unsound += usize::from(!verdict.is_sound());
    }
    match unsound {
        0 => Ok(()),
        _ => Err(Failure::Run(format!("{text} does not keep the rules of the seam"))),
    }
}
