//! A scheme during one connection.

use std::sync::Arc;

use quipu_base::StreamId;

use super::chain::Chain;
use super::profile::Profile;
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

/// What a scheme remembers of one connection.
///
/// Send the [`SchemeState::initial_phantoms`] first, ask [`SchemeState::priority_for`] for each
/// request in the order of sending, and tell [`SchemeState::on_closed`] when a stream is closed.
#[derive(Debug, Clone)]
pub struct SchemeState {
    profile: Arc<Profile>,
    chain: Chain,
}

impl SchemeState {
    pub(super) fn new(profile: Arc<Profile>) -> SchemeState {
        SchemeState { profile, chain: Chain::default() }
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

    /// `stream` is closed: no later request depends on it.
    pub fn on_closed(&mut self, stream: StreamId) {
        self.chain.close(stream);
    }
}
