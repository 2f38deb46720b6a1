//! Servers that run on loopback, and their clients.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quipu_serve::tcp::{Limits, Listener, Server, Stopped};
use quipu_serve::{Body, Certificates};
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use crate::setup::Answer;

/// The name of each server.
pub(crate) const NAME: &str = "localhost";

/// What ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What `work` comes to, which takes no time worth mention.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it hangs")
}

/// Any address of this host.
pub(crate) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A server that runs, and its certificate.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) certificates: Arc<Certificates>,
    folder: TempDir,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Stopped>,
}

impl Running {
    /// Starts one that answers with `service`, as `configure` makes it.
    pub(crate) fn start<S>(service: S, configure: impl FnOnce(Server<S>) -> Server<S>) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send + 'static,
    {
        let folder = TempDir::new().unwrap();
        let certificates = Arc::new(Certificates::kept_in(folder.path(), NAME).unwrap());
        let listener = Listener::bind(loopback()).unwrap();
        let address = listener.local_address();
        let server = configure(Server::new(listener, certificates.tcp().unwrap(), service));
        let (stop, stops) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            let _ = stops.await;
        }));
        Running { address, certificates, folder, stop, task }
    }

    /// Starts one within these limits.
    pub(crate) fn within<S>(service: S, limits: Limits) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send + 'static,
    {
        Self::start(service, |server| server.limits(limits).unwrap())
    }

    /// Where its certificate and key are.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// A TLS connection that offers these protocols.
    pub(crate) async fn tls(&self, alpn: &[&[u8]]) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(self.certificates.certificate().unwrap()).unwrap();
        let provider = quipu_quic::tls::rustls::provider();
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from(NAME).unwrap();
        soon(connector.connect(name, stream)).await.unwrap()
    }

    /// A connection of HTTP/1.1.
    pub(crate) async fn http1(&self) -> Http1 {
        let stream = TokioIo::new(self.tls(&[b"http/1.1"]).await);
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        Http1 { sender, ended: tokio::spawn(connection) }
    }

    /// A connection of HTTP/2.
    pub(crate) async fn http2(&self) -> Http2 {
        let stream = TokioIo::new(self.tls(&[b"h2"]).await);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        Http2 { sender, ended: tokio::spawn(connection) }
    }

    /// Tells the server to stop, and does not wait.
    pub(crate) fn begin_to_stop(self) -> JoinHandle<Stopped> {
        self.stop.send(()).unwrap();
        self.task
    }

    /// Stops the server.
    pub(crate) async fn stop(self) -> Stopped {
        soon(self.begin_to_stop()).await.unwrap()
    }
}

pub(crate) struct Http1 {
    pub(crate) sender: http1::SendRequest<Empty<Bytes>>,
    /// Ready when the connection has ended.
    pub(crate) ended: JoinHandle<hyper::Result<()>>,
}

pub(crate) struct Http2 {
    pub(crate) sender: http2::SendRequest<Empty<Bytes>>,
    /// Ready when the connection has ended.
    pub(crate) ended: JoinHandle<hyper::Result<()>>,
}

impl Http1 {
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        let request = Request::get(path).header("host", NAME).body(Empty::new()).unwrap();
        read(soon(self.sender.send_request(request)).await.unwrap()).await
    }
}

impl Http2 {
    /// The response without its body.
    pub(crate) async fn begin(&mut self, path: &str) -> hyper::Result<Response<Incoming>> {
        let uri = format!("https://{NAME}{path}");
        let request = Request::get(uri).body(Empty::new()).unwrap();
        soon(self.sender.send_request(request)).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        read(self.begin(path).await.unwrap()).await
    }
}

/// The response with its body.
pub(crate) async fn read(response: Response<Incoming>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = soon(body.collect()).await.unwrap().to_bytes().to_vec();
    Answer { status: parts.status, headers: parts.headers, body }
}
