//! What is printed while a measurement goes on.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use quipu_tokio::PathInfo;
use quipu_tokio::perf::{Direction, Progress};

use super::values::{carried, local_name, rate};

/// What is printed while a measurement goes on, if standard error is a terminal.
pub(super) struct Live {
    name: &'static str,
    shown: bool,
    at: Duration,
    bytes: u64,
    paths: BTreeMap<u32, u64>,
}

impl Live {
    /// `paths`: as they are when the measurement begins.
    pub(super) fn new(name: &'static str, direction: Direction, paths: &[PathInfo]) -> Self {
        let shown = std::io::stderr().is_terminal();
        let paths = paths.iter().map(|path| (path.id.0, carried(direction, path)));
        Live { name, shown, at: Duration::ZERO, bytes: 0, paths: paths.collect() }
    }

    pub(super) fn show(&mut self, direction: Direction, progress: &Progress) {
        if self.shown {
            eprintln!("{}", self.line(direction, progress));
        }
    }

    /// What changed since the line before, for all paths and for each.
    fn line(&mut self, direction: Direction, progress: &Progress) -> String {
        let seconds = (progress.elapsed - self.at).as_secs_f64();
        let all = rate(progress.bytes - self.bytes, seconds);
        let time = progress.elapsed.as_secs_f64();
        let mut line = format!("{time:6.1} s  {}  {all:>12}", self.name);
        for path in &progress.paths {
            let now = carried(direction, path);
            let before = self.paths.insert(path.id.0, now);
            let local = local_name(path);
            let part = rate(now - before.unwrap_or(0), seconds);
            line += &format!("   {local} {part}");
            if let Some(srtt) = path.sample.srtt {
                line += &format!(", {:.1} ms", srtt.as_secs_f64() * 1e3);
            }
        }
        (self.at, self.bytes) = (progress.elapsed, progress.bytes);
        line
    }
}
