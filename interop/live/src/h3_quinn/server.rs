//! Answers requests.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use h3::error::StreamError;
use h3::server::{Connection, RequestResolver};
use quinn::Incoming;
use quipu_interop_live::http3::{self, GOAWAY_AFTER, LIMIT};
use quipu_interop_live::{Case, Failure, Options, facts};
use tokio::task::JoinSet;

use crate::setup;

pub(crate) async fn run(options: &Arc<Options>) -> Result<(), Failure> {
    let endpoint = setup::server(options)?;
    while let Some(incoming) = endpoint.accept().await {
        let options = Arc::clone(options);
        tokio::spawn(async move {
            if let Err(error) = serve(options, incoming).await {
                facts::tell("failed", error);
            }
        });
    }
    Ok(())
}

async fn serve(options: Arc<Options>, incoming: Incoming) -> Result<(), Failure> {
    let connection = incoming.await?;
    let over = h3_quinn::Connection::new(connection.clone());
    let mut server: Connection<_, Bytes> = Connection::new(over).await?;
    let mut answers = JoinSet::new();
    let mut requests = 0;
    while let Ok(Some(request)) = server.accept().await {
        requests += 1;
        if options.case == Case::Http3GoAway && requests == GOAWAY_AFTER {
            server.shutdown(0).await?;
            facts::tell("goaway_sent", 1);
        }
        let options = Arc::clone(&options);
        answers.spawn(async move {
            match answer(&options, request).await {
                Ok(()) => {}
                Err(error) => match error.downcast_ref() {
                    Some(StreamError::RemoteTerminate { code, .. }) => {
                        facts::tell("stopped", format_args!("{:#x}", code.value()));
                    }
                    _ => facts::tell("answer_failed", error),
                },
            }
        });
    }
    facts::tell("requests", requests);
    // Dropping the server before would close the connection while responses are on their way.
    facts::tell("closed", connection.closed().await);
    Ok(())
}

async fn answer(
    options: &Options,
    request: RequestResolver<h3_quinn::Connection, Bytes>,
) -> Result<(), Failure> {
    let (request, mut stream) = request.resolve_request().await?;
    let mut body = BytesMut::new();
    while let Some(part) = stream.recv_data().await? {
        body.put(part);
        if body.len() > LIMIT {
            return Err(format!("the request is longer than {LIMIT} B").into());
        }
    }
    let trailers = stream.recv_trailers().await?;
    let request = request.map(|()| body.freeze());
    let answer = http3::answer(options.case, &options.www, request, trailers)?;
    let (head, body) = answer.response.into_parts();
    stream.send_response(http::Response::from_parts(head, ())).await?;
    if !body.is_empty() {
        stream.send_data(body).await?;
    }
    if let Some(trailers) = answer.trailers {
        stream.send_trailers(trailers).await?;
    }
    stream.finish().await?;
    Ok(())
}
