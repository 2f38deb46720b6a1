//! What the programs for hq-interop and for HTTP/3 have in common: logs, sockets, and which end they are.

use std::path::Path;
use std::sync::Arc;

use quipu_interop_live::{Failure, Options, Role, facts};
use quipu_qlog::{Form, QlogFolder};
use quipu_quic::recorder::RecorderFactory;
use quipu_tokio::{ClientBuilder, Endpoint, ServerBuilder};

use crate::{client, server};

/// Runs the client or the server to its end.
pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let options = Arc::new(options);
    let logs = qlog_folder(options.role)?;
    let recorders = logs.as_ref().map(QlogFolder::recorders);
    match options.role {
        Role::Client => client::run(&options, recorders).await?,
        Role::Server => server::run(&options, recorders).await?,
    }
    if let Some(logs) = logs {
        logs.finish()?;
    }
    Ok(())
}

/// The socket of a client.
pub(crate) fn bind_client(
    mut builder: ClientBuilder,
    recorders: Option<RecorderFactory>,
) -> Result<Endpoint, Failure> {
    if let Some(recorders) = recorders {
        builder = builder.record(recorders);
    }
    Ok(builder.bind()?)
}

/// The sockets of a server, of which it tells.
pub(crate) fn bind_server(
    mut builder: ServerBuilder,
    recorders: Option<RecorderFactory>,
) -> Result<Endpoint, Failure> {
    if let Some(recorders) = recorders {
        builder = builder.record(recorders);
    }
    let endpoint = builder.bind()?;
    for address in endpoint.local_addresses() {
        facts::tell("listening", address);
    }
    Ok(endpoint)
}

/// Servers are told that their connections are over.
pub(crate) async fn farewell(endpoint: &Endpoint) {
    endpoint.wait_idle_for(quipu_base::Duration::from_secs(5)).await;
}

/// The folder that `QLOGDIR` names, if it names one.
fn qlog_folder(role: Role) -> Result<Option<QlogFolder>, Failure> {
    let Some(folder) = std::env::var_os("QLOGDIR").filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let title = match role {
        Role::Client => "interop client",
        Role::Server => "interop server",
    };
    Ok(Some(QlogFolder::create(Path::new(&folder), Form::Version03, title)?))
}
