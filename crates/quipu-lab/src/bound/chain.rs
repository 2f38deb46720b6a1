//! What a page asks for and when, and how early each object can be there if all else waits for it.

use quipu_base::{Duration, Instant};
use quipu_web::load::DiscoveryMode;
use quipu_web::page::{Discovery, ObjectId, Page};

use super::way::Way;

/// Bytes of streams of the head of a request or a response, at least: a frame's header of nine and
/// one of HPACK. <https://www.rfc-editor.org/rfc/rfc9113#section-4.1>
const HEAD: u64 = 10;

/// An object to be carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) asked: Asked,
    /// Others that must be complete before it is asked for.
    pub(super) waits_for: Vec<usize>,
    /// From the last of these, and of what it is asked for by, to its being asked for.
    pub(super) gap: Duration,
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
    /// When another one is complete.
    After { parent: usize },
}

/// The objects of a page.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) items: Vec<Item>,
    /// All of them, each behind what it waits for.
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
    /// The objects, of which none waits for itself.
    pub(super) fn new(items: Vec<Item>) -> Load {
        let mut order = Vec::with_capacity(items.len());
        let mut placed = vec![false; items.len()];
        let mut line = Vec::new();
        for index in 0..items.len() {
            // Down to what waits for nothing that has no place, and then back.
            line.push((index, false));
            while let Some((at, behind)) = line.pop() {
                if behind {
                    order.push(at);
                } else if !std::mem::replace(&mut placed[at], true) {
                    line.push((at, true));
                    let item: &Item = &items[at];
                    let needs =
                        item.asked.parent().into_iter().chain(item.waits_for.iter().copied());
                    line.extend(
                        needs.filter(|need| *need < placed.len()).map(|need| (need, false)),
                    );
                }
            }
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
                (DiscoveryMode::Recorded, Discovery::AfterCompletion { parent }) => {
                    Asked::After { parent: parent.index() }
                }
            },
            waits_for: match mode {
                DiscoveryMode::Recorded if !is_pushed[object.id.index()] => {
                    object.waits_for.iter().map(|need| need.index()).collect()
                }
                _ => Vec::new(),
            },
            gap: match mode {
                DiscoveryMode::Recorded if !is_pushed[object.id.index()] => object.gap.total(),
                _ => Duration::ZERO,
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
            waits_for: Vec::new(),
            gap: Duration::ZERO,
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
                Asked::After { parent } => chains.completed[parent],
            };
            let waited = item.waits_for.iter().map(|need| chains.completed[*need]);
            let asked_at = waited.fold(asked_at, Instant::max) + item.gap;
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
            Asked::On { parent, .. } | Asked::With { parent } | Asked::After { parent } => {
                Some(parent)
            }
        }
    }
}
