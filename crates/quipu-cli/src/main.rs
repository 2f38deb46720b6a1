//! The `quipu` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    quipu_cli::run(&quipu_learned::registry())
}
