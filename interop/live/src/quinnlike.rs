//! quinn and noq, whose interfaces are the same but for paths.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_interop_live::{
    Case, Failure, MAX_REQUEST, Options, Role, UnknownCase, Url, facts, files, finish,
};
use tokio::task::JoinSet;

use crate::extra;
use crate::library::{
    ClientConfig, Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream, VarInt,
};
use crate::setup;

/// A draft of version 1, which these libraries still speak.
const DRAFT_29: u32 = 0xff00_001d;

/// Bytes of a file, at most.
const LIMIT: usize = 1 << 30;

/// Bytes that have come when a client does what its case is about.
const SOME: u64 = 200_000;

const LOOK: Duration = Duration::from_millis(2);

#[tokio::main]
pub(crate) async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    let options = Arc::new(Options::read()?);
    let unknown = match options.case {
        Case::V2 => true,
        case => case.has_paths() && !extra::has_paths(),
    };
    if unknown {
        return Err(UnknownCase(options.case.name().to_owned()).into());
    }
    match options.role {
        Role::Client => client(&options).await,
        Role::Server => server(&options).await,
    }
}

async fn server(options: &Arc<Options>) -> Result<(), Failure> {
    let endpoint = setup::server(options)?;
    while let Some(incoming) = endpoint.accept().await {
        let proved = incoming.remote_address_validated();
        if options.case == Case::Retry && !proved && incoming.may_retry() {
            facts::tell("retry_sent", u8::from(incoming.retry().is_ok()));
            continue;
        }
        facts::tell("address_proved", u8::from(proved));
        tokio::spawn(serve(Arc::clone(options), incoming));
    }
    Ok(())
}

async fn serve(options: Arc<Options>, incoming: Incoming) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        Err(error) => return facts::tell("refused", error),
    };
    extra::watch(&connection);
    let mut answers = JoinSet::new();
    while let Ok((send, receive)) = connection.accept_bi().await {
        answers.spawn(answer(options.www.clone(), send, receive));
    }
    facts::tell("closed", connection.closed().await);
}

async fn answer(www: PathBuf, mut send: SendStream, mut receive: RecvStream) {
    let answered: Result<(), Failure> = async {
        let request = receive.read_to_end(MAX_REQUEST).await?;
        send.write_all(&files::answer(&www, &request)?).await?;
        send.finish()?;
        send.stopped().await?;
        Ok(())
    }
    .await;
    if let Err(error) = answered {
        facts::tell("answer_failed", error);
        let _ = send.reset(VarInt::from_u32(1));
    }
}

async fn client(options: &Options) -> Result<(), Failure> {
    let mut config = setup::client(options)?;
    if options.case == Case::VersionNegotiation {
        config.version(DRAFT_29);
    }
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    for urls in options.connections() {
        fetch_all(options, &endpoint, &config, urls).await?;
    }
    // Servers are told that their connections are over.
    let _ = tokio::time::timeout(Duration::from_secs(5), endpoint.wait_idle()).await;
    Ok(())
}

async fn fetch_all(
    options: &Options,
    endpoint: &Endpoint,
    config: &ClientConfig,
    urls: &[Url],
) -> Result<(), Failure> {
    let Some(first) = urls.first() else { return Ok(()) };
    let connecting = endpoint.connect_with(config.clone(), first.address()?, &first.host)?;
    let (connection, early) = match connecting.into_0rtt() {
        Ok((connection, accepted)) => (connection, Some(accepted)),
        Err(connecting) => match (connecting.await, options.case) {
            (Ok(connection), _) => (connection, None),
            // It does not begin again in another version; that it learns of them is all.
            (Err(ConnectionError::VersionMismatch), Case::VersionNegotiation) => {
                facts::tell("version_mismatch", 1);
                return Ok(());
            }
            (Err(error), _) => return Err(error.into()),
        },
    };
    extra::watch(&connection);
    let mut running = JoinSet::new();
    for url in urls {
        running.spawn(fetch(connection.clone(), options.downloads.clone(), url.path.clone()));
    }
    let acting = act(options, endpoint, &connection);
    let fetching = async {
        while let Some(fetched) = running.join_next().await {
            fetched??;
        }
        Ok::<(), Failure>(())
    };
    let (acted, fetched) = tokio::join!(acting, fetching);
    if options.case == Case::StatelessReset {
        return match connection.close_reason() {
            Some(ConnectionError::Reset) => {
                facts::tell("reset", 1);
                Ok(())
            }
            reason => Err(format!("expected a stateless reset: {reason:?}, {fetched:?}").into()),
        };
    }
    fetched?;
    acted?;
    if let Some(accepted) = early {
        facts::tell("early", if accepted.await { "accepted" } else { "rejected" });
    }
    connection.close(VarInt::from_u32(0), b"");
    Ok(())
}

async fn fetch(connection: Connection, downloads: PathBuf, path: String) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&files::request(&path)).await?;
    send.finish()?;
    files::save(&downloads, &path, &receive.read_to_end(LIMIT).await?)
}

/// What a client does of its own while files come.
async fn act(
    options: &Options,
    endpoint: &Endpoint,
    connection: &Connection,
) -> Result<(), Failure> {
    match options.case {
        Case::KeyUpdate => {
            received(connection).await?;
            connection.force_key_update();
        }
        Case::Migration => {
            received(connection).await?;
            let ip = options.via.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED.into());
            endpoint.rebind(UdpSocket::bind(SocketAddr::new(ip, 0))?)?;
        }
        _ => extra::act(options, connection).await?,
    }
    Ok(())
}

async fn received(connection: &Connection) -> Result<(), Failure> {
    while connection.stats().udp_rx.bytes < SOME {
        if let Some(reason) = connection.close_reason() {
            return Err(reason.into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
