//! Recordings that links follow, as a scenario names them.

mod column;
mod hint;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use quipu_base::{Duration, Seed};
use quipu_link::{
    AtEnd, BuiltinTrace, Column, Columns, DeliveryTrace, Loss, PingSeries, Play, RateSeries,
    Recording, Timeline, TraceError, has_losses, read_losses,
};

use super::choice::Direction;
use super::error::LinkError;
use super::form::pattern::time;
use super::form::text::unit;
use super::form::{Names, Numbers, Text, amounts};
use super::input::{FileUse, Inputs, absolute, changed, content_hash, split_hash, with_hash};
use super::limits::MOST_TRACE_BYTES;
use super::units::Unit;
use hint::hint;
use quipu_record::{read_at_most, suggestion};

/// A recording: the name of one that comes with the program, such as `us-drive-08-att`, or a file.
///
/// A file whose name ends in `.csv` or `.tsv`, or whose column is named, has measurements over time; any other is a
/// packet-delivery trace in Mahimahi's form. The name counts from the folder of the scenario's file. The scenario that
/// is written beside a result names a copy of it, with the hash (XXH3, 64 bits) of the content behind it,
/// as `inputs/1/bus.csv#xxh3:0123456789abcdef`; a content that has changed since is an error.
///
/// What was read is kept, and clones share it.
#[derive(Clone)]
pub struct TraceSpec {
    name: String,
    /// The folder from which a relative name counts, if it is not the current one.
    folder: Option<PathBuf>,
    /// The content that the file must have.
    hash: Option<u64>,
    /// Whether the name is that of a copy beside a result, which is written as it is.
    is_copy: bool,
    direction: Direction,
    content: OnceLock<Content>,
}

/// What a recording is read for.
#[derive(Clone, Debug, PartialEq)]
enum Use {
    Rates { direction: Direction, columns: Columns },
    Delays { columns: Columns },
    Losses { columns: Columns },
}

/// What was read, and for what.
#[derive(Clone, Debug)]
struct Content {
    used_for: Use,
    hash: Option<u64>,
    read: Arc<Parsed>,
}

#[derive(Debug)]
enum Parsed {
    Rates(Recording),
    Delays(PingSeries),
    Losses(Timeline<Loss>),
}

/// Where in a recording a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStart {
    /// At this time of the recording.
    At(Duration),
    /// At a time drawn for each run, the same for all policies, for both directions, and for all
    /// links that follow recordings of one group; see [`TraceSpec::group`].
    Random,
}

impl TraceSpec {
    /// The recording of that name, or in that file.
    pub fn new(name: impl Into<String>) -> Self {
        TraceSpec {
            name: name.into(),
            folder: None,
            hash: None,
            is_copy: false,
            direction: Direction::Down,
            content: OnceLock::new(),
        }
    }

    /// The same recording, of the other direction if it has several.
    #[must_use]
    pub(super) fn toward(mut self, direction: Direction) -> Self {
        if self.direction != direction {
            self.direction = direction;
            self.content = OnceLock::new();
        }
        self
    }

    /// The same recording, where a relative name counts from `folder`, if it counted from nowhere.
    pub(super) fn count_from(&mut self, folder: &Path) {
        if self.folder.is_none() && self.builtin().is_none() && !folder.as_os_str().is_empty() {
            self.folder = Some(folder.to_owned());
        }
    }

    /// Remembers the content of the file, if it can be read.
    pub(super) fn pin(&mut self) {
        if let Some(pinned) = FileUse::Trace.pinned(&self.print()) {
            self.hash = split_hash(&pinned).1;
        }
    }

    /// Puts the copy that `inputs` has of the file in its place, if it is one that was read.
    pub(super) fn keep(&mut self, inputs: &mut Inputs) {
        if self.builtin().is_some() || self.is_copy {
            return;
        }
        let Some(hash) = self.known_hash() else { return };
        self.name = inputs.keep(&self.path(), hash);
        (self.folder, self.hash, self.is_copy) = (None, Some(hash), true);
    }

    /// The recording that comes with the program, if it is one.
    fn builtin(&self) -> Option<&'static BuiltinTrace> {
        BuiltinTrace::named(&self.name)
    }

    fn path(&self) -> PathBuf {
        self.folder.as_ref().map_or_else(|| PathBuf::from(&self.name), |dir| dir.join(&self.name))
    }

    /// True if it is a table with columns: a file that ends in `.csv` or `.tsv`.
    pub(super) fn has_columns(&self) -> bool {
        self.builtin().is_none() && self.is_csv()
    }

    fn is_csv(&self) -> bool {
        let ending = Path::new(&self.name).extension();
        let is = |known: &str| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(known));
        is("csv") || is("tsv")
    }

    /// Recordings of one group were made together, at one place and time: those of one drive, and
    /// files of one folder.
    pub fn group(&self) -> String {
        match self.builtin() {
            Some(builtin) => builtin.group.to_owned(),
            None => {
                let path = absolute(&self.path());
                path.parent().unwrap_or(&path).display().to_string()
            }
        }
    }

    /// The name without folders and ending, for summaries.
    pub fn short_name(&self) -> &str {
        match self.builtin() {
            Some(builtin) => builtin.name,
            None => {
                Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or("file")
            }
        }
    }

    /// How fast the link was.
    ///
    /// # Errors
    /// If there is no such recording, or it has no rates.
    pub(super) fn rates(&self, columns: &Columns) -> Result<Recording, LinkError> {
        let used_for = Use::Rates { direction: self.direction, columns: columns.clone() };
        match &*self.read("trace", used_for)? {
            Parsed::Rates(recording) => Ok(recording.clone()),
            Parsed::Delays(_) | Parsed::Losses(_) => Err(self.error("trace", "has no rates")),
        }
    }

    /// How long datagrams took.
    ///
    /// # Errors
    /// If there is no such recording, or it has no round trips.
    pub(super) fn delays(&self, columns: &Columns) -> Result<PingSeries, LinkError> {
        match &*self.read("delay_trace", Use::Delays { columns: columns.clone() })? {
            Parsed::Delays(pings) => Ok(pings.clone()),
            Parsed::Rates(_) | Parsed::Losses(_) => Err(self.error("delay_trace", "has no delays")),
        }
    }

    /// Which share of datagrams was lost, over time.
    ///
    /// # Errors
    /// If there is no such recording, or it tells no losses.
    pub(super) fn losses(&self, columns: &Columns) -> Result<Timeline<Loss>, LinkError> {
        match &*self.read("loss_trace", Use::Losses { columns: columns.clone() })? {
            Parsed::Losses(losses) => Ok(losses.clone()),
            Parsed::Rates(_) | Parsed::Delays(_) => Err(self.error("loss_trace", "has no losses")),
        }
    }

    fn error(&self, field: &'static str, message: impl fmt::Display) -> LinkError {
        let name = match self.builtin() {
            Some(builtin) => builtin.name.to_owned(),
            None => self.path().display().to_string(),
        };
        LinkError::Trace { field, name, message: message.to_string() }
    }

    fn read(&self, field: &'static str, used_for: Use) -> Result<Arc<Parsed>, LinkError> {
        if let Some(content) = self.content.get()
            && content.used_for == used_for
        {
            return Ok(content.read.clone());
        }
        let (read, hash) = match self.builtin() {
            Some(builtin) => {
                if let Some((name, column)) = used_for.named() {
                    let message = format!("has no columns; expected no {name}, found {column}");
                    return Err(self.error(field, message));
                }
                (of_builtin(builtin, &used_for).map_err(|error| self.error(field, error))?, None)
            }
            None => {
                let (text, hash) = self.text(field)?;
                let read = self.of_text(&text, &used_for).map_err(|error| {
                    let hint = hint(&error, &used_for).unwrap_or_default();
                    self.error(field, format_args!("{error}{hint}"))
                })?;
                (read, Some(hash))
            }
        };
        let read = Arc::new(read);
        // Whoever was first has read the same.
        let _ = self.content.set(Content { used_for, hash, read: read.clone() });
        Ok(read)
    }

    fn of_text(&self, text: &str, used_for: &Use) -> Result<Parsed, TraceError> {
        Ok(match used_for {
            Use::Rates { direction, columns } if self.is_csv() || columns.rate.is_some() => {
                let down = *direction == Direction::Down;
                Parsed::Rates(Recording::Rates(RateSeries::read(text, down, columns)?))
            }
            Use::Rates { .. } => Parsed::Rates(Recording::Deliveries(DeliveryTrace::parse(text)?)),
            Use::Delays { columns } => Parsed::Delays(PingSeries::read(text, columns)?),
            Use::Losses { columns }
                if columns.loss.is_some() || (columns.rtt.is_none() && has_losses(text)) =>
            {
                Parsed::Losses(read_losses(text, columns, Play::default())?)
            }
            Use::Losses { columns } => {
                Parsed::Losses(PingSeries::read(text, columns)?.losses(Play::default()))
            }
        })
    }

    /// The text of the file, and its hash.
    fn text(&self, field: &'static str) -> Result<(String, u64), LinkError> {
        let path = self.path();
        let unreadable = |error: std::io::Error| {
            let given = path.file_name().and_then(|name| name.to_str()).unwrap_or(&self.name);
            let nearest = suggestion(given, BuiltinTrace::all().iter().map(|trace| trace.name));
            let is_name = !self.name.contains(['/', '\\']) || !nearest.is_empty();
            if is_name && error.kind() == std::io::ErrorKind::NotFound {
                let message = "no such file, and no recording of that name; expected one of \
                               `quipu traces`";
                self.error(field, format_args!("{message}{nearest}"))
            } else {
                self.error(field, format_args!("cannot be read: {error}"))
            }
        };
        let Some(bytes) = read_at_most(&path, MOST_TRACE_BYTES).map_err(unreadable)? else {
            return Err(self.error(field, "is larger than 64 MiB; expected at most that"));
        };
        let hash = content_hash(&bytes);
        if let Some(expected) = self.hash.filter(|expected| *expected != hash) {
            return Err(self.error(field, changed(hash, expected)));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let lines = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
            self.error(field, format_args!("line {}: no text; expected UTF-8", lines + 1))
        })?;
        Ok((text, hash))
    }
}

impl Use {
    /// A column that is named for it, with the field that names it.
    fn named(&self) -> Option<(&'static str, &Column)> {
        let (columns, others) = match self {
            Use::Rates { columns, .. } => (columns, [("column", &columns.rate), ("column", &None)]),
            Use::Delays { columns } => {
                (columns, [("rtt_column", &columns.rtt), ("delay_column", &columns.delay)])
            }
            Use::Losses { columns } => {
                (columns, [("loss_column", &columns.loss), ("rtt_column", &columns.rtt)])
            }
        };
        let all = [("time_column", &columns.time)].into_iter().chain(others);
        all.into_iter().find_map(|(name, column)| Some((name, column.as_ref()?)))
    }
}

fn of_builtin(builtin: &BuiltinTrace, used_for: &Use) -> Result<Parsed, TraceError> {
    Ok(match used_for {
        Use::Rates { direction: Direction::Down, .. } => Parsed::Rates(builtin.down()?),
        Use::Rates { direction: Direction::Up, .. } => Parsed::Rates(builtin.up()?),
        Use::Delays { .. } => Parsed::Delays(builtin.pings()?),
        Use::Losses { .. } => Parsed::Losses(builtin.pings()?.losses(Play::default())),
    })
}

/// Two are the same if they name the same content; which direction is taken of it is not looked at.
impl PartialEq for TraceSpec {
    fn eq(&self, other: &Self) -> bool {
        let absolute = |spec: &TraceSpec| match spec.builtin() {
            Some(builtin) => PathBuf::from(builtin.name),
            None => absolute(&spec.path()),
        };
        let hash = |spec: &TraceSpec| spec.known_hash();
        let same = self.name == other.name && self.folder == other.folder;
        (same || absolute(self) == absolute(other))
            // One that was not read may have any content.
            && hash(self).zip(hash(other)).is_none_or(|(one, other)| one == other)
    }
}

impl TraceSpec {
    fn known_hash(&self) -> Option<u64> {
        self.hash.or_else(|| self.content.get().and_then(|content| content.hash))
    }
}

impl fmt::Debug for TraceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceSpec").field(&self.print()).field(&self.direction).finish()
    }
}

impl Unit for TraceSpec {
    const EXPECTED: &'static str = "a recording that `quipu traces` lists, such as us-drive-08-att, \
                                    or a file: CSV if it ends in .csv or .tsv, else in Mahimahi's form";

    fn parse(text: &str) -> Option<Self> {
        let (name, hash) = split_hash(text);
        let spec = TraceSpec { hash, ..TraceSpec::new(name) };
        (!spec.name.is_empty()).then_some(spec)
    }

    fn print(&self) -> String {
        if self.builtin().is_some() {
            return self.name.clone();
        }
        match self.is_copy {
            true => with_hash(&self.name, self.known_hash()),
            false => with_hash(absolute(&self.path()).display(), self.known_hash()),
        }
    }
}

impl Unit for TraceStart {
    const EXPECTED: &'static str = "random, or a time of the recording such as 30s";

    fn parse(text: &str) -> Option<Self> {
        if text == "random" {
            Some(TraceStart::Random)
        } else {
            Duration::parse(text).map(TraceStart::At)
        }
    }

    fn print(&self) -> String {
        match self {
            TraceStart::At(time) => time.print(),
            TraceStart::Random => "random".to_owned(),
        }
    }
}

impl Default for TraceStart {
    fn default() -> Self {
        TraceStart::At(Duration::ZERO)
    }
}

/// How a recording is played, where a start that is to be drawn counts as the recording's own.
pub(super) fn play(start: Option<TraceStart>, at_end: Option<super::choice::TraceEnd>) -> Play {
    let from = match start.unwrap_or_default() {
        TraceStart::At(time) => time,
        TraceStart::Random => Duration::ZERO,
    };
    Play { from, at_end: at_end.unwrap_or_default().into() }
}

/// The start that a run with this seed has in recordings of `length`: evenly spread, in whole
/// milliseconds.
pub(super) fn drawn_start(run: Seed, length: Duration) -> TraceStart {
    let number = u128::from(run.number("trace.from", 0));
    let millis = u128::from(length.as_nanos() / 1_000_000);
    // Below `millis`, which is a u64.
    let drawn = u64::try_from((number * millis) >> 64).unwrap_or_default();
    TraceStart::At(Duration::from_millis(drawn))
}

impl From<super::choice::TraceEnd> for AtEnd {
    fn from(end: super::choice::TraceEnd) -> Self {
        match end {
            super::choice::TraceEnd::Loop => AtEnd::Loop,
            super::choice::TraceEnd::Hold => AtEnd::Hold,
            super::choice::TraceEnd::Stop => AtEnd::Stop,
        }
    }
}

/// A recording that comes with the program, as lists show it.
#[derive(Clone, Debug)]
pub struct TraceNote {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Time of one round of the downlink's rates, or of the round trips if there are no rates.
    pub length: Duration,
    /// Mean rates in bits per second, down and up.
    pub rates: Option<[quipu_base::Rate; 2]>,
    /// Median of the round trips' halves, pings and lost pings.
    pub pings: Option<(Duration, usize, usize)>,
}

/// All recordings that come with the program, by name.
pub fn builtin_traces() -> Vec<TraceNote> {
    let notes = BuiltinTrace::all().iter().map(|trace| {
        // A test reads them all; what could not be read would be missing here.
        let pings = trace.pings().ok();
        let rates = trace.down().ok().zip(trace.up().ok());
        let of_pings = pings.as_ref().map(PingSeries::length);
        let length = rates.as_ref().map(|(down, _)| down.length()).or(of_pings);
        TraceNote {
            name: trace.name,
            about: trace.about,
            length: length.unwrap_or_default(),
            rates: rates.map(|(down, up)| [down.mean_rate(), up.mean_rate()]),
            pings: pings.map(|pings| {
                let (count, lost) = pings.pings();
                (pings.median(), count, lost)
            }),
        }
    });
    notes.collect()
}

/// A recording.
static TRACE: Text = Text {
    name: "recording",
    expected: TraceSpec::EXPECTED,
    pattern: r"\S",
    accepts: unit::<TraceSpec>,
    numbers: Numbers::None,
    names: Names::Usual(|| BuiltinTrace::all().iter().map(|trace| trace.name.to_owned()).collect()),
    examples: &["us-drive-08-att", "traces/bus.csv", "traces/bus.mahi"],
    refused: &[""],
};

/// Where in a recording a run begins.
static TRACE_START: Text = Text {
    name: "time or `random`",
    expected: TraceStart::EXPECTED,
    pattern: concat!("^ *(random|0|", time!(), ") *$"),
    accepts: unit::<TraceStart>,
    numbers: Numbers::Zero,
    names: Names::Usual(|| vec!["random".to_owned()]),
    examples: &["random", "30s"],
    refused: &["rndom", "30"],
};

amounts! {
    TraceSpec: TRACE,
    TraceStart: TRACE_START,
}

#[cfg(test)]
mod tests;
