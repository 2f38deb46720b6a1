//! The client's HTTP: requests with the browser's priorities, responses to the page load.

use std::collections::{BTreeMap, VecDeque};

use quipu_base::{Bytes, Instant, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2::{
    Body, Client, ClientEvent, FrameStreamId, Limits, Numbering, Request, RequestError,
    StreamPriority,
};
use quipu_http::priority::{PRIORITY, PriorityField};
use quipu_http::transport::quic::Carrier as _;
use quipu_policy::Urgency;
use quipu_quic::ConnectionEvent;
use quipu_web::page::{Object, ObjectKind};
use quipu_web::scheme::{
    BrowserScheme, Dependency, PhantomNode, RequestFacts, SchemeState, Signal,
};

use super::OBJECT_FIELD;
use super::arrivals::LineArrivals;
use super::asked::{Asked, VisitObject};
use super::error::RunError;
use super::visits::Visits;
use super::wire::{Wire, numbering};
use crate::pages::Bodies;
use quipu_record::End;
use quipu_scenario::{HttpVersion, Priorities, Scenario};

/// The requests of one connection.
pub(super) struct Requests {
    client: Client,
    open: bool,
    scheme: SchemeState,
    priorities: Priorities,
    /// Whether layout is still to change priorities.
    awaits_layout: bool,
    /// Whether layout changes priorities.
    reprioritises: bool,
    streams: BTreeMap<StreamId, Asked>,
    /// What waits for the connection or for a stream.
    waiting: VecDeque<Asked>,
    numbering: Numbering,
    /// The stream of the next request: priorities are drawn before it is opened.
    next_stream: StreamId,
    warm_ups_open: u32,
    /// Takes note of which stream carries what.
    arrivals: Option<LineArrivals>,
}

impl Requests {
    pub(super) fn new(browser: &BrowserScheme, scenario: &Scenario, http: HttpVersion) -> Requests {
        let numbering = numbering(http);
        let client = Client::new(Limits::default()).with_numbering(numbering);
        Requests {
            client: match scenario.priorities {
                Priorities::Tree => client,
                Priorities::Urgency => client.with_urgencies(),
            },
            open: false,
            scheme: browser.session(),
            priorities: scenario.priorities,
            awaits_layout: browser.reprioritises(),
            reprioritises: browser.reprioritises(),
            streams: BTreeMap::new(),
            waiting: VecDeque::new(),
            numbering,
            next_stream: numbering.first(),
            warm_ups_open: 0,
            arrivals: None,
        }
    }

    /// The same, telling `arrivals` which stream carries what.
    pub(super) fn told_to(self, arrivals: Option<LineArrivals>) -> Requests {
        Requests { arrivals, ..self }
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
                let groups: Vec<_> = phantoms.iter().filter_map(group).collect();
                self.client.start(streams, &groups).map_err(|error| failed(now, error))?;
                self.open = true;
            }
            ConnectionEvent::Closed(reason) => {
                let reason = reason.to_string();
                return Err(RunError::Closed { end: End::Client, at: now, reason });
            }
            event => {
                let mut sink = sink(&self.streams, loading, now);
                streams.pass_to_client(&mut self.client, &event, &mut sink);
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
                ClientEvent::ResponseHead { stream, .. } => {
                    if let Some(Asked::Page(object)) = self.streams.get(&stream) {
                        loading.on_head(*object, now);
                    }
                    // The body may have come before.
                    let mut sink = sink(&self.streams, loading, now);
                    self.client.on_stream_readable(streams, stream, &mut sink);
                }
                ClientEvent::ResponseFinished { stream } => {
                    self.scheme.on_closed(stream);
                    match self.streams.remove(&stream) {
                        Some(Asked::Page(object)) => loading.on_complete(object, now)?,
                        Some(Asked::WarmUp) => self.warm_ups_open -= 1,
                        None => {}
                    }
                }
                ClientEvent::ResponseFailed { stream, failure } => {
                    return Err(failed(now, format!("{stream}: {failure}")));
                }
                ClientEvent::ConnectionFailed(error) => return Err(failed(now, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes an object that the load wants; it waits for the connection or a stream.
    pub(super) fn ask(&mut self, object: VisitObject) {
        self.waiting.push_back(Asked::Page(object));
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
                Err(RequestError::NoStream) => return Ok(()),
                Err(error) => return Err(failed(now, error)),
            };
        }
        Ok(())
    }

    /// Layout has shown what is in view: images under way get another priority.
    fn reprioritise(
        &mut self,
        streams: &mut Wire<'_>,
        loading: &Visits,
    ) -> Result<(), RequestError> {
        let visible = self.streams.iter().filter_map(|(&stream, &purpose)| match purpose {
            Asked::Page(object) if loading.is_visible(object) => Some((stream, object)),
            _ => None,
        });
        for (stream, object) in visible {
            let change =
                loading.facts(object).and_then(|facts| self.scheme.reprioritise(&facts, stream));
            let Some(change) = change else { continue };
            match (self.priorities, change.urgency) {
                (Priorities::Tree, _) => {
                    for (moved, place) in change.places {
                        let node = FrameStreamId::try_from(moved).unwrap_or_default();
                        self.client.prioritise(streams, node, priority(place))?;
                    }
                }
                (Priorities::Urgency, Some((level, incremental))) => {
                    let urgency = Urgency { level, incremental };
                    self.client.update_priority(streams, stream, urgency)?;
                }
                (Priorities::Urgency, None) => {}
            }
        }
        Ok(())
    }

    fn request(
        &mut self,
        streams: &mut Wire<'_>,
        purpose: Asked,
        loading: &Visits,
    ) -> Result<(), RequestError> {
        let object = match purpose {
            Asked::Page(id) => loading.object(id).zip(loading.facts(id)),
            Asked::WarmUp => None,
        };
        let facts =
            object.map_or_else(|| RequestFacts::of_kind(ObjectKind::Other), |(_, facts)| facts);
        let signal = self.scheme.priority_for(&facts, self.next_stream);
        let body = object.map_or(Bytes::ZERO, |(object, _)| object.request.body);
        let request = Request {
            fields: self.fields(purpose, object.map(|(object, _)| object), body, signal),
            body: if body.is_zero() { Body::Empty } else { Body::Streamed },
            priority: Some(priority(signal.into())),
        };
        let stream = match self.client.request(streams, request) {
            Ok(stream) => stream,
            Err(error) => {
                self.scheme.on_closed(self.next_stream);
                return Err(error);
            }
        };
        self.streams.insert(stream, purpose);
        if let Some(arrivals) = &self.arrivals {
            arrivals.asked(stream, purpose);
        }
        self.next_stream = self.numbering.next(stream);
        if let Asked::Page(id) = purpose
            && !body.is_zero()
        {
            let sent = Bodies::slice(id.object, Bytes::ZERO, body)
                .try_for_each(|part| self.client.send_body(streams, stream, part))
                .and_then(|()| self.client.finish(streams, stream));
            sent.map_err(|_| RequestError::NotOpen)?;
        }
        Ok(())
    }

    /// The head of a request for what `asked` names: `object`, or one that belongs to no page.
    fn fields(
        &self,
        asked: Asked,
        object: Option<&Object>,
        body: Bytes,
        signal: Signal,
    ) -> FieldList {
        let method = if body.is_zero() { "GET" } else { "POST" };
        let (host, path) =
            object.map_or(("page.test", "/"), |object| (object.host(), object.path()));
        let mut fields = FieldList::new()
            .with(":method", method)
            .with(":scheme", "https")
            .with(":authority", host)
            .with(":path", path);
        fields.push(OBJECT_FIELD, asked.to_string());
        if !body.is_zero() {
            fields.push("content-length", body.0.to_string());
        }
        let urgency = Urgency { level: signal.urgency, incremental: signal.incremental };
        let field = PriorityField::from(urgency);
        if self.priorities == Priorities::Urgency && !field.is_empty() {
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

fn priority(place: Dependency) -> StreamPriority {
    StreamPriority {
        parent: FrameStreamId::try_from(place.parent).unwrap_or_default(),
        weight: place.weight,
        exclusive: place.exclusive,
    }
}

/// A node that never carries data.
fn group(phantom: &PhantomNode) -> Option<(FrameStreamId, StreamPriority)> {
    let id = FrameStreamId::try_from(phantom.id).ok()?;
    let parent = FrameStreamId::try_from(phantom.parent).ok()?;
    Some((id, StreamPriority { parent, weight: phantom.weight, exclusive: false }))
}
