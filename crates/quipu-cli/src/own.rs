//! The program that this is: its policies, and what it is built from.

use std::sync::Arc;

use quipu_lab::policies::Registry;
use quipu_lab::program::{BuiltFrom, Program};

use crate::failure::Failure;
use crate::foreign::ForeignStacks;
use crate::terminal::Terminal;

/// What the sources of this command are, from its build script.
const BUILT_FROM: BuiltFrom = include!(concat!(env!("OUT_DIR"), "/built_from.rs"));

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
