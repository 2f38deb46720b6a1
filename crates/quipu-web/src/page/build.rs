//! Makes a page of a HAR file.

use quipu_base::{Bytes, Duration};

use super::blocking::{Place, blocking, first_images};
use super::compute::Compute;
use super::discovery::{Basis, discoveries, gap, id_of};
use super::hold::Holding;
use super::inference::Candidates;
use super::initiator::{ByUrl, Edge, Found, find_initiator, link_redirects, main_document};
use super::report::{Findings, PageReport};
use super::select::{Draft, KindSource, Load, asked, choose};
use super::size::{SizeSource, came_from_cache, request_size};
use super::stated_priority::recorded_priority;
use super::timing::RoundTrips;
use super::waits::{Known, Linked, Wait, waits};
use super::{
    ChromePriority, Discovery, Evidence, Gap, GuessKind, Http2Priority, Object, ObjectKind, Page,
    PageError, SniffedClass,
};
use crate::har::{Entry, Har};
use crate::trace::{self, Activity};

/// How to read a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which load of a file that holds several: the `pageref` of its entries, or its number from
    /// 1. By default the first, or all together if they are recordings of one page by `quipu page record`.
    pub load: Option<String>,
    /// Whether all loads of the file are taken together, as several recordings of one page.
    pub join: bool,
    /// How much of the recorded waiting is taken for computing and thinking.
    pub compute: Compute,
}

/// A page, and what was done to get it.
#[derive(Debug, Clone)]
pub struct ReadPage {
    /// The page.
    pub page: Page,
    /// What it holds, what was left out and what was guessed.
    pub report: PageReport,
}

/// Reads the page `name` from the bytes of a HAR file.
///
/// # Errors
/// If the file cannot be read, has no such load, or the load has no request over HTTP.
pub fn read(name: &str, file: &[u8], options: &ReadOptions) -> Result<ReadPage, PageError> {
    let har = Har::parse(file)?;
    let mut loads = Vec::new();
    for load in chosen(&har, options)? {
        loads.push(Prepared::new(load)?);
    }
    let compute = if har.is_made_up() { Compute::AsRecorded } else { options.compute };
    if compute != Compute::AsRecorded {
        add_traces(&mut loads, file)?;
    }
    // The fastest hides the least.
    loads.sort_by_key(|prepared| prepared.load.drafts.iter().map(|draft| draft.end).max());
    let objects = make_objects(&mut loads, compute);
    let Some(Prepared { load, main, findings, .. }) = loads.into_iter().next() else {
        return Err(PageError::NothingToLoad { entries: 0 });
    };
    let page = Page::new(name, objects)?.with_main_document(id_of(main));
    let report = PageReport::new(&har, &load, &page, findings);
    Ok(ReadPage { page, report })
}

/// The loads that a page is made of: one, or all of a file.
fn chosen<'a>(har: &'a Har, options: &ReadOptions) -> Result<Vec<Load<'a>>, PageError> {
    let first = choose(har, options.load.as_deref())?;
    let of_one_page = har.pages.iter().all(|page| page.network.is_some()) && !har.pages.is_empty();
    let join = options.join || (of_one_page && options.load.is_none());
    if !join || options.compute == Compute::AsRecorded {
        return Ok(vec![first]);
    }
    let loads = 1..=first.loads;
    loads.map(|number| choose(har, Some(&number.to_string()))).collect()
}

/// Gives loads the traces that are in the file.
fn add_traces(loads: &mut [Prepared<'_>], file: &[u8]) -> Result<(), PageError> {
    let is_traced = |prepared: &Prepared<'_>| prepared.load.page.is_some_and(|page| page.is_traced);
    if !loads.iter().any(is_traced) {
        return Ok(());
    }
    let mut traces = trace::read_recordings(file)?;
    for prepared in loads {
        let id = prepared.load.page.and_then(|page| page.id.as_deref());
        if let Some(activity) = id.and_then(|id| traces.remove(id)) {
            let recorded = prepared.load.drafts.iter().map(|draft| (draft.url, asked(draft)));
            prepared.activity = activity.aligned(recorded);
        }
    }
    Ok(())
}

/// A load whose drafts have parents.
pub(super) struct Prepared<'a> {
    pub(super) load: Load<'a>,
    pub(super) main: usize,
    /// What the browser did, as its trace tells; times count as the drafts' do.
    activity: Option<Activity>,
    places: Vec<Placed>,
    findings: Findings,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(mut load: Load<'a>) -> Result<Prepared<'a>, PageError> {
        if load.drafts.is_empty() {
            return Err(PageError::NothingToLoad { entries: load.entries });
        }
        let mut findings = Findings::default();
        let by_url = ByUrl::new(&load.drafts);
        link_redirects(&mut load.drafts, &by_url);
        inherit_kinds(&mut load.drafts);
        find_prefetches(&mut load.drafts);
        let (head, main) = main_document(&load.drafts);
        if load.drafts[main].kind_source != KindSource::Recorded
            && load.drafts[main].kind == ObjectKind::Other
        {
            load.drafts[main].kind = ObjectKind::Document;
        }
        link_parents(&mut load.drafts, &by_url, head, main, &mut findings);
        let places = places(&load.drafts, main);
        Ok(Prepared { load, main, activity: None, places, findings })
    }
}

/// Gives redirects of unknown type the type of what they lead to.
fn inherit_kinds(drafts: &mut [Draft<'_>]) {
    // Targets start after their hops, so that going backwards whole chains are covered.
    for target in (0..drafts.len()).rev() {
        if let Some(hop) = drafts[target].parent
            && drafts[hop].kind_source != KindSource::Recorded
        {
            drafts[hop].kind = drafts[target].kind;
        }
    }
}

/// Chrome gives its lowest priority to what it prefetches, and records it as a script, a document
/// or "other".
fn find_prefetches(drafts: &mut [Draft<'_>]) {
    for draft in drafts {
        let lowest = recorded_priority(draft)
            .is_some_and(|priority| priority.initial == ChromePriority::VeryLow);
        let may_be =
            matches!(draft.kind, ObjectKind::Script | ObjectKind::Document | ObjectKind::Other);
        if lowest && may_be {
            draft.kind = ObjectKind::Prefetch;
        }
    }
}

/// Gives every draft but the first hop to the main document a parent.
fn link_parents(
    drafts: &mut [Draft<'_>],
    by_url: &ByUrl<'_>,
    head: usize,
    main: usize,
    findings: &mut Findings,
) {
    let candidates = Candidates::new(drafts);
    for child in 0..drafts.len() {
        if child == head || child == main || drafts[child].parent.is_some() {
            continue;
        }
        let id = id_of(child);
        let (parent, edge) = if drafts[child].entry.was_pushed {
            (main, Edge::Push)
        } else {
            match find_initiator(drafts, by_url, child) {
                Found::Parent(parent, at) => {
                    (parent, Edge::Initiator { at, by_script: drafts[child].named.by_script })
                }
                Found::NotNamed => {
                    findings.guess(GuessKind::Parent, id);
                    candidates.guess(drafts, child, main)
                }
                Found::Unknown => {
                    findings.guess(GuessKind::UnknownInitiator, id);
                    candidates.guess(drafts, child, main)
                }
                Found::Cycle => {
                    findings.guess(GuessKind::CyclicInitiator, id);
                    (main, Edge::Arriving)
                }
            }
        };
        drafts[child].parent = Some(parent);
        drafts[child].edge = edge;
    }
}

/// Where an object stands in its page.
struct Placed {
    known: Known,
    basis: Basis,
    blocking_guessed: bool,
}

/// The place of each draft.
fn places(drafts: &[Draft<'_>], main: usize) -> Vec<Placed> {
    let found = discoveries(drafts);
    let first_images = first_images(drafts, found.iter().map(|(discovery, _)| *discovery));
    let place = |(draft, &(discovery, basis)): (&Draft<'_>, &(Discovery, Basis))| {
        let after_first_image = |offset: Bytes, parent: usize| {
            first_images[parent].is_some_and(|first_image| offset > first_image)
        };
        let late = match discovery {
            Discovery::ParserOffset { parent, offset } => after_first_image(offset, parent.index()),
            _ => false,
        };
        let place = Place {
            discovery,
            in_main_document: draft.parent == Some(main),
            late,
            indirect: draft.named.by_script || draft.named.preload,
            priority: recorded_priority(draft),
        };
        let (blocking, blocking_guessed) = blocking(draft, &place);
        Placed { known: Known { discovery, blocking, late }, basis, blocking_guessed }
    };
    drafts.iter().zip(&found).map(place).collect()
}

/// Every wait as it was recorded.
fn as_recorded(drafts: &[Draft<'_>], known: &[Known]) -> Vec<Wait> {
    let round_trips = RoundTrips::new(drafts);
    let wait = |(draft, &Known { discovery, .. }): (&Draft<'_>, &Known)| Wait {
        discovery,
        waits_for: Vec::new(),
        gap: match discovery {
            Discovery::AfterCompletion { .. } => {
                Gap { computing: gap(drafts, draft), timer: Duration::ZERO }
            }
            _ => Gap::default(),
        },
        think: round_trips.think_time(draft),
    };
    drafts.iter().zip(known).map(wait).collect()
}

/// The objects of the first of several loads, as all of them tell.
fn make_objects(loads: &mut [Prepared<'_>], compute: Compute) -> Vec<Object> {
    let known: Vec<Vec<Known>> = loads
        .iter()
        .map(|prepared| prepared.places.iter().map(|placed| placed.known).collect())
        .collect();
    let linked: Vec<Linked<'_, '_>> = loads
        .iter()
        .zip(&known)
        .map(|(prepared, known)| Linked {
            drafts: &prepared.load.drafts,
            known,
            main: prepared.main,
            activity: prepared.activity.as_ref(),
        })
        .collect();
    let waits = match (compute, linked.first()) {
        (Compute::AsRecorded, Some(first)) => as_recorded(first.drafts, first.known),
        _ => waits(&linked, compute),
    };
    let Some(Prepared { load, main, places, findings, .. }) = loads.first_mut() else {
        return Vec::new();
    };
    let (drafts, main) = (&load.drafts, *main);
    let mut holding = Holding::new(load.on_load, &drafts[main]);
    let mut objects = Vec::with_capacity(drafts.len());
    for (index, ((draft, placed), wait)) in drafts.iter().zip(places.iter()).zip(waits).enumerate()
    {
        let id = id_of(index);
        let priority = recorded_priority(draft);
        let Placed { known: Known { blocking, late, .. }, basis, blocking_guessed } = *placed;
        let (request, request_guessed) = request_size(draft.entry);
        note_guesses(draft, basis, findings, id);
        findings.guess_if(blocking_guessed, GuessKind::Blocking, id);
        findings.guess_if(request_guessed, GuessKind::RequestHeader, id);
        let evidence = match draft.edge {
            Edge::Arriving | Edge::Ended => Evidence::Inferred,
            _ => Evidence::Recorded,
        };
        objects.push(Object {
            id,
            url: draft.url.to_owned(),
            kind: draft.kind,
            sniffed: sniffed(draft),
            response_bytes: draft.sizes.body,
            response_header_bytes: draft.sizes.header,
            request,
            think_time: wait.think,
            discovery: wait.discovery,
            waits_for: wait.waits_for.into_iter().map(id_of).collect(),
            gap: wait.gap,
            evidence,
            not_held: holding.not_held(draft),
            blocking,
            late,
            preload: draft.named.preload,
            visible: draft.kind == ObjectKind::Image
                && priority.is_some_and(|priority| priority.last <= ChromePriority::High),
            priority,
            http2: http2_priority(draft.entry),
            pushed: draft.entry.was_pushed,
        });
    }
    objects
}

fn note_guesses(draft: &Draft<'_>, basis: Basis, findings: &mut Findings, id: super::ObjectId) {
    match draft.kind_source {
        KindSource::Recorded => {}
        KindSource::Mime => findings.guess(GuessKind::KindFromMime, id),
        KindSource::Name => findings.guess(GuessKind::KindFromName, id),
        KindSource::Unknown => findings.guess(GuessKind::KindUnknown, id),
    }
    match draft.sizes.source {
        SizeSource::Wire => {}
        SizeSource::Decoded => findings.guess(GuessKind::SizeFromDecoded, id),
        SizeSource::Unknown => findings.guess(GuessKind::SizeUnknown, id),
    }
    match basis {
        Basis::Delay => {}
        Basis::DelayCut => findings.guess(GuessKind::DelayCut, id),
        Basis::Line => findings.guess(GuessKind::OffsetFromLine, id),
        Basis::Spread => findings.guess(GuessKind::OffsetSpread, id),
    }
    findings.guess_if(draft.sizes.header_guessed, GuessKind::ResponseHeader, id);
    findings.from_cache += usize::from(came_from_cache(draft.entry));
}

fn sniffed(draft: &Draft<'_>) -> SniffedClass {
    let recorded = draft.entry.client_class.as_deref().and_then(SniffedClass::from_word);
    let mime = draft.entry.response.content.mime_type.as_deref().unwrap_or_default();
    recorded.unwrap_or_else(|| SniffedClass::detect(mime, draft.sizes.body.is_zero()))
}

fn http2_priority(entry: &Entry) -> Option<Http2Priority> {
    // `as` saturates; stream 0 is no request.
    let stream = entry.http2_stream_id.map(|stream| stream as u32).filter(|&stream| stream > 0)?;
    let weight = entry.http2_stream_weight.filter(|weight| (1.0..=256.0).contains(weight))?;
    Some(Http2Priority {
        stream,
        parent: entry.http2_stream_dependency.unwrap_or(0.0) as u32,
        weight: weight as u16,
        exclusive: entry.http2_stream_exclusive,
    })
}
