//! Which style sheets and scripts rendering or parsing waits for.

use quipu_base::Bytes;

use super::select::Draft;
use super::{Blocking, ChromePriority, Discovery, ObjectKind, RecordedPriority};

/// What is known about an object's place in the page.
pub(super) struct Place {
    /// How it is discovered.
    pub(super) discovery: Discovery,
    /// The parent is the main document.
    pub(super) in_main_document: bool,
    /// Its parser comes to it after the document's first image.
    pub(super) late: bool,
    /// Asked for by a script or a preload: nothing waits for it.
    pub(super) indirect: bool,
    /// Recorded priority.
    pub(super) priority: Option<RecordedPriority>,
}

/// Whether `draft` blocks, and whether that is a guess. Chrome writes it down since 2022; else a
/// style sheet blocks rendering, and a script blocks the parser if Chrome gave it High or Medium
/// (`async` and `defer` get Low) or, without a priority, if it stands before the first image.
pub(super) fn blocking(draft: &Draft<'_>, place: &Place) -> (Blocking, bool) {
    let blocks = match draft.kind {
        ObjectKind::Stylesheet => Blocking::Render,
        ObjectKind::Script => Blocking::Parser,
        _ => return (Blocking::None, false),
    };
    let found_by_parser =
        place.in_main_document && matches!(place.discovery, Discovery::ParserOffset { .. });
    if let Some(word) = draft.entry.render_blocking.as_deref() {
        // WebPageTest writes underscores, Chrome does not.
        let word = word.replace('_', "").to_ascii_lowercase();
        let waits = matches!(word.as_str(), "blocking" | "inbodyparserblocking");
        let here = waits && place.in_main_document;
        return (if here { blocks } else { Blocking::None }, false);
    }
    if !found_by_parser || place.indirect {
        return (Blocking::None, false);
    }
    let waits = match (draft.kind, place.priority.map(|priority| priority.initial)) {
        (ObjectKind::Stylesheet, Some(priority)) => priority < ChromePriority::Low,
        (ObjectKind::Stylesheet, None) => true,
        (_, Some(priority)) => priority <= ChromePriority::Medium,
        (_, None) => !place.late,
    };
    (if waits { blocks } else { Blocking::None }, true)
}

/// Offset of the first image that the parser finds in each document; documents by position. An
/// image in front of all style sheets and scripts is the page's icon, and a preloaded one is not
/// where its `img` stands: neither counts.
pub(super) fn first_images(
    drafts: &[Draft<'_>],
    discoveries: impl Iterator<Item = Discovery>,
) -> Vec<Option<Bytes>> {
    let mut parsed: Vec<_> = drafts
        .iter()
        .zip(discoveries)
        .filter_map(|(draft, discovery)| match discovery {
            Discovery::ParserOffset { parent, offset } => Some((offset, parent.index(), draft)),
            _ => None,
        })
        .collect();
    parsed.sort_by_key(|&(offset, parent, _)| (parent, offset));
    let mut past_head = vec![false; drafts.len()];
    let mut first = vec![None; drafts.len()];
    for (offset, parent, draft) in parsed {
        match draft.kind {
            ObjectKind::Stylesheet | ObjectKind::Script => past_head[parent] = true,
            ObjectKind::Image if past_head[parent] && !draft.named.preload => {
                first[parent].get_or_insert(offset);
            }
            _ => {}
        }
    }
    first
}
