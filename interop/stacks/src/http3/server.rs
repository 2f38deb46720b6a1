//! The server: the requests of a connection go to the service, each on a task of its own.

use std::net::SocketAddr;

use bytes::Bytes;
use h3::quic::{self, BidiStream, SendStream};
use h3::server::{Connection, RequestResolver, RequestStream};
use http::{Request, Response};
use http_body_util::BodyExt;
use quipu_serve::{Body, Client, Recorded, Site};
use tokio::task::JoinSet;
use tower_service::Service;

use super::body::RequestBody;
use crate::Failure;

/// Serves the requests of a connection until it ends.
pub(crate) async fn serve<C>(connection: C, client: SocketAddr, service: Recorded<Site>)
where
    C: quic::Connection<Bytes> + Send + 'static,
    C::BidiStream: BidiStream<Bytes> + Send + 'static,
    <C::BidiStream as BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as BidiStream<Bytes>>::RecvStream: Send + Unpin + 'static,
    C::SendStream: Send,
    C::RecvStream: Send,
{
    let Ok(mut server) = Connection::<C, Bytes>::new(connection).await else { return };
    let mut answers = JoinSet::new();
    while let Ok(Some(request)) = server.accept().await {
        answers.spawn(answer(request, client, service.clone()));
        while answers.try_join_next().is_some() {}
    }
    // A client that makes no more requests may wait for responses.
    while answers.join_next().await.is_some() {}
}

/// Has the service answer a request, and sends the answer. What fails is the client's loss alone.
async fn answer<C>(
    request: RequestResolver<C, Bytes>,
    client: SocketAddr,
    mut service: Recorded<Site>,
) -> Result<(), Failure>
where
    C: quic::Connection<Bytes>,
    C::BidiStream: BidiStream<Bytes>,
    <C::BidiStream as BidiStream<Bytes>>::RecvStream: Send + Unpin + 'static,
{
    let (head, stream) = request.resolve_request().await?;
    let (to, body) = stream.split();
    let mut request: Request<_> = head.map(|()| RequestBody(body));
    request.extensions_mut().insert(Client(client));
    // It is always ready.
    let Ok(response) = service.call(request).await;
    respond(response, to).await
}

async fn respond<S: SendStream<Bytes>>(
    response: Response<Body>,
    mut to: RequestStream<S, Bytes>,
) -> Result<(), Failure> {
    let (head, mut body) = response.into_parts();
    to.send_response(Response::from_parts(head, ())).await?;
    while let Some(frame) = body.frame().await {
        // Others are trailers, which no service here has.
        if let Ok(octets) = frame?.into_data() {
            to.send_data(octets).await?;
        }
    }
    Ok(to.finish().await?)
}
