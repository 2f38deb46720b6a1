//! hq-interop over the streams of a server's connection.

use quiche::{Connection, Shutdown};
use quipu_interop_live::{Failure, MAX_REQUEST, Options, facts, files};

use crate::server::Protocol;
use crate::streams::Streams;

impl Protocol for Streams {
    fn new() -> Self {
        Streams::with_limit(MAX_REQUEST)
    }

    /// Answers the requests that have come.
    fn serve(&mut self, options: &Options, connection: &mut Connection) -> Result<(), Failure> {
        for (stream, request) in self.read(connection)? {
            match files::answer(&options.www, &request) {
                Ok(file) => self.write(stream, file),
                Err(error) => {
                    facts::tell("answer_failed", error);
                    connection.stream_shutdown(stream, Shutdown::Write, 1)?;
                }
            }
        }
        self.advance(connection)
    }
}
