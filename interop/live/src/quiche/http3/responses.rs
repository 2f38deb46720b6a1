//! The server's end of a connection: answers requests, in the order of their priorities.

use std::collections::BTreeMap;

use bytes::Bytes;
use quiche::h3::{Config, Connection, Error, Event, Header, Priority};
use quiche::{Connection as Transport, Shutdown};
use quipu_interop_live::http3::{self, GOAWAY_AFTER};
use quipu_interop_live::{Case, Failure, Options, facts};

use crate::convert;
use crate::messages::{Progress, Received, Unsent, halted};
use crate::server::Protocol;

/// Urgencies of RFC 9218 are these of quiche's streams, less this much.
const URGENCY_OFFSET: u8 = 124;

/// Of a request that says nothing. <https://www.rfc-editor.org/rfc/rfc9218#section-4.1>
const URGENCY: u8 = 3;

pub(crate) struct Responses {
    http: Option<Connection>,
    requests: BTreeMap<u64, Received>,
    responses: BTreeMap<u64, Response>,
    count: usize,
    /// GOAWAY is to be sent.
    goes_away: bool,
}

struct Response {
    urgency: u8,
    /// Not sent yet.
    head: Option<Vec<Header>>,
    unsent: Unsent,
}

impl Protocol for Responses {
    fn new() -> Self {
        let (requests, responses) = (BTreeMap::new(), BTreeMap::new());
        Responses { http: None, requests, responses, count: 0, goes_away: false }
    }

    fn serve(&mut self, options: &Options, transport: &mut Transport) -> Result<(), Failure> {
        let mut http = match self.http.take() {
            Some(http) => http,
            None => Connection::with_transport(transport, &Config::new()?)?,
        };
        let mut updates = Vec::new();
        loop {
            match http.poll(transport) {
                Ok((stream, Event::PriorityUpdate)) => updates.push(stream),
                Ok((stream, event)) => self.take(options, &mut http, transport, stream, event)?,
                Err(Error::Done) => break,
                // The connection is closed by quiche.
                Err(error) => {
                    facts::tell("failed", error);
                    return Ok(());
                }
            }
        }
        for stream in updates {
            if let Ok(field) = http.take_last_priority_update(stream) {
                facts::tell("priority_update", 1);
                let urgency = urgency(&field);
                if let Some(response) = self.responses.get_mut(&stream) {
                    response.urgency = urgency;
                }
                transport.stream_priority(stream, urgency + URGENCY_OFFSET, false)?;
            }
        }
        if self.goes_away {
            // With the first request that is not processed. There may be no room for it now.
            match http.send_goaway(transport, 4 * GOAWAY_AFTER as u64) {
                Ok(()) => {
                    facts::tell("goaway_sent", 1);
                    self.goes_away = false;
                }
                Err(Error::StreamBlocked) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.advance(&mut http, transport)?;
        self.http = Some(http);
        Ok(())
    }

    fn end(&self) {
        facts::tell("requests", self.count);
    }
}

impl Responses {
    fn take(
        &mut self,
        options: &Options,
        http: &mut Connection,
        transport: &mut Transport,
        stream: u64,
        event: Event,
    ) -> Result<(), Failure> {
        match event {
            Event::Headers { list, .. } => {
                self.requests.entry(stream).or_default().take_fields(list);
            }
            Event::Data => {
                self.requests.entry(stream).or_default().read(http, transport, stream)?;
            }
            Event::Finished => {
                let Some(request) = self.requests.remove(&stream) else { return Ok(()) };
                self.count += 1;
                self.goes_away |= options.case == Case::Http3GoAway && self.count == GOAWAY_AFTER;
                match respond(options, request) {
                    Ok(response) => {
                        self.responses.insert(stream, response);
                    }
                    Err(error) => {
                        facts::tell("answer_failed", error);
                        transport.stream_shutdown(stream, Shutdown::Write, 1)?;
                    }
                }
            }
            Event::Reset(code) => {
                facts::tell("reset", format_args!("{code:#x}"));
                self.requests.remove(&stream);
            }
            Event::GoAway | Event::PriorityUpdate => {}
        }
        Ok(())
    }

    /// Sends as much of the responses as there is room for. quiche takes no more than the congestion window
    /// allows, so that the order here decides.
    fn advance(&mut self, http: &mut Connection, transport: &mut Transport) -> Result<(), Failure> {
        let mut over = Vec::new();
        let mut waiting: Vec<_> = self.responses.iter_mut().collect();
        waiting.sort_by_key(|(_, response)| response.urgency);
        for (stream, response) in waiting {
            match response.advance(http, transport, *stream)? {
                Progress::Done => over.push(*stream),
                Progress::Blocked => {}
                Progress::Stopped(code) => {
                    facts::tell("stopped", format_args!("{code:#x}"));
                    // It may be reset already.
                    let _ = transport.stream_shutdown(*stream, Shutdown::Write, code);
                    over.push(*stream);
                }
            }
        }
        for stream in over {
            self.responses.remove(&stream);
        }
        Ok(())
    }
}

impl Response {
    fn advance(
        &mut self,
        http: &mut Connection,
        transport: &mut Transport,
        stream: u64,
    ) -> Result<Progress, Failure> {
        if let Some(head) = &self.head {
            let (priority, is_all) = (Priority::new(self.urgency, false), self.unsent.is_empty());
            let sent = http.send_response_with_priority(transport, stream, head, &priority, is_all);
            if let Err(error) = sent {
                return halted(error);
            }
            self.head = None;
        }
        self.unsent.advance(http, transport, stream)
    }
}

fn respond(options: &Options, request: Received) -> Result<Response, Failure> {
    let head = request.head.ok_or("a request has no head")?;
    let trailers = request.trailers.as_deref().map(convert::to_map).transpose()?;
    facts::tell("request_trailers", u8::from(trailers.is_some()));
    let request = convert::to_request(&head, Bytes::from(request.body))?;
    let field = request.headers().get("priority").map(|value| value.as_bytes());
    let urgency = field.map_or(URGENCY, urgency);
    let answer = http3::answer(options.case, &options.www, request, trailers)?;
    let head = Some(convert::of_response(&answer.response));
    let trailers = answer.trailers.as_ref().map(convert::of_map);
    Ok(Response { urgency, head, unsent: Unsent { body: answer.response.into_body(), trailers } })
}

/// The urgency of a priority field of these tests, which has no more than `u`.
fn urgency(field: &[u8]) -> u8 {
    match field {
        [b'u', b'=', digit @ b'0'..=b'7'] => digit - b'0',
        _ => URGENCY,
    }
}
