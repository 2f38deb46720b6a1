//! Quipu as an endpoint of the tests of HTTP/3: see the library's map.
//!
//! `SSLKEYLOGFILE` names a file for the secrets of connections, `QLOGDIR` a folder for their qlog.

use std::sync::Arc;

use quipu_interop_live::{Failure, Options, Role, finish};
use quipu_qlog::QlogFolder;
use quipu_quic::recorder::RecorderFactory;

#[path = "../quipu/http3/client.rs"]
mod client;
#[path = "../quipu/logs.rs"]
mod logs;
#[path = "../quipu/http3/server.rs"]
mod server;
#[path = "../quipu/settings.rs"]
mod settings;

#[tokio::main]
async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    let options = Arc::new(Options::read_http3()?);
    let logs = logs::qlog_folder(options.role)?;
    let recorders: Option<RecorderFactory> = logs.as_ref().map(QlogFolder::recorders);
    match options.role {
        Role::Client => client::run(&options, recorders).await?,
        Role::Server => server::run(&options, recorders).await?,
    }
    if let Some(logs) = logs {
        logs.finish()?;
    }
    Ok(())
}

/// Tells how much QPACK's dynamic tables were used: fields inserted by this end, references to these, and
/// fields inserted by the peer.
fn tell_table(used: quipu_tokio::http3::TableUse) {
    use quipu_interop_live::facts::tell;
    tell("table_inserted", used.inserted);
    tell("table_references", used.references);
    tell("table_received", used.received);
}
