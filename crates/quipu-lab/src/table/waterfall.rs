//! One load drawn as bars: each object from its request to its completion.

use quipu_base::{Duration, Instant};

use super::{bytes, time};
use crate::pages::RunPage;
use crate::plan::{Cell, Plan};
use quipu_record::{ObjectRecord, PathRecord, RunRecord};

/// How a waterfall is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaterfallOptions {
    /// Columns of the terminal.
    pub width: usize,
    /// Objects that are drawn at most.
    pub rows: usize,
}

/// What one load of `cell` came to, in a few lines.
pub fn load_summary(plan: &Plan, cell: Cell, record: &RunRecord) -> String {
    let network = &plan.networks[cell.network];
    let share = |path: &PathRecord| {
        let index = usize::try_from(path.path).unwrap_or(usize::MAX);
        let name = network.network.paths.get(index).map_or("", |spec| &spec.name);
        let packets = path.packets_sent;
        format!("{name} {packets} packets, {}", bytes(path.bytes_sent.0))
    };
    let shares: Vec<String> = by_path(record).iter().map(share).collect();
    let client = match record.client {
        0 => String::new(),
        client => format!(", client {client}"),
    };
    let title = match (record.visit, record.client) {
        (0, 0) => plan.name_of(cell),
        (0, _) => format!("\n{}{client}", plan.name_of(cell)),
        (visit, _) => {
            format!("\n{}{client}, page {}", plan.name_of(cell), u64::from(visit) + 1)
        }
    };
    let bound = match (record.page_bound.tight, record.critical_bound.tight) {
        (page, _) if page.is_zero() => String::new(),
        (page, critical) => {
            let (page, critical) = (time(page), time(critical));
            format!("no scheduler can beat page {page}, critical {critical}\n")
        }
    };
    let floor = match record.page_floor {
        floor if floor.is_zero() => String::new(),
        floor => format!("an infinitely fast network would take page {}\n", time(floor)),
    };
    let resent = bytes(record.sender_total(|path| path.bytes_resent).0);
    [
        title,
        format!(
            "connect {}, page {}, ObjectIndex {}, ByteIndex {}, critical {}",
            time(record.connect_time),
            time(record.page_time),
            time(record.object_index),
            time(record.byte_index),
            time(record.critical_time),
        ),
        format!("{bound}{floor}{} sent: {}; {resent} again\n", record.sender, shares.join("; ")),
    ]
    .join("\n")
}

/// What the sender sent on each path, over all connections.
fn by_path(record: &RunRecord) -> Vec<PathRecord> {
    let mut paths: Vec<PathRecord> = Vec::new();
    for path in record.paths_of(record.sender) {
        match paths.iter_mut().find(|sum| sum.path == path.path) {
            Some(sum) => {
                sum.packets_sent += path.packets_sent;
                sum.bytes_sent += path.bytes_sent;
            }
            None => paths.push(*path),
        }
    }
    paths
}

/// Columns of the least bar that can be read.
const LEAST_BAR: usize = 20;
/// Stands where an object could be there at the earliest.
const BOUND: char = '┊';
/// Columns of an object's name at most.
const MOST_NAME: usize = 36;

/// The load of `page` that `record` measured, as text.
pub fn waterfall(page: &RunPage, record: &RunRecord, options: WaterfallOptions) -> String {
    let mut objects: Vec<&ObjectRecord> = record.objects.iter().collect();
    objects.sort_by_key(|object| (object.requested_at, object.object));
    let start = objects.first().map_or(Instant::ZERO, |object| object.requested_at);
    let drawn = &objects[..objects.len().min(options.rows)];
    let end = drawn.iter().map(|object| object.completed_at).max().unwrap_or(start);
    let names: Vec<String> = drawn.iter().map(|object| name_of(page, object)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    // Number, size and two gaps take 6 + 10 + 2 columns, the frame 2.
    let bar_width = options.width.saturating_sub(name_width + 20).max(LEAST_BAR);
    let scale = Scale { start, span: end - start, width: bar_width };

    let margin = " ".repeat(name_width + 18);
    let mut text = format!("{margin}{}\n", scale.axis());
    for (object, name) in drawn.iter().zip(&names) {
        let number = object.object;
        let size = bytes(object.body.0);
        let bar = scale.bar(object);
        // An object that the load does not wait for is marked, and one that was pushed.
        let mark = match (object.held, object.pushed) {
            (true, false) => ' ',
            (true, true) => '+',
            (false, false) => '*',
            (false, true) => '±',
        };
        let line = format!("{number:>5}{mark} {name:<name_width$} {size:>9} │{bar}│");
        text.push_str(&line);
        text.push('\n');
    }
    if drawn.len() < objects.len() {
        text.push_str(&format!("… and {} more\n", objects.len() - drawn.len()));
    }
    text.push_str("░ request to first byte   █ first byte to last");
    if drawn.iter().any(|object| !object.bound.tight.is_zero()) {
        text.push_str(&format!("   {BOUND} no earlier than here"));
    }
    if drawn.iter().any(|object| !object.held && !object.pushed) {
        text.push_str("   * the load does not wait for it");
    }
    if drawn.iter().any(|object| object.pushed) {
        text.push_str("   + pushed: from its promise");
        if drawn.iter().any(|object| object.pushed && !object.held) {
            text.push_str(" (± and the load does not wait for it)");
        }
    }
    text.push('\n');
    text
}

/// The end of the path, which tells objects apart best.
fn name_of(page: &RunPage, object: &ObjectRecord) -> String {
    let index = usize::try_from(object.object).unwrap_or(usize::MAX);
    let Some(spec) = page.page.objects().get(index) else { return String::new() };
    let path = spec.path();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = if last.is_empty() { spec.host() } else { last };
    // A name from a file may hold anything; a terminal gets only what it can print.
    let name: Vec<char> =
        name.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect();
    if name.len() <= MOST_NAME {
        return name.into_iter().collect();
    }
    let tail = &name[name.len() - (MOST_NAME - 1)..];
    std::iter::once('…').chain(tail.iter().copied()).collect()
}

/// Maps the time of the load to columns.
struct Scale {
    start: Instant,
    span: Duration,
    width: usize,
}

impl Scale {
    /// The column of `at`, 0 to `width`.
    fn column(&self, at: Instant) -> usize {
        let width = self.width as u64;
        let since = at.saturating_since(self.start);
        let column =
            Duration::from_nanos(width).scaled(since.as_nanos(), self.span.as_nanos().max(1));
        usize::try_from(column.as_nanos()).unwrap_or(self.width).min(self.width)
    }

    fn bar(&self, object: &ObjectRecord) -> String {
        let from = self.column(object.requested_at).min(self.width - 1);
        let first = self.column(object.first_byte_at).clamp(from, self.width - 1);
        // Every object has at least one full column.
        let until = self.column(object.completed_at).max(first + 1);
        let spans = [(" ", from), ("░", first - from), ("█", until - first)];
        let mut bar: String = spans.iter().map(|(sign, count)| sign.repeat(*count)).collect();
        bar.push_str(&" ".repeat(self.width - until));
        match self.bound(object) {
            Some(column) => {
                let sign = |(at, sign)| if at == column { BOUND } else { sign };
                bar.chars().enumerate().map(sign).collect()
            }
            None => bar,
        }
    }

    /// The column of an object's bound, if it has one.
    fn bound(&self, object: &ObjectRecord) -> Option<usize> {
        let bound = Some(object.bound.tight).filter(|bound| !bound.is_zero())?;
        // Bounds count from the start of the page, where the first object was asked for.
        Some(self.column(self.start + bound).min(self.width - 1))
    }

    /// The ends of the scale, as text above the bars.
    fn axis(&self) -> String {
        let end = time(self.span);
        let gap = self.width.saturating_sub(1 + end.chars().count());
        format!(" 0{}{end}", " ".repeat(gap))
    }
}
