//! noq: all paths.

mod transport;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::{Connection, Endpoint, FourTuple, PathStatus};
use quipu_cli::foreign::{Connecting, ForeignStack, Listening, Way};
use quipu_live::foreign::{Doing, ForeignClient, ForeignFailure};
use quipu_scenario::StackName;

use crate::Failure;
use crate::setup::{SERVER_NAME, library};

/// Paths of a connection at a time, at most: more than networks have.
const PATHS: u32 = 16;

/// How often, and how many times, opening a path is tried: the connection IDs for it may be on the way.
const LOOK: Duration = Duration::from_millis(2);
const TRIES: u32 = 500;

library!(noq, transport::Connection, Bbr3Config, |config| {
    config.max_concurrent_multipath_paths(PATHS);
});

/// HTTP/3 over noq, whose client opens a path to each address of the server.
#[derive(Clone, Copy, Debug)]
pub struct Noq;

impl ForeignStack for Noq {
    fn name(&self) -> StackName {
        StackName::NoqH3
    }

    fn connect(&self, to: Connecting) -> Doing<'static, Arc<dyn ForeignClient>> {
        Box::pin(async move { connect(to).await.map_err(ForeignFailure::new) })
    }

    fn serve(&self, at: Listening) -> Result<Doing<'static, ()>, ForeignFailure> {
        serve(at).map_err(ForeignFailure::new)
    }
}

async fn connect(to: Connecting) -> Result<Arc<dyn ForeignClient>, Failure> {
    client(dial(&to).await?).await
}

/// A connection, whose paths are open, or being opened.
async fn dial(to: &Connecting) -> Result<Connection, Failure> {
    let (first, others) = to.ways.split_first().ok_or("there is no path")?;
    // One socket for all paths, which are told apart by addresses.
    let everywhere: IpAddr = match first.local {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let endpoint = Endpoint::client(SocketAddr::new(everywhere, 0))?;
    let config = client_config(to.pin, to.congestion)?;
    let connection = endpoint.connect_with(config, first.server, SERVER_NAME)?.await?;
    let opening = open(connection.clone(), others.to_vec());
    match to.waits_for_paths {
        true => opening.await?,
        // A path that does not open is one less.
        false => drop(tokio::spawn(opening)),
    }
    Ok(connection)
}

/// Opens a path by each of `ways`.
async fn open(connection: Connection, ways: Vec<Way>) -> Result<(), Failure> {
    if ways.is_empty() {
        return Ok(());
    }
    connection.handshake_confirmed().await?;
    for way in ways {
        let mut tries = 0;
        let to = FourTuple::new(way.server, Some(way.local));
        while let Err(error) = connection.open_path(to, PathStatus::Available).await {
            tries += 1;
            if tries > TRIES || connection.close_reason().is_some() {
                return Err(error.into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
