//! One object of a page.

use std::fmt;

use quipu_base::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::{Http2Priority, ObjectKind, RecordedPriority, SniffedClass};

/// Host of an object whose URL has none.
pub const PRIVATE_HOST: &str = "page.test";

/// Position of an object in its page, from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ObjectId(pub u32);

/// Something that a page load asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Position in the page.
    pub id: ObjectId,
    /// Absolute URL.
    pub url: String,
    /// Type.
    pub kind: ObjectKind,
    /// Type that the framework paper's client would detect.
    pub sniffed: SniffedClass,
    /// Encoded bytes of the response's body.
    pub response_bytes: Bytes,
    /// Bytes of the response's header, uncompressed or as recorded: an estimate.
    pub response_header_bytes: Bytes,
    /// Bytes of the request.
    pub request: RequestSize,
    /// How long the server thinks before the first byte of the response.
    pub think_time: Duration,
    /// How the browser learns that it needs the object.
    pub discovery: Discovery,
    /// Further objects that must be complete before it is asked for, such as style sheets that a
    /// script waits for.
    pub waits_for: Vec<ObjectId>,
    /// From the last of all that it waits for to its request.
    pub gap: Gap,
    /// Whether the recording says so, or we guess.
    pub evidence: Evidence,
    /// Why the page load does not wait for it; `None` if it does.
    pub not_held: Option<NotHeld>,
    /// Whether rendering or parsing waits for it.
    pub blocking: Blocking,
    /// The parser comes to it after the first image of its document.
    pub late: bool,
    /// Asked for by `rel=preload`.
    pub preload: bool,
    /// Seen to be in view after layout.
    pub visible: bool,
    /// Priority in the recording.
    pub priority: Option<RecordedPriority>,
    /// HTTP/2 priority in the recording.
    pub http2: Option<Http2Priority>,
    /// The recorded server pushed it. It is requested unless a run [pushes](crate::push::Push) it.
    pub pushed: bool,
}

/// Bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSize {
    /// Header, uncompressed: an estimate.
    pub header: Bytes,
    /// Body.
    pub body: Bytes,
}

/// Time that passes in the browser before a request, whatever the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// Parsing, executing, laying out: another device takes another time for it.
    pub computing: Duration,
    /// A timer of the page's scripts, which runs as long on every device.
    pub timer: Duration,
}

/// How the browser learns that it needs an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// At the start of the load.
    Root,
    /// When the parser has come to byte `offset` of its parent's body. At offset 0: with the head
    /// of the parent's response.
    ParserOffset {
        /// The HTML document that refers to it.
        parent: ObjectId,
        /// Bytes of the encoded body that must have arrived.
        offset: Bytes,
    },
    /// When its parent is complete.
    AfterCompletion {
        /// The style sheet, script or redirect that asks for it.
        parent: ObjectId,
    },
}

/// Where a statement comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// From types and times: it may be wrong.
    Inferred,
    /// From the recording's initiator, redirect or push.
    Recorded,
}

/// Why a page load does not wait for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotHeld {
    /// It started after the page's load event.
    AfterOnLoad,
    /// A beacon or ping.
    Beacon,
    /// A request by script that was open when the load event fired.
    LongPoll,
    /// Video or audio beyond the first segment.
    LaterSegment,
    /// Fetched ahead for another page.
    Prefetch,
    /// The icon of the page, which browsers request on their own.
    Icon,
}

/// What waits for an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blocking {
    /// Nothing.
    #[default]
    None,
    /// The parser: a script without `async` or `defer`.
    Parser,
    /// The first rendering: a style sheet in the head.
    Render,
}

impl ObjectId {
    /// The position as an index.
    pub const fn index(self) -> usize {
        // At least 32 bits on every supported platform.
        self.0 as usize
    }
}

impl Object {
    /// An object of `bytes` that is asked for at once, with no think time; everything else at its
    /// default: small headers, no priority recorded, the load waits for it.
    pub fn new(id: ObjectId, url: impl Into<String>, kind: ObjectKind, bytes: Bytes) -> Object {
        Object {
            id,
            url: url.into(),
            kind,
            sniffed: SniffedClass::of_kind(kind),
            response_bytes: bytes,
            response_header_bytes: super::size::DEFAULT_RESPONSE_HEADER,
            request: RequestSize { header: super::size::DEFAULT_REQUEST_HEADER, body: Bytes::ZERO },
            think_time: Duration::ZERO,
            discovery: Discovery::Root,
            waits_for: Vec::new(),
            gap: Gap::default(),
            evidence: Evidence::Recorded,
            not_held: None,
            blocking: Blocking::None,
            late: false,
            preload: false,
            visible: false,
            priority: None,
            http2: None,
            pushed: false,
        }
    }

    /// The same object with another discovery.
    #[must_use]
    pub fn discovered(mut self, discovery: Discovery) -> Object {
        self.discovery = discovery;
        self
    }

    /// The same object asked for only so much computing after all that it waits for.
    #[must_use]
    pub fn computed(mut self, computing: Duration) -> Object {
        self.gap.computing = computing;
        self
    }

    /// The object through which it is discovered, and then the others that it waits for.
    pub fn needs(&self) -> impl Iterator<Item = ObjectId> {
        self.discovery.parent().into_iter().chain(self.waits_for.iter().copied())
    }

    /// True if the page load waits for it.
    pub fn holds_load(&self) -> bool {
        self.not_held.is_none()
    }

    /// Host of the URL with its port, or [`PRIVATE_HOST`].
    pub fn host(&self) -> &str {
        host_of(&self.url)
    }

    /// Path and query of the URL, beginning with `/`.
    pub fn path(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        match rest.find('/') {
            Some(start) => &rest[start..],
            None => "/",
        }
    }
}

/// Host of `url` with its port, or [`PRIVATE_HOST`].
pub(super) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() { PRIVATE_HOST } else { host }
}

impl Discovery {
    /// The object through which this one is discovered; `None` for a root.
    pub fn parent(self) -> Option<ObjectId> {
        match self {
            Discovery::Root => None,
            Discovery::ParserOffset { parent, .. } | Discovery::AfterCompletion { parent } => {
                Some(parent)
            }
        }
    }
}

impl Gap {
    /// Both together.
    pub fn total(self) -> Duration {
        self.computing + self.timer
    }
}

impl RequestSize {
    /// Header and body together.
    pub fn total(self) -> Bytes {
        self.header + self.body
    }
}

impl Blocking {
    /// True if rendering or parsing waits.
    pub fn is_critical(self) -> bool {
        self != Blocking::None
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NotHeld::AfterOnLoad => "started after the load event",
            NotHeld::Beacon => "beacon",
            NotHeld::LongPoll => "still open at the load event",
            NotHeld::LaterSegment => "media beyond the first segment",
            NotHeld::Prefetch => "prefetch",
            NotHeld::Icon => "icon of the page",
        })
    }
}
