//! Priorities: the dependency tree, urgencies, deadlines and sizes that HTTP told.

use quipu_base::{Bytes, Duration, StreamId};
use thiserror::Error;

use crate::key::StreamKey;

mod container;
pub mod mapping;

pub use container::{NodeView, Priorities, TreeEdits};
pub use mapping::Urgency;

/// Weight of a stream that no node speaks for: the default of
/// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.5>.
pub const DEFAULT_WEIGHT: u16 = 16;

/// A node of the dependency tree as HTTP names it. Not a stream identifier: a browser's groups are
/// nodes too, and the root is [`NodeId::ROOT`], while stream 0 exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A node of the dependency tree by a dense slot, used again only after
/// [`TreeEdit::Removed`]. The root is [`NodeKey::ROOT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey(pub u32);

impl NodeId {
    /// The root of the tree.
    pub const ROOT: NodeId = NodeId(u64::MAX);
}

impl NodeKey {
    /// The root of the tree.
    pub const ROOT: NodeKey = NodeKey(0);

    /// The slot as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What was said of a stream's priority. Of node and urgency, where only one was said, the other is
/// [derived](mapping).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Its node of the dependency tree, if one was attached or derived.
    pub node: Option<NodeKey>,
    /// Urgency, 0 (most) to 7. <https://www.rfc-editor.org/rfc/rfc9218#section-4.1>
    pub urgency: u8,
    /// Incremental. <https://www.rfc-editor.org/rfc/rfc9218#section-4.2>
    pub incremental: bool,
    /// Latency that written data may have, for deadline policies.
    pub latency: Option<Duration>,
}

impl Default for Priority {
    fn default() -> Self {
        Priority { node: None, urgency: 3, incremental: false, latency: None }
    }
}

/// An edit of the priorities, as HTTP makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityEdit {
    /// A new node under `parent`; if exclusive, the parent's children become its children.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>
    Insert {
        /// The new node.
        node: NodeId,
        /// Its parent.
        parent: NodeId,
        /// 1 to 256.
        weight: u16,
        /// Whether it takes over the parent's children.
        exclusive: bool,
    },
    /// Another parent and weight for a node; under its own descendant, that is first moved to the
    /// node's old parent. <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.3>
    Move {
        /// The node.
        node: NodeId,
        /// Its new parent.
        parent: NodeId,
        /// 1 to 256.
        weight: u16,
        /// Whether it takes over the new parent's children.
        exclusive: bool,
    },
    /// Another weight for a node.
    Weight {
        /// The node.
        node: NodeId,
        /// 1 to 256.
        weight: u16,
    },
    /// A node leaves; its children go to its parent with shares of its weight.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.4>
    Remove {
        /// The node.
        node: NodeId,
    },
    /// A node speaks for a stream.
    Attach {
        /// The node.
        node: NodeId,
        /// The stream.
        stream: StreamId,
    },
    /// Urgency and incremental flag of a stream. <https://www.rfc-editor.org/rfc/rfc9218>
    Urgency {
        /// The stream.
        stream: StreamId,
        /// 0 (most urgent) to 7.
        urgency: u8,
        /// Whether parts of it are of use.
        incremental: bool,
    },
    /// Latency that data written to a stream may have.
    Deadline {
        /// The stream.
        stream: StreamId,
        /// From writing to arrival.
        latency: Duration,
    },
    /// Total size of what will be sent on a stream.
    Size {
        /// The stream.
        stream: StreamId,
        /// Bytes in all.
        size: Bytes,
    },
}

/// An elementary change of the dependency tree. An exclusive insertion is one `Inserted` and one
/// `Moved` for each child that it takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEdit {
    /// A new leaf.
    Inserted {
        /// The new node.
        node: NodeKey,
        /// Its parent.
        parent: NodeKey,
        /// 1 to 256.
        weight: u16,
    },
    /// A node, with all below it, went to another parent.
    Moved {
        /// The node.
        node: NodeKey,
        /// Its new parent.
        parent: NodeKey,
    },
    /// A node has another weight.
    Weighted {
        /// The node.
        node: NodeKey,
        /// 1 to 256.
        weight: u16,
    },
    /// A node without children left.
    Removed {
        /// The node.
        node: NodeKey,
    },
    /// A node speaks for a stream.
    Attached {
        /// The node.
        node: NodeKey,
        /// The stream.
        stream: StreamKey,
    },
}

/// Why an edit was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PriorityError {
    /// The node to insert exists already.
    #[error("node {0:?} exists already")]
    Exists(NodeId),
    /// The node, or the parent, does not exist.
    #[error("node {0:?} does not exist")]
    Unknown(NodeId),
    /// A node cannot depend on itself, and neither the root nor derived nodes can be edited.
    #[error("node {0:?} cannot be placed there")]
    Misplaced(NodeId),
    /// Weights are 1 to 256.
    #[error("weight {0} is not in 1..=256")]
    Weight(u16),
    /// More nodes than the container keeps.
    #[error("more than {0} nodes")]
    Full(usize),
}
