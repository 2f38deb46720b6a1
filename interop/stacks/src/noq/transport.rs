//! How `h3` runs on noq: the library's connection and streams with the traits that `h3` asks for.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming as ConnectionFailure, StreamErrorIncoming as StreamFailure,
    StreamId, WriteBuf,
};
use noq::{ConnectionError, ReadError, VarInt, WriteError};

/// Octets that are read at a time, at most; our choice.
const CHUNK: usize = 1 << 16;

/// What is waited for, once it was asked for.
struct Asked<T>(Option<Pin<Box<dyn Answer<T>>>>);

/// What noq answers when.
trait Answer<T>: Future<Output = Result<T, ConnectionError>> + Send + Sync {}

impl<T, F: Future<Output = Result<T, ConnectionError>> + Send + Sync> Answer<T> for F {}

impl<T> Asked<T> {
    fn nothing() -> Asked<T> {
        Asked(None)
    }

    /// The next answer; `ask` is called where the last question is answered.
    fn poll<F>(&mut self, cx: &mut Context<'_>, ask: impl FnOnce() -> F) -> Poll<Result<T, Lost>>
    where
        F: Answer<T> + 'static,
    {
        let waiting = self.0.get_or_insert_with(|| Box::pin(ask()));
        let answer = ready!(waiting.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(answer.map_err(Lost))
    }
}

/// A connection that is over.
struct Lost(ConnectionError);

impl From<Lost> for ConnectionFailure {
    fn from(Lost(error): Lost) -> ConnectionFailure {
        match error {
            ConnectionError::ApplicationClosed(close) => {
                ConnectionFailure::ApplicationClose { error_code: close.error_code.into_inner() }
            }
            ConnectionError::TimedOut => ConnectionFailure::Timeout,
            other => ConnectionFailure::Undefined(Arc::new(other)),
        }
    }
}

impl From<Lost> for StreamFailure {
    fn from(lost: Lost) -> StreamFailure {
        StreamFailure::ConnectionErrorIncoming { connection_error: lost.into() }
    }
}

/// A connection of noq.
pub(super) struct Connection {
    inner: noq::Connection,
    bidirectional: Asked<(noq::SendStream, noq::RecvStream)>,
    unidirectional: Asked<noq::RecvStream>,
    opener: Opener,
}

impl Connection {
    pub(super) fn new(inner: noq::Connection) -> Connection {
        let opener = Opener::new(inner.clone());
        Connection {
            inner,
            bidirectional: Asked::nothing(),
            unidirectional: Asked::nothing(),
            opener,
        }
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = Incoming;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Incoming, ConnectionFailure>> {
        let inner = &self.inner;
        let polled = self.unidirectional.poll(cx, || {
            let inner = inner.clone();
            async move { inner.accept_uni().await }
        });
        polled.map(|stream| Ok(Incoming(stream?)))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Both<B>, ConnectionFailure>> {
        let inner = &self.inner;
        let polled = self.bidirectional.poll(cx, || {
            let inner = inner.clone();
            async move { inner.accept_bi().await }
        });
        polled.map(|streams| Ok(Both::new(streams?)))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = Both<B>;
    type SendStream = Outgoing<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both<B>, StreamFailure>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outgoing<B>, StreamFailure>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams.
pub(super) struct Opener {
    inner: noq::Connection,
    bidirectional: Asked<(noq::SendStream, noq::RecvStream)>,
    unidirectional: Asked<noq::SendStream>,
}

impl Opener {
    fn new(inner: noq::Connection) -> Opener {
        Opener { inner, bidirectional: Asked::nothing(), unidirectional: Asked::nothing() }
    }
}

impl Clone for Opener {
    /// Another one, which has asked for no stream yet.
    fn clone(&self) -> Opener {
        Opener::new(self.inner.clone())
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = Both<B>;
    type SendStream = Outgoing<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both<B>, StreamFailure>> {
        let inner = &self.inner;
        let polled = self.bidirectional.poll(cx, || {
            let inner = inner.clone();
            async move { inner.open_bi().await }
        });
        polled.map(|streams| Ok(Both::new(streams?)))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outgoing<B>, StreamFailure>> {
        let inner = &self.inner;
        let polled = self.unidirectional.poll(cx, || {
            let inner = inner.clone();
            async move { inner.open_uni().await }
        });
        polled.map(|stream| Ok(Outgoing::new(stream?)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(code_of(code.value()), reason);
    }
}

/// The half of a stream that is written.
pub(super) struct Outgoing<B: Buf> {
    stream: noq::SendStream,
    /// What is left of the frame that is being written.
    left: Option<WriteBuf<B>>,
}

impl<B: Buf> Outgoing<B> {
    fn new(stream: noq::SendStream) -> Outgoing<B> {
        Outgoing { stream, left: None }
    }
}

impl<B: Buf> quic::SendStream<B> for Outgoing<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamFailure>> {
        while let Some(left) = self.left.as_mut().filter(|left| left.has_remaining()) {
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write(cx, left.chunk())).map_err(of_writing)?;
            left.advance(written);
        }
        self.left = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamFailure> {
        if self.left.is_some() {
            let reason = "a frame was sent before the last one was written".to_owned();
            let connection_error = ConnectionFailure::InternalError(reason);
            return Err(StreamFailure::ConnectionErrorIncoming { connection_error });
        }
        self.left = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamFailure>> {
        let finished = self.stream.finish();
        Poll::Ready(finished.map_err(|error| StreamFailure::Unknown(error.into())))
    }

    fn reset(&mut self, code: u64) {
        // One that is closed already needs none.
        let _ = self.stream.reset(code_of(code));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

/// The half of a stream that is read.
pub(super) struct Incoming(noq::RecvStream);

impl quic::RecvStream for Incoming {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamFailure>> {
        // Nothing is lost with the future: noq knows who waits by the stream.
        let read = pin!(self.0.read_chunk(CHUNK));
        read.poll(cx).map_err(of_reading)
    }

    fn stop_sending(&mut self, code: u64) {
        // One that is closed already needs none.
        let _ = self.0.stop(code_of(code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

/// A stream of both directions.
pub(super) struct Both<B: Buf> {
    send: Outgoing<B>,
    receive: Incoming,
}

impl<B: Buf> Both<B> {
    fn new((send, receive): (noq::SendStream, noq::RecvStream)) -> Both<B> {
        Both { send: Outgoing::new(send), receive: Incoming(receive) }
    }
}

impl<B: Buf> quic::BidiStream<B> for Both<B> {
    type SendStream = Outgoing<B>;
    type RecvStream = Incoming;

    fn split(self) -> (Outgoing<B>, Incoming) {
        (self.send, self.receive)
    }
}

impl<B: Buf> quic::SendStream<B> for Both<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamFailure>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamFailure> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamFailure>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::RecvStream for Both<B> {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamFailure>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

fn of_reading(error: ReadError) -> StreamFailure {
    match error {
        ReadError::Reset(code) => StreamFailure::StreamTerminated { error_code: code.into_inner() },
        ReadError::ConnectionLost(error) => Lost(error).into(),
        other => StreamFailure::Unknown(other.into()),
    }
}

fn of_writing(error: WriteError) -> StreamFailure {
    match error {
        WriteError::Stopped(code) => {
            StreamFailure::StreamTerminated { error_code: code.into_inner() }
        }
        WriteError::ConnectionLost(error) => Lost(error).into(),
        other => StreamFailure::Unknown(other.into()),
    }
}

fn code_of(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// The same number.
fn id(id: noq::StreamId) -> StreamId {
    // https://www.rfc-editor.org/rfc/rfc9000#section-2.1: in both, 62 bits.
    StreamId::try_from(u64::from(id)).expect("noq numbers streams below 2^62")
}
