//! The table that is shown while a measurement goes on, if standard error is a terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::ProgressBar;
use quipu_lab::policy::{PathState, PathStatus};
use quipu_lab::table::{Align, Cell, Grid, Screen, Tone};
use quipu_tokio::PathInfo;
use quipu_tokio::perf::{Direction, Progress};

use crate::progress;
use crate::values::{carried, local_name, millis, rate};

/// Shows how far a measurement is.
pub(super) struct Live {
    table: Table,
    place: Place,
    colour: bool,
}

enum Place {
    /// Standard error is no terminal.
    Nowhere,
    /// Each table takes the place of the one before.
    Same(ProgressBar),
    /// Each table follows the one before, with lines of others between them.
    Below,
}

impl Live {
    /// `paths`: as they are when the measurement begins. `shared` tells that others write to standard
    /// error, too.
    pub(super) fn new(
        (direction, way): (Direction, &'static str),
        paths: &[PathInfo],
        shared: bool,
        colour: bool,
    ) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let place = match std::io::stderr().is_terminal() {
            false => Place::Nowhere,
            true if shared || is_dumb => Place::Below,
            true => Place::Same(progress::text()),
        };
        Live { table: Table::new(direction, way, &numbers(direction, paths)), place, colour }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        if matches!(self.place, Place::Nowhere) {
            return;
        }
        let paths = numbers(self.table.direction, &progress.paths);
        let grid = self.table.grid(progress.elapsed, progress.bytes, &paths);
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let width = size.map(|(width, _)| usize::from(width.0));
        let text = grid.on(Screen { width, colour: self.colour });
        match &self.place {
            Place::Nowhere => {}
            Place::Same(bar) => bar.set_message(text.trim_end().to_owned()),
            Place::Below => eprint!("{text}"),
        }
    }

    /// Removes the table, since results follow.
    pub(super) fn finish(self) {
        if let Place::Same(bar) = self.place {
            bar.finish_and_clear();
        }
    }
}

/// A path at an instant.
struct Numbers {
    id: u32,
    name: String,
    /// UDP payload in the direction of the measurement, since the connection began.
    bytes: u64,
    /// Packets of this end that were declared lost, since the connection began.
    lost: u64,
    srtt: Option<Duration>,
    state: PathState,
    status: PathStatus,
}

fn numbers(direction: Direction, paths: &[PathInfo]) -> Vec<Numbers> {
    let numbers = |path: &PathInfo| Numbers {
        id: path.id.0,
        name: local_name(path),
        bytes: carried(direction, path),
        lost: path.sample.counters.packets_lost,
        srtt: path.sample.srtt.map(|srtt| Duration::from_nanos(srtt.as_nanos())),
        state: path.state,
        status: path.status,
    };
    paths.iter().map(numbers).collect()
}

/// What changed from one table to the next.
struct Table {
    direction: Direction,
    way: &'static str,
    /// Of the table before.
    elapsed: Duration,
    bytes: u64,
    /// Bytes and losses of each path at the table before.
    paths: BTreeMap<u32, (u64, u64)>,
}

impl Table {
    fn new(direction: Direction, way: &'static str, paths: &[Numbers]) -> Self {
        let paths = paths.iter().map(|path| (path.id, (path.bytes, path.lost))).collect();
        Table { direction, way, elapsed: Duration::ZERO, bytes: 0, paths }
    }

    /// A row for all paths and one for each; rates and losses are those since the table before.
    fn grid(&mut self, elapsed: Duration, bytes: u64, paths: &[Numbers]) -> Grid {
        let seconds = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        // Whoever receives does not know what was lost.
        let sends = self.direction == Direction::Up;
        let mut all_lost = 0;
        let mut rows = Vec::new();
        for path in paths {
            let before = self.paths.insert(path.id, (path.bytes, path.lost));
            let (bytes_before, lost_before) = before.unwrap_or_default();
            let lost = path.lost.saturating_sub(lost_before);
            all_lost += lost;
            let srtt = path.srtt.map(|srtt| millis(srtt.as_secs_f64()));
            rows.push([
                self.way.into(),
                path.name.clone().into(),
                Cell::default(),
                rate(path.bytes.saturating_sub(bytes_before), seconds).into(),
                srtt.unwrap_or_default().into(),
                losses(sends, lost),
                state(path.state, path.status),
            ]);
        }
        let mut grid = Grid::new([
            ("way", Align::Left),
            ("path", Align::Left),
            ("time", Align::Right),
            ("rate", Align::Right),
            ("rtt", Align::Right),
            ("lost", Align::Right),
            ("state", Align::Left),
        ]);
        grid.row([
            self.way.into(),
            "all".into(),
            format!("{:.1} s", elapsed.as_secs_f64()).into(),
            rate(bytes.saturating_sub(self.bytes), seconds).into(),
            Cell::default(),
            losses(sends, all_lost),
        ]);
        rows.into_iter().for_each(|row| grid.row(row));
        (self.elapsed, self.bytes) = (elapsed, bytes);
        grid
    }
}

fn losses(known: bool, lost: u64) -> Cell {
    match (known, lost) {
        (false, _) => Cell::default(),
        (true, 0) => "0".into(),
        (true, lost) => Cell::toned(lost.to_string(), Tone::Bad),
    }
}

/// Whether a path carries data. `usable` paths that an end asks to spare are `backup`.
fn state(state: PathState, status: PathStatus) -> Cell {
    match (state, status) {
        (PathState::Validating, _) => "validating".into(),
        (PathState::Usable, PathStatus::Available) => "usable".into(),
        (PathState::Usable, PathStatus::Backup) => Cell::toned("backup", Tone::Faint),
        (PathState::Suspect, _) => Cell::toned("suspect", Tone::Bad),
        (PathState::Closing, _) => Cell::toned("closing", Tone::Faint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32, name: &str, bytes: u64, lost: u64, state: PathState) -> Numbers {
        let srtt = (id != 2).then(|| Duration::from_micros(12_340 + 30_000 * u64::from(id)));
        let status = if id == 1 { PathStatus::Backup } else { PathStatus::Available };
        Numbers { id, name: name.to_owned(), bytes, lost, srtt, state, status }
    }

    #[test]
    fn tables_show_what_changed_since_the_one_before() {
        let begin = [path(0, "wlan0", 1_000, 2, PathState::Usable)];
        let mut table = Table::new(Direction::Up, "up", &begin);
        let first = [
            path(0, "wlan0", 1_251_000, 2, PathState::Usable),
            path(1, "wwan0", 125_000, 7, PathState::Usable),
        ];
        let text = table.grid(Duration::from_secs(1), 1_250_000, &first).to_string();
        assert_eq!(
            text,
            "\
way  path    time         rate       rtt  lost  state
──────────────────────────────────────────────────────
up   all    1.0 s  10.0 Mbit/s               7
up   wlan0         10.0 Mbit/s  12.34 ms     0  usable
up   wwan0          1.0 Mbit/s  42.34 ms     7  backup
"
        );
        let second = [
            path(0, "wlan0", 1_251_000, 12, PathState::Suspect),
            path(1, "wwan0", 375_000, 8, PathState::Usable),
            path(2, "eth0", 0, 0, PathState::Validating),
        ];
        let text = table.grid(Duration::from_secs(3), 1_500_000, &second).to_string();
        assert_eq!(
            text,
            "\
way  path    time        rate       rtt  lost  state
─────────────────────────────────────────────────────────
up   all    3.0 s  1.0 Mbit/s              11
up   wlan0         0.0 kbit/s  12.34 ms    10  suspect
up   wwan0         1.0 Mbit/s  42.34 ms     1  backup
up   eth0          0.0 kbit/s               0  validating
"
        );
    }

    #[test]
    fn whoever_receives_shows_no_losses() {
        let mut table = Table::new(Direction::Down, "down", &[]);
        let paths = [path(0, "wlan0", 1_000, 3, PathState::Usable)];
        let grid = table.grid(Duration::from_secs(1), 1_000, &paths);
        let lost: Vec<_> = grid.texts().filter_map(|mut row| row.nth(5)).collect();
        assert_eq!(lost, ["", ""]);
    }
}
