//! The requests of a load, out of what the browser tells of them. Times are seconds of the browser's clock, which is
//! that of its traces.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::events::Events;

/// All that was told of one load.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    requests: Vec<Request>,
    /// The hops of each request, in order.
    hops: BTreeMap<String, Vec<usize>>,
    /// What was told of headers on the wire, for each hop; it may come before the hop does.
    sent_headers: BTreeMap<String, Vec<Value>>,
    received_headers: BTreeMap<String, Vec<Value>>,
    trace: Events,
    main_loader: Option<String>,
    marks: Marks,
    last: f64,
}

/// When the events of the page were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) content_load: Option<f64>,
    pub(crate) load: Option<f64>,
    pub(crate) first_paint: Option<f64>,
    pub(crate) first_contentful_paint: Option<f64>,
}

/// One request; each hop of a redirect is one.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    /// When the page asked for it.
    pub(crate) asked: f64,
    /// The same by the clock on the wall, seconds of Unix time.
    pub(crate) wall: f64,
    /// `Network.Request`.
    pub(crate) request: Value,
    pub(crate) initiator: Value,
    /// `Document`, `Script` and so on.
    pub(crate) kind: String,
    pub(crate) priority: Option<String>,
    pub(crate) render_blocking: Option<String>,
    /// `Network.Response`; null as long as there is none.
    pub(crate) response: Value,
    pub(crate) answered: Option<f64>,
    pub(crate) finished: Option<f64>,
    /// Bytes on the wire, headers included.
    pub(crate) encoded: f64,
    /// When which decoded and encoded bytes came.
    pub(crate) data: Vec<(f64, f64, f64)>,
    pub(crate) error: Option<String>,
    pub(crate) from_memory: bool,
    /// Where a redirect leads to.
    pub(crate) redirect: Option<String>,
    has_extra: bool,
    /// `Network.requestWillBeSentExtraInfo` and `Network.responseReceivedExtraInfo`; null without.
    pub(crate) sent_headers: Value,
    pub(crate) received_headers: Value,
}

impl Observed {
    /// Takes an event of the domains Network, Page and Tracing; others change nothing.
    pub(crate) fn take(&mut self, method: &str, params: &Value) {
        if let Some(time) = params["timestamp"].as_f64() {
            self.last = self.last.max(time);
        }
        let id = params["requestId"].as_str().unwrap_or_default();
        match method {
            "Network.requestWillBeSent" => self.begin(id, params),
            "Network.requestWillBeSentExtraInfo" => {
                self.sent_headers.entry(id.to_owned()).or_default().push(params.clone());
            }
            "Network.responseReceivedExtraInfo" => {
                self.received_headers.entry(id.to_owned()).or_default().push(params.clone());
            }
            "Network.responseReceived" => {
                let Some(request) = self.latest(id) else { return };
                request.response = params["response"].clone();
                request.answered = params["timestamp"].as_f64();
                request.has_extra = params["hasExtraInfo"] == true;
                if let Some(kind) = params["type"].as_str() {
                    kind.clone_into(&mut request.kind);
                }
            }
            "Network.dataReceived" => {
                let Some(request) = self.latest(id) else { return };
                let number = |name: &str| params[name].as_f64().unwrap_or(0.0);
                request.data.push((
                    number("timestamp"),
                    number("dataLength"),
                    number("encodedDataLength"),
                ));
            }
            "Network.loadingFinished" => {
                let Some(request) = self.latest(id) else { return };
                request.finished = params["timestamp"].as_f64();
                request.encoded = params["encodedDataLength"].as_f64().unwrap_or(0.0).max(0.0);
            }
            "Network.loadingFailed" => {
                let Some(request) = self.latest(id) else { return };
                request.finished = params["timestamp"].as_f64();
                let reason = params["blockedReason"].as_str().or(params["errorText"].as_str());
                request.error = Some(reason.unwrap_or("failed").to_owned());
            }
            "Network.requestServedFromCache" => {
                let Some(request) = self.latest(id) else { return };
                request.from_memory = true;
            }
            "Network.resourceChangedPriority" => {
                let Some(request) = self.latest(id) else { return };
                request.priority = params["newPriority"].as_str().map(str::to_owned);
            }
            "Page.domContentEventFired" if self.has_begun() => {
                self.marks.content_load = self.marks.content_load.or(params["timestamp"].as_f64());
            }
            "Page.loadEventFired" if self.has_begun() => {
                self.marks.load = self.marks.load.or(params["timestamp"].as_f64());
            }
            "Page.lifecycleEvent" => self.mark(params),
            "Tracing.dataCollected" => self.trace.take(&params["value"]),
            "Tracing.tracingComplete" => self.trace.end(params),
            _ => {}
        }
    }

    /// A request begins, or goes on to another URL.
    fn begin(&mut self, id: &str, params: &Value) {
        let asked = params["timestamp"].as_f64().unwrap_or(self.last);
        if let Some(hop) = self.latest(id) {
            // The document of a frame with a process of its own is told twice.
            if params["redirectResponse"].is_null() {
                return;
            }
            hop.response = params["redirectResponse"].clone();
            hop.has_extra = params["redirectHasExtraInfo"] == true;
            hop.encoded = hop.response["encodedDataLength"].as_f64().unwrap_or(0.0).max(0.0);
            hop.answered = Some(asked);
            hop.finished = Some(asked);
            hop.redirect = params["request"]["url"].as_str().map(str::to_owned);
        } else if self.requests.is_empty() {
            self.main_loader = params["loaderId"].as_str().map(str::to_owned);
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.hops.entry(id.to_owned()).or_default().push(self.requests.len());
        self.requests.push(Request {
            id: id.to_owned(),
            asked,
            wall: params["wallTime"].as_f64().unwrap_or(0.0),
            request: params["request"].clone(),
            initiator: params["initiator"].clone(),
            kind: text(&params["type"]).unwrap_or_else(|| "Other".to_owned()),
            priority: text(&params["request"]["initialPriority"]),
            render_blocking: text(&params["renderBlockingBehavior"]),
            response: Value::Null,
            answered: None,
            finished: None,
            encoded: 0.0,
            data: Vec::new(),
            error: None,
            from_memory: false,
            redirect: None,
            has_extra: false,
            sent_headers: Value::Null,
            received_headers: Value::Null,
        });
    }

    fn latest(&mut self, id: &str) -> Option<&mut Request> {
        let hop = *self.hops.get(id)?.last()?;
        self.requests.get_mut(hop)
    }

    fn mark(&mut self, params: &Value) {
        if params["loaderId"].as_str() != self.main_loader.as_deref() {
            return;
        }
        let mark = match params["name"].as_str() {
            Some("firstPaint") => &mut self.marks.first_paint,
            Some("firstContentfulPaint") => &mut self.marks.first_contentful_paint,
            _ => return,
        };
        *mark = mark.or(params["timestamp"].as_f64());
    }

    /// The load is over: what was told of headers goes to the hops that it was told of.
    pub(crate) fn end(&mut self) {
        for (id, hops) in &self.hops {
            let told = hops.iter().filter(|&&hop| self.requests[hop].has_extra).copied();
            for (place, hop) in told.collect::<Vec<_>>().into_iter().enumerate() {
                let take = |from: &BTreeMap<String, Vec<Value>>| {
                    from.get(id).and_then(|list| list.get(place)).cloned().unwrap_or_default()
                };
                self.requests[hop].sent_headers = take(&self.sent_headers);
                self.requests[hop].received_headers = take(&self.received_headers);
            }
        }
    }

    /// Whether the page has been asked for.
    pub(crate) fn has_begun(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.iter().all(|request| request.finished.is_some())
    }

    /// The requests, in the order in which they were told.
    pub(crate) fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The trace.
    pub(crate) fn trace(&self) -> &Events {
        &self.trace
    }

    /// When the page's events were.
    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    /// The last time that was told.
    pub(crate) fn last(&self) -> f64 {
        self.last
    }

    /// When the page was asked for, on the clock and on the wall.
    pub(crate) fn start(&self) -> (f64, f64) {
        self.requests.first().map_or((0.0, 0.0), |first| (first.asked, first.wall))
    }

    /// The load event, in seconds from the start.
    pub(crate) fn on_load(&self) -> Option<f64> {
        Some(self.marks.load? - self.start().0)
    }

    /// Bytes on the wire of all requests.
    pub(crate) fn transferred(&self) -> f64 {
        self.requests.iter().map(|request| request.encoded).sum()
    }

    /// The status of the page itself.
    pub(crate) fn status(&self) -> Option<f64> {
        let first = self.requests.first()?;
        let page = self.requests.iter().rfind(|request| request.id == first.id)?;
        page.response["status"].as_f64()
    }
}

impl Request {
    /// Whether there is no answer to it that a page could use.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether it is for a resource, and not one that the page holds itself, such as `data:`.
    pub(crate) fn is_for_resource(&self) -> bool {
        ["http:", "https:"].iter().any(|scheme| self.url().starts_with(scheme))
    }

    /// Bytes of the body as the page has them.
    pub(crate) fn decoded(&self) -> f64 {
        self.data.iter().map(|&(_, decoded, _)| decoded).sum()
    }

    pub(crate) fn url(&self) -> &str {
        self.request["url"].as_str().unwrap_or_default()
    }
}
