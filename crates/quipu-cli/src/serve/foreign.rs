//! `quipu serve --stack`: the server of a stack that the program brings, for emulated loads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_scenario::Stack;
use quipu_serve::Site;
use quipu_tokio::tokio;

use crate::args::ServeOptions;
use crate::failure::Failure;
use crate::foreign::Listening;
use crate::live;
use crate::own::Own;
use crate::stop;

/// Serves `site` by the stack called `text` until the program is stopped. What is open then is cut.
pub(super) fn run(
    options: &ServeOptions,
    text: &str,
    site: &Site,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let wrong = |reason: String| Failure::Usage(format!("--stack: {reason}"));
    let stack: Stack = text.parse().map_err(|error| wrong(format!("{error}")))?;
    let choice = stack.foreign();
    let choice = choice.ok_or_else(|| wrong(format!("{text}: expected quinn-h3 or noq-h3")))?;
    let stack = own.stacks.of(choice)?;
    let everywhere = SocketAddr::from(([0; 16], 4433));
    let address = options.listen.first().copied().unwrap_or(everywhere);
    let certificates = Arc::new(super::certificates(options, site)?);
    let pin = certificates.pin();
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let mut listening = Listening::new(address, certificates, site.clone());
    listening.congestion = choice.congestion;
    let runtime = live::runtime_of(options.threads.map(usize::from))?;
    runtime.block_on(async {
        let serving = stack.serve(listening).map_err(Failure::run)?;
        crate::print(&format!("serving over {text} on {address}\npin {pin}\n"))?;
        tokio::select! {
            served = serving => served.map_err(Failure::run),
            () = live::asked_to_stop(&stopped) => Ok(()),
        }
    })
}
