//! Files with recordings of links, turned into the forms that links follow.

use std::path::{Path, PathBuf};

use quipu_base::{Duration, Rate};
use quipu_link::convert::{ConvertError, Measured, convert};
pub use quipu_link::convert::{Direction as TraceDirection, Format as TraceFormat, Selection};
use quipu_record::{read_at_most, write_whole};
use thiserror::Error;

use crate::limits::MOST_TRACE_BYTES;

/// Bytes of a file that is converted, at most: data sets come as one file of many recordings. 256 MiB, our choice.
const MOST_BYTES: u64 = 4 * MOST_TRACE_BYTES;

/// A form that links follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceForm {
    /// CSV, with all that was measured.
    Csv,
    /// Mahimahi's, with the rates of one direction.
    Mahimahi(TraceDirection),
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertNote {
    /// Rows of CSV, or opportunities in Mahimahi's form.
    pub rows: usize,
    /// How long it is.
    pub length: Duration,
    /// The mean of each rate, with the name of its column.
    pub rates: Vec<(&'static str, Rate)>,
    /// Pings and those of them that were lost, if there are any.
    pub pings: Option<(usize, usize)>,
    /// Rows that were left out, with the reason.
    pub left_out: Vec<(&'static str, usize)>,
}

/// Why files are not converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertFileError {
    /// The file to write is there, and is not to be replaced.
    #[error("{0} exists; expected a new file, or --force to replace it")]
    Exists(PathBuf),
    /// A file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not of the form.
    #[error("{file}: {source}")]
    Text {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the line where there is one.
        source: ConvertError,
    },
    /// A file is no text.
    #[error("{file} has other bytes than UTF-8; expected text")]
    NoText {
        /// The file.
        file: PathBuf,
    },
    /// A file is too large.
    #[error("{file} is larger than 256 MiB; expected at most that")]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// What is measured cannot be written so.
    #[error("{file} cannot be written: {source}")]
    Form {
        /// The file to write.
        file: PathBuf,
        /// Why.
        source: ConvertError,
    },
    /// The file cannot be written.
    #[error("{file} cannot be written: {source}")]
    Write {
        /// The file to write.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes what `files` measured, one behind the other, into `out`, which with `force` may be there and be replaced. An
/// empty file may be there in any case. `out` appears whole, or not at all.
///
/// # Errors
/// If a file cannot be read, is not of the form, or `out` is there or cannot be written.
pub fn convert_trace(
    files: &[PathBuf],
    format: TraceFormat,
    selection: &Selection,
    form: TraceForm,
    out: &Path,
    force: bool,
) -> Result<ConvertNote, ConvertFileError> {
    if !force && std::fs::metadata(out).is_ok_and(|there| !there.is_file() || there.len() > 0) {
        return Err(ConvertFileError::Exists(out.to_owned()));
    }
    let texts: Vec<String> = files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let measured = convert(&texts, format, selection).map_err(|(index, source)| {
        let file = files.get(index).cloned().unwrap_or_default();
        ConvertFileError::Text { file, source }
    })?;
    let text = match form {
        TraceForm::Csv => Ok(measured.to_csv()),
        TraceForm::Mahimahi(direction) => measured.to_mahimahi(direction),
    };
    let file = || out.to_owned();
    let text = text.map_err(|source| ConvertFileError::Form { file: file(), source })?;
    write_whole(out, &text).map_err(|source| ConvertFileError::Write { file: file(), source })?;
    Ok(note(&measured, form, &text))
}

fn note(measured: &Measured, form: TraceForm, text: &str) -> ConvertNote {
    let written = match form {
        TraceForm::Csv => None,
        TraceForm::Mahimahi(direction) => measured.column_of(direction),
    };
    ConvertNote {
        rows: match form {
            TraceForm::Csv => measured.rows(),
            TraceForm::Mahimahi(_) => text.lines().count(),
        },
        length: measured.length(),
        rates: measured
            .rates()
            .map(|tally| (tally.column, tally.mean))
            .filter(|(column, _)| written.is_none_or(|written| written == *column))
            .collect(),
        pings: measured.pings(),
        left_out: measured.left_out().collect(),
    }
}

fn read(file: &Path) -> Result<String, ConvertFileError> {
    let given = || file.to_owned();
    let bytes = read_at_most(file, MOST_BYTES)
        .map_err(|source| ConvertFileError::Read { file: given(), source })?
        .ok_or_else(|| ConvertFileError::TooLarge { file: given() })?;
    String::from_utf8(bytes).map_err(|_| ConvertFileError::NoText { file: given() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_replaced_if_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.log"), "0 1.2\n1 2.4\n").unwrap();
        let convert = |form, out: &str, force| {
            let selection = Selection::default();
            let files = [at("a.log"), at("a.log")];
            convert_trace(&files, TraceFormat::Pensieve, &selection, form, &at(out), force)
        };
        let note = convert(TraceForm::Csv, "a.csv", false).unwrap();
        let text = std::fs::read_to_string(at("a.csv")).unwrap();
        assert_eq!(text, "time_s,mbps,test\n0,1.2,1\n1,2.4,1\n2,1.2,2\n3,2.4,2\n");
        let mean = Rate::from_bits_per_sec(1_800_000);
        assert_eq!((note.rows, note.length), (4, Duration::from_secs(4)));
        assert_eq!(note.rates, [("mbps", mean)]);

        let down = TraceForm::Mahimahi(TraceDirection::Down);
        let error = convert(down, "a.csv", false).unwrap_err().to_string();
        assert!(error.ends_with("a.csv exists; expected a new file, or --force to replace it"));
        assert_eq!(convert(down, "a.csv", true).unwrap().rows, 600);
        std::fs::write(at("empty"), "").unwrap();
        assert_eq!(convert(down, "empty", false).unwrap().rows, 600);
    }

    #[test]
    fn what_is_wrong_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.log"), "0 1.2\nx\n").unwrap();
        std::fs::write(at("b.log"), [0xff]).unwrap();
        let error = |file: PathBuf| {
            let (format, selection) = (TraceFormat::Pensieve, Selection::default());
            let error =
                convert_trace(&[file], format, &selection, TraceForm::Csv, &at("out"), false);
            error.unwrap_err().to_string()
        };
        assert!(error(at("a.log")).contains("a.log: line 2: `x`, expected seconds"));
        assert!(error(at("b.log")).ends_with("other bytes than UTF-8; expected text"));
        assert!(error(at("c.log")).contains("c.log cannot be read"));
        #[cfg(unix)]
        assert!(error("/dev/zero".into()).contains("larger than 256 MiB"));
        assert!(!at("out").exists());
    }
}
