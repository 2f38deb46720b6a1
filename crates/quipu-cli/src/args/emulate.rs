//! Options of `quipu emulate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::PriorityOption;

#[derive(Debug, Args)]
pub(crate) struct EmulateOptions {
    /// Network by name, or a file that describes one or an experiment [default: wifi+lte]
    #[arg(value_name = "NETWORK|FILE.toml", conflicts_with = "link")]
    pub(crate) network: Option<String>,
    /// One path of a network of your own; repeat it for each path
    #[arg(long, value_name = "FIELDS")]
    pub(crate) link: Vec<String>,
    /// Columns of CSV traces, such as time=Timestamp,rate=DL:kbit/s; also up, rtt, delay, loss
    #[arg(long, value_name = "LIST")]
    pub(crate) trace_columns: Option<String>,
    /// Program that runs in the server, by the shell; repeated, it is that of the next server
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Vec<String>,
    /// Seed of all chance in links, as of simulated runs [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<String>,
    /// Number of the simulated run whose links these are
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) run: u32,
    /// What interfaces are made of [default: tun where it is allowed, else veth]
    #[arg(long, value_name = "KIND")]
    pub(crate) device: Option<Device>,
    /// Bytes of the longest packet that interfaces take
    #[arg(long, value_name = "BYTES", default_value_t = 1_500,
          value_parser = clap::value_parser!(u16).range(1_280..=9_000))]
    pub(crate) mtu: u16,
    #[command(flatten)]
    pub(crate) priority: PriorityOption,
    /// JSON file for what links did and how late packets were, with the scenario
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Set any other field of the scenario, such as clients=3 or
    /// networks.*.paths.wifi.down.queue=50p; `--KEY=VALUE` does the same
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Program that runs in the first client, with its arguments [default: the user's shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What interfaces are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// TUN devices
    Tun,
    /// Virtual Ethernet, read and written by packet sockets
    Veth,
}
