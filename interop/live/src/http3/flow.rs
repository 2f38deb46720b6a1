//! What a client does in each case.

use std::future::Future;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use tokio::task::JoinSet;

use super::GOAWAY_AFTER;
use super::message::{Answer, Ask, GoneAway, OCTETS};
use crate::{Case, Failure, Options, Url, facts, files};

/// Bytes of a response after which its request is cancelled.
const CANCEL_AFTER: usize = 200_000;

/// Large fields of each request of the case `h3-headers`, and bytes of each value: together they fit into
/// a dynamic table of 4,096 bytes.
const LARGE_FIELDS: usize = 8;
const LARGE_VALUE: usize = 200;

/// Bytes of the one field that is larger than such a table.
const LARGEST_VALUE: usize = 6_000;

/// Opens connections.
pub trait Connector {
    /// What it opens.
    type Client: Client;

    /// Connects to the server of `url`; if it `is_early`, returns as soon as requests can be sent in
    /// 0-RTT.
    fn connect(
        &mut self,
        url: &Url,
        is_early: bool,
    ) -> impl Future<Output = Result<Self::Client, Failure>>;
}

/// A connection that requests are sent on. Clones are the same one.
pub trait Client: Clone + Send + Sync + 'static {
    /// Sends a request and returns its response. [`GoneAway`] if the server takes no more requests.
    fn ask(&self, ask: Ask) -> impl Future<Output = Result<Answer, Failure>> + Send;

    /// Tells facts about the connection and closes it; if `needs_ticket`, once the server has sent one.
    fn close(&self, needs_ticket: bool) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Does what the case is about, and saves the files.
///
/// # Errors
/// What went wrong, or was not as the case expects.
pub async fn fetch(options: &Options, connector: &mut impl Connector) -> Result<(), Failure> {
    let connections = options.connections();
    for (at, urls) in connections.iter().enumerate() {
        let Some(first) = urls.first() else { continue };
        let is_last = at + 1 == connections.len();
        let client = connector.connect(first, options.case.is_early() && at > 0).await?;
        let downloads = options.downloads.as_path();
        match options.case {
            Case::Http3Headers => headers(&client, downloads, urls).await?,
            Case::Http3Upload | Case::Http3Trailers => {
                echo(options.case, &client, downloads, first).await?;
            }
            Case::Http3Cancel => cancel(&client, downloads, urls).await?,
            Case::Http3GoAway => {
                let left = go_away(&client, downloads, urls).await?;
                client.close(false).await?;
                let client = connector.connect(left, false).await?;
                save(downloads, left, &ask(&client, get(left)?).await?)?;
                client.close(false).await?;
                continue;
            }
            _ => together(&client, downloads, urls).await?,
        }
        client.close(!is_last).await?;
    }
    Ok(())
}

/// All at once, with priorities: the later file of eight the more urgent. For one of the least urgent a
/// PRIORITY_UPDATE says that it is the most urgent.
async fn together(client: &impl Client, downloads: &Path, urls: &[Url]) -> Result<(), Failure> {
    let mut running = JoinSet::new();
    for (at, url) in urls.iter().enumerate() {
        let mut ask = get(url)?;
        let urgency = HeaderValue::from_str(&format!("u={}", 7 - at % 8))?;
        ask.request.headers_mut().insert("priority", urgency);
        ask.update = (at == updated(urls.len())).then_some(0);
        running.spawn(fetch_one(client.clone(), ask, url.clone()));
    }
    while let Some(done) = running.join_next().await {
        let (url, answer) = done??;
        save(downloads, &url, &answer)?;
        facts::tell("finished", url.path.trim_start_matches('/'));
    }
    Ok(())
}

/// The file whose urgency is updated: the last of the least urgent ones, of which there is one before.
const fn updated(files: usize) -> usize {
    match files {
        0..=8 => usize::MAX,
        _ => (files - 1) / 8 * 8,
    }
}

async fn fetch_one<C: Client>(client: C, request: Ask, url: Url) -> Result<(Url, Answer), Failure> {
    let answer = ask(&client, request).await?;
    Ok((url, answer))
}

/// One request after the other, all with the same large fields, and the last with a larger one.
async fn headers(client: &impl Client, downloads: &Path, urls: &[Url]) -> Result<(), Failure> {
    for (at, url) in urls.iter().enumerate() {
        let mut sent = HeaderMap::new();
        for number in 0..LARGE_FIELDS {
            let name = HeaderName::try_from(format!("x-large-{number}"))?;
            sent.insert(name, large(number, LARGE_VALUE)?);
        }
        if at + 1 == urls.len() {
            sent.insert("x-largest", large(LARGE_FIELDS, LARGEST_VALUE)?);
        }
        let mut request = get(url)?;
        request.request.headers_mut().extend(sent.clone());
        let answer = ask(client, request).await?;
        for (name, value) in &sent {
            let found = answer.response.headers().get(name);
            if found != Some(value) {
                let length = found.map_or(0, HeaderValue::len);
                let expected = value.len();
                return Err(format!("{name} came back with {length} B, sent: {expected} B").into());
            }
        }
        save(downloads, url, &answer)?;
    }
    Ok(())
}

/// A value of so many bytes, of which no two numbers have the same.
fn large(number: usize, bytes: usize) -> Result<HeaderValue, Failure> {
    let text: String =
        (0..bytes).map(|at| char::from(b'a' + ((at * 7 + number) % 26) as u8)).collect();
    Ok(HeaderValue::from_str(&text)?)
}

/// Fetches a file, sends it back as the body of a request, in the case of trailers with some, and saves
/// what comes of that.
async fn echo(
    case: Case,
    client: &impl Client,
    downloads: &Path,
    url: &Url,
) -> Result<(), Failure> {
    let file = ask(client, get(url)?).await?;
    let octets = file.response.into_body();
    let mut request = message("POST", url, octets.clone())?;
    let last = HeaderName::from_static("x-last");
    if case == Case::Http3Trailers {
        let value = HeaderValue::from_static("sent behind the body");
        request.trailers = Some(HeaderMap::from_iter([(last.clone(), value)]));
    }
    let answer = ask(client, request.clone()).await?;
    if case == Case::Http3Trailers {
        let trailers = answer.trailers.clone().ok_or("the response has no trailers")?;
        if trailers.get(OCTETS) != Some(&HeaderValue::from(octets.len())) {
            return Err(format!("the response has the trailers {trailers:?}").into());
        }
        facts::tell("response_trailers", 1);
        let sent = request.trailers.unwrap_or_default();
        if trailers.get(&last) == sent.get(&last) {
            facts::tell("request_trailers", 1);
        }
    }
    save(downloads, url, &answer)
}

/// Cancels the first request in the middle of its response, and fetches the others.
async fn cancel(client: &impl Client, downloads: &Path, urls: &[Url]) -> Result<(), Failure> {
    let (first, others) = urls.split_first().ok_or("expected a file to cancel")?;
    let mut cancelled = get(first)?;
    cancelled.stop_after = Some(CANCEL_AFTER);
    let answer = ask(client, cancelled).await?;
    let received = answer.response.body().len();
    if received < CANCEL_AFTER {
        return Err(format!("{received} B of the response came before it ended").into());
    }
    facts::tell("cancelled", received);
    for url in others {
        save(downloads, url, &ask(client, get(url)?).await?)?;
    }
    Ok(())
}

/// Sends the requests after which the server sends GOAWAY, and one more as soon as one is answered. That
/// one has to be refused and is returned; the others have to be answered.
async fn go_away<'a>(
    client: &impl Client,
    downloads: &Path,
    urls: &'a [Url],
) -> Result<&'a Url, Failure> {
    let (before, after) = urls.split_at_checked(GOAWAY_AFTER).ok_or("there are too few files")?;
    let left = after.first().ok_or("there are too few files")?;
    let mut running = JoinSet::new();
    for url in before {
        running.spawn(fetch_one(client.clone(), get(url)?, url.clone()));
    }
    let mut is_first = true;
    while let Some(done) = running.join_next().await {
        let (url, answer) = done??;
        save(downloads, &url, &answer)?;
        if std::mem::take(&mut is_first) {
            match client.ask(get(left)?).await {
                Err(error) if error.is::<GoneAway>() => {
                    facts::tell("refused_after_goaway", 1);
                    facts::tell("in_progress", running.len());
                }
                Err(error) => return Err(error),
                Ok(_) => return Err("a request after GOAWAY was answered".into()),
            }
        }
    }
    Ok(left)
}

/// A response that says success.
async fn ask(client: &impl Client, ask: Ask) -> Result<Answer, Failure> {
    let path = ask.request.uri().path().to_owned();
    let answer = client.ask(ask).await.map_err(|error| format!("{path}: {error}"))?;
    match answer.response.status() {
        StatusCode::OK => Ok(answer),
        status => Err(format!("{path}: status {status}").into()),
    }
}

fn get(url: &Url) -> Result<Ask, Failure> {
    message("GET", url, Bytes::new())
}

fn message(method: &str, url: &Url, body: Bytes) -> Result<Ask, Failure> {
    let mut request = Request::builder().method(method).uri(url.to_string());
    if !body.is_empty() {
        request = request.header("content-length", body.len());
    }
    Ok(Ask { request: request.body(body)?, trailers: None, stop_after: None, update: None })
}

fn save(downloads: &Path, url: &Url, answer: &Answer) -> Result<(), Failure> {
    files::save(downloads, &url.path, answer.response.body())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_whose_urgency_is_updated_has_the_lowest_one() {
        assert_eq!(updated(100), 96);
        assert_eq!(updated(9), 8);
        assert!(updated(8) >= 8, "there is none");
    }
}
