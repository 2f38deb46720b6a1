//! Files of results.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use thiserror::Error;

/// A file of a result could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system refused.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file that the result was made from cannot be kept beside it.
    #[error("{file} {message}")]
    Input {
        /// The file.
        file: String,
        /// Why.
        message: String,
    },
    /// The scenario cannot be written out.
    #[error("{0}")]
    Scenario(String),
}

/// Writes the file `name` in `directory` with what `fill` puts into it.
///
/// # Errors
/// If it cannot be made, or `fill` fails.
pub fn write(
    directory: &Path,
    name: &str,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), FileError> {
    let failed = |source| FileError::Write { file: name.to_owned(), source };
    let mut file = BufWriter::new(File::create(directory.join(name)).map_err(failed)?);
    fill(&mut file).and_then(|()| file.flush()).map_err(failed)
}
