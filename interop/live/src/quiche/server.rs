//! The server's connections, over which a [`Protocol`] serves files.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use quiche::{Config, Connection, ConnectionId, Header, PathEvent, RecvInfo, Type};
use quipu_interop_live::{Case, Failure, Options, facts, tls};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::settings::{self, ID_BYTES, MAX_DATAGRAM};
use crate::sockets::Sockets;

/// Bytes of a stateless reset: those of a short packet, so that it does not stand out.
const RESET_BYTES: usize = 43;

/// Bytes of the tag before the connection ID in the token of a Retry.
const TAG_BYTES: usize = 32;

/// What goes over the streams of one connection.
pub(crate) trait Protocol {
    /// That of a new connection.
    fn new() -> Self;

    /// Reads what has come, and writes what is due.
    fn serve(&mut self, options: &Options, connection: &mut Connection) -> Result<(), Failure>;

    /// The connection is over.
    fn end(&self) {}
}

pub(crate) async fn run<P: Protocol>(options: &Options) -> Result<(), Failure> {
    let mut sockets = Sockets::new();
    let local = sockets.bind(options.listen).await?;
    facts::tell("listening", local);
    let mut server = Server {
        options,
        config: settings::server(options)?,
        keys: Keys::new(options)?,
        connections: BTreeMap::<u64, Served<P>>::new(),
        ids: BTreeMap::new(),
        accepted: 0,
    };
    loop {
        sockets.wait(server.next_timeout()).await?;
        let mut answers = Vec::new();
        while let Some((datagram, info)) = sockets.receive()? {
            if let Some(answer) = server.receive(datagram, info)? {
                answers.push((info, answer));
            }
        }
        for (info, answer) in answers {
            sockets.send(info.to, info.from, &answer).await?;
        }
        server.advance(&sockets).await?;
    }
}

/// What identifiers and tokens are made with.
struct Keys {
    random: SystemRandom,
    ids: hmac::Key,
    retries: hmac::Key,
    resets: hmac::Key,
}

impl Keys {
    fn new(options: &Options) -> Result<Self, Failure> {
        let random = SystemRandom::new();
        let key = || {
            hmac::Key::generate(hmac::HMAC_SHA256, &random)
                .map_err(|_| "the system has no random bytes")
        };
        let (ids, retries) = (key()?, key()?);
        Ok(Keys { random, ids, retries, resets: tls::reset_key(options)? })
    }

    /// Our first connection ID for one that a client made up: later datagrams with either arrive.
    fn first_id(&self, of_client: &[u8]) -> Vec<u8> {
        hmac::sign(&self.ids, of_client).as_ref().iter().copied().take(ID_BYTES).collect()
    }

    fn random_id(&self) -> Result<Vec<u8>, Failure> {
        let mut id = vec![0; ID_BYTES];
        self.random.fill(&mut id).map_err(|_| "the system has no random bytes")?;
        Ok(id)
    }

    fn reset_token(&self, id: &[u8]) -> u128 {
        u128::from_be_bytes(tls::reset_token(&self.resets, id))
    }

    /// The tag and, behind it, the connection ID that the client had before the Retry.
    fn retry_token(&self, client: SocketAddr, original: &[u8]) -> Vec<u8> {
        let signed = [client.to_string().as_bytes(), original].concat();
        let tag = hmac::sign(&self.retries, &signed);
        [tag.as_ref(), original].concat()
    }

    /// The connection ID from a token that we gave to that client.
    fn original_id(&self, client: SocketAddr, token: &[u8]) -> Option<Vec<u8>> {
        let (tag, original) = token.split_at_checked(TAG_BYTES)?;
        let signed = [client.to_string().as_bytes(), original].concat();
        hmac::verify(&self.retries, &signed, tag).ok()?;
        Some(original.to_vec())
    }
}

struct Served<P> {
    connection: Connection,
    protocol: P,
}

struct Server<'a, P> {
    options: &'a Options,
    config: Config,
    keys: Keys,
    connections: BTreeMap<u64, Served<P>>,
    ids: BTreeMap<Vec<u8>, u64>,
    accepted: u64,
}

impl<P: Protocol> Server<'_, P> {
    fn next_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(|served| served.connection.timeout_instant()).min()
    }

    /// Gives a datagram to its connection; returns what is to be answered without one.
    fn receive(&mut self, datagram: &mut [u8], info: RecvInfo) -> Result<Option<Vec<u8>>, Failure> {
        let Ok(header) = Header::from_slice(datagram, ID_BYTES) else { return Ok(None) };
        let known = self.ids.get(header.dcid.as_ref());
        let number = match known.or_else(|| self.ids.get(&self.keys.first_id(&header.dcid))) {
            Some(number) => *number,
            None => match self.first(&header, datagram.len(), info)? {
                First::Connection(number) => number,
                First::Answer(answer) => return Ok(Some(answer)),
                First::Nothing => return Ok(None),
            },
        };
        let Some(served) = self.connections.get_mut(&number) else { return Ok(None) };
        match served.connection.recv(datagram, info) {
            Ok(_) | Err(quiche::Error::Done) => {}
            Err(error) => eprintln!("a datagram of {} B: {error}", datagram.len()),
        }
        Ok(None)
    }

    /// What comes of a datagram of no connection that is known.
    fn first(
        &mut self,
        header: &Header<'_>,
        bytes: usize,
        info: RecvInfo,
    ) -> Result<First, Failure> {
        if header.ty == Type::Short {
            return self.reset(&header.dcid, bytes);
        }
        let mut answer = vec![0; MAX_DATAGRAM];
        if !quiche::version_is_supported(header.version) {
            let written = quiche::negotiate_version(&header.scid, &header.dcid, &mut answer)?;
            answer.truncate(written);
            return Ok(First::Answer(answer));
        }
        if header.ty != Type::Initial {
            return Ok(First::Nothing);
        }
        let mut original = None;
        let mut id = self.keys.first_id(&header.dcid);
        if self.options.case == Case::Retry {
            let token = header.token.as_deref().unwrap_or_default();
            if token.is_empty() {
                let token = self.keys.retry_token(info.from, &header.dcid);
                let new = ConnectionId::from_vec(id);
                let version = header.version;
                let (scid, dcid) = (&header.scid, &header.dcid);
                let written = quiche::retry(scid, dcid, &new, &token, version, &mut answer)?;
                answer.truncate(written);
                facts::tell("retry_sent", 1);
                return Ok(First::Answer(answer));
            }
            original = self.keys.original_id(info.from, token);
            if original.is_none() {
                return Ok(First::Nothing);
            }
            // The client took this one from the Retry.
            id = header.dcid.to_vec();
        }
        facts::tell("address_proved", u8::from(original.is_some()));
        Ok(First::Connection(self.accept(id, original, info)?))
    }

    fn accept(
        &mut self,
        id: Vec<u8>,
        original: Option<Vec<u8>>,
        info: RecvInfo,
    ) -> Result<u64, Failure> {
        self.config.set_stateless_reset_token(Some(self.keys.reset_token(&id)));
        let connection = quiche::accept(
            &ConnectionId::from_ref(&id),
            original.map(ConnectionId::from_vec).as_ref(),
            info.to,
            info.from,
            &mut self.config,
        )?;
        let number = self.accepted;
        self.accepted += 1;
        self.ids.insert(id, number);
        self.connections.insert(number, Served { connection, protocol: P::new() });
        Ok(number)
    }

    /// A server that lost its state says so to a client that it does not know, with fewer bytes
    /// than the client sent, so that two such servers come to an end.
    fn reset(&self, id: &[u8], bytes: usize) -> Result<First, Failure> {
        if bytes <= RESET_BYTES {
            return Ok(First::Nothing);
        }
        let token = self.keys.reset_token(id).to_be_bytes();
        let mut datagram = vec![0; RESET_BYTES - token.len()];
        self.keys.random.fill(&mut datagram).map_err(|_| "the system has no random bytes")?;
        // It looks like a short packet.
        if let Some(first) = datagram.first_mut() {
            *first = (*first & 0x3f) | 0x40;
        }
        datagram.extend_from_slice(&token);
        Ok(First::Answer(datagram))
    }

    /// Lets all connections do what is due, and sends what they have to send.
    async fn advance(&mut self, sockets: &Sockets) -> Result<(), Failure> {
        let now = Instant::now();
        let mut over = Vec::new();
        for (number, served) in &mut self.connections {
            let connection = &mut served.connection;
            if connection.timeout_instant().is_some_and(|at| at <= now) {
                connection.on_timeout();
            }
            while let Some(event) = connection.path_event_next() {
                if let PathEvent::New(local, peer) = event {
                    // quiche follows the client once the address is proved.
                    connection.probe_path(local, peer)?;
                }
            }
            while connection.is_established() && connection.scids_left() > 0 {
                let id = self.keys.random_id()?;
                let token = self.keys.reset_token(&id);
                connection.new_scid(&ConnectionId::from_ref(&id), token, false)?;
                self.ids.insert(id, *number);
            }
            while let Some(retired) = connection.retired_scid_next() {
                self.ids.remove(retired.as_ref());
            }
            let connection = &mut served.connection;
            let is_over = connection.is_closed() || connection.is_draining();
            if !is_over && (connection.is_established() || connection.is_in_early_data()) {
                served.protocol.serve(self.options, connection)?;
            }
            sockets.flush(&mut served.connection).await?;
            if served.connection.is_closed() {
                served.protocol.end();
                let ended = &served.connection;
                facts::tell(
                    "closed",
                    format_args!("peer {:?}, local {:?}", ended.peer_error(), ended.local_error()),
                );
                over.push(*number);
            }
        }
        for number in over {
            self.connections.remove(&number);
            self.ids.retain(|_, of| *of != number);
        }
        Ok(())
    }
}

/// What a datagram of no connection that is known begins.
enum First {
    Connection(u64),
    Answer(Vec<u8>),
    Nothing,
}
