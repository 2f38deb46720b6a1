//! The events of a netlog, as far as a page load is told by them.
//!
//! Names of events and their parameters: `net/log/net_log_event_type_list.h` of Chromium. They are not specified; those
//! of version 156 are as its logs have them, those of HTTP/3 as this list has them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::super::ImportError;
use crate::trace::lenient;

/// The most names of one kind that are read; Chromium 156 has some 700. Our choice.
const MOST_NAMES: usize = 10_000;

/// What an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    BodyRead,
    BodyReadFiltered,
    CacheRead,
    Connect,
    DnsRequest,
    DnsTasks,
    Http1Request,
    Http2Request,
    Http3Request,
    JobOfQuic,
    ProtocolOfSession,
    QuicConnect,
    ReadHeaders,
    Redirected,
    RequestAlive,
    RequestSent,
    SessionOfJob,
    SetPriority,
    SocketAlive,
    SocketOfJob,
    SocketReceived,
    StartJob,
    Stream,
    StreamJob,
    TlsConnect,
    TlsReceived,
    Upload,
}

/// Names of events, also as older versions have them.
const EVENTS: [(&str, What); 33] = [
    ("URL_REQUEST_JOB_BYTES_READ", What::BodyRead),
    ("URL_REQUEST_JOB_FILTERED_BYTES_READ", What::BodyReadFiltered),
    ("HTTP_CACHE_READ_INFO", What::CacheRead),
    ("TCP_CONNECT", What::Connect),
    ("HOST_RESOLVER_MANAGER_REQUEST", What::DnsRequest),
    ("HOST_RESOLVER_IMPL_REQUEST", What::DnsRequest),
    ("HOST_RESOLVER_MANAGER_TASK_SEQUENCE_CREATED", What::DnsTasks),
    ("HTTP_TRANSACTION_SEND_REQUEST_HEADERS", What::Http1Request),
    ("HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS", What::Http2Request),
    ("HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS", What::Http3Request),
    ("BOUND_TO_QUIC_SESSION_POOL_JOB", What::JobOfQuic),
    ("HTTP_STREAM_JOB_BOUND_TO_QUIC_STREAM_FACTORY_JOB", What::JobOfQuic),
    ("HTTP2_SESSION_INITIALIZED", What::ProtocolOfSession),
    ("QUIC_SESSION_POOL_JOB_CONNECT", What::QuicConnect),
    ("QUIC_STREAM_FACTORY_JOB_CONNECT", What::QuicConnect),
    ("HTTP_TRANSACTION_READ_RESPONSE_HEADERS", What::ReadHeaders),
    ("URL_REQUEST_REDIRECTED", What::Redirected),
    ("REQUEST_ALIVE", What::RequestAlive),
    ("HTTP_TRANSACTION_SEND_REQUEST", What::RequestSent),
    ("HTTP2_SESSION_POOL_IMPORTED_SESSION_FROM_SOCKET", What::SessionOfJob),
    ("HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION", What::SessionOfJob),
    ("HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION_FROM_IP_POOL", What::SessionOfJob),
    ("QUIC_SESSION_POOL_USE_EXISTING_SESSION", What::SessionOfJob),
    ("URL_REQUEST_SET_PRIORITY", What::SetPriority),
    ("SOCKET_ALIVE", What::SocketAlive),
    ("SOCKET_POOL_BOUND_TO_SOCKET", What::SocketOfJob),
    ("SOCKET_BYTES_RECEIVED", What::SocketReceived),
    ("URL_REQUEST_START_JOB", What::StartJob),
    ("HTTP_STREAM_REQUEST", What::Stream),
    ("HTTP_STREAM_REQUEST_BOUND_TO_JOB", What::StreamJob),
    ("SSL_CONNECT", What::TlsConnect),
    ("SSL_SOCKET_BYTES_RECEIVED", What::TlsReceived),
    ("UPLOAD_DATA_STREAM_INIT", What::Upload),
];

/// How an event stands in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Begin,
    End,
    Instant,
}

/// One event. Its time is that of the log's clock, in ms.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) what: What,
    pub(super) phase: Phase,
    /// The number of what it happened to: a request, a socket, a session and more, all with numbers of their own.
    pub(super) source: u64,
    pub(super) at: f64,
    pub(super) params: Params,
}

/// An event as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Written {
    #[serde(rename = "type", deserialize_with = "lenient::number")]
    kind: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    phase: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    time: Option<f64>,
    #[serde(deserialize_with = "lenient::object")]
    source: Source,
    #[serde(deserialize_with = "lenient::object")]
    params: Params,
}

/// What an event happened to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Source {
    #[serde(deserialize_with = "lenient::number")]
    id: Option<f64>,
}

impl Source {
    pub(super) fn number(&self) -> Option<u64> {
        self.id.filter(|&id| id >= 0.0).map(|id| id as u64)
    }
}

/// Parameters of events.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) url: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) method: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) request_type: Option<Arc<str>>,
    /// The origin that asked.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) initiator: Option<Arc<str>>,
    /// The sites of the top frame and of the frame.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) network_isolation_key: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) load_flags: Option<f64>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) priority: Option<Arc<str>>,
    /// The first line of a request.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) line: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::texts")]
    pub(super) headers: Vec<Arc<str>>,
    /// Target of a redirect.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) location: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) byte_count: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) total_size: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) net_error: Option<f64>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) source_dependency: Source,
}

/// What the numbers of a log stand for, and whose log it is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Constants {
    #[serde(deserialize_with = "numbers")]
    log_event_types: BTreeMap<String, i64>,
    #[serde(deserialize_with = "numbers")]
    log_event_phase: BTreeMap<String, i64>,
    #[serde(deserialize_with = "numbers")]
    load_flag: BTreeMap<String, i64>,
    #[serde(deserialize_with = "numbers")]
    net_error: BTreeMap<String, i64>,
    /// Unix time at which the log's clock was at zero, in ms.
    #[serde(deserialize_with = "lenient::number")]
    pub(super) time_tick_offset: Option<f64>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) client_info: ClientInfo,
}

/// The program that wrote a log.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientInfo {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) name: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) version: Option<Arc<str>>,
}

/// The constants, the other way round.
pub(super) struct Names {
    events: BTreeMap<i64, What>,
    begin: i64,
    end: i64,
    /// The bit of requests for the documents of main frames, in versions before the type of a request was told.
    pub(super) main_frame: Option<i64>,
    errors: BTreeMap<i64, String>,
}

impl Names {
    pub(super) fn of(constants: &Constants) -> Result<Names, ImportError> {
        let missing = |missing| ImportError::NoConstants { missing };
        let types = &constants.log_event_types;
        if types.is_empty() {
            return Err(missing("logEventTypes"));
        }
        let phase = |name: &str| constants.log_event_phase.get(name).copied();
        Ok(Names {
            events: EVENTS
                .iter()
                .filter_map(|&(name, what)| Some((*types.get(name)?, what)))
                .collect(),
            begin: phase("PHASE_BEGIN").ok_or_else(|| missing("logEventPhase"))?,
            end: phase("PHASE_END").ok_or_else(|| missing("logEventPhase"))?,
            main_frame: constants.load_flag.get("MAIN_FRAME_DEPRECATED").copied(),
            errors: constants.net_error.iter().map(|(name, &code)| (code, name.clone())).collect(),
        })
    }

    /// The event, if a load is told by it.
    pub(super) fn event(&self, written: Written) -> Option<Event> {
        let what = *self.events.get(&(written.kind? as i64))?;
        let phase = written.phase.unwrap_or(0.0) as i64;
        let phase = match phase {
            _ if phase == self.begin => Phase::Begin,
            _ if phase == self.end => Phase::End,
            _ => Phase::Instant,
        };
        let source = written.source.number()?;
        Some(Event { what, phase, source, at: written.time?, params: written.params })
    }

    /// The name of an error, such as `net::ERR_NAME_NOT_RESOLVED`.
    pub(super) fn error(&self, code: i64) -> String {
        match self.errors.get(&code) {
            Some(name) => format!("net::{name}"),
            None => format!("net error {code}"),
        }
    }
}

/// An object of names with whole numbers, at most [`MOST_NAMES`].
fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, i64>, D::Error> {
    struct NumbersVisitor;

    #[derive(Deserialize)]
    struct Number(#[serde(deserialize_with = "lenient::number")] Option<f64>);

    impl<'de> Visitor<'de> for NumbersVisitor {
        type Value = BTreeMap<String, i64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of numbers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut numbers = BTreeMap::new();
            while let Some((name, Number(number))) = map.next_entry::<String, Number>()? {
                if let Some(number) = number.filter(|_| numbers.len() < MOST_NAMES) {
                    numbers.insert(name, number as i64);
                }
            }
            Ok(numbers)
        }
    }

    from.deserialize_map(NumbersVisitor)
}
