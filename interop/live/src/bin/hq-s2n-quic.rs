//! s2n-quic as a peer, with TLS by rustls.
//!
//! What its interface does not offer, `harness/peers.py` tells case by case.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_interop_live::{
    Case, Failure, MAX_REQUEST, Options, Role, UnknownCase, Url, facts, files, finish, tls,
};
use s2n_quic::client::Connect;
use s2n_quic::connection::{Error, Handle};
use s2n_quic::provider::endpoint_limits;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::stateless_reset_token;
use s2n_quic::provider::tls::rustls::{Client as TlsClient, Server as TlsServer};
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Client, Connection, Server, application};
use s2n_quic_core::stateless_reset::Token;
use tokio::task::JoinSet;

/// Streams that a client may have open at once.
const STREAMS: u64 = 100;

/// Bytes of a file, at most.
const LIMIT: usize = 1 << 30;

#[tokio::main]
async fn main() {
    finish(run().await)
}

/// True if this program does it in that role.
fn does(case: Case, role: Role) -> bool {
    match case {
        Case::V2 | Case::Resumption | Case::ZeroRtt | Case::Multipath | Case::MultipathAbandon => {
            false
        }
        Case::VersionNegotiation | Case::KeyUpdate | Case::Migration => role == Role::Server,
        _ => true,
    }
}

async fn run() -> Result<(), Failure> {
    let options = Arc::new(Options::read()?);
    if !does(options.case, options.role) {
        return Err(UnknownCase(options.case.name().to_owned()).into());
    }
    match options.role {
        Role::Client => client(&options).await,
        Role::Server => server(&options).await,
    }
}

fn limits() -> Result<Limits, Failure> {
    Ok(Limits::new().with_max_open_remote_bidirectional_streams(STREAMS)?)
}

/// Reset tokens that a server which starts again makes anew.
struct ResetTokens(ring::hmac::Key);

impl stateless_reset_token::Generator for ResetTokens {
    fn generate(&mut self, local_connection_id: &[u8]) -> Token {
        tls::reset_token(&self.0, local_connection_id).into()
    }
}

impl stateless_reset_token::Provider for ResetTokens {
    type Generator = Self;
    type Error = std::convert::Infallible;

    fn start(self) -> Result<Self, Self::Error> {
        Ok(self)
    }
}

async fn server(options: &Arc<Options>) -> Result<(), Failure> {
    let mut config = tls::server(options)?;
    // It has no 0-RTT, and rustls does not know that.
    config.max_early_data_size = 0;
    // With room for no handshake whose address is not proved, all are answered by a Retry.
    let handshakes = if options.case == Case::Retry { 0 } else { usize::MAX };
    let mut server = Server::builder()
        .with_tls(TlsServer::from(config))?
        .with_io(options.listen)?
        .with_limits(limits()?)?
        .with_endpoint_limits(
            endpoint_limits::Default::builder()
                .with_inflight_handshake_limit(handshakes)?
                .build()?,
        )?
        .with_stateless_reset_token(ResetTokens(tls::reset_key(options)?))?
        .start()?;
    facts::tell("listening", server.local_addr()?);
    while let Some(connection) = server.accept().await {
        tokio::spawn(serve(Arc::clone(options), connection));
    }
    Ok(())
}

async fn serve(options: Arc<Options>, mut connection: Connection) {
    let mut answers = JoinSet::new();
    let ended = loop {
        match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => {
                let (receive, send) = stream.split();
                answers.spawn(answer(options.www.clone(), send, receive));
            }
            Ok(None) => break "without an error".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    facts::tell("closed", ended);
}

async fn answer(www: PathBuf, mut send: SendStream, mut receive: ReceiveStream) {
    let answered: Result<(), Failure> = async {
        let request = read(&mut receive, MAX_REQUEST).await?;
        send.send(files::answer(&www, &request)?.into()).await?;
        send.close().await?;
        Ok(())
    }
    .await;
    if let Err(error) = answered {
        facts::tell("answer_failed", error);
        let _ = send.reset(application::Error::from(1_u8));
    }
}

/// All of a stream, which is not to be longer than `limit`.
async fn read(receive: &mut ReceiveStream, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(part) = receive.receive().await? {
        bytes.extend_from_slice(&part);
        if bytes.len() > limit {
            return Err(format!("a stream is longer than {limit} bytes").into());
        }
    }
    Ok(bytes)
}

async fn client(options: &Options) -> Result<(), Failure> {
    let mut client = Client::builder()
        .with_tls(TlsClient::from(tls::client(options)?))?
        .with_io(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?
        .with_limits(limits()?)?
        .start()?;
    for urls in options.connections() {
        fetch_all(options, &client, urls).await?;
    }
    // Servers are told that their connections are over.
    let _ = tokio::time::timeout(Duration::from_secs(5), client.wait_idle()).await;
    Ok(())
}

async fn fetch_all(options: &Options, client: &Client, urls: &[Url]) -> Result<(), Failure> {
    let Some(first) = urls.first() else { return Ok(()) };
    let connect = Connect::new(first.address()?).with_server_name(first.host.as_str());
    let mut connection = client.connect(connect).await?;
    // Nothing but requests that are due keeps the connection of a client that waits for a reset.
    connection.keep_alive(true)?;
    let mut running = JoinSet::new();
    for url in urls {
        running.spawn(fetch(connection.handle(), options.downloads.clone(), url.path.clone()));
    }
    let mut fetched = Ok(());
    while let Some(one) = running.join_next().await {
        fetched = fetched.and(one?);
    }
    if options.case == Case::StatelessReset {
        return match connection.handle().ping() {
            Err(Error::StatelessReset { .. }) => {
                facts::tell("reset", 1);
                Ok(())
            }
            state => Err(format!("expected a stateless reset: {state:?}, {fetched:?}").into()),
        };
    }
    fetched?;
    connection.close(application::Error::UNKNOWN);
    Ok(())
}

async fn fetch(mut connection: Handle, downloads: PathBuf, path: String) -> Result<(), Failure> {
    let (mut receive, mut send) = connection.open_bidirectional_stream().await?.split();
    send.send(files::request(&path).into()).await?;
    send.finish()?;
    files::save(&downloads, &path, &read(&mut receive, LIMIT).await?)
}
