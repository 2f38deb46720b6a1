//! What a folder is: one result, an id with its variants, a sweep, or several of these.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_record::nearest;
use quipu_record::verdict::{Judged, VERDICTS};

use super::summary::json;
use crate::ReportError;
use crate::notices::{Notices, clean};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In words: `a comparison`.
    pub(crate) kind: Kind,
    /// Folders with tables.
    pub(crate) sources: Vec<Source>,
    /// Verdicts of ids.
    pub(crate) judged: Vec<Judged>,
}

/// What a folder holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What `compare`, `run` or `load` wrote.
    #[default]
    Result,
    /// What `sweep` wrote.
    Sweep,
    /// Ids of experiments, or one.
    Reproduce,
    /// Folders that are any of these.
    Several,
}

/// A folder with tables, and what tells its rows from those of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// What notices call it; empty if it is the only one.
    pub(crate) label: String,
    /// Fields of all its rows.
    pub(crate) fixed: Vec<(String, String)>,
}

/// Folders in a folder that are looked at.
const MOST_FOLDERS: usize = 400;

/// Name of the field that tells folders apart.
const FOLDER: &str = "folder";
/// Name of the field that tells ids apart.
const ID: &str = "id";
/// Name of the field that tells variants of an id apart.
const VARIANT: &str = "variant";
/// The variant that is the scenario itself.
const MAIN: &str = "main";

/// Finds out what `folder` is.
///
/// # Errors
/// If it is not there, or holds no result.
pub(crate) fn find(folder: &Path, notices: &mut Notices) -> Result<Found, ReportError> {
    if !folder.is_dir() {
        return Err(no_folder(folder));
    }
    if is_sweep(folder) {
        let sources = vec![Source::new(folder, "", &[])];
        return Ok(Found { kind: Kind::Sweep, sources, judged: Vec::new() });
    }
    let inside = folders(folder, notices);
    if is_result(folder) {
        return Ok(result(folder, &inside, notices));
    }
    let ids: Vec<&PathBuf> =
        inside.iter().filter(|inside| inside.join(VERDICTS).exists()).collect();
    if !ids.is_empty() {
        return Ok(reproduced(folder, &ids, notices));
    }
    let mut found = Found { kind: Kind::Several, ..Found::default() };
    for path in &inside {
        let name = name_of(path);
        if is_sweep(path) || is_result(path) {
            found.sources.push(Source::new(path, &name, &[(FOLDER, &name)]));
        } else if folders(path, &mut Notices::default()).iter().any(|deeper| is_result(deeper)) {
            notices.add(format!("{name} holds folders of results: make a report of it alone."));
        }
    }
    match found.sources.len() {
        0 => Err(no_result(folder)),
        _ => Ok(found),
    }
}

/// A folder of ids. Verdicts are those that the command counted, which the folder's own file has, in the
/// order of the papers; without that file, those of each id's folder.
fn reproduced(folder: &Path, ids: &[&PathBuf], notices: &mut Notices) -> Found {
    let mut found = Found { kind: Kind::Reproduce, ..Found::default() };
    let all: Option<Vec<Judged>> = json(folder, "", VERDICTS, notices);
    let counted = |name: &str| match &all {
        Some(all) => all.iter().any(|judged| judged.id == name),
        None => true,
    };
    let mut left_out = 0;
    for path in ids {
        let name = name_of(path);
        if !counted(&name) {
            left_out += 1;
            continue;
        }
        if all.is_none() {
            found.judged.extend(json::<Judged>(path, &name, VERDICTS, notices));
        }
        if is_result(path) {
            found.sources.push(Source::new(path, &name, &[(ID, &name)]));
        }
    }
    if left_out > 0 {
        let are = if left_out == 1 { "id is" } else { "ids are" };
        notices.add(format!(
            "{left_out} {are} of an earlier `quipu reproduce` into this folder and left out, as the \
             last one does not count them."
        ));
    }
    if let Some(all) = all {
        let place = |id: &str| all.iter().position(|it| it.id == id).unwrap_or(usize::MAX);
        found.sources.sort_by_cached_key(|it| place(&it.label));
        found.judged = all;
    }
    found
}

/// A result folder, maybe of an id with verdicts and variants.
fn result(folder: &Path, inside: &[PathBuf], notices: &mut Notices) -> Found {
    let judged = json::<Judged>(folder, "", VERDICTS, notices);
    let Some(judged) = judged else {
        let sources = vec![Source::new(folder, "", &[])];
        return Found { kind: Kind::Result, sources, judged: Vec::new() };
    };
    let variants: Vec<&PathBuf> = inside.iter().filter(|inside| is_result(inside)).collect();
    let mut sources = Vec::new();
    match variants.is_empty() {
        true => sources.push(Source::new(folder, "", &[])),
        false => {
            sources.push(Source::new(folder, "", &[(VARIANT, MAIN)]));
            sources.extend(variants.into_iter().map(|path| {
                let name = name_of(path);
                Source::new(path, &name, &[(VARIANT, &name)])
            }));
        }
    }
    Found { kind: Kind::Reproduce, sources, judged: vec![judged] }
}

impl Source {
    fn new(path: &Path, label: &str, fixed: &[(&str, &str)]) -> Source {
        let fixed = fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Source { path: path.to_owned(), label: label.to_owned(), fixed: fixed.collect() }
    }
}

fn is_sweep(folder: &Path) -> bool {
    folder.join("sweep.toml").is_file() || folder.join("status.json").is_file()
}

fn is_result(folder: &Path) -> bool {
    folder.join("runs.csv").is_file() || folder.join("summary.json").is_file()
}

/// Folders in `folder` by name, hidden ones left out.
fn folders(folder: &Path, notices: &mut Notices) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let seen = |path: &PathBuf| path.is_dir() && !name_of(path).starts_with('.');
    let mut paths: Vec<PathBuf> = paths.filter(seen).collect();
    paths.sort();
    if paths.len() > MOST_FOLDERS {
        let (there, name) = (paths.len(), name_of(folder));
        notices.add(format!("{name} has {there} folders; the first {MOST_FOLDERS} are shown."));
        paths.truncate(MOST_FOLDERS);
    }
    paths
}

/// The last part of a path.
pub(crate) fn name_of(path: &Path) -> String {
    let full = path.canonicalize();
    let path = full.as_deref().unwrap_or(path);
    clean(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// What a folder with results has, for those that have none.
const EXPECTED: &str = "expected the folder of `quipu compare --out`, `run --out`, `load --out`, \
                        `reproduce` or `sweep`, or a folder of such folders";

fn no_folder(folder: &Path) -> ReportError {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let beside: Vec<String> =
        folders(parent, &mut Notices::default()).iter().map(|path| name_of(path)).collect();
    let near = nearest(&name, beside.iter().map(String::as_str));
    let what = if folder.exists() { "is a file" } else { "does not exist" };
    let near = match near.filter(|near| *near != name) {
        Some(near) => format!("; did you mean `{}`?", parent.join(near).display()),
        None => String::new(),
    };
    ReportError::NoResult(format!("{} {what}; {EXPECTED}{near}", folder.display()))
}

fn no_result(folder: &Path) -> ReportError {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| name_of(&entry.path())).collect();
    names.sort();
    let has = match names.as_slice() {
        [] => "it is empty".to_owned(),
        [one] => format!("it only has `{one}`"),
        [first, ..] => {
            let near = ["runs.csv", "summary.json", "sweep.toml", "verdicts.json"]
                .into_iter()
                .find_map(|file| nearest(file, names.iter().map(String::as_str)));
            format!("nearest is `{}`", near.unwrap_or(first))
        }
    };
    ReportError::NoResult(format!("{} has no result: {EXPECTED}; {has}", folder.display()))
}
