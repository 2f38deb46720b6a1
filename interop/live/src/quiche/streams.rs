//! Streams of a connection: what waits to be written, and what has come.

use std::collections::BTreeMap;

use quiche::{Connection, Error, Shutdown};
use quipu_interop_live::Failure;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

pub(crate) struct Streams {
    /// What is still to be written, the end of the stream behind it.
    unwritten: BTreeMap<u64, (Vec<u8>, usize)>,
    unfinished: BTreeMap<u64, Vec<u8>>,
    piece: Vec<u8>,
    /// Bytes of a stream, at most.
    limit: usize,
    received: u64,
}

impl Streams {
    pub(crate) fn with_limit(limit: usize) -> Self {
        Streams {
            unwritten: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            piece: vec![0; PIECE],
            limit,
            received: 0,
        }
    }

    /// Bytes that came on all streams.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Has `bytes` written to a stream, and its end behind them.
    pub(crate) fn write(&mut self, stream: u64, bytes: Vec<u8>) {
        self.unwritten.insert(stream, (bytes, 0));
    }

    /// Reads all that is there, and returns the streams of which all has come.
    pub(crate) fn read(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
        let mut complete = Vec::new();
        for stream in connection.readable() {
            loop {
                let (bytes, is_end) = match connection.stream_recv(stream, &mut self.piece) {
                    Ok(read) => read,
                    Err(Error::Done) => break,
                    Err(error) => return Err(format!("stream {stream}: {error}").into()),
                };
                let so_far = self.unfinished.entry(stream).or_default();
                so_far.extend_from_slice(self.piece.get(..bytes).unwrap_or_default());
                self.received += bytes as u64;
                if so_far.len() > self.limit {
                    return Err(format!("stream {stream} is longer than {} B", self.limit).into());
                }
                if is_end {
                    complete.push((stream, self.unfinished.remove(&stream).unwrap_or_default()));
                    break;
                }
            }
        }
        Ok(complete)
    }

    /// Gives the connection as much as it takes.
    pub(crate) fn advance(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let mut done = Vec::new();
        for (stream, (bytes, at)) in &mut self.unwritten {
            let rest = bytes.get(*at..).unwrap_or_default();
            match connection.stream_send(*stream, rest, true) {
                Ok(written) => *at += written,
                Err(Error::Done | Error::StreamLimit) => continue,
                // The other end does not want it.
                Err(Error::StreamStopped(_)) => {
                    let _ = connection.stream_shutdown(*stream, Shutdown::Write, 1);
                    *at = bytes.len();
                }
                Err(error) => return Err(format!("stream {stream}: {error}").into()),
            }
            if *at == bytes.len() {
                done.push(*stream);
            }
        }
        for stream in done {
            self.unwritten.remove(&stream);
        }
        Ok(())
    }
}
