//! The requests of a netlog: what happened to each, hop by hop.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::connection::Connections;
use super::event::{Event, Params, Phase, What};

/// A request, with all that it was redirected to.
#[derive(Debug, Default)]
pub(super) struct UrlRequest {
    pub(super) id: u64,
    /// When it was made.
    pub(super) asked: f64,
    pub(super) first_priority: Option<Arc<str>>,
    pub(super) priority: Option<Arc<str>>,
    /// In order. There is at least one.
    pub(super) hops: Vec<Hop>,
    pub(super) ended: Option<f64>,
}

/// A request to one URL. Times are ms of the log's clock.
#[derive(Debug, Default)]
pub(super) struct Hop {
    pub(super) start: f64,
    pub(super) params: Params,
    /// When a connection was looked for.
    pub(super) stream: Option<f64>,
    /// When it had one.
    pub(super) stream_end: Option<f64>,
    pub(super) job: Option<u64>,
    pub(super) send: Option<f64>,
    pub(super) sent: Option<f64>,
    pub(super) version: Option<Version>,
    pub(super) request: Params,
    /// Bytes of the request's body.
    pub(super) upload: u64,
    pub(super) answered: Option<f64>,
    /// The status line and the headers of the response.
    pub(super) response: Vec<Arc<str>>,
    pub(super) from_cache: bool,
    pub(super) location: Option<Arc<str>>,
    /// When how many bytes of the body were read, encoded; none if it is not encoded.
    pub(super) read: Vec<(f64, u64)>,
    /// The same, decoded.
    pub(super) read_decoded: Vec<(f64, u64)>,
    /// What the socket received, and what of it was inside of TLS.
    pub(super) received: u64,
    pub(super) received_in_tls: u64,
    pub(super) error: Option<i64>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
    Http3,
}

impl Hop {
    /// The value of a header of the request, whose name is given in lower case.
    pub(super) fn sent_header(&self, name: &str) -> Option<&str> {
        header(&self.request.headers, name)
    }

    /// The value of a header of the response.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(&self.response, name)
    }
}

fn header<'h>(lines: &'h [Arc<str>], wanted: &str) -> Option<&'h str> {
    lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim())
    })
}

/// All requests of a log, in order, and their connections.
#[derive(Default)]
pub(super) struct Requests {
    requests: Vec<UrlRequest>,
    /// Of numbers in the log.
    index: BTreeMap<u64, usize>,
    pub(super) connections: Connections,
    /// The request that a socket of HTTP/1 serves.
    users: BTreeMap<u64, usize>,
}

impl Requests {
    pub(super) fn of(events: &[Event]) -> Requests {
        let mut requests = Requests::default();
        for event in events {
            requests.connections.take(event);
            match event.what {
                What::SocketReceived | What::TlsReceived => requests.receive(event),
                _ => requests.take(event),
            }
        }
        requests
    }

    /// Those that were begun.
    pub(super) fn begun(&self) -> impl Iterator<Item = &UrlRequest> {
        self.requests.iter().filter(|request| !request.hops.is_empty())
    }

    fn receive(&mut self, event: &Event) {
        let user = self.users.get(&event.source).and_then(|&index| self.requests.get_mut(index));
        if let Some(hop) = user.and_then(|request| request.hops.last_mut()) {
            let sum = match event.what {
                What::TlsReceived => &mut hop.received_in_tls,
                _ => &mut hop.received,
            };
            *sum = sum.saturating_add(bytes(event.params.byte_count));
        }
    }

    fn take(&mut self, event: &Event) {
        let (at, params) = (event.at, &event.params);
        if event.what == What::RequestAlive && event.phase == Phase::Begin {
            self.index.insert(event.source, self.requests.len());
            self.requests.push(UrlRequest {
                id: event.source,
                asked: at,
                first_priority: params.priority.clone(),
                priority: params.priority.clone(),
                ..UrlRequest::default()
            });
            return;
        }
        let Some(&index) = self.index.get(&event.source) else { return };
        let Some(request) = self.requests.get_mut(index) else { return };
        match (event.what, event.phase) {
            (What::RequestAlive, Phase::End) => request.ended = Some(at),
            (What::SetPriority, _) if params.priority.is_some() => {
                request.priority.clone_from(&params.priority);
            }
            (What::StartJob, Phase::Begin) => {
                let hop = Hop { start: at, params: params.clone(), ..Hop::default() };
                request.hops.push(hop);
            }
            _ => {}
        }
        let Some(hop) = request.hops.last_mut() else { return };
        if let (What::RequestAlive | What::StartJob, Phase::End) = (event.what, event.phase) {
            hop.error = hop.error.or(params.net_error.map(|code| code as i64));
        }
        match event.what {
            What::StreamJob => {
                hop.job = params.source_dependency.number();
                let socket = hop.job.and_then(|job| self.connections.socket(job));
                self.users.extend(socket.map(|socket| (socket, index)));
            }
            _ => hop.take(event),
        }
    }
}

impl Hop {
    fn take(&mut self, event: &Event) {
        let (at, params) = (event.at, &event.params);
        match (event.what, event.phase) {
            (What::Stream, Phase::Begin) => self.stream = Some(at),
            (What::Stream, Phase::End) => self.stream_end = Some(at),
            (What::RequestSent, Phase::Begin) => self.send = Some(at),
            (What::RequestSent, Phase::End) => self.sent = Some(at),
            (What::Http1Request, _) => self.request_of(Version::Http1, params),
            (What::Http2Request, _) => self.request_of(Version::Http2, params),
            (What::Http3Request, _) => self.request_of(Version::Http3, params),
            (What::Upload, Phase::End) => self.upload = bytes(params.total_size),
            (What::ReadHeaders, _) => {
                self.answered = Some(at);
                self.response.clone_from(&params.headers);
            }
            (What::CacheRead, Phase::Begin) => self.from_cache = true,
            (What::Redirected, _) => self.location.clone_from(&params.location),
            (What::BodyRead, _) => self.read.push((at, bytes(params.byte_count))),
            (What::BodyReadFiltered, _) => self.read_decoded.push((at, bytes(params.byte_count))),
            _ => {}
        }
    }

    fn request_of(&mut self, version: Version, params: &Params) {
        self.version = Some(version);
        self.request = params.clone();
    }
}

/// A number of bytes.
pub(super) fn bytes(number: Option<f64>) -> u64 {
    // A negative number becomes zero.
    number.unwrap_or(0.0) as u64
}
