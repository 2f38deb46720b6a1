//! `quipu reproduce`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_lab::plan::Maker;
use quipu_lab::table::{Align, Grid};
use quipu_record::verdict::{Counts, Judged};
use quipu_scenario::experiment::Case;
use quipu_study::reproduce::{
    Effort, Job, Origin, Page, Place, Progress, Todo, beside, builtin, choose, reproduce, rules,
    survivors, terminal, unexplained,
};

use crate::args::ReproduceOptions;
use crate::emulated_runs::SIMULATED;
use crate::failure::Failure;
use crate::own::Own;
use crate::terminal::{Format, Terminal, json};
use crate::{progress, stop, world};

pub(crate) fn run(options: &ReproduceOptions, own: &Own<'_>) -> Result<(), Failure> {
    if let Some(file) = &options.check_docs {
        let cases = builtin().map_err(Failure::usage)?;
        let page = read_page(file)?;
        return page
            .check(file, &cases)
            .and_then(|()| page.check_summaries())
            .and_then(|()| page.check_by_chance())
            .map_err(|reason| Failure::Run(format!("{}: {reason}", file.display())));
    }
    let chosen = choose(&options.names).map_err(Failure::usage)?;
    if options.list {
        return list(chosen.iter().map(|(case, _)| case), options.format.format, own.terminal);
    }
    let emulator = world::maker(options.world)?;
    if emulator.is_some() {
        world::refuse_simulated([
            (options.jobs.is_some(), "--jobs", "none, as one load is made after the other,"),
            (options.docs.is_some(), "--docs", "none, as the page is about simulated runs,"),
        ])?;
    }
    let maker = emulator.as_ref().map(world::as_maker);
    let runs = options.runs;
    let effort = Effort { quick: options.quick, runs, settings: !options.no_settings };
    let planned = |maker: Option<&Arc<dyn Maker>>| {
        let made = |(case, origin): &(Case, Origin)| {
            Job::new(case.clone(), origin, effort, own.registry, &own.program, maker)
        };
        chosen.iter().map(made).collect::<Result<Vec<Job>, _>>().map_err(Failure::usage)
    };
    let jobs = planned(maker.as_ref())?;
    if emulator.is_some() {
        jobs.iter()
            .flat_map(Job::plans)
            .try_for_each(|plan| world::check(&plan.scenario, &own.stacks))?;
    }
    let docs = match &options.docs {
        Some(file) => Some((file, page_before(file, &options.names, &jobs)?)),
        None => None,
    };
    let ids = jobs.len();
    let place = Place {
        out: options.out.clone(),
        force: options.force,
        jobs: options.jobs.map(usize::from),
        deals: options.shuffles,
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    stop::on_request(&cancelled)?;
    // The same in the simulator, to compare with.
    let simulated = match emulator {
        None => None,
        Some(_) => {
            let place = Place { out: options.out.join(SIMULATED), ..place };
            let todo = Todo::new(planned(None)?, &place).map_err(Failure::usage)?;
            Some(run_all(todo, &place, (ids, &cancelled), None)?)
        }
    };
    let todo = Todo::new(jobs, &place).map_err(Failure::usage)?;
    let table = (options.format.format == Format::Table).then_some(own.terminal);
    let all = run_all(todo, &place, (ids, &cancelled), table);
    if let Some(emulator) = &emulator {
        emulator.write(&options.out)?;
    }
    let all = all?;
    match options.format.format {
        Format::Table => {
            own.terminal.print(&format!("{}\n", Counts::of(&all)))?;
            if let Some(simulated) = &simulated {
                own.terminal.print("\nin both worlds\n")?;
                own.terminal.print_grid(&beside(simulated, &all), Format::Table)?;
            }
            if options.shuffles > 0 {
                own.terminal.print(&survivors(&all))?;
            }
        }
        Format::Json => crate::print(&json(&all))?,
        Format::Csv => crate::print(&rules(&all))?,
    }
    if let Some((file, before)) = docs {
        let page = before.with(&all, &builtin().map_err(Failure::usage)?);
        page.write(file).map_err(|(file, error)| {
            Failure::Run(format!("cannot write {}: {error}", file.display()))
        })?;
    }
    judge(&all)
}

/// The page of the docs in `file`, by what lies beside it.
fn read_page(file: &Path) -> Result<Page, Failure> {
    let again = "write it again with `quipu reproduce --docs FILE`";
    Page::read(file).map_err(|reason| Failure::Run(format!("{reason}; {again}")))
}

/// The page that `jobs` are to be written into: the one in `file` if they are some ids by name, else none.
fn page_before(file: &Path, names: &[String], jobs: &[Job]) -> Result<Page, Failure> {
    let builtin = builtin().map_err(Failure::usage)?;
    let is_builtin = |case: &Case| {
        builtin.iter().any(|other| (&other.id, &other.text) == (&case.id, &case.text))
    };
    if let Some(own) = jobs.iter().find(|job| !is_builtin(&job.case)) {
        let id = &own.case.id;
        let message =
            format!("--docs: {id} does not come with the program, which the page is about");
        return Err(Failure::Usage(message));
    }
    if names.is_empty() { Ok(Page::default()) } else { read_page(file) }
}

/// Runs what is to be run, with a progress bar and a table for each id as it ends.
fn run_all(
    todo: Todo,
    place: &Place,
    (ids, cancelled): (usize, &Arc<AtomicBool>),
    table: Option<Terminal>,
) -> Result<Vec<Judged>, Failure> {
    let show = |judged: &Judged| match table {
        Some(on) => on.print(&terminal(judged, on.screen)),
        None => Ok(()),
    };
    for judged in todo.kept() {
        show(judged)?;
    }
    let bar = progress::bar(todo.runs() as u64);
    let tell = |what: Progress<'_>| match what {
        Progress::Run => bar.inc(1),
        Progress::Judged(judged) => {
            // Results are on disk; a terminal that is gone is no reason to stop.
            bar.suspend(|| show(judged).unwrap_or_default());
        }
    };
    let all = reproduce(todo, place, cancelled, &tell);
    bar.finish_and_clear();
    let all = all.map_err(Failure::run)?;
    if cancelled.load(Ordering::Relaxed) && all.len() < ids {
        return Err(Failure::Interrupted);
    }
    Ok(all)
}

/// Fails if a run failed, a rule ended otherwise than its file expects, or a claim holds by chance without a reason.
fn judge(all: &[Judged]) -> Result<(), Failure> {
    let failed: usize = all.iter().map(|judged| judged.failures.len()).sum();
    let names = all.iter().flat_map(|judged| {
        judged.surprises().map(move |rule| {
            format!("{}/{} {} instead of {}", judged.id, rule.name, rule.verdict, rule.expect)
        })
    });
    let names: Vec<String> = names.collect();
    if failed > 0 {
        return Err(Failure::Run(format!("{failed} runs failed")));
    }
    let unexplained = unexplained(all);
    match names.len() {
        0 if unexplained.is_empty() => Ok(()),
        0 => Err(Failure::Run(format!(
            "claims that hold also with policies exchanged by chance need `by_chance`: {}",
            unexplained.join(", ")
        ))),
        count => Err(Failure::Run(format!("{count} other than expected: {}", names.join(", ")))),
    }
}

fn list<'a>(
    cases: impl Iterator<Item = &'a Case>,
    format: Format,
    terminal: Terminal,
) -> Result<(), Failure> {
    let mut grid = Grid::new(
        ["id", "paper", "figure", "rules", "what it shows"].map(|title| (title, Align::Left)),
    );
    for case in cases {
        let experiment = &case.experiment;
        grid.row([
            case.id.clone(),
            experiment.paper.to_string(),
            experiment.figure.clone(),
            experiment.rules.len().to_string(),
            experiment.title.clone(),
        ]);
    }
    terminal.print_grid(&grid, format)
}
