//! The client's HTTP: requests with the browser's priorities, responses to the page load.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quipu_base::{Bytes, Instant, StreamId};
use quipu_http::field::FieldList;
use quipu_http::priority::{PRIORITY, PriorityField};
use quipu_http::transport::quic::Carrier as _;
use quipu_policy::Urgency;
use quipu_quic::ConnectionEvent;
use quipu_web::page::{Object, ObjectKind};
use quipu_web::scheme::{BrowserScheme, RequestFacts, SchemeState, Signal};

use super::arrivals::LineArrivals;
use super::asked::{Asked, VisitObject, head, named};
use super::error::RunError;
use super::http::{ClientEnd, ClientNews, Refusal};
use super::visits::Visits;
use super::wire::Wire;
use crate::pages::body_parts;
use quipu_record::End;
use quipu_scenario::{HttpVersion, Priorities, Scenario};

/// The requests of one connection.
pub(super) struct Requests {
    client: ClientEnd,
    open: bool,
    scheme: SchemeState,
    /// Whether layout is still to change priorities.
    awaits_layout: bool,
    /// Whether layout changes priorities.
    reprioritises: bool,
    streams: BTreeMap<StreamId, Asked>,
    /// The origin of the server; `None` if it has all of them.
    origin: Option<Arc<str>>,
    /// What the server promised.
    promised: BTreeSet<VisitObject>,
    /// What waits for the connection or for a stream.
    waiting: VecDeque<Asked>,
    /// The stream of the next request: priorities are drawn before it is opened.
    next_stream: StreamId,
    warm_ups_open: u32,
    /// Takes note of which stream carries what.
    arrivals: Option<LineArrivals>,
}

impl Requests {
    pub(super) fn new(browser: &BrowserScheme, scenario: &Scenario, http: HttpVersion) -> Requests {
        let client = ClientEnd::new(scenario, http);
        Requests {
            next_stream: client.first_stream(),
            client,
            open: false,
            scheme: browser.session(),
            awaits_layout: browser.reprioritises(),
            reprioritises: browser.reprioritises(),
            streams: BTreeMap::new(),
            origin: None,
            promised: BTreeSet::new(),
            waiting: VecDeque::new(),
            warm_ups_open: 0,
            arrivals: None,
        }
    }

    /// The same, telling `arrivals` which stream carries what.
    pub(super) fn told_to(self, arrivals: Option<LineArrivals>) -> Requests {
        Requests { arrivals, ..self }
    }

    /// The same, over a connection to the server of `origin` alone.
    pub(super) fn of_origin(self, origin: Option<Arc<str>>) -> Requests {
        Requests { origin, ..self }
    }

    /// The next page of the session is asked for: its layout is still to come.
    pub(super) fn next_page(&mut self) {
        self.awaits_layout = self.reprioritises;
    }

    /// Asks for `objects` small objects that belong to no page.
    pub(super) fn warm_up(&mut self, objects: u32) {
        self.warm_ups_open = objects;
        self.waiting.extend((0..objects).map(|_| Asked::WarmUp));
    }

    /// True if the connection is open and all objects of the warm-up are there.
    pub(super) fn is_warm(&self) -> bool {
        self.open && self.warm_ups_open == 0
    }

    /// Takes an event of the connection.
    pub(super) fn on_event(
        &mut self,
        streams: &mut Wire<'_>,
        event: ConnectionEvent,
        loading: &mut Visits,
    ) -> Result<(), RunError> {
        let now = streams.now();
        match event {
            ConnectionEvent::Connected => {
                let phantoms = self.scheme.initial_phantoms();
                self.client.start(streams, &phantoms).map_err(|error| failed(now, error))?;
                self.open = true;
            }
            ConnectionEvent::Closed(reason) => {
                let reason = reason.to_string();
                return Err(RunError::Closed { end: End::Client, at: now, reason });
            }
            event => {
                let mut sink = sink(&self.streams, loading, now);
                self.client.pass(streams, &event, &mut sink);
            }
        }
        self.take_events(streams, loading)
    }

    fn take_events(
        &mut self,
        streams: &mut Wire<'_>,
        loading: &mut Visits,
    ) -> Result<(), RunError> {
        let now = streams.now();
        while let Some(event) = self.client.poll() {
            match event {
                ClientNews::Promised(stream, fields) => {
                    self.on_promise(streams, stream, &fields, loading)?;
                }
                ClientNews::Head(stream) => {
                    if let Some(Asked::Page(object)) = self.streams.get(&stream) {
                        loading.on_head(*object, now);
                    }
                    // The body may have come before.
                    let mut sink = sink(&self.streams, loading, now);
                    self.client.read(streams, stream, &mut sink);
                }
                ClientNews::Finished(stream) => {
                    self.scheme.on_closed(self.client.node(stream));
                    match self.streams.remove(&stream) {
                        Some(Asked::Page(object)) => {
                            if let Some(arrivals) = &self.arrivals
                                && let Some(object) = loading.object(object)
                            {
                                arrivals.ended(stream, object.response_bytes);
                            }
                            loading.on_complete(object, now)?;
                        }
                        Some(Asked::WarmUp) => self.warm_ups_open -= 1,
                        None => {}
                    }
                }
                ClientNews::Failed(reason) => return Err(failed(now, reason)),
            }
        }
        Ok(())
    }

    /// Takes an object that the load wants; it waits for the connection or a stream.
    /// Nothing is to be done for what was promised.
    pub(super) fn ask(&mut self, object: VisitObject) {
        if !self.promised.contains(&object) {
            self.waiting.push_back(Asked::Page(object));
        }
    }

    /// The server promised a response: the browser gives it a place, or does not want it.
    fn on_promise(
        &mut self,
        streams: &mut Wire<'_>,
        stream: StreamId,
        fields: &FieldList,
        loading: &mut Visits,
    ) -> Result<(), RunError> {
        let now = streams.now();
        let asked = match named(fields) {
            Some(Asked::Page(object)) if self.has_authority(object, loading) => object,
            _ => {
                self.client.decline(streams, stream, false);
                return Ok(());
            }
        };
        let known = self.streams.values().any(|other| *other == Asked::Page(asked));
        if known || !loading.on_promise(asked, now) {
            self.client.decline(streams, stream, true);
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.4.2
        //# Once a client receives a PUSH_PROMISE frame and chooses to accept the pushed response,
        //# the client SHOULD NOT issue any requests for the promised response until after the
        //# promised stream has closed.
        self.promised.insert(asked);
        self.streams.insert(stream, Asked::Page(asked));
        if let Some(arrivals) = &self.arrivals {
            arrivals.asked(stream, Asked::Page(asked));
        }
        let Some(facts) = loading.facts(asked) else { return Ok(()) };
        let signal = self.scheme.priority_for(&facts, self.client.node(stream));
        self.client.place(streams, stream, signal).map_err(|error| failed(now, error))
    }

    /// Whether the server of this connection has authority over the object.
    fn has_authority(&self, object: VisitObject, loading: &Visits) -> bool {
        let origin = loading.object(object).map(Object::origin);
        self.origin.as_deref().is_none_or(|own| origin.as_deref() == Some(own))
    }

    /// Whether [`Requests::send`] may have something to do.
    pub(super) fn has_work(&self, loading: &Visits) -> bool {
        (self.open && !self.waiting.is_empty()) || (self.awaits_layout && loading.is_laid_out())
    }

    /// Sends what can be sent of what was asked for.
    pub(super) fn send(
        &mut self,
        streams: &mut Wire<'_>,
        loading: &Visits,
    ) -> Result<(), RunError> {
        let now = streams.now();
        if self.awaits_layout && loading.is_laid_out() {
            self.awaits_layout = false;
            self.reprioritise(streams, loading).map_err(|error| failed(now, error))?;
        }
        while self.open
            && let Some(&purpose) = self.waiting.front()
        {
            match self.request(streams, purpose, loading) {
                Ok(()) => self.waiting.pop_front(),
                // Asked again when a response is complete, or the server allows more.
                Err(Refusal::NoStream) => return Ok(()),
                Err(Refusal::Failed(reason)) => return Err(failed(now, reason)),
            };
        }
        Ok(())
    }

    /// Layout has shown what is in view: images under way get another priority.
    fn reprioritise(&mut self, streams: &mut Wire<'_>, loading: &Visits) -> Result<(), String> {
        let visible = self.streams.iter().filter_map(|(&stream, &purpose)| match purpose {
            Asked::Page(object) if loading.is_visible(object) => Some((stream, object)),
            _ => None,
        });
        for (stream, object) in visible {
            let node = self.client.node(stream);
            let change =
                loading.facts(object).and_then(|facts| self.scheme.reprioritise(&facts, node));
            let Some(change) = change else { continue };
            self.client.reprioritise(streams, stream, change)?;
        }
        Ok(())
    }

    fn request(
        &mut self,
        streams: &mut Wire<'_>,
        purpose: Asked,
        loading: &Visits,
    ) -> Result<(), Refusal> {
        let object = match purpose {
            Asked::Page(id) => loading.object(id).zip(loading.facts(id)),
            Asked::WarmUp => None,
        };
        let facts =
            object.map_or_else(|| RequestFacts::of_kind(ObjectKind::Other), |(_, facts)| facts);
        let signal = self.scheme.priority_for(&facts, self.client.node(self.next_stream));
        let body = object.map_or(Bytes::ZERO, |(object, _)| object.request.body);
        let fields = self.fields(purpose, object.map(|(object, _)| object), signal);
        let stream = match self.client.request(streams, fields, !body.is_zero(), signal) {
            Ok(stream) => stream,
            Err(error) => {
                self.scheme.on_closed(self.client.node(self.next_stream));
                return Err(error);
            }
        };
        self.streams.insert(stream, purpose);
        if let Some(arrivals) = &self.arrivals {
            arrivals.asked(stream, purpose);
        }
        self.next_stream = self.client.next_stream(stream);
        if let Asked::Page(id) = purpose
            && !body.is_zero()
        {
            let parts = body_parts(id.object, Bytes::ZERO, body);
            self.client.send_body(streams, stream, parts).map_err(Refusal::Failed)?;
        }
        Ok(())
    }

    /// The head of a request for what `asked` names: `object`, or one that belongs to no page.
    fn fields(&self, asked: Asked, object: Option<&Object>, signal: Signal) -> FieldList {
        let mut fields = head(asked, object);
        let urgency = Urgency { level: signal.urgency, incremental: signal.incremental };
        let field = PriorityField::from(urgency);
        if self.client.priorities() == Priorities::Urgency && !field.is_empty() {
            fields.push(PRIORITY, field.to_string());
        }
        fields
    }
}

/// Takes the bytes of bodies to the page.
fn sink<'a>(
    purposes: &'a BTreeMap<StreamId, Asked>,
    loading: &'a mut Visits,
    now: Instant,
) -> impl FnMut(StreamId, &[u8]) + 'a {
    move |stream, data| {
        if let Some(Asked::Page(object)) = purposes.get(&stream) {
            loading.on_body(*object, data, now);
        }
    }
}

fn failed(at: Instant, reason: impl ToString) -> RunError {
    RunError::Http { end: End::Client, at, reason: reason.to_string() }
}
