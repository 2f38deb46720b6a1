//! Bad inputs as a user gives them: each ends with exit code 2 and one line that names the place and what was expected,
//! and leaves nothing behind. The lines are kept, so that a change of one is seen.

mod arguments;
mod files;
mod folders;
mod pages;
mod scenarios;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder in which commands run, with a good file of each kind.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a temporary folder"));
        place.put("good.har", pages::GOOD.as_bytes());
        place.put("good.csv", b"time_s,mbps\n0,8\n1,4\n");
        place.put("good.toml", b"runs = 1\n");
        fs::create_dir(place.path().join("empty")).expect("a folder");
        fs::create_dir(place.path().join("full")).expect("a folder");
        place.put("full/mine.txt", b"mine");
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, name: &str, content: &[u8]) {
        fs::write(self.path().join(name), content).expect("a file");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command.args(arguments).current_dir(self.path());
        command
    }

    /// The names of all that is in the folder.
    fn names(&self) -> BTreeSet<PathBuf> {
        let mut names = BTreeSet::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                names.insert(path);
            }
        }
        names
    }

    /// The line that a command with `arguments` ends with, which must be refused.
    fn refused(&self, arguments: &[&str]) -> String {
        let before = self.names();
        let output = self.command(arguments).output().expect("the program starts");
        assert_eq!(self.names(), before, "{arguments:?} left something behind");
        self.line(arguments, &output, 2)
    }

    /// The only line of error of `output`, which ended with `code`.
    fn line(&self, arguments: &[&str], output: &Output, code: i32) -> String {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("note: ")).collect();
        assert_eq!(lines.len(), 1, "{arguments:?}: {text}");
        let line = lines[0];
        assert!(line.starts_with("error: "), "{arguments:?}: {line}");
        assert!(line.chars().count() < 1_000, "{arguments:?}: {line}");
        line.trim_start_matches("error: ").replace(&format!("{}/", self.path().display()), "")
    }

    /// Each of `commands` with its line.
    fn all_refused<'a>(&self, commands: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = String::new();
        for command in commands {
            let arguments: Vec<&str> = command.split_whitespace().collect();
            let line = self.refused(&arguments);
            writeln!(text, "{command}\n    {line}").expect("a string");
        }
        text
    }
}

/// Checks `text` against the one that is kept as `name`.
fn kept(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("bad_{name}"), text));
}
