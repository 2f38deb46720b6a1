//! The handshake: which message follows which, on both sides.

use std::borrow::Cow;
use std::collections::VecDeque;

use quipu_base::Role;
use quipu_quic::tls::{
    CipherSuite, ClientHello, ClientStart, KeyChange, KeyExchangeGroup, Level, Negotiated,
    PacketKeyPair, ServerStart, Session, TlsError,
};
use quipu_quic::wire::{EndedEarly, Version};

use crate::flight;
use crate::key::Secret;
use crate::message::{self, Inbox, Kind};

/// Descriptions of alerts, <https://www.rfc-editor.org/rfc/rfc8446#section-6>.
mod alert {
    pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(super) const ILLEGAL_PARAMETER: u8 = 47;
    pub(super) const DECODE_ERROR: u8 = 50;
    pub(super) const DECRYPT_ERROR: u8 = 51;
    pub(super) const NO_APPLICATION_PROTOCOL: u8 = 120;
}

/// What the peer has to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Message(Kind),
    /// The handshake is over; a client still takes tickets.
    Nothing,
}

/// What is still to be given to the connection.
enum Step {
    Bytes(Vec<u8>),
    Keys(Level),
}

pub(crate) struct NullSession {
    role: Role,
    version: Version,
    alpn: Vec<Vec<u8>>,
    certificate_chain: usize,
    parameters: Vec<u8>,

    expect: Expect,
    reading: Level,
    inbox: Inbox,
    outbox: VecDeque<Step>,
    phase: Option<u32>,

    /// Of the ClientHello, then of both Hello messages.
    secret: Secret,
    peer_parameters: Option<Vec<u8>>,
    chosen_alpn: Option<Vec<u8>>,
    server_name: Option<String>,
}

impl NullSession {
    pub(crate) fn client(alpn: &[Vec<u8>], start: &ClientStart<'_>) -> Self {
        let ClientStart { server_name, parameters, version, .. } = *start;
        let mut hello = Vec::new();
        let size = flight::client_hello(server_name, alpn, parameters.len());
        let sent_name =
            if server_name.parse::<std::net::IpAddr>().is_ok() { "" } else { server_name };
        message::put(&mut hello, Kind::ClientHello, size, |out| {
            message::put_prefixed(out, sent_name.as_bytes());
            message::put_prefixed(out, parameters);
            // Checked: at most 32 KiB.
            let list: Vec<u8> = alpn.iter().flat_map(|name| length_and(name)).collect();
            message::put_prefixed(out, &list);
        });
        let secret = Secret::of(&hello);
        let expect = Expect::Message(Kind::ServerHello);
        let mut session = Self::new((Role::Client, version), expect, alpn.to_vec(), parameters);
        session.secret = secret;
        session.outbox.push_back(Step::Bytes(hello));
        session
    }

    pub(crate) fn server(
        alpn: Vec<Vec<u8>>,
        certificate_chain: usize,
        start: &ServerStart<'_>,
    ) -> Self {
        let (expect, end) = (Expect::Message(Kind::ClientHello), (Role::Server, start.version));
        NullSession { certificate_chain, ..Self::new(end, expect, alpn, start.parameters) }
    }

    fn new(
        (role, version): (Role, Version),
        expect: Expect,
        alpn: Vec<Vec<u8>>,
        parameters: &[u8],
    ) -> Self {
        NullSession {
            role,
            version,
            alpn,
            certificate_chain: 0,
            parameters: parameters.to_vec(),
            expect,
            reading: Level::Initial,
            inbox: Inbox::default(),
            outbox: VecDeque::new(),
            phase: None,
            secret: Secret::of(&[]),
            peer_parameters: None,
            chosen_alpn: None,
            server_name: None,
        }
    }

    /// Takes one message of the peer. The order is that of
    /// <https://www.rfc-editor.org/rfc/rfc8446#section-2>.
    fn take(&mut self, byte: u8, whole: &[u8]) -> Result<(), TlsError> {
        let kind = Kind::from_byte(byte)
            .ok_or_else(|| error(alert::UNEXPECTED_MESSAGE, format!("message of type {byte}")))?;
        let ticket = kind == Kind::SessionTicket && self.role.is_client();
        if ticket && self.expect == Expect::Nothing {
            return Ok(());
        }
        if self.expect != Expect::Message(kind) {
            let reason = format!("{kind:?}, expected {:?}", self.expect);
            return Err(error(alert::UNEXPECTED_MESSAGE, reason));
        }
        match kind {
            Kind::ClientHello => self.take_client_hello(whole),
            Kind::ServerHello => self.take_server_hello(whole),
            Kind::EncryptedExtensions => self.take_encrypted_extensions(whole),
            Kind::Certificate => {
                self.expect = Expect::Message(Kind::CertificateVerify);
                Ok(())
            }
            Kind::CertificateVerify => {
                self.expect = Expect::Message(Kind::Finished);
                Ok(())
            }
            Kind::Finished => self.take_finished(whole),
            Kind::SessionTicket => Ok(()),
        }
    }

    fn take_client_hello(&mut self, whole: &[u8]) -> Result<(), TlsError> {
        let hello = read_hello_body(whole)?;
        self.server_name = hello.server_name.map(str::to_owned);
        self.peer_parameters = hello.transport_parameters.map(<[u8]>::to_vec);
        let chosen = self.alpn.iter().find(|ours| hello.alpn.contains(&ours.as_slice()));
        if chosen.is_none() && !self.alpn.is_empty() {
            let reason = "the client offers no protocol of the server";
            return Err(error(alert::NO_APPLICATION_PROTOCOL, reason));
        }
        self.chosen_alpn = chosen.cloned();
        self.answer_client_hello(Secret::of(whole));
        Ok(())
    }

    /// The server's first flight.
    fn answer_client_hello(&mut self, client: Secret) {
        let own = Secret::of(&self.parameters);
        self.secret = client.and(own);
        let mut hello = Vec::new();
        message::put(&mut hello, Kind::ServerHello, flight::SERVER_HELLO, |out| {
            out.extend_from_slice(&own.to_bytes());
        });
        let (alpn, chain) = (self.chosen_alpn.as_deref(), self.certificate_chain);
        let mut rest = Vec::new();
        let size =
            flight::encrypted_extensions(self.server_name.is_some(), alpn, self.parameters.len());
        message::put(&mut rest, Kind::EncryptedExtensions, size, |out| {
            message::put_prefixed(out, &self.parameters);
            out.extend(length_and(alpn.unwrap_or_default()));
        });
        message::put(&mut rest, Kind::Certificate, flight::certificate(chain), |_| {});
        message::put(&mut rest, Kind::CertificateVerify, flight::CERTIFICATE_VERIFY, |_| {});
        self.put_finished(&mut rest);
        self.outbox.extend([
            Step::Bytes(hello),
            Step::Keys(Level::Handshake),
            Step::Bytes(rest),
            Step::Keys(Level::OneRtt),
        ]);
        self.expect = Expect::Message(Kind::Finished);
        self.reading = Level::Handshake;
    }

    fn take_server_hello(&mut self, whole: &[u8]) -> Result<(), TlsError> {
        let server = message::body(whole).array::<8>().map_err(decode_error)?;
        self.secret = self.secret.and(Secret::from_bytes(server));
        self.outbox.push_back(Step::Keys(Level::Handshake));
        self.expect = Expect::Message(Kind::EncryptedExtensions);
        self.reading = Level::Handshake;
        Ok(())
    }

    fn take_encrypted_extensions(&mut self, whole: &[u8]) -> Result<(), TlsError> {
        let mut body = message::body(whole);
        let parameters = message::prefixed(&mut body).map_err(decode_error)?;
        self.peer_parameters = Some(parameters.to_vec());
        let length = body.u8().map_err(decode_error)?;
        let name = body.bytes(usize::from(length)).map_err(decode_error)?;
        if name.is_empty() {
            if !self.alpn.is_empty() {
                let reason = "the server takes no protocol that the client offers";
                return Err(error(alert::NO_APPLICATION_PROTOCOL, reason));
            }
        } else if self.alpn.iter().any(|ours| ours == name) {
            self.chosen_alpn = Some(name.to_vec());
        } else {
            let reason = "the server takes a protocol that the client does not offer";
            return Err(error(alert::ILLEGAL_PARAMETER, reason));
        }
        self.expect = Expect::Message(Kind::Certificate);
        Ok(())
    }

    fn take_finished(&mut self, whole: &[u8]) -> Result<(), TlsError> {
        let sent = message::body(whole).array::<8>().map_err(decode_error)?;
        if sent != self.secret.to_bytes() {
            return Err(error(
                alert::DECRYPT_ERROR,
                "the Finished message is of another handshake",
            ));
        }
        let mut bytes = Vec::new();
        match self.role {
            Role::Client => {
                self.put_finished(&mut bytes);
                self.outbox.extend([Step::Bytes(bytes), Step::Keys(Level::OneRtt)]);
            }
            Role::Server => {
                for _ in 0..flight::SESSION_TICKETS {
                    message::put(&mut bytes, Kind::SessionTicket, flight::SESSION_TICKET, |_| {});
                }
                self.outbox.push_back(Step::Bytes(bytes));
            }
        }
        self.expect = Expect::Nothing;
        self.reading = Level::OneRtt;
        Ok(())
    }

    /// What the keys are made of.
    fn versioned_secret(&self) -> Secret {
        self.secret.in_version(self.version)
    }

    /// True once both Hello messages were sent.
    fn has_agreed(&self) -> bool {
        !matches!(self.expect, Expect::Message(Kind::ClientHello | Kind::ServerHello))
    }

    fn put_finished(&self, out: &mut Vec<u8>) {
        message::put(out, Kind::Finished, flight::FINISHED, |out| {
            out.extend_from_slice(&self.secret.to_bytes());
        });
    }
}

impl Session for NullSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TlsError> {
        if level != self.reading {
            let reason = format!("handshake bytes at {level:?}, expected {:?}", self.reading);
            return Err(error(alert::UNEXPECTED_MESSAGE, reason));
        }
        self.inbox.extend(data);
        while let Some((kind, whole)) = self.inbox.next() {
            self.take(kind, &whole)?;
            // https://www.rfc-editor.org/rfc/rfc8446#section-5.1: no message reaches over a change
            // of keys.
            if self.reading != level && self.inbox.is_partial() {
                return Err(error(alert::UNEXPECTED_MESSAGE, "bytes behind a change of keys"));
            }
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        loop {
            match self.outbox.pop_front()? {
                Step::Bytes(bytes) => out.extend_from_slice(&bytes),
                Step::Keys(level) => {
                    let keys = self.versioned_secret().keys(level, self.role);
                    if level != Level::OneRtt {
                        return Some(KeyChange::Handshake(keys));
                    }
                    self.phase = Some(0);
                    return Some(KeyChange::OneRtt(keys));
                }
            }
        }
    }

    fn is_handshaking(&self) -> bool {
        self.expect != Expect::Nothing
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.peer_parameters.as_deref()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.chosen_alpn.as_deref()
    }

    fn next_packet_keys(&mut self) -> Option<PacketKeyPair> {
        let phase = self.phase.as_mut()?;
        *phase += 1;
        let phase = *phase;
        Some(self.versioned_secret().phase(phase, self.role))
    }

    fn change_version(&mut self, version: Version) -> Result<(), TlsError> {
        self.version = version;
        Ok(())
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.has_agreed().then_some(Negotiated {
            cipher_suite: CipherSuite::AES_256_GCM_SHA384,
            group: Some(KeyExchangeGroup::X25519),
            resumed: false,
        })
    }

    fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }
}

/// What a ClientHello says, once it is whole.
pub(crate) fn read_client_hello(bytes: &[u8]) -> Result<Option<ClientHello<'_>>, TlsError> {
    match bytes.first() {
        Some(&kind) if kind != Kind::ClientHello as u8 => {
            let reason = format!("message of type {kind}, expected a ClientHello");
            Err(error(alert::UNEXPECTED_MESSAGE, reason))
        }
        _ => message::first(bytes).map(read_hello_body).transpose(),
    }
}

fn read_hello_body(whole: &[u8]) -> Result<ClientHello<'_>, TlsError> {
    let mut body = message::body(whole);
    let name = message::prefixed(&mut body).map_err(decode_error)?;
    let parameters = message::prefixed(&mut body).map_err(decode_error)?;
    let offered = message::prefixed(&mut body).map_err(decode_error)?;
    Ok(ClientHello {
        server_name: std::str::from_utf8(name).ok().filter(|name| !name.is_empty()),
        alpn: names(offered)?,
        transport_parameters: Some(parameters),
        legacy_session_id: &[],
    })
}

/// A name with a length byte before it; names have at most 255 bytes.
fn length_and(name: &[u8]) -> impl Iterator<Item = u8> + '_ {
    std::iter::once(name.len() as u8).chain(name.iter().copied())
}

/// The names of a list in which each has a length byte before it.
fn names(list: &[u8]) -> Result<Vec<&[u8]>, TlsError> {
    let mut reader = quipu_quic::wire::Reader::new(list);
    let mut names = Vec::new();
    while let Ok(length) = reader.u8() {
        names.push(reader.bytes(usize::from(length)).map_err(decode_error)?);
    }
    Ok(names)
}

fn error(alert: u8, reason: impl Into<Cow<'static, str>>) -> TlsError {
    TlsError { alert, reason: reason.into() }
}

fn decode_error(_: EndedEarly) -> TlsError {
    error(alert::DECODE_ERROR, "a handshake message ended early")
}
