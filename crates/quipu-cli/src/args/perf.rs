//! Options of `quipu perf` and `quipu paths`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use quipu_tokio::perf;

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
    /// Endpoints that share the port, so that as many processors serve clients; each client stays with one
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) shards: u16,
    #[command(flatten)]
    pub(crate) identity: IdentityOptions,
    #[command(flatten)]
    pub(crate) policies: LivePolicies,
    #[command(flatten)]
    pub(crate) logs: LiveLogOptions,
    #[command(flatten)]
    pub(crate) events: EventOptions,
}

/// How a server is known, and what of it outlives a restart.
#[derive(Debug, Args)]
pub(crate) struct IdentityOptions {
    /// Folder that keeps certificate, key and the secret of tokens and stateless resets, made at the first
    /// start [default: none, all are new at each start]
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,
    /// Certificate in PEM, with those between it and an authority, in place of one that the server makes
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

/// What is told while connections over sockets go on.
#[derive(Debug, Args)]
pub(crate) struct EventOptions {
    /// Print what happens to connections and paths to standard error: a level, such as info or debug, or
    /// TARGET=LEVEL with commas between [default: the environment variable QUIPU_LOG, else nothing]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

/// Where connections over sockets are logged.
#[derive(Debug, Args)]
pub(crate) struct LiveLogOptions {
    /// Folder for qlog files, one for each connection
    /// [default: the environment variable QLOGDIR, else none]
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Format of qlog files: current, or 0.3 with a file per path, for qvis [default: current]
    #[arg(long, value_name = "VERSION")]
    pub(crate) qlog_version: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PerfClientOptions {
    /// The server
    #[arg(value_name = "HOST:PORT")]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
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
    /// Send datagrams in place of streams: of BYTES each, or as large as all paths carry. Prints how many
    /// were lost
    #[arg(long, value_name = "BYTES", conflicts_with = "streams", num_args = 0..=1, require_equals = true,
          value_parser = clap::value_parser!(u16).range(i64::from(perf::LEAST_DATAGRAM)..))]
    pub(crate) datagrams: Option<Option<u16>>,
    /// Send datagrams at this rate, such as 5mbit, whether the network carries them or not [default: as
    /// fast as congestion control allows]
    #[arg(long, value_name = "RATE", requires = "datagrams")]
    pub(crate) rate: Option<String>,
    /// How long each way is measured [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Move so many bytes each way instead, such as 100MB
    #[arg(long, value_name = "SIZE", conflicts_with = "time")]
    pub(crate) bytes: Option<String>,
    #[command(flatten)]
    pub(crate) policies: LivePolicies,
    #[command(flatten)]
    pub(crate) logs: LiveLogOptions,
    #[command(flatten)]
    pub(crate) events: EventOptions,
    /// Print the results as JSON, like --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatOption,
}

#[derive(Debug, Args)]
pub(crate) struct PathsOptions {
    /// Server of `quipu perf server` that each uplink is tried with [default: none is tried]
    #[arg(value_name = "HOST:PORT")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
    /// List and try only this uplink: an interface, an address of one, or auto: every interface with a
    /// default route; may be repeated [default: the addresses of all interfaces]
    #[arg(long, value_name = "INTERFACE|ADDRESS|auto")]
    pub(crate) via: Vec<String>,
    #[command(flatten)]
    pub(crate) events: EventOptions,
    #[command(flatten)]
    pub(crate) format: FormatOption,
}

/// How a client knows a server.
#[derive(Debug, Args)]
pub(crate) struct TrustOptions {
    /// SHA-256 of the server's certificate, as it prints it
    #[arg(long, value_name = "PIN", conflicts_with = "ca", requires = "server")]
    pub(crate) pin: Option<String>,
    /// Trusted certificates in PEM in place of a pin: those of authorities, or the server's own
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) ca: Option<PathBuf>,
    /// Name that the server's certificate has to be for, with --ca [default: the host of HOST:PORT]
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub(crate) name: Option<String>,
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
