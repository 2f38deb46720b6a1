//! A body that counts the bytes sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Response, Version};
use http_body::{Frame, SizeHint};

use super::entry::Entry;
use super::log::AccessLog;
use crate::body::Body;
use crate::clock::Begin;
use crate::metrics::Metrics;

/// A pending log entry, written when this is dropped.
pub(super) struct Note {
    entry: Entry,
    version: Version,
    begin: Begin,
    log: Option<AccessLog>,
    metrics: Option<Metrics>,
    /// `Content-Length` of the response, if it has one.
    expected: Option<u64>,
}

impl Note {
    pub(super) fn new(
        entry: Entry,
        version: Version,
        log: Option<AccessLog>,
        metrics: Option<Metrics>,
    ) -> Self {
        Note { entry, version, begin: Begin::now(), log, metrics, expected: None }
    }

    /// Notes status and length of the response.
    pub(super) fn answered<B>(&mut self, response: &Response<B>) {
        self.entry.set_status(response.status());
        let length = response.headers().get(CONTENT_LENGTH);
        self.expected = length.and_then(|length| length.to_str().ok()?.parse().ok());
    }

    fn sends(&mut self, bytes: u64) {
        self.entry.bytes += bytes;
        // A transport that knows the length does not poll for the end of the body.
        self.entry.complete = Some(self.entry.bytes) == self.expected;
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.entry.lasted = self.begin.elapsed();
        if let Some(log) = &self.log {
            log.write(&self.entry);
        }
        if let Some(metrics) = &self.metrics {
            let Entry { status, bytes, lasted, .. } = self.entry;
            metrics.on_response(self.version, status, bytes, lasted);
        }
    }
}

/// A response body with the pending log entry of its request.
pub(super) struct Counted {
    body: Body,
    note: Note,
}

impl Counted {
    pub(super) fn new(body: Body, mut note: Note) -> Self {
        note.entry.complete = http_body::Body::is_end_stream(&body);
        Counted { body, note }
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.note.sends(bytes as u64);
                if http_body::Body::is_end_stream(&self.body) {
                    self.note.entry.complete = true;
                }
            }
            Some(Err(_)) => self.note.entry.complete = false,
            None => self.note.entry.complete = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
