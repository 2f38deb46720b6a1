//! What pages are loaded over.

use std::sync::Arc;

use http::Request;
use quipu_policy::Urgency;
use quipu_tokio::PathInfo;
use quipu_tokio::http3::{Http3Client, Http3Exchange};
use tokio::sync::watch;

use crate::body::{CHUNK, send_body};
use crate::error::ExchangeError;
use crate::foreign::{ForeignClient, ForeignExchange};
use crate::tcp::{TcpClient, TcpExchange};
use crate::tree::Http2Tree;

/// A client with a connection, or several, to a server.
#[derive(Clone)]
#[non_exhaustive]
pub enum Client {
    /// HTTP/3 over QUIC, or HTTP/2 over QUIC whose server goes by urgencies.
    Http3(Http3Client),
    /// HTTP/2 over QUIC, whose server knows the browser's dependency tree.
    Http2Tree(Http2Tree),
    /// HTTP/1.1 or HTTP/2 over the kernel's TCP.
    Tcp(TcpClient),
    /// A connection of another library.
    Foreign(Arc<dyn ForeignClient>),
}

impl From<&Http3Client> for Client {
    fn from(client: &Http3Client) -> Client {
        Client::Http3(client.clone())
    }
}

impl From<&Http2Tree> for Client {
    fn from(client: &Http2Tree) -> Client {
        Client::Http2Tree(client.clone())
    }
}

impl From<&TcpClient> for Client {
    fn from(client: &TcpClient) -> Client {
        Client::Tcp(client.clone())
    }
}

impl From<&Arc<dyn ForeignClient>> for Client {
    fn from(client: &Arc<dyn ForeignClient>) -> Client {
        Client::Foreign(Arc::clone(client))
    }
}

/// A request that was made.
pub(crate) enum Exchange {
    Http3(Box<Http3Exchange>),
    Tcp(Box<TcpExchange>),
    Foreign(Box<dyn ForeignExchange>),
}

impl Client {
    /// Requests `head`, with a body of so many bytes, after those that were requested before. Over HTTP/1.1 the most
    /// urgent one is sent first.
    pub(crate) async fn request(
        &self,
        head: Request<()>,
        body: u64,
        urgency: Urgency,
    ) -> Result<Exchange, ExchangeError> {
        match self {
            Client::Http3(client) | Client::Http2Tree(Http2Tree { client, .. }) => {
                Ok(Exchange::Http3(Box::new(client.request(head, body > 0).await?)))
            }
            Client::Tcp(client) => {
                Ok(Exchange::Tcp(Box::new(client.request(head, body, urgency.level).await?)))
            }
            Client::Foreign(client) => Ok(Exchange::Foreign(client.request(head, body).await?)),
        }
    }

    /// The browser's dependency tree, if the server knows it.
    pub(crate) fn tree(&self) -> Option<&Http2Tree> {
        match self {
            Client::Http2Tree(tree) => Some(tree),
            Client::Http3(_) | Client::Tcp(_) | Client::Foreign(_) => None,
        }
    }

    /// Its paths, as far as they are known: those of the kernel and of other libraries are not.
    pub(crate) fn paths(&self) -> Vec<PathInfo> {
        match self {
            Client::Http3(client) | Client::Http2Tree(Http2Tree { client, .. }) => {
                client.connection().paths()
            }
            Client::Tcp(_) | Client::Foreign(_) => Vec::new(),
        }
    }
}

impl Exchange {
    /// The status of the response, once the request with a body of so many bytes is sent and the head is there.
    pub(crate) async fn response(
        &mut self,
        body: u64,
        urgency: &mut watch::Receiver<Option<Urgency>>,
    ) -> Result<u16, ExchangeError> {
        match self {
            Exchange::Http3(exchange) => {
                send_body(exchange, body).await?;
                Ok(exchange.response().await?.status().as_u16())
            }
            Exchange::Tcp(exchange) => Ok(exchange.response(urgency).await?),
            Exchange::Foreign(exchange) => Ok(exchange.response().await?),
        }
    }

    /// The number of the next bytes of the response's body; `None` at its end. Cancelling loses none.
    pub(crate) async fn data(&mut self) -> Result<Option<u64>, ExchangeError> {
        let octets = match self {
            Exchange::Http3(exchange) => exchange.data(CHUNK).await?,
            Exchange::Tcp(exchange) => exchange.data().await?,
            Exchange::Foreign(exchange) => exchange.data().await?,
        };
        Ok(octets.map(|octets| octets.len() as u64))
    }

    /// Tells the server another urgency, where the protocol can.
    pub(crate) fn update_priority(&mut self, urgency: Urgency) -> Result<(), ExchangeError> {
        match self {
            Exchange::Http3(exchange) => Ok(exchange.update_priority(urgency)?),
            // Neither the HTTP/2 of this client nor that of other libraries has PRIORITY_UPDATE, HTTP/1.1 no such thing.
            Exchange::Tcp(_) | Exchange::Foreign(_) => Ok(()),
        }
    }
}
