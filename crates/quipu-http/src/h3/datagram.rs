//! HTTP datagrams: <https://www.rfc-editor.org/rfc/rfc9297#section-2.1>.

use bytes::Bytes;
use quipu_base::{Role, StreamDirection, StreamId};
use quipu_quic::wire::Reader;

use super::ConnectionError;
use super::frame::put_varint;

/// The octets of a QUIC datagram that carries `payload` for the request on `stream`.
pub(super) fn encode(stream: StreamId, payload: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(payload.len() + 8);
    put_varint(stream.index(), &mut out);
    out.extend_from_slice(payload);
    Bytes::from(out)
}

/// The request and the payload of a QUIC datagram.
pub(super) fn decode(datagram: &Bytes) -> Result<(StreamId, Bytes), ConnectionError> {
    let mut reader = Reader::new(datagram);
    let problem = "that ends inside the identifier of its request";
    // https://www.rfc-editor.org/rfc/rfc9297#section-2.1
    //# Receipt of a QUIC DATAGRAM frame whose payload is too short to allow parsing the Quarter
    //# Stream ID field MUST be treated as an HTTP/3 connection error of type H3_DATAGRAM_ERROR
    //# (0x33).
    let quarter = reader.varint().map_err(|_| ConnectionError::Datagram { problem })?;
    // https://www.rfc-editor.org/rfc/rfc9297#section-2.1
    //# Receipt of an HTTP/3 Datagram that includes a larger value MUST be treated as an HTTP/3
    //# connection error of type H3_DATAGRAM_ERROR (0x33).
    if quarter >= 1 << 60 {
        let problem = "for a request that cannot be";
        return Err(ConnectionError::Datagram { problem });
    }
    let stream = StreamId::new(Role::Client, StreamDirection::Bidirectional, quarter);
    Ok((stream, datagram.slice(datagram.len() - reader.remaining()..)))
}
