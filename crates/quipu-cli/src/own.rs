//! The program that this is: its policies, and what it is built from.

use std::ffi::OsString;
use std::process::Command;
use std::sync::{Arc, PoisonError, RwLock};

use quipu_lab::policies::Registry;
use quipu_lab::program::{BuiltFrom, Program};

use crate::failure::Failure;
use crate::foreign::ForeignStacks;
use crate::terminal::Terminal;

/// What the sources of this command are, from its build script.
pub(crate) const BUILT_FROM: BuiltFrom = include!(concat!(env!("OUT_DIR"), "/built_from.rs"));

/// What starts this program, with its first arguments, if that is not the file that runs.
static STARTED_BY: RwLock<Vec<OsString>> = RwLock::new(Vec::new());

/// From now on, this program is started by `command`, a file and its first arguments.
pub(crate) fn is_started_by(command: Vec<OsString>) {
    *STARTED_BY.write().unwrap_or_else(PoisonError::into_inner) = command;
}

/// What starts this program once more.
///
/// # Errors
/// If the system does not say what file it is.
pub(crate) fn command() -> Result<Command, Failure> {
    match STARTED_BY.read().unwrap_or_else(PoisonError::into_inner).split_first() {
        Some((file, arguments)) => {
            let mut command = Command::new(file);
            command.args(arguments);
            Ok(command)
        }
        None => std::env::current_exe().map(Command::new).map_err(Failure::run),
    }
}

/// What plans are made with.
pub(crate) struct Own<'r> {
    /// The policies that can be chosen by name.
    pub(crate) registry: &'r Registry,
    /// The stacks that it brings beside its own and those of the kernel.
    pub(crate) stacks: ForeignStacks,
    /// The program that runs them.
    pub(crate) program: Arc<Program>,
    /// Where results are printed.
    pub(crate) terminal: Terminal,
}

impl<'r> Own<'r> {
    /// This program with the policies of `registry`, and these stacks.
    pub(crate) fn new(
        registry: &'r Registry,
        stacks: ForeignStacks,
        terminal: Terminal,
    ) -> Result<Own<'r>, Failure> {
        let program = Program::new(BUILT_FROM, registry).map_err(Failure::run)?;
        Ok(Own { registry, stacks, program: Arc::new(program), terminal })
    }
}
