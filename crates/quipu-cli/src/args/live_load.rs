//! Options of loads over real uplinks.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Over real uplinks")]
pub(crate) struct LiveLoadOptions {
    /// Load the page over real uplinks from the server at https://HOST[:PORT], such as `quipu serve --har`,
    /// which is asked for the objects of all hosts. Policies are those of this end; those of the server decide
    /// what comes when
    #[arg(long, value_name = "URL", conflicts_with_all = [
        "world", "network", "link", "trace_columns", "transport", "tls", "host", "series", "run", "out", "har",
    ])]
    pub(crate) live: Option<String>,
    #[command(flatten)]
    pub(crate) uplinks: UplinkOptions,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Over real uplinks")]
pub(crate) struct LiveCompareOptions {
    /// Compare over real uplinks, with the server at https://HOST[:PORT], which is asked for policies: `quipu serve
    /// --har PAGE --experiments`. Runs are interleaved, each load has a connection of its own, and each uplink alone
    /// has a row too
    #[arg(long, value_name = "URL", conflicts_with_all = [
        "world", "network", "link", "trace_columns", "transport", "tls", "host", "series", "jobs", "range", "qlog_runs",
    ])]
    pub(crate) live: Option<String>,
    #[command(flatten)]
    pub(crate) uplinks: UplinkOptions,
}

/// How a server of pages is reached, and known.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over real uplinks")]
pub(crate) struct UplinkOptions {
    /// Interface, address of one, or auto: every interface with a default route; may be repeated. Each is
    /// a path [default: as the host's routes say]
    #[arg(long, value_name = "INTERFACE|ADDRESS|auto", requires = "live")]
    pub(crate) via: Vec<String>,
    /// SHA-256 of the server's certificate, as `quipu serve` prints it [default: authorities of this host]
    #[arg(long, value_name = "PIN", conflicts_with = "ca", requires = "live")]
    pub(crate) pin: Option<String>,
    /// Trusted certificates in PEM: those of authorities, or the server's own
    #[arg(long, value_name = "FILE", requires = "live")]
    pub(crate) ca: Option<PathBuf>,
}
