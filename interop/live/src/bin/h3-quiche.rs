//! quiche as a peer of the tests of HTTP/3. It has no sockets of its own: the loops are in `src/quiche`.
//!
//! What its interface does not offer, `harness/peers.py` tells case by case.

#![expect(clippy::disallowed_methods, reason = "it is a runtime, and quiche reads the same clock")]

use quipu_interop_live::{Failure, Options, Role, finish};

#[path = "../quiche/http3/client.rs"]
mod client;
#[path = "../quiche/http3/connection.rs"]
mod connection;
#[path = "../quiche/http3/convert.rs"]
mod convert;
#[path = "../quiche/http3/messages.rs"]
mod messages;
#[path = "../quiche/http3/responses.rs"]
mod responses;
#[path = "../quiche/server.rs"]
mod server;
#[path = "../quiche/settings.rs"]
mod settings;
#[path = "../quiche/sockets.rs"]
mod sockets;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    let options = Options::read_http3()?;
    match options.role {
        Role::Client => client::run(&options).await,
        Role::Server => server::run::<responses::Responses>(&options).await,
    }
}
