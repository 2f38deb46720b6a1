//! A crowd: browsers that load pages from a server of files, as many at a time as are asked for.
//!
//! ```text
//! crowd --make site
//! quipu serve site --listen 127.0.0.1:8443 &
//! crowd --server https://127.0.0.1:8443 --pin PIN --clients 200 --time 10m --process PROCESS
//! ```
//!
//! `scripts/crowd` does these three.
//!
//! `--make` writes the objects of shipped pages as files. Each client connects, loads a page of them (all its
//! objects at once, as urgently as Chrome would), closes the connection, and goes on with the next page. An
//! object that is not there with its size, or a load that fails, is an error, and so is one that takes longer
//! than `--within`. `--process` names the server's: its processor time and memory are read (Linux). Any server
//! of files over HTTP/3 will do, so several can be compared.

mod process;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use http::Uri;
use quipu_lab::loading::Loading;
use quipu_lab::pages::RunPage;
use quipu_live::{Clock, load};
use quipu_policy::Registry;
use quipu_scenario::{Discovery, Scenario};
use quipu_tokio::http3::{ALPN, ErrorCode, Http3Client};
use quipu_tokio::identity::{pinned, trusting};
use quipu_tokio::{ClientConfig, Endpoint, TransportConfig, policies};
use quipu_web::page::Page;
use quipu_web::scheme::BrowserScheme;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Failures that are printed.
const PRINTED: u64 = 20;

/// How often it is told how far it is.
const REPORT: Duration = Duration::from_secs(30);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Loads pages as many browsers do.
#[derive(Debug, Parser)]
struct Options {
    /// Write the objects of the pages to this folder, and end
    #[arg(long, value_name = "DIR")]
    make: Option<PathBuf>,
    /// The server, https://HOST:PORT
    #[arg(long, value_name = "URL", required_unless_present = "make")]
    server: Option<Uri>,
    /// Its certificate
    #[arg(long)]
    pin: Option<String>,
    /// Certificates in PEM that are trusted, in place of a pin
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Name that the certificate is for [default: the server's host]
    #[arg(long)]
    name: Option<String>,
    /// Pages that come with the project
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "wikipedia,dojo-demo,rust-vec,sb-admin,theverge"
    )]
    pages: Vec<String>,
    /// Clients at a time
    #[arg(long, default_value_t = 200)]
    clients: u64,
    /// How long, such as 10m or 30s
    #[arg(long, default_value = "30s", value_parser = time)]
    time: Duration,
    /// How long a page may take
    #[arg(long, default_value = "5m", value_parser = time)]
    within: Duration,
    /// The server's process
    #[arg(long, value_name = "ID")]
    process: Option<u32>,
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) =
        text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let number: u64 = number.parse().map_err(|_| "expected a time such as 10m or 30s")?;
    match unit {
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(60 * number)),
        _ => Err("expected a time such as 10m or 30s".to_owned()),
    }
}

/// What was done.
#[derive(Debug, Default)]
struct Counts {
    pages: AtomicU64,
    objects: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
}

struct Crowd {
    endpoint: Endpoint,
    config: ClientConfig,
    address: std::net::SocketAddr,
    name: String,
    pages: Vec<Arc<Page>>,
    browser: BrowserScheme,
    counts: Counts,
    end: Instant,
    within: quipu_base::Duration,
}

impl Crowd {
    /// One client, until the end: the time of each page, in nanoseconds.
    async fn client(self: Arc<Crowd>, number: usize) -> Vec<u64> {
        let mut times = Vec::new();
        for visit in number.. {
            if Instant::now() >= self.end {
                break;
            }
            match self.visit(&self.pages[visit % self.pages.len()]).await {
                Ok(time) => times.push(time.as_nanos()),
                Err(error) => {
                    if self.counts.failures.fetch_add(1, Ordering::Relaxed) < PRINTED {
                        eprintln!("failed: {error}");
                    }
                }
            }
        }
        times
    }

    async fn visit(&self, page: &Arc<Page>) -> Result<quipu_base::Duration> {
        let connection = self.endpoint.connect(&self.config, self.address, &self.name).await?;
        let client = Http3Client::new(connection.clone(), Default::default())?;
        let scenario = Scenario { discovery: Discovery::AllAtOnce, ..Scenario::default() };
        let loading = Loading::new(RunPage { page: Arc::clone(page) }, &scenario);
        let loaded = load(&client, loading, &self.browser, Clock::start(), self.within).await;
        connection.close(ErrorCode::NO_ERROR.0, b"");
        let loaded = loaded?;
        if let Some(difference) = loaded.differences.first() {
            return Err(format!("{}: {difference:?}", page.name()).into());
        }
        let objects = &loaded.record.objects;
        let bytes: u64 = objects.iter().map(|object| object.body.0).sum();
        self.counts.pages.fetch_add(1, Ordering::Relaxed);
        self.counts.objects.fetch_add(objects.len() as u64, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(loaded.record.page_time)
    }
}

async fn run(options: &Options, server: &Uri) -> Result<bool> {
    let host = server.host().ok_or("the server has no host")?;
    let address = tokio::net::lookup_host((host, server.port_u16().unwrap_or(443))).await?;
    let address = address.into_iter().next().ok_or("the server has no address")?;
    let tls = match (&options.pin, &options.ca) {
        (Some(pin), _) => pinned(pin.parse()?, &[ALPN])?,
        (None, Some(file)) => trusting(file, &[ALPN])?,
        (None, None) => return Err("give --pin or --ca".into()),
    };
    let transport = Arc::new(TransportConfig::default());
    let authority = server.authority().map(ToString::to_string).unwrap_or_default();
    let crowd = Arc::new(Crowd {
        endpoint: Endpoint::client().bind()?,
        config: ClientConfig::new(Arc::new(tls), transport, policies(&Registry::builtin(), "")?),
        address,
        name: options.name.clone().unwrap_or_else(|| host.to_owned()),
        pages: site::pages(&options.pages, &authority)?,
        browser: BrowserScheme::builtin("chrome")?,
        counts: Counts::default(),
        end: Instant::now() + options.time,
        within: quipu_base::Duration::from_secs(options.within.as_secs()),
    });
    let before = options.process.map(process::read).transpose()?;
    let begin = Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..options.clients {
        clients.spawn(Arc::clone(&crowd).client(usize::try_from(number)?));
    }
    let mut times = Vec::new();
    let mut report = tokio::time::interval_at(begin + REPORT, REPORT);
    loop {
        tokio::select! {
            client = clients.join_next() => match client {
                Some(client) => times.extend(client?),
                None => break,
            },
            _ = report.tick() => {
                let pages = crowd.counts.pages.load(Ordering::Relaxed);
                let memory = options.process.and_then(|id| process::read(id).ok());
                let memory = memory.map_or(0, |usage| usage.resident_kib);
                eprintln!("{:.0} s: {pages} pages; server {memory} KiB", begin.elapsed().as_secs_f64());
            }
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let Counts { pages, objects, bytes, failures } = &crowd.counts;
    let [pages, objects, bytes, failures] =
        [pages, objects, bytes, failures].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{} clients, {seconds:.1} s: {pages} pages, {objects} objects, {bytes} bytes",
        options.clients
    );
    println!("{:.0} requests per second, {failures} failures", objects as f64 / seconds);
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index.min(times.len().saturating_sub(1))).map_or(0.0, |time| *time as f64 / 1e6)
    };
    println!(
        "page time: median {:.0} ms, 95 % {:.0} ms, most {:.0} ms",
        at(0.5),
        at(0.95),
        at(1.0)
    );
    if let (Some(before), Some(id)) = (before, options.process) {
        let after = process::read(id)?;
        let processor = after.seconds - before.seconds;
        println!(
            "server: {:.0} requests per processor second ({processor:.1} s); memory {} KiB before, {} KiB at \
             most, {} KiB after",
            objects as f64 / processor,
            before.resident_kib,
            after.peak_kib,
            after.resident_kib
        );
    }
    Ok(failures == 0 && pages > 0)
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if let Some(folder) = &options.make {
        site::write(&options.pages, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(server) = &options.server else { return Ok(ExitCode::from(2)) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let is_good = runtime.block_on(run(&options, server))?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
