//! What to write if a file's columns have other names than the usual ones.

use quipu_link::{Column, SeriesError, TraceError};

use super::Use;
use crate::choice::Direction;

/// What a column is for: the key of `--trace-columns`, the field of a link, and words that names have, the likeliest
/// first.
type Role = (&'static str, &'static str, &'static [&'static str]);

const TIME: Role = ("time", "time_column", &["timestamp", "time", "date", "ts", "t"]);
const RTT: Role = ("rtt", "rtt_column", &["rtt", "ping", "pingavg", "latency"]);
const LOSS: Role = ("loss", "loss_column", &["loss", "lost", "pingloss"]);
const DOWN: Role = (
    "rate",
    "column",
    &["dl", "down", "download", "downlink", "throughput", "bitrate", "bandwidth", "tput", "rate"],
);
const UP: Role = (
    "rate",
    "column",
    &["ul", "up", "upload", "uplink", "throughput", "bitrate", "bandwidth", "tput", "rate"],
);

/// Which columns of the file are likely those that `used_for` needs, as text that can be written; `None` if `error` is
/// another one, or nothing is likely.
pub(super) fn hint(error: &TraceError, used_for: &Use) -> Option<String> {
    let TraceError::Series(SeriesError::NoColumn { header, .. }) = error else { return None };
    let (role, columns, value) = match used_for {
        Use::Rates { direction: Direction::Down, columns } => (DOWN, columns, &columns.rate),
        Use::Rates { direction: Direction::Up, columns } => (UP, columns, &columns.rate),
        Use::Delays { columns } => {
            (RTT, columns, columns.rtt.as_ref().map_or(&columns.delay, |_| &columns.rtt))
        }
        Use::Losses { columns } => (LOSS, columns, &columns.loss),
    };
    let usual: &[&str] = match role {
        RTT => &["rtt_ms", "delay_ms"],
        LOSS => &["loss_percent", "rtt_ms"],
        _ => &["down_mbps", "up_mbps", "mbps"],
    };
    let found = [
        (TIME, named(&columns.time, header, &["time_s"]).or_else(|| likely(header, TIME))),
        (role, named(value, header, usual).or_else(|| likely(header, role))),
    ];
    let mut needs_unit = false;
    let parts = found.into_iter().filter_map(|((key, field, _), column)| {
        let (column, is_usual) = column?;
        if is_usual {
            return None;
        }
        let has_unit = key != "rate" || Column::from(column.as_str()).known_unit().is_some();
        let unit = if has_unit { "" } else { ":kbit/s" };
        needs_unit |= !unit.is_empty();
        Some((format!("{key}={column}{unit}"), format!("{field} = \"{column}{unit}\"")))
    });
    let (options, fields): (Vec<String>, Vec<String>) = parts.unzip();
    if options.is_empty() {
        return None;
    }
    let units = match needs_unit {
        true => {
            ", with the file's own unit in place of kbit/s (bit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s)"
        }
        false => "",
    };
    Some(format!(
        "; name the columns: `{}`, or --trace-columns \"{}\"{units}",
        fields.join(", "),
        options.join(",")
    ))
}

/// The column that is named, or a usual one, if the file has it, and whether it need not be named.
fn named(column: &Option<Column>, header: &[String], usual: &[&str]) -> Option<(String, bool)> {
    match column {
        Some(column) => header.contains(&column.name).then(|| (column.to_string(), false)),
        None => {
            let found = usual.iter().find(|usual| header.iter().any(|name| name == *usual))?;
            Some(((*found).to_owned(), true))
        }
    }
}

/// The column whose name has one of the words of `role`, the earlier words first.
fn likely(header: &[String], (_, _, words): Role) -> Option<(String, bool)> {
    let lower = |name: &str| name.to_lowercase();
    let has_word = |name: &str, word: &str| {
        lower(name).split(|sign: char| !sign.is_alphanumeric()).any(|part| part == word)
    };
    let whole = words.iter().find_map(|word| header.iter().find(|name| has_word(name, word)));
    // A short word within another one says nothing.
    let long = || words.iter().filter(|word| word.len() > 3);
    let within = || long().find_map(|word| header.iter().find(|name| lower(name).contains(word)));
    whole.or_else(within).map(|name| (name.clone(), false))
}
