//! The parts of a HAR file that a page load needs. Sizes are bytes, times are milliseconds, both
//! as written: -1 or less means unknown. An absent, null or unusable field is `None`.

use jiff::Timestamp;
use serde::Deserialize;

use super::lenient;

#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) log: Option<Har>,
}

/// A HAR file: the `log` object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Har {
    /// The program that wrote the file.
    #[serde(deserialize_with = "lenient::or_default")]
    pub creator: Creator,
    /// The browser, where it is not the creator.
    #[serde(deserialize_with = "lenient::or_default")]
    pub browser: Creator,
    /// The page loads of the file, in file order; may be empty.
    #[serde(deserialize_with = "lenient::or_default")]
    pub pages: Vec<HarPage>,
    /// The requests, in file order, usually that of their start.
    #[serde(deserialize_with = "lenient::or_default")]
    pub entries: Vec<Entry>,
}

/// Name and version of a program.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Creator {
    /// Name, such as `WebPagetest`.
    #[serde(deserialize_with = "lenient::text")]
    pub name: Option<String>,
    /// Version, in any form.
    #[serde(deserialize_with = "lenient::text")]
    pub version: Option<String>,
}

/// One load of a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HarPage {
    /// What entries name in `pageref`.
    #[serde(deserialize_with = "lenient::text")]
    pub id: Option<String>,
    /// Title, often the URL.
    #[serde(deserialize_with = "lenient::text")]
    pub title: Option<String>,
    /// Start of the load.
    #[serde(deserialize_with = "lenient::timestamp")]
    pub started_date_time: Option<Timestamp>,
    /// When its events fired.
    #[serde(deserialize_with = "lenient::or_default")]
    pub page_timings: PageTimings,
    /// `quipu page record` and `quipu page infer`: over which network it was recorded. All loads of such a file are
    /// of one page.
    #[serde(rename = "_network", deserialize_with = "lenient::network")]
    pub network: Option<HarNetwork>,
    /// `quipu page record`: whether there is a trace of it, which [`crate::trace::read_recordings`] reads.
    #[serde(rename = "_traceEvents", deserialize_with = "lenient::is_there")]
    pub is_traced: bool,
    /// A netlog: how many requests the browser made for itself meanwhile, which are no entries.
    #[serde(rename = "_requestsOfBrowser", deserialize_with = "lenient::number")]
    pub requests_of_browser: Option<f64>,
    /// A netlog or a trace: how many requests other pages made meanwhile, which are no entries.
    #[serde(rename = "_requestsOfOthers", deserialize_with = "lenient::number")]
    pub requests_of_others: Option<f64>,
}

/// The network of a recording, as `quipu page record` writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HarNetwork {
    /// The one that was there, or an unknown one: nothing is said about it.
    Present,
    /// One with these limits.
    Limited {
        /// The rate to the browser, such as `2mbit`, or `unlimited`.
        down: String,
        /// The rate from it.
        up: String,
        /// The round trip that was added, such as `40ms`.
        rtt: String,
    },
}

/// Times of a page's events from its start.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PageTimings {
    /// The load event, ms.
    #[serde(deserialize_with = "lenient::number")]
    pub on_load: Option<f64>,
}

/// One request and its response.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// Which load it belongs to.
    #[serde(deserialize_with = "lenient::text")]
    pub pageref: Option<String>,
    /// When the browser began to work on it.
    #[serde(rename = "startedDateTime", deserialize_with = "lenient::timestamp")]
    pub started: Option<Timestamp>,
    /// How long it took in all, ms.
    #[serde(deserialize_with = "lenient::number")]
    pub time: Option<f64>,
    /// The request.
    #[serde(deserialize_with = "lenient::or_default")]
    pub request: Request,
    /// The response.
    #[serde(deserialize_with = "lenient::or_default")]
    pub response: Response,
    /// Its phases.
    #[serde(deserialize_with = "lenient::or_default")]
    pub timings: Timings,
    /// Which connection it came over, as a number or a name.
    #[serde(deserialize_with = "lenient::text")]
    pub connection: Option<String>,
    /// WebPageTest: the same.
    #[serde(rename = "_socket", deserialize_with = "lenient::text")]
    pub socket: Option<String>,
    /// `quipu page record`: when the body came, as ms since the entry's start and bytes since the point before.
    #[serde(rename = "_arrivals", deserialize_with = "lenient::or_default")]
    pub arrivals: Vec<(f64, f64)>,
    /// Chrome's type of the resource.
    #[serde(rename = "_resourceType", deserialize_with = "lenient::text")]
    pub resource_type: Option<String>,
    /// WebPageTest's type of the resource.
    #[serde(rename = "_request_type", deserialize_with = "lenient::text")]
    pub request_type: Option<String>,
    /// The last priority.
    #[serde(rename = "_priority", deserialize_with = "lenient::text")]
    pub priority: Option<String>,
    /// The first priority, as chrome-har writes it.
    #[serde(rename = "_initialPriority", deserialize_with = "lenient::text")]
    pub initial_priority_camel: Option<String>,
    /// The first priority, as WebPageTest writes it.
    #[serde(rename = "_initial_priority", deserialize_with = "lenient::text")]
    pub initial_priority_snake: Option<String>,
    /// Who asked for it.
    #[serde(rename = "_initiator", deserialize_with = "lenient::initiator")]
    pub initiator: Option<Initiator>,
    /// What kind of initiator, beside an initiator that is a URL.
    #[serde(rename = "_initiator_type", deserialize_with = "lenient::text")]
    pub initiator_type: Option<String>,
    /// Line in the initiator, beside an initiator that is a URL.
    #[serde(rename = "_initiator_line", deserialize_with = "lenient::number")]
    pub initiator_line: Option<f64>,
    /// Column in the initiator, beside an initiator that is a URL.
    #[serde(rename = "_initiator_column", deserialize_with = "lenient::number")]
    pub initiator_column: Option<f64>,
    /// The initiator object as JSON text (new versions of chrome-har).
    #[serde(rename = "_initiator_detail", deserialize_with = "lenient::text")]
    pub initiator_detail: Option<String>,
    /// WebPageTest: bytes received, headers included.
    #[serde(rename = "_bytesIn", deserialize_with = "lenient::number")]
    pub bytes_in: Option<f64>,
    /// WebPageTest: bytes sent.
    #[serde(rename = "_bytesOut", deserialize_with = "lenient::number")]
    pub bytes_out: Option<f64>,
    /// WebPageTest: encoded body.
    #[serde(rename = "_objectSize", deserialize_with = "lenient::number")]
    pub object_size: Option<f64>,
    /// Pushed by the server over HTTP/2.
    #[serde(rename = "_was_pushed", deserialize_with = "lenient::flag")]
    pub was_pushed: bool,
    /// Came out of the browser's cache.
    #[serde(rename = "_fromCache", deserialize_with = "lenient::flag")]
    pub from_cache: bool,
    /// WebPageTest: HTTP/2 stream.
    #[serde(rename = "_http2_stream_id", deserialize_with = "lenient::number")]
    pub http2_stream_id: Option<f64>,
    /// WebPageTest: the stream it depends on.
    #[serde(rename = "_http2_stream_dependency", deserialize_with = "lenient::number")]
    pub http2_stream_dependency: Option<f64>,
    /// WebPageTest: effective weight, 1 to 256.
    #[serde(rename = "_http2_stream_weight", deserialize_with = "lenient::number")]
    pub http2_stream_weight: Option<f64>,
    /// WebPageTest: exclusive dependency.
    #[serde(rename = "_http2_stream_exclusive", deserialize_with = "lenient::flag")]
    pub http2_stream_exclusive: bool,
    /// Chrome: whether rendering or parsing waited for it.
    #[serde(rename = "_renderBlocking", deserialize_with = "lenient::text")]
    pub render_blocking: Option<String>,
    /// Asked for by `rel=preload`.
    #[serde(rename = "_isLinkPreload", deserialize_with = "lenient::flag")]
    pub is_link_preload: bool,
    /// WebPageTest: the document that the load was for.
    #[serde(rename = "_final_base_page", deserialize_with = "lenient::flag")]
    pub final_base_page: bool,
    /// Chrome's id, shared by the hops of a redirect chain.
    #[serde(rename = "_requestId", deserialize_with = "lenient::text")]
    pub request_id: Option<String>,
    /// Type that the framework paper's client detected from the content.
    #[serde(rename = "_clientClass", deserialize_with = "lenient::text")]
    pub client_class: Option<String>,
}

/// A request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Method; null in some files of WebPageTest, then GET.
    #[serde(deserialize_with = "lenient::text")]
    pub method: Option<String>,
    /// Absolute URL.
    #[serde(deserialize_with = "lenient::text")]
    pub url: Option<String>,
    /// Bytes of the header.
    #[serde(rename = "headersSize", deserialize_with = "lenient::number")]
    pub headers_size: Option<f64>,
    /// Bytes of the body.
    #[serde(rename = "bodySize", deserialize_with = "lenient::number")]
    pub body_size: Option<f64>,
}

/// A response.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    /// Status code; 0 if there was no response.
    #[serde(deserialize_with = "lenient::number")]
    pub status: Option<f64>,
    /// Target of a redirect.
    #[serde(rename = "redirectURL", deserialize_with = "lenient::text")]
    pub redirect_url: Option<String>,
    /// Bytes of the header.
    #[serde(rename = "headersSize", deserialize_with = "lenient::number")]
    pub headers_size: Option<f64>,
    /// Bytes of the encoded body.
    #[serde(rename = "bodySize", deserialize_with = "lenient::number")]
    pub body_size: Option<f64>,
    /// Chrome: bytes on the wire, headers included.
    #[serde(rename = "_transferSize", deserialize_with = "lenient::number")]
    pub transfer_size: Option<f64>,
    /// Chrome: why the request failed.
    #[serde(rename = "_error", deserialize_with = "lenient::text")]
    pub error: Option<String>,
    /// chrome-har: came out of the disk cache.
    #[serde(rename = "fromDiskCache", deserialize_with = "lenient::flag")]
    pub from_disk_cache: bool,
    /// The decoded body.
    #[serde(deserialize_with = "lenient::or_default")]
    pub content: Content,
}

/// The decoded body.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Content {
    /// Bytes, decoded.
    #[serde(deserialize_with = "lenient::number")]
    pub size: Option<f64>,
    /// Bytes that encoding saved.
    #[serde(deserialize_with = "lenient::number")]
    pub compression: Option<f64>,
    /// Media type with parameters.
    #[serde(rename = "mimeType", deserialize_with = "lenient::text")]
    pub mime_type: Option<String>,
}

/// Phases of a request in ms.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Timings {
    /// chrome-har: waiting in the browser before the entry starts, from when it was asked for.
    #[serde(rename = "_queued", deserialize_with = "lenient::number")]
    pub queued: Option<f64>,
    /// Chrome's developer tools: the same, as a part of `blocked`.
    #[serde(rename = "_blocked_queueing", deserialize_with = "lenient::number")]
    pub blocked_queueing: Option<f64>,
    /// Waiting in the browser, for a connection or because others are more important.
    #[serde(deserialize_with = "lenient::number")]
    pub blocked: Option<f64>,
    /// Resolving the name.
    #[serde(deserialize_with = "lenient::number")]
    pub dns: Option<f64>,
    /// Opening the connection, TLS included.
    #[serde(deserialize_with = "lenient::number")]
    pub connect: Option<f64>,
    /// TLS handshake, part of `connect`.
    #[serde(deserialize_with = "lenient::number")]
    pub ssl: Option<f64>,
    /// Sending the request.
    #[serde(deserialize_with = "lenient::number")]
    pub send: Option<f64>,
    /// From the request sent to the first byte of the response.
    #[serde(deserialize_with = "lenient::number")]
    pub wait: Option<f64>,
}

/// Who asked for a resource, in one of two forms.
#[derive(Debug, Clone)]
pub enum Initiator {
    /// Chrome's own object.
    DevTools(Box<DevToolsInitiator>),
    /// The URL of the document, style sheet or script.
    Url(String),
}

/// Chrome's initiator object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DevToolsInitiator {
    /// `parser`, `script`, `preload`, `preflight`, `other` and more.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    /// The HTML or CSS file that refers to the resource.
    #[serde(deserialize_with = "lenient::text")]
    pub url: Option<String>,
    /// Line in it.
    #[serde(deserialize_with = "lenient::number")]
    pub line_number: Option<f64>,
    /// Column in it.
    #[serde(deserialize_with = "lenient::number")]
    pub column_number: Option<f64>,
    /// The script functions that asked.
    pub stack: Option<Stack>,
}

/// A stack of script functions, innermost first.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Stack {
    /// Functions, the one that asked first.
    #[serde(deserialize_with = "lenient::or_default")]
    pub call_frames: Vec<CallFrame>,
    /// The asynchronous caller.
    pub parent: Option<Box<Stack>>,
}

/// A function in a script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallFrame {
    /// The script.
    #[serde(deserialize_with = "lenient::text")]
    pub url: Option<String>,
    /// Line in it.
    #[serde(deserialize_with = "lenient::number")]
    pub line_number: Option<f64>,
    /// Column in it.
    #[serde(deserialize_with = "lenient::number")]
    pub column_number: Option<f64>,
}
