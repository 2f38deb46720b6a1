//! Names in the dependency tree: which nodes exist, under the rules of RFC 7540 for unknown, idle and
//! closed streams. The surgery on the tree is the work of its container,
//! [`Priorities`](quipu_policy::Priorities).
//! <https://www.rfc-editor.org/rfc/rfc7540#section-5.3>

use std::collections::{BTreeMap, VecDeque};

use quipu_base::{Instant, StreamId};
use quipu_policy::{NodeId, PriorityEdit};
use thiserror::Error;

use super::frame::StreamPriority;
use super::{FrameStreamId, Numbering};

/// Nodes of idle streams that are kept. Browsers create up to six; the cap is our choice.
pub(super) const MAX_IDLE: usize = 64;
/// Nodes of closed streams that are kept; our choice.
pub(super) const MAX_CLOSED: usize = 256;

/// Where an edit of the tree goes.
type Edit<'a> = &'a mut dyn FnMut(PriorityEdit);

/// The nodes that exist, by the names that frames use.
#[derive(Debug, Default)]
pub(super) struct TreeNames {
    numbering: Numbering,
    nodes: BTreeMap<FrameStreamId, Node>,
    /// Closed streams and when their nodes go, in order.
    closed: VecDeque<(Instant, FrameStreamId)>,
    /// The last request that was opened.
    last_request: FrameStreamId,
    /// The last response that was promised.
    last_promised: FrameStreamId,
    /// The idle streams, those first that were not named for longest.
    idle: BTreeMap<u64, FrameStreamId>,
    /// Those of them under which no node was placed.
    leaves: BTreeMap<u64, FrameStreamId>,
    /// Grows with each mention of a node.
    clock: u64,
}

#[derive(Debug)]
struct Node {
    state: State,
    /// The parent that was last named for it.
    parent: FrameStreamId,
    /// How many nodes were last placed under it.
    children: usize,
    /// The clock when it was last named.
    mentioned: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Live,
    Closed,
}

/// A stream that depends on itself.
/// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>: a stream error of type PROTOCOL_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("stream {0} depends on itself")]
pub(super) struct SelfDependency(pub(super) FrameStreamId);

impl TreeNames {
    /// No nodes. `numbering` says which numbers may still become requests.
    pub(super) fn new(numbering: Numbering) -> Self {
        TreeNames { numbering, ..TreeNames::default() }
    }

    /// Number of requests and promised responses that are open, or whose data is not all delivered.
    pub(super) fn live(&self) -> usize {
        self.nodes.len() - self.idle.len() - self.closed.len()
    }

    /// Whether the request was opened, or the response promised, and not all of its data delivered.
    pub(super) fn is_live(&self, id: FrameStreamId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.state == State::Live)
    }

    /// The last request that was opened; zero before the first.
    pub(super) fn last_request(&self) -> FrameStreamId {
        self.last_request
    }

    /// The last response that was promised; zero before the first.
    pub(super) fn last_promised(&self) -> FrameStreamId {
        self.last_promised
    }

    /// This end promises a response on `stream` to the request `parent`. Without a PRIORITY frame for it
    /// before, it depends on that request.
    pub(super) fn promise(
        &mut self,
        id: FrameStreamId,
        stream: StreamId,
        parent: FrameStreamId,
        edit: Edit<'_>,
    ) {
        self.last_promised = self.last_promised.max(id);
        match self.nodes.get_mut(&id) {
            Some(node) => {
                if node.state == State::Idle {
                    node.state = State::Live;
                    let mentioned = node.mentioned;
                    self.forget_idle(mentioned);
                }
            }
            // https://www.rfc-editor.org/rfc/rfc7540#section-5.3.5
            //# Pushed streams (Section 8.2) initially depend on their associated
            //# stream.  In both cases, streams are assigned a default weight of 16.
            None => {
                let priority = StreamPriority { parent, ..StreamPriority::default() };
                self.insert(id, State::Live, priority, id, edit);
            }
        }
        edit(PriorityEdit::Attach { node: node_id(id), stream });
    }

    /// Counts a request as opened that gets no node.
    pub(super) fn skip(&mut self, id: FrameStreamId, edit: Edit<'_>) {
        self.last_request = self.last_request.max(id);
        if self.nodes.get(&id).is_some_and(|node| node.state == State::Idle) {
            self.remove(id, edit);
        }
    }

    /// A request opens `stream`. Without a stated priority, that of an earlier PRIORITY frame holds,
    /// else the default. After an error the stream is as if [skipped](TreeNames::skip).
    pub(super) fn open(
        &mut self,
        id: FrameStreamId,
        stream: StreamId,
        priority: Option<StreamPriority>,
        edit: Edit<'_>,
    ) -> Result<(), SelfDependency> {
        if priority.is_some_and(|priority| priority.parent == id) {
            self.skip(id, edit);
            return Err(SelfDependency(id));
        }
        self.last_request = self.last_request.max(id);
        if let Some(node) = self.nodes.get_mut(&id) {
            if node.state == State::Idle {
                node.state = State::Live;
                let mentioned = node.mentioned;
                self.forget_idle(mentioned);
            }
            if let Some(priority) = priority {
                self.place(id, priority, edit);
            }
        } else {
            self.insert(id, State::Live, priority.unwrap_or_default(), id, edit);
        }
        edit(PriorityEdit::Attach { node: node_id(id), stream });
        Ok(())
    }

    /// A PRIORITY frame for `id`. For a stream that is closed and forgotten, nothing happens.
    pub(super) fn reprioritise(
        &mut self,
        id: FrameStreamId,
        priority: StreamPriority,
        edit: Edit<'_>,
    ) -> Result<(), SelfDependency> {
        if priority.parent == id {
            return Err(SelfDependency(id));
        }
        if self.nodes.contains_key(&id) {
            self.place(id, priority, edit);
        } else if self.may_open(id) {
            self.insert(id, State::Idle, priority, id, edit);
        }
        Ok(())
    }

    /// All data of a request's stream was delivered, or will never be. Its node stays until `expires`.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.4>
    pub(super) fn close(&mut self, id: FrameStreamId, expires: Instant, edit: Edit<'_>) {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.state == State::Live) else {
            return;
        };
        node.state = State::Closed;
        // In order, though the round-trip time that `expires` comes from may shrink.
        let expires = self.closed.back().map_or(expires, |&(last, _)| last.max(expires));
        self.closed.push_back((expires, id));
        if self.closed.len() > MAX_CLOSED {
            self.remove_first_closed(edit);
        }
    }

    /// When the next closed stream's node goes.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.closed.front().map(|&(expires, _)| expires)
    }

    /// Removes the nodes of closed streams that are due.
    pub(super) fn expire(&mut self, now: Instant, edit: Edit<'_>) {
        while self.next_expiry().is_some_and(|expires| expires <= now) {
            self.remove_first_closed(edit);
        }
    }

    fn remove_first_closed(&mut self, edit: Edit<'_>) {
        if let Some((_, id)) = self.closed.pop_front() {
            self.remove(id, edit);
        }
    }

    /// Whether a request or a promise may still open `id`, or it never names a stream at all.
    fn may_open(&self, id: FrameStreamId) -> bool {
        if id.pushed(self.numbering).is_some() {
            return id > self.last_promised;
        }
        id.request(self.numbering).is_none() || id > self.last_request
    }

    /// Inserts a node, an idle one only if there is room without removing `keep` or its parent. Tells
    /// whether it was inserted.
    fn insert(
        &mut self,
        id: FrameStreamId,
        state: State,
        priority: StreamPriority,
        keep: FrameStreamId,
        edit: Edit<'_>,
    ) -> bool {
        let priority = self.resolve(id, priority, edit);
        if state == State::Idle && !self.make_room([keep, priority.parent], edit) {
            return false;
        }
        self.clock += 1;
        let node = Node { state, parent: priority.parent, children: 0, mentioned: self.clock };
        self.nodes.insert(id, node);
        self.count_child(priority.parent, true);
        if state == State::Idle {
            self.idle.insert(self.clock, id);
            self.leaves.insert(self.clock, id);
        }
        edit(PriorityEdit::Insert {
            node: node_id(id),
            parent: node_id(priority.parent),
            weight: priority.weight,
            exclusive: priority.exclusive,
        });
        true
    }

    fn place(&mut self, id: FrameStreamId, priority: StreamPriority, edit: Edit<'_>) {
        let priority = self.resolve(id, priority, edit);
        let before = self
            .nodes
            .get_mut(&id)
            .map(|node| std::mem::replace(&mut node.parent, priority.parent));
        if let Some(before) = before {
            self.count_child(before, false);
            self.count_child(priority.parent, true);
        }
        self.mention(id);
        edit(PriorityEdit::Move {
            node: node_id(id),
            parent: node_id(priority.parent),
            weight: priority.weight,
            exclusive: priority.exclusive,
        });
    }

    /// The place that `priority` means for `id`: an unknown idle parent gets a node with default
    /// priority, as browsers rely on; a forgotten closed one leaves the default place.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>
    //# A dependency on a stream that is not currently in the tree -- such as
    //# a stream in the "idle" state -- results in that stream being given a
    //# default priority (Section 5.3.5).
    fn resolve(
        &mut self,
        id: FrameStreamId,
        priority: StreamPriority,
        edit: Edit<'_>,
    ) -> StreamPriority {
        let parent = priority.parent;
        if parent.is_zero() {
            return priority;
        }
        if self.mention(parent) {
            return priority;
        }
        let default = StreamPriority::default();
        if self.may_open(parent) && self.insert(parent, State::Idle, default, id, edit) {
            priority
        } else {
            default
        }
    }

    /// A node was named; false if it is not there.
    fn mention(&mut self, id: FrameStreamId) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        self.clock += 1;
        let before = std::mem::replace(&mut node.mentioned, self.clock);
        if node.state == State::Idle {
            self.idle.remove(&before);
            self.idle.insert(self.clock, id);
            if self.leaves.remove(&before).is_some() {
                self.leaves.insert(self.clock, id);
            }
        }
        true
    }

    /// A node was placed under `parent`, or is there no more.
    fn count_child(&mut self, parent: FrameStreamId, more: bool) {
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.children = if more { node.children + 1 } else { node.children.saturating_sub(1) };
            if node.state == State::Idle && node.children == 0 {
                self.leaves.insert(node.mentioned, parent);
            } else if node.state == State::Idle {
                self.leaves.remove(&node.mentioned);
            }
        }
    }

    /// Makes room for one more idle node, at the cost of the one that was not named for longest, but
    /// not of those in `keep` nor of one that others were placed under. False if there is none.
    fn make_room(&mut self, keep: [FrameStreamId; 2], edit: Edit<'_>) -> bool {
        if self.idle.len() < MAX_IDLE {
            return true;
        }
        let oldest = self.leaves.values().copied().find(|id| !keep.contains(id));
        match oldest {
            Some(id) => {
                self.remove(id, edit);
                true
            }
            None => false,
        }
    }

    /// A node that was last named then is not idle any more.
    fn forget_idle(&mut self, mentioned: u64) {
        self.idle.remove(&mentioned);
        self.leaves.remove(&mentioned);
    }

    fn remove(&mut self, id: FrameStreamId, edit: Edit<'_>) {
        if let Some(node) = self.nodes.remove(&id) {
            if node.state == State::Idle {
                self.forget_idle(node.mentioned);
            }
            self.count_child(node.parent, false);
            edit(PriorityEdit::Remove { node: node_id(id) });
        }
    }
}

/// The container's name for a node: the number in the frames, or the root.
pub(super) fn node_id(id: FrameStreamId) -> NodeId {
    if id.is_zero() { NodeId::ROOT } else { NodeId(u64::from(id.value())) }
}

#[cfg(test)]
mod tests;
