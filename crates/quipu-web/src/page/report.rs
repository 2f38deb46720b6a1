//! What `quipu page show` tells about a page.

use std::fmt;

use quipu_base::{Bytes, Duration};

use super::select::Load;
use super::{NotHeld, ObjectId, ObjectKind, Page};
use crate::har::{Creator, Har, HarPage};

/// Lines of each list that [`PageReport`] prints without `#`.
const SHORT_LIST: usize = 10;

/// Everything that is worth knowing about how a recording became a page. `{}` prints it with
/// short lists, `{:#}` with complete ones.
#[derive(Debug, Clone, PartialEq)]
pub struct PageReport {
    /// Name of the page.
    pub name: String,
    /// Program that wrote the file, with its version.
    pub producer: String,
    /// The load that was read.
    pub load: LoadSummary,
    /// Objects of the page.
    pub objects: usize,
    /// Bytes of the responses as the recording counts them: on the wire where it knows.
    pub recorded_bytes: Bytes,
    /// Bytes of the responses' bodies.
    pub body_bytes: Bytes,
    /// Distinct hosts. All are folded into one unless a run keeps origins apart.
    pub hosts: usize,
    /// Objects by origin, in the order of the first of each.
    pub origins: Vec<OriginTotal>,
    /// Length of the longest chain of discoveries.
    pub depth: usize,
    /// Objects by type.
    pub kinds: Vec<KindTotal>,
    /// Entries whose initiator is the URL of another entry.
    pub initiators_known: usize,
    /// Objects that came out of the recording browser's cache.
    pub from_cache: usize,
    /// Objects that the recorded server pushed.
    pub pushed: usize,
    /// Entries that are no objects.
    pub left_out: Vec<LeftOut>,
    /// Objects that the load does not wait for: id, URL, reason.
    pub not_held: Vec<(ObjectId, String, NotHeld)>,
    /// Bytes of the bodies of the objects that hold the load.
    pub held_bytes: Bytes,
    /// Everything that was guessed, by what was guessed.
    pub guesses: Vec<Guess>,
}

/// One load of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSummary {
    /// Its title, if the file has one.
    pub title: Option<String>,
    /// Its number in the file, from 1.
    pub number: usize,
    /// Loads of the file.
    pub of: usize,
    /// Its entries.
    pub entries: usize,
    /// Time of the load event from the first request, if the file knows it.
    pub on_load: Option<Duration>,
    /// Requests of the file that the browser made for itself, which are no entries.
    pub of_browser: usize,
    /// Requests of the file that pages without a load in it made, which are no entries.
    pub of_others: usize,
}

/// Objects of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindTotal {
    /// The type.
    pub kind: ObjectKind,
    /// How many there are.
    pub objects: usize,
    /// Bytes of their bodies.
    pub bytes: Bytes,
}

/// Objects of one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginTotal {
    /// Its name, such as `https://example.com`.
    pub name: String,
    /// How many there are.
    pub objects: usize,
    /// Bytes of their bodies.
    pub bytes: Bytes,
}

/// An entry that is no object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its URL.
    pub url: String,
    /// Why.
    pub reason: Skipped,
}

/// Why an entry is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// Blocked, cancelled or failed.
    Failed,
    /// The browser's own upgrade to HTTPS: nothing was sent.
    InternalRedirect,
    /// It has no request, or a request without a URL.
    Broken,
    /// Another scheme than HTTP, such as `data:` or `wss:`.
    NotHttp,
}

/// Something that was guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guess {
    /// What.
    pub kind: GuessKind,
    /// For which objects.
    pub objects: Vec<ObjectId>,
}

/// What can be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuessKind {
    /// The parent, from types and times: no initiator is recorded.
    Parent,
    /// The parent: the recorded initiator made no request.
    UnknownInitiator,
    /// The parent: the recorded initiators go round in a circle, which was cut here.
    CyclicInitiator,
    /// The byte offset, from a line number.
    OffsetFromLine,
    /// The byte offset, by even spreading.
    OffsetSpread,
    /// A delay above ten minutes was cut to that.
    DelayCut,
    /// The type, from the media type.
    KindFromMime,
    /// The type, from the ending of the path.
    KindFromName,
    /// No type at all: taken as other.
    KindUnknown,
    /// The size, from the decoded body.
    SizeFromDecoded,
    /// No size at all: taken as 0 bytes.
    SizeUnknown,
    /// The size of the response's header.
    ResponseHeader,
    /// The size of the request's header.
    RequestHeader,
    /// Whether rendering or parsing waits.
    Blocking,
}

/// What the builder notes on its way.
#[derive(Default)]
pub(super) struct Findings {
    guesses: std::collections::BTreeMap<GuessKind, Vec<ObjectId>>,
    pub(super) from_cache: usize,
}

impl Findings {
    pub(super) fn guess(&mut self, kind: GuessKind, object: ObjectId) {
        self.guesses.entry(kind).or_default().push(object);
    }

    pub(super) fn guess_if(&mut self, guessed: bool, kind: GuessKind, object: ObjectId) {
        if guessed {
            self.guess(kind, object);
        }
    }
}

impl PageReport {
    pub(super) fn new(har: &Har, load: &Load<'_>, page: &Page, findings: Findings) -> PageReport {
        let held = page.objects().iter().filter(|object| object.holds_load());
        // A float outside the range of an integer becomes its nearest.
        let count = |number: fn(&HarPage) -> Option<f64>| {
            load.page.and_then(number).unwrap_or(0.0) as usize
        };
        PageReport {
            name: page.name().to_owned(),
            producer: producer(&har.creator, &har.browser),
            load: LoadSummary {
                title: load.page.and_then(|page| page.title.clone()),
                number: load.number,
                of: load.loads,
                entries: load.entries,
                on_load: load.on_load,
                of_browser: count(|page| page.requests_of_browser),
                of_others: count(|page| page.requests_of_others),
            },
            objects: page.objects().len(),
            recorded_bytes: load.recorded_bytes,
            body_bytes: page.body_bytes(),
            hosts: page.hosts(),
            origins: origin_totals(page),
            depth: page.depth(),
            kinds: kind_totals(page),
            initiators_known: load.initiators_known,
            from_cache: findings.from_cache,
            pushed: page.objects().iter().filter(|object| object.pushed).count(),
            left_out: load.left_out.clone(),
            held_bytes: held.map(|object| object.response_bytes).sum(),
            not_held: page
                .objects()
                .iter()
                .filter_map(|object| Some((object.id, object.url.clone(), object.not_held?)))
                .collect(),
            guesses: findings
                .guesses
                .into_iter()
                .map(|(kind, objects)| Guess { kind, objects })
                .collect(),
        }
    }

    /// The report of a page that nobody recorded: `maker` made it up.
    pub fn made_up(page: &Page, maker: &str) -> PageReport {
        let objects = page.objects();
        let held = objects.iter().filter(|object| object.holds_load());
        let not_held = objects.iter().filter_map(|it| Some((it.id, it.url.clone(), it.not_held?)));
        PageReport {
            name: page.name().to_owned(),
            producer: maker.to_owned(),
            load: LoadSummary {
                title: None,
                number: 1,
                of: 1,
                entries: objects.len(),
                on_load: None,
                of_browser: 0,
                of_others: 0,
            },
            objects: objects.len(),
            recorded_bytes: page.body_bytes(),
            body_bytes: page.body_bytes(),
            hosts: page.hosts(),
            origins: origin_totals(page),
            depth: page.depth(),
            kinds: kind_totals(page),
            initiators_known: 0,
            from_cache: 0,
            pushed: 0,
            left_out: Vec::new(),
            held_bytes: held.map(|object| object.response_bytes).sum(),
            not_held: not_held.collect(),
            guesses: Vec::new(),
        }
    }

    /// Objects for which `kind` was guessed.
    pub fn guessed(&self, kind: GuessKind) -> usize {
        self.guesses.iter().find(|guess| guess.kind == kind).map_or(0, |guess| guess.objects.len())
    }

    /// True if the browser's cache was warm: more than half of the objects came out of it, and
    /// sizes are those of decoded bodies.
    pub fn warm_cache(&self) -> bool {
        self.from_cache * 2 > self.objects
    }
}

fn producer(creator: &Creator, browser: &Creator) -> String {
    let name = |program: &Creator| {
        let words = [program.name.as_deref(), program.version.as_deref()];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let (creator, browser) = (name(creator), name(browser));
    match (creator.is_empty(), browser.is_empty() || browser == creator) {
        (true, true) => "unknown".to_owned(),
        (true, false) => browser,
        (false, true) => creator,
        (false, false) => format!("{creator}, {browser}"),
    }
}

fn kind_totals(page: &Page) -> Vec<KindTotal> {
    let total = |kind| {
        let of_kind = page.objects().iter().filter(|object| object.kind == kind);
        KindTotal {
            kind,
            objects: of_kind.clone().count(),
            bytes: of_kind.map(|object| object.response_bytes).sum(),
        }
    };
    ObjectKind::ALL.into_iter().map(total).filter(|total| total.objects > 0).collect()
}

fn origin_totals(page: &Page) -> Vec<OriginTotal> {
    let origins = page.origins();
    let total = |name: &String| OriginTotal { name: name.clone(), objects: 0, bytes: Bytes::ZERO };
    let mut totals: Vec<OriginTotal> = origins.names().iter().map(total).collect();
    for object in page.objects() {
        let total = &mut totals[origins.number_of(object.id)];
        total.objects += 1;
        total.bytes += object.response_bytes;
    }
    totals
}

impl GuessKind {
    fn text(self) -> &'static str {
        match self {
            GuessKind::Parent => "parent, from types and times",
            GuessKind::UnknownInitiator => "parent: the initiator made no request",
            GuessKind::CyclicInitiator => "parent: a circle of initiators, cut here",
            GuessKind::OffsetFromLine => "byte offset, from the line",
            GuessKind::OffsetSpread => "byte offset, spread evenly",
            GuessKind::DelayCut => "delay, cut to ten minutes",
            GuessKind::KindFromMime => "type, from the media type",
            GuessKind::KindFromName => "type, from the name",
            GuessKind::KindUnknown => "type unknown: other",
            GuessKind::SizeFromDecoded => "size, from the decoded body",
            GuessKind::SizeUnknown => "size unknown: 0",
            GuessKind::ResponseHeader => "size of the response's header",
            GuessKind::RequestHeader => "size of the request's header",
            GuessKind::Blocking => "whether rendering or parsing waits",
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Skipped::Failed => "failed or cancelled",
            Skipped::InternalRedirect => "upgrade inside the browser",
            Skipped::Broken => "no URL",
            Skipped::NotHttp => "not HTTP",
        })
    }
}

impl fmt::Display for PageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = &self.load;
        let title = load.title.as_deref().unwrap_or("untitled");
        writeln!(f, "{:<12}{}", "page", self.name)?;
        writeln!(f, "{:<12}{}", "recorded by", self.producer)?;
        writeln!(f, "{:<12}{} of {}: {title}", "load", load.number, load.of)?;
        if let Some(on_load) = load.on_load {
            writeln!(f, "{:<12}{on_load}", "load event")?;
        }
        if self.warm_cache() {
            writeln!(
                f,
                "{:<12}{} of {} objects came out of a warm cache; sizes are decoded sizes",
                "warning", self.from_cache, self.objects
            )?;
        }
        writeln!(f, "{:<12}{} of {} entries", "objects", self.objects, load.entries)?;
        if load.of_browser > 0 || load.of_others > 0 {
            writeln!(
                f,
                "{:<12}{} requests of the browser itself, {} of other pages",
                "not read", load.of_browser, load.of_others
            )?;
        }
        writeln!(
            f,
            "{:<12}{} of bodies, {} as recorded",
            "bytes",
            grouped(self.body_bytes),
            grouped(self.recorded_bytes)
        )?;
        writeln!(f, "{:<12}{}, folded into one", "hosts", self.hosts)?;
        writeln!(f, "{:<12}{}", "depth", self.depth)?;
        writeln!(f, "{:<12}{} of {} known", "initiators", self.initiators_known, load.entries)?;
        if self.pushed > 0 {
            writeln!(
                f,
                "{:<12}{}, requested with the document unless a run pushes them",
                "pushed", self.pushed
            )?;
        }
        let held = self.objects - self.not_held.len();
        writeln!(f, "{:<12}{held} objects, {}", "load waits", grouped(self.held_bytes))?;
        writeln!(f, "\ntypes")?;
        for total in &self.kinds {
            writeln!(f, "  {:<12}{:>6}{:>14}", total.kind, total.objects, grouped(total.bytes))?;
        }
        if self.origins.len() > 1 {
            list(f, "origins", &self.origins, |total, f| {
                let (objects, bytes) = (total.objects, grouped(total.bytes));
                writeln!(f, "  {objects:>6}{bytes:>14}  {}", shortened(&total.name))
            })?;
        }
        list(f, "guessed", &self.guesses, |guess, f| {
            writeln!(f, "  {:>6}  {}", guess.objects.len(), guess.kind.text())
        })?;
        list(f, "left out", &self.left_out, |entry, f| {
            writeln!(f, "  {:<30}{}", entry.reason, shortened(&entry.url))
        })?;
        list(f, "the load does not wait for", &self.not_held, |(id, url, reason), f| {
            writeln!(f, "  {:<6}{reason:<32}{}", id.to_string(), shortened(url))
        })
    }
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    items: &[T],
    mut line: impl FnMut(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    // Guesses have few kinds: they are never cut.
    let all = f.alternate() || items.len() <= GUESS_KINDS;
    let shown = if all { items.len() } else { SHORT_LIST };
    for item in items.iter().take(shown) {
        line(item, f)?;
    }
    if items.len() > shown {
        writeln!(f, "  and {} more", items.len() - shown)?;
    }
    Ok(())
}

const GUESS_KINDS: usize = 14;

/// A size with commas between groups of three digits, such as `12,345 B`.
fn grouped(bytes: Bytes) -> String {
    let digits = bytes.0.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text.push_str(" B");
    text
}

/// The first 80 characters of a URL.
fn shortened(url: &str) -> String {
    match url.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &url[..end]),
        None => url.to_owned(),
    }
}
