//! Which commit a tree is of, and whether it differs from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commit of the repository at `root`, or `unknown`; followed by `-dirty` if anything at or below
/// `watched` differs from it, and by `-unchecked` if there is no `git` to say so. `read` is told of every file
/// that the commit is taken from.
///
/// The commit itself is read from the repository's files, so that `git` is not needed.
pub fn commit(root: &Path, watched: &[PathBuf], read: &mut dyn FnMut(&Path)) -> String {
    let Some(commit) = head(root, read) else { return "unknown".to_owned() };
    let mark = match differs(root, watched) {
        Some(true) => "-dirty",
        Some(false) => "",
        None => "-unchecked",
    };
    commit + mark
}

fn head(root: &Path, told: &mut dyn FnMut(&Path)) -> Option<String> {
    let mut read = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        told(path);
        Some(text.trim().to_owned())
    };
    let git = git_dir(&root.join(".git"))?;
    let head = read(&git.join("HEAD"))?;
    // Grows with every commit, wherever its branch is kept.
    read(&git.join("logs/HEAD"));
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
    let target = fs::read_to_string(git).ok()?;
    let target = target.trim().strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(target))
}

/// Whether `git` finds a difference; `None` if it cannot say.
fn differs(root: &Path, watched: &[PathBuf]) -> Option<bool> {
    // The index is left as it is: others may be using it.
    let status = Command::new("git")
        .args(["--no-optional-locks", "status", "--porcelain", "--untracked-files=all", "--"])
        .args(watched)
        .current_dir(root)
        .output()
        .ok()?;
    status.status.success().then_some(!status.stdout.is_empty())
}
