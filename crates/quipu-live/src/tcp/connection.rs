//! One connection: TCP, TLS, and HTTP over it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quipu_tokio::tcp::{TcpOptions, socket};
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::body::Zeros;
use super::{TcpConfig, TcpFailure, TcpHttp};

/// Bytes that the server may send before they are taken, of each response and of all, as Chrome has them.
/// <https://source.chromium.org/chromium/chromium/src/+/main:net/http/http_network_session.cc>
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

/// Makes connections to one server.
#[derive(Clone)]
pub(super) struct Connector {
    server: SocketAddr,
    tls: TlsConnector,
    options: TcpOptions,
}

impl Connector {
    pub(super) fn new(config: &TcpConfig) -> Connector {
        let mut tls = rustls::ClientConfig::clone(&config.tls);
        let protocol: &[u8] = match config.http {
            TcpHttp::Http1 { .. } => b"http/1.1",
            TcpHttp::Http2 => b"h2",
        };
        tls.alpn_protocols = vec![protocol.to_vec()];
        Connector {
            server: config.server,
            tls: TlsConnector::from(Arc::new(tls)),
            options: config.options.clone(),
        }
    }

    /// A connection for one request after the other.
    pub(super) async fn http1(&self) -> Result<http1::SendRequest<Zeros>, TcpFailure> {
        let stream = self.connect().await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends when the sender is dropped, and what fails is told to the exchange.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// A connection for all requests.
    pub(super) async fn http2(&self) -> Result<http2::SendRequest<Zeros>, TcpFailure> {
        let stream = self.connect().await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(TcpFailure::NoHttp2(self.server));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW);
        builder.initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, TcpFailure> {
        let socket = socket(self.server, &self.options)?;
        let connected = async {
            let stream = TcpSocket::from_std_stream(socket.into()).connect(self.server).await?;
            // Requests are sent at once.
            stream.set_nodelay(true)?;
            self.tls.connect(ServerName::from(self.server.ip()), stream).await
        };
        connected
            .await
            .map_err(|source: io::Error| TcpFailure::Connect { server: self.server, source })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("server", &self.server).finish_non_exhaustive()
    }
}
