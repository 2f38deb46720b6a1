//! Reports: result folders drawn as one page that opens offline.
//!
//! From above to below:
//!
//! - [`report()`]: a folder becomes a [`document::Document`]; [`page::page`] makes one HTML file of it.
//! - `read`: what a folder is, and its tables, with a notice for all that cannot be read.
//! - [`aggregate`]: many runs become few numbers: curves, boxes, ratios, heat maps.
//! - `sections`: sentences, figures and tables from these.
//! - [`spec`]: figures as Vega-Lite specifications.
//!
//! Start with [`report()`] and [`document::Document`].
//!
//! Not here: how the page looks and what it does (`assets/`), and the command line.

pub mod aggregate;
pub mod document;
mod loads;
pub mod notices;
pub mod page;
mod read;
pub mod results;
mod sections;
pub mod spec;

use std::path::Path;

use quipu_record::Replays;
use thiserror::Error;

use crate::document::Document;
pub use crate::loads::LoadName;
use crate::notices::Notices;

/// No report can be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder is not there, or holds no result.
    #[error("{0}")]
    NoResult(String),
}

/// What a report is made with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The loads that are shown in full, of one page and network; if none is named, of each policy on the
    /// first page and network the one with the median page time. The first is compared with the others.
    pub loads: Vec<LoadName>,
}

/// Reads `folder`, and says in words, figures and tables what its results are. `replays` runs
/// loads again that are shown in full.
///
/// # Errors
/// If the folder is not there, or holds no result. What is wrong in a result becomes a notice.
pub fn report(
    folder: &Path,
    options: &Options,
    replays: &dyn Replays,
) -> Result<Document, ReportError> {
    let mut notices = Notices::default();
    let folders = read::read(folder, &mut notices)?;
    let loads = loads::loads(&folders, &options.loads, replays, &mut notices);
    Ok(sections::document(&folders, &loads, notices))
}
