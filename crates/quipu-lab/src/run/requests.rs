//! The client's HTTP: requests with the browser's priorities, responses to the page load.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quipu_base::{Bytes, Instant, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2::{
    Body, Client, ClientEvent, ErrorCode, FrameStreamId, Limits, Numbering, Request, RequestError,
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

use super::arrivals::LineArrivals;
use super::asked::{Asked, VisitObject, head, named};
use super::error::RunError;
use super::visits::Visits;
use super::wire::{Wire, numbering};
use crate::pages::body_parts;
use quipu_record::End;
use quipu_scenario::{HttpVersion, Priorities, Push, Scenario};

/// Pushed responses that the browser takes at a time: our choice, more than the objects of any page that comes
/// with the program. What is beyond is requested.
const MOST_PUSHED: u32 = 1_000;

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
    /// The origin of the server; `None` if it has all of them.
    origin: Option<Arc<str>>,
    /// What the server promised.
    promised: BTreeSet<VisitObject>,
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
        let client = match scenario.push {
            Push::None => client,
            _ => client.with_push(MOST_PUSHED),
        };
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
            origin: None,
            promised: BTreeSet::new(),
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
                ClientEvent::Promised { stream, fields, .. } => {
                    self.on_promise(streams, stream, &fields, loading)?;
                }
                ClientEvent::ResponseHead { stream, .. } => {
                    if let Some(Asked::Page(object)) = self.streams.get(&stream) {
                        loading.on_head(*object, now);
                    }
                    // The body may have come before.
                    let mut sink = sink(&self.streams, loading, now);
                    self.client.on_stream_readable(streams, stream, &mut sink);
                }
                ClientEvent::ResponseFinished { stream } => {
                    self.scheme.on_closed(node(stream, self.numbering));
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
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.4
            //# A client MUST treat a PUSH_PROMISE for which the server is not authoritative as a
            //# stream error (Section 5.4.2) of type PROTOCOL_ERROR.
            _ => {
                self.client.cancel(streams, stream, ErrorCode::PROTOCOL_ERROR);
                return Ok(());
            }
        };
        let known = self.streams.values().any(|other| *other == Asked::Page(asked));
        if known || !loading.on_promise(asked, now) {
            self.client.cancel(streams, stream, ErrorCode::CANCEL);
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
        let node = node(stream, self.numbering);
        let signal = self.scheme.priority_for(&facts, node);
        let told = match self.priorities {
            Priorities::Tree => {
                let node = FrameStreamId::try_from(node).unwrap_or_default();
                self.client.prioritise(streams, node, priority(signal.into()))
            }
            Priorities::Urgency => {
                let urgency = Urgency { level: signal.urgency, incremental: signal.incremental };
                self.client.update_priority(streams, stream, urgency)
            }
        };
        told.map_err(|error| failed(now, error))
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
        let numbering = self.numbering;
        let visible = self.streams.iter().filter_map(|(&stream, &purpose)| match purpose {
            Asked::Page(object) if loading.is_visible(object) => Some((stream, object)),
            _ => None,
        });
        for (stream, object) in visible {
            let change = loading
                .facts(object)
                .and_then(|facts| self.scheme.reprioritise(&facts, node(stream, numbering)));
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
            fields: self.fields(purpose, object.map(|(object, _)| object), signal),
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
            let sent = body_parts(id.object, Bytes::ZERO, body)
                // Connections of the laboratory take all that is written.
                .try_for_each(|part| self.client.send_body(streams, stream, part).map(|_| ()))
                .and_then(|()| self.client.finish(streams, stream));
            sent.map_err(|_| RequestError::NotOpen)?;
        }
        Ok(())
    }

    /// The head of a request for what `asked` names: `object`, or one that belongs to no page.
    fn fields(&self, asked: Asked, object: Option<&Object>, signal: Signal) -> FieldList {
        let mut fields = head(asked, object);
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

/// What frames, and the browser's scheme, call a stream.
fn node(stream: StreamId, numbering: Numbering) -> StreamId {
    let id = FrameStreamId::of(stream, numbering);
    id.map_or(stream, |id| StreamId(u64::from(id.value())))
}

/// A node that never carries data.
fn group(phantom: &PhantomNode) -> Option<(FrameStreamId, StreamPriority)> {
    let id = FrameStreamId::try_from(phantom.id).ok()?;
    let parent = FrameStreamId::try_from(phantom.parent).ok()?;
    Some((id, StreamPriority { parent, weight: phantom.weight, exclusive: false }))
}
