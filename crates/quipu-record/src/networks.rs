//! The table of networks: what each path can do, for plots over rates and delays.

use std::io;
use std::path::Path;

use quipu_base::{Duration, Rate};

use crate::file::FileError;
use crate::tables::{Column, Form, Kind, TableFile, Value};

/// The file.
pub(crate) const NAME: &str = "networks.csv";

pub(crate) const COLUMNS: [&str; 8] = [
    "network",
    "path",
    "name",
    "down_rate_bit_per_s",
    "up_rate_bit_per_s",
    "round_trip_ns",
    "down_loss_ppm",
    "up_loss_ppm",
];

/// What a path of a network can do. Down comes first, then up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkPath<'a> {
    /// The network.
    pub network: &'a str,
    /// Position of the path in it.
    pub path: u32,
    /// What the network calls the path.
    pub name: &'a str,
    /// The least of the rates of its links.
    pub rates: [Option<Rate>; 2],
    /// Its least round trip.
    pub round_trip: Option<Duration>,
    /// How many of a million datagrams are lost on average.
    pub loss_ppm: [Option<u64>; 2],
}

/// The table, open to be written.
pub struct NetworksFile(TableFile);

fn failed(source: io::Error) -> FileError {
    FileError::Write { file: NAME.to_owned(), source }
}

impl NetworksFile {
    /// The table in `directory`, with `fields` as further columns behind the network.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(directory: &Path, fields: &[Column]) -> Result<NetworksFile, FileError> {
        let [network, rest @ ..] = COLUMNS;
        let mut columns = vec![Column { name: network.to_owned(), kind: Kind::Text }];
        columns.extend_from_slice(fields);
        columns.extend(rest.map(Column::known));
        let file = TableFile::create(&directory.join(NAME), Form::Csv, &columns);
        file.map(NetworksFile).map_err(failed)
    }

    /// Adds the row of a path, of a network that has the values `values` of the further columns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, path: &NetworkPath<'_>, values: &[Value<'_>]) -> Result<(), FileError> {
        let mut lead = vec![Value::Text(path.network)];
        lead.extend_from_slice(values);
        let rate = |rate: Option<Rate>| Value::from(rate.map(Rate::bits_per_sec));
        let row = [
            Value::Whole(path.path.into()),
            Value::Text(path.name),
            rate(path.rates[0]),
            rate(path.rates[1]),
            path.round_trip.map(Duration::as_nanos).into(),
            path.loss_ppm[0].into(),
            path.loss_ppm[1].into(),
        ];
        self.0.write(&lead, &row).map_err(failed)
    }

    /// Writes out all that is left.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        self.0.finish().map_err(failed)
    }
}
