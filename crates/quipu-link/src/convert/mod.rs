//! Recordings in the forms of public data sets, read and written in those that links follow.
//!
//! - [`Format`]: the forms that are read; each was held against a file of its data set.
//! - [`convert`]: files of one form as [`Measured`], which is written as CSV or in Mahimahi's form.

mod measured;
mod ping;
mod sets;
mod write;

use std::fmt;

use quipu_base::Duration;

pub use measured::{Direction, Measured, Tally};

use crate::{Columns, DeliveryTrace, DeliveryTraceError, SeriesError};

/// A form in which measurements come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// CSV with a header, whose columns may be named.
    Csv,
    /// Packet-delivery traces.
    Mahimahi,
    /// Rows of two carriers at once: "A Large-Scale Study of the Potential of Multi-Carrier Access in the 5G Era" (PAM
    /// 2025), `processed_files/aligned_handover_events`.
    Pam2025,
    /// What `ping -D` prints, and the same with dates, as in `raw_files/ping` of the data set of PAM 2025.
    Ping,
    /// `data/iperf.csv` of "Starlink on the Road" (TMA 2024).
    StarlinkIperf,
    /// `data/ping.csv` of the same.
    StarlinkPing,
    /// Chunks of videos: `ABR_data` of Lumos (INFOCOM 2022).
    Lumos,
    /// Logs of the Android program G-NetTrack: "Beyond Throughput, the Next Generation: a 5G Dataset" (MMSys 2020).
    GNetTrack,
    /// `cooked_traces` of Pensieve (SIGCOMM 2017), which are those of HSDPA in Norway and of the FCC: a time and a rate
    /// on each line, without a header.
    Pensieve,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 9] = [
        Format::Csv,
        Format::Mahimahi,
        Format::Pam2025,
        Format::Ping,
        Format::StarlinkIperf,
        Format::StarlinkPing,
        Format::Lumos,
        Format::GNetTrack,
        Format::Pensieve,
    ];

    /// Its name, such as `starlink-iperf`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Mahimahi => "mahimahi",
            Format::Pam2025 => "pam2025",
            Format::Ping => "ping",
            Format::StarlinkIperf => "starlink-iperf",
            Format::StarlinkPing => "starlink-ping",
            Format::Lumos => "lumos",
            Format::GNetTrack => "gnettrack",
            Format::Pensieve => "pensieve",
        }
    }

    /// What it is, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Format::Csv => {
                "CSV with a header; --columns names those that are called otherwise than ours"
            }
            Format::Mahimahi => "packet-delivery trace of Mahimahi, as rates over 100 ms",
            Format::Pam2025 => "two carriers at once, of the multi-carrier data set of PAM 2025",
            Format::Ping => "output of ping -D, or with dates as in the same data set",
            Format::StarlinkIperf => "data/iperf.csv of Starlink on the Road",
            Format::StarlinkPing => "data/ping.csv of Starlink on the Road",
            Format::Lumos => "chunks of ABR_data of Lumos, without pauses and small chunks",
            Format::GNetTrack => "log of G-NetTrack, as the Irish 5G data set has them",
            Format::Pensieve => "time and Mbit/s on each line, as cooked_traces of Pensieve",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What of a file is taken.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of columns, for [`Format::Csv`].
    pub columns: Columns,
    /// The carrier `x` or `y` of [`Format::Pam2025`], which is `x` if this is not given; the beginning of the dates of
    /// rows of [`Format::StarlinkIperf`] and [`Format::StarlinkPing`].
    pub only: Option<String>,
}

/// Why a text cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// It is no packet-delivery trace, or none can be made of it.
    #[error(transparent)]
    Deliveries(#[from] DeliveryTraceError),
    /// A line is not of the form.
    #[error("line {line}: `{found}`, expected {expected}")]
    Line {
        /// Where it is, from 1.
        line: usize,
        /// Its first 40 characters.
        found: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// There is nothing of what was asked for.
    #[error("there are no {what} in it")]
    Nothing {
        /// What was looked for.
        what: &'static str,
    },
    /// The selection is none of this form.
    #[error("only is `{found}`, expected {expected}")]
    Only {
        /// The selection.
        found: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// The file itself is kept elsewhere.
    #[error(
        "the file holds a pointer of Git LFS; `git lfs pull` in its repository brings the content"
    )]
    Pointer,
    /// It is no table of the form.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// More would be written than may be read.
    #[error(
        "more than {} opportunities, expected a shorter or slower recording",
        DeliveryTrace::MOST_OPPORTUNITIES
    )]
    TooLong,
}

/// What `texts`, the files of one recording in their order, have measured, one behind the other.
///
/// ```
/// use quipu_link::convert::{Direction, Format, Selection, convert};
///
/// let text = "0\t2.4\n1.0\t4.8\n".to_owned();
/// let measured = convert(&[text], Format::Pensieve, &Selection::default()).map_err(|(_, error)| error)?;
/// assert_eq!(measured.to_csv(), "time_s,mbps\n0,2.4\n1,4.8\n");
/// assert_eq!(measured.to_mahimahi(Direction::Down)?.lines().count(), 600);
/// # Ok::<(), quipu_link::convert::ConvertError>(())
/// ```
///
/// # Errors
/// At the first text that is not of the form, with its place among them.
pub fn convert(
    texts: &[String],
    format: Format,
    selection: &Selection,
) -> Result<Measured, (usize, ConvertError)> {
    let mut all = Measured::default();
    for (index, text) in texts.iter().enumerate() {
        all.append(read(text, format, selection).map_err(|error| (index, error))?);
    }
    Ok(all)
}

fn read(text: &str, format: Format, selection: &Selection) -> Result<Measured, ConvertError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with("version https://git-lfs.github.com/") {
        return Err(ConvertError::Pointer);
    }
    let only = selection.only.as_deref();
    if let (Some(found), Format::Csv | Format::Mahimahi | Format::Ping | Format::Lumos)
    | (Some(found), Format::GNetTrack | Format::Pensieve) = (only, format)
    {
        let expected = "none with this format";
        return Err(ConvertError::Only { found: found.to_owned(), expected });
    }
    let measured = match format {
        Format::Csv => sets::csv(text, &selection.columns),
        Format::Mahimahi => Ok(measured::of_deliveries(&DeliveryTrace::parse(text)?)),
        Format::Pam2025 => sets::pam2025(text, only),
        Format::Ping => ping::read(text),
        Format::StarlinkIperf => sets::starlink_iperf(text, only),
        Format::StarlinkPing => sets::starlink_ping(text, only),
        Format::Lumos => sets::lumos(text),
        Format::GNetTrack => sets::gnettrack(text),
        Format::Pensieve => sets::pensieve(text),
    }?;
    if measured.length() == Duration::ZERO {
        return Err(ConvertError::Nothing { what: "measurements" });
    }
    Ok(measured)
}

#[cfg(test)]
mod tests;
