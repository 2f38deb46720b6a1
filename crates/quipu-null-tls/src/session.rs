//! The handshake: which message follows which, on both sides.

use std::borrow::Cow;
use std::collections::VecDeque;

use quipu_base::Role;
use quipu_quic::tls::{
    CipherSuite, ClientHello, ClientStart, DirectionKeys, EarlyData, KeyChange, KeyExchangeGroup,
    Level, Negotiated, PacketKeyPair, ServerStart, Session, TlsError,
};
use quipu_quic::wire::{EndedEarly, Reader, Version};

use crate::flight;
use crate::key::Secret;
use crate::message::{self, Inbox, Kind};
use crate::resumption::{Kept, Store, Terms, Ticket};

/// Descriptions of alerts, <https://www.rfc-editor.org/rfc/rfc8446#section-6>.
mod alert {
    pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(super) const ILLEGAL_PARAMETER: u8 = 47;
    pub(super) const DECODE_ERROR: u8 = 50;
    pub(super) const DECRYPT_ERROR: u8 = 51;
    pub(super) const UNSUPPORTED_EXTENSION: u8 = 110;
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

/// What a client does with sessions.
#[derive(Default)]
struct ClientMemory {
    /// Where tickets of this server go, if they are kept.
    store: Option<(Store, String)>,
    /// The session that it offers to resume.
    offered: Option<Kept>,
}

/// What a server is made of.
#[derive(Clone, Copy)]
pub(crate) struct ServerTraits {
    /// Bytes of its certificates.
    pub(crate) certificate_chain: usize,
    /// Which tickets are its own.
    pub(crate) ticket_key: Secret,
}

/// What a server makes its session of.
struct ServerMemory {
    traits: ServerTraits,
    terms: Terms,
}

pub(crate) struct NullSession {
    role: Role,
    version: Version,
    alpn: Vec<Vec<u8>>,
    parameters: Vec<u8>,
    client: ClientMemory,
    /// `None` at a client.
    server: Option<ServerMemory>,

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
    resumed: bool,
    early_data: EarlyData,
    /// Of the ClientHello, while packets may come or go early.
    early_secret: Option<Secret>,
}

impl NullSession {
    /// `store`: where sessions are kept, if they are.
    pub(crate) fn client(alpn: &[Vec<u8>], store: Option<&Store>, start: &ClientStart<'_>) -> Self {
        let ClientStart { server_name, parameters, version, early_data, .. } = *start;
        let offered = store.and_then(|store| store.take(server_name, version));
        let early_data = early_data && offered.as_ref().is_some_and(|kept| kept.ticket.early_data);
        let resumption = offered.as_ref().map_or(0, |_| flight::resumption(early_data));
        let mut hello = Vec::new();
        let size = flight::client_hello(server_name, alpn, parameters.len()) + resumption;
        let sent_name =
            if server_name.parse::<std::net::IpAddr>().is_ok() { "" } else { server_name };
        message::put(&mut hello, Kind::ClientHello, size, |out| {
            message::put_prefixed(out, sent_name.as_bytes());
            message::put_prefixed(out, parameters);
            // Checked: at most 32 KiB.
            let list: Vec<u8> = alpn.iter().flat_map(|name| length_and(name)).collect();
            message::put_prefixed(out, &list);
            if let Some(kept) = &offered {
                message::put_prefixed(out, &kept.ticket.to_bytes());
                out.push(u8::from(early_data));
            }
        });
        let secret = Secret::of(&hello);
        let expect = Expect::Message(Kind::ServerHello);
        let mut session = Self::new((Role::Client, version), expect, alpn.to_vec(), parameters);
        session.secret = secret;
        session.outbox.push_back(Step::Bytes(hello));
        if early_data {
            session.early_data = EarlyData::Offered;
            session.early_secret = Some(secret.in_version(version));
        }
        let store = store.map(|store| (store.clone(), server_name.to_owned()));
        NullSession { client: ClientMemory { store, offered }, ..session }
    }

    pub(crate) fn server(
        alpn: Vec<Vec<u8>>,
        traits: ServerTraits,
        start: &ServerStart<'_>,
    ) -> Self {
        let (expect, end) = (Expect::Message(Kind::ClientHello), (Role::Server, start.version));
        let server = Some(ServerMemory { traits, terms: Terms::of(start) });
        NullSession { server, ..Self::new(end, expect, alpn, start.parameters) }
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
            parameters: parameters.to_vec(),
            client: ClientMemory::default(),
            server: None,
            expect,
            reading: Level::Initial,
            inbox: Inbox::default(),
            outbox: VecDeque::new(),
            phase: None,
            secret: Secret::of(&[]),
            peer_parameters: None,
            chosen_alpn: None,
            server_name: None,
            resumed: false,
            early_data: EarlyData::NotOffered,
            early_secret: None,
        }
    }

    /// Takes one message of the peer. The order is that of
    /// <https://www.rfc-editor.org/rfc/rfc8446#section-2>.
    fn take(&mut self, byte: u8, whole: &[u8]) -> Result<(), TlsError> {
        let kind = Kind::from_byte(byte)
            .ok_or_else(|| error(alert::UNEXPECTED_MESSAGE, format!("message of type {byte}")))?;
        let ticket = kind == Kind::SessionTicket && self.role.is_client();
        if ticket && self.expect == Expect::Nothing {
            return self.keep(whole);
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

    /// A ticket of the server.
    fn keep(&mut self, whole: &[u8]) -> Result<(), TlsError> {
        let ticket = Ticket::read(&mut message::body(whole)).map_err(decode_error)?;
        if let (Some((store, server_name)), Some(parameters)) =
            (&self.client.store, &self.peer_parameters)
        {
            let (server_name, parameters) = (server_name.clone(), parameters.clone());
            store.put(Kept { server_name, version: self.version, ticket, parameters });
        }
        Ok(())
    }

    fn take_client_hello(&mut self, whole: &[u8]) -> Result<(), TlsError> {
        let (hello, offer) = read_hello_body(whole)?;
        self.server_name = hello.server_name.map(str::to_owned);
        self.peer_parameters = hello.transport_parameters.map(<[u8]>::to_vec);
        let chosen = self.alpn.iter().find(|ours| hello.alpn.contains(&ours.as_slice()));
        if chosen.is_none() && !self.alpn.is_empty() {
            let reason = "the client offers no protocol of the server";
            return Err(error(alert::NO_APPLICATION_PROTOCOL, reason));
        }
        self.chosen_alpn = chosen.cloned();
        let client = Secret::of(whole);
        if let Some(Offer { ticket, early_data }) = offer
            && let Some(terms) = self.resumes(&ticket)
        {
            self.resumed = true;
            if early_data && terms.early_data && ticket.fits(self.chosen_alpn.as_deref()) {
                self.early_data = EarlyData::Accepted;
                self.early_secret = Some(client.in_version(self.version));
            }
        }
        self.answer_client_hello(client);
        Ok(())
    }

    /// Who makes the tickets of this connection.
    fn issuer(&self, server: &ServerMemory) -> Secret {
        let name = self.server_name.as_deref().unwrap_or_default();
        server.traits.ticket_key.and(Secret::of(name.as_bytes())).in_version(self.version)
    }

    /// The server's present terms if it resumes the session of a ticket.
    fn resumes(&self, ticket: &Ticket) -> Option<Terms> {
        let server = self.server.as_ref()?;
        ticket.resumes(self.issuer(server), &server.terms).then_some(server.terms)
    }

    /// The server's first flight.
    fn answer_client_hello(&mut self, client: Secret) {
        let own = Secret::of(&self.parameters);
        self.secret = client.and(own);
        let mut hello = Vec::new();
        message::put(&mut hello, Kind::ServerHello, flight::server_hello(self.resumed), |out| {
            out.extend_from_slice(&own.to_bytes());
            out.push(u8::from(self.resumed));
        });
        let alpn = self.chosen_alpn.as_deref();
        let mut rest = Vec::new();
        let early_data = self.early_data == EarlyData::Accepted;
        let named = self.server_name.is_some() && !self.resumed;
        let size = flight::encrypted_extensions(named, alpn, self.parameters.len())
            + if early_data { flight::EARLY_DATA } else { 0 };
        message::put(&mut rest, Kind::EncryptedExtensions, size, |out| {
            message::put_prefixed(out, &self.parameters);
            out.extend(length_and(alpn.unwrap_or_default()));
            out.push(u8::from(early_data));
        });
        if !self.resumed {
            let chain = self.server.as_ref().map_or(0, |server| server.traits.certificate_chain);
            message::put(&mut rest, Kind::Certificate, flight::certificate(chain), |_| {});
            message::put(&mut rest, Kind::CertificateVerify, flight::CERTIFICATE_VERIFY, |_| {});
        }
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
        let mut body = message::body(whole);
        let server = body.array::<8>().map_err(decode_error)?;
        self.resumed = body.u8().map_err(decode_error)? != 0;
        if self.resumed && self.client.offered.is_none() {
            let reason = "the server resumes a session that the client does not offer";
            return Err(error(alert::ILLEGAL_PARAMETER, reason));
        }
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
        let accepted = body.u8().map_err(decode_error)? != 0;
        self.early_data = match (self.early_data, accepted) {
            (EarlyData::Offered, true) if self.resumed => EarlyData::Accepted,
            (EarlyData::Offered, false) => EarlyData::Rejected,
            (outcome, false) => outcome,
            (_, true) => {
                let reason = "the server accepts early data that the client does not offer";
                return Err(error(alert::UNSUPPORTED_EXTENSION, reason));
            }
        };
        let next = if self.resumed { Kind::Finished } else { Kind::Certificate };
        self.expect = Expect::Message(next);
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
                if let Some(server) = &self.server {
                    let issuer = self.issuer(server);
                    let ticket = Ticket::new(issuer, self.chosen_alpn.as_deref(), &server.terms);
                    let size = flight::session_ticket(ticket.early_data);
                    for _ in 0..flight::SESSION_TICKETS {
                        let put = |out: &mut Vec<u8>| ticket.put(out);
                        message::put(&mut bytes, Kind::SessionTicket, size, put);
                    }
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
            resumed: self.resumed,
        })
    }

    fn early_data(&self) -> EarlyData {
        self.early_data
    }

    fn zero_rtt_keys(&mut self) -> Option<DirectionKeys> {
        let keys = self.early_secret?.keys(Level::ZeroRtt, self.role);
        Some(if self.role.is_client() { keys.local } else { keys.remote })
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        let offered = self.client.offered.as_ref()?;
        (self.early_data != EarlyData::NotOffered).then_some(&offered.parameters)
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
        _ => message::first(bytes)
            .map(|whole| read_hello_body(whole).map(|(hello, _)| hello))
            .transpose(),
    }
}

/// A session that a client offers to resume.
struct Offer {
    ticket: Ticket,
    early_data: bool,
}

fn read_hello_body(whole: &[u8]) -> Result<(ClientHello<'_>, Option<Offer>), TlsError> {
    let mut body = message::body(whole);
    let name = message::prefixed(&mut body).map_err(decode_error)?;
    let parameters = message::prefixed(&mut body).map_err(decode_error)?;
    let offered = message::prefixed(&mut body).map_err(decode_error)?;
    let ticket = message::prefixed(&mut body).map_err(decode_error)?;
    let offer = if ticket.is_empty() {
        None
    } else {
        let ticket = Ticket::read(&mut Reader::new(ticket)).map_err(decode_error)?;
        Some(Offer { ticket, early_data: body.u8().map_err(decode_error)? != 0 })
    };
    let hello = ClientHello {
        server_name: std::str::from_utf8(name).ok().filter(|name| !name.is_empty()),
        alpn: names(offered)?,
        transport_parameters: Some(parameters),
        legacy_session_id: &[],
    };
    Ok((hello, offer))
}

/// A name with a length byte before it; names have at most 255 bytes.
fn length_and(name: &[u8]) -> impl Iterator<Item = u8> + '_ {
    std::iter::once(name.len() as u8).chain(name.iter().copied())
}

/// The names of a list in which each has a length byte before it.
fn names(list: &[u8]) -> Result<Vec<&[u8]>, TlsError> {
    let mut reader = Reader::new(list);
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
