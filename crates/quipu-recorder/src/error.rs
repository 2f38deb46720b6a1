//! Why a page is not recorded.

use std::path::PathBuf;

use thiserror::Error;

use crate::LEAST_CHROMIUM;

/// Why recording ended early. Each prints as one line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// There is no browser.
    #[error(
        "no Chromium found, looked for {}; install it (Debian: apt install chromium) or name it by --chromium PATH",
        .tried.join(", ")
    )]
    NoBrowser {
        /// The programs that were looked for.
        tried: Vec<String>,
    },
    /// The program that sets up the network did not do so.
    #[error("{} did not set up the network: {message}", .program.display())]
    NotShaped {
        /// The program.
        program: PathBuf,
        /// Why.
        message: String,
    },
    /// The browser does not start.
    #[error("{} does not start: {message}", .program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why.
        message: String,
    },
    /// The browser is older than is driven.
    #[error("{} is {version}; expected version {LEAST_CHROMIUM} or later", .program.display())]
    TooOld {
        /// The program.
        program: PathBuf,
        /// What it says of itself.
        version: String,
    },
    /// The page cannot be loaded at all.
    #[error("cannot load {url}: {message}")]
    NotLoaded {
        /// The page.
        url: String,
        /// Why, as Chromium says it.
        message: String,
    },
    /// The browser refuses a command.
    #[error("the browser refuses {method}: {message}")]
    Refused {
        /// The command.
        method: String,
        /// Why.
        message: String,
    },
    /// The browser does not answer.
    #[error("the browser does not answer to {method}")]
    NoAnswer {
        /// The command.
        method: String,
    },
    /// The browser ended by itself, or what it says cannot be read.
    #[error("the connection to the browser broke: {message}")]
    Lost {
        /// What is wrong.
        message: String,
    },
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl RecordError {
    /// Whether what was asked for is at fault, rather than a browser that had begun to work.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            RecordError::NoBrowser { .. }
                | RecordError::NotShaped { .. }
                | RecordError::NotStarted { .. }
                | RecordError::TooOld { .. }
                | RecordError::NotLoaded { .. }
        )
    }
}
