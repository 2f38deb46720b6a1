//! A repository in small, as a build script sees it: what makes another program, and what does not.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use quipu_build::{Sources, commit};

const MANIFEST: &str = "[workspace]\nmembers = [\"crates/*\"]\n\n[workspace.dependencies]\n\
    serde = { version = \"1\", features = [\"derive\"] }\ninsta = \"1\"\n";
const LOCK: &str = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"aa\"\n\n[[package]]\nname = \
    \"insta\"\nversion = \"1.0.0\"\n";
const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", MANIFEST),
    ("Cargo.lock", LOCK),
    (
        "crates/runs/Cargo.toml",
        "[dependencies]\nbase.workspace = true\nserde.workspace = true\n\n[dev-dependencies]\ninsta.workspace = true\n",
    ),
    ("crates/runs/src/lib.rs", "pub fn run() {}\n"),
    ("crates/runs/tests/all.rs", "#[test]\nfn runs() {}\n"),
    ("crates/base/Cargo.toml", "[dependencies]\n"),
    ("crates/base/src/lib.rs", "pub fn base() {}\n"),
    ("crates/command/Cargo.toml", "[dependencies]\nruns.workspace = true\n"),
];

struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Repository {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository(folder);
        for (name, text) in FILES {
            repository.write(name, text);
        }
        repository
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.root().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let name =
            ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let mut git = Command::new("git");
        git.args(name).args(arguments).current_dir(self.root());
        assert!(git.output().unwrap().status.success(), "{arguments:?}");
    }

    fn commit(&self) -> String {
        let mut read: Vec<PathBuf> = Vec::new();
        let found = commit(self.root(), &[self.root().join("crates")], &mut |file| {
            read.push(file.to_owned());
        });
        assert_eq!(read.is_empty(), found == "unknown");
        found
    }

    fn rest(&self) -> u128 {
        Sources::read(self.root(), self.root(), &["runs"]).unwrap().rest
    }
}

#[test]
fn a_byte_of_a_source_makes_another_program() {
    let repository = Repository::new();
    let before = repository.rest();
    let edits = [
        ("crates/runs/src/lib.rs", "pub fn run() { }\n"),
        ("crates/base/src/lib.rs", "pub fn base() { }\n"),
        ("crates/base/data.csv", "1\n"),
        ("crates/base/Cargo.toml", "[dependencies]\n[features]\nfast = []\n"),
        ("Cargo.toml", &MANIFEST.replace("derive", "rc")),
        ("Cargo.lock", &LOCK.replace("1.0.1", "1.0.2")),
    ];
    for (name, text) in edits {
        let repository = Repository::new();
        repository.write(name, text);
        assert_ne!(repository.rest(), before, "{name}");
    }
}

#[test]
fn tests_and_what_only_they_need_make_no_other_program_nor_does_the_command() {
    let repository = Repository::new();
    let before = repository.rest();
    repository.write("crates/runs/tests/all.rs", "");
    repository.write("crates/runs/src/parts/tests.rs", "");
    repository.write("crates/command/src/main.rs", "fn main() {}\n");
    repository.write("Cargo.lock", &LOCK.replace("1.0.0", "1.1.0"));
    repository.write("Cargo.toml", &format!("{MANIFEST}[profile.release]\nlto = true\n"));
    assert_eq!(repository.rest(), before);
    assert_eq!(Repository::new().rest(), before, "the place does not matter");
}

#[test]
fn a_commit_makes_no_other_program_and_a_changed_tree_is_marked() {
    let repository = Repository::new();
    assert_eq!(repository.commit(), "unknown");
    let before = repository.rest();
    repository.git(&["init", "--quiet"]);
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--message", "first"]);
    let first = repository.commit();
    assert!(first.len() == 40 && first.bytes().all(|sign| sign.is_ascii_hexdigit()), "{first}");
    assert_eq!(repository.rest(), before);

    repository.write("crates/base/src/more.rs", "");
    assert_eq!(repository.commit(), format!("{first}-dirty"), "a new file");
    fs::remove_file(repository.root().join("crates/base/src/more.rs")).unwrap();
    repository.write("notes.txt", "of no crate");
    assert_eq!(repository.commit(), first);
    repository.write("crates/base/src/lib.rs", "pub fn base() { }\n");
    assert_eq!(repository.commit(), format!("{first}-dirty"), "an edited file");

    repository.git(&["commit", "--quiet", "--all", "--message", "second"]);
    let second = repository.commit();
    assert!(second != first && second.len() == 40, "{second}");
    repository.git(&["pack-refs", "--all"]);
    assert_eq!(repository.commit(), second);
}
