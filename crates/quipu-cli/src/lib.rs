//! The `quipu` command as a function: parses its arguments, calls the library, prints.
//!
//! [`run`] takes the policies that it knows, so that a program of one's own can be the same command
//! with policies of one's own beside the built-in ones: `examples/my_scheduler.rs`. [`run_with`] takes
//! stacks of other libraries, too, for emulated loads: `interop/stacks`. [`EmulatedRuns`] makes emulated loads for programs
//! that are more than the command.

mod agree;
mod args;
mod batch;
mod check;
mod compare;
mod cost;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(target_os = "linux")]
mod emulated;
mod emulated_runs;
mod events;
mod failure;
mod fetch;
pub mod foreign;
mod list;
mod live;
mod load;
mod logs;
mod new;
mod own;
mod page;
mod page_loads;
mod paths;
mod perf;
mod progress;
mod record;
mod report;
mod reproduce;
mod run;
mod scenario;
mod serve;
mod shell;
mod show;
mod stop;
mod sweep;
mod terminal;
mod trace;
mod values;
mod waiting;
mod world;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

pub use emulated_runs::{EmulatedRuns, EmulationError, SIMULATED};
pub use quipu_lab::{base, policy};

use quipu_lab::policies::Registry;
use quipu_lab::program::{Program, ProgramError};

use args::{Command, PageCommand, PerfCommand, ScenarioCommand, TraceCommand};
use failure::Failure;
use foreign::{ForeignStack, ForeignStacks};
use own::Own;
use terminal::Terminal;

/// Each load makes and drops thousands of small objects, on every core at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the command with the arguments of the process. `registry` holds the policies that can be
/// chosen by name, usually [`Registry::builtin`] and more.
///
/// Exit code 0: done. 1: a run failed. 2: the arguments or an input file are wrong. 130: stopped by
/// Ctrl-C or SIGTERM, with what was finished written.
pub fn run(registry: &Registry) -> ExitCode {
    run_with(registry, Vec::new())
}

/// The same of a program that brings stacks of other libraries, each with a name of its own.
pub fn run_with(registry: &Registry, stacks: Vec<Arc<dyn ForeignStack>>) -> ExitCode {
    ExitCode::from(code_of(begin(registry, ForeignStacks(stacks), std::env::args_os())))
}

/// The command with `arguments`, of which the first is its name, inside a process that is more than it: `started_by`, a
/// file and its first arguments, starts the command by itself. Returns the exit code.
pub fn run_with_arguments(
    registry: &Registry,
    started_by: Vec<OsString>,
    arguments: impl IntoIterator<Item = OsString>,
) -> u8 {
    own::is_started_by(started_by);
    code_of(begin(registry, ForeignStacks(Vec::new()), arguments.into_iter()))
}

/// The program that this is, with the policies of `registry`.
///
/// # Errors
/// If what it is made of has to be read, and cannot be.
pub fn program(registry: &Registry) -> Result<Program, ProgramError> {
    Program::new(own::BUILT_FROM, registry)
}

fn code_of(outcome: Result<(), Failure>) -> u8 {
    outcome.map_or_else(Failure::report, |()| 0)
}

fn begin(
    registry: &Registry,
    stacks: ForeignStacks,
    arguments: impl Iterator<Item = OsString>,
) -> Result<(), Failure> {
    let mut own = Own::new(registry, stacks, Terminal::default())?;
    let version = || format!("quipu {}\n", own.program.describe());
    let arguments = args::parse(arguments, version)?;
    own.terminal = Terminal::new(arguments.output);
    obey(arguments.command, &own)
}

fn obey(command: Command, own: &Own<'_>) -> Result<(), Failure> {
    let (registry, terminal) = (own.registry, own.terminal);
    match command {
        Command::Agree(options) => agree::run(&options, own),
        Command::Compare(options) => compare::run(&options, own),
        Command::Cost(options) => cost::run(&options, own),
        Command::Load(options) => load::run(&options, own),
        #[cfg(target_os = "linux")]
        Command::Emulate(options) => emulate::run(&options, own),
        #[cfg(target_os = "linux")]
        Command::EmulatedClient => emulated::loads::run(own),
        #[cfg(not(target_os = "linux"))]
        Command::Emulate(_) | Command::EmulatedClient => {
            Err(Failure::Usage("links are emulated on Linux alone".to_owned()))
        }
        Command::Run(options) => run::run(&options, own),
        Command::Sweep(options) => sweep::run(&options, own),
        Command::Reproduce(options) => reproduce::run(&options, own),
        Command::Report(options) => report::run(&options, own),
        Command::Page { command } => match command {
            PageCommand::Show { page, all, seed } => page::show(&page, all, seed, terminal),
            PageCommand::Record(options) => record::run(&options),
            PageCommand::Infer { files, trace, out } => {
                page::infer(&files, trace.as_deref(), &out, terminal)
            }
            PageCommand::Predict { files, format } => {
                page::predict(&files, format.format, terminal)
            }
            PageCommand::Model { model, pages, seed } => page::model(&model, pages, seed, terminal),
            PageCommand::SelfTest { pages, seed, all, out, format } => {
                page::self_test(pages, seed, all, out.as_deref(), format.format, terminal)
            }
        },
        Command::Scenario { command } => match command {
            ScenarioCommand::New(options) => new::run(&options, own),
            ScenarioCommand::Check { files, format } => check::run(&files, format, own),
            ScenarioCommand::Show { what, network, ascii } => {
                show::run(&what, network.as_deref(), ascii, terminal)
            }
            ScenarioCommand::Schema => show::schema(registry),
            ScenarioCommand::Fields => show::fields(),
        },
        Command::Trace { command: TraceCommand::Convert(options) } => {
            trace::convert(&options, terminal)
        }
        Command::Perf { command } => match command {
            PerfCommand::Server(options) => perf::server(&options, own),
            PerfCommand::Client(options) => perf::client(&options, own),
        },
        Command::Fetch(options) => fetch::run(&options, own),
        Command::Serve(options) => serve::run(&options, own),
        Command::Paths(options) => paths::run(&options, own),
        Command::Pages { format } => list::pages(format.format, terminal),
        Command::Networks { format } => list::networks(format.format, terminal),
        Command::Traces { format } => list::traces(format.format, terminal),
        Command::Browsers { format } => list::browsers(format.format, terminal),
        Command::Columns { format } => list::columns(format.format, terminal),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { folder } => shell::man(folder.as_deref()),
        Command::Transports { name, format } => {
            list::transports(name.as_deref(), format.format, terminal)
        }
        Command::Schedulers { name: Some(name), check: true, .. } => list::check(&name, own),
        Command::Schedulers { name, layer, format, .. } => {
            list::schedulers(name.as_deref(), layer.as_deref(), format.format, own)
        }
    }
}

/// Prints to standard output. A reader that has gone away, such as `head`, is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
