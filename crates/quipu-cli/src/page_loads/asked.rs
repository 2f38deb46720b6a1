//! What a server is asked before a load: an endpoint with the policies of the row, and the transport of the scenario.

use http::{Request, StatusCode, Uri};
use quipu_lab::policy::PolicySpec;
use quipu_serve::experiments::{PATH, Policies};
use quipu_tokio::http3::{Http3Client, Http3Error};
use serde::Deserialize;

use super::setup::Setup;
use crate::failure::Failure;

/// Bytes of an answer that are read; our choice.
const MOST_ANSWER: usize = 16 * 1_024;

/// An answer.
#[derive(Debug, Deserialize)]
struct Answer {
    port: u16,
}

/// What is asked for.
pub(super) fn question(spec: &PolicySpec, setup: Option<&Setup>) -> Policies {
    let parts = spec.parts().map(|part| (part.entry().layer.name().to_owned(), part.to_string()));
    parts.chain(setup.into_iter().flat_map(Setup::question)).collect()
}

/// The port at which the server has what `question` asks for.
///
/// # Errors
/// If it does not answer, does not let clients choose, or refuses the policies.
pub(super) async fn port(
    client: &Http3Client,
    authority: &str,
    question: &Policies,
) -> Result<u16, Failure> {
    let (status, body) = ask(client, authority, question)
        .await
        .map_err(|error| Failure::Run(format!("{authority}: {error}")))?;
    read(status, &body).map_err(|reason| Failure::Run(format!("{authority} {reason}")))
}

async fn ask(
    client: &Http3Client,
    authority: &str,
    question: &Policies,
) -> Result<(StatusCode, Vec<u8>), Http3Error> {
    let asked = serde_json::json!(question).to_string();
    let url = Uri::builder().scheme("https").authority(authority).path_and_query(PATH);
    let url = url.build().unwrap_or_default();
    let mut request = Request::new(());
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = url;
    request.headers_mut().insert("content-length", asked.len().into());
    request
        .headers_mut()
        .insert("content-type", http::HeaderValue::from_static("application/json"));
    let mut exchange = client.request(request, true).await?;
    match exchange.send_data(asked.into_bytes().into()).await {
        // It has its answer ready, whatever the question.
        Ok(()) | Err(Http3Error::Stopped(_)) => {}
        Err(error) => return Err(error),
    }
    match exchange.finish(None) {
        Ok(()) | Err(Http3Error::Stopped(_)) => {}
        Err(error) => return Err(error),
    }
    let status = exchange.response().await?.status();
    let mut body = Vec::new();
    while body.len() < MOST_ANSWER
        && let Some(octets) = exchange.data(MOST_ANSWER).await?
    {
        body.extend_from_slice(&octets);
    }
    Ok((status, body))
}

/// What an answer says: the port, or what is wrong.
fn read(status: StatusCode, body: &[u8]) -> Result<u16, String> {
    let told = || String::from_utf8_lossy(body).trim().chars().take(500).collect::<String>();
    match status {
        StatusCode::CREATED => {
            let answer: Result<Answer, _> = serde_json::from_slice(body);
            answer
                .map(|answer| answer.port)
                .map_err(|error| format!("gave an answer without a port: {error}"))
        }
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            Err("does not let clients choose policies; start it as `quipu serve … --experiments`"
                .to_owned())
        }
        StatusCode::BAD_REQUEST => Err(format!("refuses the policies: {}", told())),
        status => Err(format!("answered {}: {}", status.as_u16(), told())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_port_or_says_what_is_wrong() {
        let read =
            |status: u16, body: &str| read(StatusCode::from_u16(status).unwrap(), body.as_bytes());
        assert_eq!(read(201, "{\"port\": 4434, \"policies\": {}}"), Ok(4434));
        assert!(read(201, "{}").unwrap_err().contains("missing field `port`"));
        assert!(read(404, "").unwrap_err().contains("--experiments"));
        assert!(read(405, "").unwrap_err().contains("--experiments"));
        let refused = read(400, "no path policy is called `minrt`\n").unwrap_err();
        assert_eq!(refused, "refuses the policies: no path policy is called `minrt`");
        assert_eq!(read(503, "all in use\n").unwrap_err(), "answered 503: all in use");
    }
}
