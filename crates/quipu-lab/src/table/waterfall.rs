//! One load drawn as bars: each object from its request to its completion.

use std::collections::BTreeMap;

use quipu_base::{Duration, Instant};

use super::screen::{Screen, Tone};
use super::words::NOTHING;
use super::{bytes, time};
use crate::pages::RunPage;
use crate::plan::{Cell, Plan, World};
use quipu_record::{Carried, ObjectRecord, PathRecord, RunRecord};
use quipu_web::page::{Object, ObjectId, ObjectKind};

/// Columns of a drawing where the width is not known.
const USUAL_WIDTH: usize = 100;

/// How a waterfall is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaterfallOptions {
    /// What it is drawn on.
    pub screen: Screen,
    /// Objects that are drawn at most.
    pub rows: usize,
}

/// What one load of `cell` came to, in a few lines.
pub fn load_summary(plan: &Plan, cell: Cell, record: &RunRecord) -> String {
    let network = &plan.networks[cell.network];
    let name = |path: &PathRecord| {
        let index = usize::try_from(path.path).unwrap_or(usize::MAX);
        network.network.paths.get(index).map_or("", |spec| spec.name.as_str())
    };
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
    // What the far end of a load in real time sent is not known, only what came of it.
    let carried = if plan.world == World::Simulated {
        let share = |path: &PathRecord| {
            let packets = path.packets_sent;
            format!("{} {packets} packets, {}", name(path), bytes(path.bytes_sent.0))
        };
        let shares: Vec<String> = by_path(record).iter().map(share).collect();
        let resent = bytes(record.sender_total(|path| path.bytes_resent).0);
        format!("{} sent: {}; {resent} retransmitted\n", record.sender, shares.join("; "))
    } else {
        let received = record.paths.iter().filter(|path| path.end != record.sender);
        let share = |path: &PathRecord| format!("{} {}", name(path), path.datagrams_received);
        let shares: Vec<String> = received.map(share).collect();
        format!("{}; datagrams received: {}\n", plan.world.name(), shares.join(", "))
    };
    format!("{title}\n{}{carried}", load_times(record))
}

/// What one load took, in a few lines.
pub fn load_times(record: &RunRecord) -> String {
    let bound = match (record.page_bound.tight, record.critical_bound.tight) {
        (page, _) if page.is_zero() => String::new(),
        (page, critical) => {
            let (page, critical) = (time(page), time(critical));
            format!("lower bounds for any scheduler: page {page}, critical {critical}\n")
        }
    };
    let floor = match record.page_floor {
        floor if floor.is_zero() => String::new(),
        floor => format!("on an infinitely fast network: page {}\n", time(floor)),
    };
    format!(
        "connect {}, page {}, ObjectIndex {}, ByteIndex {}, critical {}\n{bound}{floor}",
        time(record.connect_time),
        time(record.page_time),
        time(record.object_index),
        time(record.byte_index),
        time(record.critical_time),
    )
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
/// Columns of an object's name at most, and on a narrow screen.
const MOST_NAME: usize = 36;
const SHORT_NAME: usize = 20;

/// The load of `page` that `record` measured, as text. `carried` has what each path brought of each object, by its
/// number, if that is known, and `paths` their names.
pub fn waterfall(
    page: &RunPage,
    record: &RunRecord,
    carried: &BTreeMap<u32, Vec<Carried>>,
    paths: &[String],
    options: WaterfallOptions,
) -> String {
    let screen = options.screen;
    let width = screen.width.unwrap_or(USUAL_WIDTH).clamp(40, 400);
    let mut objects: Vec<&ObjectRecord> = record.objects.iter().collect();
    let start = objects.iter().map(|object| object.requested_at).min().unwrap_or(Instant::ZERO);
    let end = objects.iter().map(|object| object.completed_at).max().unwrap_or(start);
    // Those that end last make the page's time.
    objects.sort_by_key(|object| (std::cmp::Reverse(object.completed_at), object.object));
    let left_out = objects.len().saturating_sub(options.rows);
    objects.truncate(options.rows);
    objects.sort_by_key(|object| (object.requested_at, object.object));
    let most_name = if width < 100 { SHORT_NAME } else { MOST_NAME };
    let rows: Vec<[String; 5]> = objects
        .iter()
        .map(|object| {
            let shares = carried.get(&object.object).map(|list| shares(list, paths.len()));
            [
                object.object.to_string(),
                name_of(page, object, most_name),
                short(kind_of(page, object)).to_owned(),
                bytes(object.body.0),
                shares.unwrap_or_default(),
            ]
        })
        .collect();
    let heads =
        ["", "object", "type", "size", &format!("% {}", paths.join("/"))].map(str::to_owned);
    let known = rows.iter().any(|row| !row[4].is_empty());
    let width_of = |index: usize| {
        let cells = rows.iter().chain([&heads]).map(|row| row[index].chars().count());
        cells.max().unwrap_or(0)
    };
    let [number, name, kind, size, share] = [0, 1, 2, 3, 4].map(width_of);
    let line = |row: &[String; 5], marks: &str| {
        let [id, called, of, large, shares] = row;
        let shares = if known { format!("  {shares:>share$}") } else { String::new() };
        format!("{id:>number$}{marks} {called:<name$}  {of:<kind$}  {large:>size$}{shares} ")
    };
    let head = line(&heads, "  ");
    let margin = head.chars().count();
    // The frame takes two columns.
    let bar_width = width.saturating_sub(margin + 2).max(LEAST_BAR);
    let scale = Scale { start, span: end - start, width: bar_width };
    let mut text = format!("{} {}\n", screen.toned(&head, Tone::Strong), scale.axis());
    for (object, row) in objects.iter().zip(&rows) {
        // An object that the load does not wait for is marked, and one that was pushed.
        let held = match (object.held, object.pushed) {
            (true, false) => ' ',
            (true, true) => '+',
            (false, false) => '*',
            (false, true) => '±',
        };
        let critical = if is_critical(page, object) { '!' } else { ' ' };
        let bar = screen.toned(&scale.bar(object), tone(kind_of(page, object)));
        text.push_str(&format!("{}│{bar}│\n", line(row, &format!("{critical}{held}"))));
    }
    if left_out > 0 {
        text.push_str(&format!("… and {left_out} that end earlier (use --rows to see more)\n"));
    }
    text.push_str(&screen.fold(&legend(page, &objects)));
    text
}

/// What the signs say that were drawn.
fn legend(page: &RunPage, objects: &[&ObjectRecord]) -> String {
    let any = |is: &dyn Fn(&ObjectRecord) -> bool| objects.iter().any(|object| is(object));
    let signs = [
        (true, "░ request to first byte"),
        (true, "█ first byte to last"),
        (any(&|object| !object.bound.tight.is_zero()), "┊ earliest possible end"),
        (any(&|object| is_critical(page, object)), "! blocks rendering"),
        (any(&|object| !object.held && !object.pushed), "* not counted for the page time"),
        (any(&|object| object.held && object.pushed), "+ pushed, from its promise"),
        (any(&|object| !object.held && object.pushed), "± pushed, and not counted"),
    ];
    let signs: Vec<&str> = signs.iter().filter(|(is, _)| *is).map(|(_, sign)| *sign).collect();
    format!("{}\n", signs.join("   "))
}

/// What each path brought of an object, in per cent.
fn shares(carried: &[Carried], paths: usize) -> String {
    let all: u64 = carried.iter().map(|path| path.bytes.0).sum();
    if all == 0 {
        return NOTHING.to_owned();
    }
    let share = |path: usize| {
        let of = carried.iter().filter(|it| usize::try_from(it.path).is_ok_and(|it| it == path));
        let bytes: u64 = of.map(|it| it.bytes.0).sum();
        ((bytes * 200 + all) / (2 * all)).to_string()
    };
    (0..paths).map(share).collect::<Vec<String>>().join("/")
}

fn spec<'p>(page: &'p RunPage, object: &ObjectRecord) -> Option<&'p Object> {
    page.page.object(ObjectId(object.object))
}

fn kind_of(page: &RunPage, object: &ObjectRecord) -> ObjectKind {
    spec(page, object).map_or(ObjectKind::Other, |object| object.kind)
}

fn is_critical(page: &RunPage, object: &ObjectRecord) -> bool {
    spec(page, object).is_some_and(|object| object.blocking.is_critical())
}

/// A type in a few letters.
fn short(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Document => "html",
        ObjectKind::Stylesheet => "css",
        ObjectKind::Script => "js",
        ObjectKind::Font => "font",
        ObjectKind::Xhr => "xhr",
        ObjectKind::Fetch => "fetch",
        ObjectKind::Image => "image",
        ObjectKind::Media => "media",
        ObjectKind::Ping => "ping",
        _ => "other",
    }
}

/// Colours of types, as the developer tools of browsers have them.
fn tone(kind: ObjectKind) -> Tone {
    match kind {
        ObjectKind::Document => Tone::Blue,
        ObjectKind::Stylesheet => Tone::Magenta,
        ObjectKind::Script | ObjectKind::Xhr | ObjectKind::Fetch => Tone::Yellow,
        ObjectKind::Font => Tone::Cyan,
        ObjectKind::Image | ObjectKind::Media => Tone::Good,
        _ => Tone::Plain,
    }
}

/// The end of the path, which tells objects apart best.
fn name_of(page: &RunPage, object: &ObjectRecord, most: usize) -> String {
    let Some(spec) = spec(page, object) else { return String::new() };
    let path = spec.path();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = if last.is_empty() { spec.host() } else { last };
    // A name from a file may hold anything; a terminal gets only what it can print.
    let name: Vec<char> =
        name.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect();
    if name.len() <= most {
        return name.into_iter().collect();
    }
    let tail = &name[name.len() - (most - 1)..];
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

    /// Times above the bars, as many as there is room for, and the end of the page.
    fn axis(&self) -> String {
        let end = time(self.span);
        let mut axis: Vec<char> = vec![' '; self.width];
        let mut put = |column: usize, text: &str| {
            for (at, sign) in (column..).zip(text.chars()) {
                if let Some(place) = axis.get_mut(at) {
                    *place = sign;
                }
            }
        };
        put(self.width.saturating_sub(end.chars().count()), &end);
        put(0, "0");
        let step = self.step();
        let mut free = 3;
        let mut tick = step;
        while !step.is_zero() && tick < self.span {
            let label = ticked(tick);
            let at = self.column(self.start + tick);
            let length = label.chars().count();
            if at + length + 2 > self.width.saturating_sub(end.chars().count()) {
                break;
            }
            if at >= free {
                put(at, &format!("╷{label}"));
                free = at + length + 3;
            }
            tick += step;
        }
        axis.into_iter().collect()
    }

    /// Time between ticks: 1, 2 or 5 of a power of ten, at least a dozen columns.
    fn step(&self) -> Duration {
        const APART: u64 = 12;
        let least = self.span.as_nanos().saturating_mul(APART) / (self.width as u64).max(1);
        let mut power: u64 = 1_000;
        loop {
            for factor in [1, 2, 5] {
                let step = power.saturating_mul(factor);
                if step >= least || step == u64::MAX {
                    return Duration::from_nanos(step);
                }
            }
            power = power.saturating_mul(10);
        }
    }
}

/// A round time without digits that say nothing: `50 ms`, `2 s`.
fn ticked(tick: Duration) -> String {
    let micros = tick.as_nanos() / 1_000;
    match micros {
        micros if micros % 1_000_000 == 0 => format!("{} s", micros / 1_000_000),
        micros if micros % 100_000 == 0 && micros > 1_000_000 => {
            format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000)
        }
        micros if micros % 1_000 == 0 => format!("{} ms", micros / 1_000),
        micros => format!("{micros} µs"),
    }
}
