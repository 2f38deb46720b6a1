//! Files that hold recordings and traces: zip archives as of WebPageTest and sitespeed.io, and gzip.
//!
//! [`inflate`] unpacks gzip, [`read`] takes a file in any of these forms, or a HAR file as it is, and finds the HAR
//! file of a run and the trace beside it. What unpacks to more than is read anyway is refused before it is unpacked.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use thiserror::Error;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::{har, trace};

/// The most files that an archive may have. Our choice; WebPageTest puts some ten for each run into one.
pub const MAX_FILES: usize = 10_000;

/// What a file holds of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The HAR file.
    pub har: Vec<u8>,
    /// The trace of the same run, if there is one.
    pub trace: Option<Vec<u8>>,
    /// Name of the run: its number in the names of files; empty for a file that is no archive.
    pub run: String,
    /// Names of all runs of the archive, in order.
    pub runs: Vec<String>,
}

/// Why a file is not unpacked. Each prints as one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The archive or the compressed file is damaged.
    #[error("{what} is damaged: {message}")]
    Damaged {
        /// The archive, or the file in it.
        what: String,
        /// What is wrong.
        message: String,
    },
    /// A file would be larger than is read.
    #[error("{what} unpacks to more than {limit} bytes, which are the most that are read")]
    TooLarge {
        /// The file.
        what: String,
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// The archive has too many files.
    #[error("the archive has {files} files; at most {MAX_FILES} are read")]
    TooManyFiles {
        /// Files of the archive.
        files: usize,
    },
    /// No HAR file is in the archive.
    #[error("no HAR file in the archive; expected a name that ends in .har or .har.gz{}", beside(*.traces))]
    NoHar {
        /// Traces that are in it.
        traces: usize,
    },
    /// The archive has no such run.
    #[error("no run {asked} in the archive; it has: {}", .known.join(", "))]
    NoSuchRun {
        /// The run asked for, from 1.
        asked: usize,
        /// Names of the runs.
        known: Vec<String>,
    },
}

fn beside(count: usize) -> String {
    if count == 0 { String::new() } else { format!("; it has {count} traces alone") }
}

/// The bytes of `file`, unpacked if they are gzip, to at most `limit` bytes.
///
/// # Errors
/// If the gzip is damaged, or unpacks to more.
pub fn inflate(file: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, ArchiveError> {
    inflate_named("the file", file, limit)
}

fn inflate_named<'a>(
    what: &str,
    file: &'a [u8],
    limit: usize,
) -> Result<Cow<'a, [u8]>, ArchiveError> {
    if !file.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(file));
    }
    read_bounded(what, MultiGzDecoder::new(file), limit).map(Cow::Owned)
}

fn read_bounded(what: &str, from: impl Read, limit: usize) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    let damaged = |error: std::io::Error| ArchiveError::Damaged {
        what: what.to_owned(),
        message: error.to_string(),
    };
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.take(most).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() > limit {
        return Err(ArchiveError::TooLarge { what: what.to_owned(), limit });
    }
    Ok(bytes)
}

/// Whether `file` is gzip or a zip archive.
pub fn is_packed(file: &[u8]) -> bool {
    file.starts_with(&[0x1f, 0x8b]) || is_zip(file)
}

fn is_zip(file: &[u8]) -> bool {
    // An archive without files has the second.
    file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06")
}

/// Unpacks a HAR file as it is, gzip of one, or a zip archive, of which run number `run` is taken, from 1; without a
/// wish the first.
///
/// In an archive a run is known by the first number in the name of its files, else in that of their folder, as in
/// `2_trace.json.gz` or `run-2/page.har`; views that WebPageTest repeats with a warm cache are runs of their own. A HAR
/// file without a number is that of all runs.
///
/// # Errors
/// If the file is damaged or too large, or an archive has no HAR file or no such run.
pub fn read(file: &[u8], run: Option<usize>) -> Result<Unpacked, ArchiveError> {
    if is_zip(file) {
        return read_zip(file, run);
    }
    let har = inflate(file, har::MAX_FILE_BYTES)?.into_owned();
    Ok(Unpacked { har, trace: None, run: String::new(), runs: Vec::new() })
}

/// A file of an archive that is of use.
struct Found {
    index: usize,
    run: Option<Run>,
    is_har: bool,
}

/// The number of a run, and whether its cache was warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    number: u64,
    warm: bool,
}

impl Run {
    fn name(self) -> String {
        format!("{}{}", self.number, if self.warm { " (repeat view)" } else { "" })
    }
}

fn read_zip(file: &[u8], wanted: Option<usize>) -> Result<Unpacked, ArchiveError> {
    let mut archive = ZipArchive::new(Cursor::new(file)).map_err(|error| damaged_zip(&error))?;
    if archive.len() > MAX_FILES {
        return Err(ArchiveError::TooManyFiles { files: archive.len() });
    }
    let mut found = Vec::new();
    for index in 0..archive.len() {
        if let Some(name) = archive.name_for_index(index)
            && let Some(is_har) = kind_of(name)
        {
            found.push(Found { index, run: run_of(name), is_har });
        }
    }
    let hars = || found.iter().filter(|file| file.is_har);
    if hars().next().is_none() {
        return Err(ArchiveError::NoHar { traces: found.len() });
    }
    let shared = hars().find(|file| file.run.is_none());
    let runs: BTreeSet<Run> = match shared {
        Some(_) => found.iter().filter_map(|file| file.run).collect(),
        None => hars().filter_map(|file| file.run).collect(),
    };
    let runs: Vec<Run> = runs.into_iter().collect();
    let names: Vec<String> = runs.iter().map(|run| run.name()).collect();
    let at = wanted.unwrap_or(1).wrapping_sub(1);
    if at >= runs.len().max(1) {
        return Err(ArchiveError::NoSuchRun { asked: wanted.unwrap_or(1), known: names });
    }
    let run = runs.get(at).copied();
    let of_run = |is_har: bool| {
        let mut fitting = found.iter().filter(move |file| file.is_har == is_har);
        fitting.find(|file| file.run == run)
    };
    // A trace without a number belongs to a run only if there is no other.
    let any_trace =
        || found.iter().find(|file| !file.is_har && file.run.is_none() && runs.len() < 2);
    let trace = of_run(false).or_else(any_trace).map(|file| file.index);
    let har = of_run(true).or(shared).map_or(0, |file| file.index);
    Ok(Unpacked {
        har: unpack(&mut archive, har, har::MAX_FILE_BYTES)?,
        trace: trace.map(|index| unpack(&mut archive, index, trace::MAX_FILE_BYTES)).transpose()?,
        run: run.map(Run::name).unwrap_or_default(),
        runs: names,
    })
}

/// Whether a file of this name is a HAR file or a trace, if it is one of them.
fn kind_of(name: &str) -> Option<bool> {
    let name = base_name(name).to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    if name.ends_with(".har") || name.ends_with("har.json") {
        return Some(true);
    }
    (name.ends_with(".json") && name.contains("trace")).then_some(false)
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn run_of(path: &str) -> Option<Run> {
    let base = base_name(path);
    let folder = base_name(path[..path.len() - base.len()].trim_end_matches(['/', '\\']));
    let number = first_number(base).or_else(|| first_number(folder))?;
    Some(Run { number, warm: base.to_ascii_lowercase().contains("cached") })
}

/// The first number of a name, unless it is a part of a word, as in `h2`, or of a host.
fn first_number(name: &str) -> Option<u64> {
    let mut words = name.split(['_', '-', '.', ' ']);
    words.find_map(|word| word.parse().ok())
}

fn unpack(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    index: usize,
    limit: usize,
) -> Result<Vec<u8>, ArchiveError> {
    let file = archive.by_index(index).map_err(|error| damaged_zip(&error))?;
    let name = file.name().escape_debug().to_string();
    let bytes = read_bounded(&name, file, limit)?;
    match inflate_named(&name, &bytes, limit)? {
        Cow::Owned(inflated) => Ok(inflated),
        Cow::Borrowed(_) => Ok(bytes),
    }
}

fn damaged_zip(error: &ZipError) -> ArchiveError {
    ArchiveError::Damaged { what: "the archive".to_owned(), message: error.to_string() }
}

#[cfg(test)]
mod tests;
