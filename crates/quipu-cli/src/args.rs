//! The command line.

mod emulate;
mod examples;
mod fetch;
mod live_load;
mod perf;
mod record;
mod serve;
mod trace;
mod world;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use quipu_record::Metric;

#[cfg(target_os = "linux")]
pub(crate) use emulate::Device;
pub(crate) use emulate::EmulateOptions;
pub(crate) use fetch::{FetchOptions, HttpChoice};
pub(crate) use live_load::{LiveCompareOptions, LiveLoadOptions, UplinkOptions};
pub(crate) use perf::{
    EventOptions, IdentityOptions, LiveLogOptions, LivePolicies, PathsOptions, PerfClientOptions,
    PerfCommand, PerfServerOptions, TrustOptions, Ways,
};
pub(crate) use record::RecordOptions;
pub(crate) use serve::{AccessFormat, LimitOptions, ServeOptions};
pub(crate) use trace::{ConvertOptions, TraceCommand, WrittenDirection, WrittenFormat};
pub(crate) use world::{PriorityOption, WorldOptions};

use crate::failure::Failure;
use crate::terminal::{FormatOption, OutputOptions};

/// HTTP over Multipath QUIC, with every scheduling decision open to choice.
#[derive(Debug, Parser)]
#[command(name = "quipu", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// The command that is the client of emulated loads.
pub(crate) const CLIENT: &str = "emulated-client";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare emulated loads with simulated ones, and tell where they differ
    #[command(after_help = examples::AGREE)]
    Agree(AgreeOptions),
    /// Load pages with several schedulers and compare them
    #[command(after_help = examples::COMPARE)]
    Compare(CompareOptions),
    /// Measure the CPU time of each scheduler's decisions during an experiment
    #[command(after_help = examples::COST)]
    Cost(CostOptions),
    /// Load one page once and draw its waterfall
    #[command(after_help = examples::LOAD)]
    Load(LoadOptions),
    /// Run an experiment from its file: pages, flows, or both
    #[command(after_help = examples::RUN)]
    Run(RunOptions),
    /// Run an experiment at every point of a grid or at random points; resumes after a stop
    #[command(after_help = examples::SWEEP)]
    Sweep(SweepOptions),
    /// Check, explain and draw scenario files
    Scenario {
        #[command(subcommand)]
        command: ScenarioCommand,
    },
    /// Run the papers' experiments and judge each of their claims
    #[command(after_help = examples::REPRODUCE)]
    Reproduce(ReproduceOptions),
    /// Turn a result folder into a single HTML file that works offline
    #[command(after_help = examples::REPORT)]
    Report(ReportOptions),
    /// Show, record and predict single pages
    Page {
        #[command(subcommand)]
        command: PageCommand,
    },
    /// Convert recordings of links
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Measure goodput over real sockets, with one or several uplinks
    Perf {
        #[command(subcommand)]
        command: PerfCommand,
    },
    /// Run any programs over a network's links in real time, between network namespaces (Linux)
    #[command(after_help = examples::EMULATE)]
    Emulate(EmulateOptions),
    /// Make the loads that standard input asks for: the client of emulated loads
    #[command(name = CLIENT, hide = true)]
    EmulatedClient,
    /// Fetch URLs over HTTP/3, with one or several uplinks
    #[command(after_help = examples::FETCH)]
    Fetch(FetchOptions),
    /// Serve the files of a folder over HTTP/3, HTTP/2 and HTTP/1.1
    #[command(after_help = examples::SERVE)]
    Serve(ServeOptions),
    /// List the uplinks of this host, which of them are used and why, and try each with a server
    #[command(after_help = examples::PATHS)]
    Paths(PathsOptions),
    /// List the pages that come with the program
    Pages {
        #[command(flatten)]
        format: FormatOption,
    },
    /// List the networks that come with the program
    Networks {
        #[command(flatten)]
        format: FormatOption,
    },
    /// List the recorded links that come with the program, for `trace`, `delay_trace` and `loss_trace`
    Traces {
        #[command(flatten)]
        format: FormatOption,
    },
    /// List the browsers whose requests and priorities can be simulated
    Browsers {
        #[command(flatten)]
        format: FormatOption,
    },
    /// List the named transports, or show the parameters of one and their sources
    Transports {
        /// Name of the transport, such as `mp-quic-2018`
        name: Option<String>,
        #[command(flatten)]
        format: FormatOption,
    },
    /// Explain the columns of tables, and the metrics that rows can be sorted by
    Columns {
        #[command(flatten)]
        format: FormatOption,
    },
    /// List all schedulers and other policies, or explain one
    Schedulers {
        /// Name of the policy, such as `dwrr`
        name: Option<String>,
        /// Test it against the rules that all policies must follow, with random scripts on 1, 2, 3 and 8 paths
        #[arg(long, requires = "name")]
        check: bool,
        /// List only one layer: stream, path, joint, ack or congestion
        #[arg(long, value_name = "LAYER", conflicts_with = "name")]
        layer: Option<String>,
        #[command(flatten)]
        format: FormatOption,
    },
    /// Print completions for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands
    Man {
        /// Folder for a manual page of each command
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScenarioCommand {
    /// Write a commented scenario file to begin with
    #[command(after_help = examples::NEW)]
    New(NewOptions),
    /// Report every error in scenario files, with line and column
    #[command(after_help = examples::CHECK)]
    Check {
        /// Scenario files
        #[arg(value_name = "FILE.toml", required = true)]
        files: Vec<PathBuf>,
        /// How findings are written
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = FindingFormat::Text)]
        format: FindingFormat,
    },
    /// Draw the network of a scenario file, or one that comes with the program
    #[command(after_help = examples::SHOW)]
    Show {
        /// A scenario file, or the name of a network that comes with the program
        #[arg(value_name = "FILE.toml|NAME")]
        what: String,
        /// The network to draw, of a file that has several [default: all]
        #[arg(long, value_name = "NAME")]
        network: Option<String>,
        /// Draw with ASCII characters only
        #[arg(long)]
        ascii: bool,
    },
    /// Print the JSON Schema of scenario files, for editors
    #[command(after_help = examples::SCHEMA)]
    Schema,
    /// Print all fields of scenario files, with types, defaults and meanings, as Markdown
    Fields,
}

/// What a new scenario file has.
#[derive(Debug, Args)]
pub(crate) struct NewOptions {
    /// The file to write [default: standard output]
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: Option<PathBuf>,
    /// HAR file or name of a page; may be repeated
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) page: Vec<String>,
    /// Network by name; may be repeated [default: two paths described in the file]
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) network: Vec<String>,
    /// Stream schedulers, separated by commas
    #[arg(long, value_name = "LIST")]
    pub(crate) stream: Option<String>,
    /// Path schedulers, separated by commas
    #[arg(long, value_name = "LIST")]
    pub(crate) path: Option<String>,
    /// Congestion controllers, separated by commas
    #[arg(long, value_name = "LIST")]
    pub(crate) congestion: Option<String>,
    /// Browser whose requests and priorities are used
    #[arg(long, value_name = "NAME")]
    pub(crate) browser: Option<String>,
    /// Runs of each combination
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) runs: Option<String>,
    /// Add a table [sweep] over rates and losses
    #[arg(long)]
    pub(crate) sweep: bool,
    /// Replace the file if it exists
    #[arg(long, requires = "file")]
    pub(crate) force: bool,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FindingFormat {
    /// A line each, with the line of the file
    Text,
    /// A JSON list
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PageCommand {
    /// Describe a page, and what was guessed about it
    Show {
        /// A HAR file, the name of a page that comes with the program, or pries:N for a randomly drawn one
        page: String,
        /// Print complete lists
        #[arg(long)]
        all: bool,
        /// Seed of a randomly drawn page
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Record a page with Chromium: a HAR file with traces, over the present network or at several rates
    #[command(after_help = examples::RECORD)]
    Record(RecordOptions),
    /// Join recordings of one page at different speeds, or a recording and its trace, to infer more
    #[command(after_help = examples::INFER)]
    Infer {
        /// HAR files, or names of pages that come with the program
        #[arg(required = true, value_name = "FILE.har")]
        files: Vec<String>,
        /// A trace of the load in the only HAR file, as developer tools, Lighthouse and WebPageTest write it, plain or gzip:
        /// it tells computing and timers
        #[arg(long, value_name = "TRACE.json")]
        trace: Option<PathBuf>,
        /// The file to write
        #[arg(long, value_name = "FILE.har")]
        out: PathBuf,
    },
    /// Predict page times at other speeds than the recording's, and compare them with the measured ones
    #[command(after_help = examples::PREDICT)]
    Predict {
        /// HAR files of `quipu page record` at several speeds, or names of pages that come with the program
        #[arg(required = true, value_name = "FILE.har")]
        files: Vec<String>,
        #[command(flatten)]
        format: FormatOption,
    },
    /// Draw pages from a model, and compare their means with the data it was fitted to
    Model {
        /// The model
        #[arg(default_value = "pries")]
        model: String,
        /// Pages to draw
        #[arg(long, value_name = "N", default_value_t = 10_000,
              value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
        pages: u64,
        /// Seed of the pages
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Test how well pages are inferred from recordings: random pages are loaded, recorded, inferred, loaded again
    SelfTest {
        /// Random pages
        #[arg(long, value_name = "N", default_value_t = 1_000,
              value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        pages: u64,
        /// Seed of the pages
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Print a row for each pair of rates too
        #[arg(long)]
        all: bool,
        /// Write all cases to this file too, as CSV
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        format: FormatOption,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CostOptions {
    /// Scenario files with pages, one after the other
    #[arg(required = true, value_name = "FILE.toml")]
    pub(crate) files: Vec<PathBuf>,
    /// Runs of each combination [default: as the file says]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) runs: Option<String>,
    /// Set any field of the scenario; `--KEY=VALUE` does the same
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What is compared, and how often.
#[derive(Debug, Args)]
pub(crate) struct ComparedOptions {
    /// Runs of each combination [default: 30]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) runs: Option<String>,
    /// Stream policies, separated by commas; all: every one [default: rr,fifo,wrr,swrr,dwrr]
    #[arg(long, value_name = "LIST")]
    pub(crate) stream: Option<String>,
    /// Path policies, separated by commas; all: every one [default: minrtt]
    #[arg(long, value_name = "LIST")]
    pub(crate) path: Option<String>,
    /// Policies that choose stream and path at once, separated by commas; all: every one
    /// [default: none, or all if both --stream and --path are all]
    #[arg(long, value_name = "LIST")]
    pub(crate) joint: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    #[command(flatten)]
    pub(crate) scenario: ScenarioOptions,
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    #[command(flatten)]
    pub(crate) compared: ComparedOptions,
    /// What carries pages over emulated links, separated by commas: quipu, mptcp-h2, chromium-h3 and others, as in
    /// tcp-h2:congestion=bbr [default: quipu]
    #[arg(long, value_name = "LIST")]
    pub(crate) stack: Option<String>,
    /// Sort the rows of the table [default: as the policies were named]
    #[arg(long, value_name = "METRIC", value_parser = sort_metric())]
    pub(crate) sort: Option<Metric>,
    /// Print only the first N policies of each table and the one that others are compared with; saved results have all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) top: Option<u16>,
    /// Omit the rows for each path alone
    #[arg(long)]
    pub(crate) no_baselines: bool,
    #[command(flatten)]
    pub(crate) batch: BatchOptions,
    #[command(flatten)]
    pub(crate) live: LiveCompareOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Scenario file: an experiment as `experiments/` has them, or one of your own
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// Runs of each combination [default: as the file says]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) runs: Option<String>,
    /// Columns of CSV traces, such as time=Timestamp,rate=DL:kbit/s; also up, rtt, delay, loss
    #[arg(long, value_name = "LIST")]
    pub(crate) trace_columns: Option<String>,
    /// Set any field of the scenario; `--KEY=VALUE` does the same
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Sort the rows of the table of pages [default: as the policies were named]
    #[arg(long, value_name = "METRIC", value_parser = sort_metric())]
    pub(crate) sort: Option<Metric>,
    #[command(flatten)]
    pub(crate) batch: BatchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct SweepOptions {
    /// Scenario file with a table [sweep]
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// Folder for the results and for all finished runs, which are not repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Folder of another result of `quipu sweep`, whose runs count as done; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Vec<PathBuf>,
    /// Do only this part of the runs, such as 2/4, and write no tables
    #[arg(long, value_name = "PART/PARTS")]
    pub(crate) shard: Option<String>,
    /// Threads [default: one per core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Discard the runs in DIR and repeat all of them
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the numbers of points, runs and finished runs, and the expected time for the rest; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceOptions {
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// Ids, prefixes of ids, papers (framework, mobileh2, pw-pats, ns3, quipu), or files with your own
    /// experiments [default: all that come with the program]
    #[arg(value_name = "ID|PAPER|FILE.toml")]
    pub(crate) names: Vec<String>,
    /// List ids, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Few runs of each combination, for a first look
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs of each combination, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Judge claims in each experiment's own scenario alone, not with the other values of what its paper leaves open
    #[arg(long)]
    pub(crate) no_settings: bool,
    /// Folder for results: one folder for each id, and the verdicts of all
    #[arg(long, value_name = "DIR", default_value = "results/reproduce")]
    pub(crate) out: PathBuf,
    /// Repeat finished runs
    #[arg(long)]
    pub(crate) force: bool,
    /// Threads [default: one per core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Judge every rule another N times with policies exchanged at random within each run, and list the rules that
    /// still hold: they say nothing about policies
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) shuffles: u32,
    /// Write the verdicts on all ids, or on those named, into a page of the docs, replacing its earlier verdicts on
    /// them
    #[arg(long, value_name = "FILE.md", conflicts_with_all = ["list", "check_docs", "runs", "no_settings"])]
    pub(crate) docs: Option<PathBuf>,
    /// Check that such a page is unmodified and covers these experiments; run nothing
    #[arg(long, value_name = "FILE.md", conflicts_with_all = ["names", "list"])]
    pub(crate) check_docs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatOption,
}

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// Folder that compare, run, load, reproduce or sweep wrote, or a folder of such folders
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The HTML file [default: report.html in DIR]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Also write each figure as a Vega-Lite specification with its data, into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) specs: Option<PathBuf>,
    /// The load that is shown in full; repeat it to compare loads of the same page and network
    /// [default: of each policy on the first page and network the run with the median page time]
    #[arg(long, value_name = "PAGE,NETWORK,POLICY,RUN")]
    pub(crate) load: Vec<String>,
    /// Overwrite the file even if it is not a report
    #[arg(long)]
    pub(crate) force: bool,
}

/// How all runs of a plan are run, and where results go.
#[derive(Debug, Args)]
pub(crate) struct BatchOptions {
    /// Threads [default: one per core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Folder for the results: scenario, summary, and tables of runs, objects, paths and flows
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace results in a folder that is not empty
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Also load recorded pages with low and high computing, and mark conclusions that change; up to three times the runs
    #[arg(long)]
    pub(crate) range: bool,
    #[command(flatten)]
    pub(crate) format: FormatOption,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
    /// Number of runs of each combination to log, starting with the first [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) qlog_runs: Option<u32>,
}

/// Where and how runs are logged.
#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    /// Folder for qlog files, one for each end of each connection, with a subfolder for each of several
    /// runs [default: the environment variable QLOGDIR, else none]
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Format of qlog files: current, or 0.3 with a file per path, for qvis [default: current]
    #[arg(long, value_name = "VERSION")]
    pub(crate) qlog_version: Option<String>,
}

/// What rows can be sorted by, medians, least first: the metrics of loads.
fn sort_metric() -> impl TypedValueParser<Value = Metric> {
    let names = Metric::of_loads().map(|(metric, _)| PossibleValue::new(metric.name()));
    // Only names of metrics pass.
    PossibleValuesParser::new(names).map(|name| Metric::named(&name).unwrap_or(Metric::PageTime))
}

#[derive(Debug, Args)]
pub(crate) struct LoadOptions {
    #[command(flatten)]
    pub(crate) scenario: ScenarioOptions,
    #[command(flatten)]
    pub(crate) world: WorldOptions,
    /// Stream policy [default: dwrr]
    #[arg(long, value_name = "NAME")]
    pub(crate) stream: Option<String>,
    /// Path policy [default: minrtt]
    #[arg(long, value_name = "NAME")]
    pub(crate) path: Option<String>,
    /// Policy that chooses stream and path at once
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stream", "path"])]
    pub(crate) joint: Option<String>,
    /// Which run of a comparison to repeat, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) run: u32,
    /// Maximum number of objects to draw
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) rows: usize,
    /// Folder for the results of this run: the files that compare writes
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace results in a folder that is not empty
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Write the load as a HAR file, which browsers and other tools can show as a waterfall; `_path…` fields have
    /// the bytes that each path carried
    #[arg(long, value_name = "FILE.har")]
    pub(crate) har: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
    #[command(flatten)]
    pub(crate) live: LiveLoadOptions,
}

#[derive(Debug, Args)]
pub(crate) struct AgreeOptions {
    #[command(flatten)]
    pub(crate) scenario: ScenarioOptions,
    #[command(flatten)]
    pub(crate) compared: ComparedOptions,
    #[command(flatten)]
    pub(crate) priority: PriorityOption,
    /// Fail if a median differs by more than it may, 2 % of page and 5 % of critical times, or an order does
    #[arg(long)]
    pub(crate) check: bool,
    /// Folder for agreement.json and the results of both worlds, in folders of their own
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace results in a folder that is not empty
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) format: FormatOption,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ScenarioOptions {
    /// HAR file or name of a page; may be repeated
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) page: Vec<String>,
    /// Browser whose requests and priorities are used [default: chrome]
    #[arg(long, value_name = "NAME")]
    pub(crate) browser: Option<String>,
    /// How the browser signals priority: tree or urgency [default: tree]
    #[arg(long, value_name = "KIND")]
    pub(crate) priorities: Option<String>,
    /// Network by name, or a file that describes one; may be repeated [default: wifi+lte]
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) network: Vec<String>,
    /// One path of a network of your own; repeat it for each path
    #[arg(long, value_name = "FIELDS", conflicts_with = "network")]
    pub(crate) link: Vec<String>,
    /// Columns of CSV traces, such as time=Timestamp,rate=DL:kbit/s; also up, rtt, delay, loss
    #[arg(long, value_name = "LIST")]
    pub(crate) trace_columns: Option<String>,
    /// Path of acknowledgements; compare takes several, separated by commas [default: own]
    #[arg(long, value_name = "LIST")]
    pub(crate) ack: Option<String>,
    /// Congestion control; compare takes several, or all: every one [default: the transport's]
    #[arg(long, value_name = "LIST")]
    pub(crate) congestion: Option<String>,
    /// When objects are requested: recorded or all-at-once
    #[arg(long, value_name = "HOW")]
    pub(crate) discovery: Option<String>,
    /// How much of a recording is computing and think time: as-recorded, low, likely or high
    #[arg(long, value_name = "HOW")]
    pub(crate) compute: Option<String>,
    /// Factor for computing times: 0 to 4
    #[arg(long, value_name = "FACTOR")]
    pub(crate) compute_scale: Option<String>,
    /// How HTTP is carried: h2, over QUIC's streams as in the papers, h3, or h2-tcp, over one byte stream
    /// as over TCP; compare takes several, separated by commas
    #[arg(long, value_name = "LIST")]
    pub(crate) http: Option<String>,
    /// Handshake and packet protection: null or rustls
    #[arg(long, value_name = "KIND")]
    pub(crate) tls: Option<String>,
    /// Transport by name: quipu, or that of a paper's prototype, such as mp-quic-2018; `quipu
    /// transports` lists them [default: quipu]
    #[arg(long, value_name = "NAME")]
    pub(crate) transport: Option<String>,
    /// What precedes the page request: cold, paths-ready or warm:N
    #[arg(long, value_name = "HOW")]
    pub(crate) start: Option<String>,
    /// Costs of the hosts: ideal, measured, or such as measured:timer_tick=1ms [default: ideal]
    #[arg(long, value_name = "COSTS")]
    pub(crate) host: Option<String>,
    /// Seed of all random numbers [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<String>,
    /// Write windows, rates, round trips and queues every TIME, such as 10ms [default: none]
    #[arg(long, value_name = "TIME")]
    pub(crate) series: Option<String>,
    /// Scenario file to begin with; other options change it
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) scenario: Option<PathBuf>,
    /// Set any other field of the scenario, such as transport.ecn=true or
    /// networks.*.paths.wifi.down.queue=50p; `--KEY=VALUE` does the same
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// Reads the command line. Options that are unknown but have the form `--KEY=VALUE` set a field of
/// the scenario. `version` is what is said of the program that this is.
pub(crate) fn parse(
    arguments: impl Iterator<Item = OsString>,
    version: impl FnOnce() -> String,
) -> Result<Arguments, Failure> {
    let arguments = with_fields(arguments.collect());
    Arguments::try_parse_from(arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => Failure::Shown(error.to_string()),
        ErrorKind::DisplayVersion => Failure::Shown(version()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Failure::Nothing(error.to_string()),
        _ => Failure::Usage(first_paragraph(&error)),
    })
}

/// The error without usage, and with the tip that clap has, if it has one.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
    let tip =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| error.get(kind))
            .map(|tip| format!("; did you mean `{tip}`?"));
    // What Rust's library says of numbers is not for users.
    let message = message.replace("invalid digit found in string", "expected a whole number");
    message + &tip.unwrap_or_default()
}

/// Turns `--KEY=VALUE` into `--set=KEY=VALUE` where a subcommand has `--set` but not `--KEY`.
fn with_fields(arguments: Vec<OsString>) -> Vec<OsString> {
    let root = Arguments::command();
    let named = arguments.get(1).and_then(|name| name.to_str());
    let Some(command) = named.and_then(|name| root.find_subcommand(name)) else {
        return arguments;
    };
    let known: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
    if !known.contains(&"set") {
        return arguments;
    }
    let rewrite = |argument: OsString| {
        let field = argument
            .to_str()
            .and_then(|text| text.strip_prefix("--"))
            .filter(|text| text.split_once('=').is_some_and(|(key, _)| !known.contains(&key)))
            .map(|text| format!("--set={text}"));
        field.map_or(argument, OsString::from)
    };
    arguments.into_iter().map(rewrite).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Arguments, String> {
        parse(text.split(' ').map(OsString::from), String::new)
            .map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn unknown_options_with_a_value_are_fields() {
        let arguments = parse_text("quipu compare --seed=4 --initial-window=32").unwrap();
        let Command::Compare(options) = arguments.command else { panic!("another command") };
        assert_eq!(options.scenario.seed.as_deref(), Some("4"));
        assert_eq!(options.scenario.set, ["initial-window=32"]);
    }

    #[test]
    fn a_misspelt_command_or_option_is_told_its_name() {
        assert!(parse_text("quipu compar").unwrap_err().contains("did you mean `compare`?"));
        let error = parse_text("quipu compare --sed 4").unwrap_err();
        assert!(error.contains("did you mean `--seed`?"), "{error}");
    }

    #[test]
    fn help_is_stable() {
        let mut root = Arguments::command().term_width(100);
        root.build();
        insta::assert_snapshot!("help", root.render_long_help().to_string());
        for name in [
            "compare",
            "cost",
            "load",
            "page",
            "paths",
            "perf",
            "report",
            "reproduce",
            "run",
            "scenario",
            "schedulers",
            "sweep",
            "trace",
        ] {
            let command = root.find_subcommand_mut(name).unwrap();
            let text = command.render_long_help().to_string();
            // Apart, lest there be snapshots of more than 150 lines.
            let (text, live) = text.split_once("\nOver real uplinks:\n").unwrap_or((&text, ""));
            insta::assert_snapshot!(format!("help_{name}"), text);
            if !live.is_empty() {
                insta::assert_snapshot!(format!("help_{name}_live"), live);
            }
        }
        let perf = root.find_subcommand_mut("perf").unwrap();
        for name in ["server", "client"] {
            let command = perf.find_subcommand_mut(name).unwrap();
            let name = format!("help_perf_{name}");
            insta::assert_snapshot!(name, command.render_long_help().to_string());
        }
    }
}
