//! Pages and browsers by name: the seam to `quipu-web`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quipu_base::Bytes;
use quipu_web::page::{Page, PageError, PageReport, ReadOptions, ReadPage, read};
use quipu_web::scheme::BrowserScheme;
use thiserror::Error;

use crate::plan::is_file_name;
use crate::results::PageNote;
use crate::run::{Bodies, file_hash};
use crate::scenario::{Priorities, ScenarioError};

/// The largest HAR file that is read: 256 MiB.
const MOST_BYTES: u64 = 256 << 20;

/// The most bytes of bodies that a page may have: 16 GiB.
const MOST_BODY: Bytes = Bytes(16 << 30);

/// A page, ready to be loaded.
#[derive(Clone, Debug)]
pub struct LoadedPage {
    /// The page.
    pub page: Arc<Page>,
    /// What results say about it.
    pub note: PageNote,
    /// Everything that was guessed when it was read.
    pub report: PageReport,
    /// What its objects' bodies are.
    pub bodies: Bodies,
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
    /// The file is too large.
    #[error("page {file} has {bytes} bytes; expected at most {MOST_BYTES}")]
    TooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: u64,
    },
    /// The page is too large.
    #[error("page {page} has bodies of {bytes}; expected at most 16 GiB")]
    TooMuch {
        /// The page.
        page: String,
        /// Bytes of its bodies.
        bytes: Bytes,
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

impl LoadedPage {
    /// The page that comes with the program as `name`, or the HAR file `name`.
    ///
    /// # Errors
    /// If there is no such page, or the file is unreadable or describes none.
    pub fn load(name: &str) -> Result<LoadedPage, PageLoadError> {
        let (bytes, short) = content(name)?;
        let ReadPage { page, report } = read(&short, &bytes, &ReadOptions::default())
            .map_err(|source| PageLoadError::Page { page: name.to_owned(), source })?;
        let note = PageNote {
            name: short,
            objects: page.objects().len(),
            bytes: page.body_bytes().0,
            hosts: page.hosts(),
            hash: file_hash(&bytes),
        };
        if page.body_bytes() > MOST_BODY {
            let (page, bytes) = (name.to_owned(), page.body_bytes());
            return Err(PageLoadError::TooMuch { page, bytes });
        }
        let bodies = Bodies::new(&page);
        Ok(LoadedPage { page: page.shared(), note, report, bodies })
    }

    /// URL of object `id`, or nothing.
    pub fn url(&self, id: u32) -> &str {
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        self.page.objects().get(index).map_or("", |object| &object.url)
    }
}

/// The bytes of a HAR file and a short name for it.
fn content(name: &str) -> Result<(Vec<u8>, String), PageLoadError> {
    if !is_file_name(name) {
        return match quipu_web::pages::find(name) {
            Ok(builtin) => Ok((builtin.bytes.to_vec(), builtin.name.to_owned())),
            Err(_) => {
                let known = quipu_web::pages::builtin().iter().map(|page| page.name);
                Err(ScenarioError::unknown("page", name, known).into())
            }
        };
    }
    let failed = |source| PageLoadError::Read { file: name.to_owned(), source };
    let bytes = fs::metadata(name).map_err(failed)?.len();
    if bytes > MOST_BYTES {
        return Err(PageLoadError::TooLarge { file: name.to_owned(), bytes });
    }
    let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok((fs::read(name).map_err(failed)?, stem.unwrap_or_else(|| name.to_owned())))
}

/// Names and one line each of the pages that come with the program.
pub fn builtin_pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    quipu_web::pages::builtin().iter().map(|page| (page.name, page.about))
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
