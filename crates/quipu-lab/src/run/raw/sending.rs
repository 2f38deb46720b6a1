//! The end that writes: an object after the other, each at once, a little apart.

use std::collections::VecDeque;

use quipu_base::{Bytes, Duration, Instant, StreamDirection, StreamId};
use quipu_policy::PriorityEdit;
use quipu_quic::Connection;

use super::writes::Write;
use crate::pages::body_parts;
use quipu_scenario::{Raw, RawStream};

/// Writes that are still to be done.
pub(super) struct Sending {
    writes: VecDeque<Write>,
    /// Writes left of each stream of the scenario.
    left: Vec<usize>,
    specs: Vec<RawStream>,
    /// Those of which something is written.
    streams: Vec<Option<StreamId>>,
    gap: Duration,
    /// When the next object is written, once begun.
    next_at: Option<Instant>,
}

impl Sending {
    pub(super) fn new(raw: &Raw, writes: Vec<Write>) -> Sending {
        let mut left = vec![0; raw.streams.len()];
        writes.iter().for_each(|write| left[write.stream] += 1);
        Sending {
            writes: writes.into(),
            streams: vec![None; left.len()],
            left,
            specs: raw.streams.clone(),
            gap: raw.gap,
            next_at: None,
        }
    }

    /// Opens the streams that carry something, in their order, and writes from `now` on.
    ///
    /// # Errors
    /// What the connection refused.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        connection: &mut Connection,
    ) -> Result<(), String> {
        for (index, spec) in
            self.specs.iter().enumerate().filter(|(index, _)| self.left[*index] > 0)
        {
            let opened = connection.open_stream(now, StreamDirection::Unidirectional);
            let stream = opened.ok_or_else(|| format!("stream {index} cannot be opened"))?;
            self.streams[index] = Some(stream);
            if let Some(latency) = spec.latency {
                let edit = PriorityEdit::Deadline { stream, latency };
                connection.edit_priority(now, edit).map_err(|error| error.to_string())?;
            }
        }
        self.next_at = Some(now);
        Ok(())
    }

    /// When [`Sending::write_due`] is to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    /// Writes everything that is due.
    ///
    /// # Errors
    /// What the connection refused.
    pub(super) fn write_due(
        &mut self,
        now: Instant,
        connection: &mut Connection,
    ) -> Result<(), String> {
        while let Some(at) = self.next_at.filter(|at| *at <= now) {
            if let Some(write) = self.writes.pop_front() {
                self.write(write, now, connection)?;
            }
            self.next_at = (!self.writes.is_empty()).then_some(at + self.gap);
        }
        Ok(())
    }

    fn write(
        &mut self,
        write: Write,
        now: Instant,
        connection: &mut Connection,
    ) -> Result<(), String> {
        let Write { stream: index, object, len } = write;
        let stream = self.streams[index].ok_or_else(|| format!("stream {index} is not open"))?;
        self.left[index] -= 1;
        let refused = |error: quipu_quic::StreamError| error.to_string();
        for part in body_parts(object, Bytes::ZERO, len) {
            connection.write_all(now, stream, part).map_err(refused)?;
        }
        if self.left[index] == 0 {
            connection.finish(now, stream).map_err(refused)?;
        }
        Ok(())
    }
}
