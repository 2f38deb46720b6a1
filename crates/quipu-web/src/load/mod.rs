//! The load of one page: what to ask for, and when.
//!
//! A [`PageLoad`] holds no connection and no clock. The driver tells what arrives (`on_*`) and
//! that time has come ([`PageLoad::handle_timeout`]); after each of these it takes requests out of
//! [`PageLoad::poll_request`] until there are none, and then arms [`PageLoad::poll_timeout`].
//! Extra calls are harmless.
//!
//! What a server pushes may arrive before the page asks for it: nothing in it is looked at until then.
//!
//! Requests of one moment come in the order of their bytes in the parent, then of object ids. An event costs O(log n) for each object
//! that it discovers, whatever the size of the page.

mod children;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

use self::children::Children;
use crate::page::{Discovery, Object, ObjectId, Page};

/// Bytes of an object that only warms a connection up before a page: as in the framework paper.
pub const WARM_UP_BYTES: Bytes = Bytes(2_600);

/// When objects are discovered.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum DiscoveryMode {
    /// All at the start, as the client of the framework paper does; but those that are pushed with the head of
    /// the main document, when it is known what was promised.
    AllAtOnce,
    /// As the page says.
    #[default]
    Recorded,
}

/// One load of a page.
#[derive(Debug, Clone)]
pub struct PageLoad {
    page: Arc<Page>,
    /// Objects by parent; of [`DiscoveryMode::AllAtOnce`], those that are pushed.
    children: Children,
    progress: Vec<Progress>,
    ready: VecDeque<ObjectId>,
    /// Objects that the page asks for and of which something had come before.
    unread: Vec<ObjectId>,
    /// Objects whose gap is running.
    waiting: BinaryHeap<Reverse<(Instant, ObjectId)>>,
    /// Objects that are not complete.
    open: usize,
    /// Of these, the ones that the load waits for.
    open_held: usize,
    /// Of these, the ones that the first layout waits for.
    open_blocking: usize,
}

/// How far an object has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The page has asked the driver to request it; what comes of it is looked at.
    wanted: bool,
    /// The head of the response has arrived.
    head: bool,
    /// Body bytes that have arrived.
    received: Bytes,
    complete: bool,
    /// What waits for its end knows of it.
    told: bool,
    /// Children that the parser has come to.
    parsed: u32,
}

impl PageLoad {
    /// Starts to load `page` at `now`: the roots are ready at once.
    pub fn new(page: Arc<Page>, mode: DiscoveryMode, now: Instant) -> PageLoad {
        PageLoad::with_push(page, mode, &[], now)
    }

    /// The same with a server that promises the objects `pushed` with the main document. The load asks for
    /// them too when it comes to them; the driver does not request what was promised.
    pub fn with_push(
        page: Arc<Page>,
        mode: DiscoveryMode,
        pushed: &[ObjectId],
        now: Instant,
    ) -> PageLoad {
        let with_head =
            Discovery::ParserOffset { parent: page.main_document(), offset: Bytes::ZERO };
        let at_once = |object: &Object| match pushed.contains(&object.id) {
            true => with_head,
            false => Discovery::Root,
        };
        let children = match mode {
            DiscoveryMode::Recorded => Children::of(&page, None),
            DiscoveryMode::AllAtOnce => Children::of(&page, Some(&at_once)),
        };
        let objects = page.objects();
        let mut load = PageLoad {
            children,
            progress: vec![Progress::default(); objects.len()],
            ready: VecDeque::new(),
            unread: Vec::new(),
            waiting: BinaryHeap::new(),
            open: objects.len(),
            open_held: objects.iter().filter(|object| object.holds_load()).count(),
            open_blocking: objects.iter().filter(|object| blocks_layout(object)).count(),
            page: Arc::clone(&page),
        };
        for object in page.objects() {
            if load.children.is_root(object.id) {
                let gap = load.children.gap(object.id);
                load.ask_after(gap, object.id, now);
            }
        }
        load
    }

    /// The page.
    pub fn page(&self) -> &Arc<Page> {
        &self.page
    }

    /// The header of the response to `object` has arrived.
    pub fn on_response_head(&mut self, object: ObjectId, now: Instant) {
        let Some(progress) = self.progress.get_mut(object.index()) else { return };
        if !progress.head {
            progress.head = true;
            self.read(object, now);
        }
    }

    /// `total` bytes of the body of `object` have arrived, counted without gaps from its start.
    /// A total that does not grow is ignored.
    pub fn on_body_bytes(&mut self, object: ObjectId, total: Bytes, now: Instant) {
        let Some(progress) = self.progress.get_mut(object.index()) else { return };
        if total > progress.received {
            progress.received = total;
            progress.head = true;
            self.read(object, now);
        }
    }

    /// The response to `object` is complete. A second time is ignored.
    pub fn on_complete(&mut self, object: ObjectId, now: Instant) {
        let Some(progress) = self.progress.get_mut(object.index()) else { return };
        if progress.complete {
            return;
        }
        progress.complete = true;
        progress.head = true;
        // A response may be shorter than its recording: its parser still comes to the end.
        progress.received = Bytes::MAX;
        self.open -= 1;
        if let Some(described) = self.page.object(object) {
            self.open_held -= usize::from(described.holds_load());
            self.open_blocking -= usize::from(blocks_layout(described));
        }
        self.read(object, now);
    }

    /// The time has come that [`PageLoad::poll_timeout`] told, or any other.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((due, object))) = self.waiting.peek()
            && due <= now
        {
            self.waiting.pop();
            self.want(object);
        }
        self.read_on(now);
    }

    /// The next object to request now; `None` if there is none before the next event.
    pub fn poll_request(&mut self) -> Option<ObjectId> {
        self.ready.pop_front()
    }

    /// When [`PageLoad::handle_timeout`] is to be called; `None` if no gap is running. Changes
    /// only by the calls that tell something.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((due, _))| *due)
    }

    /// True once every object that the load waits for is complete.
    pub fn is_finished(&self) -> bool {
        self.open_held == 0
    }

    /// True once the page is laid out for the first time, so that the browser knows what is in view: when
    /// the main document has begun to arrive, and the style sheets and scripts that block rendering or
    /// parsing before its first image are complete. Our choice; a browser may lay out parts before, and
    /// does it again as more comes, which moves things.
    pub fn is_laid_out(&self) -> bool {
        let main = self.progress.get(self.page.main_document().index());
        self.open_blocking == 0 && main.is_some_and(|main| main.head)
    }

    /// True once every object is complete.
    pub fn is_all_complete(&self) -> bool {
        self.open == 0
    }

    /// Objects that are not complete, discovered or not.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Something came of `object`.
    fn read(&mut self, object: ObjectId, now: Instant) {
        self.unread.push(object);
        self.read_on(now);
    }

    /// Discovers what follows from objects of which something came.
    fn read_on(&mut self, now: Instant) {
        while let Some(object) = self.unread.pop() {
            let Some(&progress) = self.progress.get(object.index()) else { continue };
            if !progress.wanted {
                continue;
            }
            self.parse(object, now);
            if progress.complete && !progress.told {
                if let Some(progress) = self.progress.get_mut(object.index()) {
                    progress.told = true;
                }
                for index in self.children.completed_range(object) {
                    let waiting = self.children.after_completion(index);
                    self.discover(waiting, now);
                }
            }
        }
    }

    /// The page asks for `object` now.
    fn want(&mut self, object: ObjectId) {
        self.ready.push_back(object);
        if let Some(progress) = self.progress.get_mut(object.index()) {
            progress.wanted = true;
            if progress.head {
                self.unread.push(object);
            }
        }
    }

    /// Discovers what the parser of `parent` has come to.
    fn parse(&mut self, parent: ObjectId, now: Instant) {
        let Some(progress) = self.progress.get(parent.index()).copied() else { return };
        let mut parsed = progress.parsed;
        while let Some((offset, child)) = self.children.parsed(parent, parsed)
            && offset <= progress.received
        {
            parsed += 1;
            self.discover(child, now);
        }
        if let Some(progress) = self.progress.get_mut(parent.index()) {
            progress.parsed = parsed;
        }
    }

    /// One of the things that `object` waits for has come.
    fn discover(&mut self, object: ObjectId, now: Instant) {
        if let Some(gap) = self.children.came(object) {
            self.ask_after(gap, object, now);
        }
    }

    fn ask_after(&mut self, gap: Duration, object: ObjectId, now: Instant) {
        if gap.is_zero() {
            self.want(object);
        } else {
            self.waiting.push(Reverse((now + gap, object)));
        }
    }
}

/// Whether layout waits for the object.
fn blocks_layout(object: &Object) -> bool {
    object.blocking.is_critical() && !object.late
}

#[cfg(test)]
mod tests;
