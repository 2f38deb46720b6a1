//! `quipu completions` and `quipu man`: files for shells and for `man`, from the one definition of the command.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use quipu_record::write_whole;

use crate::args::Arguments;
use crate::failure::Failure;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "quipu", &mut text);
    crate::print(&String::from_utf8_lossy(&text))
}

/// Writes a manual page for the command and each of its subcommands into `folder`, or prints that of the command.
pub(crate) fn man(folder: Option<&Path>) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let Some(folder) = folder else {
        let text = page(&command).map_err(Failure::run)?;
        return crate::print(&String::from_utf8_lossy(&text));
    };
    let failed = |error: io::Error| {
        Failure::Run(format!("cannot write manual pages to {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    write(&command, folder).map_err(failed)
}

fn write(command: &clap::Command, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    write_whole(&folder.join(format!("{name}.1")), page(command)?)?;
    let shown = |it: &&clap::Command| it.get_name() != "help" && !it.is_hide_set();
    for subcommand in command.get_subcommands().filter(shown) {
        write(subcommand, folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        man(Some(folder.path())).unwrap();
        for name in ["quipu.1", "quipu-compare.1", "quipu-page-record.1"] {
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(text.contains(".TH"), "{name}");
        }
    }
}
