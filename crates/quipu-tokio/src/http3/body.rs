//! An exchange: the bodies of both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h3::{BodyError, ErrorCode};
use quipu_http::transport::StreamError;
use tokio::sync::Notify;

use super::convert;
use super::end::{End, Streams};
use super::error::Http3Error;
use super::session::{Session, Slot, State};

/// One exchange of a session. It is abandoned when it is dropped before its end.
pub(super) struct Exchange<E: End + ?Sized> {
    session: Arc<Session<E>>,
    pub(super) stream: StreamId,
    changed: Arc<Notify>,
    /// All was read.
    is_read: AtomicBool,
    /// Nothing more is sent.
    is_sent: AtomicBool,
}

impl<E: End + ?Sized> Exchange<E> {
    /// `is_sent`: nothing more is to be sent.
    pub(super) fn new(
        session: Arc<Session<E>>,
        stream: StreamId,
        changed: Arc<Notify>,
        is_sent: bool,
    ) -> Self {
        let (is_read, is_sent) = (AtomicBool::new(false), AtomicBool::new(is_sent));
        Exchange { session, stream, changed, is_read, is_sent }
    }

    pub(super) fn session(&self) -> &Session<E> {
        &self.session
    }

    /// This end answered without a body, or with one that was handed over whole.
    pub(super) fn set_sent(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }

    /// Waits until `look` finds something.
    async fn wait<R>(
        &self,
        mut look: impl FnMut() -> Result<Option<R>, Http3Error>,
    ) -> Result<R, Http3Error> {
        loop {
            let notified = self.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if let Some(found) = look()? {
                return Ok(found);
            }
            notified.await;
        }
    }

    /// The next head: status and fields.
    pub(super) async fn head(&self) -> Result<(u16, FieldList), Http3Error> {
        let stream = self.stream;
        let look = |state: &mut State<E>, _: &mut Streams<'_, '_>| {
            let slot = slot(state, stream)?;
            match (slot.heads.pop_front(), &slot.failure) {
                (Some(head), _) => Ok(Some(head)),
                (None, Some(failure)) => Err(failure.clone().into()),
                (None, None) => Ok(None),
            }
        };
        self.wait(|| self.session.look(look)).await
    }

    /// The next octets of the peer's body, `most` of them at most; `None` at its end.
    pub(super) async fn data(&self, most: usize) -> Result<Option<Bytes>, Http3Error> {
        if self.is_read.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let stream = self.stream;
        let look = |state: &mut State<E>, streams: &mut Streams<'_, '_>| {
            // An end that a reading leads to is told after it, and looked for again.
            let known = slot(state, stream)?;
            if known.finished {
                return Ok(Some(None));
            }
            if let Some(failure) = &known.failure {
                return Err(failure.clone().into());
            }
            let mut octets = BytesMut::new();
            let sink = &mut |part: &[u8]| octets.extend_from_slice(part);
            let read = state.end.read(streams, stream, most as u64, sink);
            Ok((read > 0).then(|| Some(octets.freeze())))
        };
        let read = self.wait(|| self.session.look(look)).await?;
        self.is_read.store(read.is_none(), Ordering::Relaxed);
        Ok(read)
    }

    /// The fields behind the body, once it was read to its end.
    pub(super) fn trailers(&self) -> Result<Option<HeaderMap>, Http3Error> {
        let mut state = self.session.lock();
        let trailers = state.slots.get_mut(&self.stream).and_then(|slot| slot.trailers.take());
        Ok(trailers.map(|fields| convert::headers(&fields)).transpose()?)
    }

    /// Sends octets of this end's body; waits while there is no room.
    pub(super) async fn send_data(&self, mut octets: Bytes) -> Result<(), Http3Error> {
        let stream = self.stream;
        while !octets.is_empty() {
            let send = |state: &mut State<E>, streams: &mut Streams<'_, '_>| {
                check_stopped(slot(state, stream)?)?;
                match state.end.send_body(streams, stream, octets.clone()) {
                    Ok(taken) => Ok((taken > 0).then_some(taken)),
                    // With what code is told soon.
                    Err(error) if is_stopping(&error) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            };
            let taken = self.wait(|| self.session.call(send)?).await?;
            octets = octets.split_off(taken);
        }
        Ok(())
    }

    /// Ends this end's body.
    pub(super) fn finish(&self, trailers: Option<&HeaderMap>) -> Result<(), Http3Error> {
        let stream = self.stream;
        let trailers = trailers.map(convert::trailer_fields);
        self.session.call(|state, streams| {
            check_stopped(slot(state, stream)?)?;
            match state.end.finish(streams, stream, trailers.as_ref()) {
                // As if the stop had come a moment later.
                Err(error) if is_stopping(&error) => Ok(()),
                finished => Ok::<(), Http3Error>(finished?),
            }
        })??;
        self.set_sent();
        Ok(())
    }

    /// Abandons the exchange with that code.
    pub(super) fn abandon(&self, code: ErrorCode) {
        self.session.abandon(self.stream, code);
        self.is_read.store(true, Ordering::Relaxed);
        self.set_sent();
    }
}

/// What is known of an exchange.
fn slot<E: ?Sized>(state: &mut State<E>, stream: StreamId) -> Result<&mut Slot, Http3Error> {
    state.slots.get_mut(&stream).ok_or(Http3Error::Body(BodyError::NotSending(stream)))
}

fn check_stopped(slot: &Slot) -> Result<(), Http3Error> {
    match (slot.stopped, &slot.failure) {
        (Some(code), _) => Err(Http3Error::Stopped(code)),
        (None, Some(failure)) => Err(failure.clone().into()),
        (None, None) => Ok(()),
    }
}

/// The peer wants no more of a body, and this is yet to be passed on: nothing else closes a stream on which a body is
/// being sent, but the end of the connection.
fn is_stopping(error: &BodyError) -> bool {
    matches!(error, BodyError::Stream(StreamError::NotOpen(_)))
}

impl<E: End + ?Sized> Drop for Exchange<E> {
    fn drop(&mut self) {
        let (is_read, is_sent) = (*self.is_read.get_mut(), *self.is_sent.get_mut());
        let is_over = {
            let mut state = self.session.lock();
            let slot = state.slots.remove(&self.stream);
            let finished = slot.is_none_or(|slot| slot.finished || slot.failure.is_some());
            is_sent && (is_read || finished)
        };
        if !is_over {
            self.session.drop_exchange(self.stream, is_sent);
        }
    }
}
