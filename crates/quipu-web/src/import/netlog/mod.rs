//! Chrome's network log as HAR.
//!
//! A log lists the events of each request, job and socket; `constants` maps the numbers of event types to names. The
//! browser writes it until it ends, so the text may stop anywhere. Every request for the document of a main frame begins
//! a load. Another request belongs to the latest load of the site that its `network_isolation_key` names, or to the
//! browser if no page initiated it. Times are whole milliseconds.

mod connection;
mod event;
mod owner;
mod read;
mod requests;

use std::collections::BTreeSet;

use super::ImportError;
use super::har;
use super::load::{Initiator, Recorded, Request};
use crate::phases::Phases;
use event::Names;
use owner::{Owner, Owners};
use requests::{Hop, Requests, UrlRequest, Version};

/// The error of a request that only wanted what the cache has: `ERR_CACHE_MISS`.
const CACHE_MISS: i64 = -400;

/// The HAR file of the loads of a netlog.
pub(super) fn har_file(file: &[u8]) -> Result<Vec<u8>, ImportError> {
    let log = read::log(file)?;
    let last = log.events.iter().map(|event| event.at).fold(0.0, f64::max);
    let requests = Requests::of(&log.events);
    if requests.begun().next().is_none() {
        return Err(ImportError::NoUrlRequests { events: log.count });
    }
    let Some(names) = &log.names else {
        return Err(ImportError::NoUrlRequests { events: log.count });
    };
    let owners = Owners::of(&requests, names);
    let client = &log.constants.client_info;
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    let mut recorded = Recorded {
        creator: "network log of Chromium",
        browser: client.name.is_some().then(|| (text(&client.name), text(&client.version))),
        clock: log.constants.time_tick_offset.unwrap_or(0.0),
        loads: owners.loads(),
        ..Recorded::default()
    };
    if recorded.loads.is_empty() {
        return Err(ImportError::NoPageLoad { requests: requests.begun().count() });
    }
    let mut hops = Hops { requests: &requests, names, last, used: BTreeSet::new() };
    for request in requests.begun() {
        let own = hops.of(request);
        if own.is_empty() {
            continue;
        }
        match owners.owner(request) {
            Owner::Load(number) => {
                if let Some(load) = recorded.loads.get_mut(number) {
                    load.requests.extend(own);
                }
            }
            Owner::Browser => recorded.of_browser += 1,
            Owner::Other => recorded.of_others += 1,
        }
    }
    for load in &mut recorded.loads {
        name_initiators(&mut load.requests);
    }
    Ok(har::file(&recorded))
}

/// Makes requests of hops.
struct Hops<'r> {
    requests: &'r Requests,
    names: &'r Names,
    /// The last time of the log.
    last: f64,
    /// Connections that requests went over.
    used: BTreeSet<u64>,
}

impl Hops<'_> {
    /// The requests that `request` stands for, one for each URL.
    fn of(&mut self, request: &UrlRequest) -> Vec<Request> {
        let missed = |hop: &&Hop| hop.error == Some(CACHE_MISS) && hop.send.is_none();
        let hops = request.hops.iter().enumerate().filter(|(_, hop)| !missed(hop));
        hops.map(|(number, hop)| self.entry(request, number, hop)).collect()
    }

    fn entry(&mut self, request: &UrlRequest, number: usize, hop: &Hop) -> Request {
        let next = request.hops.get(number + 1);
        let end = match next {
            Some(_) => hop.answered.unwrap_or(hop.start),
            None => request.ended.unwrap_or(self.last),
        };
        let asked = if number == 0 { request.asked } else { hop.start };
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        let location = hop.location.as_deref().filter(|_| next.is_some()).map(str::to_owned);
        let connection = hop.job.and_then(|job| self.requests.connections.number(job));
        let sizes = Sizes::of(hop);
        let status = status(hop);
        Request {
            id: request.id.to_string(),
            method: text(&hop.params.method).unwrap_or_else(|| "GET".to_owned()),
            url: text(&hop.params.url).unwrap_or_default(),
            status,
            error: hop.error.filter(|&code| code != 0).map(|code| self.names.error(code)),
            redirect: location,
            mime: hop.header("content-type").map(str::to_owned),
            protocol: protocol(hop),
            kind: kind(hop).map(str::to_owned),
            initial_priority: priority(request.first_priority.as_deref()),
            priority: priority(request.priority.as_deref()),
            // The document or the style sheet that names it, which [`name_initiators`] looks at.
            initiator: Initiator {
                url: hop.sent_header("referer").map(str::to_owned),
                ..Initiator::default()
            },
            connection: connection.map(|number| number.to_string()),
            from_cache: hop.from_cache && hop.send.is_none(),
            unfinished: next.is_none() && request.ended.is_none(),
            request_header: sizes.request_header,
            request_body: hop.upload,
            response_header: sizes.response_header,
            body: sizes.body,
            decoded: sizes.decoded,
            transferred: sizes.transferred,
            phases: self.phases(hop, connection, asked, end),
            arrivals: match (status, hop.read.is_empty()) {
                (304, _) => Vec::new(),
                (_, true) => hop.read_decoded.clone(),
                (_, false) => hop.read.clone(),
            },
            ..Request::default()
        }
    }

    /// The first request over a connection has its set-up; others waited for it.
    fn phases(&mut self, hop: &Hop, connection: Option<u64>, asked: f64, end: f64) -> Phases {
        let mut phases =
            Phases { start: hop.start, queued: (hop.start - asked).max(0.0), ..Phases::default() };
        let Some(send) = hop.send else {
            // Out of the cache, or it never had a connection.
            phases.wait = (hop.answered.unwrap_or(end) - hop.start).max(0.0);
            phases.receive = (end - hop.start - phases.wait).max(0.0);
            return phases;
        };
        let mut before = (send - hop.start).max(0.0);
        if let (Some(job), Some(number)) = (hop.job, connection)
            && self.used.insert(number)
        {
            let set_up = self.requests.connections.set_up(job, number);
            let length = |(begin, end): (f64, f64)| (end.min(send) - begin).max(0.0);
            let tls = set_up.tls.after(hop.start);
            let transport = set_up.transport.after(hop.start);
            let both = match (transport, tls) {
                (Some((begin, _)), Some((_, end))) => Some((begin, end)),
                (one, other) => one.or(other),
            };
            phases.dns = set_up.dns.after(hop.start).map_or(-1.0, length).min(before);
            before -= phases.dns.max(0.0);
            phases.connect = both.map_or(-1.0, length).min(before);
            before -= phases.connect.max(0.0);
            phases.ssl = tls.map_or(-1.0, length).min(phases.connect);
        }
        let sent = hop.sent.unwrap_or(send).max(send);
        let answered = hop.answered.unwrap_or(end).max(sent);
        phases.blocked = before;
        phases.send = sent - send;
        phases.wait = answered - sent;
        phases.receive = (end - answered).max(0.0);
        phases
    }
}

/// Bytes of a hop; `None` is unknown.
struct Sizes {
    request_header: Option<u64>,
    response_header: Option<u64>,
    body: Option<u64>,
    decoded: Option<u64>,
    transferred: Option<u64>,
}

impl Sizes {
    fn of(hop: &Hop) -> Sizes {
        let sum = |parts: &[(f64, u64)]| {
            parts.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
        };
        let decoded = sum(&hop.read_decoded);
        let body = match (status(hop), hop.read.is_empty()) {
            (304, _) => 0,
            (_, true) => decoded,
            (_, false) => sum(&hop.read),
        };
        // The headers of later versions are compressed, to a size that the log does not tell.
        let is_text = hop.version == Some(Version::Http1);
        let head = |lines: usize| is_text.then_some(lines as u64);
        let line = hop.request.line.as_deref().unwrap_or_default();
        let request_header = head(line.len() + lines(&hop.request.headers));
        let response_header = head(lines(&hop.response)).filter(|_| !hop.response.is_empty());
        let received = if hop.received_in_tls > 0 { hop.received_in_tls } else { hop.received };
        let least = response_header.unwrap_or(0).saturating_add(body);
        let over_network = hop.send.is_some() && hop.answered.is_some();
        Sizes {
            request_header,
            response_header,
            body: if over_network { Some(body) } else { Some(0) },
            decoded: hop.answered.is_some().then_some(decoded).or((decoded > 0).then_some(decoded)),
            transferred: (over_network && is_text).then_some(received.max(least)),
        }
    }
}

/// Bytes of lines, each with its end, and of the empty line behind them.
fn lines(lines: &[std::sync::Arc<str>]) -> usize {
    lines.iter().map(|line| length(line) + 2).sum::<usize>() + 2
}

/// Bytes of a line. Logs leave out cookies: `Cookie: [12 bytes were stripped]`.
fn length(line: &str) -> usize {
    let stripped = || {
        let (name, rest) = line.split_once("[")?;
        let count: usize = rest.strip_suffix(" bytes were stripped]")?.parse().ok()?;
        Some(name.len().saturating_add(count.min(1 << 20)))
    };
    stripped().unwrap_or(line.len())
}

/// The status of a response; what comes out of the cache was a success.
fn status(hop: &Hop) -> u16 {
    let line = hop.response.first().and_then(|line| line.split_whitespace().nth(1));
    let cached = if hop.from_cache && hop.send.is_none() { 200 } else { 0 };
    line.and_then(|status| status.parse().ok()).unwrap_or(cached)
}

fn protocol(hop: &Hop) -> Option<String> {
    Some(match hop.version? {
        Version::Http1 => {
            let line = hop.response.first().and_then(|line| line.split_whitespace().next());
            line.unwrap_or("HTTP/1.1").to_ascii_lowercase()
        }
        Version::Http2 => "h2".to_owned(),
        Version::Http3 => "h3".to_owned(),
    })
}

/// Chrome's word for the type, by what the browser says to the server.
fn kind(hop: &Hop) -> Option<&'static str> {
    if matches!(hop.params.request_type.as_deref(), Some("main frame" | "subframe")) {
        return Some("document");
    }
    let purpose = hop.sent_header("sec-purpose").or(hop.sent_header("purpose"));
    if purpose.is_some_and(|purpose| purpose.starts_with("prefetch")) {
        return Some("prefetch");
    }
    // Pages without TLS have no Sec-Fetch-Dest.
    let accept = hop.sent_header("accept").unwrap_or_default();
    Some(match hop.sent_header("sec-fetch-dest") {
        Some("document" | "iframe" | "frame" | "embed" | "object") => "document",
        Some("style") => "stylesheet",
        Some("script" | "worker" | "sharedworker" | "serviceworker") => "script",
        Some("image") => "image",
        Some("font") => "font",
        Some("audio" | "video" | "track") => "media",
        Some("manifest") => "manifest",
        Some("empty") => "fetch",
        None if accept.starts_with("text/css") => "stylesheet",
        None if accept.starts_with("image/") => "image",
        _ => return None,
    })
}

/// Chrome's word for a priority of its network stack.
fn priority(name: Option<&str>) -> Option<String> {
    let word = match name? {
        "HIGHEST" => "VeryHigh",
        "MEDIUM" => "High",
        "LOW" => "Medium",
        "LOWEST" => "Low",
        "IDLE" | "THROTTLED" => "VeryLow",
        _ => return None,
    };
    Some(word.to_owned())
}

/// Leaves those initiators that are told: the style sheet that a font or an image is for, and the frame that a request
/// is of. The main document asks for the rest, or a script in it, which a log does not tell.
fn name_initiators(requests: &mut [Request]) {
    let is = |request: &Request, kinds: &[&str]| {
        request.kind.as_deref().is_some_and(|kind| kinds.contains(&kind))
    };
    let main = requests.iter().find(|request| is(request, &["document"]));
    let main = main.map(|request| request.id.clone());
    let of_frame = |request: &&Request| main.as_deref() != Some(request.id.as_str());
    let told = |kind| requests.iter().filter(of_frame).filter(move |it| is(it, &[kind]));
    let sheets: BTreeSet<String> = told("stylesheet").map(|it| it.url.clone()).collect();
    let frames: BTreeSet<String> = told("document").map(|it| it.url.clone()).collect();
    for request in requests {
        let url = request.initiator.url.take().filter(|url| *url != request.url);
        if url.as_ref().is_some_and(|url| sheets.contains(url)) {
            request.initiator.kind = Some("parser".to_owned());
            request.initiator.url = url;
        } else if url.as_ref().is_some_and(|url| frames.contains(url)) {
            request.initiator.url = url;
        }
    }
}
