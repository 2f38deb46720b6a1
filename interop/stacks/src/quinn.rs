//! quinn: one path.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::Endpoint;
use quipu_cli::foreign::{Connecting, ForeignStack, Listening};
use quipu_live::foreign::{Doing, ForeignClient, ForeignFailure};
use quipu_scenario::StackName;

use crate::Failure;
use crate::setup::{SERVER_NAME, library};

library!(quinn, h3_quinn::Connection, BbrConfig, |_| {});

/// HTTP/3 over quinn, with the published adapter of `h3`.
#[derive(Clone, Copy, Debug)]
pub struct Quinn;

impl ForeignStack for Quinn {
    fn name(&self) -> StackName {
        StackName::QuinnH3
    }

    fn connect(&self, to: Connecting) -> Doing<'static, Arc<dyn ForeignClient>> {
        Box::pin(async move { connect(to).await.map_err(ForeignFailure::new) })
    }

    fn serve(&self, at: Listening) -> Result<Doing<'static, ()>, ForeignFailure> {
        serve(at).map_err(ForeignFailure::new)
    }
}

async fn connect(to: Connecting) -> Result<Arc<dyn ForeignClient>, Failure> {
    let way = to.ways.first().ok_or("there is no path")?;
    let endpoint = Endpoint::client(SocketAddr::new(way.local, 0))?;
    let config = client_config(to.pin, to.congestion)?;
    client(endpoint.connect_with(config, way.server, SERVER_NAME)?.await?).await
}
