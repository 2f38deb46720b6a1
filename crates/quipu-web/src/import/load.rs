//! Page loads in the terms that all kinds of recordings share.

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

/// Phases of a request: the start in ms of the file's clock, and lengths in ms; negative ones do not apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phases {
    /// When the network began to work on it.
    pub(super) start: f64,
    /// From being asked for until then.
    pub(super) queued: f64,
    pub(super) blocked: f64,
    pub(super) dns: f64,
    /// With `ssl` in it.
    pub(super) connect: f64,
    pub(super) ssl: f64,
    pub(super) send: f64,
    pub(super) wait: f64,
    pub(super) receive: f64,
}

impl Default for Phases {
    fn default() -> Phases {
        Phases {
            start: 0.0,
            queued: 0.0,
            blocked: -1.0,
            dns: -1.0,
            connect: -1.0,
            ssl: -1.0,
            send: 0.0,
            wait: 0.0,
            receive: 0.0,
        }
    }
}

impl Phases {
    /// The whole time from the start.
    pub(super) fn total(&self) -> f64 {
        let parts = [self.blocked, self.dns, self.connect, self.send, self.wait, self.receive];
        parts.into_iter().map(|part| part.max(0.0)).sum()
    }
}
