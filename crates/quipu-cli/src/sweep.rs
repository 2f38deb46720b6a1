//! `quipu sweep`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::time::Instant;

use quipu_lab::table::{Align, Grid};
use quipu_scenario::{Document, ScenarioError};
use quipu_study::sweep::{Place, Shard, State, Status, Sweep, Todo, overview};

use crate::args::SweepOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::terminal::Terminal;
use crate::{page_loads, progress, stop, world};

/// Points that a dry run tells one by one.
const MOST_POINTS: usize = 20;
/// Runs that a dry run makes at most to see how long they take, and how long it does so.
const REHEARSED: usize = 40;
const REHEARSAL: Duration = Duration::from_secs(3);

pub(crate) fn run(options: &SweepOptions, own: &Own<'_>) -> Result<(), Failure> {
    let document = Document::read(&options.file).map_err(Failure::usage)?;
    let sweep = Sweep::read(&document, own.registry).map_err(Failure::usage)?;
    let Some(sweep) = sweep else {
        let file = document.file().to_owned();
        let expected = "a table [sweep], which `quipu sweep` needs";
        return Err(Failure::usage(ScenarioError::invalid(
            file,
            "a scenario without a sweep",
            expected,
        )));
    };
    let shard = options.shard.as_deref().map(str::parse::<Shard>).transpose();
    let place = Place {
        out: options.out.clone(),
        from: options.from.clone(),
        force: options.force,
        jobs: options.jobs.map(usize::from),
        shard: shard.map_err(|error| Failure::Usage(format!("--shard {error}")))?,
    };
    let emulator = world::maker(options.world)?;
    let mut sweep = sweep.made_by(&own.program);
    if let Some(emulator) = &emulator {
        world::refuse_simulated([
            (options.jobs.is_some(), "--jobs", "none, as one load is made after the other,"),
            (options.dry_run, "--dry-run", "none"),
        ])?;
        sweep
            .points
            .iter()
            .try_for_each(|point| world::check(&point.plan.scenario, &own.stacks))?;
        sweep = sweep.emulated(&world::as_maker(emulator));
    } else {
        sweep
            .points
            .iter()
            .try_for_each(|point| page_loads::check_simulated(&point.plan.scenario))?;
    }
    let mut todo = Todo::new(sweep, place).map_err(Failure::usage)?;
    for note in todo.notes() {
        eprintln!("note: {note}");
    }
    if options.dry_run {
        return tell(&todo, options, own.terminal);
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    stop::on_request(&cancelled)?;
    if let (Some(emulator), Some(point)) = (&emulator, todo.sweep().points.first())
        && todo.runs() > 0
    {
        emulator.start(&point.plan)?;
    }
    let bar = progress::rated_bar(todo.runs() as u64);
    let unwritten = Mutex::new(Ok(()));
    let made = todo.run(&cancelled, &|| {
        bar.inc(1);
        // Beside the run, which is kept by now.
        let written = emulator.as_ref().map_or(Ok(()), |emulator| emulator.write(&options.out));
        if written.is_err() {
            *unwritten.lock().unwrap_or_else(PoisonError::into_inner) = written;
        }
    });
    bar.finish_and_clear();
    made.map_err(Failure::run)?;
    unwritten.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    let written = todo.write().map_err(Failure::run)?;
    let folder = options.out.display().to_string();
    let status = match &written {
        Some(written) => {
            crate::print(&overview(todo.sweep(), written, &folder, own.terminal.screen))?;
            &written.status
        }
        None => todo.status(),
    };
    end(status, &todo, options, cancelled.load(Ordering::Relaxed), own.terminal)
}

/// Tells how it ended, if not all is there or not all went well.
fn end(
    status: &Status,
    todo: &Todo,
    options: &SweepOptions,
    was_cancelled: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let (file, folder) = (options.file.display(), options.out.display());
    let left = todo.runs();
    if let Some(shard) = &options.shard {
        let Status { done, planned, .. } = status;
        terminal.print(&format!(
            "part {shard}: {left} of its runs are missing; {done} of {planned} runs of all parts are in \
             {folder}\n`quipu sweep {file} --out {folder}` joins the parts and writes the tables\n"
        ))?;
    } else if status.state == State::Incomplete {
        terminal.print(&format!(
            "{} runs are missing: `quipu sweep {file} --out {folder}` goes on\n",
            status.missing
        ))?;
    }
    if was_cancelled && left > 0 {
        return Err(Failure::Interrupted);
    }
    if let Some(first) = todo.again().first() {
        let (failed, planned) = (todo.again().len(), status.planned);
        let reason =
            format!("{failed} of {planned} runs failed, and are made again next time: {first}");
        return Err(Failure::Run(reason));
    }
    match status.failed {
        0 => Ok(()),
        failed => Err(Failure::Run(format!("{failed} of {} runs failed", status.planned))),
    }
}

/// What would be done, and how long that takes.
fn tell(todo: &Todo, options: &SweepOptions, terminal: Terminal) -> Result<(), Failure> {
    let sweep = todo.sweep();
    let mut columns = vec![("point".to_owned(), Align::Right)];
    columns.extend(sweep.fields().map(|field| (field.to_owned(), Align::Left)));
    columns.push(("runs".to_owned(), Align::Right));
    let mut grid = Grid::new(columns);
    for (index, point) in sweep.points.iter().enumerate().take(MOST_POINTS) {
        let mut row = vec![index.to_string()];
        row.extend(point.texts().iter().cloned());
        row.push(point.plan.cells().count().to_string());
        grid.row(row);
    }
    let mut text = String::new();
    crate::print(&grid.on(terminal.screen))?;
    let points = sweep.points.len();
    if points > MOST_POINTS {
        text.push_str(&format!("and {} more points\n", points - MOST_POINTS));
    }
    let Status { planned, done, failed, .. } = todo.status();
    let (kept, left) = (done + failed, todo.runs());
    let own = if options.shard.is_some() { " of this part" } else { "" };
    text.push_str(&format!(
        "\n{points} points, {planned} runs: {kept} are done, {left}{own} are to be made\n"
    ));
    terminal.print(&text)?;
    if left > 0 {
        let jobs = options.jobs.map(usize::from);
        let jobs = jobs.unwrap_or(std::thread::available_parallelism().map_or(1, usize::from));
        terminal.print(&estimate(todo, jobs))?;
    }
    Ok(())
}

/// How long the missing runs take on `jobs` threads, by some of them.
#[expect(clippy::disallowed_methods, reason = "how long runs take is what is asked")]
fn estimate(todo: &Todo, jobs: usize) -> String {
    let began = Instant::now();
    let mut made = 0_usize;
    for () in todo.rehearse(REHEARSED) {
        made += 1;
        if began.elapsed() > REHEARSAL {
            break;
        }
    }
    let each = began.elapsed().as_secs_f64() / made.max(1) as f64;
    let seconds = each * todo.runs() as f64 / jobs as f64;
    let length = match seconds {
        0.0..100.0 => format!("{seconds:.0} s"),
        100.0..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    };
    let threads = if jobs == 1 { "1 thread".to_owned() } else { format!("{jobs} threads") };
    format!("about {length} on {threads}: {made} of them took {:.1} ms each\n", each * 1e3)
}
