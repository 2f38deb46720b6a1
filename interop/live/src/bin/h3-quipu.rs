//! Quipu as an endpoint of the tests of HTTP/3: see the library's map.
//!
//! `SSLKEYLOGFILE` names a file for the secrets of connections, `QLOGDIR` a folder for their qlog.

use quipu_interop_live::{Failure, Options, finish};

#[path = "../quipu/http3/client.rs"]
mod client;
#[path = "../quipu/program.rs"]
mod program;
#[path = "../quipu/http3/server.rs"]
mod server;
#[path = "../quipu/settings.rs"]
mod settings;

#[tokio::main]
async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    program::run(Options::read_http3()?).await
}

/// Tells how much QPACK's dynamic tables were used: fields inserted by this end, references to these, and
/// fields inserted by the peer.
fn tell_table(used: quipu_tokio::http3::TableUse) {
    use quipu_interop_live::facts::tell;
    tell("table_inserted", used.inserted);
    tell("table_references", used.references);
    tell("table_received", used.received);
}
