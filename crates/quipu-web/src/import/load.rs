//! Page loads in the terms that all kinds of recordings share.

use crate::phases::Phases;

/// The loads of a file, in order.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The kind of the file, as the creator of the HAR file.
    pub(super) creator: &'static str,
    /// The browser with its version, if the file tells it.
    pub(super) browser: Option<(String, String)>,
    /// Unix time at which the file's clock was at zero, in ms.
    pub(super) clock: f64,
    pub(super) loads: Vec<Load>,
    /// Requests that the browser made for itself: updates, safe browsing, extensions.
    pub(super) of_browser: usize,
    /// Requests of pages whose load is not in the file.
    pub(super) of_others: usize,
}

/// One load of a page. Times are ms of the file's clock.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// The address that was loaded.
    pub(super) url: String,
    pub(super) start: f64,
    pub(super) content_load: Option<f64>,
    pub(super) on_load: Option<f64>,
    pub(super) requests: Vec<Request>,
}

/// One request; each hop of a redirect is one. `None` is unknown. Times are ms of the file's clock, sizes bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// The same for the hops of a redirect.
    pub(super) id: String,
    pub(super) method: String,
    pub(super) url: String,
    /// 0 without a response.
    pub(super) status: u16,
    /// Why it failed.
    pub(super) error: Option<String>,
    /// Target of a redirect.
    pub(super) redirect: Option<String>,
    pub(super) mime: Option<String>,
    /// Such as `http/1.1`, `h2`.
    pub(super) protocol: Option<String>,
    /// Chrome's word for the type.
    pub(super) kind: Option<String>,
    pub(super) initial_priority: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) render_blocking: Option<String>,
    pub(super) is_preload: bool,
    pub(super) initiator: Initiator,
    pub(super) connection: Option<String>,
    pub(super) from_cache: bool,
    pub(super) unfinished: bool,
    pub(super) request_header: Option<u64>,
    pub(super) request_body: u64,
    pub(super) response_header: Option<u64>,
    /// The encoded body.
    pub(super) body: Option<u64>,
    pub(super) decoded: Option<u64>,
    /// Header and encoded body on the wire.
    pub(super) transferred: Option<u64>,
    pub(super) phases: Phases,
    /// When which bytes of the encoded body came.
    pub(super) arrivals: Vec<(f64, u64)>,
}

/// Who asked for a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Initiator {
    /// `parser`, `script` and more.
    pub(super) kind: Option<String>,
    pub(super) url: Option<String>,
    pub(super) line: Option<f64>,
    pub(super) column: Option<f64>,
    /// The developer tools' object as JSON text.
    pub(super) detail: Option<String>,
}
