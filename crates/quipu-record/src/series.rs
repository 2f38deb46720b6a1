//! Time series: their rows, and the file of those of all runs.
//!
//! Each run writes its rows into a part of its own while it goes on, so that no run's rows are ever
//! held in memory, and the parts are put together in the order of the plan's cells.

use std::fmt::{Display, Write as _};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, Rate};

use crate::file::{FileError, write};
use crate::place::PLACE;
use crate::run::End;
use crate::tables::{Column, columns};

/// A connection, or one of its paths, at an instant of a run, as one end of it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRow {
    /// When.
    pub at: Instant,
    /// Which connection.
    pub flow: Arc<str>,
    /// Which end.
    pub end: End,
    /// Identifier of the path; `None` for the connection as a whole: sums over the paths that live.
    pub path: Option<u32>,
    /// What the congestion controller calls its state; `None` for a connection.
    pub state: Option<&'static str>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold, if it is finite; `None` for a connection.
    pub ssthresh: Option<Bytes>,
    /// UDP payload in flight.
    pub in_flight: Bytes,
    /// The pace of packets, if there is one.
    pub pacing_rate: Option<Rate>,
    /// The last sample of the delivery rate, if there was one.
    pub delivery_rate: Option<Rate>,
    /// The controller's estimate of the bandwidth, if it makes one.
    pub bandwidth: Option<Rate>,
    /// Smoothed round-trip time; this and the next two are `None` before the first sample and for
    /// a connection.
    pub srtt: Option<Duration>,
    /// The last sample of the round-trip time.
    pub latest_rtt: Option<Duration>,
    /// Least round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// Bytes in the queue of the path's link towards the client, headers and the datagram being
    /// sent included. A connection's sum has a link that paths share once.
    pub queue_down: Option<Bytes>,
    /// The same towards the server.
    pub queue_up: Option<Bytes>,
    /// UDP payload sent so far; of a connection also on paths that are gone, as the next two.
    pub bytes_sent: Bytes,
    /// Bytes of packets acknowledged so far.
    pub bytes_acked: Bytes,
    /// Bytes of packets that counted as lost so far, though some may have arrived.
    pub bytes_lost: Bytes,
    /// In millionths: of a path, its part of what its connection sent; of a connection, its part of
    /// what all connections sent, senders and receivers of data counted apart. `None` of nothing.
    pub share_ppm: Option<u32>,
}

/// The file of all rows.
pub(crate) const NAME: &str = "series.csv";
/// The folder of the parts, within the one that becomes the result.
const PARTS: &str = ".series";

/// The columns behind page, network, policy and run.
pub(crate) static COLUMNS: [Column; 20] = columns! {
    /// name of the connection; that of a page is `page`, of further clients `page:1`, `page:2`, …, of
    /// further origins `page@HOST` or `page:1@HOST`
    flow: Text,
    /// `server` or `client`: whose state this is
    end: Text,
    /// identifier of the path; `all` of the connection
    path: Text,
    /// when, from the start of the run
    time_ns: Whole,
    /// what the congestion controller calls its state, such as `slow start`; empty of `all`
    state: Text,
    /// congestion window; of `all` the sum
    cwnd_bytes: Whole,
    /// slow-start threshold; empty while it is infinite, and of `all`
    ssthresh_bytes: Whole,
    /// UDP payload in flight; of `all` the sum
    in_flight_bytes: Whole,
    /// pace of packets; empty before the first sample of the round trip, and without pacing; of `all` the
    /// sum of those known
    pacing_rate_bps: Whole,
    /// the last sample of the delivery rate, even if the application limited it; of `all` the sum of those
    /// known
    delivery_rate_bps: Whole,
    /// the controller's estimate of the bandwidth, if it makes one; of `all` the sum of those known
    bandwidth_bps: Whole,
    /// smoothed round-trip time; empty of `all`
    srtt_ns: Whole,
    /// last sample of the round-trip time; empty of `all`
    latest_rtt_ns: Whole,
    /// least round-trip time; empty of `all`
    min_rtt_ns: Whole,
    /// queue of the path's own link towards the client: headers, and the datagram being sent, included;
    /// access links do not count; of `all` the sum, a link that paths share once
    queue_down_bytes: Whole,
    /// the same towards the server
    queue_up_bytes: Whole,
    /// UDP payload sent so far; of `all` also on paths that are gone, as the next two
    bytes_sent: Whole,
    /// bytes of packets acknowledged so far; packets that only acknowledge are never acknowledged
    bytes_acked: Whole,
    /// bytes of packets that counted as lost so far, some of which may have arrived
    bytes_lost: Whole,
    /// its part of the connection's `bytes_sent`, in millionths; of `all` its part of that of all
    /// connections of the run, senders and receivers of data counted apart
    share_ppm: Whole,
};

impl SeriesRow {
    /// A row of nothing yet.
    pub fn new(at: Instant, flow: Arc<str>, end: End) -> SeriesRow {
        SeriesRow {
            at,
            flow,
            end,
            path: None,
            state: None,
            cwnd: Bytes::ZERO,
            ssthresh: None,
            in_flight: Bytes::ZERO,
            pacing_rate: None,
            delivery_rate: None,
            bandwidth: None,
            srtt: None,
            latest_rtt: None,
            min_rtt: None,
            queue_down: None,
            queue_up: None,
            bytes_sent: Bytes::ZERO,
            bytes_acked: Bytes::ZERO,
            bytes_lost: Bytes::ZERO,
            share_ppm: None,
        }
    }
}

/// Writes the rows of one run.
#[derive(Debug)]
pub struct SeriesPart<W: Write> {
    place: [String; 4],
    rows: csv::Writer<W>,
    /// The field at hand.
    text: String,
}

impl SeriesPart<File> {
    /// Begins the part called `part` of the run at `place` within `directory`, which becomes a result.
    pub(crate) fn create(
        directory: &Path,
        part: &str,
        place: [String; 4],
    ) -> Result<Self, FileError> {
        let failed = |source| FileError::Write { file: NAME.to_owned(), source };
        fs::create_dir_all(directory.join(PARTS)).map_err(failed)?;
        let file = File::create(part_of(directory, part)).map_err(failed)?;
        Ok(SeriesPart::new(place, file))
    }
}

impl<W: Write> SeriesPart<W> {
    /// Writes rows of the run at `place` (page, network, policy and number of the run) to `to`, without
    /// the names of the columns.
    pub fn new(place: [String; 4], to: W) -> Self {
        SeriesPart { place, rows: csv::Writer::from_writer(to), text: String::new() }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, row: &SeriesRow) -> io::Result<()> {
        for field in &self.place {
            self.rows.write_field(field)?;
        }
        self.rows.write_field(&*row.flow)?;
        self.field(Some(row.end))?;
        match row.path {
            Some(path) => self.field(Some(path))?,
            None => self.field(Some("all"))?,
        }
        self.field(Some(row.at.as_nanos()))?;
        self.field(row.state)?;
        let bits = |rate: Rate| rate.bits_per_sec();
        for amount in [
            Some(row.cwnd.0),
            row.ssthresh.map(|bytes| bytes.0),
            Some(row.in_flight.0),
            row.pacing_rate.map(bits),
            row.delivery_rate.map(bits),
            row.bandwidth.map(bits),
            row.srtt.map(Duration::as_nanos),
            row.latest_rtt.map(Duration::as_nanos),
            row.min_rtt.map(Duration::as_nanos),
            row.queue_down.map(|bytes| bytes.0),
            row.queue_up.map(|bytes| bytes.0),
            Some(row.bytes_sent.0),
            Some(row.bytes_acked.0),
            Some(row.bytes_lost.0),
            row.share_ppm.map(u64::from),
        ] {
            self.field(amount)?;
        }
        Ok(self.rows.write_record(None::<&[u8]>)?)
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.rows.flush()
    }

    /// Writes a field; what is unknown is empty.
    fn field(&mut self, value: Option<impl Display>) -> io::Result<()> {
        self.text.clear();
        if let Some(value) = value {
            // Text takes whatever is written to it.
            let _ = write!(self.text, "{value}");
        }
        Ok(self.rows.write_field(&self.text)?)
    }
}

fn part_of(directory: &Path, part: &str) -> PathBuf {
    directory.join(PARTS).join(part)
}

/// Puts `parts` within `directory` together, in their order, and removes all parts.
///
/// # Errors
/// If one of them is not there, or a file cannot be written.
pub fn join(directory: &Path, mut parts: impl Iterator<Item = String>) -> Result<(), FileError> {
    write(directory, NAME, |file| {
        let mut header = csv::Writer::from_writer(&mut *file);
        header.write_record(PLACE.iter().chain(&COLUMNS).map(|column| column.name.as_bytes()))?;
        header.flush()?;
        drop(header);
        parts.try_for_each(|part| append(file, &part_of(directory, &part)))?;
        match fs::remove_dir_all(directory.join(PARTS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    })
}

/// Appends the part at `path`, and removes it: all rows are never there twice.
fn append(file: &mut BufWriter<File>, path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, file)?;
    fs::remove_file(path)
}
