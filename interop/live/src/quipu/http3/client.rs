//! Sends requests.

use std::time::Duration;

use bytes::Bytes;
use quipu_interop_live::http3::{self, Answer, Ask, GoneAway, LIMIT};
use quipu_interop_live::{Failure, Options, Url, facts};
use quipu_policy::Urgency;
use quipu_quic::recorder::RecorderFactory;
use quipu_tokio::http3::http::{Request, Response};
use quipu_tokio::http3::{ClientConfig, ErrorCode, Http3Client, Http3Error, RequestError};
use quipu_tokio::{ClientConfig as QuicConfig, Endpoint};

use crate::{program, settings};

/// Bytes of a body that are read at once.
const PIECE: usize = 1 << 16;

/// How long after a request its PRIORITY_UPDATE is sent.
const UPDATE_AFTER: Duration = Duration::from_millis(50);

pub(crate) async fn run(
    options: &Options,
    recorders: Option<RecorderFactory>,
) -> Result<(), Failure> {
    let config = settings::client(options)?;
    let endpoint = program::bind_client(Endpoint::client(), recorders)?;
    let mut connector = Connector { endpoint, config, last: None };
    http3::fetch(options, &mut connector).await?;
    program::farewell(&connector.endpoint).await;
    Ok(())
}

struct Connector {
    endpoint: Endpoint,
    config: QuicConfig,
    /// Of the connection before, whose settings hold for requests in 0-RTT.
    last: Option<Http3Client>,
}

impl http3::Connector for Connector {
    type Client = Client;

    async fn connect(&mut self, url: &Url, is_early: bool) -> Result<Client, Failure> {
        let (remote, endpoint, config) = (url.address()?, &self.endpoint, &self.config);
        let connection = match is_early {
            true => endpoint.connect_early(config, remote, &url.host).await?,
            false => endpoint.connect(config, remote, &url.host).await?,
        };
        let remembered = self.last.as_ref().and_then(Http3Client::peer_settings);
        let client =
            Http3Client::new(connection, ClientConfig { remembered, ..ClientConfig::default() })?;
        self.last = Some(client.clone());
        Ok(Client(client))
    }
}

#[derive(Clone)]
struct Client(Http3Client);

impl http3::Client for Client {
    async fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        let (head, body) = ask.request.into_parts();
        let has_body = !body.is_empty() || ask.trailers.is_some();
        let request = Request::from_parts(head, ());
        let mut exchange = match self.0.request(request, has_body).await {
            Err(Http3Error::Request(RequestError::GoingAway)) => return Err(GoneAway.into()),
            sent => sent?,
        };
        if let Some(level) = ask.update {
            // Some servers ignore one that comes before its request.
            tokio::time::sleep(UPDATE_AFTER).await;
            exchange.update_priority(Urgency { level, incremental: false })?;
            facts::tell("priority_update", 1);
        }
        if has_body {
            exchange.send_data(body).await?;
            exchange.finish(ask.trailers.as_ref())?;
        }
        let head = exchange.response().await?;
        let mut body = Vec::new();
        while let Some(octets) = exchange.data(PIECE).await? {
            body.extend_from_slice(&octets);
            if body.len() > LIMIT {
                return Err(format!("the response is longer than {LIMIT} B").into());
            }
            if ask.stop_after.is_some_and(|limit| body.len() >= limit) {
                exchange.cancel(ErrorCode::REQUEST_CANCELLED);
                return Ok(answer(head, body, None));
            }
        }
        let trailers = exchange.trailers()?;
        Ok(answer(head, body, trailers))
    }

    async fn close(&self, _needs_ticket: bool) -> Result<(), Failure> {
        let connection = self.0.connection();
        settings::tell(connection);
        crate::tell_table(self.0.table_use());
        connection.close(ErrorCode::NO_ERROR.0, b"");
        Ok(())
    }
}

fn answer(
    head: Response<()>,
    body: Vec<u8>,
    trailers: Option<quipu_tokio::http3::http::HeaderMap>,
) -> Answer {
    Answer { response: head.map(|()| Bytes::from(body)), trailers }
}
