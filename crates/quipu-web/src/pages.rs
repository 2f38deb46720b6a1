//! The pages that ship inside the library. Sources and licences: `pages/SOURCES.md`.

use std::borrow::Cow;

use crate::archive;
use crate::har::{HarError, MAX_FILE_BYTES};
use crate::name::UnknownName;
use crate::page::{PageError, ReadOptions, ReadPage, read};

/// A recording inside the library.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinPage {
    /// Short name, such as `wikipedia`.
    pub name: &'static str,
    /// One line: what it is, when and by what it was recorded.
    pub about: &'static str,
    /// The HAR file; some are packed with gzip.
    bytes: &'static [u8],
}

impl BuiltinPage {
    /// Reads the page.
    ///
    /// # Errors
    /// None for the pages that ship; a test reads them all.
    pub fn read(&self) -> Result<ReadPage, PageError> {
        read(self.name, &self.har()?, &ReadOptions::default())
    }

    /// The HAR file.
    ///
    /// # Errors
    /// None for the pages that ship; a test reads them all.
    pub fn har(&self) -> Result<Cow<'static, [u8]>, PageError> {
        Ok(archive::inflate(self.bytes, MAX_FILE_BYTES).map_err(|_| HarError::Compressed)?)
    }
}

macro_rules! page {
    ($name:literal, $file:literal, $about:literal) => {
        BuiltinPage {
            name: $name,
            about: $about,
            bytes: include_bytes!(concat!("../pages/", $file, ".har")),
        }
    };
    (own $name:literal, $about:literal) => {
        BuiltinPage {
            name: $name,
            about: $about,
            bytes: include_bytes!(concat!("../pages/own/", $name, ".har.gz")),
        }
    };
}

static PAGES: [BuiltinPage; 30] = [
    page!("akamai", "http2.akamai.com-demo-2018", "HTTP/2 demo: 360 small tiles; chrome-har, 2018"),
    page!("amazon", "www.amazon.com-2026-devtools", "short landing page; Chrome DevTools, 2026"),
    page!("cnn", "www.cnn.com-2026", "1,148 requests, 30 MB with video loops; chrome-har, 2026"),
    page!(own "dojo-demo", "76 scripts of a module loader; recorded at three speeds, 2026"),
    page!("framework-amazon", "framework/amazon.com", "the framework paper's amazon.com: 25 files"),
    page!("framework-google", "framework/google.com", "the framework paper's google.com: 15 files"),
    page!(
        "framework-youtube",
        "framework/youtube.com",
        "the framework paper's youtube.com: 51 files"
    ),
    page!(own "gentelella", "a dashboard of modules; recorded at three speeds, 2026"),
    page!("github-2015", "github.com-2015", "front page over HTTP/1.1; WebPageTest, 2015"),
    page!("google", "www.google.com-2026-wpt", "start page; WebPageTest, 2026"),
    page!("google-devtools", "www.google.com-2026-devtools", "start page; Chrome DevTools, 2026"),
    page!("google-firefox", "www.google.com-2026-firefox", "start page; Firefox, 2026"),
    page!("greenweb", "www.thegreenwebfoundation.org-2020", "51 requests; chrome-har, 2020"),
    page!(
        "ilmessaggero",
        "www.ilmessaggero.it-2018-push",
        "one host, server push; chrome-har, 2018"
    ),
    page!(own "kicad-start", "80 screenshots, no script; recorded at three speeds, 2026"),
    page!("mobileh2-amazon", "synthetic/amazon-256-3760k", "made up: 256 objects, 3.76 MB"),
    page!("mobileh2-example", "synthetic/mobileh2-example", "made up: MobileH2's worked example"),
    page!("mobileh2-google", "synthetic/google-14-390k", "made up: 14 objects, 0.39 MB"),
    page!(own "pandas-merging", "40 pictures, scripts, fonts; recorded at three speeds, 2026"),
    page!("pw-pats-parallel", "synthetic/pw-pats-parallel", "made up: PW-PATS, parallel mode"),
    page!("pw-pats-traditional", "synthetic/pw-pats-traditional", "made up: PW-PATS, one by one"),
    page!(own "rust-book", "a chapter of the Rust book; recorded at three speeds, 2026"),
    page!(own "rust-vec", "80 kB of HTML, eight fonts; recorded at three speeds, 2026"),
    page!(own "sb-admin", "Bootstrap, jQuery, icon font; recorded at three speeds, 2026"),
    page!("sitespeed", "www.sitespeed.io-2018", "9 requests; chrome-har, 2018"),
    page!(own "sphinx-manual", "a small Sphinx site; recorded at three speeds, 2026"),
    page!("theverge", "www.theverge.com-2026", "587 requests with ads; Chrome DevTools, 2026"),
    page!(
        "theverge-2016",
        "www.theverge.com-2016",
        "244 requests, no initiators; Browsertime, 2016"
    ),
    page!("wikipedia", "en.wikipedia.org-2018-chrome", "a long article; WebPageTest, 2018"),
    page!("youtube-embed", "youtube-embed-2024", "a page with a video player; DevTools, 2024"),
];

/// The pages that ship, by name.
pub fn builtin() -> &'static [BuiltinPage] {
    &PAGES
}

/// The shipped page `name`.
///
/// # Errors
/// If there is none of this name; the error names the nearest.
pub fn find(name: &str) -> Result<&'static BuiltinPage, UnknownName> {
    PAGES
        .iter()
        .find(|page| page.name == name)
        .ok_or_else(|| UnknownName::new("page", name, PAGES.iter().map(|page| page.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_read_and_names_are_sorted() {
        assert!(PAGES.is_sorted_by(|one, other| one.name < other.name));
        for builtin in builtin() {
            let read = builtin.read().unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
            assert_eq!(read.page.name(), builtin.name);
        }
    }

    #[test]
    fn a_misspelt_page_is_told_its_name() {
        assert_eq!(find("wikipeda").unwrap_err().nearest.as_deref(), Some("wikipedia"));
        assert_eq!(find("cnn").unwrap().name, "cnn");
    }
}
