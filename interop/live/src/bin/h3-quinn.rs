//! h3 over quinn as a peer of the tests of HTTP/3.
//!
//! What its interface does not offer, `harness/peers.py` tells case by case.

use std::sync::Arc;

use quinn as library;
use quipu_interop_live::{Failure, Options, Role, finish};

#[path = "../h3_quinn/client.rs"]
mod client;
#[path = "../h3_quinn/server.rs"]
mod server;
#[path = "../quinnlike/setup.rs"]
mod setup;

mod extra {
    //! Nothing of HTTP/3 needs more than quinn has by itself.

    use quipu_interop_live::Options;

    pub(crate) fn transport(_: &Options, _: &mut quinn::TransportConfig) {}

    pub(crate) fn same_ids(_: &mut quinn::EndpointConfig) {}
}

#[tokio::main]
async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    let options = Arc::new(Options::read_http3()?);
    match options.role {
        Role::Client => client::run(&options).await,
        Role::Server => server::run(&options).await,
    }
}
