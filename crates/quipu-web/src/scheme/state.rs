//! A scheme during one connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::StreamId;

use super::chain::Chain;
use super::profile::{Choice, Profile};
use super::{RequestFacts, TreeShape};

/// A node of the dependency tree that is made at the start of a connection and never carries a
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhantomNode {
    /// Its HTTP/2 stream identifier: odd, so that it is never a request's.
    pub id: StreamId,
    /// Stream that it depends on; stream 0 is the root.
    pub parent: StreamId,
    /// Effective weight, 1 to 256: the octet on the wire is one less.
    pub weight: u16,
}

/// The priority of a request, in HTTP/2 and in HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// HTTP/2: stream that it depends on; stream 0 is the root.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>
    pub parent: StreamId,
    /// HTTP/2: effective weight, 1 to 256: the octet on the wire is one less.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.2>
    pub weight: u16,
    /// HTTP/2: whether it takes over its parent's children.
    pub exclusive: bool,
    /// HTTP/3: urgency, 0 (most) to 7. <https://www.rfc-editor.org/rfc/rfc9218#section-4.1>
    pub urgency: u8,
    /// HTTP/3: incremental. <https://www.rfc-editor.org/rfc/rfc9218#section-4.2>
    pub incremental: bool,
}

/// A place in the dependency tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The stream it depends on; stream 0 is the root.
    pub parent: StreamId,
    /// Effective weight, 1 to 256.
    pub weight: u16,
    /// Whether it takes over its parent's children.
    pub exclusive: bool,
}

impl From<Signal> for Dependency {
    fn from(signal: Signal) -> Self {
        let Signal { parent, weight, exclusive, .. } = signal;
        Dependency { parent, weight, exclusive }
    }
}

/// Another priority for a request under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// HTTP/2: the places to tell, in order; of other streams too.
    pub places: Vec<(StreamId, Dependency)>,
    /// HTTP/3: the request's urgency and incremental flag, if they changed.
    pub urgency: Option<(u8, bool)>,
}

/// What a scheme remembers of one connection.
///
/// Send the [`SchemeState::initial_phantoms`] first, ask [`SchemeState::priority_for`] for each
/// request in the order of sending, [`SchemeState::reprioritise`] when more is known of one, and tell
/// [`SchemeState::on_closed`] when a stream is closed.
#[derive(Debug, Clone)]
pub struct SchemeState {
    profile: Arc<Profile>,
    chain: Chain,
    /// What open streams have.
    choices: BTreeMap<StreamId, Choice>,
}

impl SchemeState {
    pub(super) fn new(profile: Arc<Profile>) -> SchemeState {
        SchemeState { profile, chain: Chain::default(), choices: BTreeMap::new() }
    }

    /// The nodes to make at the start of a connection, parents first.
    pub fn initial_phantoms(&self) -> Vec<PhantomNode> {
        let node = |phantom: &super::profile::Phantom| PhantomNode {
            id: StreamId(phantom.stream),
            parent: StreamId(self.profile.stream_of(phantom.parent.as_deref())),
            weight: phantom.weight,
        };
        self.profile.phantoms.iter().map(node).collect()
    }

    /// The priority of the request with these facts, which gets `stream`. The stream counts as
    /// open from here on.
    pub fn priority_for(&mut self, facts: &RequestFacts, stream: StreamId) -> Signal {
        let choice = self.profile.choose(facts);
        self.choices.insert(stream, choice);
        let (parent, exclusive) = match self.profile.tree {
            TreeShape::Weighted => (StreamId(choice.parent), false),
            TreeShape::ExclusiveChain => {
                let newest = self.chain.open(stream, choice.weight);
                (newest.unwrap_or(StreamId(choice.parent)), true)
            }
        };
        Signal {
            parent,
            weight: choice.weight,
            exclusive,
            urgency: choice.urgency,
            incremental: choice.incremental,
        }
    }

    /// More is known of the request on `stream`. `None` if that changes nothing, or the stream is not
    /// open.
    pub fn reprioritise(&mut self, facts: &RequestFacts, stream: StreamId) -> Option<Change> {
        let choice = self.profile.choose(facts);
        let before = self.choices.get_mut(&stream)?;
        let before = std::mem::replace(before, choice);
        if before == choice {
            return None;
        }
        let places = match self.profile.tree {
            TreeShape::Weighted
                if (before.parent, before.weight) == (choice.parent, choice.weight) =>
            {
                Vec::new()
            }
            TreeShape::Weighted => {
                let parent = StreamId(choice.parent);
                vec![(stream, Dependency { parent, weight: choice.weight, exclusive: false })]
            }
            TreeShape::ExclusiveChain => {
                let moved = self.chain.reprioritise(stream, choice.weight);
                let place = |(stream, parent, weight): (_, Option<StreamId>, _)| {
                    let parent = parent.unwrap_or(StreamId(choice.parent));
                    (stream, Dependency { parent, weight, exclusive: true })
                };
                moved.into_iter().map(place).collect()
            }
        };
        let urgency = (choice.urgency, choice.incremental);
        let changed = urgency != (before.urgency, before.incremental);
        Some(Change { places, urgency: changed.then_some(urgency) })
    }

    /// `stream` is closed: no later request depends on it.
    pub fn on_closed(&mut self, stream: StreamId) {
        self.chain.close(stream);
        self.choices.remove(&stream);
    }
}
