//! What a scheme looks at.

use serde::Deserialize;

use crate::page::{ChromePriority, Discovery, ObjectId, ObjectKind, Page, SniffedClass};

/// What is known of a request when its priority is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFacts {
    /// Type of the object.
    pub kind: ObjectKind,
    /// Type that the framework paper's client would detect.
    pub sniffed: SniffedClass,
    /// It is the main document, or a redirect on the way to it.
    pub main: bool,
    /// Rendering or parsing waits for it.
    pub blocking: bool,
    /// The parser comes to it after the first image of its document.
    pub late: bool,
    /// Asked for by `rel=preload`.
    pub preload: bool,
    /// An image in view, as layout has shown.
    pub visible: bool,
    /// One of the first images of the page that are not small: likely to be in view.
    pub prominent: bool,
    /// The `fetchpriority` that the document states; no recording does.
    pub fetch_priority: Option<FetchPriority>,
    /// The server sends it unasked.
    pub pushed: bool,
    /// Chrome's priority in the recording, when the request was sent.
    pub recorded: Option<ChromePriority>,
}

/// The `fetchpriority` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchPriority {
    /// More urgent than the browser would think.
    High,
    /// Less urgent.
    Low,
}

/// A fact that a rule can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fact {
    Blocking,
    FetchHigh,
    FetchLow,
    Late,
    Main,
    Preload,
    Prominent,
    Pushed,
    Visible,
}

impl RequestFacts {
    /// Facts of a request of which nothing but the type is known.
    pub fn of_kind(kind: ObjectKind) -> RequestFacts {
        RequestFacts {
            kind,
            sniffed: SniffedClass::of_kind(kind),
            main: kind == ObjectKind::Document,
            blocking: false,
            late: false,
            preload: false,
            visible: false,
            prominent: false,
            fetch_priority: None,
            pushed: false,
            recorded: None,
        }
    }

    /// Facts of the request for an object of a page, as far as they are known before layout and without
    /// a [`Viewport`](crate::layout::Viewport); `None` if the page has no such object.
    pub fn of(page: &Page, object: ObjectId) -> Option<RequestFacts> {
        let described = page.object(object)?;
        Some(RequestFacts {
            kind: described.kind,
            sniffed: described.sniffed,
            main: leads_to_main(page, object),
            blocking: described.blocking.is_critical(),
            late: described.late,
            preload: described.preload,
            visible: false,
            prominent: false,
            fetch_priority: None,
            pushed: false,
            recorded: described.priority.map(|priority| priority.initial),
        })
    }

    pub(super) fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Blocking => self.blocking,
            Fact::FetchHigh => self.fetch_priority == Some(FetchPriority::High),
            Fact::FetchLow => self.fetch_priority == Some(FetchPriority::Low),
            Fact::Late => self.late,
            Fact::Main => self.main,
            Fact::Preload => self.preload,
            Fact::Prominent => self.prominent,
            Fact::Pushed => self.pushed,
            Fact::Visible => self.visible,
        }
    }
}

/// True for the main document and the redirects in front of it.
fn leads_to_main(page: &Page, object: ObjectId) -> bool {
    let mut hop = page.main_document();
    while hop != object {
        match page.object(hop).map(|hop| hop.discovery) {
            Some(Discovery::AfterCompletion { parent }) => hop = parent,
            _ => return false,
        }
    }
    true
}
