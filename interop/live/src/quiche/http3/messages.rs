//! Messages in transit: what has come of one, and what is left to send of one.

use bytes::Bytes;
use quiche::Connection as Transport;
use quiche::h3::{Connection, Error, Header};
use quipu_interop_live::Failure;
use quipu_interop_live::http3::LIMIT;

/// Bytes of a body that are read at once.
const PIECE: usize = 64 * 1024;

/// What has come of a message.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) head: Option<Vec<Header>>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<Vec<Header>>,
}

impl Received {
    /// The head, or the fields after the body.
    pub(crate) fn take_fields(&mut self, list: Vec<Header>) {
        match self.head {
            None => self.head = Some(list),
            Some(_) => self.trailers = Some(list),
        }
    }

    /// Reads all of the body that is there.
    pub(crate) fn read(
        &mut self,
        http: &mut Connection,
        transport: &mut Transport,
        stream: u64,
    ) -> Result<(), Failure> {
        let mut piece = vec![0; PIECE];
        loop {
            match http.recv_body(transport, stream, &mut piece) {
                Ok(bytes) => self.body.extend_from_slice(piece.get(..bytes).unwrap_or_default()),
                Err(Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.body.len() > LIMIT {
                return Err(format!("stream {stream} is longer than {LIMIT} B").into());
            }
        }
    }
}

/// What is left to send of a message after its head.
pub(crate) struct Unsent {
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<Vec<Header>>,
}

/// How far it came.
pub(crate) enum Progress {
    Done,
    Blocked,
    /// The peer wants no more, with that code.
    Stopped(u64),
}

impl Unsent {
    /// True if nothing follows the head.
    pub(crate) fn is_empty(&self) -> bool {
        self.body.is_empty() && self.trailers.is_none()
    }

    /// Sends as much as there is room for.
    pub(crate) fn advance(
        &mut self,
        http: &mut Connection,
        transport: &mut Transport,
        stream: u64,
    ) -> Result<Progress, Failure> {
        while !self.body.is_empty() {
            match http.send_body(transport, stream, &self.body, self.trailers.is_none()) {
                Ok(bytes) => self.body = self.body.split_off(bytes),
                Err(error) => return halted(error),
            }
        }
        if let Some(trailers) = &self.trailers {
            if let Err(error) =
                http.send_additional_headers(transport, stream, trailers, true, true)
            {
                return halted(error);
            }
            self.trailers = None;
        }
        Ok(Progress::Done)
    }
}

/// What an error of a call that writes means.
pub(crate) fn halted(error: Error) -> Result<Progress, Failure> {
    match error {
        Error::Done | Error::StreamBlocked => Ok(Progress::Blocked),
        Error::TransportError(quiche::Error::StreamStopped(code)) => Ok(Progress::Stopped(code)),
        error => Err(error.into()),
    }
}
