//! `quipu page`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_lab::base::Seed;
use quipu_lab::pages::{LoadedPage, Reading, draw_sample};
use quipu_lab::table;

use quipu_record::write_whole;
use quipu_scenario::{Compute, Scenario};
use quipu_study::predict::{self, PredictError};
use quipu_study::self_test::{self, SelfTest};

use crate::failure::Failure;
use crate::terminal::{Format, Terminal};
use crate::{progress, stop};

/// How well pages are inferred from recordings.
pub(crate) fn self_test(
    pages: u64,
    seed: u64,
    all: bool,
    out: Option<&Path>,
    format: Format,
    terminal: Terminal,
) -> Result<(), Failure> {
    let cancelled = Arc::new(AtomicBool::new(false));
    stop::on_request(&cancelled)?;
    let test = SelfTest { pages, seed: Seed::new(seed), ..SelfTest::default() };
    let bar = progress::pages(pages);
    let cases = test.run(&cancelled, || bar.inc(1)).map_err(Failure::run)?;
    bar.finish_and_clear();
    if let Some(file) = out {
        write_whole(file, self_test::to_csv(&cases))
            .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))?;
    }
    terminal.print_grid(&self_test::table(&self_test::rows(&cases), all), format)?;
    if cancelled.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Several recordings as one, or one with its trace.
pub(crate) fn infer(
    files: &[String],
    trace: Option<&Path>,
    out: &Path,
    terminal: Terminal,
) -> Result<(), Failure> {
    let joined = match (trace, files) {
        (None, _) => quipu_lab::pages::join(files),
        (Some(trace), [file]) => quipu_lab::pages::with_trace(file, trace),
        (Some(_), _) => {
            let count = files.len();
            return Err(Failure::Usage(format!(
                "--trace is of one HAR file, not of {count}; add traces one by one, then join the files"
            )));
        }
    };
    let joined = joined.map_err(Failure::usage)?;
    write_whole(out, joined)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", out.display())))?;
    let name = out.to_string_lossy();
    let name = if name.contains('/') { name.into_owned() } else { format!("./{name}") };
    let ways = readings(&name, Seed::new(1))?;
    crate::print(&table::floors(&ways, terminal.screen))
}

/// What recordings at one speed say of others.
pub(crate) fn predict(files: &[String], format: Format, terminal: Terminal) -> Result<(), Failure> {
    let mut predictions = Vec::new();
    for file in files {
        predictions.extend(predict::predict(file).map_err(|error| match error {
            PredictError::Load(_) => Failure::run(error),
            error => Failure::usage(error),
        })?);
    }
    terminal.print_grid(&predict::table(&predictions), format)?;
    match format {
        Format::Table => terminal.print(&predict::sentences(&predictions)),
        Format::Json | Format::Csv => Ok(()),
    }
}

/// The page called `name`, however recordings may be read.
fn readings(name: &str, seed: Seed) -> Result<Vec<(Compute, LoadedPage)>, Failure> {
    let ways = [Compute::AsRecorded, Compute::Low, Compute::Likely, Compute::High];
    let load = |compute| {
        let scenario = Scenario { compute, ..Scenario::default() };
        let page = LoadedPage::load_or_draw(name, seed, Reading::of(&scenario));
        page.map(|page| (compute, page)).map_err(Failure::usage)
    };
    ways.into_iter().map(load).collect()
}

/// What the model of Pries et al. yields in `pages` pages, beside what it was fitted to.
pub(crate) fn model(name: &str, pages: u64, seed: u64, terminal: Terminal) -> Result<(), Failure> {
    let sample = draw_sample(name, Seed::new(seed), pages).map_err(Failure::usage)?;
    terminal.print(&format!(
        "{name}: {pages} pages of seed {seed}, compared with Table 1 of the ns-3 QUIC paper\n"
    ))?;
    terminal.print_grid(&table::model(&sample), Format::Table)
}

pub(crate) fn show(name: &str, all: bool, seed: u64, terminal: Terminal) -> Result<(), Failure> {
    let ways = readings(name, Seed::new(seed))?;
    let mut text = String::new();
    if let Some((_, page)) = ways.first() {
        let report = &page.report;
        text = if all { format!("{report:#}\n") } else { format!("{report}\n") };
    }
    terminal.print(&text)?;
    crate::print(&table::floors(&ways, terminal.screen))
}
