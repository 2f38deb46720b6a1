//! The server: answers each request after the object's think time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, Role, StreamId};
use quipu_http::byte_stream::Mux;
use quipu_http::field::FieldList;
use quipu_http::transport::quic::Carrier as _;
use quipu_quic::ConnectionEvent;
use quipu_sim::Outgoing;
use quipu_web::load::WARM_UP_BYTES;
use quipu_web::page::{Object, ObjectId, Page};

use super::application::Application;
use super::asked::{Asked, VisitObject, head, named};
use super::engine::ConnectionPlan;
use super::error::{RunError, SetupError};
use super::http::{ServerEnd, ServerNews};
use super::instruments::Setting;
use super::pairs::PageLine;
use super::party::Party;
use super::wire::{Wire, mux};
use crate::pages::{PageLoadError, body_parts};
use quipu_record::End;

/// Where the bytes of such an object are taken from: no page has so many objects.
const WARM_UP_BODY: ObjectId = ObjectId(u32::MAX);

/// A server that has the pages of a session.
pub(super) struct Site {
    party: Party,
    /// What HTTP puts into the one byte stream, if that carries it.
    mux: Option<Mux>,
    http: ServerEnd,
    pages: Vec<Arc<Page>>,
    /// What is pushed with each of them.
    pushed: Vec<Vec<ObjectId>>,
    /// Objects asked for whose request is not complete.
    asked: BTreeMap<StreamId, Asked>,
    /// Objects that the server thinks about: when it answers, in order of asking.
    thinking: BinaryHeap<Reverse<(Instant, u64, StreamId, Asked)>>,
    sequence: u64,
    /// Bytes that are written to a stream at a time.
    chunk: Bytes,
    /// Responses of which something is still to be written.
    writing: BTreeMap<StreamId, Writing>,
}

/// A response that is written in chunks, the next when the one before was sent.
struct Writing {
    object: ObjectId,
    written: Bytes,
    len: Bytes,
}

impl Site {
    /// The server of one connection.
    pub(super) fn new(setting: Setting<'_>, line: PageLine) -> Result<Site, SetupError> {
        let Setting { plan, cell, .. } = setting;
        let pages = (0..plan.scenario.session)
            .map(|visit| Ok(plan.visit_of(cell, line.client, visit)?.page))
            .collect::<Result<Vec<Arc<Page>>, PageLoadError>>()?;
        Ok(Site {
            party: ConnectionPlan::of_page(setting, line).server()?,
            mux: mux(setting, line, Role::Server)?,
            http: ServerEnd::new(&plan.scenario, setting.http()),
            pushed: pages.iter().map(|page| plan.scenario.pushed(page)).collect(),
            pages,
            asked: BTreeMap::new(),
            thinking: BinaryHeap::new(),
            sequence: 0,
            chunk: plan.scenario.transport.server_write_chunk.unwrap_or(Bytes::MAX),
            writing: BTreeMap::new(),
        })
    }

    /// Lets bodies go into the byte stream; true if some did.
    fn fill(&mut self, now: Instant) -> bool {
        let Some(mux) = &mut self.mux else { return false };
        let Some((connection, _)) = self.party.parts(0) else { return false };
        let mut wire = Wire::new(connection, Some(mux), now);
        let filled = wire.fill();
        if filled && let Some(server) = self.http.h2() {
            wire.tell_delivered(server);
        }
        filled
    }

    /// What HTTP puts into the one byte stream, if that carries it.
    pub(super) fn mux(&self) -> Option<&Mux> {
        self.mux.as_ref()
    }

    /// Bytes of responses that are still to be written.
    fn unwritten(&self) -> Bytes {
        self.writing.values().fold(Bytes::ZERO, |sum, body| sum + (body.len - body.written))
    }
}

impl Application for Site {
    fn party(&self) -> &Party {
        &self.party
    }

    fn party_mut(&mut self) -> &mut Party {
        &mut self.party
    }

    fn act(&mut self, now: Instant) -> Result<(), RunError> {
        let Some((connection, _)) = self.party.parts(0) else { return Ok(()) };
        let mut streams = Wire::new(connection, self.mux.as_mut(), now);
        let mut answers = Answers {
            pages: &self.pages,
            pushed: &self.pushed,
            asked: &mut self.asked,
            thinking: &mut self.thinking,
            sequence: &mut self.sequence,
            chunk: self.chunk,
            writing: &mut self.writing,
        };
        self.http.handle_timeout(&mut streams, now);
        while let Some(event) = streams.connection().poll() {
            on_event(&mut self.http, &mut streams, event, &mut answers)?;
        }
        while let Some(stream) = streams.poll_drained() {
            answers
                .write(&mut self.http, &mut streams, stream)
                .map_err(|error| failed(now, error))?;
        }
        while let Some((stream, asked)) = answers.due(now) {
            answers
                .respond(&mut self.http, &mut streams, stream, asked)
                .map_err(|error| failed(now, error))?;
        }
        Ok(())
    }

    fn next_at(&self) -> Option<Instant> {
        let answer = self.thinking.peek().map(|Reverse((at, ..))| *at);
        Instant::earlier(self.http.poll_timeout(), answer)
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.fill(now);
        loop {
            self.party.poll_transmit(now, out);
            let unwritten = self.unwritten();
            if self.has_failed() {
                return;
            }
            if !unwritten.is_zero() {
                self.drive(now);
            }
            let filled = self.fill(now);
            if !filled && self.unwritten() == unwritten {
                return;
            }
        }
    }
}

/// What will be answered when.
struct Answers<'a> {
    pages: &'a [Arc<Page>],
    pushed: &'a [Vec<ObjectId>],
    asked: &'a mut BTreeMap<StreamId, Asked>,
    thinking: &'a mut BinaryHeap<Reverse<(Instant, u64, StreamId, Asked)>>,
    sequence: &'a mut u64,
    chunk: Bytes,
    writing: &'a mut BTreeMap<StreamId, Writing>,
}

impl Answers<'_> {
    /// The request on `stream` is complete: with the main document, all that is pushed is promised.
    fn take(
        &mut self,
        http: &mut ServerEnd,
        streams: &mut Wire<'_>,
        stream: StreamId,
    ) -> Result<(), RunError> {
        let now = streams.now();
        let Some(asked) = self.asked.remove(&stream) else { return Ok(()) };
        self.think(stream, asked, now);
        if let Asked::Page(VisitObject { visit, object }) = asked
            && let Some(index) = usize::try_from(visit).ok()
            && let Some((page, pushed)) = self.pages.get(index).zip(self.pushed.get(index))
            && page.main_document() == object
        {
            for &object in pushed {
                let asked = Asked::Page(VisitObject { visit, object });
                let promised = http.push(streams, stream, &head(asked, page.object(object)));
                match promised.map_err(|error| failed(now, error))? {
                    Some(promised) => self.think(promised, asked, now),
                    // The client takes no more at a time; it will ask.
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// What was asked for or promised is answered after its think time.
    fn think(&mut self, stream: StreamId, asked: Asked, now: Instant) {
        let think_time = self.object(asked).map_or(Duration::ZERO, |object| object.think_time);
        self.thinking.push(Reverse((now + think_time, *self.sequence, stream, asked)));
        *self.sequence += 1;
    }

    /// What is asked for, if it is on a page.
    fn object(&self, asked: Asked) -> Option<&Object> {
        let Asked::Page(VisitObject { visit, object }) = asked else { return None };
        self.pages.get(usize::try_from(visit).ok()?)?.object(object)
    }

    /// The next answer that is due.
    fn due(&mut self, now: Instant) -> Option<(StreamId, Asked)> {
        let Reverse((at, ..)) = self.thinking.peek()?;
        if *at > now {
            return None;
        }
        self.thinking.pop().map(|Reverse((_, _, stream, asked))| (stream, asked))
    }

    /// Answers a request with the head and the first chunk of the body.
    fn respond(
        &mut self,
        http: &mut ServerEnd,
        streams: &mut Wire<'_>,
        stream: StreamId,
        asked: Asked,
    ) -> Result<(), String> {
        let spec = self.object(asked);
        let object = spec.map_or(WARM_UP_BODY, |object| object.id);
        let len = spec.map_or(WARM_UP_BYTES, |object| object.response_bytes);
        let fields =
            FieldList::new().with(":status", "200").with("content-length", len.0.to_string());
        http.respond(streams, stream, &fields, !len.is_zero())?;
        if len.is_zero() {
            return Ok(());
        }
        self.writing.insert(stream, Writing { object, written: Bytes::ZERO, len });
        self.write(http, streams, stream)
    }

    /// Writes the next chunk of a response, and its end with the last.
    fn write(
        &mut self,
        http: &mut ServerEnd,
        streams: &mut Wire<'_>,
        stream: StreamId,
    ) -> Result<(), String> {
        let Some(body) = self.writing.get_mut(&stream) else { return Ok(()) };
        let len = self.chunk.min(body.len - body.written);
        let parts = body_parts(body.object, body.written, len);
        body.written += len;
        let last = body.written == body.len;
        if last {
            self.writing.remove(&stream);
        }
        http.send_body(streams, stream, parts, last)
    }
}

fn on_event(
    http: &mut ServerEnd,
    streams: &mut Wire<'_>,
    event: ConnectionEvent,
    answers: &mut Answers<'_>,
) -> Result<(), RunError> {
    let now = streams.now();
    match event {
        ConnectionEvent::Closed(reason) => {
            let reason = reason.to_string();
            return Err(RunError::Closed { end: End::Server, at: now, reason });
        }
        ConnectionEvent::Drained(stream) => {
            answers.write(http, streams, stream).map_err(|error| failed(now, error))?;
        }
        event => http.pass(streams, &event),
    }
    while let Some(event) = http.poll() {
        match event {
            ServerNews::Head(stream, fields, end_stream) => {
                let asked = named(&fields)
                    .ok_or_else(|| failed(now, format!("{stream} asks for no object")))?;
                answers.asked.insert(stream, asked);
                if end_stream {
                    answers.take(http, streams, stream)?;
                }
                // The end or the body may have come before.
                http.read(streams, stream);
            }
            ServerNews::Finished(stream) => answers.take(http, streams, stream)?,
            ServerNews::Stopped(stream) => {
                answers.writing.remove(&stream);
                answers.thinking.retain(|Reverse((_, _, other, _))| *other != stream);
            }
            ServerNews::Failed(reason) => return Err(failed(now, reason)),
        }
    }
    Ok(())
}

fn failed(at: Instant, reason: impl ToString) -> RunError {
    RunError::Http { end: End::Server, at, reason: reason.to_string() }
}
