//! Tells the library which commit it is built from, for the results' headers.
//!
//! Reads the files of the repository itself, so that neither `git` nor a repository is needed. The
//! variable `QUIPU_COMMIT` comes first, for packagers.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QUIPU_COMMIT");
    let given = std::env::var("QUIPU_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(from_repository).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=QUIPU_COMMIT={commit}");
}

fn from_repository() -> Option<String> {
    let crate_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let root = crate_dir.ancestors().nth(2)?;
    let git = git_dir(&root.join(".git"))?;
    let head = read(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else { return Some(head) };
    // A worktree keeps its branches in the main repository.
    let common = read(&git.join("commondir")).map_or_else(|| git.clone(), |dir| git.join(dir));
    read(&common.join(reference)).or_else(|| {
        let packed = read(&common.join("packed-refs"))?;
        let line = packed.lines().find(|line| line.ends_with(&format!(" {reference}")))?;
        line.split(' ').next().map(str::to_owned)
    })
}

/// The repository's directory: `.git` itself, or where the file `.git` of a worktree points.
fn git_dir(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let target = read(git)?;
    let target = target.strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(target))
}

/// The trimmed text of a file that the build then depends on.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
