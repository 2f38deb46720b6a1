//! Tells the library which commit it is built from, for the results' headers, and lists the
//! experiments that it brings.
//!
//! Reads the files of the repository itself, so that neither `git` nor a repository is needed. The
//! variable `QUIPU_COMMIT` comes first, for packagers.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QUIPU_COMMIT");
    let given = std::env::var("QUIPU_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(from_repository).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=QUIPU_COMMIT={commit}");
    list_experiments();
}

/// Writes a list of all files in `experiments/`, each with its text, as an expression of the library's.
fn list_experiments() {
    let Some(crate_dir) = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else { return };
    let Some(target) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let root = crate_dir.join("../../experiments");
    let mut files = Vec::new();
    collect(&root, "", &mut files);
    files.sort();
    let mut list = "&[\n".to_owned();
    for (name, path) in files {
        // Text takes whatever is written to it.
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    list.push_str("]\n");
    if let Err(error) = fs::write(target.join("experiments.rs"), list) {
        println!("cargo::error=cannot write the list of experiments: {error}");
    }
}

/// Adds the scenarios and tables in `folder` and below, named from the root on with slashes.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files);
        } else if path.extension().is_some_and(|ending| ending == "toml" || ending == "csv") {
            files.push((name, path));
        }
    }
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
