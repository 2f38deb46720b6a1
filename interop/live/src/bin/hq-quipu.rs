//! Quipu as an endpoint of interop tests: see the library's map, and `interop/runner` for its
//! container. Beside `client` and `server` it has `certificate FOLDER [long]`, which makes what a
//! server shows.
//!
//! `SSLKEYLOGFILE` names a file for the secrets of connections, `QLOGDIR` a folder for their qlog.

use std::path::Path;

use quipu_interop_live::{Failure, Options, certificate, finish};

#[path = "../quipu/client.rs"]
mod client;
#[path = "../quipu/program.rs"]
mod program;
#[path = "../quipu/server.rs"]
mod server;
#[path = "../quipu/settings.rs"]
mod settings;

#[tokio::main]
async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let ["certificate", folder, rest @ ..] =
        args.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        return certificate::make(Path::new(folder), rest.contains(&"long"));
    }
    program::run(Options::read()?).await
}
