//! The `quipu` command with the stacks of this package.

use std::process::ExitCode;

use quipu_cli::policy::Registry;

fn main() -> ExitCode {
    quipu_cli::run_with(&Registry::builtin(), quipu_stacks::stacks())
}
