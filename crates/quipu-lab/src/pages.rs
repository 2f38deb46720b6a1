//! Pages and browsers by name: the seam to `quipu-web`.

mod body;
pub(crate) mod note;
mod planned;
mod reading;

use std::borrow::Cow;
use std::io;
use std::path::Path;

use quipu_base::{Bytes, Seed};
use quipu_web::archive;
use quipu_web::har::HarError;
use quipu_web::import;
use quipu_web::page::{Page, PageError, PageReport, ReadOptions, ReadPage, read};
use quipu_web::recording::AddTraceError;
use quipu_web::scheme::BrowserScheme;
use quipu_web::synthetic::Sample;
use quipu_web::trace::{MAX_FILE_BYTES, TraceError};
use thiserror::Error;

use body::file_hash;
pub(crate) use body::{BodyCheck, body_parts};
pub(crate) use planned::Extent;
pub use planned::{PlannedPage, RunPage};
use quipu_record::{PageNote, read_at_most};
use quipu_scenario::{
    Finding, PRIES, PageName, Place, Priorities, ScenarioError, Spot, changed, content_hash,
    split_hash,
};
pub use quipu_web::synthetic::exchanges;
pub use reading::Reading;

/// The largest HAR file that is read: 256 MiB.
pub(crate) const MOST_BYTES: u64 = 256 << 20;

/// The most bytes of bodies that a page may have: 16 GiB.
const MOST_BODY: Bytes = Bytes(16 << 30);

/// A page, ready to be loaded, and what is known of it.
#[derive(Clone, Debug)]
pub struct LoadedPage {
    /// The page.
    pub page: RunPage,
    /// What results say about it.
    pub note: PageNote,
    /// Everything that was guessed when it was read.
    pub report: PageReport,
    /// The hash of the content of its file, if it is one.
    pub file: Option<u64>,
}

/// The recordings of a file, or of a page that comes with the program.
#[derive(Clone, Debug)]
pub struct Recordings {
    /// A short name for them: that of the page, or that of the file without folders and ending.
    pub name: String,
    /// The HAR file.
    pub har: Vec<u8>,
    /// The hash of the content of the file that they are from, if it is one.
    pub file: Option<u64>,
}

/// A page that cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PageLoadError {
    /// There is no such page or load.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The file cannot be read.
    #[error("cannot read page {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file has another content than a result that names it was made from.
    #[error("page {file} {}", changed(*.found, *.expected))]
    Changed {
        /// The file.
        file: String,
        /// The hash of its content.
        found: u64,
        /// The hash that the scenario names.
        expected: u64,
    },
    /// The file is too large.
    #[error("page {file} has too many bytes; expected at most {MOST_BYTES}")]
    TooLarge {
        /// The file.
        file: String,
    },
    /// The page is too large.
    #[error("page {page} has bodies of {bytes}; expected at most 16 GiB")]
    TooMuch {
        /// The page.
        page: String,
        /// Bytes of its bodies.
        bytes: Bytes,
    },
    /// The file is no HAR file.
    #[error("page {page}: {source}")]
    Har {
        /// The page.
        page: String,
        /// Where in the file; its start if that is not known.
        spot: Box<Spot>,
        /// Why.
        source: HarError,
    },
    /// The trace cannot be read, or is of another load.
    #[error("trace in {file}: {source}")]
    Trace {
        /// The file.
        file: String,
        /// Why.
        source: AddTraceError,
    },
    /// The file describes no page.
    #[error("page {page}: {source}")]
    Page {
        /// The page.
        page: String,
        /// Why.
        source: PageError,
    },
}

impl PageLoadError {
    /// Why `bytes`, the content of the page called `name`, are none.
    fn of_page(name: &str, bytes: &[u8], error: PageError) -> PageLoadError {
        let page = name.to_owned();
        match error {
            PageError::Har(source) if PageName::is_file(name) => {
                let (line, column) = source.place().unwrap_or((1, 1));
                let spot = Spot::at(name, &String::from_utf8_lossy(bytes), line, column);
                PageLoadError::Har { page, spot: Box::new(spot), source }
            }
            source => PageLoadError::Page { page, source },
        }
    }

    /// What is wrong with the page that `field` names.
    pub(crate) fn findings(&self, field: &str) -> Vec<Finding> {
        match self {
            // The error tells the page, which is the value of the field.
            PageLoadError::Scenario(ScenarioError::Invalid { value, expected, .. }) => {
                vec![Finding::new(field, value, expected)]
            }
            PageLoadError::Scenario(error) => {
                let mut findings = error.findings();
                findings.iter_mut().for_each(|finding| field.clone_into(&mut finding.field));
                findings
            }
            PageLoadError::Har { spot, source, .. } => {
                let place = Place::File(Spot::clone(spot));
                vec![Finding::new(source.field(), source.fault(), "").at(place)]
            }
            other => vec![Finding::new(field, other.to_string(), "")],
        }
    }
}

impl LoadedPage {
    /// The page that comes with the program as `name`, or the HAR file `name`.
    ///
    /// # Errors
    /// If there is no such page, or the file is unreadable or describes none.
    pub fn load(name: &str, reading: Reading) -> Result<LoadedPage, PageLoadError> {
        let Recordings { name: short, har, file } = recording(name)?;
        let (name, _) = split_hash(name);
        let ReadPage { page, report } = read(&short, &har, &reading.options())
            .map_err(|error| PageLoadError::of_page(name, &har, error))?;
        let page = page.with_computing(reading.scale());
        check_size(name, &page)?;
        let note = note::of_page(&page, short, file_hash(&har));
        Ok(LoadedPage { page: RunPage::new(page.shared()), note, report, file })
    }

    /// The same, or the page of a model that is drawn from `seed`: `pries:N` is the page that run `N`
    /// of an experiment with that seed loads.
    ///
    /// # Errors
    /// As [`LoadedPage::load`]; and if `name` is a model, not a page.
    pub fn load_or_draw(
        name: &str,
        seed: Seed,
        reading: Reading,
    ) -> Result<LoadedPage, PageLoadError> {
        match PageName::parse(name)? {
            PageName::Recorded(name) => LoadedPage::load(name, reading),
            PageName::DrawnAt(index) => LoadedPage::drawn(seed, index),
            PageName::Drawn => {
                let expected = "one page of the model, such as pries:0";
                Err(ScenarioError::invalid("page", name, expected).into())
            }
        }
    }
}

/// Refuses bodies that no run could carry.
fn check_size(name: &str, page: &Page) -> Result<(), PageLoadError> {
    match page.body_bytes() {
        bytes if bytes > MOST_BODY => Err(PageLoadError::TooMuch { page: name.to_owned(), bytes }),
        _ => Ok(()),
    }
}

/// The recordings of the HAR file `name`, which may have the hash of its content behind it, or of the page of that name
/// that comes with the program.
///
/// # Errors
/// If there are none, or they cannot be read, or the file has another content.
pub fn recording(name: &str) -> Result<Recordings, PageLoadError> {
    if !PageName::is_file(name) {
        return match quipu_web::pages::find(name) {
            Ok(builtin) => match builtin.har() {
                Ok(har) => {
                    let name = builtin.name.to_owned();
                    Ok(Recordings { name, har: har.into_owned(), file: None })
                }
                Err(error) => Err(PageLoadError::of_page(name, &[], error)),
            },
            Err(_) => {
                let known = quipu_web::pages::builtin().iter().map(|page| page.name);
                let known = known.chain([PRIES]);
                Err(ScenarioError::unknown("page", name, known).into())
            }
        };
    }
    let (name, expected) = split_hash(name);
    let failed = |source| PageLoadError::Read { file: name.to_owned(), source };
    let Some(bytes) = read_at_most(Path::new(name), MOST_BYTES).map_err(failed)? else {
        return Err(PageLoadError::TooLarge { file: name.to_owned() });
    };
    let found = content_hash(&bytes);
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        return Err(PageLoadError::Changed { file: name.to_owned(), found, expected });
    }
    let har = match archive::is_packed(&bytes) {
        true => {
            let unpacked = archive::read(&bytes, None);
            let unpacked = unpacked.map_err(|error| failed(io::Error::other(error)))?;
            let traced = |trace: Vec<u8>| traced(name, &unpacked.har, name, &trace);
            match unpacked.trace.map(traced) {
                // That it was recorded without what is needed is no fault of the recording.
                None
                | Some(Err(PageLoadError::Trace {
                    source: AddTraceError::Trace(TraceError::NoMainThread),
                    ..
                })) => unpacked.har,
                Some(file) => file?,
            }
        }
        false => bytes,
    };
    let imported = import::har_file(&har).map_err(|error| failed(io::Error::other(error)))?;
    let har = match imported {
        Cow::Owned(made) => made,
        Cow::Borrowed(_) => har,
    };
    let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_else(|| name.to_owned());
    let name = stem.strip_suffix(".har").unwrap_or(&stem).to_owned();
    Ok(Recordings { name, har, file: Some(found) })
}

/// The HAR file `name`, or the page of that name that comes with the program, with the trace in the file `trace`, as it is or
/// gzip, as the trace of its first load.
///
/// # Errors
/// If one of them does not exist or cannot be read, or the trace is of another load.
pub fn with_trace(name: &str, trace: &Path) -> Result<Vec<u8>, PageLoadError> {
    let har = recording(name)?.har;
    let file = trace.to_string_lossy().into_owned();
    let failed = |source| PageLoadError::Read { file: file.clone(), source };
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    let Some(packed) = read_at_most(trace, most).map_err(failed)? else {
        return Err(PageLoadError::TooLarge { file });
    };
    let bytes = archive::inflate(&packed, MAX_FILE_BYTES);
    let bytes = bytes.map_err(|error| failed(io::Error::other(error)))?;
    traced(name, &har, &file, &bytes)
}

/// The HAR file `har`, called `name`, with the trace in the file `file`.
fn traced(name: &str, har: &[u8], file: &str, trace: &[u8]) -> Result<Vec<u8>, PageLoadError> {
    quipu_web::recording::with_trace(har, trace).map_err(|error| match error {
        AddTraceError::Har(source) => PageLoadError::of_page(name, har, PageError::Har(source)),
        AddTraceError::Page(source) => PageLoadError::of_page(name, har, source),
        error => PageLoadError::Trace { file: file.to_owned(), source: error },
    })
}

/// The recordings called `names`, files or pages that come with the program, as one file with the loads of one page.
///
/// # Errors
/// If one of them does not exist or is no recording.
pub fn join(names: &[String]) -> Result<Vec<u8>, PageLoadError> {
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        let bytes = recording(name)?.har;
        // What is wrong with a file is told with its name.
        read(name, &bytes, &ReadOptions::default())
            .map_err(|error| PageLoadError::of_page(name, &bytes, error))?;
        files.push(bytes);
    }
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let failed =
        |source| PageLoadError::Page { page: names.join(", "), source: PageError::Har(source) };
    quipu_web::recording::join(&files).map_err(failed)
}

/// What `pages` pages yield that the model called `name` draws from `seed`, each read for a time.
///
/// # Errors
/// If there is no such model.
pub fn draw_sample(name: &str, seed: Seed, pages: u64) -> Result<Sample, PageLoadError> {
    if name != PRIES {
        return Err(ScenarioError::unknown("model", name, [PRIES]).into());
    }
    let failed = |source| PageLoadError::Page { page: name.to_owned(), source };
    Sample::drawn(seed, pages, 1).map_err(failed)
}

/// Names and one line each of the pages that come with the program, then of those that are drawn.
pub fn builtin_pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let drawn = [
        (PRIES, "drawn anew for each run from the web traffic model of Pries et al. (2012)"),
        ("pries:N", "the page that run N draws, in every run"),
    ];
    quipu_web::pages::builtin().iter().map(|page| (page.name, page.about)).chain(drawn)
}

/// The priority scheme of the browser called `name`.
///
/// # Errors
/// If there is none; the error names the nearest.
pub fn browser(name: &str) -> Result<BrowserScheme, ScenarioError> {
    BrowserScheme::builtin(name)
        .map_err(|_| ScenarioError::unknown("browser", name, BrowserScheme::names()))
}

/// The browsers: names, the priorities that each knows, and one line about it.
pub fn browsers() -> impl Iterator<Item = (&'static str, String, String)> {
    schemes().map(|(name, scheme)| {
        let known = [(true, Priorities::Tree), (scheme.has_urgencies(), Priorities::Urgency)];
        let known = known.iter().filter(|(knows, _)| *knows);
        let known: Vec<String> = known.map(|(_, priorities)| priorities.to_string()).collect();
        (name, known.join(", "), scheme.about().to_owned())
    })
}

/// Names of the browsers that know urgencies.
pub(crate) fn browsers_with_urgencies() -> Vec<&'static str> {
    schemes().filter(|(_, scheme)| scheme.has_urgencies()).map(|(name, _)| name).collect()
}

fn schemes() -> impl Iterator<Item = (&'static str, BrowserScheme)> {
    // Every shipped profile is sound, as its tests hold.
    BrowserScheme::names().filter_map(|name| Some((name, BrowserScheme::builtin(name).ok()?)))
}
