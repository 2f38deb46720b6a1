//! HTTP/2 over QUIC, whose server knows the browser's dependency tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_base::StreamId;
use quipu_tokio::http3::{FrameStreamId, Http3Client, Http3Error, StreamPriority};
use quipu_web::scheme::{BrowserScheme, Dependency};

/// A client of HTTP/2 that tells each request's place in the tree. Clones are the same one.
///
/// The tree names requests by their streams, which are numbered in the order of requests: nobody else may send any over
/// the connection.
#[derive(Clone)]
pub struct Http2Tree {
    pub(crate) client: Http3Client,
    nodes: Nodes,
}

impl Http2Tree {
    /// With the groups that `browser` has in its tree from the start. `client` has sent no request yet, and was
    /// [made](Http3Client::http2) for a tree.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn new(client: Http3Client, browser: &BrowserScheme) -> Result<Http2Tree, Http3Error> {
        let tree = Http2Tree { client, nodes: Nodes::default() };
        for group in browser.session().initial_phantoms() {
            let (parent, weight) = (group.parent, group.weight);
            tree.place(group.id, Dependency { parent, weight, exclusive: false })?;
        }
        Ok(tree)
    }

    /// Tells the server the place of a node.
    pub(crate) fn place(&self, node: StreamId, place: Dependency) -> Result<(), Http3Error> {
        self.client.place(node, priority(place))
    }

    /// What requests are called in the tree.
    pub(crate) fn nodes(&self) -> Nodes {
        self.nodes.clone()
    }
}

/// What the requests of a connection are called in a browser's scheme. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Nodes(Arc<AtomicU64>);

impl Nodes {
    /// That of the next request: its stream over HTTP/2, where 0 is the root and carries no request.
    pub(crate) fn next(&self) -> StreamId {
        StreamId(4 * (self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// As HTTP/2 has it.
pub(crate) fn priority(place: Dependency) -> StreamPriority {
    StreamPriority {
        parent: FrameStreamId::try_from(place.parent).unwrap_or_default(),
        weight: place.weight,
        exclusive: place.exclusive,
    }
}
