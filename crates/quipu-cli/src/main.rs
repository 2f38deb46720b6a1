//! The `quipu` command.

use std::process::ExitCode;

use quipu_cli::policy::Registry;

fn main() -> ExitCode {
    quipu_cli::run(&Registry::builtin())
}
