//! The end that reads: takes each stream apart into its objects, and checks them.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant, StreamId};
use quipu_quic::Connection;
use quipu_web::page::ObjectId;

use super::writes::Write;
use crate::loading::{Loading, WrongBody};
use quipu_record::StreamRecord;
use quipu_scenario::Raw;

/// The page as it arrives on raw streams.
pub(super) struct Receiving {
    loading: Loading,
    /// The stream of each object, by the number in the scenario.
    stream_of: Vec<u32>,
    /// Those that carry something, in the order in which they are opened.
    streams: Vec<Incoming>,
}

/// One stream as it arrives.
struct Incoming {
    record: StreamRecord,
    /// Objects that are not complete, and bytes missing of each.
    missing: VecDeque<(ObjectId, Bytes)>,
    first_byte_at: Option<Instant>,
    completed_at: Option<Instant>,
}

impl Receiving {
    pub(super) fn new(loading: Loading, raw: &Raw, writes: &[Write]) -> Receiving {
        // At most 1,000 streams, as the scenario was checked.
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let mut by_object: Vec<&Write> = writes.iter().collect();
        by_object.sort_by_key(|write| write.object);
        let stream_of = by_object.iter().map(|write| number(write.stream)).collect();
        let incoming = |(index, spec): (usize, &quipu_scenario::RawStream)| {
            let of_stream = writes.iter().filter(|write| write.stream == index);
            let missing: VecDeque<(ObjectId, Bytes)> =
                of_stream.map(|write| (write.object, write.len)).collect();
            let record = StreamRecord {
                stream: number(index),
                latency: spec.latency,
                objects: missing.len() as u64,
                bytes: missing.iter().map(|(_, len)| *len).sum(),
                ..StreamRecord::default()
            };
            Incoming { record, missing, first_byte_at: None, completed_at: None }
        };
        let streams = raw.streams.iter().enumerate().map(incoming);
        let streams = streams.filter(|incoming| !incoming.missing.is_empty()).collect();
        Receiving { loading, stream_of, streams }
    }

    /// The load began at `at`, when everything was asked for.
    pub(super) fn begin(&mut self, at: Instant) {
        if !self.loading.has_begun() {
            self.loading.begin(at);
            while self.loading.poll_request(at).is_some() {}
        }
    }

    pub(super) fn loading(&self) -> &Loading {
        &self.loading
    }

    /// The objects of each stream that carries something, and their bytes, before anything has come.
    pub(super) fn objects(
        &self,
    ) -> impl Iterator<Item = impl Iterator<Item = (ObjectId, Bytes)> + '_> + '_ {
        self.streams.iter().map(|incoming| incoming.missing.iter().copied())
    }

    /// The stream that `object` came on.
    pub(super) fn stream_of(&self, object: ObjectId) -> Option<u32> {
        self.stream_of.get(object.index()).copied()
    }

    pub(super) fn is_done(&self) -> bool {
        self.loading.has_begun() && self.loading.open() == 0
    }

    /// Reads what has come on a stream of the other end.
    ///
    /// # Errors
    /// If an object is not what was written, or there is more or less of it.
    pub(super) fn read(
        &mut self,
        now: Instant,
        stream: StreamId,
        connection: &mut Connection,
    ) -> Result<(), Fault> {
        let index = usize::try_from(stream.index()).ok();
        let Some(incoming) = index.and_then(|index| self.streams.get_mut(index)) else {
            return Err(Fault::Stream(format!("{stream} was not to be opened")));
        };
        let loading = &mut self.loading;
        let mut result = Ok(());
        let mut sink = |data: &[u8]| {
            if result.is_ok() {
                result = incoming.take(data, loading, now);
            }
        };
        let read = connection.read(now, stream, &mut sink);
        result?;
        let read = read.map_err(|error| Fault::Stream(format!("{stream}: {error}")))?;
        incoming.complete(loading, now)?;
        match incoming.missing.len() {
            0 => Ok(()),
            missing if read.end => {
                Err(Fault::Stream(format!("{stream} ended with {missing} objects missing")))
            }
            _ => Ok(()),
        }
    }

    /// The streams that are complete, of a load that began at `start`.
    pub(super) fn records(&self, start: Instant) -> Vec<StreamRecord> {
        let record = |incoming: &Incoming| {
            let completed_at = incoming.completed_at?;
            let first_byte_at = incoming.first_byte_at.unwrap_or(completed_at);
            let since_page_start = completed_at.saturating_since(start);
            Some(StreamRecord { first_byte_at, completed_at, since_page_start, ..incoming.record })
        };
        self.streams.iter().filter_map(record).collect()
    }
}

/// What is wrong with what came.
pub(super) enum Fault {
    /// An object.
    Object(WrongBody),
    /// A stream.
    Stream(String),
}

impl From<WrongBody> for Fault {
    fn from(error: WrongBody) -> Fault {
        Fault::Object(error)
    }
}

impl Incoming {
    fn take(&mut self, mut data: &[u8], loading: &mut Loading, now: Instant) -> Result<(), Fault> {
        self.first_byte_at.get_or_insert(now);
        while !data.is_empty() {
            self.complete(loading, now)?;
            let Some((object, left)) = self.missing.front_mut() else {
                let (stream, more) = (self.record.stream, data.len());
                return Err(Fault::Stream(format!(
                    "raw stream {stream} has {more} bytes too many"
                )));
            };
            // No more than the slice has, so it fits.
            let len = left.0.min(data.len() as u64) as usize;
            let (bytes, rest) = data.split_at(len);
            loading.on_body(*object, bytes, now);
            *left -= Bytes(len as u64);
            data = rest;
        }
        self.complete(loading, now)
    }

    /// Ends the objects of which nothing is missing.
    fn complete(&mut self, loading: &mut Loading, now: Instant) -> Result<(), Fault> {
        while let Some(&(object, Bytes::ZERO)) = self.missing.front() {
            self.missing.pop_front();
            loading.on_complete(object, now)?;
        }
        if self.missing.is_empty() {
            self.completed_at.get_or_insert(now);
        }
        Ok(())
    }
}
