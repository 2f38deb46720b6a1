//! quinn: one path.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::{Endpoint, VarInt};
use quipu_cli::foreign::{Connecting, ForeignStack, Listening};
use quipu_live::foreign::{Doing, ForeignClient, ForeignFailure};
use quipu_scenario::StackName;

use crate::setup::{SERVER_NAME, configurations};
use crate::{Failure, http3};

configurations!(quinn, BbrConfig, |_| {});

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
        let endpoint = listen(&at).map_err(ForeignFailure::new)?;
        Ok(Box::pin(async move {
            while let Some(incoming) = endpoint.accept().await {
                let service = at.service.clone();
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    let client = connection.remote_address();
                    http3::serve(h3_quinn::Connection::new(connection), client, service).await;
                });
            }
            Ok(())
        }))
    }
}

fn listen(at: &Listening) -> Result<Endpoint, Failure> {
    let config = server_config(Arc::clone(&at.certificates), at.congestion)?;
    Ok(Endpoint::server(config, at.address)?)
}

async fn connect(to: Connecting) -> Result<Arc<dyn ForeignClient>, Failure> {
    let way = to.ways.first().ok_or("there is no path")?;
    let endpoint = Endpoint::client(SocketAddr::new(way.local, 0))?;
    let config = client_config(to.pin, to.congestion)?;
    let connection = endpoint.connect_with(config, way.server, SERVER_NAME)?.await?;
    let closed = connection.clone();
    let close = move || closed.close(VarInt::from_u32(http3::NO_ERROR), b"");
    let client = http3::client(h3_quinn::Connection::new(connection), Box::new(close)).await?;
    Ok(Arc::from(client))
}
