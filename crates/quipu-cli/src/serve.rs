//! `quipu serve`.

mod experiments;
mod foreign;
mod limits;
mod replay;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_lab::run::logs::QlogFolder;
use quipu_serve::access::{AccessLog, Format, LogWriter};
use quipu_serve::files::Files;
use quipu_serve::metrics::Scrape;
use quipu_serve::tcp::{Limits, ListenError, Listener, Server};
use quipu_serve::{Certificates, LOOK_AFTER, Metrics, Recorded, Site, http3};
use quipu_tokio::identity::Secret;
use quipu_tokio::tcp::TcpOptions;
use quipu_tokio::tokio::sync::watch;
use quipu_tokio::tokio::time::sleep;
use quipu_tokio::{Endpoint, EndpointConfig, ServerBuilder, ServerConfig, TokenConfig, tokio};

use crate::args::{AccessFormat, IdentityOptions, ServeOptions};
use crate::events;
use crate::failure::Failure;
use crate::live::{self, Factory};
use crate::logs;
use crate::own::Own;
use crate::stop;

/// How often it is looked whether the server is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a server until it is stopped, which is no failure: open requests are answered first.
pub(crate) fn run(options: &ServeOptions, own: &Own<'_>) -> Result<(), Failure> {
    events::follow(&options.events)?;
    let cache_control = options.cache_control.parse().map_err(|_| {
        let value = &options.cache_control;
        Failure::Usage(format!(
            "--cache-control: {value:?} is no value of a field, such as no-cache"
        ))
    })?;
    let site = match (&options.folder, &options.har) {
        (_, Some(name)) => Site::Replay(replay::of_page(name, options.bare)?),
        (Some(folder), None) => {
            let files = Files::new(folder).map_err(Failure::usage)?;
            Site::Files(files.cache_control(cache_control))
        }
        (None, None) => return Err(Failure::Usage("give a folder, or a page by --har".to_owned())),
    };
    if let Some(stack) = &options.stack {
        return foreign::run(options, stack, &site, own);
    }
    if let Some(address) = options.listen.iter().find(|address| address.port() == 0)
        && options.listen.len() > 1
    {
        let reason = "several addresses need a port each that is not 0";
        return Err(Failure::Usage(format!("--listen {address}: {reason}")));
    }
    if options.experiments.is_some() && options.listen.len() > 1 {
        let reason =
            "--experiments: expected one address to listen on, such as [::]:4433".to_owned();
        return Err(Failure::Usage(reason));
    }
    let ports =
        options.experiments.as_ref().map(|ports| experiments::Ports::parse(ports.as_deref()));
    let ports = ports.transpose()?;
    let certificates = Arc::new(certificates(options, &site)?);
    let (log, writer) = access_log(options)?;
    let metrics = Metrics::new();
    let service = recorded(site.clone(), &metrics, log.as_ref());
    let qlog = logs::of_sockets(&options.logs, "quipu serve")?;
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let runtime = live::runtime_of(options.threads.map(usize::from))?;
    runtime.block_on(async {
        let sockets = Sockets::new(options, own, &certificates, qlog.as_ref())?;
        let endpoint = sockets.main(options)?;
        let (stop, stops) = watch::channel(false);
        let stops = || {
            let mut stops = stops.clone();
            async move { drop(stops.wait_for(|stop| *stop).await) }
        };
        let grace = Duration::from_secs(options.grace);
        let mut servers = tokio::task::JoinSet::new();
        let addresses = endpoint.local_addresses();
        if !options.no_tcp {
            let congestion = options.tcp_congestion.clone();
            let of_kernel = TcpOptions { congestion, multipath: options.mptcp };
            for &address in &addresses {
                let listener = Listener::bind_with(address, &of_kernel);
                let listener = listener.map_err(|error| match error {
                    ListenError::Options(error) => Failure::usage(error),
                    error => Failure::run(error),
                })?;
                let tls = certificates.tcp().map_err(Failure::run)?;
                let limits = Limits { stop: grace, ..limits::of_tcp(&options.limits) };
                let server = Server::new(listener, tls, service.clone()).metrics(metrics.clone());
                let server = server.limits(limits).map_err(Failure::usage)?;
                let stops = stops();
                servers.spawn(async move { server.run(stops).await.cut });
            }
        }
        if let Some(address) = options.metrics {
            let listener = Listener::bind(address).map_err(|error| {
                let told = format!("--metrics: {error}");
                match error {
                    ListenError::NotOurs(_) => Failure::Usage(told),
                    _ => Failure::Run(told),
                }
            })?;
            let scrape = Server::plain(listener, Scrape(metrics.clone()));
            let stops = stops();
            servers.spawn(async move { scrape.run(stops).await.cut });
        }
        let ends = stops();
        let chosen = ports.zip(addresses.first().copied()).map(|place| {
            let registry = match options.experiments_with_files {
                true => own.registry.clone(),
                // What a client names is not to be read.
                false => own.registry.without_files(),
            };
            experiments::of(service.clone(), registry, place, sockets, grace)
        });
        match &chosen {
            None => {
                let quic = http3::Server::new(endpoint, service).metrics(metrics);
                servers.spawn(quic.stop_within(grace).run(ends));
            }
            Some(experiments) => {
                let service = recorded(experiments.beside(site.clone()), &metrics, log.as_ref());
                let quic = http3::Server::new(endpoint, service).metrics(metrics);
                servers.spawn(quic.stop_within(grace).run(ends));
            }
        }
        drop(log);
        let watching = tokio::spawn(Arc::clone(&certificates).watch(LOOK_AFTER));
        crate::print(&banner(&addresses, options, &site, &certificates))?;
        while !stopped.load(Ordering::Relaxed) {
            sleep(LOOK).await;
            if let Some(Err(error)) = qlog.as_ref().map(QlogFolder::finish) {
                eprintln!("warning: {error}");
            }
        }
        stop.send_replace(true);
        let mut cut = 0;
        while let Some(ended) = servers.join_next().await {
            cut += ended.unwrap_or_default();
        }
        if let Some(experiments) = chosen {
            cut += experiments.finish().await;
        }
        watching.abort();
        if cut > 0 {
            eprintln!("{cut} exchanges were cut after {} s", options.grace);
        }
        Ok::<(), Failure>(())
    })?;
    drop(runtime);
    if let Some(logs) = &qlog {
        logs.finish().map(drop).map_err(Failure::run)?;
    }
    if let Some(writer) = writer {
        writer.finish().map_err(|error| Failure::Run(format!("--access-log: {error}")))?;
    }
    Ok(())
}

/// `service` with the log and the metrics of the server.
fn recorded<S>(service: S, metrics: &Metrics, log: Option<&AccessLog>) -> Recorded<S> {
    let recorded = Recorded::new(service).metrics(metrics.clone());
    match log {
        Some(log) => recorded.log(log.clone()),
        None => recorded,
    }
}

/// What the sockets of QUIC are opened with.
#[derive(Clone)]
struct Sockets {
    config: ServerConfig,
    shared: EndpointConfig,
    qlog: Option<QlogFolder>,
}

impl Sockets {
    fn new(
        options: &ServeOptions,
        own: &Own<'_>,
        certificates: &Arc<Certificates>,
        qlog: Option<&QlogFolder>,
    ) -> Result<Sockets, Failure> {
        let tls = certificates.quic(&http3::ALPNS).map_err(Failure::run)?;
        let policies = options.policies.factory(own.registry)?;
        let tokens = TokenConfig::with_key(certificates.token_key().map_err(Failure::run)?);
        let transport = Arc::new(limits::of_transport(&options.limits));
        let config = ServerConfig::new(Arc::new(tls), transport, policies).with_tokens(tokens);
        let config = ServerConfig { admission: limits::of_admission(&options.limits), ..config };
        let reset_key = Some(certificates.reset_key().map_err(Failure::run)?);
        let shared = EndpointConfig { reset_key, ..EndpointConfig::default() };
        Ok(Sockets { config, shared, qlog: qlog.cloned() })
    }

    /// A server with these policies, to be bound.
    fn server(&self, policies: &Factory) -> ServerBuilder {
        let config = ServerConfig { policies: Arc::clone(policies), ..self.config.clone() };
        let builder = Endpoint::server(config).config(self.shared.clone());
        match &self.qlog {
            Some(logs) => builder.record(logs.recorders()),
            None => builder,
        }
    }

    /// The server where and with the policies that the options say.
    fn main(&self, options: &ServeOptions) -> Result<Endpoint, Failure> {
        let mut builder = self.server(&self.config.policies);
        let everywhere = [SocketAddr::from(([0; 16], 4433))];
        let given = if options.listen.is_empty() { &everywhere[..] } else { &options.listen };
        for address in given {
            builder = builder.listen(*address);
        }
        builder.bind().map_err(|error| live::bind_failure("--listen", &error))
    }
}

/// What clients know the server by: as the options say, else made for this run.
fn certificates(options: &ServeOptions, site: &Site) -> Result<Certificates, Failure> {
    let mut names = vec![options.name.as_str()];
    if let Site::Replay(replay) = site {
        names
            .extend(replay.hosts().iter().map(String::as_str).filter(|name| *name != options.name));
    }
    let IdentityOptions { identity, cert, key } = &options.identity;
    let made = match (identity, cert.as_ref().zip(key.as_ref())) {
        (None, None) => match options.certificate_bytes {
            // They fit: there are at most 65,536.
            Some(bytes) => Certificates::generate_chain_for(&names, bytes as usize),
            None => Certificates::generate_for(&names),
        },
        (Some(folder), None) => Certificates::kept_in_for(folder, &names),
        (None, Some((cert, key))) => Certificates::read(cert, key),
        (Some(folder), Some((cert, key))) => Certificates::read(cert, key)
            .and_then(|certificates| Ok(certificates.with_secret(Secret::kept_in(folder)?))),
    };
    made.map_err(Failure::usage)
}

fn access_log(options: &ServeOptions) -> Result<(Option<AccessLog>, Option<LogWriter>), Failure> {
    let Some(file) = &options.access_log else { return Ok((None, None)) };
    let format = match options.access_format {
        AccessFormat::Json => Format::Json,
        AccessFormat::Combined => Format::Combined,
    };
    let failed = |error| Failure::Usage(format!("--access-log: {}: {error}", file.display()));
    let started = if file.as_os_str() == "-" {
        AccessLog::start(format, std::io::stdout())
    } else {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
        AccessLog::start(format, opened.map_err(failed)?)
    };
    let (log, writer) = started.map_err(failed)?;
    Ok((Some(log), Some(writer)))
}

/// Where the server is, and what it is known by.
fn banner(
    addresses: &[SocketAddr],
    options: &ServeOptions,
    site: &Site,
    certificates: &Certificates,
) -> String {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let places: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let tcp = if options.no_tcp { "" } else { ", HTTP/2 and HTTP/1.1" };
    let metrics = options
        .metrics
        .map(|address| format!("metrics at http://{address}/metrics\n"))
        .unwrap_or_default();
    let (what, url, command) = match site {
        Site::Replay(replay) => {
            let browser = addresses.first().filter(|_| !options.bare);
            let command = replay::chromium(replay, browser, certificates);
            (replay::title(replay, options), replay.start(), command)
        }
        _ => {
            let folder = options.folder.as_ref().map(|folder| folder.display().to_string());
            let url = format!("https://{}:{port}/", options.name);
            (format!("serving {}", folder.unwrap_or_default()), url, String::new())
        }
    };
    let places = places.join(", ");
    let pin = certificates.pin();
    format!("{what} over HTTP/3{tcp} on {places}\n{url}\npin {pin}\n{command}{metrics}")
}
