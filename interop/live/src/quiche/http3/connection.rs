//! The client's end of a connection.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use quiche::h3::{Config, Connection, Error, Event, Priority};
use quiche::{Connection as Transport, Shutdown};
use quipu_interop_live::http3::{Ask, GoneAway, REQUEST_CANCELLED};
use quipu_interop_live::{Failure, facts};
use tokio::sync::{mpsc, oneshot};

use crate::convert;
use crate::messages::{Progress, Received, Unsent};
use crate::sockets::Sockets;

/// A ticket that has not come by then does not come, nor does the end of a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// A response, and whether its request was cancelled.
type Answered = Result<(Received, bool), Failure>;

/// What a client wants.
pub(crate) enum Command {
    /// A request, and who waits for its response.
    Ask(Box<Ask>, oneshot::Sender<Answered>),
    /// The end of the connection, in due time.
    Close { needs_ticket: bool },
}

/// A connection, its requests, and the clients' commands.
pub(crate) struct Driver {
    sockets: Sockets,
    transport: Transport,
    http: Option<Connection>,
    commands: mpsc::UnboundedReceiver<Command>,
    unasked: VecDeque<(Box<Ask>, oneshot::Sender<Answered>)>,
    asked: BTreeMap<u64, Asked>,
}

struct Asked {
    unsent: Unsent,
    received: Received,
    stop_after: Option<usize>,
    answer: oneshot::Sender<Answered>,
}

impl Driver {
    pub(crate) fn new(
        sockets: Sockets,
        transport: Transport,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        let (unasked, asked) = (VecDeque::new(), BTreeMap::new());
        Driver { sockets, transport, http: None, commands, unasked, asked }
    }

    /// Runs until a client closes the connection, and returns the session for the next one.
    pub(crate) async fn run(mut self) -> Result<Option<Vec<u8>>, Failure> {
        // The first flight, before which 0-RTT has no keys.
        self.sockets.flush(&mut self.transport).await?;
        loop {
            self.advance()?;
            self.sockets.flush(&mut self.transport).await?;
            if self.transport.is_closed() || self.transport.is_draining() {
                let by_peer = self.transport.peer_error();
                let by_us = self.transport.local_error();
                return Err(
                    format!("the connection ended: peer {by_peer:?}, local {by_us:?}").into()
                );
            }
            let deadline = self.transport.timeout_instant();
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Ask(ask, answer)) => self.unasked.push_back((ask, answer)),
                    Some(Command::Close { needs_ticket }) => return self.close(needs_ticket).await,
                    None => return self.close(false).await,
                },
                waited = self.sockets.wait(deadline) => waited?,
            }
            self.receive()?;
        }
    }

    /// Has the connection act on datagrams and deadlines.
    fn receive(&mut self) -> Result<(), Failure> {
        while let Some((datagram, info)) = self.sockets.receive()? {
            match self.transport.recv(datagram, info) {
                Ok(_) | Err(quiche::Error::Done) => {}
                Err(error) => eprintln!("a datagram of {} B: {error}", datagram.len()),
            }
        }
        if self.transport.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.transport.on_timeout();
        }
        Ok(())
    }

    /// Sends requests, and takes what has come of responses.
    fn advance(&mut self) -> Result<(), Failure> {
        if self.http.is_none()
            && (self.transport.is_established() || self.transport.is_in_early_data())
        {
            self.http = Some(Connection::with_transport(&mut self.transport, &Config::new()?)?);
        }
        let Some(mut http) = self.http.take() else { return Ok(()) };
        self.take(&mut http)?;
        self.ask(&mut http)?;
        for (stream, asked) in &mut self.asked {
            // A server that wants no more of a request answers it all the same.
            let _: Progress = asked.unsent.advance(&mut http, &mut self.transport, *stream)?;
        }
        self.http = Some(http);
        Ok(())
    }

    /// Sends as many requests as the server allows at once.
    fn ask(&mut self, http: &mut Connection) -> Result<(), Failure> {
        while self.transport.peer_streams_left_bidi() > 0 {
            let Some((ask, answer)) = self.unasked.pop_front() else { break };
            let head = convert::of_request(&ask.request);
            let trailers = ask.trailers.as_ref().map(convert::of_map);
            let unsent = Unsent { body: ask.request.body().clone(), trailers };
            match http.send_request(&mut self.transport, &head, unsent.is_empty()) {
                Ok(stream) => {
                    if let Some(urgency) = ask.update {
                        let priority = Priority::new(urgency, false);
                        http.send_priority_update_for_request(
                            &mut self.transport,
                            stream,
                            &priority,
                        )?;
                        facts::tell("priority_update", 1);
                    }
                    let (received, stop_after) = (Received::default(), ask.stop_after);
                    self.asked.insert(stream, Asked { unsent, received, stop_after, answer });
                }
                // What it says after GOAWAY.
                Err(Error::FrameUnexpected) => {
                    let _ = answer.send(Err(GoneAway.into()));
                }
                Err(Error::StreamBlocked) => {
                    self.unasked.push_front((ask, answer));
                    break;
                }
                Err(error) => {
                    let _ = answer.send(Err(error.into()));
                }
            }
        }
        Ok(())
    }

    /// Takes what has come.
    fn take(&mut self, http: &mut Connection) -> Result<(), Failure> {
        loop {
            let (stream, event) = match http.poll(&mut self.transport) {
                Ok(event) => event,
                Err(Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let Some(asked) = self.asked.get_mut(&stream) else { continue };
            let mut is_cancelled = false;
            let over = match event {
                Event::Headers { list, .. } => {
                    asked.received.take_fields(list);
                    None
                }
                Event::Data => {
                    asked.received.read(http, &mut self.transport, stream)?;
                    let received = asked.received.body.len();
                    is_cancelled = asked.stop_after.is_some_and(|limit| received >= limit);
                    is_cancelled.then_some(None)
                }
                Event::Finished => Some(None),
                Event::Reset(code) => Some(Some(format!("the server reset it with {code:#x}"))),
                Event::PriorityUpdate | Event::GoAway => None,
            };
            if is_cancelled {
                self.transport.stream_shutdown(stream, Shutdown::Read, REQUEST_CANCELLED)?;
            }
            if let Some(failure) = over
                && let Some(asked) = self.asked.remove(&stream)
            {
                let answer = match failure {
                    Some(failure) => Err(failure.into()),
                    None => Ok((asked.received, is_cancelled)),
                };
                let _ = asked.answer.send(answer);
            }
        }
    }

    /// Closes, if need be once a ticket came, and waits until the server was told.
    async fn close(&mut self, needs_ticket: bool) -> Result<Option<Vec<u8>>, Failure> {
        let begin = Instant::now();
        while needs_ticket && self.transport.session().is_none() && begin.elapsed() < PATIENCE {
            self.step().await?;
        }
        facts::tell("resumed", u8::from(self.transport.is_resumed()));
        let session = self.transport.session().map(<[u8]>::to_vec);
        self.transport.close(true, 0x100, b"")?;
        let begin = Instant::now();
        while !self.transport.is_closed() && begin.elapsed() < PATIENCE {
            self.step().await?;
        }
        Ok(session)
    }

    async fn step(&mut self) -> Result<(), Failure> {
        self.sockets.flush(&mut self.transport).await?;
        self.sockets.wait(self.transport.timeout_instant()).await?;
        self.receive()
    }
}
