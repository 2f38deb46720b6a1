//! The `quipu` command.

use std::process::ExitCode;

use quipu_cli::Registry;

fn main() -> ExitCode {
    quipu_cli::run(&Registry::builtin())
}
