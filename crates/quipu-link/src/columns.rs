//! Columns of CSV files: what they are called, and which unit they have.

use std::fmt;
use std::str::FromStr;

/// What a column measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// In bits per second.
    Rate,
    /// In nanoseconds.
    Time,
    /// A date with a time of day.
    Date,
    /// In thousand-millionths.
    Share,
}

/// The unit of a column.
///
/// ```
/// use quipu_link::ColumnUnit;
///
/// assert_eq!(ColumnUnit::named("kbps"), ColumnUnit::named("kbit/s"));
/// assert_ne!(ColumnUnit::named("kb/s"), ColumnUnit::named("kB/s"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnUnit {
    /// The first is how it is written.
    names: &'static [&'static str],
    pub(crate) quantity: Quantity,
    /// A number is counted in units of ten to the power of this less.
    decimals: u32,
    /// What is counted is bytes, in thousandths.
    is_bytes: bool,
}

const fn unit(
    names: &'static [&'static str],
    quantity: Quantity,
    decimals: u32,
    is_bytes: bool,
) -> ColumnUnit {
    ColumnUnit { names, quantity, decimals, is_bytes }
}

const UNITS: [ColumnUnit; 14] = [
    unit(&["bit/s", "bps", "b/s", "bits/s"], Quantity::Rate, 0, false),
    unit(&["kbit/s", "kbps", "Kbps", "kb/s", "Kb/s", "kbit"], Quantity::Rate, 3, false),
    unit(&["Mbit/s", "Mbps", "mbps", "Mb/s", "mbit/s", "mbit"], Quantity::Rate, 6, false),
    unit(&["Gbit/s", "Gbps", "gbps", "Gb/s", "gbit/s", "gbit"], Quantity::Rate, 9, false),
    unit(&["B/s", "Bps", "bytes/s"], Quantity::Rate, 3, true),
    unit(&["kB/s", "KB/s", "kBps", "KBps"], Quantity::Rate, 6, true),
    unit(&["MB/s", "MBps"], Quantity::Rate, 9, true),
    ColumnUnit::SECONDS,
    ColumnUnit::MILLISECONDS,
    unit(&["us", "µs", "microseconds"], Quantity::Time, 3, false),
    unit(&["ns", "nanoseconds"], Quantity::Time, 0, false),
    ColumnUnit::DATE,
    unit(&["%", "percent"], Quantity::Share, 7, false),
    unit(&["share", "fraction", "ratio"], Quantity::Share, 9, false),
];

impl ColumnUnit {
    pub(crate) const SECONDS: ColumnUnit = unit(&["s", "sec", "seconds"], Quantity::Time, 9, false);
    pub(crate) const MILLISECONDS: ColumnUnit =
        unit(&["ms", "msec", "milliseconds"], Quantity::Time, 6, false);
    pub(crate) const DATE: ColumnUnit = unit(&["date"], Quantity::Date, 0, false);

    /// The unit of that name: `kbit/s` or `kbps`, `kB/s`, `ms`, `%`, `date` and the like.
    pub fn named(name: &str) -> Option<ColumnUnit> {
        UNITS.into_iter().find(|unit| unit.names.contains(&name))
    }

    /// Names of all units, one of each, with commas.
    pub fn list() -> String {
        UNITS.map(|unit| unit.names[0]).join(", ")
    }

    /// The unit that the last word of a column's name is, as in `down_mbps` or `RTT (ms)`.
    pub(crate) fn in_name(column: &str) -> Option<ColumnUnit> {
        let is_part = |sign: char| sign.is_alphanumeric() || sign == '/' || sign == '%';
        let mut words = column.split(|sign| !is_part(sign)).filter(|word| !word.is_empty());
        words.next_back().and_then(ColumnUnit::named)
    }

    /// `text`, a decimal number without sign, in what the quantity is counted in, rounded down.
    pub(crate) fn read(self, text: &str) -> Option<u64> {
        match self.is_bytes {
            true => Some(decimal(text, self.decimals)?.checked_mul(8)? / 1_000),
            false => decimal(text, self.decimals),
        }
    }
}

impl fmt::Display for ColumnUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names[0])
    }
}

/// A column of a CSV file by name, with its unit where the file's name for it does not tell.
///
/// It is written as `NAME` or `NAME:UNIT`, such as `DL_bitrate:kbit/s`. What follows a colon and is no unit
/// belongs to the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As the header has it, without quotes and blanks around it.
    pub name: String,
    /// The unit. Without one, that which the name ends in, as `rtt_ms`, or else the usual one: Mbit/s, ms, %, and for
    /// times what the first of them looks like.
    pub unit: Option<ColumnUnit>,
}

impl Column {
    /// The column of that name, without a unit.
    pub fn new(name: impl Into<String>) -> Column {
        Column { name: name.into(), unit: None }
    }

    /// The unit that is told, or that the name ends in, if there is one.
    pub fn known_unit(&self) -> Option<ColumnUnit> {
        self.unit.or_else(|| ColumnUnit::in_name(&self.name))
    }
}

impl From<&str> for Column {
    fn from(text: &str) -> Column {
        let unit = text.rsplit_once(':').and_then(|(name, unit)| {
            let unit = ColumnUnit::named(unit.trim())?;
            Some(Column { name: name.trim().to_owned(), unit: Some(unit) })
        });
        unit.filter(|column| !column.name.is_empty()).unwrap_or_else(|| Column::new(text.trim()))
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            None => f.write_str(&self.name),
            Some(unit) => write!(f, "{}:{unit}", self.name),
        }
    }
}

/// What the columns of a CSV file are called. Those that are not told have their usual names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Times. Usually `time_s`.
    pub time: Option<Column>,
    /// Rates. Usually `down_mbps` or `up_mbps`, or else `mbps`.
    pub rate: Option<Column>,
    /// Rates of the uplink, where they have a column of their own in a file of both directions.
    pub up: Option<Column>,
    /// Round trips. Usually `rtt_ms`.
    pub rtt: Option<Column>,
    /// Delays of one direction. Usually `delay_ms`.
    pub delay: Option<Column>,
    /// Losses. Usually `loss_percent`.
    pub loss: Option<Column>,
}

/// A list of columns that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: expected {expected}")]
pub struct ColumnsError {
    /// The part that is wrong.
    pub part: String,
    /// What would have been right.
    pub expected: &'static str,
}

impl Columns {
    /// What columns are for.
    pub const KEYS: [&'static str; 6] = ["time", "rate", "up", "rtt", "delay", "loss"];

    fn slot(&mut self, key: &str) -> Option<&mut Option<Column>> {
        match key {
            "time" => Some(&mut self.time),
            "rate" => Some(&mut self.rate),
            "up" => Some(&mut self.up),
            "rtt" => Some(&mut self.rtt),
            "delay" => Some(&mut self.delay),
            "loss" => Some(&mut self.loss),
            _ => None,
        }
    }
}

impl FromStr for Columns {
    type Err = ColumnsError;

    /// Reads `time=Timestamp,rate=DL_bitrate:kbit/s`.
    fn from_str(text: &str) -> Result<Columns, ColumnsError> {
        let mut columns = Columns::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let refuse = |expected| ColumnsError { part: part.to_owned(), expected };
            let (key, name) = part
                .split_once('=')
                .filter(|(_, name)| !name.trim().is_empty())
                .ok_or_else(|| refuse("KEY=COLUMN or KEY=COLUMN:UNIT, such as time=Timestamp"))?;
            let slot = columns.slot(key.trim());
            let slot = slot.ok_or_else(|| refuse("one of time, rate, up, rtt, delay and loss"))?;
            if slot.replace(Column::from(name)).is_some() {
                return Err(refuse("each of time, rate, up, rtt, delay and loss once"));
            }
        }
        Ok(columns)
    }
}

/// `text` times ten to the power of `decimals`, rounded down.
pub(crate) fn decimal(text: &str, decimals: u32) -> Option<u64> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(decimals as usize);
    let fraction = fraction.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.checked_mul(10u64.checked_pow(decimals)?)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_a_unit_behind_a_colon_or_in_its_name() {
        let known = |text: &str| {
            let column = Column::from(text);
            (column.name.clone(), column.known_unit().map(|unit| unit.to_string()))
        };
        let of = |name: &str, unit: &str| (name.to_owned(), Some(unit.to_owned()));
        assert_eq!(known("DL_bitrate:kbps"), of("DL_bitrate", "kbit/s"));
        assert_eq!(known("down_mbps"), of("down_mbps", "Mbit/s"));
        assert_eq!(known("Throughput (MBps)"), of("Throughput (MBps)", "MB/s"));
        assert_eq!(known("timestamp_ms"), of("timestamp_ms", "ms"));
        assert_eq!(known("DL_bitrate"), ("DL_bitrate".to_owned(), None));
        assert_eq!(known("a:b"), ("a:b".to_owned(), None));
        for text in ["DL_bitrate:kbit/s", "a:b", "t"] {
            assert_eq!(Column::from(text).to_string(), text);
        }
    }

    #[test]
    fn numbers_come_in_bits_nanoseconds_and_parts() {
        let read = |unit: &str, text: &str| ColumnUnit::named(unit).unwrap().read(text);
        assert_eq!(read("kbit/s", "12.5"), Some(12_500));
        assert_eq!(read("B/s", "12.5"), Some(100));
        assert_eq!(read("MB/s", "1.5"), Some(12_000_000));
        assert_eq!(read("ms", "0.25"), Some(250_000));
        assert_eq!(read("%", "12.5"), Some(125_000_000));
        assert_eq!(read("share", "0.125"), Some(125_000_000));
        assert_eq!(read("MB/s", "18446744073"), None);
    }

    #[test]
    fn a_list_of_columns_is_read_or_refused_with_its_part() {
        let columns: Columns = "time=t:ms, rate=DL:kbps,up=UL:kbps".parse().unwrap();
        assert_eq!(columns.time, Some(Column::from("t:ms")));
        assert_eq!(columns.up.unwrap().to_string(), "UL:kbit/s");
        let refused = |text: &str| text.parse::<Columns>().unwrap_err().to_string();
        assert!(refused("time").starts_with("`time`: expected KEY=COLUMN"));
        assert!(refused("tme=t").contains("expected one of time, rate"));
        assert!(refused("time=t,time=u").contains("once"));
    }
}
