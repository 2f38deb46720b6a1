//! What is told while pages are recorded.

use std::fmt;

use crate::{Load, Network};

/// Something that happened, as a line for the user.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A load begins.
    Begins {
        /// Its number, from 1.
        number: usize,
        /// Loads in all.
        total: usize,
        /// The network that it goes over.
        network: Network,
        /// Which load over this network it is, from 1.
        repeat: u32,
    },
    /// The browser is there, and is asked to load the page as soon as this is told.
    Navigates,
    /// A load has ended.
    Ended {
        /// The load.
        load: &'a Load,
    },
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Begins { number, total, network, repeat } => {
                write!(f, "load {number} of {total}: {network}, repeat {repeat}")
            }
            Progress::Navigates => f.write_str("  the browser is ready"),
            Progress::Ended { load } => {
                let observed = &load.observed;
                let requests = || observed.requests().iter().filter(|it| it.is_for_resource());
                let bytes = observed.transferred() / 1e3;
                write!(f, "  {} requests, {bytes:.0} kB, ", requests().count())?;
                match observed.on_load() {
                    Some(seconds) => write!(f, "load event after {seconds:.2} s")?,
                    None => f.write_str("no load event before the time was up")?,
                }
                let failed = requests().filter(|request| request.has_failed()).count();
                if failed > 0 {
                    write!(f, ", {failed} failed")?;
                }
                match observed.status() {
                    Some(status) if status >= 400.0 => write!(f, ", the page has status {status}"),
                    _ => Ok(()),
                }
            }
        }
    }
}
