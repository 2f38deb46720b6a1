//! One connection: its requests go to the service, each on a task of its own.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use quipu_tokio::Connection;
use quipu_tokio::http3::{
    ErrorCode, HTTP2_ALPN, Http2Limits, Http2ServerConfig, Http3Error, Http3Request, Http3Server,
    ServerConfig,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

use super::RequestBody;
use crate::body::Body;
use crate::client::Client;
use crate::clock::Begin;

/// How long a client whose last requests were answered has to close the connection of a server that stops. Our choice.
const CLIENT_CLOSES: std::time::Duration = std::time::Duration::from_secs(2);

/// Serves the requests of a connection until it ends, or until `stops` is true and those that came are
/// answered. Returns how many were cut.
pub(super) async fn serve<S>(
    connection: Connection,
    service: S,
    config: ServerConfig,
    mut stops: watch::Receiver<bool>,
) -> usize
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let server = match connection.alpn().as_deref() {
        Some(HTTP2_ALPN) => Http3Server::http2(connection, http2(&config)),
        _ => Http3Server::new(connection, config),
    };
    let server = match server {
        Ok(server) => server,
        Err(error) => {
            tracing::debug!(target: "quipu_serve", %error, "a connection has no HTTP");
            return 0;
        }
    };
    let mut exchanges = JoinSet::new();
    let (mut stopping, mut was_busy) = (false, false);
    loop {
        tokio::select! {
            request = server.accept() => match request {
                Ok(request) => {
                    let remote = server.connection().route().map(|route| route.remote);
                    let from = (remote.map(Client), Begin::now());
                    let service = service.clone();
                    exchanges.spawn(async move {
                        if let Err(error) = answer(request, from, service).await {
                            tracing::debug!(target: "quipu_serve", %error, "an exchange failed");
                        }
                    });
                }
                Err(error) => {
                    tracing::debug!(target: "quipu_serve", %error, "a connection ended");
                    exchanges.shutdown().await;
                    return 0;
                }
            },
            _ = exchanges.join_next(), if !exchanges.is_empty() => {}
            () = until_stopped(&mut stops), if !stopping => {
                stopping = true;
                was_busy = !exchanges.is_empty();
                // A connection that cannot say so is over.
                let _ = server.go_away();
            }
        }
        if stopping && exchanges.is_empty() {
            if was_busy {
                // A client may lose what it has not read when the connection ends, though it was delivered. It knows
                // that there is nothing more to come, and closes when it is done.
                let _ = tokio::time::timeout(CLIENT_CLOSES, server.connection().closed()).await;
            }
            let limit = quipu_base::Duration::from_secs(5);
            server.close_when_delivered(limit);
            server.connection().closed().await;
            return 0;
        }
    }
}

/// What a server of HTTP/2 spends on a client that is the same for one of HTTP/3.
fn http2(config: &ServerConfig) -> Http2ServerConfig {
    let limits = Http2Limits {
        decoding_table: config.limits.decoding_table,
        encoding_table: config.limits.encoding_table,
        field_list: config.limits.field_list,
        header_block: config.limits.field_section,
    };
    Http2ServerConfig { limits, max_requests: config.max_requests, ..Http2ServerConfig::default() }
}

/// Waits until the server is to stop.
async fn until_stopped(stops: &mut watch::Receiver<bool>) {
    // A server that is gone has stopped.
    let _ = stops.wait_for(|stops| *stops).await;
}

/// Octets up to this number are copied before they wait to be sent; our choice.
const MOST_COPIED: usize = 16_384;

/// The same octets in memory of their size: services read into buffers of 64 KiB, which a few octets would
/// keep until they are acknowledged.
fn fitting(octets: Bytes) -> Bytes {
    if octets.len() <= MOST_COPIED { Bytes::copy_from_slice(&octets) } else { octets }
}

/// Has the service answer a request, which came from a client at an instant, and sends what it answers.
async fn answer<S>(
    request: Http3Request,
    (client, came): (Option<Client>, Begin),
    mut service: S,
) -> Result<(), Http3Error>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
{
    let (head, body, mut responder) = request.into_parts();
    let is_head = head.method() == http::Method::HEAD;
    let mut request = head.map(|()| RequestBody::new(body));
    if let Some(client) = client {
        request.extensions_mut().insert(client);
    }
    request.extensions_mut().insert(came);
    let Ok(()) = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
    let Ok(response) = service.call(request).await;
    let (head, mut body) = response.into_parts();
    let response = Response::from_parts(head, ());
    let bodiless = is_head || matches!(response.status().as_u16(), 204 | 304);
    if bodiless || body.is_end_stream() {
        return responder.respond(&response, false);
    }
    responder.respond(&response, true)?;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => match frame.into_data() {
                Ok(octets) => responder.send_data(fitting(octets)).await?,
                Err(frame) => {
                    let trailers = frame.into_trailers().ok();
                    return responder.finish(trailers.as_ref());
                }
            },
            Err(error) => {
                tracing::warn!(target: "quipu_serve", %error, "a response was cut off");
                responder.abandon(ErrorCode::INTERNAL_ERROR);
                return Ok(());
            }
        }
    }
    responder.finish(None)
}
