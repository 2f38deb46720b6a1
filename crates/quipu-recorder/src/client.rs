//! The DevTools protocol, <https://chromedevtools.github.io/devtools-protocol/>: commands and answers, and events, over
//! one web socket. Pages have sessions in it.
//!
//! Messages are JSON values: crates that are generated from the protocol take minutes of each build, and know one
//! version of it.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

use crate::RecordError;

/// How long one wait for the socket is, between looks at whether to stop.
const TICK: Duration = Duration::from_millis(25);

/// How long the browser may take to answer to a command.
const ANSWER: Duration = Duration::from_secs(20);

/// The largest message, in bytes; a part of a trace has some hundred thousand.
const MOST_BYTES: usize = 512 << 20;

/// Something that the browser tells unasked.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) method: String,
    /// The page or frame that it is of.
    pub(crate) session: Option<String>,
    pub(crate) params: Value,
}

/// A connection to a browser.
pub(crate) struct Client<'s> {
    socket: WebSocket<TcpStream>,
    stop: &'s AtomicBool,
    last_id: u64,
    events: VecDeque<Event>,
}

impl<'s> Client<'s> {
    /// Connects to the browser that listens at `port` of this machine.
    pub(crate) fn connect(
        port: u16,
        path: &str,
        stop: &'s AtomicBool,
    ) -> Result<Client<'s>, RecordError> {
        let lost = |message: String| RecordError::Lost { message };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, ANSWER)
            .map_err(|error| lost(error.to_string()))?;
        // Waits for the whole answer, and a browser that gives none is lost.
        let set_up = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER)));
        set_up.map_err(|error| lost(error.to_string()))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MOST_BYTES))
            .max_frame_size(Some(MOST_BYTES));
        let url = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(config))
            .map_err(|error| lost(error.to_string()))?;
        let ticks = socket.get_ref().set_read_timeout(Some(TICK));
        ticks.map_err(|error| lost(error.to_string()))?;
        Ok(Client { socket, stop, last_id: 0, events: VecDeque::new() })
    }

    /// Sends a command and does not wait for the answer. Gives its number.
    pub(crate) fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<u64, RecordError> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.socket
            .send(Message::text(message.to_string()))
            .map_err(|error| RecordError::Lost { message: error.to_string() })?;
        Ok(self.last_id)
    }

    /// Sends a command and waits for what it gives. Events meanwhile are kept.
    pub(crate) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, RecordError> {
        let id = self.send(session, method, params)?;
        let deadline = Instant::now() + ANSWER;
        while Instant::now() < deadline {
            let Some(mut message) = self.receive()? else { continue };
            if message["id"].as_u64() == Some(id) {
                if let Some(error) = message.get("error") {
                    let message = error["message"].as_str().unwrap_or("no reason given").to_owned();
                    return Err(RecordError::Refused { method: method.to_owned(), message });
                }
                return Ok(message["result"].take());
            }
            self.events.extend(event(message));
        }
        Err(RecordError::NoAnswer { method: method.to_owned() })
    }

    /// What the browser tells next: an event, or an answer to a command that nobody waited for, whose method is then
    /// empty. `None` if nothing came for a while.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, RecordError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        Ok(self.receive()?.map(|mut message| {
            event(message.take()).unwrap_or_else(|answer| Event {
                method: String::new(),
                session: None,
                params: answer,
            })
        }))
    }

    /// One message, if one is there soon.
    fn receive(&mut self) -> Result<Option<Value>, RecordError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RecordError::Interrupted);
        }
        match self.socket.read() {
            Ok(Message::Text(text)) => serde_json::from_str(text.as_str())
                .map(Some)
                .map_err(|error| RecordError::Lost { message: error.to_string() }),
            Ok(_) => Ok(None),
            Err(tungstenite::Error::Io(error))
                if matches!(
                    error.kind(),
                    // The last is a signal, such as Ctrl-C, which is looked at next time.
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(RecordError::Lost { message: error.to_string() }),
        }
    }
}

/// The event that `message` is; the message itself if it is none.
fn event(mut message: Value) -> Result<Event, Value> {
    let Some(method) = message["method"].as_str() else { return Err(message) };
    let method = method.to_owned();
    let session = message["sessionId"].as_str().map(str::to_owned);
    Ok(Event { method, session, params: message["params"].take() })
}
