//! Answers requests.

use std::sync::Arc;

use bytes::Bytes;
use quipu_interop_live::http3::{self, GOAWAY_AFTER, LIMIT};
use quipu_interop_live::{Case, Failure, Options, facts};
use quipu_quic::PreferredAddresses;
use quipu_quic::recorder::RecorderFactory;
use quipu_tokio::http3::http::Request;
use quipu_tokio::http3::{Http3Error, Http3Request, Http3Server, ServerConfig};
use quipu_tokio::{Endpoint, Incoming};
use tokio::task::JoinSet;

use crate::{program, settings};

/// Bytes of a body that are read at once.
const PIECE: usize = 1 << 16;

pub(crate) async fn run(
    options: &Arc<Options>,
    recorders: Option<RecorderFactory>,
) -> Result<(), Failure> {
    let (server, config) = settings::server(options, PreferredAddresses::default())?;
    let builder = Endpoint::server(server).config(config).listen(options.listen);
    let endpoint = program::bind_server(builder, recorders)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve(Arc::clone(options), incoming));
    }
    Ok(())
}

async fn serve(options: Arc<Options>, incoming: Incoming) {
    let begun = async {
        let connection = match options.case.is_early() {
            true => incoming.accept_early().await?,
            false => incoming.accept().await?,
        };
        Ok::<_, Failure>(Http3Server::new(connection, ServerConfig::default())?)
    };
    let server = match begun.await {
        Ok(server) => server,
        Err(error) => return facts::tell("refused", error),
    };
    let mut answers = JoinSet::new();
    let (mut requests, mut early) = (0, 0);
    // Until the client closes.
    while let Ok(request) = server.accept().await {
        requests += 1;
        early += u32::from(server.connection().is_early());
        if options.case == Case::Http3GoAway && requests == GOAWAY_AFTER {
            facts::tell("goaway_sent", u8::from(server.go_away().is_ok()));
        }
        answers.spawn(answer(Arc::clone(&options), request));
    }
    facts::tell("requests", requests);
    facts::tell("early_requests", early);
    settings::tell(server.connection());
    crate::tell_table(server.table_use());
    facts::tell("closed", server.connection().closed().await);
}

async fn answer(options: Arc<Options>, request: Http3Request) {
    match answer_or_fail(&options, request).await {
        Ok(()) => {}
        Err(error) => match error.downcast_ref() {
            Some(Http3Error::Stopped(code)) => {
                facts::tell("stopped", format_args!("{:#x}", code.0));
            }
            _ => facts::tell("answer_failed", error),
        },
    }
}

async fn answer_or_fail(options: &Options, request: Http3Request) -> Result<(), Failure> {
    let (head, mut body, mut responder) = request.into_parts();
    let mut octets = Vec::new();
    while let Some(part) = body.data(PIECE).await? {
        octets.extend_from_slice(&part);
        if octets.len() > LIMIT {
            return Err(format!("the request is longer than {LIMIT} B").into());
        }
    }
    if !octets.is_empty() {
        facts::tell("uploaded", octets.len());
    }
    let trailers = body.trailers()?;
    facts::tell("request_trailers", u8::from(trailers.is_some()));
    let request = Request::from_parts(head.into_parts().0, Bytes::from(octets));
    let answer = http3::answer(options.case, &options.www, request, trailers)?;
    let (head, body) = answer.response.into_parts();
    let has_body = !body.is_empty() || answer.trailers.is_some();
    responder.respond(&quipu_tokio::http3::http::Response::from_parts(head, ()), has_body)?;
    if has_body {
        responder.send_data(body).await?;
        responder.finish(answer.trailers.as_ref())?;
    }
    Ok(())
}
