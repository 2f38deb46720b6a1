//! Who asked for an object, as the recording says it.
//!
//! The rules are those of Lighthouse: the candidates are the initiator's URL, else all URLs of
//! the stack; a candidate counts if exactly one request has that URL, it started no later than
//! the child, and no cycle arises. Of several, the one that ended last is the parent, because the
//! others were there before. Otherwise the direct initiator is the parent, and at last the main
//! document. Each hop of a redirect depends on the hop before.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::ObjectKind;
use super::select::{Draft, is_redirect};
use crate::har::{DevToolsInitiator, Entry, Initiator, Stack};

/// How a draft hangs on its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Edge {
    /// It has no parent.
    None,
    /// Guessed; the child started while the parent was still arriving.
    Arriving,
    /// Guessed; the child started after the parent's end.
    Ended,
    /// The recorded initiator.
    Initiator {
        /// Where in the parent.
        at: Option<Position>,
        /// A script asked, not a parser.
        by_script: bool,
    },
    /// Pushed by the server with the parent.
    Push,
    /// The parent redirects to it.
    Redirect,
}

/// A place in a text, both numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) line: f64,
    pub(super) column: f64,
}

/// What the recording says about who asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Named<'a> {
    /// URLs with the place in each, the direct initiator first, each URL once.
    pub(super) urls: Vec<(Cow<'a, str>, Option<Position>)>,
    pub(super) by_script: bool,
    pub(super) preload: bool,
}

impl<'a> Named<'a> {
    pub(super) fn of(entry: &'a Entry) -> Named<'a> {
        let word = entry.initiator_type.as_deref().unwrap_or_default();
        let mut named = match &entry.initiator {
            Some(Initiator::DevTools(object)) => Named::from_dev_tools(object),
            _ => Named {
                by_script: word.eq_ignore_ascii_case("script"),
                preload: word.eq_ignore_ascii_case("preload"),
                ..Named::default()
            },
        };
        // The whole object says more than the URL beside it.
        let detail = entry
            .initiator_detail
            .as_deref()
            .and_then(|text| serde_json::from_str::<DevToolsInitiator>(text).ok());
        if let Some(object) = &detail {
            named = Named::from_dev_tools(object).into_owned();
        }
        if let (true, Some(Initiator::Url(url))) = (named.urls.is_empty(), &entry.initiator) {
            let at = position(entry.initiator_line, entry.initiator_column);
            named.urls.push((url.as_str().into(), at));
        }
        named.preload |= entry.is_link_preload;
        named
    }

    fn from_dev_tools(object: &DevToolsInitiator) -> Named<'_> {
        let is = |word: &str| object.kind.as_deref() == Some(word);
        let mut urls = Vec::new();
        if let Some(url) = &object.url {
            let at = position(object.line_number, object.column_number);
            urls.push((url.as_str().into(), at));
        } else {
            let mut stack = object.stack.as_ref();
            while let Some(level) = stack {
                add_frames(&mut urls, level);
                stack = level.parent.as_deref();
            }
        }
        Named { urls, by_script: is("script"), preload: is("preload") }
    }

    fn into_owned<'b>(self) -> Named<'b> {
        let urls = self.urls.into_iter().map(|(url, at)| (url.into_owned().into(), at)).collect();
        Named { urls, by_script: self.by_script, preload: self.preload }
    }
}

fn add_frames<'a>(urls: &mut Vec<(Cow<'a, str>, Option<Position>)>, level: &'a Stack) {
    for frame in &level.call_frames {
        let Some(url) = frame.url.as_deref() else { continue };
        // Stacks name few scripts, each many times.
        if urls.len() < 64 && urls.iter().all(|(known, _)| known != url) {
            urls.push((url.into(), position(frame.line_number, frame.column_number)));
        }
    }
}

fn position(line: Option<f64>, column: Option<f64>) -> Option<Position> {
    let line = line.filter(|&line| line >= 0.0)?;
    Some(Position { line, column: column.unwrap_or(0.0).max(0.0) })
}

/// The requests of each URL, in order of start.
pub(super) struct ByUrl<'a>(BTreeMap<&'a str, Vec<usize>>);

impl<'a> ByUrl<'a> {
    pub(super) fn new(drafts: &[Draft<'a>]) -> ByUrl<'a> {
        let mut requests: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, draft) in drafts.iter().enumerate() {
            requests.entry(draft.url).or_default().push(index);
        }
        ByUrl(requests)
    }

    fn of(&self, url: &str) -> &[usize] {
        self.0.get(url).map_or(&[], Vec::as_slice)
    }
}

/// Links each redirect to the request that follows it. A hop of unknown type gets its target's.
pub(super) fn link_redirects(drafts: &mut [Draft<'_>], by_url: &ByUrl<'_>) {
    for hop in 0..drafts.len() {
        if !is_redirect(drafts[hop].entry) {
            continue;
        }
        let Some(to) = drafts[hop].entry.response.redirect_url.as_deref() else { continue };
        let to = absolute(drafts[hop].url, to);
        let free = |&&next: &&usize| {
            next != hop && drafts[next].start >= drafts[hop].start && drafts[next].parent.is_none()
        };
        let same_request = |&&next: &&usize| {
            let id = drafts[next].entry.request_id.as_deref();
            id.is_some() && id == drafts[hop].entry.request_id.as_deref()
        };
        let targets = by_url.of(&to);
        let next = targets
            .iter()
            .filter(free)
            .find(same_request)
            .or_else(|| targets.iter().find(free))
            .copied()
            .filter(|&next| !is_ancestor(drafts, next, hop));
        if let Some(next) = next {
            drafts[next].parent = Some(hop);
            drafts[next].edge = Edge::Redirect;
        }
    }
}

/// The target of a redirect, made absolute; dots in the path are left as they are.
fn absolute(from: &str, to: &str) -> String {
    let to = to.split('#').next().unwrap_or_default();
    if to.contains("://") {
        return to.to_owned();
    }
    let (scheme, rest) = from.split_once("://").unwrap_or(("https", from));
    if to.starts_with("//") {
        return format!("{scheme}:{to}");
    }
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if to.starts_with('/') {
        return format!("{scheme}://{host}{to}");
    }
    let path = rest.split('?').next().unwrap_or_default();
    let folder = path.rfind('/').map_or(path, |end| &path[..end]);
    format!("{scheme}://{folder}/{to}")
}

/// True if `ancestor` is `of` or one of its ancestors.
pub(super) fn is_ancestor(drafts: &[Draft<'_>], ancestor: usize, of: usize) -> bool {
    let mut at = Some(of);
    while let Some(index) = at {
        // Edges never point to a later start, so that no ancestor lies beyond this.
        if index == ancestor {
            return true;
        }
        if drafts[index].start < drafts[ancestor].start {
            return false;
        }
        at = drafts[index].parent;
    }
    false
}

/// What came of looking for a named initiator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// The recording names nobody.
    NotNamed,
    /// It names somebody who made no request.
    Unknown,
    /// It names a request that would close a cycle.
    Cycle,
    /// This one.
    Parent(usize, Option<Position>),
}

/// The request that asked for `child`.
pub(super) fn find_initiator(drafts: &[Draft<'_>], by_url: &ByUrl<'_>, child: usize) -> Found {
    let named = &drafts[child].named;
    if named.urls.is_empty() {
        return Found::NotNamed;
    }
    let mut cycle = false;
    let mut fits = |parent: usize| {
        if parent == child || drafts[parent].start > drafts[child].start {
            return false;
        }
        let closes = is_ancestor(drafts, child, parent);
        cycle |= closes;
        !closes
    };
    let mut best: Option<(usize, Option<Position>)> = None;
    for (url, at) in &named.urls {
        if let [parent] = by_url.of(url)
            && fits(*parent)
            && best.is_none_or(|(other, _)| drafts[*parent].end > drafts[other].end)
        {
            best = Some((*parent, *at));
        }
    }
    if best.is_none() {
        let (url, at) = &named.urls[0];
        best = by_url.of(url).iter().rev().copied().find(|&parent| fits(parent)).map(|p| (p, *at));
    }
    match best {
        Some((parent, at)) => Found::Parent(parent, at),
        None if cycle => Found::Cycle,
        None => Found::Unknown,
    }
}

/// The first hop of the chain to the main document, and the main document: what the recording
/// calls the base page, else the earliest document; of several at one time, the one that most
/// others name. Without a document, the first request.
pub(super) fn main_document(drafts: &[Draft<'_>]) -> (usize, usize) {
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for (url, _) in drafts.iter().flat_map(|draft| &draft.named.urls) {
        *named.entry(url.as_ref()).or_default() += 1;
    }
    let base_page = drafts.iter().position(|draft| draft.entry.final_base_page);
    let first = (0..drafts.len())
        .filter(|&index| drafts[index].kind == ObjectKind::Document)
        .min_by_key(|&index| {
            let children = named.get(drafts[index].url).copied().unwrap_or(0);
            (drafts[index].start, usize::MAX - children, index)
        });
    let mut main = base_page.or(first).unwrap_or(0);
    let mut head = main;
    while let Some(hop) = drafts[head].parent {
        head = hop;
    }
    // The earliest document may itself be a redirect.
    while let Some(next) = (0..drafts.len()).find(|&next| drafts[next].parent == Some(main)) {
        main = next;
    }
    (head, main)
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn redirects_of_all_forms_become_absolute() {
        let from = "https://a.test/b/c?q=1";
        assert_eq!(absolute(from, "http://x.test/y#z"), "http://x.test/y");
        assert_eq!(absolute(from, "//x.test/y"), "https://x.test/y");
        assert_eq!(absolute(from, "/y"), "https://a.test/y");
        assert_eq!(absolute(from, "y"), "https://a.test/b/y");
    }
}
