//! Sends requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h3::client::SendRequest;
use h3::error::{Code, StreamError};
use h3_quinn::OpenStreams;
use http::Request;
use quinn::{ClientConfig, Endpoint, VarInt, ZeroRttAccepted};
use quipu_interop_live::http3::{self, Answer, Ask, GoneAway, LIMIT};
use quipu_interop_live::{Failure, Options, Url, facts};
use tokio::sync::Mutex;

use crate::setup;

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    let mut connector = Connector { endpoint, config: setup::client(options)? };
    http3::fetch(options, &mut connector).await?;
    // Servers are told that their connections are over.
    let _ = tokio::time::timeout(Duration::from_secs(5), connector.endpoint.wait_idle()).await;
    Ok(())
}

struct Connector {
    endpoint: Endpoint,
    config: ClientConfig,
}

impl http3::Connector for Connector {
    type Client = Client;

    async fn connect(&mut self, url: &Url, is_early: bool) -> Result<Client, Failure> {
        let config = self.config.clone();
        let connecting = self.endpoint.connect_with(config, url.address()?, &url.host)?;
        let (connection, early) = match connecting.into_0rtt() {
            Ok((connection, accepted)) => (connection, Some(accepted)),
            Err(_) if is_early => return Err("there is no ticket for 0-RTT".into()),
            Err(connecting) => (connecting.await?, None),
        };
        let over = h3_quinn::Connection::new(connection.clone());
        let (mut driver, requests) = h3::client::new(over).await?;
        tokio::spawn(async move {
            driver.wait_idle().await;
        });
        Ok(Client { connection, requests, early: Arc::new(Mutex::new(early)) })
    }
}

#[derive(Clone)]
struct Client {
    connection: quinn::Connection,
    requests: SendRequest<OpenStreams, Bytes>,
    early: Arc<Mutex<Option<ZeroRttAccepted>>>,
}

impl http3::Client for Client {
    async fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        let (head, body) = ask.request.into_parts();
        let sent = self.requests.clone().send_request(Request::from_parts(head, ())).await;
        let mut stream = sent.map_err(told)?;
        if !body.is_empty() {
            stream.send_data(body).await?;
        }
        if let Some(trailers) = ask.trailers {
            stream.send_trailers(trailers).await?;
        }
        stream.finish().await?;
        let head = stream.recv_response().await?;
        let mut body = BytesMut::new();
        while let Some(part) = stream.recv_data().await? {
            body.put(part);
            if body.len() > LIMIT {
                return Err(format!("the response is longer than {LIMIT} B").into());
            }
            if ask.stop_after.is_some_and(|limit| body.len() >= limit) {
                stream.stop_sending(Code::H3_REQUEST_CANCELLED);
                return Ok(Answer { response: head.map(|()| body.freeze()), trailers: None });
            }
        }
        let trailers = stream.recv_trailers().await?;
        Ok(Answer { response: head.map(|()| body.freeze()), trailers })
    }

    async fn close(&self, _needs_ticket: bool) -> Result<(), Failure> {
        if let Some(accepted) = self.early.lock().await.take() {
            facts::tell("early", if accepted.await { "accepted" } else { "rejected" });
        }
        let code = VarInt::try_from(Code::H3_NO_ERROR.value())?;
        self.connection.close(code, b"");
        Ok(())
    }
}

/// h3 shows the variant for GOAWAY by its text alone.
fn told(error: StreamError) -> Failure {
    match format!("{error:?}").as_str() {
        "RemoteClosing" => GoneAway.into(),
        _ => error.into(),
    }
}
