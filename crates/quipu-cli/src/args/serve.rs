//! Options of `quipu serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{EventOptions, IdentityOptions, LiveLogOptions, LivePolicies};

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Folder with the files; what lies outside of it is never served
    #[arg(value_name = "DIR", required_unless_present = "har", conflicts_with = "har")]
    pub(crate) folder: Option<PathBuf>,
    /// Recorded page to replay in place of a folder, for a browser whose requests for all hosts of the page come
    /// to this server: a page that ships with the program, see `quipu list`, or a HAR file
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "cache_control")]
    pub(crate) har: Option<String>,
    /// Replay the page to clients that know it, such as `quipu load --live`, with the bytes of the simulator's servers:
    /// what is there for browsers alone is left out
    #[arg(long, requires = "har")]
    pub(crate) bare: bool,
    /// Address and port to listen on, over UDP and TCP; may be repeated. [::] stands for all addresses of
    /// both families [default: [::]:4433]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,
    /// Name of the certificate that the server makes for itself
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) identity: IdentityOptions,
    /// Length of the certificate chain that the server makes for this run, for handshakes as long as on the
    /// Internet, where chains have some 3000 bytes [default: that of one certificate]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(100..=65_536),
          conflicts_with_all = ["identity", "cert"])]
    pub(crate) certificate_bytes: Option<u32>,
    /// Serve HTTP/3 alone, without HTTP/2 and HTTP/1.1 over TCP
    #[arg(long)]
    pub(crate) no_tcp: bool,
    /// Congestion control of the kernel's TCP, such as cubic [default: that of the host]
    #[arg(long, value_name = "NAME", conflicts_with = "no_tcp")]
    pub(crate) tcp_congestion: Option<String>,
    /// Serve clients with Multipath TCP over all of their subflows (Linux)
    #[arg(long, conflicts_with = "no_tcp")]
    pub(crate) mptcp: bool,
    /// Serve by a stack that the program brings, for emulated loads with it
    #[arg(long, value_name = "NAME", hide = true,
          conflicts_with_all = ["no_tcp", "tcp_congestion", "mptcp", "access_log", "metrics", "experiments"])]
    pub(crate) stack: Option<String>,
    /// The Cache-Control field of files
    #[arg(long, value_name = "VALUE", default_value = "no-cache")]
    pub(crate) cache_control: String,
    /// File that gets a line for each request; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// Format of these lines
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub(crate) access_format: AccessFormat,
    /// Address that answers with metrics for Prometheus, at /metrics over HTTP without TLS
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    /// Threads that serve; requests that come together are begun in their order if it is one [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seconds that open requests have when the server is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub(crate) grace: u64,
    /// Let every client have endpoints with policies of its choice, at ports from FIRST to LAST or at any port, as
    /// `quipu compare --live` asks for them
    #[arg(long, value_name = "FIRST-LAST", num_args = 0..=1, require_equals = true)]
    pub(crate) experiments: Option<Option<String>>,
    /// Let these clients choose policies that are made of files, which the server reads: for emulated loads, whose clients
    /// are this program itself
    #[arg(long, hide = true, requires = "experiments")]
    pub(crate) experiments_with_files: bool,
    #[command(flatten)]
    pub(crate) policies: LivePolicies,
    #[command(flatten)]
    pub(crate) logs: LiveLogOptions,
    #[command(flatten)]
    pub(crate) events: EventOptions,
}

/// What clients may take of a server.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// Connections at a time, over QUIC and as many over TCP [default: 10000 and 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: Option<u32>,
    /// Connections over QUIC at a time from one IPv4 address, or from one /64 of IPv6 [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_per_address: Option<u32>,
    /// Requests at a time on each connection, at least 3 [default: 128 over QUIC, 100 over TCP]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1 << 20))]
    pub(crate) max_requests: Option<u32>,
    /// Seconds without a byte after which a connection ends [default: 30 over QUIC, 60 over TCP]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) idle_timeout: Option<u32>,
}

/// Format of access logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessFormat {
    /// An object for each request
    Json,
    /// As web servers have it by custom
    Combined,
}
