//! Which entries of a file make up one page load, and what type each has.

use std::collections::BTreeSet;

use quipu_base::{Bytes, Duration};

use super::initiator::{Edge, Named};
use super::size::{SizeSource, Sizes, response_sizes};
use super::{LeftOut, ObjectKind, PageError, Skipped};
use crate::har::{Entry, Har, HarPage};

/// An entry on its way to becoming an object. Times count from the first entry of the load.
pub(super) struct Draft<'a> {
    pub(super) entry: &'a Entry,
    pub(super) url: &'a str,
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) kind: ObjectKind,
    pub(super) kind_source: KindSource,
    pub(super) sizes: Sizes,
    pub(super) named: Named<'a>,
    /// Index of the parent among the drafts.
    pub(super) parent: Option<usize>,
    pub(super) edge: Edge,
}

/// Where the type of an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindSource {
    Recorded,
    Mime,
    Name,
    Unknown,
}

/// The chosen load.
pub(super) struct Load<'a> {
    pub(super) page: Option<&'a HarPage>,
    pub(super) number: usize,
    pub(super) loads: usize,
    pub(super) entries: usize,
    /// In order of start.
    pub(super) drafts: Vec<Draft<'a>>,
    pub(super) left_out: Vec<LeftOut>,
    /// Time of the load event, counted like the drafts' times.
    pub(super) on_load: Option<Duration>,
    /// Entries whose initiator, or a function in its stack, is the URL of an entry.
    pub(super) initiators_known: usize,
    /// Bytes of all responses as the recording counts them.
    pub(super) recorded_bytes: Bytes,
}

/// True for recordings of Firefox's own exporter.
pub(super) fn is_firefox(har: &Har) -> bool {
    har.creator.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("firefox"))
}

/// Names of the loads of `har`, in order: those of `pages`, then those that only entries name.
fn load_names(har: &Har) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let pages = har.pages.iter().filter_map(|page| page.id.as_deref());
    let refs = har.entries.iter().filter_map(|entry| entry.pageref.as_deref());
    let mut used = BTreeSet::new();
    for name in refs.clone() {
        used.insert(name);
    }
    for name in pages.chain(refs) {
        // Pages without entries are no loads; each name counts once.
        if used.remove(name) {
            names.push(name);
        }
    }
    names
}

/// The load named `wanted`, by its id or its number from 1; the first without a wish.
pub(super) fn choose<'a>(har: &'a Har, wanted: Option<&str>) -> Result<Load<'a>, PageError> {
    let names = load_names(har);
    let index = match wanted {
        None => 0,
        Some(wanted) => names
            .iter()
            .position(|name| *name == wanted)
            .or_else(|| wanted.parse::<usize>().ok()?.checked_sub(1))
            .filter(|&index| index < names.len().max(1))
            .ok_or_else(|| PageError::NoSuchLoad {
                asked: wanted.to_owned(),
                known: names.iter().map(|&name| name.to_owned()).collect(),
            })?,
    };
    let name = names.get(index).copied();
    // An entry of no load belongs to the first.
    let entries: Vec<&Entry> = har
        .entries
        .iter()
        .filter(|entry| match entry.pageref.as_deref() {
            Some(pageref) => Some(pageref) == name,
            None => index == 0,
        })
        .collect();
    let page = har.pages.iter().find(|page| page.id.is_some() && page.id.as_deref() == name);
    let firefox = is_firefox(har);

    // An entry without a readable time starts with the entry before it.
    let mut last = page.and_then(|page| page.started_date_time);
    let mut starts = Vec::with_capacity(entries.len());
    for entry in &entries {
        last = entry.started.or(last);
        starts.push(last.map_or(0, |time| time.as_nanosecond()));
    }
    let base = starts.iter().copied().min().unwrap_or(0);
    let since_base = |time: i128| {
        Duration::from_nanos(u64::try_from(time.saturating_sub(base).max(0)).unwrap_or(u64::MAX))
    };

    let urls: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.request.url.as_deref()).collect();
    let mut initiators_known = 0;
    let mut recorded_bytes = Bytes::ZERO;
    let mut drafts = Vec::with_capacity(entries.len());
    let mut left_out = Vec::new();
    for (entry, start) in entries.iter().zip(starts) {
        let url = entry.request.url.as_deref().unwrap_or_default();
        let sizes = response_sizes(entry, firefox);
        let named = Named::of(entry);
        initiators_known +=
            usize::from(named.urls.iter().any(|(url, _)| urls.contains(url.as_ref())));
        recorded_bytes += sizes.recorded;
        if let Some(reason) = skipped(entry, url, &sizes) {
            left_out.push(LeftOut { url: url.to_owned(), reason });
            continue;
        }
        let start = since_base(start);
        let (kind, kind_source) = kind_of(entry, url, &sizes);
        drafts.push(Draft {
            entry,
            url,
            start,
            end: start + millis(entry.time),
            kind,
            kind_source,
            sizes,
            named,
            parent: None,
            edge: Edge::None,
        });
    }
    // Stable: entries of one time keep the order of the file.
    drafts.sort_by_key(|draft| draft.start);
    let on_load = page.and_then(|page| {
        let after_start = page.page_timings.on_load.filter(|&time| time > 0.0)?;
        let started = page.started_date_time?.as_nanosecond();
        Some(since_base(started) + millis(Some(after_start)))
    });
    Ok(Load {
        page,
        number: index + 1,
        loads: names.len().max(1),
        entries: entries.len(),
        drafts,
        left_out,
        on_load,
        initiators_known,
        recorded_bytes,
    })
}

/// A time in milliseconds; zero if it is unknown.
pub(super) fn millis(time: Option<f64>) -> Duration {
    Duration::from_secs_f64(time.unwrap_or(0.0).max(0.0) / 1_000.0)
}

/// When a draft was asked for: before it starts, where the browser's own queue is told apart.
pub(super) fn asked(draft: &Draft<'_>) -> Duration {
    let timings = &draft.entry.timings;
    let queued = match timings.blocked_queueing {
        // It is a part of the entry.
        Some(_) => Duration::ZERO,
        None => millis(timings.queued),
    };
    draft.start.saturating_sub(queued)
}

/// True if `entry` is a redirect.
pub(super) fn is_redirect(entry: &Entry) -> bool {
    matches!(entry.response.status, Some(301.0 | 302.0 | 303.0 | 307.0 | 308.0))
}

/// Why an entry never becomes an object.
fn skipped(entry: &Entry, url: &str, sizes: &Sizes) -> Option<Skipped> {
    if url.is_empty() {
        return Some(Skipped::Broken);
    }
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let secure = scheme.eq_ignore_ascii_case("https");
    if !secure && !scheme.eq_ignore_ascii_case("http") {
        return Some(Skipped::NotHttp);
    }
    let no_response = entry.response.status.is_some_and(|status| status <= 0.0);
    if no_response || entry.response.error.is_some() {
        return Some(Skipped::Failed);
    }
    // Chrome's upgrade to HTTPS is an entry, but never left the browser.
    let upgraded = entry.response.redirect_url.as_deref().and_then(|to| to.strip_prefix("https"));
    let nothing_sent = entry.response.transfer_size == Some(0.0)
        || (sizes.source != SizeSource::Wire && entry.timings.wait.unwrap_or(0.0) <= 0.0);
    if is_redirect(entry) && !secure && upgraded == url.strip_prefix("http") && nothing_sent {
        return Some(Skipped::InternalRedirect);
    }
    None
}

/// Type of an entry: recorded, else by media type, else by name.
fn kind_of(entry: &Entry, url: &str, sizes: &Sizes) -> (ObjectKind, KindSource) {
    if entry.request.method.as_deref() == Some("OPTIONS") {
        return (ObjectKind::Preflight, KindSource::Recorded);
    }
    let word = entry.resource_type.as_deref().or(entry.request_type.as_deref());
    let recorded = word.and_then(ObjectKind::from_resource_type);
    if let Some(kind) = recorded.filter(|&kind| kind != ObjectKind::Other) {
        return (kind, KindSource::Recorded);
    }
    // Old Chrome calls nearly everything "other".
    let mime = entry.response.content.mime_type.as_deref().unwrap_or_default();
    let guessed = match ObjectKind::from_mime(mime) {
        Some(kind) => Some((kind, KindSource::Mime)),
        None => ObjectKind::from_url_path(url).map(|kind| (kind, KindSource::Name)),
    };
    match guessed {
        // Trackers answer with empty documents.
        Some((ObjectKind::Document, _)) if recorded.is_some() || sizes.body.is_zero() => {
            (ObjectKind::Other, KindSource::Mime)
        }
        Some(guess) => guess,
        None if recorded.is_some() => (ObjectKind::Other, KindSource::Recorded),
        None => (ObjectKind::Other, KindSource::Unknown),
    }
}
