//! The table of networks: what each path can do, for plots over rates and delays.

use std::io;
use std::path::Path;

use quipu_base::{Bytes, Duration, Rate};

use crate::file::FileError;
use crate::tables::{Column, Form, TableFile, Value, columns};

/// The file.
pub(crate) const NAME: &str = "networks.csv";

/// The columns; those of a sweep's fields follow the first.
pub(crate) static COLUMNS: [Column; 10] = columns! {
    /// name of the network
    network: Text,
    /// position of the path in it, from 0
    path: Whole,
    /// name of the path
    name: Text,
    /// least rate of its links towards the client, before the first step; of recordings the mean
    down_rate_bit_per_s: Whole,
    /// the same towards the server
    up_rate_bit_per_s: Whole,
    /// delays of all its links in both directions, without queues and jitter; of recordings the median
    round_trip_ns: Whole,
    /// datagrams of a million that its links towards the client lose on average; of recordings the mean.
    /// Empty over the radio, and with netem's correlated `random` loss
    down_loss_ppm: Whole,
    /// the same towards the server
    up_loss_ppm: Whole,
    /// what the queue of its slowest link towards the client holds: the limit of a drop-tail queue, full
    /// datagrams in a managed one. Empty if nothing is ever dropped, and over the radio
    down_queue_bytes: Whole,
    /// the same towards the server
    up_queue_bytes: Whole,
};

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
    /// What the queue of its slowest link holds.
    pub queues: [Option<Bytes>; 2],
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
        let [network, rest @ ..] = &COLUMNS;
        let columns = [network].into_iter().chain(fields).chain(rest);
        let columns: Vec<Column> = columns.cloned().collect();
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
        let row = [
            Value::whole(path.path),
            Value::Text(path.name),
            Value::whole(path.rates[0]),
            Value::whole(path.rates[1]),
            Value::whole(path.round_trip),
            Value::whole(path.loss_ppm[0]),
            Value::whole(path.loss_ppm[1]),
            Value::whole(path.queues[0]),
            Value::whole(path.queues[1]),
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
