//! Options of `quipu perf` and `quipu paths`.

use std::net::SocketAddr;

use clap::{Args, Subcommand, ValueEnum};

use super::examples;
use crate::terminal::FormatOption;

#[derive(Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Send and take as much as clients ask for; prints the pin that they need
    #[command(after_help = examples::PERF_SERVER)]
    Server(PerfServerOptions),
    /// Measure the goodput to a server, down and up
    #[command(after_help = examples::PERF_CLIENT)]
    Client(PerfClientOptions),
}

#[derive(Debug, Args)]
pub(crate) struct PerfServerOptions {
    /// Address and port to listen on; may be repeated. [::] stands for all addresses of both families
    /// [default: [::]:4433]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,
    #[command(flatten)]
    pub(crate) policies: LivePolicies,
}

#[derive(Debug, Args)]
pub(crate) struct PerfClientOptions {
    #[command(flatten)]
    pub(crate) server: ServerOption,
    /// Interface, address of one, or auto: every interface with a default route; may be repeated. Each is
    /// a path [default: as the host's routes say]
    #[arg(long, value_name = "INTERFACE|ADDRESS|auto")]
    pub(crate) via: Vec<String>,
    /// Which way the bytes go; both: first down, then up
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Ways::Both)]
    pub(crate) direction: Ways,
    /// Streams at a time
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) streams: u32,
    /// How long each way is measured [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Move so many bytes each way instead, such as 100MB
    #[arg(long, value_name = "SIZE", conflicts_with = "time")]
    pub(crate) bytes: Option<String>,
    #[command(flatten)]
    pub(crate) policies: LivePolicies,
    /// Print the results as JSON, like --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatOption,
}

#[derive(Debug, Args)]
pub(crate) struct PathsOptions {
    /// Server of `quipu perf server` that each uplink is tried with [default: none is tried]
    #[arg(value_name = "HOST:PORT", requires = "pin")]
    pub(crate) server: Option<String>,
    /// SHA-256 of the server's certificate, as it prints it
    #[arg(long, value_name = "PIN", requires = "server")]
    pub(crate) pin: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatOption,
}

/// A server and how it is known.
#[derive(Debug, Args)]
pub(crate) struct ServerOption {
    /// The server
    #[arg(value_name = "HOST:PORT")]
    pub(crate) server: String,
    /// SHA-256 of the server's certificate, as it prints it
    #[arg(long, value_name = "PIN")]
    pub(crate) pin: String,
}

/// Policies of connections over sockets. Each end has its own: those of the server decide what is sent
/// down.
#[derive(Debug, Args)]
pub(crate) struct LivePolicies {
    /// Stream policy of what this end sends [default: rr]
    #[arg(long, value_name = "NAME")]
    pub(crate) stream: Option<String>,
    /// Path policy of what this end sends [default: minrtt]
    #[arg(long, value_name = "NAME")]
    pub(crate) path: Option<String>,
    /// Policy that chooses stream and path at once
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stream", "path"])]
    pub(crate) joint: Option<String>,
    /// Congestion control of what this end sends
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Path of acknowledgements [default: own]
    #[arg(long, value_name = "NAME")]
    pub(crate) ack: Option<String>,
}

/// Which ways are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ways {
    Down,
    Up,
    Both,
}
