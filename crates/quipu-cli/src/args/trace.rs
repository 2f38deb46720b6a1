//! Options of `quipu trace`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use quipu_scenario::TraceFormat;

use super::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Convert a file of a public data set to CSV or to Mahimahi's format
    #[command(after_help = examples::CONVERT)]
    Convert(ConvertOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ConvertOptions {
    /// Files of one recording; several are strung together in this order
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the files
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) from: TraceFormat,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = WrittenFormat::Csv)]
    pub(crate) to: WrittenFormat,
    /// Direction whose rates are written in Mahimahi's format, where a file has both
    #[arg(long, value_name = "DIRECTION", value_enum, default_value_t = WrittenDirection::Down)]
    pub(crate) direction: WrittenDirection,
    /// Columns of a CSV file, such as time=Timestamp,rate=DL_bitrate:kbit/s; keys: time, rate, up, rtt, delay, loss
    #[arg(long, value_name = "LIST")]
    pub(crate) columns: Option<String>,
    /// Part of a file: the carrier x or y of pam2025, or the beginning of dates of starlink-iperf and starlink-ping,
    /// such as 2024-01-25
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<String>,
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Replace a file that is not empty
    #[arg(long)]
    pub(crate) force: bool,
}

/// A format that links follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WrittenFormat {
    /// Comma-separated values with a header
    Csv,
    /// Packet-delivery trace
    Mahimahi,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WrittenDirection {
    /// Towards the client
    Down,
    /// Towards the server
    Up,
}

fn formats() -> impl TypedValueParser<Value = TraceFormat> {
    let all = TraceFormat::ALL.map(|format| PossibleValue::new(format.name()).help(format.about()));
    PossibleValuesParser::new(all).map(|name| {
        let found = TraceFormat::ALL.into_iter().find(|format| format.name() == name);
        // Only names of formats pass.
        found.unwrap_or(TraceFormat::Csv)
    })
}
