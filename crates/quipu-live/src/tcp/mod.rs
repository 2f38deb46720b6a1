//! HTTP/1.1 and HTTP/2 over the kernel's TCP, or Multipath TCP: what a browser without QUIC would use.
//!
//! `connection` connects, with TLS; `pool` has the connections of HTTP/1.1, and the requests that wait for one of
//! them; `exchange` is one request and its response; `body` is what requests carry.

mod body;
mod connection;
mod exchange;
mod pool;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderValue, Request, Uri, header};
use hyper::client::conn::http2;
use quipu_tokio::tcp::{TcpError, TcpOptions};
use thiserror::Error;

use self::body::Zeros;
use self::connection::Connector;
pub(crate) use self::exchange::TcpExchange;
use self::pool::Pool;

/// Connections to a host that browsers have at a time over HTTP/1.1.
pub const HTTP1_CONNECTIONS: usize = 6;

/// How HTTP is spoken over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpHttp {
    /// HTTP/1.1 over as many connections at a time, at most, and at least one: the requests of all hosts wait for one of
    /// them, the most urgent first.
    Http1 {
        /// Connections.
        connections: usize,
    },
    /// HTTP/2 over one connection, to which the server has to agree by ALPN.
    Http2,
}

/// What a client connects with.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// The server, which is called by its address in TLS.
    pub server: SocketAddr,
    /// How its certificate is known. The protocols are set by `http`.
    pub tls: Arc<rustls::ClientConfig>,
    /// How HTTP is spoken.
    pub http: TcpHttp,
    /// What the kernel does.
    pub options: TcpOptions,
}

/// Why there is no connection over TCP, or no response.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TcpFailure {
    /// The host has no such sockets.
    #[error(transparent)]
    Options(#[from] TcpError),
    /// The server does not answer, or is not known by its certificate.
    #[error("no connection to TCP {server}: {source}")]
    Connect {
        /// The server.
        server: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The server does not speak HTTP/2.
    #[error("TCP {0} does not speak HTTP/2")]
    NoHttp2(SocketAddr),
    /// HTTP failed, or the connection.
    #[error("HTTP over TCP: {}", with_sources(.0))]
    Http(#[from] hyper::Error),
    /// The request has no host or path.
    #[error("the request for {0} has no host")]
    Request(Uri),
    /// The client is gone.
    #[error("the client has ended")]
    Ended,
}

/// The message of an error and of what caused it.
fn with_sources(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}

/// Connections to a server over TCP, which end when all clones are dropped.
#[derive(Clone, Debug)]
pub struct TcpClient {
    carrier: Carrier,
}

#[derive(Clone, Debug)]
enum Carrier {
    Http1(Pool),
    Http2(http2::SendRequest<Zeros>),
}

impl TcpClient {
    /// Connects, with the first connection if there may be several.
    ///
    /// # Errors
    /// If the server does not answer, is not the one that `config` knows, or does not speak HTTP/2 where that is to be
    /// spoken.
    pub async fn connect(config: &TcpConfig) -> Result<TcpClient, TcpFailure> {
        let connector = Connector::new(config);
        let carrier = match config.http {
            TcpHttp::Http1 { connections } => {
                Carrier::Http1(Pool::start(connector, connections).await?)
            }
            TcpHttp::Http2 => Carrier::Http2(connector.http2().await?),
        };
        Ok(TcpClient { carrier })
    }

    /// Requests `head`, which is as urgent as `level` of RFC 9218 says, with a body of so many bytes.
    pub(crate) async fn request(
        &self,
        head: Request<()>,
        body: u64,
        level: u8,
    ) -> Result<TcpExchange, TcpFailure> {
        let request = head.map(|()| Zeros::new(body));
        match &self.carrier {
            Carrier::Http1(pool) => {
                let waiting = pool.wait(level);
                Ok(TcpExchange::waiting(waiting, in_origin_form(request)?))
            }
            Carrier::Http2(sender) => {
                let mut sender = sender.clone();
                sender.ready().await?;
                // It is sent by the order of these calls.
                Ok(TcpExchange::sent(sender.send_request(request)))
            }
        }
    }
}

/// As HTTP/1.1 has it: <https://www.rfc-editor.org/rfc/rfc9112#section-3.2.1>.
fn in_origin_form(mut request: Request<Zeros>) -> Result<Request<Zeros>, TcpFailure> {
    let uri = request.uri().clone();
    let host = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let (Some(host), Some(path)) = (host, uri.path_and_query()) else {
        return Err(TcpFailure::Request(uri));
    };
    *request.uri_mut() = Uri::from(path.clone());
    request.headers_mut().insert(header::HOST, host);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_http_1_names_the_host_in_a_field() {
        let request = |uri: &str| {
            let request = Request::builder().uri(uri).body(Zeros::new(0)).expect("a request");
            in_origin_form(request)
        };
        let made = request("https://a.example:8/b?c").expect("a request");
        assert_eq!(made.uri(), "/b?c");
        assert_eq!(made.headers()["host"], "a.example:8");
        let error = request("/b").expect_err("no host");
        assert_eq!(error.to_string(), "the request for /b has no host");
    }
}
