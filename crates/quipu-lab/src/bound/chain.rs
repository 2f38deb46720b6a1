//! What a page asks for and when, and how early each object can be there if all else waits for it.

use quipu_base::{Duration, Instant};
use quipu_web::load::DiscoveryMode;
use quipu_web::page::{Discovery, ObjectId, Page};

use super::way::Way;

/// Bytes of streams of the head of a request or a response, at least: a frame's header of nine and
/// one of HPACK. <https://www.rfc-editor.org/rfc/rfc9113#section-4.1>
const HEAD: u64 = 10;

/// An object to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) asked: Asked,
    /// Bytes of streams of its request, if it is one that must arrive before anything is sent.
    pub(super) request: Option<u64>,
    /// From the arrival of the request to the first byte sent, at least.
    pub(super) think: Duration,
    /// Bytes of the response's head.
    pub(super) head: u64,
    /// Bytes of its body.
    pub(super) body: u64,
    /// The page's time waits for it.
    pub(super) held: bool,
    /// So does the critical time.
    pub(super) critical: bool,
}

/// When an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// With the page.
    AtStart,
    /// When the head of another one has come and so many bytes of its body.
    On { parent: usize, bytes: u64 },
    /// Not at all: the server sends it when the request for another one has come.
    With { parent: usize },
    /// Some time after another one is complete.
    After { parent: usize, gap: Duration },
}

/// The objects of a page.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) items: Vec<Item>,
    /// All of them, parents first.
    pub(super) order: Vec<usize>,
}

/// How early each object can be sent, and be there, if the whole network is for it and for what leads
/// to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chains {
    pub(super) released: Vec<Instant>,
    pub(super) completed: Vec<Instant>,
}

impl Load {
    /// The objects, whose parents are no cycle.
    pub(super) fn new(items: Vec<Item>) -> Load {
        let mut order = Vec::with_capacity(items.len());
        let mut placed = vec![false; items.len()];
        let mut line = Vec::new();
        for index in 0..items.len() {
            // From the object up to a parent that has its place, and then back.
            let mut next = Some(index);
            while let Some(at) = next.filter(|at| !placed[*at]) {
                placed[at] = true;
                line.push(at);
                next = items[at].asked.parent().filter(|parent| *parent < items.len());
            }
            order.extend(line.drain(..).rev());
        }
        Load { items, order }
    }

    /// The objects of `page`, each with its request over HTTP but for those that are `pushed` with the main
    /// document.
    pub(super) fn of_page(page: &Page, mode: DiscoveryMode, pushed: &[ObjectId]) -> Load {
        let main = page.main_document();
        let mut is_pushed = vec![false; page.objects().len()];
        for object in pushed {
            is_pushed[object.index()] = true;
        }
        let item = |object: &quipu_web::page::Object| Item {
            asked: match (mode, object.discovery) {
                _ if is_pushed[object.id.index()] => Asked::With { parent: main.index() },
                (DiscoveryMode::AllAtOnce, _) | (_, Discovery::Root) => Asked::AtStart,
                (DiscoveryMode::Recorded, Discovery::ParserOffset { parent, offset }) => {
                    Asked::On { parent: parent.index(), bytes: offset.0 }
                }
                (DiscoveryMode::Recorded, Discovery::AfterCompletion { parent, gap }) => {
                    Asked::After { parent: parent.index(), gap }
                }
            },
            request: (!is_pushed[object.id.index()]).then_some(HEAD + object.request.body.0),
            think: object.think_time,
            head: HEAD,
            body: object.response_bytes.0,
            held: object.holds_load(),
            critical: object.holds_load() && (object.id == main || object.blocking.is_critical()),
        };
        Load::new(page.objects().iter().map(item).collect())
    }

    /// Bodies that one end writes to streams: the first at once, each other one `gap` later than the
    /// one before; `requested` by a byte of the other end, or not at all.
    pub(super) fn of_writes(page: &Page, requested: bool, gap: Duration) -> Load {
        let item = |(place, object): (u64, &quipu_web::page::Object)| Item {
            asked: Asked::AtStart,
            request: requested.then_some(1),
            think: gap.saturating_mul(place),
            head: 0,
            body: object.response_bytes.0,
            held: object.holds_load(),
            critical: object.holds_load()
                && (object.id == page.main_document() || object.blocking.is_critical()),
        };
        Load::new((0..).zip(page.objects()).map(item).collect())
    }

    /// The chains of a page asked for at `start`, whose requests go `up` and whose bodies go `down`.
    pub(super) fn chains(&self, up: &Way, down: &Way, start: Instant) -> Chains {
        let mut chains = Chains {
            released: vec![start; self.items.len()],
            completed: vec![start; self.items.len()],
        };
        let mut requested = vec![start; self.items.len()];
        // Neighbours mostly ask at the same instant.
        let mut last_request = None;
        for &index in &self.order {
            let item = &self.items[index];
            let asked_at = match item.asked {
                Asked::AtStart => start,
                Asked::With { parent } => requested[parent],
                Asked::On { parent, bytes } => {
                    let parent_item = &self.items[parent];
                    let bytes = parent_item.head + bytes.min(parent_item.body);
                    down.earliest(chains.released[parent], bytes)
                }
                Asked::After { parent, gap } => chains.completed[parent] + gap,
            };
            let released = match (item.request, last_request) {
                (None, _) => asked_at,
                (Some(bytes), Some((at, asked, arrived))) if (at, asked) == (asked_at, bytes) => {
                    arrived
                }
                (Some(bytes), _) => {
                    let arrived = up.earliest(asked_at, bytes);
                    last_request = Some((asked_at, bytes, arrived));
                    arrived
                }
            };
            requested[index] = released;
            chains.released[index] = released + item.think;
            chains.completed[index] = down.earliest(chains.released[index], item.head + item.body);
        }
        chains
    }
}

impl Asked {
    pub(super) fn parent(self) -> Option<usize> {
        match self {
            Asked::AtStart => None,
            Asked::On { parent, .. } | Asked::With { parent } | Asked::After { parent, .. } => {
                Some(parent)
            }
        }
    }
}
