//! quiche as a peer. It has no sockets of its own: the loops are in `src/quiche`.
//!
//! What its interface does not offer, `harness/peers.py` tells case by case.

#![expect(clippy::disallowed_methods, reason = "it is a runtime, and quiche reads the same clock")]

use quipu_interop_live::{Case, Failure, Options, Role, UnknownCase, finish};

#[path = "../quiche/client.rs"]
mod client;
#[path = "../quiche/hq.rs"]
mod hq;
#[path = "../quiche/server.rs"]
mod server;
#[path = "../quiche/settings.rs"]
mod settings;
#[path = "../quiche/sockets.rs"]
mod sockets;
#[path = "../quiche/streams.rs"]
mod streams;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    finish(run().await)
}

/// True if this program does it in that role.
fn does(case: Case, role: Role) -> bool {
    match case {
        Case::V2 | Case::Ecn | Case::Multipath | Case::MultipathAbandon => false,
        Case::KeyUpdate => role == Role::Server,
        _ => true,
    }
}

async fn run() -> Result<(), Failure> {
    let options = Options::read()?;
    if !does(options.case, options.role) {
        return Err(UnknownCase(options.case.name().to_owned()).into());
    }
    match options.role {
        Role::Client => client::run(&options).await,
        Role::Server => server::run::<streams::Streams>(&options).await,
    }
}
