//! Fetches files.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use quipu_base::PathId;
use quipu_interop_live::{Case, Failure, Options, Url, facts, files};
use quipu_quic::connection::CloseReason;
use quipu_quic::recorder::RecorderFactory;
use quipu_tokio::error::ConnectionError;
use quipu_tokio::{ClientConfig, Connection, Endpoint, PathEvent, Via};
use tokio::task::JoinSet;

use crate::{program, settings};

/// Bytes of a file, at most.
const LIMIT: usize = 1 << 30;

/// Bytes that have come when a client does what its case is about.
const SOME: u64 = 200_000;

/// How often it looks whether they have.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) async fn run(
    options: &Options,
    recorders: Option<RecorderFactory>,
) -> Result<(), Failure> {
    let config = settings::client(options)?;
    let mut builder = Endpoint::client();
    if options.case.has_paths() {
        for address in &options.via {
            builder = builder.via(Via::Address(*address));
        }
    }
    let endpoint = program::bind_client(builder, recorders)?;
    for urls in options.connections() {
        fetch_all(options, &endpoint, &config, urls).await?;
    }
    program::farewell(&endpoint).await;
    Ok(())
}

/// Fetches files by one connection.
async fn fetch_all(
    options: &Options,
    endpoint: &Endpoint,
    config: &ClientConfig,
    urls: &[Url],
) -> Result<(), Failure> {
    let Some(first) = urls.first() else { return Ok(()) };
    let remote = first.address()?;
    // In the second of two connections, this asks before the handshake is over.
    let connection = match options.case {
        Case::ZeroRtt => endpoint.connect_early(config, remote, &first.host).await?,
        _ => endpoint.connect(config, remote, &first.host).await?,
    };
    let events = tokio::spawn(watch(connection.clone()));
    let mut running = JoinSet::new();
    for url in urls {
        running.spawn(fetch(connection.clone(), options.downloads.clone(), url.path.clone()));
    }
    let acting = act(options, &connection, remote);
    let fetching = async {
        while let Some(fetched) = running.join_next().await {
            fetched??;
        }
        Ok::<(), Failure>(())
    };
    let (acted, fetched) = tokio::join!(acting, fetching);
    if options.case == Case::StatelessReset {
        return expect_reset(&connection, fetched);
    }
    fetched?;
    acted?;
    settings::tell(&connection);
    connection.close(0, b"");
    events.abort();
    Ok(())
}

async fn fetch(
    connection: Connection,
    downloads: std::path::PathBuf,
    path: String,
) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bidirectional().await?;
    send.write_bytes(files::request(&path).into()).await?;
    send.finish()?;
    let bytes = receive.read_to_limit(LIMIT).await?;
    files::save(&downloads, &path, &bytes)
}

/// What a client does of its own while files come.
async fn act(
    options: &Options,
    connection: &Connection,
    remote: SocketAddr,
) -> Result<(), Failure> {
    match options.case {
        Case::KeyUpdate => {
            connection.confirmed().await?;
            received(connection, SOME).await?;
            while !connection.update_keys() {
                tokio::time::sleep(LOOK).await;
            }
        }
        Case::Migration => {
            received(connection, SOME).await?;
            migrate(options, connection, remote).await?;
        }
        Case::MultipathAbandon => {
            both_used(connection).await?;
            connection.remove_path(PathId::ZERO)?;
            facts::tell("abandoned", 0);
        }
        _ => {}
    }
    Ok(())
}

/// Moves to the address that was named, or to another port.
async fn migrate(
    options: &Options,
    connection: &Connection,
    remote: SocketAddr,
) -> Result<(), Failure> {
    let present: Option<IpAddr> = connection.route().map(|route| route.local.ip());
    let fits = |address: &IpAddr| address.is_ipv4() == remote.is_ipv4();
    let to = options.via.iter().copied().find(fits).or(present);
    let to = to.ok_or("the connection is over before it could be moved")?;
    let mut refusals = 0;
    while let Err(error) = connection.migrate_path(PathId::ZERO, Via::Address(to)) {
        // The server's connection IDs for other addresses may be on the way.
        refusals += 1;
        if refusals > 100 {
            return Err(error.into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Waits until so many bytes have come.
async fn received(connection: &Connection, bytes: u64) -> Result<(), Failure> {
    loop {
        let stats = connection.stats().ok_or("the connection is over too soon")?;
        if stats.totals.bytes_received >= bytes {
            return Ok(());
        }
        if let Some(reason) = connection.close_reason() {
            return Err(reason.into());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until two paths have brought data.
async fn both_used(connection: &Connection) -> Result<(), Failure> {
    loop {
        let paths = connection.paths();
        let used = |least: u64| {
            paths.iter().filter(|path| path.sample.counters.bytes_received >= least).count()
        };
        if used(SOME / 4) >= 2 {
            return Ok(());
        }
        if let Some(reason) = connection.close_reason() {
            return Err(reason.into());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The server lost its state: nothing else may have ended the connection.
fn expect_reset(connection: &Connection, fetched: Result<(), Failure>) -> Result<(), Failure> {
    match connection.close_reason() {
        Some(ConnectionError::Closed(CloseReason::StatelessReset)) => {
            facts::tell("reset", 1);
            Ok(())
        }
        reason => Err(format!("expected a stateless reset: {reason:?}, {fetched:?}").into()),
    }
}

/// Tells what happens to paths.
async fn watch(connection: Connection) {
    let mut events = connection.path_events();
    while let Some(event) = events.next().await {
        match event {
            PathEvent::Migrated(moved) => {
                facts::tell("migrated", format_args!("{} {}", moved.old.local, moved.new.local));
            }
            PathEvent::Up(path) => facts::tell("path_up", path.0),
            PathEvent::Gone(path) => facts::tell("path_gone", path.0),
            _ => {}
        }
    }
}
