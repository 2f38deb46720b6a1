//! A connection for each origin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Uri;
use quipu_tokio::http3::Http3Client;
use quipu_tokio::identity::trusting_anyone;
use quipu_tokio::tokio::sync::OnceCell;
use quipu_tokio::tokio::time::timeout;
use quipu_tokio::{ClientConfig, Endpoint, PathInfo, tokio};

use super::error::FetchError;
use crate::args::{FetchOptions, HttpChoice};
use crate::failure::Failure;
use crate::live;
use crate::own::Own;

/// How servers are known, and what decides about what is sent to them.
///
/// # Errors
/// If an option is wrong, or a file of certificates cannot be used.
pub(super) fn config(options: &FetchOptions, own: &Own<'_>) -> Result<ClientConfig, Failure> {
    let alpn = options.http.alpn();
    let tls = if options.insecure {
        eprintln!(
            "warning: --insecure: no certificate is checked; anyone may answer, and read and change all"
        );
        trusting_anyone(&[alpn]).map_err(Failure::run)?
    } else {
        live::tls_or_host(options.pin.as_deref(), options.ca.as_deref(), alpn)?
    };
    let policies = options.policies.factory(own.registry)?;
    Ok(ClientConfig::new(Arc::new(tls), live::transport(), policies))
}

/// The connections.
pub(super) struct Connections {
    endpoint: Endpoint,
    config: ClientConfig,
    http: HttpChoice,
    limit: Duration,
    origins: Mutex<BTreeMap<String, Attempt>>,
}

/// A connection that is opened, once for all who wait for it, or was not.
type Attempt = Arc<OnceCell<Result<Opened, FetchError>>>;

/// A connection that was opened.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) client: Http3Client,
    /// When its host was known, and when the handshake was over.
    pub(super) resolved: Instant,
    pub(super) connected: Instant,
}

impl Connections {
    pub(super) fn new(
        endpoint: Endpoint,
        config: ClientConfig,
        http: HttpChoice,
        limit: Duration,
    ) -> Self {
        Connections { endpoint, config, http, limit, origins: Mutex::default() }
    }

    /// The connection to the server of `uri`, which is opened if there is none.
    pub(super) async fn to(&self, uri: &Uri) -> Result<Opened, FetchError> {
        let host = uri.host().unwrap_or_default().to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let attempt = {
            let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
            let attempt = origins.entry(format!("{host}:{port}")).or_default();
            let has_ended = |opened: &Opened| opened.client.connection().close_reason().is_some();
            if matches!(attempt.get(), Some(Ok(opened)) if has_ended(opened)) {
                *attempt = Attempt::default();
            }
            Arc::clone(attempt)
        };
        let opened = attempt.get_or_init(|| async {
            let opening = timeout(self.limit, self.open(&host, port));
            opening.await.unwrap_or_else(|_| {
                let seconds = self.limit.as_secs();
                let reason = format!("no connection to {host}:{port} after {seconds} s");
                Err(FetchError::new(FetchError::LATE, reason))
            })
        });
        opened.await.clone()
    }

    async fn open(&self, host: &str, port: u16) -> Result<Opened, FetchError> {
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let addresses = tokio::net::lookup_host((name, port)).await.map_err(|error| {
            FetchError::new(FetchError::HOST, format!("{host} has no address: {error}"))
        })?;
        let resolved = super::now();
        let connecting = live::connect_first(&self.endpoint, &self.config, addresses, name);
        let failed = |error| FetchError::connect(&error, self.http);
        let connection = connecting.await.map_err(failed)?;
        let connected = super::now();
        let client = match self.http {
            HttpChoice::H3 => Http3Client::new(connection, Default::default()),
            HttpChoice::H2 => Http3Client::http2(connection, Default::default()),
        };
        let client = client.map_err(|error| FetchError::new(FetchError::CONNECT, error))?;
        Ok(Opened { client, resolved, connected })
    }

    /// The paths of each connection.
    pub(super) fn paths(&self) -> Vec<(String, Vec<PathInfo>)> {
        let origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |(origin, attempt): (&String, &Attempt)| {
            let opened = attempt.get()?.as_ref().ok()?;
            Some((origin.clone(), opened.client.connection().paths()))
        };
        origins.iter().filter_map(of).collect()
    }

    /// Ends them.
    pub(super) fn close(&self) {
        let origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        for opened in origins.values().filter_map(|attempt| attempt.get()?.as_ref().ok()) {
            opened.client.close();
        }
    }
}
