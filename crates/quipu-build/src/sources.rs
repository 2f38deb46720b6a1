//! The sources that decide results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::hash::Hash;
use crate::manifest;
use crate::policies::{Policies, PolicyHash};
use crate::{items, lock};

/// The crate whose parts are told apart.
const POLICY: &str = "quipu-policy";
/// What of a crate decides nothing: tests, and what shows how it is used.
const NO_PART: [&str; 5] = ["tests", "benches", "examples", "proptest-regressions", "target"];

/// Hashes (XXH3, 128 bits) of the sources that decide results. They do not depend on the machine, the
/// profile, the commit or on where the repository lies; nor on tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Of everything but what only single policies use: all other crates, manifests, and the versions of
    /// all packages that they need.
    pub rest: u128,
    /// Of each policy, in order of layer and name.
    pub policies: Vec<PolicyHash>,
}

impl Sources {
    /// Reads the sources of the crates `top` of the repository at `root` and of those that they use, and
    /// from the lock file of `workspace` the versions of everything else.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(root: &Path, workspace: &Path, top: &[&str]) -> io::Result<Sources> {
        let crates = Sources::crates(root, top)?;
        let ours: BTreeSet<String> = crates.iter().cloned().collect();
        let mut hash = Hash::default();
        let mut foreign = BTreeSet::new();
        let mut words = BTreeSet::new();
        for name in &crates {
            hash.add(name);
            let manifest = text(&folder(root, name).join("Cargo.toml"))?;
            foreign.extend(
                manifest::dependencies(&manifest).into_iter().filter(|it| !ours.contains(it)),
            );
            for file in files(root, name)? {
                let bytes = fs::read(&file).map_err(|error| at(&file, error))?;
                let place = file.strip_prefix(root).unwrap_or(&file);
                if name == POLICY && place.components().any(|part| part.as_os_str() == "src") {
                    continue;
                }
                if file.extension().is_some_and(|ending| ending == "rs") {
                    words_of_users(&String::from_utf8_lossy(&bytes), &mut words);
                }
                // The same on every system.
                hash.add(place.to_string_lossy().replace('\\', "/"));
                hash.add(bytes);
            }
        }
        let features = manifest::table(&text(&root.join("Cargo.toml"))?, "workspace.dependencies");
        for line in features.lines() {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if foreign.contains(name) {
                hash.add(line);
            }
        }
        let lock = text(&workspace.join("Cargo.lock"))?;
        for line in lock::versions(&lock, &foreign, &ours) {
            hash.add(line);
        }
        let policies = match ours.contains(POLICY) {
            true => Policies::of(&items::read(&folder(root, POLICY).join("src"))?, &words),
            false => Policies::default(),
        };
        hash.add(policies.rest.to_le_bytes());
        Ok(Sources { rest: hash.end(), policies: policies.all })
    }

    /// The crates of ours that `top` use, and these themselves, in order of name.
    ///
    /// # Errors
    /// If a manifest cannot be read.
    pub fn crates(root: &Path, top: &[&str]) -> io::Result<Vec<String>> {
        let mut found = BTreeSet::new();
        let mut ahead: Vec<String> = top.iter().map(|&name| name.to_owned()).collect();
        while let Some(name) = ahead.pop() {
            if found.contains(&name) || !folder(root, &name).is_dir() {
                continue;
            }
            let manifest = text(&folder(root, &name).join("Cargo.toml"))?;
            ahead.extend(manifest::dependencies(&manifest));
            found.insert(name);
        }
        Ok(found.into_iter().collect())
    }

    /// The files and folders of the crate `name` that decide what it does.
    ///
    /// # Errors
    /// If its folder cannot be read.
    pub fn parts(root: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
        let mut parts = entries(&folder(root, name))?;
        parts.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !NO_PART.contains(&&*name) && !name.starts_with('.')
        });
        Ok(parts)
    }
}

fn folder(root: &Path, name: &str) -> PathBuf {
    root.join("crates").join(name)
}

fn at(file: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

fn text(file: &Path) -> io::Result<String> {
    fs::read_to_string(file).map_err(|error| at(file, error))
}

/// What is in a folder, in order.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, error))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| at(folder, error))?;
    paths.sort();
    Ok(paths)
}

/// All files of the parts of a crate but for tests and snapshots.
fn files(root: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut ahead = Sources::parts(root, name)?;
    while let Some(path) = ahead.pop() {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "tests" && name != "snapshots" {
            ahead.extend(entries(&path)?);
        } else if path.is_file() && name != "tests.rs" {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The words of a source file, if it uses the crate of policies: what it may name of it. Lines that are
/// comments say nothing, nor do tests.
fn words_of_users(text: &str, words: &mut BTreeSet<String>) {
    if !text.contains("quipu_policy") && !text.contains("policy::") {
        return;
    }
    let code = text.split_once("#[cfg(test)]\nmod ").map_or(text, |(code, _)| code);
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let is_sign = |sign: char| !(sign.is_alphanumeric() || sign == '_');
    for word in code.flat_map(|line| line.split(is_sign)).filter(|word| !word.is_empty()) {
        if !words.contains(word) {
            words.insert(word.to_owned());
        }
    }
}
