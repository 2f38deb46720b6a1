//! The `quipu` command as a function: parses its arguments, calls the library, prints.
//!
//! [`run`] takes the policies that it knows, so that a program of one's own can be the same command
//! with policies of one's own beside the built-in ones: `examples/my_scheduler.rs`.

mod args;
mod batch;
mod check;
mod compare;
mod cost;
mod failure;
mod list;
mod load;
mod logs;
mod own;
mod page;
mod progress;
mod record;
mod report;
mod reproduce;
mod run;
mod scenario;
mod show;
mod sweep;

use std::io::Write;
use std::process::ExitCode;

pub use quipu_lab::{base, policy};

use quipu_lab::policies::Registry;

use args::{Command, PageCommand, ScenarioCommand};
use failure::Failure;
use own::Own;

/// Runs the command with the arguments of the process. `registry` holds the policies that can be
/// chosen by name, usually [`Registry::builtin`] and more.
///
/// Exit code 0: done. 1: a run failed. 2: the arguments or an input file are wrong. 130: stopped by
/// Ctrl-C, with what was finished written.
pub fn run(registry: &Registry) -> ExitCode {
    let result = Own::new(registry).and_then(|own| {
        let version = || format!("quipu {}\n", own.program.describe());
        obey(args::parse(std::env::args_os(), version)?.command, &own)
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn obey(command: Command, own: &Own<'_>) -> Result<(), Failure> {
    let registry = own.registry;
    match command {
        Command::Compare(options) => compare::run(&options, own),
        Command::Cost(options) => cost::run(&options, own),
        Command::Load(options) => load::run(&options, own),
        Command::Run(options) => run::run(&options, own),
        Command::Sweep(options) => sweep::run(&options, own),
        Command::Reproduce(options) => reproduce::run(&options, own),
        Command::Report(options) => report::run(&options, registry),
        Command::Page { command } => match command {
            PageCommand::Show { page, all, seed } => page::show(&page, all, seed),
            PageCommand::Record(options) => record::run(&options),
            PageCommand::Infer { files, trace, out } => page::infer(&files, trace.as_deref(), &out),
            PageCommand::Predict { files } => page::predict(&files),
            PageCommand::Model { model, pages, seed } => page::model(&model, pages, seed),
            PageCommand::SelfTest { pages, seed, all, out } => {
                page::self_test(pages, seed, all, out.as_deref())
            }
        },
        Command::Scenario { command } => match command {
            ScenarioCommand::Check { files, format } => check::run(&files, format, registry),
            ScenarioCommand::Show { what, network, ascii } => {
                show::run(&what, network.as_deref(), ascii)
            }
            ScenarioCommand::Schema => show::schema(registry),
            ScenarioCommand::Fields => show::fields(),
        },
        Command::Pages => list::pages(),
        Command::Networks => list::networks(),
        Command::Traces => list::traces(),
        Command::Browsers => list::browsers(),
        Command::Transports { name } => list::transports(name.as_deref()),
        Command::Schedulers { name: Some(name), check: true } => list::check(&name, registry),
        Command::Schedulers { name, .. } => list::schedulers(name.as_deref(), registry),
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
