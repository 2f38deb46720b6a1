//! Options of `quipu fetch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quipu_tokio::http3::{ALPN, HTTP2_ALPN};

use super::{EventOptions, LiveLogOptions, LivePolicies};

#[derive(Debug, Args)]
pub(crate) struct FetchOptions {
    /// What to fetch: https://HOST[:PORT]/PATH; those of one host share a connection
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// Version of HTTP; h2 is HTTP/2 over QUIC streams, which Quipu's servers speak
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = HttpChoice::H3)]
    pub(crate) http: HttpChoice,
    /// Interface, address of one, or auto: every interface with a default route; may be repeated. Each is
    /// a path [default: as the host's routes say]
    #[arg(long, value_name = "INTERFACE|ADDRESS|auto")]
    pub(crate) via: Vec<String>,
    /// File for what the one URL brings [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "output_dir")]
    pub(crate) output: Option<PathBuf>,
    /// Folder for what the URLs bring, under the last parts of their paths
    #[arg(short = 'O', long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Go on where an earlier fetch to the same file was cut off, which kept FILE.part
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume: bool,
    /// What the file has to have: sha256:HEX; for one URL
    #[arg(long, value_name = "SHA256")]
    pub(crate) checksum: Option<String>,
    /// A field of requests; may be repeated
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Method of requests [default: GET, or PUT with --upload, or HEAD with --head]
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(crate) request: Option<String>,
    /// File that is sent with the request, or - for standard input; for one URL
    #[arg(short = 'T', long, value_name = "FILE")]
    pub(crate) upload: Option<PathBuf>,
    /// Fetch heads alone, and print them
    #[arg(short = 'I', long, conflicts_with = "upload")]
    pub(crate) head: bool,
    /// Urgency of responses, as in the field of RFC 9218, such as u=1,i; if it is repeated, of each URL in
    /// turn
    #[arg(long, value_name = "VALUE")]
    pub(crate) priority: Vec<String>,
    /// Requests at a time
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) parallel: u16,
    /// Size of a file, at most; a larger one is not kept [default: no limit]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_filesize: Option<u64>,
    /// Redirects that are followed
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) max_redirects: u16,
    /// Take a status of 400 or more for a failure
    #[arg(short, long)]
    pub(crate) fail: bool,
    /// Seconds that a connection may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) connect_timeout: u64,
    /// Seconds that everything may take [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_time: Option<u64>,
    /// SHA-256 of the server's certificate, as `quipu serve` prints it [default: authorities of this host]
    #[arg(long, value_name = "PIN", conflicts_with = "ca")]
    pub(crate) pin: Option<String>,
    /// Trusted certificates in PEM: those of authorities, or the server's own
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Take any certificate: whoever answers may be another server, and read and change all that is sent
    #[arg(short = 'k', long, conflicts_with_all = ["pin", "ca"])]
    pub(crate) insecure: bool,
    /// Print times and paths as JSON; then what is fetched needs --output or --output-dir
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) policies: LivePolicies,
    #[command(flatten)]
    pub(crate) logs: LiveLogOptions,
    #[command(flatten)]
    pub(crate) events: EventOptions,
}

/// Version of HTTP over QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpChoice {
    /// HTTP/3
    H3,
    /// HTTP/2 over QUIC streams
    H2,
}

impl HttpChoice {
    /// Its name in TLS.
    pub(crate) const fn alpn(self) -> &'static [u8] {
        match self {
            HttpChoice::H3 => ALPN,
            HttpChoice::H2 => HTTP2_ALPN,
        }
    }
}
