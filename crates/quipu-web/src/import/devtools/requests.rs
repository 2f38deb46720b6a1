//! The requests of a trace: what is told of each, hop by hop.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::super::load::{Initiator, Request};
use super::event::{Data, Event, What};
use crate::phases::{Phases, encoded};

/// The most functions of a stack that are kept; the reader looks at 64 scripts. Our choice.
const MOST_FRAMES: usize = 64;

/// A request to one URL. Times are ms of the trace's clock.
#[derive(Debug)]
pub(super) struct Hop {
    id: Arc<str>,
    pub(super) asked: f64,
    sent: Data,
    priority: Option<Arc<str>>,
    answered: Option<(f64, Data)>,
    /// When how much of the body came, decoded.
    received: Vec<(f64, u64)>,
    finished: Option<(f64, Data)>,
    /// What it was redirected to, and when.
    redirect: Option<(f64, Arc<str>)>,
}

/// Collects the hops of a trace, in order of being asked for.
#[derive(Default)]
pub(super) struct Hops {
    hops: Vec<Hop>,
    /// The browser tells of a document's request before the renderer, which does so once it has the answer.
    announced: BTreeMap<Arc<str>, f64>,
    latest: BTreeMap<Arc<str>, usize>,
}

impl Hops {
    pub(super) fn all(&self) -> &[Hop] {
        &self.hops
    }

    pub(super) fn take(&mut self, event: Event) {
        let Event { at, what, data } = event;
        let Some(id) = data.request_id.clone() else { return };
        if what == What::WillSend {
            // The last hop's is the one whose URL is told.
            self.announced.insert(id, at);
            return;
        }
        if what == What::Send {
            self.send(id, at, data);
            return;
        }
        let Some(hop) = self.latest.get(&id).and_then(|&at| self.hops.get_mut(at)) else { return };
        match what {
            What::Priority => hop.priority = data.priority,
            What::Response => hop.answered = Some((at, data)),
            What::Received => hop.received.push((at, whole(data.encoded_data_length))),
            What::Finish => hop.finished = Some((at, data)),
            _ => {}
        }
    }

    fn send(&mut self, id: Arc<str>, at: f64, data: Data) {
        let Some(url) = data.url.clone() else { return };
        let mut asked = self.announced.remove(&id).unwrap_or(at);
        if let Some(hop) = self.latest.get(&id).and_then(|&at| self.hops.get_mut(at)) {
            if hop.sent.url.as_ref() == Some(&url) {
                // A document that was redirected to is told once for each hop, always with its last URL.
                return;
            }
            asked = asked.max(hop.asked);
            hop.redirect = Some((at, url));
        }
        self.latest.insert(id.clone(), self.hops.len());
        self.hops.push(Hop {
            id,
            asked,
            priority: data.priority.clone(),
            sent: data,
            answered: None,
            received: Vec::new(),
            finished: None,
            redirect: None,
        });
    }
}

impl Hop {
    pub(super) fn url(&self) -> &str {
        self.sent.url.as_deref().unwrap_or_default()
    }

    pub(super) fn frame(&self) -> Option<&Arc<str>> {
        self.sent.frame.as_ref()
    }

    pub(super) fn is_document(&self) -> bool {
        self.sent.resource_type.as_deref() == Some("Document")
    }

    /// Unix time less the trace's clock, in ms, if the response tells it.
    pub(super) fn clock(&self) -> Option<f64> {
        let (_, response) = self.answered.as_ref()?;
        let timing = &response.timing;
        let head = timing.request_time? * 1e3 + timing.receive_headers_end?;
        response.response_time.filter(|&time| time > 0.0).map(|time| time - head)
    }

    /// The request, of a trace whose last event was at `last`.
    pub(super) fn request(&self, last: f64) -> Request {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let none = Data::default();
        let response = self.answered.as_ref().map_or(&none, |(_, data)| data);
        let end = self.end(last);
        let failed = self.finished.as_ref().is_some_and(|(_, data)| data.did_fail);
        let unanswered = self.answered.is_none() && self.redirect.is_none();
        let error = match (failed, unanswered) {
            (true, _) => Some("it failed"),
            (false, true) => Some("no response in the trace"),
            (false, false) => None,
        };
        let answered = self.answered.as_ref().map(|(at, _)| *at);
        let phases = Phases::of(self.asked, answered, end, &response.timing);
        let status = response.status_code.unwrap_or(0.0) as u16;
        let mut request = Request {
            id: self.id.to_string(),
            method: text(&self.sent.request_method).unwrap_or_else(|| "GET".to_owned()),
            url: self.url().to_owned(),
            // A trace does not tell by which status a request was redirected.
            status: if self.redirect.is_some() { 302 } else { status },
            error: error.map(str::to_owned),
            redirect: self.redirect.as_ref().map(|(_, url)| url.to_string()),
            mime: text(&response.mime_type),
            protocol: text(&response.protocol),
            kind: self.sent.resource_type.as_deref().map(str::to_ascii_lowercase),
            initial_priority: text(&self.sent.priority),
            priority: text(&self.priority),
            render_blocking: text(&self.sent.render_blocking),
            is_preload: self.sent.is_link_preload,
            initiator: self.initiator(),
            connection: text(&response.connection_id).filter(|id| id != "0"),
            from_cache: response.from_cache,
            unfinished: self.finished.is_none() && self.redirect.is_none(),
            phases,
            ..Request::default()
        };
        // Scripts' requests are of an other type in traces.
        let by_script = request.initiator.kind.as_deref() == Some("script");
        if by_script && request.kind.as_deref() == Some("other") {
            request.kind = Some("fetch".to_owned());
        }
        self.add_sizes(response, &mut request);
        request
    }

    fn end(&self, last: f64) -> f64 {
        let told = self.finished.as_ref().map(|(at, data)| {
            let network = data.finish_time.map(|time| time * 1e3);
            network.filter(|time| (self.asked..=*at).contains(time)).unwrap_or(*at)
        });
        told.or(self.redirect.as_ref().map(|(at, _)| *at)).unwrap_or(last).max(self.asked)
    }

    fn add_sizes(&self, response: &Data, request: &mut Request) {
        let received =
            self.received.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let Some((_, end)) = self.finished.as_ref().filter(|(_, data)| !data.did_fail) else {
            request.decoded = (received > 0).then_some(received);
            request.body = request.decoded;
            return;
        };
        let head = whole(response.encoded_data_length);
        let whole_length = whole(end.encoded_data_length);
        let decoded = end.decoded_body_length.map_or(received, |length| whole(Some(length)));
        let is_coded = response.headers.iter().any(|header| {
            header.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("content-encoding"))
        });
        let body = whole_length.saturating_sub(head);
        // What the renderer ended, such as an image that it cannot read, is told without its header.
        let body = if is_coded { body } else { body.max(decoded.min(whole_length)) };
        request.decoded = Some(decoded);
        request.body = Some(body);
        request.transferred = Some(whole_length.max(body.saturating_add(head)));
        let complete = request.phases.start + request.phases.total();
        request.arrivals = encoded(&self.received, body, complete);
    }

    /// Who asked: what a parser was in, or the functions of a script.
    fn initiator(&self) -> Initiator {
        let own = &self.sent.initiator;
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let stack = self.sent.stack_trace.get(..MOST_FRAMES).unwrap_or(&self.sent.stack_trace);
        let frame = stack.iter().find(|frame| frame.url.is_some()).filter(|_| own.url.is_none());
        let Some(frame) = frame else {
            return Initiator {
                kind: text(&own.kind),
                url: text(&own.url),
                line: own.line_number,
                column: own.column_number,
                detail: None,
            };
        };
        let frames = stack.iter().map(|frame| {
            json!({
                "url": frame.url.as_deref(),
                "lineNumber": frame.line_number,
                "columnNumber": frame.column_number,
            })
        });
        let frames: Vec<_> = frames.collect();
        let detail = json!({ "type": "script", "stack": { "callFrames": frames } });
        Initiator {
            kind: Some("script".to_owned()),
            url: text(&frame.url),
            line: frame.line_number,
            column: frame.column_number,
            detail: Some(detail.to_string()),
        }
    }
}

/// A number of bytes; zero if it is negative or unknown.
fn whole(bytes: Option<f64>) -> u64 {
    bytes.unwrap_or(0.0) as u64
}
