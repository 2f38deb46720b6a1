//! Reading a ClientHello before `rustls` does: what the engine needs to know to start a session.
//! <https://www.rfc-editor.org/rfc/rfc8446#section-4.1.2>

use crate::tls::{ClientHello, TlsError};
use crate::wire::{EndedEarly, Reader};

/// Message type.
const CLIENT_HELLO: u8 = 1;

/// Numbers of extensions. <https://www.rfc-editor.org/rfc/rfc8446#section-4.2>
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const ALPN: u16 = 16;
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-8.2>
    pub(super) const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
}

/// Descriptions of alerts, <https://www.rfc-editor.org/rfc/rfc8446#section-6>.
mod alert {
    pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(super) const DECODE_ERROR: u8 = 50;
}

/// Reads the ClientHello at the start of `bytes`; `None` while it is not whole.
pub(super) fn read(bytes: &[u8]) -> Result<Option<ClientHello<'_>>, TlsError> {
    match bytes.first() {
        None => return Ok(None),
        Some(&CLIENT_HELLO) => {}
        Some(kind) => {
            let reason = format!("message of type {kind}, expected a ClientHello").into();
            return Err(TlsError { alert: alert::UNEXPECTED_MESSAGE, reason });
        }
    }
    let Some((&[_, a, b, c], rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    let Some(body) = rest.get(..length) else { return Ok(None) };
    read_body(body).map(Some).map_err(|EndedEarly| TlsError {
        alert: alert::DECODE_ERROR,
        reason: "a ClientHello that ends early".into(),
    })
}

fn read_body(body: &[u8]) -> Result<ClientHello<'_>, EndedEarly> {
    let mut hello = ClientHello::default();
    let mut reader = Reader::new(body);
    // The version of older TLS, and the random value.
    reader.bytes(2 + 32)?;
    hello.legacy_session_id = prefixed_u8(&mut reader)?;
    // Cipher suites and compression methods.
    prefixed_u16(&mut reader)?;
    prefixed_u8(&mut reader)?;
    if reader.is_empty() {
        return Ok(hello);
    }
    let mut extensions = Reader::new(prefixed_u16(&mut reader)?);
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let data = prefixed_u16(&mut extensions)?;
        match kind {
            extension::SERVER_NAME => hello.server_name = server_name(data)?,
            extension::ALPN => hello.alpn = protocols(data)?,
            extension::QUIC_TRANSPORT_PARAMETERS => hello.transport_parameters = Some(data),
            _ => {}
        }
    }
    Ok(hello)
}

/// <https://www.rfc-editor.org/rfc/rfc6066#section-3>
fn server_name(data: &[u8]) -> Result<Option<&str>, EndedEarly> {
    const HOST_NAME: u8 = 0;
    let mut outer = Reader::new(data);
    let mut list = Reader::new(prefixed_u16(&mut outer)?);
    while !list.is_empty() {
        let kind = list.u8()?;
        let name = prefixed_u16(&mut list)?;
        if kind == HOST_NAME {
            return Ok(std::str::from_utf8(name).ok());
        }
    }
    Ok(None)
}

/// <https://www.rfc-editor.org/rfc/rfc7301#section-3.1>
fn protocols(data: &[u8]) -> Result<Vec<&[u8]>, EndedEarly> {
    let mut outer = Reader::new(data);
    let mut list = Reader::new(prefixed_u16(&mut outer)?);
    let mut protocols = Vec::new();
    while !list.is_empty() {
        protocols.push(prefixed_u8(&mut list)?);
    }
    Ok(protocols)
}

fn prefixed_u8<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], EndedEarly> {
    let length = reader.u8()?;
    reader.bytes(usize::from(length))
}

fn prefixed_u16<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], EndedEarly> {
    let length = reader.u16()?;
    reader.bytes(usize::from(length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ClientHello with this session ID and these extensions.
    fn hello(session_id: &[u8], extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, data) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend((data.len() as u16).to_be_bytes());
            list.extend(*data);
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(session_id.len() as u8);
        body.extend(session_id);
        body.extend([0, 2, 0x13, 1, 1, 0]);
        body.extend((list.len() as u16).to_be_bytes());
        body.extend(list);
        let [_, a, b, c] = (body.len() as u32).to_be_bytes();
        let mut message = vec![CLIENT_HELLO, a, b, c];
        message.extend(body);
        message
    }

    #[test]
    fn names_protocols_and_parameters_are_found() {
        let name = [&[0, 12, 0, 0, 9][..], b"localhost"].concat();
        let alpn = [&[0, 6, 2][..], b"h3", &[2], b"h2"].concat();
        let bytes = hello(&[], &[(0, &name), (43, &[0; 3]), (16, &alpn), (0x39, b"any")]);
        let expected = ClientHello {
            server_name: Some("localhost"),
            alpn: vec![b"h3", b"h2"],
            transport_parameters: Some(b"any"),
            legacy_session_id: &[],
        };
        assert_eq!(read(&bytes), Ok(Some(expected)));
        let mut longer = bytes.clone();
        longer.extend([0; 9]);
        assert!(read(&longer).unwrap().is_some());
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Ok(None));
        }
    }

    #[test]
    fn a_session_id_of_older_tls_is_seen() {
        let bytes = hello(&[9; 32], &[]);
        assert_eq!(read(&bytes).unwrap().unwrap().legacy_session_id, [9; 32]);
    }

    #[test]
    fn another_message_and_one_that_contradicts_itself_are_refused() {
        assert_eq!(read(&[2]).unwrap_err().alert, alert::UNEXPECTED_MESSAGE);
        assert_eq!(read(&[1, 0, 0, 3, 1, 2, 3]).unwrap_err().alert, alert::DECODE_ERROR);
        let wrong = hello(&[], &[(0, &[0, 9, 0])]);
        assert_eq!(read(&wrong).unwrap_err().alert, alert::DECODE_ERROR);
    }

    proptest! {
        #[test]
        fn any_bytes_read_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), is_hello: bool, length: u8,
        ) {
            let mut bytes = bytes;
            if is_hello && bytes.len() > 4 {
                bytes[..4].copy_from_slice(&[CLIENT_HELLO, 0, 0, length]);
            }
            let _ = read(&bytes);
        }
    }
}
