//! What requests each object: an element, a style sheet, a script, or a handler.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quipu_base::Duration;
use quipu_web::page::{Blocking, Discovery, Gap, NotHeld, ObjectKind, Page};

use super::address::Address;

/// The parser itself takes some time to reach an element. An object that nothing waits for, and that was requested
/// later than this after all that it needs, is requested by a script in place of an element. Our choice.
const PARSING: Duration = Duration::from_millis(50);

/// What a browser does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// It parses it as HTML, in a window or a frame.
    Document,
    /// It applies the style sheet; `link` is the sheet that has an element: itself, or the one that imports it.
    Sheet { link: usize },
    /// It runs the script.
    Script,
    /// None of these: the object names no others.
    Opaque,
}

/// An object that a document names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Byte of the document. Above all others: at the end.
    pub(super) offset: u64,
    pub(super) object: usize,
    /// A script in the document requests it, not an element.
    pub(super) inline: bool,
}

/// Who requests what. Objects are numbered as in the page, and lists have a place for each.
#[derive(Debug)]
pub(super) struct Plan<'p> {
    pub(super) page: &'p Page,
    pub(super) addresses: Vec<Address>,
    /// The object to begin with.
    pub(super) start: usize,
    pub(super) main: usize,
    /// What redirects lead to.
    pub(super) next: Vec<Option<usize>>,
    /// The icon that the main document names.
    pub(super) icon: Option<usize>,
    pub(super) loaded: Vec<Loaded>,
    /// The document whose base the references to an object's children have.
    pub(super) documents: Vec<usize>,
    /// The document from which each object is requested.
    asked_in: Vec<usize>,
    /// What each document names, in order.
    pub(super) parsed: Vec<Vec<Parsed>>,
    /// What each style sheet or script names itself.
    pub(super) named: Vec<Vec<usize>>,
    /// What is requested by the handler of each object's load event.
    pub(super) after: Vec<Vec<usize>>,
    /// The permission check that goes ahead of a request.
    pub(super) checks: Vec<Option<usize>>,
    /// Objects whose URL another one has, so that browsers would take them from their memory, or load no frame for them.
    pub(super) repeated: Vec<bool>,
    pub(super) gaps: Vec<Gap>,
    found: Vec<Discovery>,
    has_children: Vec<bool>,
    manifest: Option<usize>,
}

impl<'p> Plan<'p> {
    pub(super) fn new(page: &'p Page) -> Plan<'p> {
        let objects = page.objects();
        let count = objects.len();
        let mut plan = Plan {
            page,
            addresses: objects.iter().map(Address::of).collect(),
            start: page.main_document().index(),
            main: page.main_document().index(),
            next: vec![None; count],
            icon: None,
            loaded: vec![Loaded::Opaque; count],
            documents: vec![page.main_document().index(); count],
            asked_in: vec![page.main_document().index(); count],
            parsed: vec![Vec::new(); count],
            named: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
            checks: vec![None; count],
            repeated: vec![false; count],
            gaps: objects.iter().map(|object| object.gap).collect(),
            found: objects.iter().map(|object| object.discovery).collect(),
            has_children: vec![false; count],
            manifest: None,
        };
        while let Some(hop) = objects[plan.start].discovery.parent() {
            plan.next[hop.index()] = Some(plan.start);
            plan.start = hop.index();
        }
        let mut parents = plan.parents();
        plan.pair_checks(&mut parents);
        plan.find_repeated();
        for parent in parents.iter().flatten() {
            plan.has_children[*parent] = true;
        }
        plan.find_icon();
        plan.place_all(&parents);
        for list in &mut plan.parsed {
            list.sort_by_key(|parsed| (parsed.offset, parsed.object));
        }
        plan
    }

    /// True if it started after the load event of the page.
    pub(super) fn is_after_load(&self, object: usize) -> bool {
        self.page.objects()[object].not_held == Some(NotHeld::AfterOnLoad)
    }

    pub(super) fn kind(&self, object: usize) -> ObjectKind {
        self.page.objects()[object].kind
    }

    /// The shortest reference to `object` from the document that it is requested from.
    pub(super) fn reference(&self, object: usize) -> String {
        self.addresses[object].from(&self.addresses[self.asked_in[object]].authority)
    }

    /// True if a script requests it by `fetch` or its like, which browsers tell in requests.
    pub(super) fn is_fetched(&self, object: usize) -> bool {
        if object == self.main || self.next[object].is_some() {
            return false;
        }
        self.repeated[object]
            || match self.kind(object) {
                ObjectKind::Fetch | ObjectKind::Ping | ObjectKind::Preflight | ObjectKind::Xhr => {
                    true
                }
                ObjectKind::Other => self.icon != Some(object),
                ObjectKind::Manifest => self.manifest != Some(object),
                ObjectKind::Media => self.has_children[object],
                _ => false,
            }
    }

    /// True if an element requests it ahead of its use.
    pub(super) fn is_preloaded(&self, object: usize) -> bool {
        use ObjectKind::{Fetch, Font, Image, Script, Stylesheet, Xhr};
        self.page.objects()[object].preload
            && matches!(self.kind(object), Fetch | Font | Image | Script | Stylesheet | Xhr)
    }

    /// The object that brings each into the page; none for the main document and the redirects before it. Roots, and
    /// what a redirect brings, are found by the main document.
    fn parents(&self) -> Vec<Option<usize>> {
        let parent = |object: usize| {
            if object == self.main || self.next[object].is_some() {
                return None;
            }
            let parent = self.found[object].parent().map(|parent| parent.index());
            Some(parent.filter(|&parent| self.next[parent].is_none()).unwrap_or(self.main))
        };
        (0..self.found.len()).map(parent).collect()
    }

    /// Joins permission checks with the requests that browsers send them for: those are made when the check was.
    fn pair_checks(&mut self, parents: &mut [Option<usize>]) {
        let mut waiting: BTreeMap<&Address, VecDeque<usize>> = BTreeMap::new();
        for (object, address) in self.addresses.iter().enumerate() {
            if matches!(self.kind(object), ObjectKind::Xhr | ObjectKind::Fetch)
                && parents[object].is_some()
                && address.authority != self.addresses[self.main].authority
            {
                waiting.entry(address).or_default().push_back(object);
            }
        }
        let mut replaced: BTreeMap<usize, usize> = BTreeMap::new();
        for check in 0..parents.len() {
            if self.kind(check) != ObjectKind::Preflight || parents[check].is_none() {
                continue;
            }
            let Some(requests) = waiting.get_mut(&self.addresses[check]) else { continue };
            let later = requests.iter().position(|&request| request > check);
            let Some(request) = later.and_then(|later| requests.remove(later)) else { continue };
            if is_ancestor(parents, request, check) {
                continue;
            }
            parents[request] = parents[check];
            self.found[request] = self.found[check];
            self.gaps[request] = self.gaps[check];
            self.checks[request] = Some(check);
            replaced.insert(check, request);
            // What waited for the check waits for the request.
            for parent in parents.iter_mut().filter(|parent| **parent == Some(check)) {
                *parent = Some(request);
            }
            parents[check] = None;
        }
    }

    fn find_repeated(&mut self) {
        let mut seen = BTreeSet::new();
        for (object, address) in self.addresses.iter().enumerate() {
            let is_kept = matches!(
                self.kind(object),
                ObjectKind::Font
                    | ObjectKind::Image
                    | ObjectKind::Manifest
                    | ObjectKind::Media
                    | ObjectKind::Prefetch
                    | ObjectKind::Script
                    | ObjectKind::Stylesheet
            );
            self.repeated[object] = !seen.insert(address) && is_kept;
        }
    }

    /// The icon is an image of the main document's host that browsers look for, and that brings no others.
    fn find_icon(&mut self) {
        let is_icon = |&object: &usize| {
            let address = &self.addresses[object];
            let path = address.path.split('?').next().unwrap_or_default();
            let named = path.rsplit('/').next().is_some_and(|name| name.starts_with("favicon."));
            let told = self.page.objects()[object].not_held == Some(NotHeld::Icon);
            (named || told)
                && matches!(self.kind(object), ObjectKind::Image | ObjectKind::Other)
                && address.authority == self.addresses[self.main].authority
                && object != self.main
                && self.next[object].is_none()
                && !self.repeated[object]
                && !self.has_children[object]
        };
        self.icon = (0..self.addresses.len()).find(is_icon);
    }

    /// Places all objects, parents first.
    fn place_all(&mut self, parents: &[Option<usize>]) {
        let mut children = vec![Vec::new(); parents.len()];
        for (object, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent.filter(|_| self.icon != Some(object)) {
                children[parent].push(object);
            }
        }
        self.loaded[self.main] = Loaded::Document;
        let mut open = VecDeque::from([self.main]);
        while let Some(parent) = open.pop_front() {
            for &object in &children[parent] {
                self.place(parent, object);
                open.push_back(object);
            }
        }
    }

    fn place(&mut self, parent: usize, object: usize) {
        self.documents[object] = self.documents[parent];
        self.asked_in[object] = self.documents[parent];
        let kind = self.kind(object);
        if kind == ObjectKind::Document && self.is_within_itself(object) {
            self.repeated[object] = true;
        }
        let mut link = object;
        let mut inline = true;
        match self.loaded[parent] {
            Loaded::Document => {
                let offset = match self.found[object] {
                    Discovery::Root => 0,
                    Discovery::ParserOffset { offset, .. } => offset.0,
                    Discovery::AfterCompletion { parent: own } if own.index() == parent => u64::MAX,
                    Discovery::AfterCompletion { .. } => 0,
                };
                inline = !self.has_element(parent, object);
                self.parsed[parent].push(Parsed { offset, object, inline });
            }
            Loaded::Sheet { link: own } if self.is_natural(object) => {
                link = own;
                self.named[parent].push(object);
            }
            Loaded::Sheet { link: own } => self.after[own].push(object),
            Loaded::Script => self.named[parent].push(object),
            Loaded::Opaque => self.after[parent].push(object),
        }
        let is_used = !self.repeated[object] && (inline || !self.is_preloaded(object));
        self.loaded[object] = match kind {
            ObjectKind::Document if !self.repeated[object] => Loaded::Document,
            ObjectKind::Stylesheet if is_used => Loaded::Sheet { link },
            ObjectKind::Script if is_used => Loaded::Script,
            _ => Loaded::Opaque,
        };
        if self.loaded[object] == Loaded::Document {
            self.documents[object] = object;
        }
    }

    /// True if browsers load no frame for it: its URL is that of two documents around it already.
    /// <https://html.spec.whatwg.org/multipage/iframe-embed-object.html#shared-attribute-processing-steps-for-iframe-and-frame-elements>
    fn is_within_itself(&self, object: usize) -> bool {
        let mut around = self.asked_in[object];
        let mut same = 0;
        loop {
            same += usize::from(self.addresses[around] == self.addresses[object]);
            if around == self.main || same == 2 {
                return same == 2;
            }
            around = self.asked_in[around];
        }
    }

    /// True if an element of the document `parent` requests it.
    fn has_element(&mut self, parent: usize, object: usize) -> bool {
        let found = &self.page.objects()[object];
        let at_end = matches!(self.found[object], Discovery::AfterCompletion { parent: own } if own.index() == parent);
        if at_end || self.repeated[object] {
            return false;
        }
        if self.is_preloaded(object) {
            return true;
        }
        let is_late = !found.waits_for.is_empty()
            || self.gaps[object].total() >= PARSING
            || self.gaps[object].timer > Duration::ZERO;
        if is_late && found.blocking == Blocking::None {
            return false;
        }
        match found.kind {
            ObjectKind::Document
            | ObjectKind::Stylesheet
            | ObjectKind::Script
            | ObjectKind::Font
            | ObjectKind::Image
            | ObjectKind::Prefetch => true,
            // Neither has an event that all browsers fire once.
            ObjectKind::Media => !self.has_children[object],
            ObjectKind::Manifest => {
                let first = self.manifest.is_none() && parent == self.main;
                if first && !self.has_children[object] {
                    self.manifest = Some(object);
                }
                self.manifest == Some(object)
            }
            _ => false,
        }
    }

    /// True if a style sheet requests it without an element.
    fn is_natural(&self, object: usize) -> bool {
        let alone = matches!(self.kind(object), ObjectKind::Image | ObjectKind::Font)
            && !self.has_children[object];
        !self.repeated[object] && (alone || self.kind(object) == ObjectKind::Stylesheet)
    }
}

/// True if `ancestor` brings `object` into the page, by way of others too.
fn is_ancestor(parents: &[Option<usize>], ancestor: usize, object: usize) -> bool {
    let mut at = Some(object);
    while let Some(object) = at {
        if object == ancestor {
            return true;
        }
        at = parents[object];
    }
    false
}
