//! Files that a scenario names: the folder from which their names count, the content that they must have, and
//! their copies beside a result.
//!
//! A file is written as `bus.csv`, or with the hash of its content (XXH3, 64 bits) as
//! `bus.csv#xxh3:0123456789abcdef`; then another content is an error. A result has copies of all files that it
//! was made from, in [`INPUTS`], so that it can be repeated wherever its folder is.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use quipu_link::BuiltinTrace;
use quipu_record::INPUTS;
use toml::Value;
use xxhash_rust::xxh3::xxh3_64;

use quipu_record::read_at_most;

/// What separates the name of a file from the hash of its content.
const HASH_MARK: &str = "#xxh3:";

/// The largest file that a scenario may name: 256 MiB, as HAR files have.
const MOST_PIN_BYTES: u64 = 256 << 20;

/// The hash of a file's content.
pub fn content_hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The name of a file, and the content that it must have if that is given.
pub fn split_hash(text: &str) -> (&str, Option<u64>) {
    let hashed = text.rsplit_once(HASH_MARK).and_then(|(name, hash)| {
        let digits = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some((name, u64::from_str_radix(hash, 16).ok().filter(|_| digits)?))
    });
    hashed.map_or((text, None), |(name, hash)| (name, Some(hash)))
}

/// `name` with the hash of its content, if that is known.
pub fn with_hash(name: impl Display, hash: Option<u64>) -> String {
    match hash {
        Some(hash) => format!("{name}{HASH_MARK}{hash:016x}"),
        None => name.to_string(),
    }
}

/// True if `name` has folders or the ending of a recording.
fn is_like_recording(name: &str) -> bool {
    let ending = Path::new(name).extension();
    name.contains(['/', '\\'])
        || name.ends_with(".har.gz")
        || ending.is_some_and(|ending| ending == "har" || ending == "zip")
}

/// True if `name`, with or without a hash, is a file with recordings: if there is such a file, or it is named as only
/// files are.
pub(super) fn is_recording(name: &str) -> bool {
    let (name, _) = split_hash(name);
    is_like_recording(name) || Path::new(name).is_file()
}

/// What is wrong with a file whose content has the hash `found`.
pub fn changed(found: u64, expected: u64) -> String {
    format!(
        "has the content xxh3:{found:016x}; expected xxh3:{expected:016x}, for the file has changed since"
    )
}

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where it is.
    pub path: PathBuf,
    /// Where its copy is, counted from the folder of the result, such as `inputs/1/bus.csv`.
    pub name: String,
    /// The hash of its content.
    pub hash: u64,
}

/// All files that a scenario names, in the order in which it names them.
///
/// Files of one folder have copies in one folder, since recordings of one folder belong together
/// (see [`TraceSpec::group`](crate::TraceSpec::group)); these folders are numbered from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    folders: Vec<PathBuf>,
    files: Vec<Input>,
}

impl Inputs {
    /// The name of the copy of the file at `path`.
    pub(super) fn keep(&mut self, path: &Path, hash: u64) -> String {
        let path = absolute(path);
        if let Some(known) = self.files.iter().find(|known| known.path == path) {
            return known.name.clone();
        }
        let folder = path.parent().unwrap_or(&path).to_owned();
        let known = self.folders.iter().position(|known| *known == folder);
        let position = known.unwrap_or_else(|| {
            self.folders.push(folder);
            self.folders.len() - 1
        });
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{INPUTS}/{}/{file}", position + 1);
        self.files.push(Input { path, name: name.clone(), hash });
        name
    }

    /// Names the copy in place of a file in `value`, which a sweep gives the field at `path`.
    pub(super) fn keep_value(&mut self, path: &str, value: &mut Value) {
        each_text(path, value, &mut |used, text| {
            let (name, Some(hash)) = split_hash(text) else { return };
            if used != FileUse::Network {
                *text = with_hash(self.keep(Path::new(name), hash), Some(hash));
            }
        });
    }

    /// The files.
    pub fn files(&self) -> &[Input] {
        &self.files
    }
}

/// `path` from the root, the same for each way to its folder.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // What the file itself is a link to may be called otherwise.
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(file)) => folder.join(file),
        _ => path,
    }
}

/// What a field names a file for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileUse {
    Page,
    Network,
    Trace,
}

impl FileUse {
    /// What the field at `path` names files for, such as `pages[0]` or `networks.*.paths.0.down.trace`.
    fn of(path: &str) -> Option<FileUse> {
        let is_position = |part: &&str| {
            *part == "*" || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut parts =
            path.split(['.', '[', ']']).filter(|part| !part.is_empty() && !is_position(part));
        let (first, last) = (parts.next()?, parts.next_back());
        match (first, last) {
            ("pages", None) => Some(FileUse::Page),
            ("networks", None) => Some(FileUse::Network),
            ("networks", Some("trace" | "delay_trace" | "loss_trace")) => Some(FileUse::Trace),
            _ => None,
        }
    }

    /// Whether `name` is a file rather than something that comes with the program.
    fn is_file(self, name: &str) -> bool {
        match self {
            FileUse::Page => is_recording(name),
            FileUse::Network => name.ends_with(".toml"),
            FileUse::Trace => BuiltinTrace::named(name).is_none(),
        }
    }

    /// `text`, the name of a file without hash, with the hash of its content; networks are no part of results.
    pub(super) fn pinned(self, text: &str) -> Option<String> {
        let (name, None) = split_hash(text) else { return None };
        if self == FileUse::Network || !self.is_file(name) {
            return None;
        }
        let bytes = read_at_most(Path::new(name), MOST_PIN_BYTES).ok()??;
        Some(with_hash(name, Some(content_hash(&bytes))))
    }

    /// `text` as it is named from anywhere, if it is a file that is named from `folder`.
    pub(super) fn located(self, text: &str, folder: &Path) -> Option<String> {
        let (name, hash) = split_hash(text);
        if folder.as_os_str().is_empty() || Path::new(name).is_absolute() {
            return None;
        }
        let path = folder.join(name);
        let is_file = match self {
            // One in the current folder is another.
            FileUse::Page => is_like_recording(name) || path.is_file(),
            used => used.is_file(name),
        };
        is_file.then(|| with_hash(absolute(&path).display(), hash))
    }
}

/// Makes files that `value` of the field at `path` names count from `folder`.
pub fn count_from(path: &str, value: &mut Value, folder: &Path) {
    each_text(path, value, &mut |used, text| {
        if let Some(located) = used.located(text, folder) {
            *text = located;
        }
    });
}

/// Puts the hashes of their contents behind the names of files in `value` of the field at `path`, so that a file that
/// changes is noticed. Files that cannot be read stay as they are.
pub fn pin(path: &str, value: &mut Value) {
    each_text(path, value, &mut |used, text| {
        if let Some(pinned) = used.pinned(text) {
            *text = pinned;
        }
    });
}

/// `value` of the field at `path` in short: files without folders and hashes.
#[must_use]
pub fn without_folders(path: &str, mut value: Value) -> Value {
    each_text(path, &mut value, &mut |used, text| {
        let (name, _) = split_hash(text);
        if used.is_file(name) {
            let file = Path::new(name).file_name().map(|file| file.to_string_lossy().into_owned());
            *text = file.unwrap_or_else(|| name.to_owned());
        }
    });
    value
}

/// Calls `visit` for each text in `value` that names a file.
fn each_text(path: &str, value: &mut Value, visit: &mut dyn FnMut(FileUse, &mut String)) {
    match value {
        Value::String(text) => {
            if let Some(used) = FileUse::of(path) {
                visit(used, text);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| each_text(path, item, visit)),
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                each_text(&format!("{path}.{key}"), value, visit);
            }
        }
        _ => {}
    }
}
