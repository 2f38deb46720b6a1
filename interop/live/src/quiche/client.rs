//! Fetches files.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use quiche::{Connection, ConnectionId};
use quipu_interop_live::{Case, Failure, Options, Url, facts, files};

use crate::settings::{self, ID_BYTES};
use crate::sockets::Sockets;
use crate::streams::Streams;

/// Bytes of a file, at most.
const LIMIT: usize = 1 << 30;

/// Bytes that have come when a client does what its case is about.
const SOME: u64 = 200_000;

/// Bytes of a stateless reset token.
const TOKEN: usize = 16;

/// A ticket that has not come by then does not come, nor does the end of a connection.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let mut session = None;
    let connections = options.connections();
    for (at, urls) in connections.iter().enumerate() {
        let needs_ticket = options.case.connects_twice() && at == 0 && connections.len() > 1;
        if let Some(mut fetching) = Fetching::start(options, urls, session.as_deref()).await? {
            session = fetching.run(needs_ticket).await?;
        }
    }
    Ok(())
}

/// A connection and the files that it fetches.
struct Fetching<'a> {
    options: &'a Options,
    sockets: Sockets,
    connection: Connection,
    streams: Streams,
    unasked: std::slice::Iter<'a, Url>,
    asked: BTreeMap<u64, &'a Url>,
    next_stream: u64,
    has_moved: bool,
    was_reset: bool,
}

impl<'a> Fetching<'a> {
    async fn start(
        options: &'a Options,
        urls: &'a [Url],
        session: Option<&[u8]>,
    ) -> Result<Option<Self>, Failure> {
        let Some(first) = urls.first() else { return Ok(None) };
        let mut sockets = Sockets::new();
        let local = sockets.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).await?;
        let mut config = settings::client(options)?;
        let id = ConnectionId::from_vec(settings::random::<ID_BYTES>()?.to_vec());
        let mut connection =
            quiche::connect(Some(&first.host), &id, local, first.address()?, &mut config)?;
        if let Some(session) = session {
            connection.set_session(session)?;
        }
        Ok(Some(Fetching {
            options,
            sockets,
            connection,
            streams: Streams::with_limit(LIMIT),
            unasked: urls.iter(),
            asked: BTreeMap::new(),
            next_stream: 0,
            has_moved: false,
            was_reset: false,
        }))
    }

    /// Fetches all, closes, and returns the session for the next connection.
    async fn run(&mut self, needs_ticket: bool) -> Result<Option<Vec<u8>>, Failure> {
        let mut complete_since = None;
        // The first flight, before which 0-RTT has no keys.
        self.sockets.flush(&mut self.connection).await?;
        loop {
            self.ask()?;
            self.sockets.flush(&mut self.connection).await?;
            let is_complete = self.asked.is_empty() && self.unasked.len() == 0;
            if is_complete && !self.is_ended() {
                let since = *complete_since.get_or_insert_with(Instant::now);
                let has_ticket = self.connection.session().is_some();
                if !needs_ticket || has_ticket || since.elapsed() > PATIENCE {
                    break;
                }
            }
            if self.is_ended() {
                return self.ended();
            }
            self.step().await?;
            self.take()?;
            self.give_ids()?;
            self.migrate().await?;
        }
        let session = self.connection.session().map(<[u8]>::to_vec);
        self.close().await?;
        Ok(session)
    }

    /// Waits for a datagram or a deadline, and has the connection act on it.
    async fn step(&mut self) -> Result<(), Failure> {
        self.sockets.wait(self.connection.timeout_instant()).await?;
        while let Some((datagram, info)) = self.sockets.receive()? {
            let parameters = self.connection.peer_transport_params();
            let token = parameters.and_then(|of_peer| of_peer.stateless_reset_token);
            let has_token = token.is_some_and(|token| datagram.ends_with(&token.to_be_bytes()));
            let was_open = !self.connection.is_closed();
            match self.connection.recv(datagram, info) {
                Ok(_) | Err(quiche::Error::Done) => {}
                Err(error) => eprintln!("a datagram of {} B: {error}", datagram.len()),
            }
            self.was_reset |= has_token && was_open && self.connection.is_closed();
        }
        if self.connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.connection.on_timeout();
        }
        Ok(())
    }

    /// Asks for as many files as the server allows at once.
    fn ask(&mut self) -> Result<(), Failure> {
        if !self.connection.is_established() && !self.connection.is_in_early_data() {
            return Ok(());
        }
        while self.connection.peer_streams_left_bidi() > 0 {
            let Some(url) = self.unasked.next() else { break };
            self.streams.write(self.next_stream, files::request(&url.path));
            self.streams.advance(&mut self.connection)?;
            self.asked.insert(self.next_stream, url);
            self.next_stream += 4;
        }
        self.streams.advance(&mut self.connection)
    }

    /// Saves the files of which all has come.
    fn take(&mut self) -> Result<(), Failure> {
        for (stream, bytes) in self.streams.read(&mut self.connection)? {
            let Some(url) = self.asked.remove(&stream) else { continue };
            files::save(&self.options.downloads, &url.path, &bytes)?;
        }
        Ok(())
    }

    /// Gives the server connection IDs for other addresses.
    fn give_ids(&mut self) -> Result<(), Failure> {
        while self.connection.is_established() && self.connection.scids_left() > 0 {
            let id = ConnectionId::from_vec(settings::random::<ID_BYTES>()?.to_vec());
            let token = u128::from_be_bytes(settings::random::<TOKEN>()?);
            self.connection.new_scid(&id, token, false)?;
        }
        Ok(())
    }

    /// In mid-transfer, moves to the address that was named.
    async fn migrate(&mut self) -> Result<(), Failure> {
        let is_due = self.options.case == Case::Migration
            && !self.has_moved
            && self.streams.received() >= SOME
            && self.connection.available_dcids() > 0;
        if is_due {
            let ip = self.options.via.first().copied();
            let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            let local = self.sockets.bind(SocketAddr::new(ip, 0)).await?;
            self.connection.migrate_source(local)?;
            self.has_moved = true;
        }
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.connection.is_closed() || self.connection.is_draining()
    }

    /// Something else than we ended the connection.
    fn ended(&self) -> Result<Option<Vec<u8>>, Failure> {
        if self.options.case == Case::StatelessReset && self.was_reset {
            facts::tell("reset", 1);
            return Ok(None);
        }
        let connection = &self.connection;
        let by_peer = connection.peer_error();
        let by_us = connection.local_error();
        let is_late = connection.is_timed_out();
        Err(format!("the connection ended: peer {by_peer:?}, local {by_us:?}, timed out {is_late}")
            .into())
    }

    /// Tells the server that the connection is over.
    async fn close(&mut self) -> Result<(), Failure> {
        if self.options.case == Case::StatelessReset {
            return Err("expected a stateless reset before all files came".into());
        }
        self.connection.close(true, 0, b"")?;
        let begin = Instant::now();
        while !self.connection.is_closed() && begin.elapsed() < PATIENCE {
            self.sockets.flush(&mut self.connection).await?;
            self.step().await?;
        }
        Ok(())
    }
}
