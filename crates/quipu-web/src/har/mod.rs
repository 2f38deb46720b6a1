//! HAR 1.2 files as their many producers write them.
//!
//! [`Har::parse`] accepts what Chrome's developer tools, chrome-har (Browsertime, sitespeed.io),
//! WebPageTest, Firefox and older tools write: a byte order mark, absent or null `pages`, null
//! methods, numbers written as text, unknown fields. Format: HAR 1.2,
//! <http://www.softwareishard.com/blog/har-12-spec/>; fields that begin with `_` are the
//! producers' own.
//!
//! What the file means for a page load is the business of [`crate::page`].

mod error;
mod lenient;
mod model;
mod place;

pub use error::HarError;
pub use model::{
    CallFrame, Content, Creator, DevToolsInitiator, Entry, Har, HarNetwork, HarPage, Initiator,
    PageTimings, Request, Response, Stack, Timings,
};

use model::Document;

/// The largest file that is read, in bytes: 256 MiB. Our choice; recordings without bodies stay
/// below 10 MB.
pub const MAX_FILE_BYTES: usize = 256 << 20;

/// The most entries that a file may have. Our choice; the largest page known to us has 1,148.
pub const MAX_ENTRIES: usize = 20_000;

/// The largest size of one object in bytes that is believed: 1 GiB. Our choice.
pub const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// Creators of the files that come with the library and were not recorded.
const MADE_UP: [&str; 3] = ["make_synthetic", "generated from hosted files", "written by hand"];

impl Har {
    /// Reads a HAR file: UTF-8 JSON, with or without a byte order mark.
    ///
    /// # Errors
    /// If the file is too large, compressed, cut short, not JSON, not a HAR, has no or too many
    /// entries, or an entry states a size above [`MAX_OBJECT_BYTES`]. Sizes below zero are not an
    /// error: -1 means unknown, and chrome-har writes other negative numbers for requests that
    /// never left the browser.
    pub fn parse(file: &[u8]) -> Result<Har, HarError> {
        if file.len() > MAX_FILE_BYTES {
            return Err(HarError::TooLarge { bytes: file.len(), limit: MAX_FILE_BYTES });
        }
        if file.starts_with(&[0x1f, 0x8b]) {
            return Err(HarError::Compressed);
        }
        let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
        let document: Document =
            serde_json::from_slice(text).map_err(|error| HarError::from_json(text, error))?;
        let har = document.log.ok_or_else(|| HarError::no_log(text))?;
        if har.entries.is_empty() {
            return Err(HarError::no_entries(text));
        }
        if har.entries.len() > MAX_ENTRIES {
            return Err(HarError::TooManyEntries { count: har.entries.len(), limit: MAX_ENTRIES });
        }
        for (index, entry) in har.entries.iter().enumerate() {
            check_sizes(index, entry)?;
        }
        Ok(har)
    }

    /// Whether nothing of it was recorded: its times, if it has any, are those of the page alone.
    pub fn is_made_up(&self) -> bool {
        let name = self.creator.name.as_deref();
        name.is_some_and(|name| MADE_UP.contains(&name))
    }
}

fn check_sizes(index: usize, entry: &Entry) -> Result<(), HarError> {
    let response = &entry.response;
    let stated = [
        ("request.headersSize", entry.request.headers_size),
        ("request.bodySize", entry.request.body_size),
        ("response.headersSize", response.headers_size),
        ("response.bodySize", response.body_size),
        ("response._transferSize", response.transfer_size),
        ("response.content.size", response.content.size),
        ("_bytesIn", entry.bytes_in),
        ("_bytesOut", entry.bytes_out),
        ("_objectSize", entry.object_size),
    ];
    for (field, value) in stated {
        if let Some(value) = value.filter(|&value| value > MAX_OBJECT_BYTES as f64) {
            return Err(HarError::AbsurdSize { entry: index + 1, field, value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
