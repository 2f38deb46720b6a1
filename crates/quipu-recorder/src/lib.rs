//! Drives Chromium over the DevTools protocol and writes recordings of page loads.
//!
//! Start with [`Options`], which say what to load over which networks and how often, and [`record`], which does so and
//! gives [`Load`]s; [`file()`] makes one HAR file of them, with a trace of each. From the outside in:
//!
//! 1. `browser` finds and starts a Chromium with a new profile, and ends it whatever happens; `watchdog` does so if this
//!    process is killed.
//! 2. `client` speaks the DevTools protocol over a web socket: commands, answers, events.
//! 3. `shaper` calls a program that sets up the network, if one is given.
//! 4. `session` loads one page and collects what the browser tells, until the page is quiet.
//! 5. `observed` makes requests out of these events; `events` keeps what is read of a trace.
//! 6. `har` writes them with the fields of chrome-har; [`quipu_web::phases`] has their phases. `exchange` has what programs
//!    read of them.
//!
//! Not here: what a recording means for a page, which [`quipu_web::page`] and [`quipu_web::trace`] know.
#![expect(clippy::disallowed_methods, reason = "a real browser is driven in real time")]

mod browser;
mod client;
mod error;
mod events;
mod exchange;
mod har;
mod network;
mod observed;
mod options;
#[cfg(target_os = "linux")]
mod orphans;
mod progress;
mod session;
mod shaper;
mod values;
#[cfg(unix)]
mod watchdog;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub use error::RecordError;
pub use exchange::Exchange;
pub use har::file;
pub use network::Network;
pub use options::Options;
pub use progress::Progress;
pub use values::{OptionError, parse_host, parse_time, parse_viewport};

use browser::Browser;
use observed::Observed;

/// The least version of Chromium that is driven: the first whose headless mode is the browser itself.
pub const LEAST_CHROMIUM: u32 = 112;

/// One load of a page, as the browser told it.
#[derive(Debug)]
pub struct Load {
    /// The network that it went over.
    pub network: Network,
    /// Which load over this network it is, from 1.
    pub repeat: u32,
    url: String,
    browser: String,
    viewport: (u32, u32),
    shaped: bool,
    observed: Observed,
}

/// What came of recording.
#[derive(Debug)]
#[must_use]
pub struct Outcome {
    /// The loads that ended, in order, whatever happened afterwards.
    pub loads: Vec<Load>,
    /// Why it ended early, if it did.
    pub ended: Result<(), RecordError>,
}

/// The browser that is used where none is named: the first that is found by the usual names.
///
/// # Errors
/// [`RecordError::NoBrowser`] if there is none.
pub fn find_browser() -> Result<PathBuf, RecordError> {
    browser::find(None)
}

/// Loads the page over each network in turn, and again as often as `options` say: first each network once, so that
/// what changes with time touches all of them. Each load has a browser and a profile of its own. `tell` is told of
/// each load when it begins and when it ends. When `stop` becomes true, the browser is ended within a second.
pub fn record(
    options: &Options,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Progress<'_>),
) -> Outcome {
    let mut loads = Vec::new();
    let ended = record_all(options, stop, tell, &mut loads);
    Outcome { loads, ended }
}

fn record_all(
    options: &Options,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Progress<'_>),
    loads: &mut Vec<Load>,
) -> Result<(), RecordError> {
    let program = browser::find(options.chromium.as_deref())?;
    let total = options.networks.len() * options.repeat as usize;
    for repeat in 1..=options.repeat {
        for &network in &options.networks {
            let number = loads.len() + 1;
            tell(&Progress::Begins { number, total, network, repeat });
            if stop.load(Ordering::Relaxed) {
                return Err(RecordError::Interrupted);
            }
            if let Some(shaper) = &options.shaper {
                shaper::set(shaper, network)?;
            }
            let mut browser = Browser::start(&program, options, stop)?;
            let begin = || tell(&Progress::Navigates);
            let observed = session::load(&mut browser, options, network, begin)?;
            let version = browser.version().to_owned();
            browser.close();
            let load = Load {
                network,
                repeat,
                url: options.url.clone(),
                browser: version,
                viewport: options.viewport,
                shaped: options.shaper.is_some(),
                observed,
            };
            tell(&Progress::Ended { load: &load });
            loads.push(load);
        }
    }
    Ok(())
}
